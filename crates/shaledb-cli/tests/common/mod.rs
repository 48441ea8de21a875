//! Running the command as a user does.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// Starts the command.
pub fn start(dir: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_shale"))
        .current_dir(dir)
        .args(arguments)
        .env_remove("SHALE_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What became of a command.
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Runs the command with an input.
pub fn run_with(dir: &Path, arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = start(dir, arguments);
    // A command that does not read its input closes the pipe early.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

/// Runs the command.
pub fn run(dir: &Path, arguments: &[&str]) -> Ran {
    run_with(dir, arguments, b"")
}

/// Runs a command that must succeed and gives what it printed.
pub fn done(dir: &Path, arguments: &[&str]) -> String {
    let ran = run(dir, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
    ran.out
}
