//! Estimates of how many rows a range has, against the truth, over trees of many shapes.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::{Background, Config, Db, Env, OpenOptions, RowEstimate, Tree, TreeConfig};
use std::collections::BTreeSet;

const KEYS: u32 = 20_000;

/// A tree, and the keys that it has.
struct World {
    db: Db,
    tree: Tree,
    keys: BTreeSet<u32>,
    /// How many writes the last compaction has not seen.
    writes: u32,
    random: Pcg64Mcg,
}

fn key(number: u32) -> Vec<u8> {
    format!("row/{number:010}").into_bytes()
}

impl World {
    fn new(filter_bits: u8) -> World {
        let env = Env::memory();
        let options = OpenOptions { env, background: Background::Stepped, read_only: false };
        let tree = TreeConfig { filter_bits, ..TreeConfig::default() };
        let config =
            Config { memory_bytes: 64 << 20, memtable_bytes: 16 << 20, tree, ..Config::default() };
        let db = Db::open_in("/db", config, options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        World { db, tree, keys: BTreeSet::new(), writes: 0, random: Pcg64Mcg::seed_from_u64(7) }
    }

    fn put(&mut self, number: u32) {
        let value = vec![b'v'; self.random.random_range(20..80)];
        self.tree.put(&key(number), &value).unwrap();
        self.keys.insert(number);
        self.writes += 1;
    }

    fn put_all(&mut self, numbers: impl Iterator<Item = u32>) {
        numbers.for_each(|number| self.put(number));
    }

    /// Puts at random keys, new ones or old ones.
    fn put_some(&mut self, count: u32) {
        for _ in 0..count {
            let number = self.random.random_range(0..KEYS);
            self.put(number);
        }
    }

    fn delete_all(&mut self, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            self.tree.delete(&key(number)).unwrap();
            self.keys.remove(&number);
            self.writes += 1;
        }
    }

    fn delete_range(&mut self, from: u32, to: u32) {
        self.tree.delete_range(&key(from), &key(to)).unwrap();
        self.keys.retain(|number| !(from..to).contains(number));
    }

    fn compact(&mut self) {
        self.db.compact().unwrap();
        self.writes = 0;
    }

    fn truth(&self, from: u32, to: u32) -> u64 {
        self.keys.range(from..to).count() as u64
    }

    fn estimate(&self, from: u32, to: u32, exact_max: u64) -> RowEstimate {
        self.tree.estimate_rows(&key(from), Some(&key(to)), exact_max).unwrap()
    }

    /// Ranges of all widths, wide and narrow ones as often. Each is right to a factor of two, a
    /// block and a twentieth of the entries that are no rows; all together to `error` (a part of 1).
    fn check(&mut self, label: &str, error: f64) {
        let (mut sum, mut looked) = (0.0, 0);
        for _ in 0..300 {
            let from = self.random.random_range(0..KEYS);
            let width = 2f64.powf(self.random.random_range(0.0..(KEYS as f64).log2())) as u32;
            let to = (from + width).min(KEYS);
            let truth = self.truth(from, to);
            let found = self.estimate(from, to, 0);
            let entries = f64::from(self.writes + KEYS) * f64::from(to - from) / f64::from(KEYS);
            let slack = 40 + (0.05 * (entries - truth as f64)).max(0.0) as u64;
            let label = format!("{label}: {from} to {to}: {found:?} of {truth}");
            assert!(found.rows <= 2 * truth + slack, "{label}");
            assert!(truth <= 2 * found.rows + slack, "{label}");
            if found.exact {
                assert_eq!(found.rows, truth, "{label}");
            }
            if truth > 400 {
                sum += (found.rows as f64 - truth as f64).abs() / truth as f64;
                looked += 1;
            }
            let counted = self.estimate(from, to, 200);
            if counted.exact {
                assert_eq!(counted.rows, truth, "{label}");
            } else {
                assert!(truth > 0 || counted.rows <= slack, "{label}: {counted:?}");
            }
        }
        assert!(looked > 20);
        let mean = sum / f64::from(looked);
        println!("{label}: wrong by {:.1} % on average", 100.0 * mean);
        assert!(mean <= error, "{label}: wrong by {mean} on average");
        let all = self.tree.estimate_rows(b"", None, 0).unwrap();
        let truth = self.keys.len() as f64;
        assert!((all.rows as f64 - truth).abs() <= 0.35 * truth, "{label}: {all:?} of {truth}");
    }
}

#[test]
fn a_memtable() {
    let mut world = World::new(10);
    world.put_all((0..KEYS).step_by(3));
    world.check("a memtable", 0.15);
    world.put_some(5 * KEYS / 2);
    world.check("written over several times", 0.25);
    world.delete_all((5_000..10_000).chain((0..KEYS).step_by(7)));
    world.check("with deletes", 0.35);
}

#[test]
fn tables_of_level_0_and_a_memtable_above() {
    let mut world = World::new(10);
    world.put_all((0..KEYS).step_by(2));
    world.tree.flush().unwrap();
    world.check("one table", 0.02);
    // Each of the old rows once more: the entries are three times the rows.
    for _ in 0..2 {
        world.put_all((0..KEYS).step_by(2));
        world.tree.flush().unwrap();
    }
    world.check("three of the same", 0.1);
    world.put_some(KEYS / 4);
    world.check("and a memtable", 0.2);
}

