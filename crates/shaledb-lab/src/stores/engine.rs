//! What a key-value store must do to be measured: a narrow interface, used by static dispatch only.
//!
//! One [`Engine`] per run, one [`Handle`] per thread, a few trees (named key spaces) in each.
//! Values are shown to a closure where they lie, because that is the cheapest way of every engine
//! worth measuring.

use crate::setup::Setup;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Any engine's error.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The result of every call on an engine.
pub type Result<T> = std::result::Result<T, Failure>;

/// Totals since the engine was opened, as the engine itself counts them. What it does not count
/// stays zero or `None`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Metrics {
    /// Bytes of keys and values that the user wrote.
    pub user_bytes: u64,
    /// Bytes written to write-ahead logs.
    pub wal_bytes: u64,
    /// Bytes written by flushes, where the engine knows; of engines without levels, bytes written
    /// to pages.
    pub flush_bytes: Option<u64>,
    /// Bytes written by compactions, without flushes, where the engine knows.
    pub compaction_bytes: Option<u64>,
    /// Seconds in which the engine delayed or stopped a writer, as it counts them itself.
    pub stall_seconds: f64,
    /// Data blocks read from files for users' reads, where the engine knows: those that its own
    /// cache did not have.
    #[serde(default)]
    pub block_reads: Option<u64>,
    /// CPU seconds of flush and compaction, where the engine knows.
    pub background_cpu_seconds: Option<f64>,
    /// CPU seconds by activity, as far as the engine knows; estimates where it samples.
    pub cpu_seconds: BTreeMap<String, f64>,
    /// Wall seconds of compactions (c.wsecs), where the engine knows.
    pub compaction_seconds: Option<f64>,
    /// CPU seconds of compactions (c.csecs), where the engine knows.
    pub compaction_cpu_seconds: Option<f64>,
    /// The levels, where the engine has them.
    pub levels: Vec<Level>,
    /// The engine's own table of its levels, or its own statistics, as text.
    pub table: String,
}

/// One level of a tree of levels: what is there now, and what its jobs have done since the engine
/// was opened.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Level {
    /// Its number.
    pub level: u32,
    /// Tables in it now.
    pub files: u64,
    /// Bytes of these tables.
    pub bytes: u64,
    /// Bytes that jobs with this output level have read.
    pub read_bytes: u64,
    /// Bytes that these jobs have written.
    pub written_bytes: u64,
    /// Bytes of these that were copied by whole blocks, without compressing them anew.
    pub reused_bytes: u64,
    /// How many jobs there were.
    pub jobs: u64,
    /// Wall seconds of these jobs.
    pub seconds: f64,
    /// CPU seconds of these jobs.
    pub cpu_seconds: f64,
    /// The codec that its tables are written with now, if the engine tells.
    pub codec: String,
    /// Why it is this one, in words, if the engine tells.
    pub codec_why: String,
}

impl Metrics {
    /// Bytes of tables that were written, by flushes and compactions, where the engine knows.
    pub fn table_bytes(&self) -> Option<u64> {
        Some(self.flush_bytes? + self.compaction_bytes.unwrap_or(0))
    }

    /// What happened since `earlier`; levels and table are the later ones.
    pub fn since(&self, earlier: &Metrics) -> Metrics {
        let less = |a: Option<f64>, b: Option<f64>| Some(a? - b.unwrap_or(0.0));
        let grown = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_sub(b.unwrap_or(0)));
        Metrics {
            user_bytes: self.user_bytes.saturating_sub(earlier.user_bytes),
            wal_bytes: self.wal_bytes.saturating_sub(earlier.wal_bytes),
            flush_bytes: grown(self.flush_bytes, earlier.flush_bytes),
            compaction_bytes: grown(self.compaction_bytes, earlier.compaction_bytes),
            stall_seconds: (self.stall_seconds - earlier.stall_seconds).max(0.0),
            block_reads: grown(self.block_reads, earlier.block_reads),
            background_cpu_seconds: less(
                self.background_cpu_seconds,
                earlier.background_cpu_seconds,
            ),
            cpu_seconds: self
                .cpu_seconds
                .iter()
                .map(|(name, now)| {
                    let before = earlier.cpu_seconds.get(name).copied().unwrap_or(0.0);
                    (name.clone(), (now - before).max(0.0))
                })
                .collect(),
            compaction_seconds: less(self.compaction_seconds, earlier.compaction_seconds),
            compaction_cpu_seconds: less(
                self.compaction_cpu_seconds,
                earlier.compaction_cpu_seconds,
            ),
            levels: self.levels.clone(),
            table: self.table.clone(),
        }
    }
}

/// A tree of a store: an index into the names that the store was opened with.
pub type TreeId = usize;

/// One operation of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Writes a pair.
    Put(TreeId, &'a [u8], &'a [u8]),
    /// Deletes a key.
    Delete(TreeId, &'a [u8]),
}

/// Operations that are applied as a whole: all of them or none. A batch that is cleared and filled
/// again does not allocate.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ops: Vec<(TreeId, usize, usize, Option<usize>)>,
}

