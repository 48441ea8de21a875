//! A cursor over a vector, a small generator of random numbers, and a naive model of what a reader
//! sees: what the tests of this module and of `read` share.

use super::source::Source;
use crate::base::config::Codec;
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::{self, Kind, SEQ_MAX, SeqNo};
use crate::base::ranges::RangeDelete;
use crate::base::ranges::RangeDeletes;
use crate::base::stats::Recorder;
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{Env, Fs};
use crate::table::{BlobRef, Table, TableDictionary, TableEnv, TableOptions, TableWriter, Why};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

/// An entry of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Vec<u8>,
    pub seq: SeqNo,
    pub kind: Kind,
    pub value: Vec<u8>,
}

/// A cursor over entries in order.
#[derive(Clone, Debug)]
pub struct VecCursor {
    entries: Vec<Entry>,
    /// One past the last entry: not valid.
    at: usize,
    /// A step onto this entry fails.
    pub fails_at: Option<usize>,
    /// How many steps and seeks were made.
    pub moves: usize,
}

impl VecCursor {
    pub fn new(mut entries: Vec<Entry>) -> VecCursor {
        entries.sort_by(|a, b| key::compare(&a.key, a.seq, &b.key, b.seq));
        let at = entries.len();
        VecCursor { entries, at, fails_at: None, moves: 0 }
    }

    fn go(&mut self, to: usize) -> Result<()> {
        self.moves += 1;
        self.at = to.min(self.entries.len());
        if self.fails_at == Some(to) {
            self.at = self.entries.len();
            return Err(Error::InvalidArgument("told to fail".to_owned()));
        }
        Ok(())
    }

    fn before(&self, key: &[u8], seq: SeqNo) -> usize {
        self.entries.partition_point(|e| key::compare(&e.key, e.seq, key, seq) == Ordering::Less)
    }
}

impl Cursor for VecCursor {
    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }
    fn seek_first(&mut self) -> Result<()> {
        self.go(0)
    }
    fn seek_last(&mut self) -> Result<()> {
        self.go(self.entries.len().wrapping_sub(1))
    }
    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.go(self.before(key, seq))
    }
    fn seek_back(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.go(self.before(key, seq).wrapping_sub(1))
    }
    fn next(&mut self) -> Result<()> {
        assert!(self.valid());
        self.go(self.at + 1)
    }
    fn prev(&mut self) -> Result<()> {
        assert!(self.valid());
        self.go(self.at.wrapping_sub(1))
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at].key
    }
    fn seq(&self) -> SeqNo {
        self.entries[self.at].seq
    }
    fn kind(&self) -> Kind {
        self.entries[self.at].kind
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at].value
    }
}

impl Source for VecCursor {
    fn max_seq(&self) -> SeqNo {
        self.entries.iter().map(|e| e.seq).max().unwrap_or(0)
    }
    fn plain_ahead<'a>(&self, seq: SeqNo, bound: impl FnOnce() -> Option<&'a [u8]>) -> usize {
        let bound = bound();
        let plain = |pair: &&[Entry]| {
            let next = &pair[1];
            next.kind == Kind::Put
                && next.seq <= seq
                && next.key != pair[0].key
                && bound.is_none_or(|bound| next.key.as_slice() < bound)
        };
        self.entries[self.at..].windows(2).take_while(plain).count()
    }
    fn plain_behind(&self, seq: SeqNo, lower: &[u8], rival: Option<&[u8]>) -> Option<usize> {
        let plain = |&at: &usize| {
            let entry = &self.entries[at];
            let other = |at: Option<usize>| {
                at.and_then(|at| self.entries.get(at)).is_none_or(|next| next.key != entry.key)
            };
            entry.kind == Kind::Put
                && entry.seq <= seq
                && other(at.checked_sub(1))
                && other(at.checked_add(1))
                && entry.key.as_slice() >= lower
                && rival.is_none_or(|rival| entry.key.as_slice() > rival)
        };
        (0..=self.at).rev().take_while(plain).count().checked_sub(1)
    }
}

/// Random enough, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678);
        random.below(2);
        random
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A short key out of a small set: some share long prefixes, some are prefixes of others.
    pub fn key(&mut self, keys: u64) -> Vec<u8> {
        let number = self.below(keys);
        match number % 4 {
            0 => format!("{number:03}").into_bytes(),
            1 => format!("{:03}\0", number - 1).into_bytes(),
            2 => format!("{number:03}-a-long-key").into_bytes(),
            _ => format!("{:03}-a-long-key-and-more", number - 1).into_bytes(),
        }
    }
}

/// Operations in commit order, to be dealt out to sources.
pub struct History {
    pub entries: Vec<Entry>,
    pub deletes: Vec<RangeDelete>,
}

