//! A stage waits for all of its parts; what came from above waits for all of its stages.

use super::*;
use crate::compaction::plan::{Action, Reason};
use crate::compaction::policy::chosen::Choice;
use crate::compaction::range::KeyRange;
use crate::table::Why;

fn table(id: FileId, smallest: &str, largest: &str) -> Arc<TableMeta> {
    let (smallest, largest) = (smallest.into(), largest.into());
    Arc::new(TableMeta { id, smallest, largest, ..TableMeta::default() })
}

fn stages(output_level: usize, inputs: &[(usize, Arc<TableMeta>)], cuts: &str) -> Stages {
    let plan = Plan {
        reason: Reason::Size,
        action: Action::Merge,
        inputs: inputs.iter().map(|(level, table)| (*level, vec![table.id])).collect(),
        output_level,
        is_last: true,
        range: KeyRange::hull(inputs.iter().map(|(_, table)| table)).unwrap(),
        input_bytes: 0,
        output_level_bytes: 0,
        grandparents: Vec::new(),
        below: Vec::new(),
        choice: Choice { codec: crate::Codec::None, dictionary: true, why: Why::Set },
        filter_bits: 0,
        building: false,
        table_bytes: 1,
    };
    let mut parts = Vec::new();
    let mut start: Option<Vec<u8>> = None;
    for key in cuts.split_whitespace() {
        parts.push(Part { start: start.take(), end: Some(key.into()) });
        start = Some(key.into());
    }
    parts.push(Part { start, end: None });
    Stages::new(&plan, &parts, inputs.to_vec())
}

/// Does a part and installs what it completes.
fn done(stages: &mut Stages, part: usize) -> Option<Stage> {
    let stage = stages.done(part)?;
    stages.installed(&stage);
    Some(stage)
}

fn stage(parts: Range<usize>, removed: &[(usize, FileId)], is_last: bool) -> Option<Stage> {
    Some(Stage { parts, removed: removed.to_vec(), is_last })
}

fn lower() -> [(usize, Arc<TableMeta>); 3] {
    [(6, table(10, "b", "f")), (6, table(11, "h", "l")), (6, table(12, "n", "x"))]
}

#[test]
fn level_0_leaves_last() {
    let [a, b, c] = lower();
    let inputs = [(0, table(2, "a", "z")), (0, table(1, "c", "d")), a, b, c];
    let mut stages = stages(6, &inputs, "h j n");
    assert_eq!(stages.count(), 3);
    assert_eq!(done(&mut stages, 3), stage(3..4, &[(6, 12)], false));
    assert_eq!(done(&mut stages, 1), None);
    assert_eq!(done(&mut stages, 0), stage(0..1, &[(6, 10)], false));
    assert_eq!(stages.rest(), [(0, 2), (0, 1), (6, 11)]);
    assert_eq!(done(&mut stages, 2), stage(1..3, &[(0, 2), (0, 1), (6, 11)], true));
    assert!(stages.rest().is_empty());
}

#[test]
fn tables_from_a_level_leave_with_the_last_stage_they_reach_into() {
    let [a, b, c] = lower();
    let inputs = [(5, table(1, "a", "c")), (5, table(2, "d", "m")), a, b, c];
    let mut stages = stages(6, &inputs, "h n");
    assert_eq!(done(&mut stages, 0), stage(0..1, &[(5, 1), (6, 10)], false));
    assert_eq!(done(&mut stages, 2), stage(2..3, &[(6, 12)], false));
    assert_eq!(done(&mut stages, 1), stage(1..2, &[(5, 2), (6, 11)], true));
}

#[test]
fn of_two_levels_above_the_upper_one_waits() {
    let [a, b, c] = lower();
    let inputs = [(4, table(1, "a", "c")), (5, table(2, "a", "d")), a, b, c];
    let mut stages = stages(6, &inputs, "h");
    assert_eq!(done(&mut stages, 0), stage(0..1, &[(5, 2), (6, 10)], false));
    assert_eq!(done(&mut stages, 1), stage(1..2, &[(4, 1), (6, 11), (6, 12)], true));
}

#[test]
fn stages_installed_at_the_same_time_leave_a_rest() {
    let [a, b, c] = lower();
    let mut stages = stages(6, &[(0, table(1, "a", "z")), a, b, c], "h");
    let (left, right) = (stages.done(0).unwrap(), stages.done(1).unwrap());
    assert!(!left.is_last && !right.is_last);
    stages.installed(&right);
    stages.installed(&left);
    assert_eq!(stages.rest(), [(0, 1)]);
}

#[test]
fn what_frees_nothing_early_is_one_stage() {
    let [a, b, _] = lower();
    let upper = (0, table(1, "a", "z"));
    assert_eq!(stages(6, &[upper.clone(), (5, table(2, "a", "d"))], "c h").count(), 1);
    assert_eq!(stages(0, &[upper.clone(), (0, table(2, "a", "d"))], "c h").count(), 1);
    assert_eq!(stages(6, &[upper, a, b], "c h").count(), 2);
}
