//! Programs: what a user may do to a database, drawn at random from one seed.
//!
//! A program is right by construction: it uses only trees that exist when its operation is run in
//! order, and only snapshots that are open. [`crate::text`] writes and reads programs.

use crate::data::{KEYS, Value};
use crate::model::{Change, Commit};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

/// How many snapshots a program holds at most.
pub const SNAPSHOTS: u8 = 3;

/// How many scans a program keeps open at most.
pub const SCANS: u8 = 3;

/// How many trees a program uses at most.
pub const TREES: u8 = 4;

/// A movement of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// To the first key.
    First,
    /// To the last key.
    Last,
    /// To the first key at or after this one.
    Seek(u32),
    /// To the last key at or before this one.
    SeekBack(u32),
    /// So many keys on.
    Next(u32),
    /// So many keys back.
    Prev(u32),
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes a batch; with `true`, durably.
    Write(Vec<Change>, bool),
    /// Writes the same by a transaction that keeps so many bytes in memory, and that undoes as much
    /// again; with `true`, durably. One with an odd number commits in two phases.
    Transaction(Vec<Change>, u32, bool),
    /// Writes one value from a reader.
    PutReader(u8, u32, Value),
    /// Brings in sorted keys beside the log: the keys' numbers, and the number of the first value.
    Ingest(u8, Vec<u32>, Value),
    /// Reads one key, perhaps at a snapshot.
    Get(u8, u32, Option<u8>),
    /// Reads keys together.
    MultiGet(u8, Vec<u32>),
    /// Scans: bounds from (included) and to (excluded), a snapshot, movements.
    Scan(u8, Option<u32>, Option<u32>, Option<u8>, Vec<Move>),
    /// Opens a scan into a slot: bounds as for [`Op::Scan`]. It sees what is there now.
    OpenScan(u8, u8, Option<u32>, Option<u32>),
    /// Moves an open scan.
    MoveScan(u8, Vec<Move>),
    /// Scans the keys that begin as this one does.
    Prefix(u8, u32),
    /// Compares everything with the model.
    Check,
    /// Takes a snapshot into a slot.
    Snapshot(u8),
    /// Releases the snapshot of a slot.
    Release(u8),
    /// Creates a tree.
    Create(u8),
    /// Drops a tree.
    Drop(u8),
    /// Drops a tree and creates it anew, in one step.
    Renew(u8),
    /// Flushes a tree, or all.
    Flush(Option<u8>),
    /// Compacts a tree, or all.
    Compact(Option<u8>),
    /// Compacts a range of a tree.
    CompactRange(u8, u32, u32),
    /// Makes all commits durable.
    Sync,
    /// Runs so many pieces of background work.
    Step(u32),
    /// Runs all background work.
    Idle,
    /// Closes and opens the database.
    Reopen,
    /// Makes a checkpoint, opens it and compares it with the model.
    Checkpoint,
    /// Verifies all files.
    Verify,
}

impl Op {
    /// The commit that this operation makes, if it makes one.
    pub fn commit(&self) -> Option<Commit> {
        match self {
            Op::Write(changes, _) | Op::Transaction(changes, ..) => {
                Some(Commit::Batch(changes.clone()))
            }
            Op::PutReader(tree, key, value) => {
                Some(Commit::Batch(vec![Change::Put(*tree, *key, *value)]))
            }
            Op::Ingest(tree, keys, value) => Some(Commit::Batch(
                ingested(keys, *value).map(|(key, value)| Change::Put(*tree, key, value)).collect(),
            )),
            Op::Create(tree) => Some(Commit::Create(*tree)),
            Op::Drop(tree) => Some(Commit::Drop(*tree)),
            Op::Renew(tree) => Some(Commit::Renew(*tree)),
            _ => None,
        }
    }
}

/// The values that an ingest gives to its keys: numbers from the first one's on.
pub fn ingested(keys: &[u32], first: Value) -> impl Iterator<Item = (u32, Value)> {
    keys.iter().zip(first.number..).map(move |(&key, number)| (key, Value { number, ..first }))
}

