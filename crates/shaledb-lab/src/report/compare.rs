//! Two runs against each other: which figures of which steps changed, and whether the repeats or
//! the intervals are evidence of it. docs/results.md says what the tests can tell and what not.

use super::figure::{Better, Figure, Percentile};
use super::fold::{Fold, Remarks, Spread, Step};
use super::stats::{Ratios, block_bootstrap, corrected, least_p, mann_whitney, superiority, welch};
use crate::run::row::{Interval, Row};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// From so many repeats on both sides, the repeats are tested.
pub const REPEATS: usize = 3;

/// From so many on, by their ranks; of fewer, the ranks cannot have a p that survives the
/// correction for as many tests as a comparison has.
pub const RANKS: usize = 8;

/// From so many intervals on both sides, they are tested if there are few repeats. Of fewer the
/// test cannot tell how much neighbours have in common.
pub const INTERVALS: usize = 60;

/// A kind of operation is tested if it is at least this share of all.
const FREQUENT: f64 = 0.05;

/// When a difference counts.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The share of wrong findings among all that is put up with.
    pub alpha: f64,
    /// A smaller change than this share is none.
    pub least: f64,
}

/// What the evidence is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The rank test over repeats.
    Ranks,
    /// Welch's test over repeats.
    Repeats,
    /// The block bootstrap over intervals: it knows nothing of how far repeats lie apart.
    Intervals,
    /// There is too little of both.
    None,
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is worse.
    Regressed,
    /// It is better.
    Improved,
    /// It was tested, and there is no evidence of a change that counts.
    #[serde(rename = "no evidence")]
    NoEvidence,
    /// There are too few repeats and intervals to test it.
    #[serde(rename = "too few")]
    TooFew,
}

/// One figure of a step on an engine, in two runs.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The workload.
    pub workload: String,
    /// The step.
    pub step: String,
    /// Client threads.
    pub clients: u64,
    /// The engine.
    pub engine: String,
    /// Its setting.
    pub setting: String,
    /// The figure's name.
    pub figure: String,
    /// Which way is better.
    pub better: Better,
    /// In the first run.
    pub before: Spread,
    /// In the later one.
    pub after: Spread,
    /// The later median / the first one's; of intervals, of the means over all of them.
    pub ratio: Option<f64>,
    /// The probability that a repeat of the later run is higher than one of the first.
    pub superiority: f64,
    /// What was tested.
    pub basis: Basis,
    /// How likely a difference like this is by chance, if nothing changed.
    pub p: Option<f64>,
    /// The same, corrected for how many figures were tested.
    pub p_corrected: Option<f64>,
    /// What became of it.
    pub verdict: Verdict,
    #[serde(skip)]
    show: Option<Figure>,
}

impl Change {
    /// A value as a table shows it.
    pub fn shown(&self, value: f64) -> String {
        self.show.as_ref().map_or_else(|| value.to_string(), |figure| figure.show(value))
    }
}

/// All changes from one run to a later one.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Every figure that both runs have.
    pub changes: Vec<Change>,
    /// Steps and engines that only one of the runs has, and versions or parameters that differ.
    pub remarks: Vec<String>,
}

impl Comparison {
    /// How many figures have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }

    /// How many repeats on either side it would take so that a single figure, changed in all of
    /// them, could be found among as many as were tested.
    pub fn repeats_for_one(&self, alpha: f64) -> usize {
        let tested = self.changes.iter().filter(|change| change.p.is_some()).count().max(1);
        (RANKS..64).find(|&n| least_p(n, n) * tested as f64 <= alpha).unwrap_or(64)
    }
}

/// Compares two runs.
pub fn compare(before: &[Step<'_>], after: &[Step<'_>], limits: Limits) -> Comparison {
    let mut comparison = Comparison::default();
    let mut remarks = Remarks::default();
    for step in after {
        let earlier = before.iter().find(|other| other.is_same(step));
        for fold in &step.folds {
            let first = fold.first();
            match earlier.and_then(|step| step.find(&fold.label(), first.clients)) {
                Some(earlier) => {
                    let source = format!("{} on {}", step.title(), fold.label());
                    for text in differences(earlier.first(), first) {
                        remarks.add(text, source.clone());
                    }
                    comparison.changes.extend(changes(step, earlier, fold));
                }
                None => comparison.remarks.push(only(step, fold, "later")),
            }
        }
    }
    let everywhere = after.iter().map(|step| step.folds.len()).sum();
    comparison.remarks.splice(0..0, remarks.texts(everywhere));
    for step in before {
        let later = after.iter().find(|other| other.is_same(step));
        for fold in &step.folds {
            if later.and_then(|s| s.find(&fold.label(), fold.first().clients)).is_none() {
                comparison.remarks.push(only(step, fold, "first"));
            }
        }
    }
    let ps: Vec<f64> = comparison.changes.iter().filter_map(|change| change.p).collect();
    let mut corrected = corrected(&ps).into_iter();
    for change in comparison.changes.iter_mut().filter(|change| change.p.is_some()) {
        change.p_corrected = corrected.next();
        change.verdict = verdict(change, limits);
    }
    comparison
}

fn only(step: &Step<'_>, fold: &Fold<'_>, which: &str) -> String {
    format!(
        "{} on {} ({} clients) is in the {which} run only",
        step.title(),
        fold.label(),
        fold.first().clients
    )
}

