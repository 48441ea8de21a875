//! Running other programs, which is what most tasks do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a task says when it fails.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| failed("read", path, &error))
}

/// The words for what could not be done with a file or folder.
pub(crate) fn failed(what: &str, path: &Path, error: &io::Error) -> String {
    format!("could not {what} {}: {error}", path.display())
}

/// Where cargo puts what it builds in release.
pub(crate) fn release() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    root().join(target.map_or_else(|| "target".into(), PathBuf::from)).join("release")
}

/// The command `shale`: the program that was named, else one built in release.
pub(crate) fn shale(named: Option<&Path>) -> Outcome<PathBuf> {
    if let Some(program) = named {
        return Ok(program.to_owned());
    }
    let build = ["build", "--release", "--locked", "-p", "shaledb-cli"];
    run(cargo().args(build), "building shale")?;
    Ok(release().join("shale"))
}

/// A cargo command at the root, with the toolchain of this task.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A git command at the root.
pub(crate) fn git() -> Command {
    let mut command = Command::new("git");
    command.current_dir(root());
    command
}

/// Runs a command, shows it, and fails with what it was for.
pub(crate) fn run(command: &mut Command, what: &str) -> Outcome {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    eprintln!("xtask: {}", words.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed ({status})")),
        Err(error) => Err(format!("could not run {}: {error}", words[0])),
    }
}

/// Whether a command runs and succeeds.
pub(crate) fn works(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