/// What the programs of a profile like to do.
#[derive(Clone, Copy, Debug)]
struct Profile {
    /// Out of 100 changes: deletes and range deletes.
    deletes: u32,
    range_deletes: u32,
    /// The keys used are those below.
    keys: u32,
    /// Most values are shorter than this.
    value_bytes: u32,
    /// The weights of the kinds of operation, as in `Generator::draw`.
    weights: [u32; 23],
}

/// Draws programs.
pub struct Generator {
    random: Pcg64Mcg,
    profile: Profile,
    trees: BTreeSet<u8>,
    snapshots: BTreeSet<u8>,
    scans: BTreeSet<u8>,
    values: u32,
}

impl Generator {
    /// A generator whose programs follow from `seed`.
    pub fn new(seed: u64) -> Generator {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let weights = [30, 2, 3, 10, 3, 12, 3, 2, 5, 4, 2, 2, 6, 2, 2, 4, 20, 2, 2, 2, 4, 4, 8];
        let mut profile = Profile {
            deletes: [5, 20, 50][random.random_range(0..3)],
            range_deletes: [0, 5, 20][random.random_range(0..3)],
            keys: [20, 100, KEYS][random.random_range(0..3)],
            value_bytes: [20, 200, 1500][random.random_range(0..3)],
            weights,
        };
        // Every profile stresses some kinds of operation and leaves out others.
        for weight in &mut profile.weights[1..] {
            *weight *= [0, 1, 1, 1, 4][random.random_range(0..5)];
        }
        let (trees, snapshots, scans) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Generator { random, profile, trees, snapshots, scans, values: 0 }
    }

    /// A generator of programs that write much and step the background work between: their trees
    /// outgrow level 0 time and again, and merges take many steps, with all else in between.
    pub fn heavy(seed: u64) -> Generator {
        let mut heavy = Generator::new(seed);
        heavy.profile.keys = KEYS;
        heavy.profile.value_bytes = 3_000;
        heavy.profile.range_deletes = [0, 2, 5][heavy.random.random_range(0..3)];
        heavy.profile.weights =
            [60, 2, 1, 4, 1, 6, 1, 1, 4, 3, 1, 1, 4, 1, 1, 2, 30, 0, 1, 2, 3, 1, 0];
        heavy
    }

    /// As [`Generator::heavy`], of programs that write more than a small limit on space has room
    /// for.
    pub fn full(seed: u64) -> Generator {
        let mut full = Generator::heavy(seed);
        full.profile.value_bytes = [3_000, 12_000][full.random.random_range(0..2)];
        full.profile.deletes = [2, 10, 30][full.random.random_range(0..3)];
        full
    }

    /// A generator for a database that has these trees, and no snapshots.
    pub fn resuming(seed: u64, trees: BTreeSet<u8>) -> Generator {
        // Values unlike those of the program before.
        Generator { trees, values: 1_000_000, ..Generator::new(seed) }
    }

    /// A program of `count` operations. It begins with the creation of a tree if there is none.
    pub fn program(&mut self, count: usize) -> Vec<Op> {
        let mut program = Vec::new();
        if self.trees.is_empty() {
            program.push(self.create(0));
        }
        while program.len() < count {
            let op = self.draw();
            program.push(op);
        }
        program
    }

