use super::*;
use crate::base::config::Codec;
use crate::base::config::{Codecs, LEVELS};
use crate::compaction::check;
use crate::compaction::picker;
use crate::compaction::plan::{Busy, Settings, Shape, Space};
use crate::compaction::policy::chosen::Choice;
use crate::compaction::room::{at_most, needed, of_largest};
use crate::table::meta::{FileId, Why};
use std::sync::Arc;

const TABLE: u64 = 1 << 20;

fn table(id: FileId, keys: (u8, u8), bytes: u64, seq: u64) -> Arc<TableMeta> {
    Arc::new(TableMeta {
        id,
        file_bytes: bytes,
        data_bytes: bytes,
        raw_bytes: 3 * bytes,
        entries: 1000,
        smallest: vec![keys.0],
        largest: vec![keys.1],
        min_seq: seq,
        max_seq: seq,
        codec: Some(Codec::Zstd(1)),
        ..TableMeta::default()
    })
}

fn settings() -> Settings {
    Settings {
        memtable_bytes: TABLE,
        table_bytes: TABLE,
        codecs: Codecs::all(Codec::Zstd(1)).into(),
        filter_bits: 10,
        building: false,
    }
}

fn pick_in(shape: &Shape, space: Space, snapshots: &[u64]) -> Option<Plan> {
    let load = Load { space, snapshots, ..Load::default() };
    let busy = Busy::new();
    let plan = picker::pick(shape, &settings(), &busy, &load);
    if let Some(plan) = &plan {
        check::plan(shape, &busy, plan);
    }
    plan
}

const SHORT: Space = Space {
    room: u64::MAX - 1,
    level0_merge: 4 * TABLE,
    is_tight: true,
    is_short: true,
    is_unpromised: true,
};

/// Three tables in the last level, one above each of two of them, and one in level 0.
fn shape(last: u64) -> Shape {
    let mut levels = vec![Vec::new(); LEVELS];
    levels[LAST] =
        (0..3).map(|at| table(10 + u64::from(at), (10 * at, 10 * at + 9), last, 0)).collect();
    levels[LAST - 1] = vec![table(20, (0, 9), TABLE / 16, 5), table(21, (20, 29), TABLE / 16, 6)];
    levels[0] = vec![table(30, (0, 29), TABLE / 32, 9)];
    Shape { levels }
}

#[test]
fn near_the_limit_all_goes_down_that_may_hide_something() {
    let mut shape = shape(20 * TABLE);
    let usual = pick_in(&shape, Space::default(), &[100]);
    assert!(usual.is_none(), "nothing is due: {usual:?}");
    let first = pick_in(&shape, SHORT, &[100]).unwrap();
    assert_eq!((first.reason, first.inputs[0].0), (Reason::Space, LAST - 1), "which has the most");
    assert_eq!(first.output_level, LAST);
    shape.levels[LAST - 1].clear();
    let second = pick_in(&shape, SHORT, &[100]).unwrap();
    assert_eq!((second.reason, second.inputs[0].0), (Reason::Space, 0));
    shape.levels[0].clear();
    assert!(pick_in(&shape, SHORT, &[100]).is_none(), "nothing hides anything");
    // Written for a snapshot, which has ended now.
    shape.levels[LAST][1] = table(40, (10, 19), 20 * TABLE, 7);
    let third = pick_in(&shape, SHORT, &[100]).unwrap();
    assert_eq!(third.inputs, [(LAST, vec![40])]);
    assert!(pick_in(&shape, SHORT, &[6, 100]).is_none(), "it may still be read");
}

#[test]
fn near_the_limit_what_is_compressed_lightly_is_compressed_well() {
    let pick = |set: Codec, chosen: Choice, has: Codec, why: Why| {
        let mut shape = Shape { levels: vec![Vec::new(); LEVELS] };
        let bare = TableMeta { codec: Some(has), why, ..(*table(10, (0, 9), TABLE, 0)).clone() };
        let zstd = TableMeta { codec: Some(Codec::Zstd(3)), ..bare.clone() };
        shape.levels[LAST] = vec![Arc::new(bare), table(11, (10, 19), TABLE, 0)];
        shape.levels[LAST][1] = Arc::new(TableMeta { id: 11, smallest: vec![10], ..zstd });
        let mut settings = Settings { codecs: Codecs::all(set).into(), ..settings() };
        settings.codecs.chosen.0[LAST] = Some(chosen);
        let pick = |space| {
            let load = Load { space, ..Load::default() };
            picker::pick(&shape, &settings, &Busy::new(), &load)
        };
        // What one has replaced may be kept for readers, and then takes what others need.
        assert_eq!(pick(Space { is_unpromised: false, ..SHORT }), None);
        pick(SHORT)
    };
    let choice = |codec, why| Choice { codec, dictionary: true, why };
    let light = choice(Codec::None, Why::CpuShort);
    for has in [Codec::None, Codec::Lz4, Codec::Zstd(-3)] {
        let plan = pick(Codec::Auto, light, has, Why::CpuShort).unwrap();
        assert_eq!((plan.reason, plan.inputs), (Reason::Space, vec![(LAST, vec![10])]));
        assert_eq!((plan.choice.codec, plan.choice.why), (Codec::Zstd(3), Why::StorageShort));
    }
    assert_eq!(pick(Codec::Auto, light, Codec::Zstd(1), Why::CpuShort), None);
    let plain = choice(Codec::None, Why::Plain);
    assert_eq!(pick(Codec::Auto, plain, Codec::None, Why::CpuShort), None, "no codec saves");
    assert_eq!(pick(Codec::Auto, light, Codec::None, Why::Plain), None, "nor of this table");
    assert_eq!(pick(Codec::None, light, Codec::None, Why::Set), None, "it is set");
}

