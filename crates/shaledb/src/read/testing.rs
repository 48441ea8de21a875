//! A tree over real memtables and real tables on a simulated disk, for the tests of this module.

use super::value::BlobSource;
use crate::base::config::LEVELS;
use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::base::sync::Arc;
use crate::iter::testing::{Disk, Entry, History, Random};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::table::{BlobRef, Table};
use crate::version::Version;

/// Large values that say which file they would be in.
pub struct TestBlobs;

impl TestBlobs {
    pub fn reference(file: u64) -> Vec<u8> {
        BlobRef { file, bytes: 10 }.encode()
    }
}

impl BlobSource for TestBlobs {
    fn read(&self, blob_ref: &[u8]) -> Result<Vec<u8>> {
        let file = BlobRef::decode(blob_ref).unwrap().file;
        Ok(format!("blob {file}").into_bytes())
    }
}

/// A state, and the history that made it.
pub struct Tree {
    pub disk: Disk,
    pub state: TreeState,
    pub last_seq: SeqNo,
    history: History,
}

impl Tree {
    pub fn empty() -> Tree {
        let version = Arc::new(Version::new());
        let state = TreeState { active: Arc::new(Memtable::new()), sealed: Vec::new(), version };
        let history = History { entries: Vec::new(), deletes: Vec::new() };
        Tree { disk: Disk::new(), state, last_seq: 0, history }
    }

    pub fn set_levels(&mut self, levels: Vec<Vec<Arc<Table>>>) {
        self.state.version = Arc::new(Version::from_levels(levels).unwrap());
    }

    /// Operations from old to new, each stretch of them put where it belongs.
    pub fn random(random: &mut Random) -> Tree {
        let mut tree = Tree::empty();
        let mut levels = vec![Vec::new(); LEVELS];
        let deepest = 1 + random.below(4) as usize;
        let mut runs: Vec<History> = (0..=deepest).map(|_| tree.stretch(random, 60)).collect();
        // Runs are from old to new: the first is the deepest. Some keys have sunk a level.
        for at in 1..runs.len() {
            if random.below(2) == 0 {
                let pivot = random.key(60);
                let (sunk, kept) = split(&runs[at], &pivot);
                runs[at] = kept;
                runs[at - 1].entries.extend(sunk.entries);
                runs[at - 1].deletes.extend(sunk.deletes);
            }
        }
        for (level, run) in (1..).zip(runs.iter().rev()) {
            let mut cuts: Vec<Vec<u8>> = (0..random.below(6)).map(|_| random.key(60)).collect();
            cuts.sort();
            cuts.dedup();
            levels[level] = tree.disk.run(run, &cuts);
        }
        for _ in 0..random.below(4) {
            let table = match random.below(3) {
                0 => tree.ingest(random),
                _ => {
                    let part = tree.stretch(random, 30);
                    tree.disk.table(part.entries, &RangeDeletes::new(part.deletes))
                }
            };
            levels[0].push(table);
        }
        tree.set_levels(levels);
        for _ in 0..random.below(3) {
            let part = tree.stretch(random, 25);
            tree.state.sealed.insert(0, memtable(&part));
        }
        let count = random.below(40);
        let part = tree.stretch(random, count);
        tree.state.active = memtable(&part);
        tree
    }

    fn stretch(&mut self, random: &mut Random, count: u64) -> History {
        let part = History::random(random, count, 60, self.last_seq + 1);
        self.last_seq += count;
        self.history.entries.extend(part.entries.iter().cloned());
        self.history.deletes.extend(part.deletes.iter().cloned());
        part
    }

    /// A table whose entries all have one sequence number, which its blocks do not know.
    fn ingest(&mut self, random: &mut Random) -> Arc<Table> {
        self.last_seq += 1;
        let mut keys: Vec<Vec<u8>> = (0..20).map(|_| random.key(60)).collect();
        keys.sort();
        keys.dedup();
        let entries = keys.into_iter().map(|key| Entry {
            value: [b"ingested ", &key[..]].concat(),
            key,
            seq: 0,
            kind: Kind::Put,
        });
        let entries: Vec<Entry> = entries.collect();
        let table = self.disk.table(entries.clone(), &RangeDeletes::default());
        let mut meta = table.meta.as_ref().clone();
        (meta.ingest_seq, meta.min_seq, meta.max_seq) =
            (self.last_seq, self.last_seq, self.last_seq);
        let seq = self.last_seq;
        self.history.entries.extend(entries.into_iter().map(|entry| Entry { seq, ..entry }));
        Table::new(meta, table.path().to_owned(), &self.disk.tables)
    }

    /// All entries, in no order.
    pub fn entries(&self) -> &[Entry] {
        &self.history.entries
    }

    /// The number of the newest write to a key, deletes of all kinds included.
    pub fn newest_write(&self, key: &[u8]) -> Option<SeqNo> {
        let entries = self.history.entries.iter().filter(|e| e.key == key).map(|e| e.seq);
        let covers = |d: &&RangeDelete| d.start.as_slice() <= key && key < d.end.as_slice();
        entries.chain(self.history.deletes.iter().filter(covers).map(|d| d.seq)).max()
    }

    /// Whether a key of the range was written, or may have been deleted, after `since`.
    pub fn is_written_after(&self, lower: &[u8], upper: Option<&[u8]>, since: SeqNo) -> bool {
        let inside = |key: &[u8]| key >= lower && upper.is_none_or(|upper| key < upper);
        let deletes = RangeDeletes::new(self.history.deletes.iter().cloned());
        let meets = || {
            let inside = deletes.clip(lower, upper);
            inside.fragments().iter().any(|part| part.newest_at(SeqNo::MAX) > since)
        };
        let empty = upper.is_some_and(|upper| upper <= lower);
        self.history.entries.iter().any(|e| inside(&e.key) && e.seq > since) || !empty && meets()
    }

    /// What a reader at `seq` sees: (key, value), sorted, large values read.
    pub fn rows(&self, seq: SeqNo) -> Vec<(Vec<u8>, Vec<u8>)> {
        let resolve = |(key, value): (Vec<u8>, Vec<u8>)| match BlobRef::decode(&value) {
            Some(_) => (key, TestBlobs.read(&value).unwrap()),
            None => (key, value),
        };
        self.history.visible(seq).into_iter().map(resolve).collect()
    }
}

fn memtable(part: &History) -> Arc<Memtable> {
    let memtable = Memtable::new();
    for entry in &part.entries {
        memtable.insert(&entry.key, entry.seq, entry.kind, &entry.value);
    }
    for delete in &part.deletes {
        memtable.delete_range(&delete.start, &delete.end, delete.seq, delete.seq);
    }
    Arc::new(memtable)
}

/// The history of the keys before `pivot`, and of the others.
fn split(history: &History, pivot: &[u8]) -> (History, History) {
    let (low, high) =
        history.entries.iter().cloned().partition(|entry| entry.key.as_slice() < pivot);
    let deletes = RangeDeletes::new(history.deletes.iter().cloned());
    let part =
        |entries, deletes: RangeDeletes| History { entries, deletes: deletes.deletes().collect() };
    (part(low, deletes.clip(b"", Some(pivot))), part(high, deletes.clip(pivot, None)))
}
