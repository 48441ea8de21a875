//! Sentences on what explains a result, drawn from measured figures and from nothing else: each
//! rule names its figures, and is silent when they do not support it.
//!
//! A figure that goes along with a difference need not be its cause; so a sentence puts figures
//! side by side and claims no more.

use super::columns::{is_whole, unit};
use super::figure::{Figure, short};
use super::fold::{Fold, Step};
use crate::run::row::Row;
use crate::units::{bytes, count, three_digits};

/// A writer counts as stalled in an interval from this share of it on.
const STALLED_SHARE: f64 = 0.05;

/// Of fewer intervals is not said in how many something happened.
const FEW: usize = 5;

/// An interval is a dip if its rate is below this share of the median.
const DIP: f64 = 0.5;

/// Rates that differ by less are not spoken of.
const NEAR: f64 = 0.1;

/// Shares of fewer CPU seconds are not spoken of.
const ENOUGH_CPU: f64 = 0.5;

/// A rule on the repeats of one engine.
type Alone = fn(&Fold<'_>) -> Option<String>;

const ALONE: [Alone; 8] =
    [writer_behind, stalls, dips, background_cpu, codecs, memory, space, client_cost];

/// All sentences on a step.
pub fn explain(step: &Step<'_>, base: &str) -> Vec<String> {
    let name = |fold: &Fold<'_>| step.name_of(fold);
    let mut sentences = Vec::new();
    for fold in &step.folds {
        let Some(base) = step.base(base, fold).filter(|other| other.label() != fold.label()) else {
            continue;
        };
        sentences.extend(against(fold, base).map(|text| format!("{} {text}", name(fold))));
    }
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for fold in &step.folds {
        for text in ALONE.iter().filter_map(|rule| rule(fold)) {
            // What is the same of several engines is said once.
            match said.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(name(fold)),
                None => said.push((text, vec![name(fold)])),
            }
        }
    }
    sentences.extend(said.iter().map(|(text, names)| format!("{}: {text}", names.join(", "))));
    sentences
}

/// Rates that differ by more than their repeats do, and the figures that differ with them.
fn against(fold: &Fold<'_>, base: &Fold<'_>) -> Option<String> {
    let (own, other) = (fold.spread(&Figure::Rate)?, base.spread(&Figure::Rate)?);
    if other.median <= 0.0 || own.median <= 0.0 {
        return None;
    }
    let ratio = own.median / other.median;
    let apart = own.low > other.high || own.high < other.low;
    if !apart || (1.0 - NEAR..1.0 + NEAR).contains(&ratio) {
        return None;
    }
    let slower = ratio < 1.0;
    let unit = unit(fold.first());
    let mut found = Vec::new();
    let per_op = [
        (Figure::Reads, "reads of the device", "", 1.3),
        (Figure::ReadKb, "read from storage", " KB", 1.3),
        (Figure::WrittenKb, "written to storage", " KB", 1.3),
        (Figure::Cpu, "CPU", " us", 1.15),
    ];
    for (figure, what, suffix, least) in per_op {
        let read = |fold: &Fold<'_>| fold.median(&Figure::ReadKb).unwrap_or(0.0);
        if figure == Figure::Reads && read(fold).max(read(base)) < 0.01 {
            // Then the device read for somebody else.
            continue;
        }
        // Only what points the same way as the rate can belong to it.
        found.extend(more(fold, base, &figure, slower, least).map(|(own, other)| {
            format!("{what} {}{suffix} against {}{suffix} per {unit}", short(own), short(other))
        }));
    }
    found.extend(stall_difference(fold, base, slower));
    found.extend(background_difference(fold, base, slower));
    found.extend(hardware_difference(fold, base, slower, unit));
    if found.is_empty() {
        return None;
    }
    let (base, found) = (base.label(), found.join("; "));
    Some(match is_whole(fold.first()) {
        true => {
            let times = three_digits(1.0 / ratio);
            format!("took {times} times as long as {base}; beside that: {found}")
        }
        false => {
            let share = three_digits(ratio);
            format!("did {share} of the rate of {base}; beside that: {found}")
        }
    })
}