#[test]
fn what_does_not_fit_is_made_smaller_or_not_begun() {
    let mut shape = shape(TABLE);
    shape.levels[LAST - 1].clear();
    shape.levels[0] = (0..8).map(|at| table(40 - at, (0, 29), TABLE, 40 - at)).collect();
    let in_room = |room| pick_in(&shape, Space { room, ..SHORT }, &[100]);
    let inputs = |plan: Plan| plan.inputs[0].1.len();
    // The last level is so small that its tables are, too: two of a quarter, and the largest.
    let needed = |above: u64| at_most(above * TABLE + TABLE + TABLE / 2);
    assert_eq!(in_room(u64::MAX - 1).map(inputs), Some(8));
    assert_eq!(in_room(needed(8)).map(inputs), Some(8));
    assert_eq!(in_room(needed(8) - 1).map(inputs), Some(7), "all but the newest");
    assert_eq!(in_room(needed(1)).map(inputs), Some(1));
    assert_eq!(in_room(needed(1) - 1), None);
    // So much is kept back that any goes down.
    assert_eq!(of_largest(&shape, &settings()), needed(1));
}

#[test]
fn level_0_goes_down_while_there_is_room_for_all_of_it() {
    let mut shape = shape(TABLE);
    shape.levels[LAST - 1].clear();
    let tables =
        |count: u64| (0..count).map(|at| table(40 - at, (0, 29), TABLE, 40 - at)).collect();
    let in_room = |shape: &Shape, room| {
        pick_in(shape, Space { room, is_short: false, ..SHORT }, &[100]).map(|plan| plan.reason)
    };
    let needed = |above: u64| at_most(above * TABLE + TABLE + TABLE / 2);
    shape.levels[0] = tables(4);
    // By its size it would go down as well, for another reason.
    assert_eq!(in_room(&shape, needed(4) + 3 * TABLE), Some(Reason::Level0));
    assert_eq!(in_room(&shape, needed(4) + 3 * TABLE - 1), Some(Reason::Space));
    shape.levels[0] = tables(3);
    assert_eq!(in_room(&shape, needed(3)), None, "that little is not worth it");
}

#[test]
fn level_0_makes_no_table_that_could_not_go_down() {
    let mut shape = shape(TABLE);
    shape.levels[0] = (0..8).map(|at| table(40 - at, (0, 29), TABLE, 40 - at)).collect();
    shape.levels[LAST - 1].clear();
    let input_bytes = |level0_merge| {
        let space = Space { room: 20 * TABLE, level0_merge, ..Space::default() };
        let targets = super::super::score::Targets::of(&shape, &settings());
        let busy = Busy::new();
        let settings = settings();
        let input =
            PickInput { shape: &shape, settings: &settings, busy: &busy, targets: &targets, space };
        super::super::level0::merge_all_level0(&input, Reason::Idle).map(|plan| plan.input_bytes)
    };
    assert_eq!(input_bytes(8 * TABLE), Some(8 * TABLE));
    assert_eq!(input_bytes(8 * TABLE - 1), None);
}

#[test]
fn a_merge_needs_room_for_what_comes_from_above_and_a_stage() {
    let (a, b) = (table(1, (0, 9), 5 * TABLE, 9), table(2, (0, 9), 100 * TABLE, 0));
    let many: Vec<_> = (0..40).map(|at| table(10 + u64::from(at), (at, at), TABLE, 0)).collect();
    let zstd = Codec::Zstd(1);
    let tables = |count: u64| at_most(count * TABLE);
    let need = |inputs: &[(usize, &[Arc<TableMeta>])], output, codec| {
        let to = Choice { codec, dictionary: true, why: Why::CpuFree };
        needed(inputs, output, TABLE, to)
    };
    let one = std::slice::from_ref(&a);
    assert_eq!(need(&[(0, one)], 6, zstd), tables(5));
    assert_eq!(need(&[(0, one), (6, &many)], 6, zstd), tables(5 + 2 + 1));
    assert_eq!(need(&[(0, one), (6, &many[..2])], 6, zstd), tables(5 + 2));
    assert_eq!(need(&[(0, one), (6, std::slice::from_ref(&b))], 6, zstd), tables(5 + 100));
    assert_eq!(need(&[(0, &many)], 0, zstd), tables(40), "level 0's tables stay to the end");
    // What a lighter codec makes of it.
    assert_eq!(need(&[(0, one)], 6, Codec::Lz4), tables(10));
    assert_eq!(need(&[(0, one)], 6, Codec::None), tables(15));
}
