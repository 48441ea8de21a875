//! Runs: what a transaction has written and not committed, sorted, in tables that are its own.
//!
//! The files go as soon as nobody reads them any more, at the latest when the database is opened
//! anew: no edit names them, and nobody needs them but the transaction and its scans.

use crate::base::cursor::cursor_by_variant;
use crate::base::error::{Error, Result};
use crate::base::key::{SeqNo, WRITE_SET_FIRST};
use crate::iter::concat::{Concat, Run, ScanPart};
use crate::memtable::MemCursor;
use crate::table::{BulkScan, Table};
use crate::version::Level;
use std::sync::Arc;

/// So many runs of about one size are made one, so that a transaction of any size has few.
pub const RUNS_TO_MERGE: usize = 8;

/// A run of one tree, not empty.
#[derive(Clone, Debug)]
pub struct SpilledRun {
    level: Arc<Level>,
    tier: u32,
    first: SeqNo,
    last: SeqNo,
}

impl SpilledRun {
    /// The run of these tables, which do not overlap; `None` if there are none. `tier` says how
    /// often its entries were merged.
    pub fn new(tables: Vec<Arc<Table>>, tier: u32) -> Result<Option<SpilledRun>> {
        let seqs = |table: &Arc<Table>| (table.meta.min_seq, table.meta.max_seq);
        let both = |a: (SeqNo, SeqNo), b: (SeqNo, SeqNo)| (a.0.min(b.0), a.1.max(b.1));
        let Some((first, last)) = tables.iter().map(seqs).reduce(both) else { return Ok(None) };
        assert!(WRITE_SET_FIRST <= first && first <= last, "a run has what is not committed");
        let level = Arc::new(Level::new(1, tables).map_err(Error::InvalidArgument)?);
        Ok(Some(SpilledRun { level, tier, first, last }))
    }

    /// The tables as a level.
    pub fn level(&self) -> &Arc<Level> {
        &self.level
    }

    /// How often its entries were merged.
    pub fn tier(&self) -> u32 {
        self.tier
    }

    /// The number of the oldest entry.
    pub fn first(&self) -> SeqNo {
        self.first
    }

    /// The number of the newest entry.
    pub fn last(&self) -> SeqNo {
        self.last
    }

    /// The bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.level.bytes()
    }

    /// The table that may have `key`.
    pub fn find(&self, key: &[u8]) -> Option<&Arc<Table>> {
        self.level.find(key)
    }
}

/// How many bytes of a run are read at once: there may be hundreds of runs.
const READ_BYTES: u64 = 128 << 10;

/// One source of a walk through all that a transaction has written, forward only.
pub enum RunSource {
    /// What is in memory.
    Memtable(MemCursor),
    /// A run.
    Run(Box<Concat<BulkScan>>),
}

impl RunSource {
    /// All of a run.
    pub fn new(run: &SpilledRun) -> RunSource {
        let level = run.level.clone();
        let range = 0..level.len();
        let run = Run::Level { level, range };
        RunSource::Run(Box::new(Concat::new(run, ScanPart::all(READ_BYTES))))
    }
}

cursor_by_variant!(RunSource, cursor in RunSource::Memtable(cursor), RunSource::Run(cursor));
