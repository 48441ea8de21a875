//! Calls every function from C, under AddressSanitizer (which also finds what is not freed), by
//! the static library, and the README's example by the shared one.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo puts the libraries of a package that it tests: beside this program.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

fn compiler(source: &str, program: &Path) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-std=c99", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]);
    command.arg(root.join("include")).arg(root.join(source)).arg("-o").arg(program);
    command
}

#[test]
fn every_function_does_what_the_header_says() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("smoke");
    run(compiler("tests/smoke.c", &program)
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"])
        .arg(libraries().join("libshaledb_capi.a"))
        .args(["-lpthread", "-ldl", "-lm"]));
    let text = run(Command::new(&program)
        .arg(dir.path().join("db"))
        .env("ASAN_OPTIONS", "detect_leaks=1"));
    assert!(text.contains("all calls are as they should be"), "{text}");
}

#[test]
fn the_example_runs_with_the_shared_library() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("example");
    let folder = libraries();
    run(compiler("examples/people.c", &program)
        .arg("-L")
        .arg(&folder)
        .arg("-lshaledb_capi")
        .arg(format!("-Wl,-rpath,{}", folder.display())));
    let text = run(Command::new(&program).arg(dir.path().join("people.db")));
    assert_eq!(text, "ada 1815\ngrace 1906\n");
}
