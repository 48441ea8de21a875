//! The insert benchmark's tables: rows that come and go in transactions, range and point queries.

use super::bytes::bytes;
use super::same::same;
use crate::generate::Random;
use crate::stores::engine::{Failure, Result};
use crate::workloads::insert::purchase::Purchase;
use crate::workloads::insert::store::{Hit, Index, Sales, SalesSession, Start};
use std::ops::Range;

const TABLES: u32 = 2;
const DATA_BYTES: usize = 120;

#[derive(Clone, Debug, PartialEq)]
struct Owned {
    id: u64,
    time: u64,
    columns: [u32; 4],
    data: Vec<u8>,
}

impl Owned {
    fn of(row: &Purchase<'_>) -> Owned {
        let columns = [row.register, row.customer, row.product, row.price];
        Owned { id: row.id, time: row.time, columns, data: row.data.to_vec() }
    }

    fn row(&self) -> Purchase<'_> {
        let [register, customer, product, price] = self.columns;
        let &Owned { id, time, ref data, .. } = self;
        Purchase { id, time, register, customer, product, price, data }
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Deletes rows, then adds some, in one transaction.
    Transaction(Option<Range<u64>>, Vec<Owned>),
    Range(Start, u64),
    Point(u64),
}

#[derive(Debug, PartialEq)]
enum Answer {
    Deleted(u64),
    Hits(Vec<Hit>),
    Row(Option<Owned>),
}

fn apply<S: SalesSession>(session: &mut S, op: &Op) -> Result<Answer> {
    Ok(match op {
        Op::Transaction(ids, rows) => {
            let mut deleted = 0;
            if let Some(ids) = ids {
                deleted = session.delete(ids.clone())?;
            }
            for row in rows {
                session.insert(&row.row())?;
            }
            session.commit()?;
            Answer::Deleted(deleted)
        }
        Op::Range(start, limit) => {
            let mut hits = Vec::new();
            let count = session.range(*start, *limit, &mut |hit| hits.push(*hit))?;
            same(op, count, hits.len() as u64)?;
            Answer::Hits(hits)
        }
        Op::Point(id) => {
            let mut row = None;
            let found = session.point(*id, &mut |found| row = Some(Owned::of(found)))?;
            same(op, found, row.is_some())?;
            Answer::Row(row)
        }
    })
}

/// Makes operations; ids are not used again.
struct Ops {
    random: Random,
    next: u64,
    indexes: u64,
}

impl Ops {
    fn row(&mut self) -> Owned {
        let random = &mut self.random;
        // Gaps, so that not every id is there.
        self.next += 1 + random.below(2);
        // Few values of each column, so that rows meet in the indexes.
        let columns = [7, 20, 5, 9].map(|values| random.below(values) as u32);
        let time = 1_000 + random.below(30);
        Owned { id: self.next, time, columns, data: bytes(random, DATA_BYTES as u64) }
    }

    fn any(&mut self) -> Op {
        let id = self.random.below(self.next + 20);
        match self.random.below(10) {
            0..4 => {
                let count = 1 + self.random.below(20);
                let rows = (0..count).map(|_| self.row()).collect();
                Op::Transaction(None, rows)
            }
            4 => Op::Transaction(Some(id..id + self.random.below(30)), Vec::new()),
            5 => {
                let ids = id..id + self.random.below(10);
                Op::Transaction(Some(ids), vec![self.row()])
            }
            6..9 => {
                let index = Index::ALL[self.random.below(self.indexes) as usize];
                let random = &mut self.random;
                let (first, second) = match index {
                    Index::Primary => (id, 0),
                    Index::Price => (random.below(11), random.below(22)),
                    Index::Register => (random.below(9), random.below(11)),
                    Index::Date => (random.below(11), 995 + random.below(40)),
                };
                Op::Range(Start { index, first, second }, 1 + random.below(30))
            }
            _ => Op::Point(id),
        }
    }
}

fn run<A: Sales, B: Sales>(
    tested: &A,
    model: &B,
    ops: &mut Ops,
    table: u32,
    steps: u32,
) -> Result<()> {
    let (mut one, mut other) = (tested.session(table)?, model.session(table)?);
    for step in 0..steps {
        let op = ops.any();
        apply(&mut one, &op)
            .and_then(|answer| same(&op, answer, apply(&mut other, &op)?))
            .map_err(|error| Failure::from(format!("step {step}: {error}")))?;
    }
    Ok(())
}

/// Makes tables in both, and does `steps` random operations on each, with secondary indexes and
/// without any. The error names the first answer that differs.
///
/// # Errors
///
/// A store fails, or answers otherwise than the other.
pub fn sales<A: Sales, B: Sales>(tested: &A, model: &B, seed: u64, steps: u32) -> Result<()> {
    let named = |error: Failure| Failure::from(format!("{}, seed {seed}: {error}", tested.name()));
    for indexed in [true, false] {
        tested.create(TABLES, indexed, DATA_BYTES)?;
        model.create(TABLES, indexed, DATA_BYTES)?;
        for table in 0..TABLES {
            let random = Random::named(seed, "agreement sales", table.into());
            let indexes = if indexed { 4 } else { 1 };
            let mut ops = Ops { random, next: 0, indexes };
            same(&"ids", tested.ids(table)?, model.ids(table)?).map_err(named)?;
            run(tested, model, &mut ops, table, steps / 2).map_err(named)?;
            same(&"is indexed", tested.is_indexed(table)?, indexed).map_err(named)?;
            if !indexed {
                let made = (tested.create_indexes(table)?, model.create_indexes(table)?);
                same(&"rows of the index", made.0, made.1).map_err(named)?;
                same(&"is indexed", tested.is_indexed(table)?, true).map_err(named)?;
                ops.indexes = 4;
                run(tested, model, &mut ops, table, steps / 2).map_err(named)?;
            }
            same(&"ids", tested.ids(table)?, model.ids(table)?).map_err(named)?;
        }
    }
    Ok(())
}
