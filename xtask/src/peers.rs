//! Building both sides of a comparison, and saying what is missing for it.
//!
//! RocksDB is C++ and takes minutes to build, so it is built once into a cache folder:
//! `$SHALE_CACHE`, else `~/.cache/shale/peers`. It is built for this machine's CPU, which gives it
//! hardware checksums; `SHALE_PEER_RUSTFLAGS` replaces that, and a prebuilt library named by
//! `ROCKSDB_LIB_DIR` is taken as it is.

use crate::Outcome;
use crate::tools::{cargo, root, run, works};
use std::path::{Path, PathBuf};

/// The two programs.
pub(crate) struct Programs {
    /// `shale`, to be called with `bench kv`.
    pub(crate) shale: PathBuf,
    /// The peer, by this name: `shale-peer-rocksdb`.
    pub(crate) rocksdb: PathBuf,
}

/// Builds both in release.
pub(crate) fn build() -> Outcome<Programs> {
    run(cargo().args(["build", "--release", "-p", "shale-cli"]), "building shale")?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let shale = root().join(target).join("release/shale");

    let cache = cache()?;
    let rocksdb = cache.join("release/shale-peer-rocksdb");
    let library = std::env::var_os("ROCKSDB_LIB_DIR");
    if !rocksdb.exists() {
        missing()?;
        if library.is_none() {
            eprintln!("xtask: RocksDB is compiled once into {} (minutes)", cache.display());
        }
    }
    let mut command = cargo();
    command
        .current_dir(root().join("peers/rocksdb"))
        .args(["build", "--release", "--locked"])
        .env("CARGO_TARGET_DIR", &cache);
    if library.is_none() {
        let flags = std::env::var("SHALE_PEER_RUSTFLAGS");
        command.env("RUSTFLAGS", flags.as_deref().unwrap_or("-Ctarget-cpu=native"));
    }
    run(&mut command, "building the RocksDB peer")?;
    Ok(Programs { shale, rocksdb })
}

fn cache() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("SHALE_CACHE") {
        return Ok(root().join(path));
    }
    let home = std::env::var_os("HOME").ok_or("neither SHALE_CACHE nor HOME is set")?;
    Ok(Path::new(&home).join(".cache/shale/peers"))
}

/// Says which of the tools that RocksDB's build needs are not there.
fn missing() -> Outcome {
    let mut packages = Vec::new();
    if !works("c++", &["--version"]) {
        packages.push("g++");
    }
    if !works("clang", &["--version"]) {
        packages.push("clang");
    }
    if !has_libclang() {
        packages.push("libclang-dev");
    }
    if packages.is_empty() {
        return Ok(());
    }
    Err(format!(
        "RocksDB cannot be built without {}: apt-get install {}",
        packages.join(", "),
        packages.join(" ")
    ))
}

fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let mut folders: Vec<PathBuf> = [
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
    ]
    .map(PathBuf::from)
    .to_vec();
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.extend(
        versions
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm-"))
            .map(|entry| entry.path().join("lib")),
    );
    folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten()).any(
        |entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("libclang") && name.contains(".so")
        },
    )
}
