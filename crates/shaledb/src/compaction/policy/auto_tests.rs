//! Choices as tables: what the data is like and what is going on, and the codec of each level.

use super::super::candidates::USUAL;
use super::*;
use crate::base::config::Codec;
use std::fmt::Write;

const CORES: f64 = 2.0;

/// Data that none of the candidates makes smaller.
fn random() -> Costs {
    let mut costs = USUAL;
    costs.0.iter_mut().for_each(|cost| cost.ratio = 1.0);
    costs
}

/// Documents: zstd saves much more than lz4, and its higher levels some more.
fn json() -> Costs {
    let mut costs = USUAL;
    for (cost, ratio) in
        costs.0.iter_mut().zip([1.0, 0.3, 0.24, 0.2, 0.19, 0.18, 0.175, 0.2, 0.19, 0.18])
    {
        cost.ratio = ratio;
    }
    costs
}

/// Data of which a dictionary saves an eighth, for half as much CPU again.
fn alike() -> Costs {
    let mut costs = json();
    costs.0[7..].iter_mut().for_each(|cost| cost.ratio *= 0.875);
    costs
}

/// A tree that is written at `user` MB a second, as a load spreads over its levels, and of whose
/// last level and level 4 so many MB are read.
fn tree(costs: Costs, user: f64, read_last: f64, read_upper: f64) -> TreeLoad {
    let mut levels = [LevelLoad::default(); LEVELS];
    for (level, times) in [(0, 1.0), (4, 1.5), (5, 2.0), (6, 2.5)] {
        levels[level].written = times * user * 1e6;
    }
    levels[6].read = read_last * 1e6;
    levels[4].read = read_upper * 1e6;
    TreeLoad { costs: [Some(costs); LEVELS], levels, chosen: Chosen::default() }
}

/// A quiet machine with storage that costs next to nothing.
fn quiet() -> Window {
    Window {
        cores: CORES,
        threads: 2.0,
        busy: 0.1,
        waiting: 0.0,
        background_cpu: 0.1,
        users_cpu: 0.05,
        dilation: 1.0,
        storage_nanos: 0.9,
        storage_cpu_nanos: 0.8,
        user_read_nanos: 0.4,
        slowed: 0.0,
        at_rest: false,
    }
}

fn pressed() -> Window {
    Window { busy: 1.8, background_cpu: 1.7, users_cpu: 0.3, slowed: 0.05, ..quiet() }
}

fn show(window: &Window, tree: &TreeLoad) -> String {
    let price = price(window, &Price::default(), std::slice::from_ref(tree));
    let chosen = choose(&price, tree);
    let mut text = format!("{:?} {}:", price.short, price.worth);
    for level in [0, 4, 5, 6] {
        let choice = chosen.0[level].unwrap();
        let with = if choice.dictionary { "+d" } else { "" };
        let _ = write!(text, " {}{with}", choice.codec);
    }
    let _ = write!(text, " ({:?})", chosen.0[6].unwrap().why);
    text
}

