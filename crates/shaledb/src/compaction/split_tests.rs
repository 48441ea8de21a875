//! Cuts of work are even and meet at keys; cuts of output follow the level below.

use super::*;
use crate::compaction::plan::{Action, Reason};
use crate::compaction::policy::chosen::Choice;
use crate::compaction::range::KeyRange;
use crate::table::Why;

const MIB: u64 = 1 << 20;

fn table(smallest: &str, largest: &str, mib: u64) -> TableMeta {
    TableMeta {
        file_bytes: mib * MIB,
        smallest: smallest.into(),
        largest: largest.into(),
        ..TableMeta::default()
    }
}

fn keys(text: &str) -> Vec<Vec<u8>> {
    text.split_whitespace().map(|key| key.as_bytes().to_vec()).collect()
}

/// The keys at which the work is cut.
fn cuts(parts: &[Part]) -> String {
    let ends: Vec<String> = parts
        .iter()
        .filter_map(|part| part.end.as_ref())
        .map(|end| String::from_utf8_lossy(end).into_owned())
        .collect();
    ends.join(" ")
}

#[test]
fn parts_are_even() {
    let (wide, narrow) = (table("a", "z", 80), table("a", "c", 80));
    let wide = Cuts { table: &wide, keys: keys("d g j m p s v") };
    let narrow = Cuts { table: &narrow, keys: keys("aa b bb") };
    assert_eq!(cuts(&parts(std::slice::from_ref(&wide), &[], 16 * MIB)), "g m s");
    assert_eq!(cuts(&parts(&[wide.clone(), narrow], &[], 64 * MIB)), "c");
    // No part ends where none can begin.
    let (empty, rest) = (table("", "", 20), table("a", "z", 40));
    let (empty, rest) =
        (Cuts { table: &empty, keys: keys("") }, Cuts { table: &rest, keys: keys("g m s") });
    assert_eq!(cuts(&parts(&[empty, rest], &[], 8 * MIB)), "g m s");
    // Too little work is not worth cutting.
    assert_eq!(parts(&[wide], &[], 80 * MIB), [Part::default()]);
    assert_eq!(parts(&[], &[], 80 * MIB), [Part::default()]);
}

#[test]
fn parts_begin_where_tables_do() {
    let upper = table("a", "z", 80);
    let upper = Cuts { table: &upper, keys: keys("c e g i k m o q s") };
    let lower = [table("b", "f", 2), table("h", "l", 2), table("n", "x", 2)];
    let mut tables = vec![upper];
    tables.extend(lower.iter().map(|table| Cuts { table, keys: Vec::new() }));
    let at = |bytes| cuts(&parts(&tables, &[b"b", b"h", b"n"], bytes * MIB));
    assert_eq!(at(30), "h n");
    assert_eq!(at(45), "n");
    // A cut is not put off for ever.
    assert_eq!(at(16), "g m s");
    assert_eq!(at(1000), "");
}

#[test]
fn parts_of_one_key_are_one() {
    let one = table("k", "k", 100);
    let cut = Cuts { table: &one, keys: keys("k k k") };
    let parts = parts(&[cut.clone(), cut], &[b"k"], MIB);
    assert_eq!(parts, [Part::default()]);
}

#[test]
fn parts_that_share_a_table_are_one_group() {
    let lower: Vec<Arc<TableMeta>> =
        [("b", "f"), ("h", "l"), ("n", "x")].map(|(a, b)| Arc::new(table(a, b, 1))).to_vec();
    let groups = |text: &str| {
        let mut parts = Vec::new();
        let mut start = None;
        for key in keys(text) {
            parts.push(Part { start: start.take(), end: Some(key.clone()) });
            start = Some(key);
        }
        parts.push(Part { start, end: None });
        super::groups(&parts, &lower)
    };
    assert_eq!(groups("h n"), [0, 1, 2]);
    assert_eq!(groups("a g h l n"), [0, 1, 2, 3, 3, 4]);
    assert_eq!(groups("c d z"), [0, 0, 0, 1]);
    assert_eq!(groups(""), [0]);
}

/// The keys of one MiB each at which tables begin.
fn outputs(bytes: u64, grandparents: &[(&str, &str, u64)], input: &str) -> String {
    outputs_of_part(bytes, grandparents, None, input)
}

