//! What a campaign shows while it runs: a bar for the present step, a line for each that is done.

use crate::run::row::Row;
use crate::run::work::Progress;
use crate::say;
use crate::units::{bytes, count, micros, three_digits};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// See the module.
pub(super) struct Screen {
    bar: ProgressBar,
    quiet: bool,
}

impl Screen {
    /// Nothing is shown on the standard output if `quiet`; the bar is on the standard error, if
    /// that is a terminal.
    pub(super) fn new(quiet: bool) -> Screen {
        if !std::io::stderr().is_terminal() {
            return Screen { bar: ProgressBar::hidden(), quiet };
        }
        let bar = ProgressBar::new(1000);
        let style = ProgressStyle::with_template(
            "{prefix} [{bar:24}] {percent:>3}% {msg} {elapsed_precise:.dim}",
        )
        .expect("the template is well-formed")
        .progress_chars("=> ");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Screen { bar, quiet }
    }

    /// A step begins.
    pub(super) fn begin(&self, turn: &str) {
        self.bar.reset();
        self.bar.set_position(0);
        self.bar.set_prefix(turn.to_owned());
        self.bar.set_message("");
    }

    /// It goes on.
    pub(super) fn hear(&self, what: &str, progress: Option<&Progress>) {
        let Some(progress) = progress else { return self.bar.set_message(what.to_owned()) };
        self.bar.set_position((progress.share.unwrap_or(0.0) * 1000.0) as u64);
        self.bar.set_message(format!("{}/s", count(progress.rate)));
    }

    /// A line that stays.
    pub(super) fn say(&self, text: &str) {
        if !self.quiet {
            let _ = self.bar.suspend(|| say::tell(text));
        }
    }

    /// A line about something that is wrong; shown in any case.
    pub(super) fn warn(&self, text: &str) {
        self.bar.suspend(|| say::note(text));
    }

    /// No more steps.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// One line about one row.
pub(super) fn brief(row: &Row) -> String {
    let name = if row.setting.is_empty() {
        row.engine.clone()
    } else {
        format!("{} {}", row.engine, row.setting)
    };
    let mut text = format!("{:>18} {name:<12}", row.step);
    if row.unit == "wait_idle" || row.ops <= 1 {
        text.push_str(&format!(
            " {} s, {} CPU s, {} written, size {}",
            three_digits(row.seconds),
            three_digits(row.cpu.seconds),
            bytes(row.io.written_bytes),
            bytes(row.size_bytes)
        ));
    } else {
        text.push_str(&format!(
            " {}/s, {} CPU us, {} wKB, {} rKB a {}, size {}",
            count(row.rate),
            three_digits(row.cpu.us_per_op),
            three_digits(row.io.written_kb_per_op),
            three_digits(row.io.read_kb_per_op),
            row.unit,
            bytes(row.size_bytes)
        ));
        for (kind, latency) in row.latency_us.iter().take(1) {
            let us = &latency.us;
            text.push_str(&format!(
                ", {kind} p50 {} p99 {} max {}",
                micros(us.p50),
                micros(us.p99),
                micros(us.max)
            ));
        }
    }
    if let Some(writer) = &row.writer {
        text.push_str(&format!(
            "\n{:>31} {}/s of {}/s, p99 {}",
            "its writer",
            count(writer.rate),
            count(writer.wanted),
            micros(writer.latency.us.p99)
        ));
    }
    for note in &row.notes {
        text.push_str(&format!("\n{:>31} {note}", "note:"));
    }
    text
}