#[test]
fn what_is_short_decides() {
    let contended = Window { dilation: 2.0, users_cpu: 0.5, background_cpu: 0.5, ..pressed() };
    let contended = Window { busy: 1.0, slowed: 0.0, ..contended };
    let by_reads = Window { users_cpu: 1.0, background_cpu: 0.1, busy: 0.2, ..contended };
    let slow_storage =
        Window { busy: 1.9, background_cpu: 0.3, waiting: 1.5, storage_nanos: 50.0, ..pressed() };
    let slow_load = Window { dilation: 2.0, busy: 0.3, ..quiet() };
    let cases = [
        ("nothing", quiet(), tree(USUAL, 10.0, 0.0, 0.0)),
        ("nothing, cores shared", slow_load, tree(USUAL, 10.0, 0.0, 0.0)),
        ("at rest", Window { at_rest: true, ..pressed() }, tree(USUAL, 100.0, 0.0, 0.0)),
        ("nothing, upper levels read", quiet(), tree(USUAL, 10.0, 5.0, 900.0)),
        ("CPU: behind", pressed(), tree(USUAL, 100.0, 0.0, 0.0)),
        ("CPU: threads wait for cores", contended, tree(USUAL, 60.0, 50.0, 0.0)),
        ("CPU: reads", by_reads, tree(USUAL, 5.0, 900.0, 100.0)),
        ("storage", slow_storage, tree(USUAL, 20.0, 0.0, 0.0)),
        ("nothing, json", quiet(), tree(json(), 10.0, 0.0, 0.0)),
        ("CPU, json", pressed(), tree(json(), 100.0, 0.0, 0.0)),
        ("storage, json", slow_storage, tree(json(), 20.0, 0.0, 0.0)),
        ("nothing, alike", quiet(), tree(alike(), 10.0, 0.0, 0.0)),
        ("CPU, alike", pressed(), tree(alike(), 100.0, 0.0, 0.0)),
        ("CPU: reads, alike", by_reads, tree(alike(), 5.0, 900.0, 100.0)),
        ("storage, alike", slow_storage, tree(alike(), 20.0, 0.0, 0.0)),
        ("nothing, random", quiet(), tree(random(), 10.0, 0.0, 0.0)),
        ("storage, random", slow_storage, tree(random(), 20.0, 0.0, 0.0)),
    ];
    let found: Vec<String> = cases
        .iter()
        .map(|(name, window, tree)| format!("{name}: {}", show(window, tree)))
        .collect();
    // What is short and what a byte is worth; the codecs of levels 0, 4, 5 and 6, and why the last.
    let expected = "\
nothing: Nothing 512: zstd:1 zstd:1 zstd:1 zstd:1 (CpuFree)
nothing, cores shared: Nothing 512: zstd:1 zstd:1 zstd:1 zstd:1 (CpuFree)
at rest: Nothing 128: zstd:1 zstd:1 zstd:1 zstd:1 (CpuFree)
nothing, upper levels read: Nothing 512: zstd:1 lz4 zstd:1 zstd:1 (CpuFree)
CPU: behind: CpuForWrites 8: lz4 lz4 lz4 lz4 (CpuShort)
CPU: threads wait for cores: CpuForWrites 0: none none none none (CpuShort)
CPU: reads: Cpu 128: zstd:1 lz4 zstd:1 zstd:1 (CpuShort)
storage: Storage 512: zstd:1 zstd:1 zstd:1 zstd:1 (StorageShort)
nothing, json: Nothing 512: zstd:6 zstd:6 zstd:6 zstd:6 (CpuFree)
CPU, json: CpuForWrites 8: lz4 lz4 lz4 lz4 (CpuShort)
storage, json: Storage 32: zstd:1 zstd:1 zstd:1 zstd:3 (StorageShort)
nothing, alike: Nothing 256: zstd:3+d zstd:3+d zstd:3+d zstd:3+d (CpuFree)
CPU, alike: CpuForWrites 8: lz4 lz4 lz4 lz4 (CpuShort)
CPU: reads, alike: Cpu 32: zstd:1 lz4 zstd:1 zstd:1+d (CpuShort)
storage, alike: Storage 64: zstd:1+d zstd:1+d zstd:1+d zstd:1+d (StorageShort)
nothing, random: Nothing 512: none none none none (Plain)
storage, random: Storage 512: none none none none (Plain)";
    assert_eq!(found.join("\n"), expected);
}

/// What is chosen when the same goes on for so many looks, after what was so before.
fn repeated(window: &Window, before: &mut Price, tree: &mut TreeLoad, looks: usize) -> Codec {
    for _ in 0..looks {
        *before = price(window, before, std::slice::from_ref(tree));
        tree.chosen = choose(before, tree);
    }
    tree.chosen.0[6].unwrap().codec
}