/// What makes two runs of a step incomparable, or explains a difference.
fn differences(before: &Row, after: &Row) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut differ = |what: &str, a: &str, b: &str| {
        if a != b {
            remarks.push(format!("{what} was {a}, is {b}"));
        }
    };
    let engine = &after.engine;
    differ(&format!("version of {engine}"), &before.version, &after.version);
    for (name, value) in &after.configuration {
        if let Some((_, other)) = before.configuration.iter().find(|(other, _)| other == name) {
            differ(&format!("{name} of {engine}"), other, value);
        }
    }
    parameters("", &before.parameters, &after.parameters, &mut differ);
    remarks
}

/// The parameters that differ, each by its path.
fn parameters(at: &str, a: &Value, b: &Value, differ: &mut impl FnMut(&str, &str, &str)) {
    let (Value::Object(first), Value::Object(later)) = (a, b) else {
        return differ(&format!("the parameter {at}"), &a.to_string(), &b.to_string());
    };
    let names: BTreeSet<&String> = first.keys().chain(later.keys()).collect();
    for name in names {
        let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        parameters(&at, &a[name], &b[name], differ);
    }
}

/// The figures that are tested.
fn figures(before: &Fold<'_>, after: &Fold<'_>) -> Vec<Figure> {
    let mut figures = vec![Figure::Rate];
    let all: u64 = after.first().latency_us.values().map(|latency| latency.count).sum();
    for kind in after.kinds() {
        let count = after.first().latency_us[kind].count;
        if before.first().latency_us.contains_key(kind) && count as f64 >= FREQUENT * all as f64 {
            figures.push(Figure::Percentile(Percentile::P99, kind.to_owned()));
        }
    }
    figures.extend([Figure::Cpu, Figure::ReadKb, Figure::WrittenKb, Figure::Size, Figure::Peak]);
    figures
}

fn changes(step: &Step<'_>, before: &Fold<'_>, after: &Fold<'_>) -> Vec<Change> {
    let one = |figure: Figure| {
        let (a, b) = (before.spread(&figure)?, after.spread(&figure)?);
        let better = figure.better()?;
        if a.high == 0.0 && b.high == 0.0 {
            return None;
        }
        let values = |fold: &Fold<'_>| -> Vec<f64> {
            fold.rows.iter().filter_map(|row| figure.of(row)).collect()
        };
        let (values_a, values_b) = (values(before), values(after));
        let mut change = Change {
            workload: step.workload.to_owned(),
            step: step.step.to_owned(),
            clients: after.first().clients,
            engine: after.first().engine.clone(),
            setting: after.first().setting.clone(),
            figure: figure.name(),
            better,
            before: a,
            after: b,
            ratio: (a.median > 0.0).then(|| b.median / a.median),
            superiority: superiority(&values_a, &values_b),
            basis: Basis::None,
            p: None,
            p_corrected: None,
            verdict: Verdict::TooFew,
            show: None,
        };
        let repeats = a.count.min(b.count);
        let means = || welch(&values_a, &values_b).filter(|_| repeats >= REPEATS);
        if repeats >= RANKS {
            change.basis = Basis::Ranks;
            change.p = Some(mann_whitney(&values_a, &values_b));
        } else if let Some(p) = means() {
            change.basis = Basis::Repeats;
            change.p = Some(p);
        } else if let Some((a, b)) = series(before, &figure).zip(series(after, &figure))
            && let Some(found) = block_bootstrap(&a, &b)
        {
            change.basis = Basis::Intervals;
            change.p = Some(found.p);
            change.ratio = Some(found.ratio);
        }
        change.show = Some(figure);
        Some(change)
    };
    figures(before, after).into_iter().filter_map(one).collect()
}

/// The intervals of each repeat as amounts and weights, if the figure has them and they are enough.
fn series(fold: &Fold<'_>, figure: &Figure) -> Option<Vec<Ratios>> {
    let of: fn(&Interval, f64) -> (f64, f64) = match figure {
        Figure::Rate => |interval, length| (interval.rate * length, length),
        Figure::Cpu => |interval, length| (interval.cpu * length, interval.rate * length),
        Figure::ReadKb => |interval, length| (interval.read_bytes as f64, interval.rate * length),
        Figure::WrittenKb => {
            |interval, length| (interval.written_bytes as f64, interval.rate * length)
        }
        _ => return None,
    };
    let one = |row: &&Row| -> Ratios {
        let mut last = 0.0;
        row.intervals
            .iter()
            .map(|interval| {
                let length = interval.at - last;
                last = interval.at;
                of(interval, length)
            })
            .collect()
    };
    let all: Vec<Ratios> = fold.rows.iter().map(one).collect();
    (all.iter().map(Vec::len).sum::<usize>() >= INTERVALS).then_some(all)
}

fn verdict(change: &Change, limits: Limits) -> Verdict {
    let small = change.ratio.is_some_and(|ratio| (ratio - 1.0).abs() < limits.least);
    if small || change.p_corrected.is_none_or(|p| p > limits.alpha) {
        return Verdict::NoEvidence;
    }
    let higher = match change.ratio {
        Some(ratio) => ratio > 1.0,
        None => change.superiority > 0.5,
    };
    if higher == (change.better == Better::Higher) { Verdict::Improved } else { Verdict::Regressed }
}
