//! The sysbench pattern's tables: single statements and transactions.

use super::same::same;
use crate::generate::Random;
use crate::stores::engine::{Failure, Result};
use crate::workloads::sysbench::rows::{C_BYTES, PAD_BYTES, Sbtest, fill_text};
use crate::workloads::sysbench::store::{Column, Oltp, OltpSession};
use std::ops::RangeInclusive;

const TABLES: u32 = 2;
const ROWS: u64 = 60;

#[derive(Clone, Debug)]
enum Read {
    Point(u64, bool),
    Range(RangeInclusive<u64>),
    Sum(RangeInclusive<u64>),
    Ordered(RangeInclusive<u64>, bool),
}

#[derive(Clone, Debug)]
enum Write {
    UpdateIndex(u64),
    UpdateNonindex(u64, [u8; C_BYTES]),
    Delete(u64),
    Insert(u64, u32, [u8; C_BYTES], [u8; PAD_BYTES]),
}

/// Statements on a table: one alone, or a transaction that is committed or rolled back.
#[derive(Clone, Debug)]
struct Op {
    table: u32,
    transaction: bool,
    reads: Vec<Read>,
    writes: Vec<Write>,
    commit: bool,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Texts(Vec<String>),
    Sum(u64, u64),
    Changed(u64),
    /// A row was there already: nothing was changed.
    Refused,
}

fn read<S: OltpSession>(session: &mut S, table: u32, read: &Read) -> Result<Answer> {
    let mut texts = Vec::new();
    let mut see = |text: &[u8]| texts.push(text.escape_ascii().to_string());
    let count = match read {
        Read::Point(id, pad) => {
            let column = if *pad { Column::Pad } else { Column::C };
            u64::from(session.point(table, *id, column, &mut see)?)
        }
        Read::Range(ids) => session.range(table, ids.clone(), &mut see)?,
        Read::Ordered(ids, distinct) => session.ordered(table, ids.clone(), *distinct, &mut see)?,
        Read::Sum(ids) => {
            let (sum, rows) = session.sum(table, ids.clone())?;
            return Ok(Answer::Sum(sum, rows));
        }
    };
    same(read, count, texts.len() as u64)?;
    Ok(Answer::Texts(texts))
}

fn write<S: OltpSession>(session: &mut S, table: u32, write: &Write) -> Result<()> {
    match write {
        Write::UpdateIndex(id) => session.update_index(table, *id),
        Write::UpdateNonindex(id, c) => session.update_nonindex(table, *id, c),
        Write::Delete(id) => session.delete(table, *id),
        Write::Insert(id, k, c, pad) => session.insert(table, &Sbtest { id: *id, k: *k, c, pad }),
    }
}

fn apply<S: OltpSession>(session: &mut S, op: &Op) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    if op.transaction {
        session.begin()?;
    }
    for one in &op.reads {
        answers.push(read(session, op.table, one)?);
    }
    let written = op.writes.iter().try_for_each(|one| write(session, op.table, one));
    let ended = match (written, op.commit) {
        (Ok(()), true) => session.commit(),
        (Ok(()), false) => session.rollback().map(|()| 0),
        (Err(error), _) => Err(error),
    };
    match ended {
        Ok(changed) => answers.push(Answer::Changed(changed)),
        Err(error) if error.to_string().contains("already") => {
            session.rollback()?;
            // A store that looks at the commit alone does not meet what is rolled back.
            answers.push(if op.commit { Answer::Refused } else { Answer::Changed(0) });
        }
        Err(error) => return Err(error),
    }
    Ok(answers)
}

fn any_read(random: &mut Random) -> Read {
    let id = random.below(ROWS + 20);
    let ids = id..=id + random.below(30);
    match random.below(5) {
        0 => Read::Point(id, random.below(2) == 0),
        1 => Read::Range(ids),
        2 => Read::Sum(ids),
        other => Read::Ordered(ids, other == 3),
    }
}

fn any_write(random: &mut Random) -> Write {
    let id = 1 + random.below(ROWS + 10);
    let (mut c, mut pad) = ([0; C_BYTES], [0; PAD_BYTES]);
    fill_text(random, &mut c);
    fill_text(random, &mut pad);
    match random.below(5) {
        0 | 1 => Write::UpdateIndex(id),
        // Some rows have the same text, for `distinct`, and some already have it.
        2 if random.below(2) == 0 => Write::UpdateNonindex(id, [b'7'; C_BYTES]),
        2 => Write::UpdateNonindex(id, c),
        3 => Write::Delete(id),
        _ => Write::Insert(id, random.below(1000) as u32, c, pad),
    }
}

fn any(random: &mut Random) -> Op {
    let transaction = random.below(2) == 0;
    let (reads, writes) = match transaction {
        true => (random.below(4), random.below(5)),
        false => [(1, 0), (0, 1)][random.below(2) as usize],
    };
    Op {
        table: random.below(TABLES.into()) as u32,
        transaction,
        reads: (0..reads).map(|_| any_read(random)).collect(),
        writes: (0..writes).map(|_| any_write(random)).collect(),
        // A single statement cannot be undone.
        commit: !transaction || random.below(5) > 0,
    }
}

fn load<S: Oltp>(store: &S, seed: u64) -> Result<()> {
    store.create(TABLES)?;
    let mut session = store.session()?;
    for table in 0..TABLES {
        let mut random = Random::named(seed, "agreement oltp load", table.into());
        let (mut c, mut pad) = ([0; C_BYTES], [0; PAD_BYTES]);
        for id in 1..=ROWS {
            fill_text(&mut random, &mut c);
            fill_text(&mut random, &mut pad);
            let k = random.below(1000) as u32;
            session.load(table, &Sbtest { id, k, c: &c, pad: &pad })?;
        }
        same(&"rows of a load", session.commit()?, ROWS)?;
        drop(session);
        same(&"rows of the index", store.create_index(table)?, ROWS)?;
        session = store.session()?;
    }
    Ok(())
}

/// Makes and loads tables in both, does `steps` random statements and transactions on them, and
/// compares the answers. The error names the first that differs.
///
/// # Errors
///
/// A store fails, or answers otherwise than the other.
pub fn oltp<A: Oltp, B: Oltp>(tested: &A, model: &B, seed: u64, steps: u32) -> Result<()> {
    load(tested, seed)?;
    load(model, seed)?;
    let (mut one, mut other) = (tested.session()?, model.session()?);
    let mut random = Random::named(seed, "agreement oltp", 0);
    for step in 0..steps {
        let op = any(&mut random);
        let outcome =
            apply(&mut one, &op).and_then(|answers| same(&op, answers, apply(&mut other, &op)?));
        outcome.map_err(|error| {
            Failure::from(format!("{}, seed {seed}, step {step}: {error}", tested.name()))
        })?;
    }
    for table in 0..TABLES {
        same(&"the last id", tested.last_id(table)?, model.last_id(table)?)?;
    }
    Ok(())
}
