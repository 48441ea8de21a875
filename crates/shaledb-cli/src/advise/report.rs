//! What the advice looks like in a terminal, and as JSON.

use super::check::{Checked, Compared};
use super::engines::{self, Engines};
use super::engines_table;
use super::predict::{Predicted, Prediction};
use super::recommend::{Picked, percent};
use super::sample::{Sample, Seen};
use serde::Serialize;
use shaledb_lab::report::plain_table;
use shaledb_lab::units::{bytes, micros, three_digits};

/// The longest bar, in characters.
const BAR: usize = 40;

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    pub(super) source: String,
    pub(super) seen: Seen,
    /// Rows and bytes of keys and values that were read, and which part of the source they are.
    pub(super) sample_rows: u64,
    pub(super) sample_bytes: u64,
    pub(super) sample_share: f64,
    /// Whether the source's length is not known, so that figures are for 1 GB of it.
    pub(super) is_endless: bool,
    #[serde(flatten)]
    pub(super) predicted: &'a Predicted,
    /// The number of the recommended choice in `choices`, of the smallest and of the one that
    /// takes least CPU.
    pub(super) recommended: usize,
    pub(super) smallest: usize,
    pub(super) cheapest: usize,
    pub(super) words: Vec<String>,
    /// Only with `--check`.
    pub(super) checked: Option<Vec<Checked>>,
    pub(super) check_words: Vec<String>,
    /// Only with `--engines`.
    pub(super) engines: Option<Engines>,
    pub(super) engine_words: Vec<String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        source: String,
        sample: &Sample,
        predicted: &'a Predicted,
        picked: Picked,
        words: Vec<String>,
    ) -> Report<'a> {
        Report {
            source,
            seen: sample.seen,
            sample_rows: sample.rows,
            sample_bytes: sample.bytes,
            sample_share: sample.share(),
            is_endless: sample.is_endless,
            predicted,
            recommended: picked.recommended,
            smallest: picked.smallest,
            cheapest: picked.cheapest,
            words,
            checked: None,
            check_words: Vec::new(),
            engines: None,
            engine_words: Vec::new(),
        }
    }

    /// Adds what other engines would take.
    pub(super) fn compare(&mut self, engines: Engines) {
        self.engine_words = engines::words(&engines);
        self.engines = Some(engines);
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n\n{}\n\n{}", self.table(), self.bars(), self.words.join("\n"));
        if let Some(checked) = &self.checked {
            text.push_str(&format!(
                "\n\nAll was loaded; predicted, measured, and how far off:\n{}\n\n{}",
                check_table(checked),
                self.check_words.join("\n")
            ));
        }
        if let Some(engines) = &self.engines {
            text.push_str(&format!(
                "\n\n{}\n\n{}",
                engines_table::text(engines, self.predicted.bytes),
                self.engine_words.join("\n")
            ));
        }
        text
    }

    fn table(&self) -> String {
        let choices = &self.predicted.choices;
        let has_amp = choices.iter().any(|choice| choice.write_amp.is_some());
        let mut header =
            vec!["choice", "size", "\u{b1}", "of raw", "load CPU", "a row", "get", "cached get"];
        if has_amp {
            header.push("w-amp");
        }
        let has_rate = choices.iter().any(|choice| choice.write_amp_at_rate.is_some());
        if has_rate {
            header.push("at rate");
        }
        let mut table = plain_table(&header);
        for (number, choice) in choices.iter().enumerate() {
            let mut cells = vec![
                self.label(number, choice),
                bytes(choice.size_bytes as u64),
                percent(choice.size_bound),
                percent(choice.size_bytes / self.predicted.bytes.max(1.0)),
                format!("{} s", three_digits(choice.load_cpu_seconds)),
                micros(choice.load_us_per_row),
                micros(choice.get_us),
                micros(choice.cached_get_us),
            ];
            if has_amp {
                cells.push(choice.write_amp.map_or(String::new(), three_digits));
            }
            if has_rate {
                cells.push(choice.write_amp_at_rate.map_or(String::new(), three_digits));
            }
            table.add_row(cells);
        }
        table.trim_fmt()
    }

    fn label(&self, number: usize, choice: &Prediction) -> String {
        let mark = if number == self.recommended { " *" } else { "" };
        format!("{}{mark}", choice.choice.label())
    }

    /// Sizes as bars; what the bound leaves open is lighter.
    fn bars(&self) -> String {
        let choices = &self.predicted.choices;
        let most = choices.iter().map(high).fold(1.0, f64::max);
        let width = choices.iter().map(|choice| choice.choice.label().len() + 2).max().unwrap_or(0);
        let mut text = String::new();
        for (number, choice) in choices.iter().enumerate() {
            let length = |size: f64| ((size / most * BAR as f64).round() as usize).min(BAR);
            let full = length(choice.size_bytes);
            text.push_str(&format!(
                "{:width$}  {}{} {}\n",
                self.label(number, choice),
                "\u{2588}".repeat(full),
                "\u{2591}".repeat(length(high(choice)).saturating_sub(full)),
                bytes(choice.size_bytes as u64),
            ));
        }
        text.trim_end().to_owned()
    }
}

/// The upper end of the bound.
pub(super) fn high(choice: &Prediction) -> f64 {
    choice.size_bytes * (1.0 + choice.size_bound.min(1.0))
}

fn check_table(checked: &[Checked]) -> String {
    let mut table = plain_table(&["choice", "measure", "predicted", "measured", "off", "bound"]);
    for one in checked {
        let seconds = |seconds: f64| format!("{} s", three_digits(seconds));
        let mut row = |measure: &str, figure: Compared, text: &dyn Fn(f64) -> String, bound| {
            table.add_row([
                one.choice.label(),
                measure.to_owned(),
                text(figure.predicted),
                text(figure.measured),
                format!("{:+.1} %", figure.error * 100.0),
                bound,
            ]);
        };
        let size = |size: f64| bytes(size as u64);
        row("size", one.size_bytes, &size, percent(one.size_bound));
        row("load CPU", one.load_cpu_seconds, &seconds, "20 %".to_owned());
        row("get", one.get_us, &micros, String::new());
        row("cached get", one.cached_get_us, &micros, String::new());
        if let Some(amp) = one.write_amp {
            row("write amp", amp, &three_digits, "10 %".to_owned());
        }
    }
    table.trim_fmt()
}
