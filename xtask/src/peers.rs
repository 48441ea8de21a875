//! Building the drivers of the peers, and saying or installing what they need.
//!
//! They go into a cache folder, `$SHALE_CACHE` or `~/.cache/shale/peers`, where `shale bench` looks
//! for them, so that C++ that takes minutes is built once. They are built for this machine's CPU,
//! which gives RocksDB hardware checksums; `SHALE_PEER_RUSTFLAGS` replaces that, and a prebuilt
//! RocksDB named by `ROCKSDB_LIB_DIR` is taken as it is.

use crate::command::{Outcome, cargo, failed, root, run, shale, works};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The two programs of a comparison.
pub(crate) struct Programs {
    /// `shale`, to be called with `bench kv`.
    pub(crate) shale: PathBuf,
    /// The peer, by this name: `shale-peer-rocksdb`.
    pub(crate) rocksdb: PathBuf,
}

/// What a peer needs of Debian to be built and to run, besides a C compiler.
const PACKAGES: [(&str, &[&str]); 3] = [
    ("rocksdb", &["g++", "clang", "libclang-dev"]),
    ("wiredtiger", &["libwiredtiger-dev"]),
    ("mariadb", &["mariadb-server", "mariadb-plugin-rocksdb"]),
];

/// Builds both programs of a comparison in release.
pub(crate) fn build() -> Outcome<Programs> {
    let shale = shale(None)?;
    let missing = missing("rocksdb");
    if !missing.is_empty() && !program("rocksdb")?.exists() {
        return Err(format!(
            "RocksDB cannot be built without {}: cargo xtask peers rocksdb",
            missing.join(", ")
        ));
    }
    Ok(Programs { shale, rocksdb: build_one("rocksdb")? })
}

/// `cargo xtask peers`: installs what is missing, builds these peers, or all that there are.
pub(crate) fn peers(names: &[String]) -> Outcome {
    let known = known()?;
    let wanted = if names.is_empty() { &known[..] } else { names };
    if let Some(other) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no peer `{other}`; the peers are {}", known.join(", ")));
    }
    let mut packages: Vec<&str> = wanted.iter().flat_map(|name| missing(name)).collect();
    packages.sort_unstable();
    packages.dedup();
    install(&packages)?;
    let mut failed = Vec::new();
    for name in wanted {
        // One that cannot be built does not keep the others from it.
        match build_one(name) {
            Ok(program) => println!("{name}: {}", program.display()),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// The packages under `peers/`.
fn known() -> Outcome<Vec<String>> {
    let folder = root().join("peers");
    let entries = std::fs::read_dir(&folder).map_err(|error| failed("read", &folder, &error))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Builds one peer in release; its program.
fn build_one(name: &str) -> Outcome<PathBuf> {
    let (cache, program) = (cache()?, program(name)?);
    let library = std::env::var_os("ROCKSDB_LIB_DIR").filter(|_| name == "rocksdb");
    if name == "rocksdb" && !program.exists() && library.is_none() {
        eprintln!("xtask: compiling RocksDB into {}, once; this takes minutes", cache.display());
    }
    let mut command = cargo();
    command
        .current_dir(root().join("peers").join(name))
        .args(["build", "--release", "--locked"])
        .env("CARGO_TARGET_DIR", &cache);
    if library.is_none() {
        let flags = std::env::var("SHALE_PEER_RUSTFLAGS");
        command.env("RUSTFLAGS", flags.as_deref().unwrap_or("-Ctarget-cpu=native"));
    }
    run(&mut command, &format!("building the {name} peer"))?;
    Ok(program)
}

fn program(name: &str) -> Outcome<PathBuf> {
    Ok(cache()?.join(format!("release/shale-peer-{name}")))
}

fn cache() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("SHALE_CACHE") {
        return Ok(root().join(path));
    }
    let home = std::env::var_os("HOME").ok_or(
        "neither SHALE_CACHE nor HOME is set. Set SHALE_CACHE to a folder for what is built",
    )?;
    Ok(Path::new(&home).join(".cache/shale/peers"))
}

/// Those of a peer's packages whose work nothing on this machine does.
fn missing(name: &str) -> Vec<&'static str> {
    let packages = PACKAGES.iter().find(|(known, _)| *known == name);
    let more = packages.map_or(&[][..], |(_, packages)| *packages);
    std::iter::once("gcc").chain(more.iter().copied()).filter(|one| !is_there(one)).collect()
}

fn is_there(package: &str) -> bool {
    match package {
        "gcc" => works("cc", &["--version"]),
        "g++" => works("c++", &["--version"]),
        "clang" => works("clang", &["--version"]),
        "libclang-dev" => has_libclang(),
        _ => {
            let asked = Command::new("dpkg-query")
                .args(["--show", "--showformat=${db:Status-Status}", package])
                .output();
            asked.is_ok_and(|answer| answer.stdout == b"installed")
        }
    }
}

/// Installs Debian packages, or says how.
fn install(packages: &[&str]) -> Outcome {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if !works("apt-get", &["--version"]) || !is_root {
        return Err(format!(
            "these packages are missing (named as Debian names them): {list}. As root: apt-get \
             install {list}"
        ));
    }
    eprintln!("xtask: installing {list}");
    let _quiet = NoServices::begin();
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "--yes", "--no-install-recommends"])
        .args(packages);
    run(&mut command, "installing packages (`apt-get update` brings their list up to date)")
}

/// While it is there, packages that are installed do not start their services: the lab starts
/// servers of its own. A machine that has such a policy keeps it.
struct NoServices {
    made: bool,
}

impl NoServices {
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    fn begin() -> NoServices {
        use std::os::unix::fs::OpenOptionsExt;
        // 101: what Debian's tools are told is not allowed.
        let file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(NoServices::POLICY);
        let text = b"#!/bin/sh\nexit 101\n";
        let made = file.and_then(|mut file| std::io::Write::write_all(&mut file, text)).is_ok();
        NoServices { made }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_file(NoServices::POLICY);
        }
    }
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