impl History {
    /// `count` random operations on about `keys` keys; the first has sequence number `first`.
    pub fn random(random: &mut Random, count: u64, keys: u64, first: SeqNo) -> History {
        let mut history = History { entries: Vec::new(), deletes: Vec::new() };
        for seq in first..first + count {
            match random.below(20) {
                0 => {
                    let (a, b) = (random.key(keys), random.key(keys));
                    let (start, end) = if a < b { (a, b) } else { (b, a) };
                    // Mostly narrow, or all older data would be gone.
                    let end = if random.below(4) > 0 {
                        end.min([&start[..], b"3"].concat())
                    } else {
                        end
                    };
                    if start < end {
                        history.deletes.push(RangeDelete { start, end, seq });
                    }
                }
                1..=5 => history.entries.push(Entry {
                    key: random.key(keys),
                    seq,
                    kind: Kind::Delete,
                    value: Vec::new(),
                }),
                6 => history.entries.push(Entry {
                    key: random.key(keys),
                    seq,
                    kind: Kind::Blob,
                    value: BlobRef { file: seq, bytes: 10 }.encode(),
                }),
                _ => history.entries.push(Entry {
                    key: random.key(keys),
                    seq,
                    kind: Kind::Put,
                    value: format!("value {seq}").into_bytes(),
                }),
            }
        }
        history
    }

    /// What a reader at `seq` sees: (key, value), sorted.
    pub fn visible(&self, seq: SeqNo) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut keys: Vec<&[u8]> = self.entries.iter().map(|e| e.key.as_slice()).collect();
        keys.sort_unstable();
        keys.dedup();
        let newest = |key: &[u8]| {
            self.entries.iter().filter(|e| e.key == key && e.seq <= seq).max_by_key(|e| e.seq)
        };
        let mut seen = Vec::new();
        for key in keys {
            let Some(entry) = newest(key) else { continue };
            let deleted = self.deletes.iter().any(|d| {
                d.seq <= seq
                    && d.seq > entry.seq
                    && d.start.as_slice() <= key
                    && key < d.end.as_slice()
            });
            if entry.kind != Kind::Delete && !deleted {
                seen.push((key.to_vec(), entry.value.clone()));
            }
        }
        seen
    }
}

/// The newest sequence number a test wants to read at: any, or all.
pub fn read_seq(random: &mut Random, last: SeqNo) -> SeqNo {
    if random.below(2) == 0 { SEQ_MAX } else { random.below(last + 1) }
}

/// A simulated disk with tables on it.
pub struct Disk {
    pub fs: MemFs,
    pub tables: Arc<TableEnv>,
    next: u64,
}

impl Disk {
    pub fn new() -> Disk {
        let fs = MemFs::new();
        fs.create_dir_all(Path::new("/t")).unwrap();
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        let tables = TableEnv::new(env, 1 << 20, Arc::new(Recorder::new()));
        Disk { fs, tables, next: 1 }
    }

    /// Writes a table with small blocks.
    pub fn table(&mut self, mut entries: Vec<Entry>, deletes: &RangeDeletes) -> Arc<Table> {
        entries.sort_by(|a, b| key::compare(&a.key, a.seq, &b.key, b.seq));
        let path = Path::new("/t").join(format!("{}.table", self.next));
        let options = TableOptions {
            codec: Codec::None,
            why: Why::Set,
            dictionary: TableDictionary::None,
            block_bytes: 200,
            filter_bits: 10,
            tree: 1,
        };
        let mut writer = TableWriter::new(self.fs.create(&path).unwrap(), self.next, options);
        for entry in &entries {
            writer.add(&entry.key, entry.seq, entry.kind, &entry.value).unwrap();
        }
        writer.add_range_deletes(deletes);
        let meta = writer.finish().unwrap();
        self.next += 1;
        Table::new(meta, path, &self.tables)
    }

    /// Writes tables that do not overlap: entries and range deletes are cut at `cuts`, ascending.
    /// Parts without either get no table.
    pub fn run(&mut self, history: &History, cuts: &[Vec<u8>]) -> Vec<Arc<Table>> {
        let deletes = RangeDeletes::new(history.deletes.clone());
        let mut tables = Vec::new();
        for at in 0..=cuts.len() {
            let start = at.checked_sub(1).map_or(&[][..], |before| &cuts[before]);
            let end = cuts.get(at).map(Vec::as_slice);
            let inside = |key: &[u8]| key >= start && end.is_none_or(|end| key < end);
            let entries: Vec<Entry> =
                history.entries.iter().filter(|e| inside(&e.key)).cloned().collect();
            let deletes = deletes.clip(start, end);
            if !entries.is_empty() || !deletes.is_empty() {
                tables.push(self.table(entries, &deletes));
            }
        }
        tables
    }
}