/// Both medians, if the slower one's is `least` times the other's or more.
fn more(
    fold: &Fold<'_>,
    base: &Fold<'_>,
    figure: &Figure,
    slower: bool,
    least: f64,
) -> Option<(f64, f64)> {
    let (own, other) = (fold.median(figure)?, base.median(figure)?);
    let (high, low) = if slower { (own, other) } else { (other, own) };
    (high > low * least && high > 0.01).then_some((own, other))
}

fn stall_difference(fold: &Fold<'_>, base: &Fold<'_>, slower: bool) -> Option<String> {
    let (own, other) = (fold.median(&Figure::Stall)?, base.median(&Figure::Stall)?);
    let difference = if slower { own - other } else { other - own };
    (difference >= 5.0).then(|| {
        format!("writers stalled for {} % of the time against {} %", short(own), short(other))
    })
}

/// The share of CPU that flush and compaction took.
fn background_share(row: &Row) -> Option<f64> {
    let seconds = row.cpu.background_seconds?;
    (row.cpu.seconds >= ENOUGH_CPU).then(|| 100.0 * seconds / row.cpu.seconds)
}

fn median_of(fold: &Fold<'_>, of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = fold.rows.iter().filter_map(|row| of(row)).collect();
    super::fold::Spread::of(&values).map(|spread| spread.median)
}

fn background_difference(fold: &Fold<'_>, base: &Fold<'_>, slower: bool) -> Option<String> {
    let (own, other) = (median_of(fold, background_share)?, median_of(base, background_share)?);
    let difference = if slower { own - other } else { other - own };
    (difference >= 10.0).then(|| {
        format!(
            "{own:.0} % of its CPU went to flush and compaction (compression included) against \
             {other:.0} %"
        )
    })
}

fn hardware_difference(
    fold: &Fold<'_>,
    base: &Fold<'_>,
    slower: bool,
    unit: &str,
) -> Option<String> {
    let misses = |row: &Row| row.hardware.map(|hardware| hardware.cache_misses_per_op);
    let (own, other) = (median_of(fold, misses)?, median_of(base, misses)?);
    let (high, low) = if slower { (own, other) } else { (other, own) };
    (high > 1.3 * low && high >= 1.0)
        .then(|| format!("cache misses {} against {} per {unit}", short(own), short(other)))
}

fn writer_behind(fold: &Fold<'_>) -> Option<String> {
    let missed = fold.rows.iter().filter_map(|row| row.writer.as_ref()).filter(|w| !w.held);
    let worst = missed.clone().min_by(|a, b| a.rate.total_cmp(&b.rate))?;
    let repeats = match fold.rows.len() {
        1 => String::new(),
        all => format!(" (in {} of {all} repeats)", missed.count()),
    };
    Some(format!(
        "the writer did not hold its rate: {}/s of {}/s{repeats}; what ran beside it had less to \
         bear than elsewhere",
        count(worst.rate.round()),
        count(worst.wanted.round())
    ))
}

/// How long an interval was.
fn lengths(row: &Row) -> impl Iterator<Item = f64> + '_ {
    let mut last = 0.0;
    row.intervals.iter().map(move |interval| {
        let length = interval.at - last;
        last = interval.at;
        length
    })
}

fn stalls(fold: &Fold<'_>) -> Option<String> {
    let row = fold.typical();
    let stalled = row
        .intervals
        .iter()
        .zip(lengths(row))
        .filter(|(interval, length)| interval.stall_seconds > STALLED_SHARE * length)
        .count();
    if stalled == 0 || row.intervals.len() < FEW {
        return None;
    }
    let of = if fold.rows.len() > 1 { " of the repeat in the middle" } else { "" };
    Some(format!(
        "writers were stalled in {stalled} of {} intervals{of}; the worst interval did {}/s, half \
         of them {}/s or more",
        row.intervals.len(),
        count(row.rates.worst.round()),
        count(row.rates.p50.round())
    ))
}

