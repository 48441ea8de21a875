//! The comparison of two runs as text.

use super::compare::{Basis, Change, Comparison, INTERVALS, Limits, RANKS, REPEATS, Verdict};
use super::read::Run;
use super::table::plain_table;
use super::terminal::wrapped;
use crate::units::three_digits;
use comfy_table::CellAlignment;
use std::fmt::Write;

/// A comparison as a table of what changed, and sentences on what the tests could see.
pub fn text(
    before: &Run,
    after: &Run,
    comparison: &Comparison,
    limits: Limits,
    all: bool,
) -> String {
    let mut text = format!("{} (first) against {} (later)\n", before.name, after.name);
    for remark in &comparison.remarks {
        let _ = writeln!(text, "{}", wrapped(&format!("note: {remark}")));
    }
    let shown: Vec<&Change> = comparison
        .changes
        .iter()
        .filter(|c| all || matches!(c.verdict, Verdict::Regressed | Verdict::Improved))
        .collect();
    if !shown.is_empty() {
        let _ = write!(text, "\n{}\n", table(&shown));
    }
    let _ = write!(text, "\n{}", summary(comparison, limits));
    text
}

fn table(changes: &[&Change]) -> String {
    let header = [
        "step",
        "engine",
        "figure",
        "first",
        "later",
        "ratio",
        "P(later>first)",
        "p",
        "corrected",
        "tested over",
        "verdict",
    ];
    let mut table = plain_table(&header);
    for left in [0, 1, 2, 9, 10] {
        if let Some(column) = table.column_mut(left) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    for change in changes {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), three_digits);
        table.add_row([
            step(change, changes),
            match change.setting.as_str() {
                "" => change.engine.clone(),
                setting => format!("{}.{setting}", change.engine),
            },
            change.figure.clone(),
            change.shown(change.before.median),
            change.shown(change.after.median),
            number(change.ratio),
            match change.basis {
                // Of few repeats it says next to nothing.
                Basis::Ranks | Basis::Repeats => format!("{:.2}", change.superiority),
                _ => "-".to_owned(),
            },
            probability(change.p),
            probability(change.p_corrected),
            basis(change),
            verdict(change.verdict).to_owned(),
        ]);
    }
    table.trim_fmt()
}

/// The step; with its clients if there are several numbers of them.
fn step(change: &Change, all: &[&Change]) -> String {
    let other = |other: &&&Change| {
        (&other.workload, &other.step) == (&change.workload, &change.step)
            && other.clients != change.clients
    };
    match all.iter().find(other) {
        Some(_) => format!("{} {} ({} clients)", change.workload, change.step, change.clients),
        None => format!("{} {}", change.workload, change.step),
    }
}

/// A percentage that was set, as it was set.
fn percent(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn probability(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p < 0.001 => "<.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

fn basis(change: &Change) -> String {
    let (a, b) = (change.before.count, change.after.count);
    match change.basis {
        Basis::Ranks => format!("ranks of {a} and {b}"),
        Basis::Repeats => format!("means of {a} and {b}"),
        Basis::Intervals => format!("intervals of {a} and {b}"),
        Basis::None => format!("{a} and {b}: too few"),
    }
}

/// A verdict in words.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regressed => "regressed",
        Verdict::Improved => "improved",
        Verdict::NoEvidence => "no evidence",
        Verdict::TooFew => "too few",
    }
}

fn summary(comparison: &Comparison, limits: Limits) -> String {
    let count = |verdict| comparison.count(verdict);
    let mut texts = vec![
        format!(
            "{} figures: {} regressed, {} improved, {} without evidence of a change, {} with too \
             few repeats and intervals to test.",
            comparison.changes.len(),
            count(Verdict::Regressed),
            count(Verdict::Improved),
            count(Verdict::NoEvidence),
            count(Verdict::TooFew)
        ),
        format!(
            "Of those called changed, at most {} in 100 are expected to be chance; a change of \
             less than {} % is none.",
            percent(limits.alpha),
            percent(limits.least)
        ),
    ];
    let by = |basis| comparison.changes.iter().filter(move |change| change.basis == basis);
    let needed = comparison.repeats_for_one(limits.alpha);
    let most = by(Basis::Ranks).map(|change| change.before.count.min(change.after.count)).max();
    if let Some(most) = most.filter(|&most| most < needed) {
        texts.push(format!(
            "By the ranks of {most} repeats a change of one figure alone cannot be told from \
             chance among so many tests, however large; {needed} repeats could."
        ));
    }
    match by(Basis::Repeats).count() {
        0 => {}
        means => texts.push(format!(
            "{means} figures were tested by the means of their repeats, which takes them to be \
             normally distributed; {RANKS} repeats or more are tested by their ranks, which does \
             not."
        )),
    }
    match by(Basis::Intervals).count() {
        0 => {}
        intervals => texts.push(format!(
            "{intervals} figures were tested over the intervals of few repeats: that tells whether \
             these very runs differ, not whether the next ones will. {REPEATS} repeats or more \
             tell it."
        )),
    }
    if count(Verdict::TooFew) > 0 {
        texts.push(format!(
            "Too few: below {REPEATS} repeats on one side, and below {INTERVALS} intervals or not \
             known of intervals; `shale bench ... --repeats {REPEATS}` gives enough."
        ));
    }
    texts.iter().map(|text| wrapped(text) + "\n").collect()
}
