//! The answer in words.

use super::told::Told;
use shaledb_forecast::{Forecast, Sample, Scenario, Totals};
use shaledb_lab::units::{bytes, three_digits};

/// Days of a year.
const YEAR: f64 = 365.0;
/// Less than this share of the time counts as never.
const NEVER: f64 = 5e-4;

/// A span in words.
pub(super) fn span(days: f64) -> String {
    let of = |number: f64, unit: &str| {
        let digits = three_digits(number);
        format!("{digits} {unit}{}", if digits == "1.00" { "" } else { "s" })
    };
    match days {
        days if days >= 2.0 * YEAR => of(days / YEAR, "year"),
        days if days >= 1.0 => of(days, "day"),
        days if days * 24.0 >= 1.0 => of(days * 24.0, "hour"),
        days if days * 1440.0 >= 1.0 => of(days * 1440.0, "minute"),
        days => of(days * 86_400.0, "second"),
    }
}

/// Bytes a second.
pub(super) fn rate(per_second: f64) -> String {
    format!("{}/s", bytes(per_second as u64))
}

/// How long the device lasts, in days, if its life is known.
pub(super) fn life(scenario: &Scenario, totals: &Totals) -> Option<f64> {
    let device = &scenario.machine.device;
    let written = totals.device_written();
    (device.life_bytes.is_finite() && written > 0.0).then(|| device.life_bytes / written / 86_400.0)
}

/// The most that the files take at any moment.
pub(super) fn peak(samples: &[Sample]) -> f64 {
    samples.iter().map(|sample| sample.space_peak).fold(0.0, f64::max)
}

/// What the forecast says, sentence by sentence.
pub(super) fn sentences(scenario: &Scenario, forecast: &Forecast, told: &Told) -> Vec<String> {
    let totals = &forecast.totals;
    let last = forecast.samples.last();
    let mut said = Vec::new();
    let codec = last.map_or("", |sample| sample.codec.as_str());
    said.push(format!(
        "With {codec} in the last level this needs {} at the end ({} at most), {} cores at the \
         mean, and writes {} to the device.",
        bytes(forecast.space() as u64),
        bytes(forecast.space_peak() as u64),
        three_digits(totals.cores()),
        rate(totals.device_written()),
    ));
    // Where nothing is written there is no byte of it.
    if totals.written > 0.0 {
        said.push(format!(
            "Each byte of keys and values is written {} times to tables and {} times to the log.",
            three_digits(totals.write_amp()),
            three_digits(totals.logged / totals.written.max(1.0)),
        ));
    }
    if let Some(days) = life(scenario, totals) {
        said.push(format!("The device's life is used up after {}.", span(days)));
    }
    let slowed = totals.slowed_share();
    if slowed > NEVER {
        let causes: Vec<String> = totals
            .slowed
            .iter()
            .filter(|(_, seconds)| **seconds > 0.01 * slowed * totals.seconds)
            .map(|(cause, seconds)| format!("{cause} {:.1} %", 100.0 * seconds / totals.seconds))
            .collect();
        said.push(format!(
            "Writers are slowed for {:.1} % of the time ({}).{}",
            100.0 * slowed,
            causes.join(", "),
            how_long(scenario, forecast),
        ));
    } else if totals.refused == 0.0 {
        said.push("Writers are slowed for less than 0.05 % of the time.".to_owned());
    }
    let (reads, wanted) = (totals.reads, totals.reads_wanted);
    if reads < 0.99 * wanted {
        said.push(format!(
            "Of the reads only {:.0} % are done: cores or device do no more.",
            100.0 * reads / wanted
        ));
    }
    if totals.refused > 0.0 {
        said.push(refused(forecast));
    }
    said.push(behind(scenario, forecast));
    if let Some(existing) = &scenario.existing {
        let (tables, tree) = match told.is_run() {
            true => (format!("the levels of {}", existing.name), "the one of that step".to_owned()),
            false => (
                format!("the tables of the tree `{}`", existing.name),
                format!("`{}`", existing.name),
            ),
        };
        said.push(if forecast.from_tables {
            format!("It began with {tables}.")
        } else {
            format!(
                "It began with a tree as large as {tree} in its usual shape, since not all of \
                 the time or not all of the tables could be run."
            )
        });
    }
    said.extend(told.sentences());
    if let Some(part) = what_was_run(forecast) {
        said.push(part);
    }
    said
}

/// From when on and for how long puts are refused.
fn refused(forecast: &Forecast) -> String {
    let since = match forecast.full_day {
        Some(day) if day > 0.0 => format!(" after {}", span(day)),
        Some(_) => " from the beginning".to_owned(),
        None => String::new(),
    };
    format!(
        "Puts are refused for {:.1} % of the time, since the space limit is reached{since}.",
        100.0 * forecast.totals.refused / forecast.totals.seconds,
    )
}

/// How long at once less is written than should be.
fn how_long(scenario: &Scenario, forecast: &Forecast) -> String {
    if scenario.mean_demand().is_infinite() {
        String::new()
    } else if forecast.falls_behind() {
        " They are behind at the end of what was run.".to_owned()
    } else {
        format!(" At worst they are behind for {}.", span(forecast.totals.longest / 86_400.0))
    }
}

/// Whether the load falls behind, and from where on it would.
fn behind(scenario: &Scenario, forecast: &Forecast) -> String {
    let (most, first) = (forecast.most.bytes_per_second, forecast.most.first.words());
    // Levels that will change yet take more than they will.
    let goes = format!("{}{}", rate(most), if forecast.most.is_warm { "" } else { " or less" });
    let demand = scenario.mean_demand();
    if demand.is_infinite() {
        return format!("It takes {goes} for long; what gives first is {first}.");
    }
    if demand > most {
        format!(
            "The load falls behind: {} is wanted, {goes} goes for long, and what gives first is \
             {first}.",
            rate(demand)
        )
    } else if forecast.falls_behind() {
        let waiting = forecast.samples.last().map_or(0.0, |sample| sample.waiting);
        format!(
            "At the end of what was run {} wait to be written, though {goes} goes for long (what \
             gives first is {first}).",
            bytes(waiting as u64)
        )
    } else {
        format!("The load falls behind at {goes}, and what gives first is {first}.")
    }
}

/// Which part of the time was run, and how coarsely.
fn what_was_run(forecast: &Forecast) -> Option<String> {
    let whole = forecast.stretches.iter().map(|stretch| stretch.to_day - stretch.from_day);
    let (whole, run): (f64, f64) =
        (whole.sum(), forecast.stretches.iter().map(|stretch| stretch.run_days).sum());
    let mut text = String::new();
    if run < 0.99 * whole {
        let count = forecast.stretches.len();
        let stretches =
            if count == 1 { "one stretch".into() } else { format!("{count} stretches") };
        let each = if count == 1 { " was" } else { " each were" };
        text = format!(
            "Of {} {stretches} of {}{each} run; the rest is taken to go alike.",
            span(whole),
            span(run / count as f64)
        );
    }
    if forecast.hours_shorter > 1.05 {
        text.push_str(&format!(
            "{}The hours of the day were run {} times faster than they pass.",
            if text.is_empty() { "" } else { " " },
            three_digits(forecast.hours_shorter)
        ));
    }
    if forecast.coarseness > 1.05 {
        let coarse = three_digits(forecast.coarseness);
        text.push_str(&format!(
            "{}Tables were taken to be {coarse} times as large as they are, so that there are \
             fewer: how long single moments of slowing last is a guess.",
            if text.is_empty() { "" } else { " " }
        ));
    }
    (!text.is_empty()).then_some(text)
}
