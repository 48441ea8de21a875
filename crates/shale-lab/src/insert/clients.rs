//! Who does what in a step of the insert benchmark.

use super::null::NullSales;
use super::over_kv::INDEX_BYTES;
use super::rows::{Noise, Purchase, Rows, prices, time_of};
use super::size::predicted_bytes;
use super::store::{Hit, Index, Sales, SalesSession, Start};
use super::{InsertOptions, Step};
use crate::engine::{Failure, Result};
use crate::generate::Random;
use crate::pace::{Client, Did, Pace};
use crate::row::Row;
use crate::step::{Progress, Settle, share};
use crate::work::{Named, Work, run_work};
use std::collections::BTreeMap;
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
struct Window {
    oldest: AtomicU64,
    next: AtomicU64,
}

impl Window {
    fn of<S: Sales>(store: &S, table: u32) -> Result<Arc<Window>> {
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
struct Writer<S> {
    session: S,
    rows: Rows,
    window: Arc<Window>,
    rows_per_commit: u64,
    /// Rows still to insert.
    left: u64,
    deletes: bool,
    /// Bytes of the index entries of a row.
    index_bytes: u64,
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
            let grown = written as i64;
            pace.end_group(INSERT, count, Did { written, found: true, grown, ..Did::default() });
            if self.deletes {
                // Before the rows go, so that a query beside this seldom asks for one that is gone.
                self.window.oldest.store(oldest + count, Ordering::Relaxed);
                let deleted = self.session.delete(oldest..oldest + count)?;
                self.session.commit()?;
                if deleted != count {
                    return Err(missing(oldest, count, deleted));
                }
                oldest += count;
                // What a delete writes is the keys.
                let written = count * (KEY_BYTES + self.index_bytes);
                // As many rows went as came; how large they were, those that came tell.
                let did = Did { written, found: true, grown: -grown, ..Did::default() };
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
struct RangeQueries<S> {
    session: S,
    random: Random,
    window: Arc<Window>,
    limit: u64,
    /// Indexes that there are.
    indexes: u64,
    registers: u64,
    customers: u64,
    prices: u64,
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
struct PointQueries<S> {
    session: S,
    random: Random,
    window: Arc<Window>,
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
struct Indexer<'s, S> {
    store: &'s S,
    table: u32,
}

impl<S: Sales> Client for Indexer<'_, S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        if pace.begin() {
            let rows = self.store.create_indexes(self.table)?;
            let (written, grown) = (rows * INDEX_BYTES, (rows * INDEX_BYTES) as i64);
            pace.end_group(0, rows, Did { written, found: true, grown, ..Did::default() });
        }
        Ok(())
    }
}

/// The clients of a step; a load makes its tables here.
pub fn work<'s, S: Sales>(
    store: &'s S,
    options: &InsertOptions,
    step: Step,
    seed: u64,
) -> Result<Work<'s>> {
    if let Step::Load { indexed } = step {
        store.create(options.clients, indexed, options.data_bytes.most)?;
    }
    let tables = 0..options.clients;
    let each = |client: &dyn Fn(u32) -> Result<Box<dyn Client + 's>>| {
        tables.clone().map(client).collect::<Result<Vec<_>>>()
    };
    match step {
        Step::Index => {
            let clients = each(&|table| Ok(Box::new(Indexer { store, table })))?;
            Ok(Work::of_ops("row", &["create"], clients, None))
        }
        Step::Settle => {
            Ok(Work::of_ops("settle", &["settle"], vec![Box::new(Settle(store))], None))
        }
        Step::Load { .. } | Step::Insert { .. } => {
            let noise = Noise::new(seed, options);
            let rows = options.rows_of(step).unwrap_or(0);
            let clients = each(&|table| {
                let left = share(rows, options.clients as usize, table as usize);
                let window = Window::of(store, table)?;
                Ok(Box::new(writer(store, options, step, &noise, seed, table, left, window)?))
            })?;
            Ok(Work::of_ops("insert", WRITES, clients, Some(rows)))
        }
        Step::Query { rate, .. } => queries(store, options, step, rate, seed),
    }
}

