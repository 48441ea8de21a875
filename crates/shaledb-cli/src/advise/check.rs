//! `--check`: everything is loaded under three of the choices, and what it took stands beside what
//! was predicted.

use super::build::{Built, Load, Parts, Workshop};
use super::choice::Choice;
use super::everything::Everything;
use super::predict::{Predicted, Prediction, keys};
use super::recommend::{Picked, percent};
use super::sample::{Row, Sample};
use crate::exit::Outcome;
use serde::Serialize;

/// How many choices are loaded.
const CHOICES: usize = 3;

/// What counts as right, beside the bound on the size (the aim that the command was built to).
const CPU_BOUND: f64 = 0.20;
const WRITE_AMP_BOUND: f64 = 0.10;

/// Predicted, measured, and by what part of the predicted one that is off, as the bounds are: above
/// 0 where too much was predicted.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Compared {
    pub(super) predicted: f64,
    pub(super) measured: f64,
    pub(super) error: f64,
}

impl Compared {
    pub(super) fn new(predicted: f64, measured: f64) -> Compared {
        // What was not measured is not off.
        let error = match (predicted == 0.0, measured == 0.0) {
            (_, true) => 0.0,
            (true, false) => -1.0,
            (false, false) => 1.0 - measured / predicted,
        };
        Compared { predicted, measured, error }
    }
}

/// One choice that was loaded.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Checked {
    #[serde(flatten)]
    pub(super) choice: Choice,
    pub(super) size_bytes: Compared,
    pub(super) size_bound: f64,
    pub(super) load_cpu_seconds: Compared,
    pub(super) get_us: Compared,
    pub(super) cached_get_us: Compared,
    pub(super) write_amp: Option<Compared>,
    /// Rows that were loaded.
    pub(super) rows: u64,
}

/// The recommended choice and two others: the smallest and the cheapest, if they are others.
fn chosen(predicted: &Predicted, picked: Picked) -> Vec<&Prediction> {
    let picked = [picked.recommended, picked.smallest, picked.cheapest];
    let mut numbers: Vec<usize> = Vec::new();
    // Further ones stand apart in the list, so that they differ much.
    let spread = [0, predicted.choices.len() / 2, predicted.choices.len() - 1];
    for number in picked.into_iter().chain(spread).chain(0..predicted.choices.len()) {
        if numbers.len() < CHOICES && !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers.into_iter().map(|number| &predicted.choices[number]).collect()
}

/// Loads everything under each of them.
pub(super) fn check(
    everything: &Everything,
    predicted: &Predicted,
    picked: Picked,
    sample: &Sample,
    workshop: &Workshop,
) -> Outcome<(Vec<Checked>, Vec<String>)> {
    let mut checked = Vec::new();
    let mut words = Vec::new();
    let parts = Parts { memory_bytes: predicted.memory_bytes, ..Parts::default() };
    let mut direct = predicted.direct;
    for prediction in chosen(predicted, picked) {
        let choice = prediction.choice;
        let keys = keys(sample, choice.block_bytes);
        let load = |direct| load(everything, choice, parts, direct, &keys, workshop);
        let built = match load(direct)? {
            Some(built) => built,
            None => {
                direct = false;
                words.push(
                    "The keys do not ascend everywhere, as the sample seemed to show: the load \
                     went through log, memtables and merges instead."
                        .to_owned(),
                );
                match load(false)? {
                    Some(built) => built,
                    None => continue,
                }
            }
        };
        checked.push(Checked {
            choice,
            size_bytes: Compared::new(prediction.size_bytes, built.stored as f64),
            size_bound: prediction.size_bound,
            load_cpu_seconds: Compared::new(prediction.load_cpu_seconds, built.cpu_seconds),
            get_us: Compared::new(prediction.get_us, built.get_us),
            cached_get_us: Compared::new(prediction.cached_get_us, built.cached_get_us),
            write_amp: prediction.write_amp.map(|amp| Compared::new(amp, built.write_amp)),
            rows: built.rows,
        });
    }
    words.extend(verdicts(&checked));
    Ok((checked, words))
}

/// In words, what was outside of its bound.
fn verdicts(checked: &[Checked]) -> Vec<String> {
    let mut words = Vec::new();
    for one in checked {
        let cpu = ("CPU to load", Some(one.load_cpu_seconds), CPU_BOUND);
        let amp = ("write amplification", one.write_amp, WRITE_AMP_BOUND);
        for (what, compared, bound) in [("size", Some(one.size_bytes), one.size_bound), cpu, amp] {
            let Some(compared) = compared else { continue };
            if compared.error.abs() > bound {
                let than = if compared.error < 0.0 { "more" } else { "less" };
                words.push(format!(
                    "Outside of the bound: {what} of {} is {} {than} than was predicted; the \
                     bound is {}.",
                    one.choice.label(),
                    percent(compared.error.abs()),
                    percent(bound)
                ));
            }
        }
    }
    if words.is_empty() {
        let amp = match checked.iter().all(|one| one.write_amp.is_some()) {
            true => ", write amplification within 10 %.",
            false => ". Write amplification was not predicted, so it was not compared.",
        };
        words.push(format!(
            "All within the bounds: sizes within their own, CPU to load within 20 %{amp}"
        ));
    }
    words
}

/// Loads everything; `None` if the rows do not ascend, as `direct` asks for.
fn load(
    everything: &Everything,
    choice: Choice,
    parts: Parts,
    direct: bool,
    keys: &[&[u8]],
    workshop: &Workshop,
) -> Outcome<Option<Built>> {
    let load = Load { choice, parts, direct, merged: true };
    let mut last: Vec<u8> = Vec::new();
    let mut ascends = true;
    let mut is_first = true;
    let mut feed = everything.feed()?;
    // Looked at here, so that the engine need not refuse a row.
    let mut look = |chunk: &mut Vec<Row>| {
        let more = feed(chunk)?;
        for (key, _) in chunk.iter() {
            ascends &= is_first || *key > last;
            is_first = false;
            last.clone_from(key);
        }
        Ok(more && (ascends || !direct))
    };
    let built = workshop.load(load, &mut look, keys)?;
    Ok((ascends || !direct).then_some(built))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_names_what_was_compared() {
        let right = Compared::new(1.0, 1.0);
        let mut one = Checked {
            choice: Choice::all(&[shaledb::Codec::Lz4], &[16 << 10])[0],
            size_bytes: right,
            size_bound: 0.02,
            load_cpu_seconds: right,
            get_us: right,
            cached_get_us: right,
            write_amp: Some(right),
            rows: 1,
        };
        assert!(verdicts(std::slice::from_ref(&one))[0].ends_with("amplification within 10 %."));
        one.write_amp = None;
        assert!(verdicts(std::slice::from_ref(&one))[0].ends_with("was not compared."));
        // Of what was predicted, in the column as in the sentence and for the verdict.
        one.size_bytes = Compared::new(1.0, 1.25);
        assert_eq!(one.size_bytes.error, -0.25);
        let words = verdicts(std::slice::from_ref(&one));
        let said = "Outside of the bound: size of lz4 16K is 25.0 % more than was predicted";
        assert!(words[0].starts_with(said), "{words:?}");
        one.size_bound = 0.26;
        assert!(verdicts(&[one])[0].starts_with("All within"));
    }
}