#[test]
fn a_bottleneck_that_changes_changes_the_choice_at_once() {
    let (mut before, mut tree) = (Price::default(), tree(USUAL, 10.0, 0.0, 0.0));
    assert_eq!(repeated(&quiet(), &mut before, &mut tree, 1), Codec::Zstd(1));
    assert_eq!(repeated(&pressed(), &mut before, &mut tree, 1), Codec::Lz4);
    assert_eq!(repeated(&quiet(), &mut before, &mut tree, 1), Codec::Zstd(1));
}

#[test]
fn a_load_between_the_limits_does_not_flap() {
    let (mut before, mut tree) = (Price::default(), tree(USUAL, 40.0, 0.0, 0.0));
    // Busier than more compressing is chosen for, not busy enough to count as pressed.
    let between = Window { busy: 1.4, background_cpu: 1.3, ..quiet() };
    let first = repeated(&between, &mut before, &mut tree, 1);
    for _ in 0..20 {
        assert_eq!(repeated(&between, &mut before, &mut tree, 1), first);
    }
    repeated(&pressed(), &mut before, &mut tree, 1);
    let after = repeated(&between, &mut before, &mut tree, 1);
    for look in 0..20 {
        assert_eq!(repeated(&between, &mut before, &mut tree, 1), after, "look {look}");
    }
}

#[test]
fn a_little_better_is_no_reason_to_change() {
    let mut close = USUAL;
    close.0[4].compress = close.0[3].compress * 1.05;
    let mut tree = tree(close, 10.0, 0.0, 0.0);
    let chosen = Choice { codec: Codec::Zstd(3), dictionary: false, why: Why::CpuFree };
    tree.chosen.0[6] = Some(chosen);
    let price = price(&quiet(), &Price::default(), std::slice::from_ref(&tree));
    assert_eq!(choose(&price, &tree).0[6].unwrap().codec, Codec::Zstd(3));
    tree.chosen.0[6] = None;
    assert_eq!(choose(&price, &tree).0[6].unwrap().codec, Codec::Zstd(1));
}

#[test]
fn a_level_that_comes_to_be_read_often_changes_its_codec() {
    let mut tree = tree(USUAL, 10.0, 0.0, 0.0);
    let mut before = Price::default();
    repeated(&quiet(), &mut before, &mut tree, 1);
    assert_eq!(tree.chosen.0[4].unwrap().codec, Codec::Zstd(1));
    tree.levels[4].read = 900e6;
    repeated(&quiet(), &mut before, &mut tree, 1);
    assert_eq!(
        tree.chosen.0[4].unwrap(),
        Choice { codec: Codec::Lz4, dictionary: false, why: Why::Read }
    );
}

#[test]
fn the_last_level_keeps_its_size_unless_writes_are_short_of_cpu() {
    let candidates = |short| (0..CANDIDATES).filter(|c| suits_last(&json(), *c, short)).count();
    assert_eq!(candidates(Short::CpuForWrites), CANDIDATES);
    for short in [Short::Nothing, Short::Cpu, Short::Storage] {
        assert_eq!(candidates(short), 5, "zstd:3 and up, with a dictionary or without");
    }
}

#[test]
fn a_tree_of_which_nothing_is_known_has_the_usual_codecs() {
    let unknown = TreeLoad { costs: [None; LEVELS], ..tree(USUAL, 10.0, 0.0, 0.0) };
    let price = price(&pressed(), &Price::default(), std::slice::from_ref(&unknown));
    assert_eq!(choose(&price, &unknown), Chosen::default());
    // Or what it had when it was open before.
    let mut before = unknown.clone();
    before.chosen.0[6] = Some(Choice { codec: Codec::Lz4, dictionary: false, why: Why::CpuShort });
    assert_eq!(choose(&price, &before), before.chosen);
    // Of one level known, the others have their choice by that.
    let mut one = unknown;
    one.costs[0] = Some(USUAL);
    assert!(choose(&price, &one).0.iter().all(Option::is_some));
}