#[test]
fn levels_and_what_is_above_them() {
    for filter_bits in [10, 0] {
        let mut world = World::new(filter_bits);
        world.put_all(0..KEYS);
        world.compact();
        world.check("one level", 0.02);
        world.delete_all((0..KEYS).step_by(2));
        world.check("half deleted in a memtable", 0.25);
        world.tree.flush().unwrap();
        world.check("half deleted in level 0", 0.25);
        world.put_all((0..KEYS / 4).map(|number| 4 * number));
        world.check("a quarter is back", 0.25);
        world.compact();
        world.check("compacted", 0.02);
        // What is deleted was not there.
        world.delete_all((0..KEYS).filter(|number| number % 4 == 2));
        world.check("with deletes of nothing", 0.2);
    }
}

#[test]
fn a_queue_is_short() {
    // Rows are added at the end and deleted at the front: all are gone but for the last.
    let mut world = World::new(10);
    for number in 0..KEYS {
        world.put(number);
        if number >= 100 {
            world.delete_all(std::iter::once(number - 100));
        }
        if number % 6_000 == 5_999 {
            world.tree.flush().unwrap();
        }
    }
    let gone = world.estimate(0, KEYS - 200, 100);
    assert!(gone.rows < u64::from(KEYS) / 20, "{gone:?}");
    let all = world.estimate(0, KEYS, 100);
    assert!(all.rows >= 1 && all.rows < u64::from(KEYS) / 20, "{all:?}");
    assert_eq!(world.estimate(KEYS - 50, KEYS, 100), RowEstimate { rows: 50, exact: true });
}

#[test]
fn range_deletes() {
    let mut world = World::new(10);
    world.put_all(0..KEYS);
    world.compact();
    world.delete_range(2_000, 12_000);
    world.check("half of it deleted as a range", 0.05);
    world.tree.flush().unwrap();
    world.put_all((6_000..8_000).step_by(2));
    world.check("some of it is back", 0.15);
    world.delete_range(0, 3_000);
    world.check("two ranges", 0.15);
    for number in 0..200 {
        world.delete_range(12_000 + 40 * number, 12_030 + 40 * number);
    }
    world.check("many ranges", 0.4);
    world.tree.delete_range(b"", b"s").unwrap();
    let nothing = world.tree.estimate_rows(b"", None, 1000).unwrap();
    assert!(nothing.rows <= 1, "{nothing:?}");
}

#[test]
fn within_one_block_and_across_a_border() {
    let mut world = World::new(10);
    world.put_all(0..KEYS);
    world.compact();
    for from in 0..1_000 {
        for rows in [0, 1, 2, 10, 60] {
            let estimate = world.estimate(from, from + rows, 0).rows;
            assert_eq!(estimate, u64::from(rows), "from {from}");
            let counted = world.estimate(from, from + rows, 100);
            assert_eq!(counted, RowEstimate { rows: rows.into(), exact: true });
        }
    }
}

#[test]
fn old_versions_in_a_table_are_not_rows() {
    let mut world = World::new(10);
    world.put_all(0..KEYS);
    let snapshot = world.db.snapshot();
    world.put_all((0..KEYS).step_by(2));
    world.compact();
    for from in (0..KEYS - 100).step_by(333) {
        let counted = world.estimate(from, from + 60, 200);
        assert_eq!(counted, RowEstimate { rows: 60, exact: true }, "from {from}");
    }
    drop(snapshot);
}

#[test]
fn old_versions_in_blocks_of_their_own_are_not_rows() {
    // A value of 20 KiB has a block to itself: no key is there twice in one block.
    let world = World::new(10);
    let put = |number: u32| world.tree.put(&key(number), &[b'v'; 20 << 10]).unwrap();
    (0..20).for_each(put);
    let snapshot = world.db.snapshot();
    (0..20).step_by(2).for_each(put);
    for (label, done) in [("flushed", world.tree.flush()), ("compacted", world.db.compact())] {
        done.unwrap();
        for from in 0..17 {
            let counted = world.estimate(from, from + 3, 100);
            assert_eq!(counted, RowEstimate { rows: 3, exact: true }, "{label}, from {from}");
        }
    }
    drop(snapshot);
}

#[test]
fn a_dense_block_before_many_others_takes_nothing_from_them() {
    let mut world = World::new(10);
    for number in 0..600 {
        world.tree.put(&key(number), b"").unwrap();
    }
    for number in 600..1_600 {
        world.tree.put(&key(number), &[b'v'; 20 << 10]).unwrap();
    }
    world.compact();
    for rows in [10, 40, 100, 900] {
        let found = world.estimate(595, 600 + rows, 0).rows;
        let truth = u64::from(rows) + 5;
        assert!(2 * found >= truth && found <= 2 * truth, "{found} of {truth}");
    }
}

#[test]
fn what_is_counted_is_bounded_by_deletes_as_well() {
    let mut world = World::new(10);
    world.put_all(0..KEYS);
    world.delete_all(0..KEYS - 1);
    // One row behind many deletes: a count would walk through them all.
    let found = world.estimate(0, KEYS, 10);
    assert!(!found.exact && found.rows < u64::from(KEYS) / 10, "{found:?}");
    assert_eq!(world.estimate(KEYS - 5, KEYS, 10), RowEstimate { rows: 1, exact: true });
    let none = world.tree.estimate_rows(b"z", None, 0).unwrap();
    assert_eq!(none, RowEstimate { rows: 0, exact: true });
    let empty = world.tree.estimate_rows(b"b", Some(b"a"), 10).unwrap();
    assert_eq!(empty, RowEstimate { rows: 0, exact: true });
}