/// Rates that fell though the engine counts no stall.
fn dips(fold: &Fold<'_>) -> Option<String> {
    let row = fold.typical();
    if stalls(fold).is_some() || row.intervals.len() < 10 {
        return None;
    }
    let low = row.intervals.iter().filter(|interval| interval.rate < DIP * row.rates.p50).count();
    // In a quarter or more it is the course of the step, not a dip.
    if low == 0 || 4 * low >= row.intervals.len() {
        return None;
    }
    Some(format!(
        "the rate fell below half of its median in {low} of {} intervals (worst {}/s, median \
         {}/s); the engine counts no stall there",
        row.intervals.len(),
        count(row.rates.worst.round()),
        count(row.rates.p50.round())
    ))
}

fn background_cpu(fold: &Fold<'_>) -> Option<String> {
    let share = median_of(fold, background_share)?;
    (share >= 30.0).then(|| {
        format!(
            "{share:.0} % of the CPU ({} s of {} s) went to flush and compaction, compression \
             included",
            short(median_of(fold, |row| row.cpu.background_seconds).unwrap_or(0.0)),
            short(median_of(fold, |row| Some(row.cpu.seconds)).unwrap_or(0.0))
        )
    })
}

/// The CPU of codecs, of engines that tell it.
fn codecs(fold: &Fold<'_>) -> Option<String> {
    let of = |end: &'static str| {
        move |row: &Row| {
            let seconds = &row.cpu.engine_seconds;
            let all = seconds.iter().filter(|(name, _)| name.ends_with(end));
            (row.cpu.seconds >= ENOUGH_CPU)
                .then(|| 100.0 * all.map(|(_, s)| s).sum::<f64>() / row.cpu.seconds)
        }
    };
    let (into, out) = (median_of(fold, of("_compress"))?, median_of(fold, of("_decompress"))?);
    (into + out >= 15.0).then(|| {
        format!("{into:.0} % of the CPU went to compressing and {out:.0} % to decompressing")
    })
}

/// Whether the data fit in memory, of steps that read.
fn memory(fold: &Fold<'_>) -> Option<String> {
    let row = fold.first();
    let reads = row.counted.read_bytes > 0 && row.counted.read_bytes >= row.counted.user_bytes;
    let size = fold.median(&Figure::Size)?;
    let peak = fold.median(&Figure::Peak).filter(|&peak| peak > 0.0)?;
    let read_kb = fold.median(&Figure::ReadKb)?;
    if !reads {
        return None;
    }
    let (size_text, peak_text) = (bytes(size as u64), bytes(peak as u64));
    if let Some(bound) = row.memory_bound.filter(|&bound| size > bound as f64) {
        return Some(format!(
            "did not fit in memory: {size_text} on disk, bounded to {} of memory and page cache; \
             it read {} KB per {} from storage",
            bytes(bound),
            short(read_kb),
            unit(row)
        ));
    }
    if size > peak && read_kb >= 0.1 {
        return Some(format!(
            "did not fit in memory: {size_text} on disk, at most {peak_text} resident; it read {} \
             KB per {} from storage",
            short(read_kb),
            unit(row)
        ));
    }
    let nothing = "read nothing from storage: all was in its memory or in the page cache";
    (read_kb < 0.001).then(|| nothing.to_owned())
}

/// Size against what the data take by themselves.
fn space(fold: &Fold<'_>) -> Option<String> {
    if let Some(predicted) = fold.median(&Figure::Extra("predicted_size_bytes")) {
        let size = fold.median(&Figure::Size)?;
        return (predicted > 0.0).then(|| {
            format!(
                "its size, {}, is {} times what was predicted of the compressed rows",
                bytes(size as u64),
                three_digits(size / predicted)
            )
        });
    }
    let amp = fold.median(&Figure::SpaceAmp).filter(|&amp| amp > 1.2)?;
    Some(format!(
        "its size, {}, is {} times its live data before compression",
        bytes(fold.median(&Figure::Size)? as u64),
        three_digits(amp)
    ))
}

/// The client must be cheap, or the engines look more alike than they are.
fn client_cost(fold: &Fold<'_>) -> Option<String> {
    let (client, engine) = (fold.median(&Figure::Client)?, fold.median(&Figure::Cpu)?);
    let unit = unit(fold.first());
    (client > 0.25 * (client + engine)).then(|| {
        format!(
            "of the CPU per {unit}, {} us were the client's own and {} us the engine's: rates \
             differ less than the engines do",
            short(client),
            short(engine)
        )
    })
}
