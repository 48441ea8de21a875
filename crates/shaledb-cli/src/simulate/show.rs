//! The forecast as text, as JSON and as a page.

use super::told::Told;
use super::words::{life, peak, rate, span};
use serde_json::{Value, json};
use shaledb_forecast::{Forecast, Sample, Scenario};
use shaledb_lab::report::{page::document, plain_table};
use shaledb_lab::stores::engine::Result;
use shaledb_lab::units::{bytes, three_digits};

/// The script of the page.
const SCRIPT: &str = include_str!("forecast.js");
/// Rows of the table over time.
const ROWS: usize = 12;
/// Heights of a line of blocks.
const BLOCKS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];

/// Figures over time as one line of blocks, from 0 to the largest.
fn blocks(values: impl Iterator<Item = f64> + Clone) -> String {
    let most = values.clone().fold(0.0, f64::max);
    let height = |value: f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        BLOCKS[((share * 8.0) as usize).min(7)]
    };
    values.map(height).collect()
}

type Line = (&'static str, fn(&Sample) -> f64, fn(f64) -> String);

/// What is drawn over time.
const LINES: [Line; 6] = [
    ("space", |sample| sample.space_peak, |value| bytes(value as u64)),
    ("written", |sample| sample.written, rate),
    ("device", |sample| sample.device, rate),
    ("cores", |sample| sample.cores, three_digits),
    ("debt", |sample| sample.debt, |value| bytes(value as u64)),
    ("slowed", |sample| sample.slowed, |value| format!("{:.1} %", 100.0 * value)),
];

/// For people.
pub(super) fn text(scenario: &Scenario, forecast: &Forecast, sentences: &[String]) -> String {
    let mut text = format!("{}\n\n", asked(scenario));
    for sentence in sentences {
        text.push_str(&wrapped(sentence));
        text.push('\n');
    }
    text.push('\n');
    let width = LINES.iter().map(|line| line.0.len()).max().unwrap_or(0);
    for (name, of, show) in LINES {
        let values = forecast.samples.iter().map(of);
        let most = values.clone().fold(0.0, f64::max);
        text.push_str(&format!("{name:width$}  {}  up to {}\n", blocks(values), show(most)));
    }
    let mut table = plain_table(&[
        "day",
        "data",
        "files",
        "at most",
        "written",
        "waiting",
        "device",
        "cores",
        "codecs",
        "slowed",
        "debt",
        "last level",
    ]);
    // A row is of one stretch.
    let rows = if forecast.stretches.len() > 1 { forecast.stretches.len() } else { ROWS };
    let step = forecast.samples.len().div_ceil(rows).max(1);
    for samples in forecast.samples.chunks(step) {
        let Some(last) = samples.last() else { continue };
        let mean =
            |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / samples.len() as f64;
        table.add_row([
            three_digits(last.day),
            bytes(last.live as u64),
            bytes(last.space as u64),
            bytes(peak(samples) as u64),
            rate(mean(|sample| sample.written)),
            bytes(last.waiting as u64),
            rate(mean(|sample| sample.device)),
            three_digits(mean(|sample| sample.cores)),
            three_digits(mean(|sample| sample.codec_cores)),
            format!("{:.1} %", 100.0 * mean(|sample| sample.slowed)),
            bytes(last.debt as u64),
            last.codec.clone(),
        ]);
    }
    text.push_str(&format!("\n{}\n", table.trim_fmt()));
    text
}

/// What was asked, in a sentence.
fn asked(scenario: &Scenario) -> String {
    let load = &scenario.load;
    let (least, most) = load
        .bytes_per_second
        .iter()
        .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), &one| {
            (least.min(one), most.max(one))
        });
    let written = if most.is_infinite() {
        "as much as goes".to_owned()
    } else if least < most {
        format!("{} to {}", rate(least), rate(most))
    } else {
        rate(most)
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    wrapped(&format!(
        "{} of rows of {} and {}, {written} written ({} new, {} deletes, the rest updates), {} \
         reads a second, for {}; {} cores, {} of memory, a device of {}.",
        bytes(scenario.start_bytes as u64),
        bytes(scenario.key_bytes as u64),
        bytes(scenario.value_bytes as u64),
        percent(load.inserts),
        percent(load.deletes),
        three_digits(load.reads_per_second),
        span(scenario.days),
        three_digits(scenario.machine.cores),
        bytes(scenario.machine.memory_bytes),
        rate(scenario.machine.device.bytes_per_second),
    ))
}

/// Lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().filter(|line| line.chars().count() + word.len() < 100);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// For programs.
pub(super) fn value(
    scenario: &Scenario,
    forecast: &Forecast,
    sentences: &[String],
    told: &Told,
) -> Value {
    let totals = &forecast.totals;
    json!({
        "sentences": sentences,
        "from": told.value(),
        "write_amp": (totals.written > 0.0).then(|| totals.write_amp()),
        "end_bytes": forecast.end_bytes,
        "space_bytes": forecast.space(),
        "space_peak_bytes": forecast.space_peak(),
        "space_amp_peak": forecast.samples.iter().map(|sample| {
            sample.space_peak / sample.live.max(1.0)
        }).fold(0.0, f64::max),
        "cores": totals.cores(),
        "device_written_bytes_per_second": totals.device_written(),
        "device_life_days": life(scenario, totals),
        "slowed_share": totals.slowed_share(),
        "full_day": forecast.full_day,
        "longest_behind_seconds": totals.longest,
        "most": forecast.most,
        "totals": totals,
        "stretches": forecast.stretches,
        "coarseness": forecast.coarseness,
        "hours_shorter": forecast.hours_shorter,
        "samples": forecast.samples,
        "load": scenario.load,
        "machine": scenario.machine,
        "days": scenario.days,
        "start_bytes": scenario.start_bytes,
        "key_bytes": scenario.key_bytes,
        "value_bytes": scenario.value_bytes,
    })
}

/// A page that needs nothing else.
pub(super) fn page(
    scenario: &Scenario,
    forecast: &Forecast,
    sentences: &[String],
    told: &Told,
    text: &str,
) -> Result<String> {
    let value = value(scenario, forecast, sentences, told);
    document("Shale: what it will cost", text, &value, SCRIPT)
}
