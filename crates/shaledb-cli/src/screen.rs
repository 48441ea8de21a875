//! The standard output, and progress on the standard error.

use crate::exit::Outcome;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};

/// Writes bytes to the standard output.
pub(crate) fn out(bytes: &[u8]) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(())
}

/// Writes one line to the standard output.
pub(crate) fn line(text: &str) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()?;
    Ok(())
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Outcome<()> {
    line(&serde_json::to_string(value)?)
}

/// A progress bar over bytes with rate and time left; hidden unless the standard error is a
/// terminal.
pub(crate) fn bytes_bar(total: Option<u64>, name: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = match total {
        Some(_) => {
            "{prefix} [{bar:28}] {percent:>3}% {bytes:>10} {bytes_per_sec:>12}  {msg}  ETA {eta}"
        }
        None => "{prefix} {spinner} {bytes:>10} {bytes_per_sec:>12}  {msg}",
    };
    let style = ProgressStyle::with_template(template)
        .expect("the template is well-formed")
        .progress_chars("=> ");
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    bar.with_style(style).with_prefix(name)
}

/// A progress bar of 1000 steps; hidden unless the standard error is a terminal.
pub(crate) fn share_bar(name: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{prefix} [{bar:28}] {percent:>3}%  ETA {eta}")
        .expect("the template is well-formed")
        .progress_chars("=> ");
    ProgressBar::new(1000).with_style(style).with_prefix(name)
}

/// A sign of life for work of unknown length.
pub(crate) fn spinner(text: String) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
        .expect("the template is well-formed");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(text);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}
