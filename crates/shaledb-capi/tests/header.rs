//! include/shale.h is what the sources say. `SHALE_BLESS=1` renews it.

use std::path::Path;

fn made() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut text = Vec::new();
    cbindgen::generate_with_config(root, config).unwrap().write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_header_is_as_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/shale.h");
    let made = made();
    if std::env::var_os("SHALE_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{} is not what the sources say: SHALE_BLESS=1", path.display());
}

/// The smoke test calls each function, and there are not too many.
#[test]
fn every_function_is_called_from_c() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let smoke = std::fs::read_to_string(root.join("tests/smoke.c")).unwrap();
    let header = std::fs::read_to_string(root.join("include/shale.h")).unwrap();
    let functions: Vec<&str> = header
        .lines()
        .filter(|line| !line.trim_start().starts_with("//") && !line.starts_with(" *"))
        .filter_map(|line| line.split_once('(').map(|(before, _)| before))
        .filter_map(|before| before.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("shale_"))
        .collect();
    assert!(functions.len() > 60, "{functions:?}");
    assert!(functions.len() <= 115, "{} functions", functions.len());
    let missing: Vec<&&str> =
        functions.iter().filter(|name| !smoke.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "smoke.c does not call {missing:?}");
}