    fn create(&mut self, tree: u8) -> Op {
        self.trees.insert(tree);
        Op::Create(tree)
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.random_range(0..bound)
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    fn tree(&mut self) -> u8 {
        let index = self.below(self.trees.len() as u32) as usize;
        self.trees.iter().nth(index).copied().unwrap_or_default()
    }

    fn key(&mut self) -> u32 {
        // Some keys are used more than others.
        let bound = if self.chance(30) { self.profile.keys / 10 } else { self.profile.keys };
        self.below(bound.max(1))
    }

    fn value(&mut self) -> Value {
        self.values += 1;
        let most = self.profile.value_bytes;
        let bytes = match self.below(40) {
            0 => 0,
            1 => 4096 + self.below(6000),
            2 => most * 3,
            _ => self.below(most),
        };
        Value { number: self.values, bytes }
    }

    fn snapshot(&mut self) -> Option<u8> {
        if self.snapshots.is_empty() || self.chance(50) {
            return None;
        }
        let index = self.below(self.snapshots.len() as u32) as usize;
        self.snapshots.iter().nth(index).copied()
    }

    fn changes(&mut self) -> Vec<Change> {
        let count = match self.below(10) {
            0 => 1 + self.below(60),
            1..5 => 1,
            _ => 1 + self.below(8),
        };
        let (deletes, ranges) = (self.profile.deletes, self.profile.range_deletes);
        let change = |own: &mut Self| {
            let (tree, key) = (own.tree(), own.key());
            match own.below(100) {
                kind if kind < ranges => {
                    // Mostly short ranges, by the order of the numbers.
                    let other = if own.chance(70) { key + 1 + own.below(8) } else { own.key() };
                    range(key, other % KEYS, |from, to| Change::DeleteRange(tree, from, to))
                        .unwrap_or(Change::Delete(tree, key))
                }
                kind if kind < ranges + deletes => Change::Delete(tree, key),
                _ => Change::Put(tree, key, own.value()),
            }
        };
        (0..count).map(|_| change(self)).collect()
    }

    fn bounds(&mut self) -> (Option<u32>, Option<u32>) {
        let bound = |own: &mut Self| own.chance(40).then(|| own.key());
        match (bound(self), bound(self)) {
            (Some(a), Some(b)) => match range(a, b, |from, to| (from, to)) {
                Some((from, to)) => (Some(from), Some(to)),
                None => (None, None),
            },
            other => other,
        }
    }

    fn moves(&mut self) -> Vec<Move> {
        let count = 1 + self.below(8);
        let mut moves = Vec::new();
        for index in 0..count {
            moves.push(match self.below(if index == 0 { 4 } else { 10 }) {
                0 => Move::First,
                1 => Move::Last,
                2 => Move::Seek(self.key()),
                3 => Move::SeekBack(self.key()),
                4..7 => Move::Next(1 + self.below(30)),
                _ => Move::Prev(1 + self.below(30)),
            });
        }
        moves
    }

    fn scan(&mut self) -> Op {
        let (tree, (lower, upper)) = (self.tree(), self.bounds());
        Op::Scan(tree, lower, upper, self.snapshot(), self.moves())
    }

    fn open_scan(&mut self) -> Op {
        let slot = self.below(SCANS.into()) as u8;
        self.scans.insert(slot);
        let (tree, (lower, upper)) = (self.tree(), self.bounds());
        Op::OpenScan(slot, tree, lower, upper)
    }

    fn move_scan(&mut self) -> Op {
        let Some(slot) = self.scans.first().copied() else { return self.scan() };
        let slot =
            self.scans.iter().copied().find(|_| self.random.random_bool(0.5)).unwrap_or(slot);
        let mut moves = self.moves();
        // Mostly it goes on from where it is.
        if self.chance(70) {
            moves.remove(0);
        }
        Op::MoveScan(slot, moves)
    }

    fn ingest(&mut self) -> Op {
        // Some make several tables.
        let (is_long, tree) = (self.chance(20), self.tree());
        let count = if is_long { 200 } else { 1 + self.below(40) };
        let keys: BTreeSet<u32> = (0..count).map(|_| self.key()).collect();
        let mut keys: Vec<u32> = keys.into_iter().collect();
        keys.sort_by_key(|&key| crate::data::key(key));
        let mut value = self.value();
        if is_long {
            value.bytes = 500 + self.below(1500);
        }
        self.values += keys.len() as u32;
        Op::Ingest(tree, keys, value)
    }

    fn draw(&mut self) -> Op {
        let weights = self.profile.weights;
        let mut at = self.below(weights.iter().sum());
        let kind = weights.iter().position(|&weight| {
            let here = at < weight;
            at = at.saturating_sub(weight);
            here
        });
        match kind.unwrap_or(0) {
            0 => Op::Write(self.changes(), self.random.next_u32().is_multiple_of(6)),
            1 => Op::PutReader(self.tree(), self.key(), self.value()),
            2 => self.ingest(),
            3 => Op::Get(self.tree(), self.key(), self.snapshot()),
            4 => {
                let (tree, count) = (self.tree(), self.below(12));
                Op::MultiGet(tree, (0..count).map(|_| self.key()).collect())
            }
            5 => self.scan(),
            6 => Op::Prefix(self.tree(), self.key()),
            7 => Op::Check,
            8 => {
                let slot = self.below(SNAPSHOTS.into()) as u8;
                self.snapshots.insert(slot);
                Op::Snapshot(slot)
            }
            9 => match self.snapshot() {
                Some(slot) => {
                    self.snapshots.remove(&slot);
                    Op::Release(slot)
                }
                None => Op::Sync,
            },
            10 => match (0..TREES).find(|tree| !self.trees.contains(tree)) {
                Some(tree) => self.create(tree),
                None => Op::Renew(self.tree()),
            },
            11 if self.trees.len() > 1 => {
                let tree = self.tree();
                self.trees.remove(&tree);
                Op::Drop(tree)
            }
            11 | 12 => Op::Flush(self.chance(50).then(|| self.tree())),
            13 => Op::Compact(self.chance(50).then(|| self.tree())),
            14 => {
                let (tree, a, b) = (self.tree(), self.key(), self.key());
                range(a, b, |from, to| Op::CompactRange(tree, from, to)).unwrap_or(Op::Idle)
            }
            15 => Op::Sync,
            16 => Op::Step(1 + self.below(4)),
            17 => {
                self.snapshots.clear();
                self.scans.clear();
                Op::Reopen
            }
            18 => Op::Checkpoint,
            19 => self.open_scan(),
            20 => self.move_scan(),
            21 => {
                // Mostly so little that most of it is spilled, in many runs.
                let memory_bytes = [1, 300, 3_000, 100_000][self.below(4) as usize];
                let memory_bytes = memory_bytes + self.below(2);
                let changes = (0..1 + self.below(8)).flat_map(|_| self.changes()).collect();
                Op::Transaction(changes, memory_bytes, self.chance(20))
            }
            _ => {
                if self.chance(50) {
                    Op::Verify
                } else {
                    Op::Idle
                }
            }
        }
    }
}

/// Two keys in the order of their bytes; `None` if they are one.
fn range<T>(a: u32, b: u32, make: impl FnOnce(u32, u32) -> T) -> Option<T> {
    match crate::data::key(a).cmp(&crate::data::key(b)) {
        std::cmp::Ordering::Less => Some(make(a, b)),
        std::cmp::Ordering::Greater => Some(make(b, a)),
        std::cmp::Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn a_seed_is_a_program() {
        assert_eq!(Generator::new(7).program(200), Generator::new(7).program(200));
        assert_ne!(Generator::new(7).program(200), Generator::new(8).program(200));
    }

    #[test]
    fn programs_use_only_what_exists() {
        for seed in 0..100 {
            let mut model = Model::new();
            let mut snapshots = BTreeSet::new();
            for op in Generator::new(seed).program(200) {
                match &op {
                    Op::Snapshot(slot) => drop(snapshots.insert(*slot)),
                    Op::Release(slot) => assert!(snapshots.remove(slot)),
                    Op::Get(_, _, Some(slot)) | Op::Scan(_, _, _, Some(slot), _) => {
                        assert!(snapshots.contains(slot));
                    }
                    Op::Create(tree) => assert!(!model.trees(model.now()).contains(tree)),
                    Op::Reopen => snapshots.clear(),
                    _ => {}
                }
                if let Some(commit) = op.commit() {
                    model.commit(&commit);
                }
            }
            assert!(!model.trees(model.now()).is_empty());
        }
    }
}
