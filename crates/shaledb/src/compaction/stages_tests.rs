//! A stage waits for all of its parts; what came from above waits for all of its stages.

use super::*;
use crate::compaction::plan::{Action, Reason};
use crate::compaction::policy::chosen::Choice;
use crate::compaction::range::KeyRange;
use crate::table::Why;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

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
        block_bytes: None,
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
fn what_two_stages_left_behind_leaves_with_one_of_the_next_two() {
    let [a, b, c] = lower();
    let inputs = [(5, table(1, "a", "k")), a, b, c, (6, table(13, "y", "z"))];
    let mut stages = stages(6, &inputs, "h n y");
    let (first, second) = (stages.done(0).unwrap(), stages.done(1).unwrap());
    assert_eq!((&first.removed, &second.removed), (&vec![(6, 10)], &vec![(6, 11)]));
    stages.installed(&first);
    stages.installed(&second);
    let (third, fourth) = (stages.done(2).unwrap(), stages.done(3).unwrap());
    stages.installed(&fourth);
    stages.installed(&third);
    let mut removed = [third.removed, fourth.removed, stages.rest()].concat();
    removed.sort_unstable();
    assert_eq!(removed, [(5, 1), (6, 12), (6, 13)]);
}

#[test]
fn what_frees_nothing_early_is_one_stage() {
    let [a, b, _] = lower();
    let upper = (0, table(1, "a", "z"));
    assert_eq!(stages(6, &[upper.clone(), (5, table(2, "a", "d"))], "c h").count(), 1);
    assert_eq!(stages(0, &[upper.clone(), (0, table(2, "a", "d"))], "c h").count(), 1);
    assert_eq!(stages(6, &[upper, a, b], "c h").count(), 2);
}

/// A letter of the alphabet as a key.
fn key(at: u8) -> String {
    char::from(b'a' + at).to_string()
}

/// Tables in order that do not overlap, with numbers from `first` on.
fn level_of(rng: &mut Pcg64Mcg, level: usize, first: FileId) -> Vec<(usize, Arc<TableMeta>)> {
    let mut tables = Vec::new();
    let mut at = rng.random_range(0..6);
    while at < 24 {
        let end = at + rng.random_range(0..8).min(24 - at);
        tables.push((level, table(first + tables.len() as u64, &key(at), &key(end))));
        at = end + rng.random_range(1..5);
    }
    tables
}

/// No input leaves twice, or before its keys are below, or before what it hides.
#[test]
fn in_whatever_order_stages_are_installed_each_input_leaves_once_and_hides_what_it_should() {
    for seed in 0..4000u128 {
        let mut rng = Pcg64Mcg::new(seed << 1 | 1);
        let mut inputs = vec![(0, table(1, "c", "v"))];
        inputs.truncate(rng.random_range(0..2));
        inputs.extend((4..=6).flat_map(|level| level_of(&mut rng, level, level as u64 * 100)));
        if inputs.is_empty() {
            continue;
        }
        let cuts: Vec<String> = (1..24).filter(|_| rng.random_ratio(1, 4)).map(key).collect();
        let mut stages = stages(6, &inputs, &cuts.join(" "));
        let mut parts: Vec<usize> = (0..=cuts.len()).collect();
        let (mut here, mut under_way) = (inputs.clone(), Vec::new());
        let mut below = Vec::new();
        while !parts.is_empty() || !under_way.is_empty() {
            if under_way.len() < 3 && !parts.is_empty() && rng.random_ratio(2, 3) {
                let part = parts.remove(rng.random_range(0..parts.len().min(3)));
                under_way.extend(stages.done(part));
                continue;
            }
            if under_way.is_empty() {
                continue;
            }
            let stage: Stage = under_way.remove(rng.random_range(0..under_way.len()));
            let before = here.len();
            here.retain(|(level, table)| !stage.removed.contains(&(*level, table.id)));
            assert_eq!(here.len() + stage.removed.len(), before, "seed {seed}: leaves once");
            stages.installed(&stage);
            below.extend(stage.parts.clone());
            let left = |(level, table): &&(usize, Arc<TableMeta>)| {
                !here.iter().any(|other| other.0 == *level && other.1.id == table.id)
            };
            for (level, table) in inputs.iter().filter(left) {
                let is_below = |part: usize| below.contains(&part);
                let met = (0..stages.parts.len()).filter(|part| stages.parts[*part].meets(table));
                assert!(met.clone().all(is_below), "seed {seed}: {level} {table:?} is below");
                let hidden = here.iter().find(|(other, deeper)| {
                    other > level
                        && !deeper.is_before(&table.smallest)
                        && deeper.smallest <= table.largest
                });
                assert_eq!(hidden, None, "seed {seed}: {level} {table:?} hides it");
            }
        }
        assert!(stages.are_installed());
        let rest = stages.rest();
        here.retain(|(level, table)| !rest.contains(&(*level, table.id)));
        assert!(here.is_empty() && rest.iter().all(|(level, _)| *level < 6), "seed {seed}");
    }
}
