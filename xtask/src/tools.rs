//! The tasks that drive other tools.

use crate::command::{Outcome, cargo, failed, root, run, works};
use std::path::Path;
use std::process::Command;

/// The nightly toolchain's cargo.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", "nightly", "cargo"]);
    // This task's own toolchain must not leak into the other one.
    for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
}

fn need_nightly(component: Option<&str>) -> Outcome {
    if !works("rustup", &["run", "nightly", "rustc", "--version"]) {
        let components = component.map_or(String::new(), |name| format!(" --component {name}"));
        return Err(format!(
            "a nightly toolchain is missing: rustup toolchain install nightly{components}"
        ));
    }
    match component {
        Some("miri") if !works("rustup", &["run", "nightly", "cargo", "miri", "--version"]) => {
            Err("Miri is missing. Install it: rustup component add --toolchain nightly miri \
                 rust-src"
                .into())
        }
        Some("rust-src") if !has_nightly_source() => Err("the source of the standard library is \
             missing: rustup component add --toolchain nightly rust-src"
            .into()),
        _ => Ok(()),
    }
}

/// Whether the nightly toolchain can build the standard library.
fn has_nightly_source() -> bool {
    let output =
        Command::new("rustup").args(["run", "nightly", "rustc", "--print", "sysroot"]).output();
    output.is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Path::new(&sysroot).join("lib/rustlib/src/rust/library/std").exists()
    })
}

/// Format, lints and documentation; `./test` runs the tests.
pub(crate) fn ci() -> Outcome {
    run(cargo().args(["fmt", "--all", "--", "--check"]), "the format check")?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run(cargo().args(lints), "the lints")?;
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    run(cargo().env("RUSTDOCFLAGS", "-D warnings").args(docs), "the documentation")
}

/// Undefined behaviour in the files with `unsafe`.
pub(crate) fn miri(filters: &[String]) -> Outcome {
    need_nightly(Some("miri"))?;
    let mut command = nightly();
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-ignore-leaks");
    command.args(["miri", "test", "-p", "shaledb", "--lib", "--"]);
    if filters.is_empty() {
        command.arg("memtable::");
    } else {
        command.args(filters);
    }
    run(&mut command, "Miri")
}

/// The interleavings of threads that shuttle explores: with its feature the locks and atomics of
/// `base::sync` are other types.
pub(crate) fn shuttle(filters: &[String]) -> Outcome {
    let mut command = cargo();
    command.args(["test", "-p", "shaledb", "--lib", "--features", "fuzz,shuttle"]);
    // Compiling takes longer than these tests run.
    command.args(["--config", "profile.dev.package.shaledb.opt-level=0", "--"]);
    if filters.is_empty() {
        command.args(["shuttle_tests", "interleavings"]);
    } else {
        command.args(filters);
    }
    run(&mut command, "shuttle")
}

/// Data races, with the standard library instrumented too.
pub(crate) fn tsan(filters: &[String]) -> Outcome {
    need_nightly(Some("rust-src"))?;
    let target = "x86_64-unknown-linux-gnu";
    let mut command = nightly();
    command.env("RUSTFLAGS", "-Zsanitizer=thread");
    command.env("TSAN_OPTIONS", "halt_on_error=1");
    command.args(["test", "-Zbuild-std", "--target", target, "--target-dir", "target/tsan"]);
    command.env("SHALE_BUILDS", "1");
    command.args(["-p", "shaledb", "--lib", "--test", "stress", "--test", "builds", "--"]);
    if filters.is_empty() {
        let with_threads =
            ["everything_at_once", "beside_writers", "cache::", "memtable::", "write::"];
        command.args(with_threads);
    } else {
        command.args(filters);
    }
    run(&mut command, "ThreadSanitizer")
}

/// Every fuzz target for some time. What is new goes into `fuzz/target/corpus`; the corpora that
/// the tests replay are read and not changed.
pub(crate) fn fuzz(seconds: u64, only: Option<&str>) -> Outcome {
    need_nightly(None)?;
    if !works("cargo", &["fuzz", "--help"]) {
        return Err("cargo-fuzz is missing. Install it: cargo install cargo-fuzz".into());
    }
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| failed("read", &folder, &error))?;
    let mut targets: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| only.is_none_or(|only| only == name))
        .collect();
    targets.sort();
    if targets.is_empty() {
        return Err(format!(
            "there is no such target in {}. Name one of the files there, without .rs",
            folder.display()
        ));
    }
    for target in targets {
        let found = root().join("fuzz/target/corpus").join(&target);
        std::fs::create_dir_all(&found).map_err(|error| failed("create", &found, &error))?;
        let (found, kept) = (format!("target/corpus/{target}"), format!("corpus/{target}"));
        let limits = [format!("-max_total_time={seconds}"), "-timeout=60".to_owned()];
        let mut command = nightly();
        command
            .current_dir(root().join("fuzz"))
            // libdeflate builds one static table per template.
            .env("ASAN_OPTIONS", "detect_odr_violation=0")
            .args(["fuzz", "run", &target, &found, &kept, "--"])
            .args(limits);
        run(&mut command, &format!("fuzzing {target}"))?;
    }
    Ok(())
}

/// The simulator, and the recorded power losses, over every crash point and fault instead of a
/// sample, and the tests that are ignored in ./test because they take long.
pub(crate) fn long(filters: &[String]) -> Outcome {
    let mut command = cargo();
    command.env("SHALE_EXHAUSTIVE", "1");
    command.args(["test", "--release", "-p", "shaledb-sim", "--", "--include-ignored"]);
    command.args(filters);
    run(&mut command, "the long tests")?;
    let mut command = cargo();
    command.env("SHALE_EXHAUSTIVE", "1");
    command.args(["test", "--release", "-p", "shaledb", "--test", "power", "--"]).args(filters);
    run(&mut command, "the recorded power losses")
}
