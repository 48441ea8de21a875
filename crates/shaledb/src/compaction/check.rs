//! The invariants of shapes and plans, for the tests of this module.

use super::plan::{Action, Busy, Plan, Shape};
use super::policy::LAST;
use super::range::{KeyRange, overlapping};
use crate::table::meta::TableMeta;
use std::sync::Arc;

/// Fails unless the levels are in order and, below 0, disjoint.
pub(crate) fn shape(shape: &Shape) {
    assert!(shape.levels[0].is_sorted_by_key(|table| table.age()), "level 0 by age");
    for (level, tables) in shape.levels.iter().enumerate().skip(1) {
        for pair in tables.windows(2) {
            assert!(pair[0].is_before(&pair[1].smallest), "level {level} is disjoint: {pair:?}");
        }
    }
}

/// Fails unless the plan keeps its promises in this shape and beside what runs.
pub(crate) fn plan(shape: &Shape, busy: &Busy, plan: &Plan) {
    let mut inputs: Vec<(usize, &Arc<TableMeta>)> = Vec::new();
    for (level, ids) in &plan.inputs {
        assert!(!ids.is_empty());
        for id in ids {
            let table = shape.levels[*level].iter().find(|table| table.id == *id);
            inputs.push((*level, table.expect("an input is a table of its level")));
        }
    }
    assert!(plan.inputs.is_sorted_by(|a, b| a.0 < b.0));
    assert!(!inputs.is_empty());
    let is_input = |table: &TableMeta| inputs.iter().any(|(_, input)| input.id == table.id);
    for (_, table) in &inputs {
        assert!(!busy.has(table), "an input is free");
        assert!(plan.range.spans(table), "the range spans the inputs");
    }
    let bytes: u64 = inputs.iter().map(|(_, table)| table.file_bytes).sum();
    assert_eq!(bytes, plan.input_bytes);
    if plan.action == Action::DropFiles {
        return;
    }
    for (level, table) in &inputs {
        assert!(*level <= plan.output_level);
        leaves_nothing_older(shape, plan, *level, table, &is_input);
    }
    assert!(!busy.writes(plan.output_level, &plan.range), "no other job writes there");
    if plan.output_level == 0 {
        let taken: Vec<bool> = shape.levels[0].iter().map(|table| is_input(table)).collect();
        let changes = taken.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 2 && (changes < 2 || !taken[0]), "neighbours in age");
        return;
    }
    let tables = &shape.levels[plan.output_level];
    assert!(tables[overlapping(tables, &plan.range)].iter().all(|table| is_input(table)));
    let clear = |level: usize| overlapping(&shape.levels[level], &plan.range).is_empty();
    assert_eq!(plan.is_last, (plan.output_level + 1..=LAST).all(clear));
    if plan.action == Action::Move {
        assert!(inputs.iter().all(|(level, _)| *level < plan.output_level));
    }
}

/// Fails if data older than the table, with keys in common, stays above the output.
fn leaves_nothing_older(
    shape: &Shape,
    plan: &Plan,
    level: usize,
    table: &TableMeta,
    is_input: &dyn Fn(&TableMeta) -> bool,
) {
    if level == 0 && plan.output_level > 0 {
        let at = shape.levels[0].iter().position(|other| other.id == table.id).unwrap();
        let mut older = shape.levels[0][at + 1..].iter();
        assert!(older.all(|older| !older.overlaps(table) || is_input(older)), "older ones go too");
    }
    for between in level + 1..plan.output_level {
        let tables = &shape.levels[between];
        let found = &tables[overlapping(tables, &KeyRange::of(table))];
        assert!(found.iter().all(|table| is_input(table)), "nothing is passed");
    }
}
