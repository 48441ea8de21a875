//! Who does what in a step of the sysbench pattern.

use super::null::NullOltp;
use super::rows::{C_BYTES, ENTRY_BYTES, Ids, PAD_BYTES, ROW_BYTES, Sbtest, fill_text};
use super::store::{Column, Conflict, Oltp, OltpSession};
use super::{POINT_SELECTS, Step, SysbenchOptions};
use crate::engine::{Metrics, Result};
use crate::generate::Random;
use crate::pace::{Client, Did, Pace};
use crate::row::Row;
use crate::step::{Progress, Settle};
use crate::work::{Named, Work, run_work};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Kinds of operation of the load: a commit of rows, and the index of a table.
const LOADS: &[&str] = &["load", "create index"];

/// Kinds of operation of the other steps: a conflict is a transaction that was rolled back because
/// of another one; its time is that of the transaction that takes its place as well.
const TRANSACTIONS: &[&str] = &["transaction", "conflict"];
const TRANSACTION: usize = 0;
const CONFLICT: usize = 1;

/// Rows to a commit of the load.
const ROWS_PER_COMMIT: u64 = 1000;

/// Loads tables in the order of id, then creates the index of each.
struct Loader<'s, S, T> {
    store: &'s S,
    session: T,
    tables: Vec<u32>,
    rows: u64,
    seed: u64,
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
                pace.end_group(0, count, added(count * ROW_BYTES));
            }
            let rows = self.store.create_index(table)?;
            pace.end_group(1, 0, added(rows * ENTRY_BYTES));
        }
        Ok(())
    }
}

/// Rows or entries of so many bytes that were not there before.
fn added(written: u64) -> Did {
    Did { written, found: true, grown: written as i64, ..Did::default() }
}

/// Does the transactions of a step.
struct Requests<T> {
    session: T,
    step: Step,
    random: Random,
    ids: Ids,
    rows: u64,
    tables: u64,
    /// The last id of each table, for inserts.
    last: Arc<Vec<AtomicU64>>,
    c: [u8; C_BYTES],
    pad: [u8; PAD_BYTES],
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
                did = Did { found, ..added(ROW_BYTES + ENTRY_BYTES) };
            }
            Step::Load | Step::Settle => {}
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

/// The clients of a step; the load makes its tables here.
pub fn work<'s, S: Oltp>(
    store: &'s S,
    options: &SysbenchOptions,
    step: Step,
    clients: u32,
    seed: u64,
) -> Result<Work<'s>> {
    let mut work: Vec<Box<dyn Client + 's>> = Vec::new();
    match step {
        Step::Settle => {
            work.push(Box::new(Settle(store)));
            return Ok(Work::of_ops("settle", &["settle"], work, None));
        }
        Step::Load => {
            store.create(options.tables)?;
            for client in 0..clients {
                let tables = (client..options.tables).step_by(clients as usize).collect();
                let session = store.session()?;
                work.push(Box::new(Loader { store, session, tables, rows: options.rows, seed }));
            }
            let rows = options.rows * u64::from(options.tables);
            return Ok(Work::of_ops("row", LOADS, work, Some(rows)));
        }
        _ => {}
    }
    let last = match step {
        Step::Insert => {
            let last = |table| store.last_id(table).map(AtomicU64::new);
            (0..options.tables).map(last).collect::<Result<Vec<_>>>()?
        }
        _ => Vec::new(),
    };
    let last = Arc::new(last);
    for client in 0..clients {
        work.push(Box::new(Requests {
            session: store.session()?,
            step,
            random: Random::named(seed, &format!("sysbench {step} {clients}"), client.into()),
            ids: Ids::new(options.distribution, options.rows),
            rows: options.rows,
            tables: options.tables.into(),
            last: last.clone(),
            c: [0; C_BYTES],
            pad: [0; PAD_BYTES],
        }));
    }
    let unit = if step.statements() > 1 { "transaction" } else { "query" };
    let seconds = Some(options.seconds);
    Ok(Work { seconds, ..Work::of_ops(unit, TRANSACTIONS, work, None) })
}

/// CPU microseconds per operation of a step's client itself, measured on a store that does nothing,
/// and 0 for a writer, since there is none.
///
/// # Errors
///
/// None that is known.
pub fn client_costs(options: &SysbenchOptions, step: Step, seed: u64) -> Result<(f64, f64)> {
    if step == Step::Settle {
        return Ok((0.0, 0.0));
    }
    work(&NullOltp, options, step, 1, seed)?.client_costs()
}

/// Runs a step, with so many clients, on a store that is in the state the steps before it left.
/// `costs` is of [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails.
pub fn run<S: Oltp>(
    store: &S,
    options: &SysbenchOptions,
    (step, clients): (Step, u32),
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let work = work(store, options, step, clients, seed)?;
    let before = store.metrics()?;
    let mut row = run_work(store, named, work, costs, tell)?;
    row.extra.extend(extra(step, &before));
    Ok(row)
}

/// Figures of this pattern alone: how many statements an operation has, and what the engine counts
/// in level 0 when the step begins, for that decides what a step that only reads measures.
pub fn extra(step: Step, before: &Metrics) -> BTreeMap<String, f64> {
    let mut extra = BTreeMap::from([("statements_per_op".to_owned(), step.statements() as f64)]);
    if let Some(level) = before.levels.iter().find(|level| level.level == 0) {
        extra.insert("level0_files_before".to_owned(), level.files as f64);
        extra.insert("level0_bytes_before".to_owned(), level.bytes as f64);
    }
    extra
}
