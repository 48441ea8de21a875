//! The comparison of two runs as text.

use super::compare::{Basis, Change, Comparison, Limits, Verdict};
use super::plain_table;
use super::read::Run;
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
        let _ = writeln!(text, "note: {remark}");
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
            format!("{} {} ({})", change.workload, change.step, change.clients),
            match change.setting.as_str() {
                "" => change.engine.clone(),
                setting => format!("{}.{setting}", change.engine),
            },
            change.figure.clone(),
            change.shown(change.before.median),
            change.shown(change.after.median),
            number(change.ratio),
            format!("{:.2}", change.superiority),
            probability(change.p),
            probability(change.p_corrected),
            basis(change),
            verdict(change.verdict).to_owned(),
        ]);
    }
    table.trim_fmt()
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
        Basis::Repeats => format!("{a} and {b} repeats"),
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
    let mut text = format!(
        "{} figures: {} regressed, {} improved, {} without evidence of a change, {} with too few \
         repeats and intervals to test.\n",
        comparison.changes.len(),
        count(Verdict::Regressed),
        count(Verdict::Improved),
        count(Verdict::NoEvidence),
        count(Verdict::TooFew)
    );
    let tested =
        |basis| comparison.changes.iter().filter(|c| c.basis == basis && c.p.is_some()).count();
    let (repeats, intervals) = (tested(Basis::Repeats), tested(Basis::Intervals));
    let _ = writeln!(
        text,
        "Of those called changed, at most {} in 100 are expected to be chance; a change of less \
         than {} % is none.",
        three_digits(100.0 * limits.alpha),
        three_digits(100.0 * limits.least)
    );
    let needed = comparison.repeats_for_one(limits.alpha);
    if repeats > 0 {
        let most = comparison
            .changes
            .iter()
            .filter(|change| change.basis == Basis::Repeats)
            .map(|change| change.before.count.min(change.after.count))
            .max()
            .unwrap_or(0);
        if most < needed {
            let _ = writeln!(
                text,
                "With {most} repeats a change of one figure alone cannot be told from chance among \
                 {} tests, however large; {needed} repeats could.",
                repeats + intervals
            );
        }
    }
    if intervals > 0 {
        let _ = writeln!(
            text,
            "{intervals} figures were tested over the intervals of few repeats: that tells whether \
             these very runs differ, not whether the next ones will. Four repeats or more tell it."
        );
    }
    text
}