fn outputs_of_part(
    bytes: u64,
    grandparents: &[(&str, &str, u64)],
    start: Option<&str>,
    input: &str,
) -> String {
    let tables = grandparents.iter().map(|(a, b, mib)| Arc::new(table(a, b, *mib))).collect();
    let mut cut = OutputCut::with(bytes * MIB, tables, start.map(str::as_bytes));
    let (mut bytes, mut begins) = (0, Vec::new());
    for key in input.split_whitespace() {
        if cut.before(key.as_bytes(), bytes) {
            begins.push(key);
            bytes = 0;
        }
        bytes += MIB;
    }
    begins.join(" ")
}

#[test]
fn outputs_are_cut_by_size_and_by_what_lies_below() {
    let input = "a b c d e f g h i j k l m n";
    assert_eq!(outputs(4, &[], input), "e i m");
    // A table of seven of eight, when a table below ends there.
    let below = [("a", "c", 1), ("d", "g", 1), ("h", "z", 1)];
    assert_eq!(outputs(8, &below, "a b c d e f g h i j k l m n o p q"), "h p");
    // Tables below that are much too large for a table above.
    assert_eq!(outputs(4, &[("a", "b", 90), ("c", "c", 90), ("d", "z", 1)], input), "c d h l");
}

#[test]
fn a_part_does_not_pass_what_lies_below_the_parts_before_it() {
    let below = [("a", "b", 90), ("c", "d", 90), ("e", "i", 1), ("j", "z", 1)];
    assert_eq!(outputs_of_part(4, &below, Some("f"), "f g h i j k l m n"), "j n");
    // The first key of a part may lie behind its start.
    assert_eq!(outputs_of_part(4, &below, Some("e"), "k l m n o p"), "o");
    assert_eq!(outputs_of_part(4, &below, Some("a"), "c d e f g h"), "e");
}

#[test]
fn parts_in_little_room_begin_where_output_tables_do() {
    let tables: Vec<Arc<TableMeta>> = (0..7u8)
        .map(|at| {
            let (smallest, largest) = (vec![10 * at], vec![10 * at + 9]);
            let file_bytes = if at == 3 { 25 } else { 10 };
            Arc::new(TableMeta { smallest, largest, file_bytes, ..TableMeta::default() })
        })
        .collect();
    let starts = |bytes| -> Vec<Option<Vec<u8>>> {
        let parts = by_tables(&tables, bytes, &|table| table.file_bytes);
        // No table reaches into two: each part is a group of its own.
        assert_eq!(groups(&parts, &tables), (0..parts.len()).collect::<Vec<_>>());
        parts.into_iter().map(|part| part.start).collect()
    };
    assert_eq!(starts(20), [None, Some(vec![20]), Some(vec![40]), Some(vec![60])]);
    assert_eq!(starts(1).len(), 7);
    assert_eq!(starts(1000), [None]);
    assert_eq!(by_tables(&[], 10, &|_| 0), [Part::default()]);
}

/// Whatever threads are free, what is merged in level 0 becomes one table; what goes down is shared.
#[test]
fn a_merge_in_level_0_is_not_shared() {
    let tables = [table("a", "z", 100), table("a", "z", 100)];
    let inputs: Vec<(usize, &TableMeta)> = tables.iter().map(|table| (0, table)).collect();
    let mut plan = Plan {
        reason: Reason::Level0Merge,
        action: Action::Merge,
        inputs: vec![(0, vec![0, 1])],
        output_level: 0,
        is_last: false,
        range: KeyRange::of(&tables[0]),
        input_bytes: 200 * MIB,
        output_level_bytes: 0,
        grandparents: Vec::new(),
        below: Vec::new(),
        choice: Choice { codec: crate::Codec::None, dictionary: false, why: Why::Set },
        block_bytes: None,
        filter_bits: 0,
        building: false,
        table_bytes: u64::MAX,
    };
    let points = |_: usize, _: u64| Ok::<_, ()>(keys("d g j m p s v"));
    for free in 1..9 {
        plan.output_level = 0;
        assert_eq!(for_threads(&plan, &inputs, free, points), Ok(vec![Part::default()]));
        plan.output_level = 6;
        let parts = for_threads(&plan, &inputs, free, points).unwrap();
        assert_eq!(parts.len() > 1, free > 1, "{parts:?}");
    }
}