#[allow(clippy::too_many_arguments)]
fn writer<'s, S: Sales>(
    store: &'s S,
    options: &InsertOptions,
    step: Step,
    noise: &Noise,
    seed: u64,
    table: u32,
    left: u64,
    window: Arc<Window>,
) -> Result<Writer<S::Session<'s>>> {
    Ok(Writer {
        session: store.session(table)?,
        rows: Rows::new(options, noise, seed, &step.to_string(), table.into()),
        window,
        rows_per_commit: options.rows_per_commit_of(step),
        left,
        deletes: !options.no_deletes && !matches!(step, Step::Load { .. }),
        index_bytes: if store.is_indexed(table)? { INDEX_BYTES } else { 0 },
    })
}

fn queries<'s, S: Sales>(
    store: &'s S,
    options: &InsertOptions,
    step: Step,
    rate: u32,
    seed: u64,
) -> Result<Work<'s>> {
    let noise = Noise::new(seed, options);
    let mut clients: Vec<Box<dyn Client + 's>> = Vec::new();
    let mut writers: Vec<Box<dyn Client + 's>> = Vec::new();
    for table in 0..options.clients {
        let window = Window::of(store, table)?;
        let session = store.session(table)?;
        let random = Random::named(seed, &format!("{step} queries"), table.into());
        if matches!(step, Step::Query { point: true, .. }) {
            let window = window.clone();
            clients.push(Box::new(PointQueries { session, random, window }));
        } else {
            clients.push(Box::new(RangeQueries {
                session,
                random,
                window: window.clone(),
                limit: options.rows_per_query,
                indexes: if store.is_indexed(table)? { Index::ALL.len() as u64 } else { 1 },
                registers: options.cash_registers.into(),
                customers: options.customers.into(),
                prices: prices(options),
            }));
        }
        if rate > 0 {
            let left = u64::MAX;
            let writer = writer(store, options, step, &noise, seed, table, left, window)?;
            writers.push(Box::new(writer));
        }
    }
    Ok(Work {
        seconds: Some(options.seconds),
        writers,
        writer_rate: f64::from(rate) * f64::from(options.clients),
        ..Work::of_ops("query", QUERIES, clients, None)
    })
}

/// CPU microseconds per operation of a step's client and of its writer themselves, measured on a
/// store that does nothing.
///
/// # Errors
///
/// None that is known.
pub fn client_costs(options: &InsertOptions, step: Step, seed: u64) -> Result<(f64, f64)> {
    if matches!(step, Step::Index | Step::Settle) {
        // What they do is the table layer's work and the engine's.
        return Ok((0.0, 0.0));
    }
    let endless = InsertOptions { rows: u64::MAX, inserts: u64::MAX, ..options.clone() };
    work(&NullSales, &InsertOptions { clients: 1, ..endless }, step, seed)?.client_costs()
}

/// Runs a step on a store that is in the state the steps before it left. `costs` is of
/// [`client_costs`]; `tell` is called once a second.
///
/// # Errors
///
/// The store fails, or lost rows.
pub fn run<S: Sales>(
    store: &S,
    options: &InsertOptions,
    step: Step,
    seed: u64,
    costs: (f64, f64),
    named: &Named<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Row> {
    let work = work(store, options, step, seed)?;
    run_work(store, named, work, costs, tell)
}

/// Figures of this benchmark alone, at the end of a step: `table_rows`; and, without secondary
/// indexes, `predicted_size_bytes` and how the measured size relates to it.
pub fn extra<S: Sales>(
    store: &S,
    options: &InsertOptions,
    compressed: bool,
    size_bytes: u64,
) -> Result<BTreeMap<String, f64>> {
    let (mut rows, mut indexed) = (0, false);
    for table in 0..options.clients {
        rows += store.ids(table)?.map_or(0, |ids| ids.end() - ids.start() + 1);
        indexed |= store.is_indexed(table)?;
    }
    let mut extra = BTreeMap::from([("table_rows".to_owned(), rows as f64)]);
    if !indexed && rows > 0 {
        let predicted = predicted_bytes(options, rows, compressed);
        extra.insert("predicted_size_bytes".to_owned(), predicted);
        extra.insert("size_per_predicted".to_owned(), size_bytes as f64 / predicted);
    }
    Ok(extra)
}