impl Batch {
    /// Empty.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Adds a write.
    pub fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.ops.push((tree, start, key.len(), Some(value.len())));
    }

    /// Adds a delete.
    pub fn delete(&mut self, tree: TreeId, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.ops.push((tree, start, key.len(), None));
    }

    /// Takes everything out and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ops.clear();
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The bytes of all keys and values.
    pub fn user_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The operations, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Op<'_>> {
        self.ops.iter().map(|&(tree, start, key, value)| {
            let (key, rest) = self.bytes[start..].split_at(key);
            match value {
                Some(value) => Op::Put(tree, key, &rest[..value]),
                None => Op::Delete(tree, key),
            }
        })
    }
}

/// How far an engine holds itself to `--device-bound`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceBound {
    /// Not at all: it refuses the flag.
    Refused,
    /// All bytes of its files.
    Whole,
    /// Some of them; what is left out, as a note of each row.
    Partly(&'static str),
}

/// A store that can be measured. Every call fails with the engine's error.
pub trait Engine: Send + Sync + Sized {
    /// What one thread works with.
    type Handle: Handle;

    /// The name in reports, also the name of its folder.
    const NAME: &'static str;

    /// How far it holds itself to `--device-bound`.
    const DEVICE_BOUND: DeviceBound = DeviceBound::Refused;

    /// The version in reports.
    fn version() -> String;

    /// Opens the store in `dir`, or creates it there, with these trees. Missing trees are created.
    /// A [`TreeId`] is an index into `trees`.
    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Self>;

    /// As [`Engine::open`], for [`Handle::update`] as well. Some engines pay for that at every
    /// write, so only a step that updates opens a store by this. An engine that does not have it
    /// refuses.
    fn open_for_updates(_: &Path, _: &Setup, _: &[&str]) -> Result<Self> {
        Err(format!(
            "{} has no transactions that hold a row from its reading to its writing, so it cannot \
             do updaterandom. Leave that out of --benchmarks, or {0} out of --engines",
            Self::NAME
        )
        .into())
    }

    /// Every setting of the engine that differs from its default or matters for a comparison, in
    /// the engine's own words, as name and value.
    fn configuration(setup: &Setup) -> Vec<(String, String)>;

    /// A handle for one thread.
    fn handle(&self) -> Result<Self::Handle>;

    /// Removes all rows of a tree as fast as the engine can, and frees their space. The tree stays
    /// usable. The caller makes sure that no handle is in use meanwhile.
    fn clear_tree(&self, tree: TreeId) -> Result<()>;

    /// Flushes everything and waits until no compaction is due.
    fn wait_idle(&self) -> Result<()>;

    /// What the engine counted so far.
    fn metrics(&self) -> Result<Metrics>;

    /// Closes the store; everything that was written is there at the next open.
    fn close(self) -> Result<()>;
}

/// One thread's view of a store. Every call fails with the engine's error.
pub trait Handle: Send {
    /// Writes one pair.
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()>;

    /// Looks up a key and shows its value to `found`. Returns whether the key is there.
    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool>;

    /// Looks several keys up and shows to `found` the values of those that are there, each with
    /// the key's place in `keys`, in any order. Returns how many are there. A key that is asked for
    /// twice is shown twice. The values need not be of one moment.
    fn multi_get(
        &mut self,
        tree: TreeId,
        keys: &[impl AsRef<[u8]>],
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<u64> {
        let mut there = 0;
        for (at, key) in keys.iter().enumerate() {
            there += u64::from(self.get(tree, key.as_ref(), &mut |value| found(at, value))?);
        }
        Ok(there)
    }

    /// Deletes one key.
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()>;

    /// Applies all operations of a batch or none.
    fn write(&mut self, batch: &Batch) -> Result<()>;

    /// Shows up to `rows` pairs in key order, from the first key that is not less than `from`,
    /// until `row` answers false. Returns how many were shown. A scan is a snapshot: all pairs are
    /// of one moment.
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64>;

    /// As [`Handle::scan`], all pairs whose key is less than `to`. An engine that can be told the
    /// bound is told it.
    fn scan_range(
        &mut self,
        tree: TreeId,
        from: &[u8],
        to: &[u8],
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let mut beyond = 0;
        let shown = self.scan(tree, from, u64::MAX, &mut |key, value| {
            if key < to {
                return row(key, value);
            }
            beyond = 1;
            false
        })?;
        Ok(shown - beyond)
    }

    /// Reads a key and writes it, in one transaction that no other update of the key comes into:
    /// `change` is shown the value, `None` if the key is not there, and puts the new one into an
    /// empty buffer. It may be asked again, if the transaction has to be done again. Returns
    /// whether the key was there. Only for stores of [`Engine::open_for_updates`].
    fn update(
        &mut self,
        _: TreeId,
        _: &[u8],
        _: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        Err("this engine has no transactions for updates, or was not opened for them".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_what_it_was_given() {
        let mut batch = Batch::new();
        batch.put(0, b"a", b"one");
        batch.delete(2, b"bc");
        batch.put(1, b"", b"");
        let ops: Vec<Op<'_>> = batch.iter().collect();
        assert_eq!(ops, [Op::Put(0, b"a", b"one"), Op::Delete(2, b"bc"), Op::Put(1, b"", b"")]);
        assert_eq!((batch.len(), batch.user_bytes()), (3, 6));
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }
}
