//! The clients of the insert benchmark: who inserts and deletes, who queries, who creates indexes.

use super::over_kv::INDEX_BYTES;
use super::purchase::Purchase;
use super::rows::{Rows, time_of};
use super::store::{Hit, Index, Sales, SalesSession, Start};
use crate::generate::Random;
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::{Failure, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kinds of operation of who writes: an insert's response time is that of its whole commit.
pub const WRITES: &[&str] = &["insert", "delete"];
const INSERT: usize = 0;
const DELETE: usize = 1;

/// Kinds of operation of who queries: range queries by index, in the order of [`Index::ALL`].
pub const QUERIES: &[&str] = &["pk", "price", "register", "date", "point"];
const POINT: usize = 4;

/// A commit takes no more rows once it has so many bytes: a transaction is bound by memory, not by
/// rows.
const COMMIT_BYTES: u64 = 4 << 20;

/// Which rows a table has: from `oldest` to the one before `next`.
#[derive(Debug)]
pub(super) struct Window {
    oldest: AtomicU64,
    next: AtomicU64,
}

impl Window {
    pub(super) fn of<S: Sales>(store: &S, table: u32) -> Result<Arc<Window>> {
        let (oldest, next) = match store.ids(table)? {
            Some(ids) => (*ids.start(), ids.end() + 1),
            None => (1, 1),
        };
        Ok(Arc::new(Window { oldest: oldest.into(), next: next.into() }))
    }

    fn ids(&self) -> (u64, u64) {
        (self.oldest.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed))
    }
}

/// Inserts rows at the end of a table, and deletes as many at its beginning.
pub(super) struct Writer<S> {
    pub(super) session: S,
    pub(super) rows: Rows,
    pub(super) window: Arc<Window>,
    pub(super) rows_per_commit: u64,
    /// Rows still to insert.
    pub(super) left: u64,
    pub(super) deletes: bool,
    /// Bytes of the index entries of a row.
    pub(super) index_bytes: u64,
}

impl<S: SalesSession> Client for Writer<S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        let (mut oldest, mut next) = self.window.ids();
        while self.left > 0 && pace.begin() {
            let first = next;
            let last = first + self.rows_per_commit.min(self.left);
            let mut written = 0;
            while next < last && written < COMMIT_BYTES {
                let row = self.rows.row(next);
                written += row.bytes() + self.index_bytes;
                self.session.insert(&row)?;
                next += 1;
            }
            self.session.commit()?;
            let count = next - first;
            self.left -= count;
            self.window.next.store(next, Ordering::Relaxed);
            pace.end_group(INSERT, count, Did::added(written));
            if self.deletes {
                // Before the rows go, so that a query beside this seldom asks for one that is gone.
                self.window.oldest.store(oldest + count, Ordering::Relaxed);
                let deleted = self.session.delete(oldest..oldest + count)?;
                self.session.commit()?;
                if deleted != count {
                    return Err(missing(oldest, count, deleted));
                }
                oldest += count;
                // As many rows went as came; how large they were, those that came tell.
                let grown = -(written as i64);
                // What a delete writes is the keys.
                let written = count * (KEY_BYTES + self.index_bytes);
                let did = Did { written, found: true, grown, ..Did::default() };
                pace.end_group(DELETE, 0, did);
            }
        }
        Ok(())
    }
}

/// Bytes of the primary key.
const KEY_BYTES: u64 = 8;

fn missing(oldest: u64, count: u64, deleted: u64) -> Failure {
    format!(
        "of the {count} oldest rows from transactionid {oldest}, {deleted} were there to be \
         deleted: the engine lost rows, or somebody else writes to the table"
    )
    .into()
}

/// Asks for a few rows in the order of an index.
pub(super) struct RangeQueries<S> {
    pub(super) session: S,
    pub(super) random: Random,
    pub(super) window: Arc<Window>,
    pub(super) limit: u64,
    /// Indexes that there are.
    pub(super) indexes: u64,
    pub(super) registers: u64,
    pub(super) customers: u64,
    pub(super) prices: u64,
}

impl<S> RangeQueries<S> {
    #[inline]
    fn start(&mut self) -> Start {
        let index = Index::ALL[self.random.below(self.indexes) as usize];
        let (oldest, next) = self.window.ids();
        let random = &mut self.random;
        let id = oldest + random.below((next - oldest).max(1));
        let (first, second) = match index {
            Index::Primary => (id, 0),
            Index::Price => (random.below(self.prices), random.below(self.customers)),
            Index::Register => (random.below(self.registers), random.below(self.prices)),
            Index::Date => (random.below(self.prices), time_of(id)),
        };
        Start { index, first, second }
    }
}

impl<S: SalesSession> Client for RangeQueries<S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let start = self.start();
            let mut sum = 0;
            let rows = self.session.range(start, self.limit, &mut |hit| sum ^= hit.id)?;
            std::hint::black_box(sum);
            let read = rows * std::mem::size_of::<Hit>() as u64;
            pace.end(start.index as usize, Did { read, found: rows > 0, ..Did::default() });
        }
        Ok(())
    }
}

/// Asks for single rows by primary key.
pub(super) struct PointQueries<S> {
    pub(super) session: S,
    pub(super) random: Random,
    pub(super) window: Arc<Window>,
}

impl<S: SalesSession> Client for PointQueries<S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let (oldest, next) = self.window.ids();
            let id = oldest + self.random.below((next - oldest).max(1));
            let mut read = 0;
            let found = self.session.point(id, &mut |row: &Purchase<'_>| read = row.bytes())?;
            pace.end(POINT, Did { read, found, ..Did::default() });
        }
        Ok(())
    }
}

/// Creates the secondary indexes of a table.
pub(super) struct Indexer<'s, S> {
    pub(super) store: &'s S,
    pub(super) table: u32,
}

impl<S: Sales> Client for Indexer<'_, S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        if pace.begin() {
            let rows = self.store.create_indexes(self.table)?;
            pace.end_group(0, rows, Did::added(rows * INDEX_BYTES));
        }
        Ok(())
    }
}
