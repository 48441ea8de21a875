//! `cargo xtask install-c`: the C library where C programs look for it.

use crate::command::{Outcome, cargo, release, root, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Builds the C library in release and puts it under `prefix`: `lib/libshale.a`,
/// `lib/libshale.so.VERSION` with its links, `lib/pkgconfig/shale.pc`, `include/shale.h`.
pub(crate) fn install(prefix: &Path) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let major = version.split('.').next().unwrap_or(version);
    let soname = format!("libshale.so.{major}");
    let mut build = cargo();
    build.args(["rustc", "--release", "-p", "shaledb-capi", "--lib", "--crate-type", "cdylib"]);
    build.arg("--").arg(format!("-Clink-arg=-Wl,-soname,{soname}"));
    run(&mut build, "building the shared library")?;
    let mut build = cargo();
    build.args(["rustc", "--release", "-p", "shaledb-capi", "--lib", "--crate-type", "staticlib"]);
    run(&mut build, "building the static library")?;

    let built = release();
    let source = root().join("crates/shaledb-capi");
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let failed =
        |error: std::io::Error| format!("could not install to {}: {error}", prefix.display());
    fs::create_dir_all(lib.join("pkgconfig")).map_err(failed)?;
    fs::create_dir_all(&include).map_err(failed)?;
    let shared = format!("libshale.so.{version}");
    fs::copy(built.join("libshaledb_capi.so"), lib.join(&shared)).map_err(failed)?;
    fs::copy(built.join("libshaledb_capi.a"), lib.join("libshale.a")).map_err(failed)?;
    fs::copy(source.join("include/shale.h"), include.join("shale.h")).map_err(failed)?;
    for (name, to) in [(soname.as_str(), &shared), ("libshale.so", &soname)] {
        let link = lib.join(name);
        if link.is_symlink() {
            fs::remove_file(&link).map_err(failed)?;
        }
        symlink(to, &link).map_err(failed)?;
    }
    let prefix = fs::canonicalize(prefix).map_err(failed)?;
    let text = fs::read_to_string(source.join("shale.pc.in")).map_err(failed)?;
    let text =
        text.replace("@PREFIX@", &prefix.display().to_string()).replace("@VERSION@", version);
    fs::write(lib.join("pkgconfig/shale.pc"), text).map_err(failed)?;
    println!("installed under {}; cc $(pkg-config --cflags --libs shale) ...", prefix.display());
    Ok(())
}
