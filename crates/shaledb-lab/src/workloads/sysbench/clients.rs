//! The clients of the sysbench pattern: who loads tables, who does transactions.

use super::ids::Ids;
use super::rows::{C_BYTES, ENTRY_BYTES, PAD_BYTES, ROW_BYTES, Sbtest, fill_text};
use super::step::{POINT_SELECTS, Step};
use super::store::{Column, Conflict, Oltp, OltpSession};
use crate::generate::Random;
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::Result;
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kinds of operation of the load: a commit of rows, and the index of a table.
pub(super) const LOADS: &[&str] = &["load", "create index"];

/// Kinds of operation of the other steps: a conflict is a transaction that was rolled back because
/// of another one; its time is that of the transaction that takes its place as well.
pub(super) const TRANSACTIONS: &[&str] = &["transaction", "conflict"];
const TRANSACTION: usize = 0;
const CONFLICT: usize = 1;

/// Rows to a commit of the load.
const ROWS_PER_COMMIT: u64 = 1000;

/// Loads tables in the order of id, then creates the index of each.
pub(super) struct Loader<'s, S, T> {
    pub(super) store: &'s S,
    pub(super) session: T,
    pub(super) tables: Vec<u32>,
    pub(super) rows: u64,
    pub(super) seed: u64,
}

impl<S: Oltp, T: OltpSession> Client for Loader<'_, S, T> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        for &table in &self.tables {
            let mut random = Random::named(self.seed, "sysbench load", table.into());
            let (mut c, mut pad) = ([0; C_BYTES], [0; PAD_BYTES]);
            let mut id = 1;
            while id <= self.rows {
                if !pace.begin() {
                    return Ok(());
                }
                let count = ROWS_PER_COMMIT.min(self.rows - id + 1);
                for id in id..id + count {
                    fill_text(&mut random, &mut c);
                    fill_text(&mut random, &mut pad);
                    let k = 1 + random.below(self.rows) as u32;
                    self.session.load(table, &Sbtest { id, k, c: &c, pad: &pad })?;
                }
                self.session.commit()?;
                id += count;
                pace.end_group(0, count, Did::added(count * ROW_BYTES));
            }
            let rows = self.store.create_index(table)?;
            pace.end_group(1, 0, Did::added(rows * ENTRY_BYTES));
        }
        Ok(())
    }
}

/// Does the transactions of a step.
pub(super) struct Requests<T> {
    pub(super) session: T,
    pub(super) step: Step,
    pub(super) random: Random,
    pub(super) ids: Ids,
    pub(super) rows: u64,
    pub(super) tables: u64,
    /// The last id of each table, for inserts.
    pub(super) last: Arc<Vec<AtomicU64>>,
    pub(super) c: [u8; C_BYTES],
    pub(super) pad: [u8; PAD_BYTES],
}

impl<T: OltpSession> Client for Requests<T> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            match self.transaction() {
                Ok(did) => pace.end(TRANSACTION, did),
                Err(error) if error.is::<Conflict>() => {
                    self.session.rollback()?;
                    pace.end_group(CONFLICT, 0, Did::default());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<T: OltpSession> Requests<T> {
    #[inline]
    fn table(&mut self) -> u32 {
        self.random.below(self.tables) as u32
    }

    #[inline]
    fn id(&mut self) -> u64 {
        self.ids.pick(&mut self.random)
    }

    #[inline]
    fn transaction(&mut self) -> Result<Did> {
        let mut did = Did::default();
        match self.step {
            Step::UpdateIndex => {
                self.update_index(&mut did)?;
                did.found = self.session.commit()? > 0;
            }
            Step::UpdateNonindex => {
                self.update_nonindex(&mut did)?;
                did.found = self.session.commit()? > 0;
            }
            Step::ReadOnly(range) => {
                self.session.begin()?;
                self.reads(range, &mut did)?;
                self.session.commit()?;
            }
            Step::ReadWrite(range) => {
                self.session.begin()?;
                self.reads(range, &mut did)?;
                self.update_index(&mut did)?;
                self.update_nonindex(&mut did)?;
                self.delete_and_insert(&mut did)?;
                did.found |= self.session.commit()? > 0;
            }
            Step::PointQuery => self.point(Column::C, &mut did)?,
            Step::Select => self.point(Column::Pad, &mut did)?,
            Step::Insert => {
                let table = self.table();
                let id = 1 + self.last[table as usize].fetch_add(1, Ordering::Relaxed);
                self.insert(table, id)?;
                let found = self.session.commit()? > 0;
                did = Did { found, ..Did::added(ROW_BYTES + ENTRY_BYTES) };
            }
            Step::Load | Step::WaitIdle => {}
        }
        Ok(did)
    }

    #[inline]
    fn point(&mut self, column: Column, did: &mut Did) -> Result<()> {
        let (table, id) = (self.table(), self.id());
        self.point_of(table, id, column, did)
    }

    #[inline]
    fn point_of(&mut self, table: u32, id: u64, column: Column, did: &mut Did) -> Result<()> {
        let read = &mut did.read;
        did.found |= self.session.point(table, id, column, &mut |text| {
            *read += black_box(text).len() as u64;
        })?;
        Ok(())
    }

    #[inline]
    fn ids_of(&mut self, range: u32) -> (u32, RangeInclusive<u64>) {
        let (table, id) = (self.table(), self.id());
        (table, id..=id + u64::from(range) - 1)
    }

    fn reads(&mut self, range: u32, did: &mut Did) -> Result<()> {
        let table = self.table();
        for _ in 0..POINT_SELECTS {
            let id = self.id();
            self.point_of(table, id, Column::C, did)?;
        }
        let (table, ids) = self.ids_of(range);
        let mut rows = self.session.range(table, ids, &mut |c| {
            black_box(c);
        })?;
        let (table, ids) = self.ids_of(range);
        let (sum, summed) = self.session.sum(table, ids)?;
        black_box(sum);
        for distinct in [false, true] {
            let (table, ids) = self.ids_of(range);
            rows += self.session.ordered(table, ids, distinct, &mut |c| {
                black_box(c);
            })?;
        }
        did.read += rows * C_BYTES as u64 + summed * 4;
        Ok(())
    }

    #[inline]
    fn update_index(&mut self, did: &mut Did) -> Result<()> {
        let (table, id) = (self.table(), self.id());
        did.written += ROW_BYTES + 2 * ENTRY_BYTES;
        self.session.update_index(table, id)
    }

    #[inline]
    fn update_nonindex(&mut self, did: &mut Did) -> Result<()> {
        let (table, id) = (self.table(), self.id());
        fill_text(&mut self.random, &mut self.c);
        did.written += ROW_BYTES;
        self.session.update_nonindex(table, id, &self.c)
    }

    #[inline]
    fn delete_and_insert(&mut self, did: &mut Did) -> Result<()> {
        let (table, id) = (self.table(), self.id());
        // What the delete writes is the keys.
        did.written += 8 + ENTRY_BYTES + ROW_BYTES + ENTRY_BYTES;
        self.session.delete(table, id)?;
        self.insert(table, id)
    }

    #[inline]
    fn insert(&mut self, table: u32, id: u64) -> Result<()> {
        let k = 1 + self.random.below(self.rows) as u32;
        fill_text(&mut self.random, &mut self.c);
        fill_text(&mut self.random, &mut self.pad);
        self.session.insert(table, &Sbtest { id, k, c: &self.c, pad: &self.pad })
    }
}
