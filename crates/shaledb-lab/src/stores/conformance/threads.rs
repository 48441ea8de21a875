//! Batches, scans and updates that are whole while others write.

use super::common::TREES;
use crate::setup::Setup;
use crate::stores::engine::{Batch, Engine, Handle, Result, TreeId};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;

/// What an engine promises of a scan while others write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scans {
    /// What [`Handle::scan`] says: the rows are of one moment, and a batch is seen as a whole.
    OfOneMoment,
    /// Less: every row is whole and none is older than what was written when the scan began, but a
    /// batch may be seen in part. docs/peers.md says of which engine, and why.
    RowByRow,
}

pub(super) const ROWS: u64 = 200;
const WRITERS: u64 = 2;
const COUNTERS: u64 = 3;

/// Writers that overwrite the same rows of two trees in batches, `rounds` each, beside readers: a
/// scan shows all rows, none that was overwritten before it began, and as much of one moment as
/// `scans` says.
///
/// # Errors
///
/// The engine fails, or a scan shows something else.
pub fn check_threads<E: Engine>(
    folder: &Path,
    setup: &Setup,
    rounds: u64,
    scans: Scans,
) -> Result<()> {
    let engine = E::open(&folder.join("threads"), setup, &TREES)?;
    // The last round that each writer is done with.
    let done = [const { AtomicU64::new(0) }; WRITERS as usize];
    let write = |writer: u64, rounds: std::ops::Range<u64>| -> Result<()> {
        let mut handle = engine.handle()?;
        let mut batch = Batch::new();
        for round in rounds {
            batch.clear();
            let value = (round * WRITERS + writer).to_be_bytes();
            for row in 0..ROWS {
                batch.put(0, &row.to_be_bytes(), &value);
                batch.put(1, &row.to_be_bytes(), &value);
            }
            handle.write(&batch)?;
            done[writer as usize].store(round, Ordering::Release);
        }
        Ok(())
    };
    write(0, 0..1)?;
    let read = |tree: TreeId| -> Result<()> {
        let mut handle = engine.handle()?;
        for _ in 0..rounds {
            let done = done.each_ref().map(|round| round.load(Ordering::Acquire));
            let (mut values, mut whole) = (Vec::new(), true);
            handle.scan(tree, b"", u64::MAX, &mut |_, value| {
                match value.try_into() {
                    Ok(value) => values.push(u64::from_be_bytes(value)),
                    Err(_) => whole = false,
                }
                whole
            })?;
            if !whole {
                return Err(format!("a scan of tree {tree} shows a value of another size").into());
            }
            if let Some(wrong) = wrong_scan(&values, done, scans) {
                return Err(format!("a scan of tree {tree} {wrong}").into());
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let (write, read) = (&write, &read);
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || write(writer, 1..rounds)));
        let readers = (0..2).map(|tree| scope.spawn(move || read(tree)));
        join_all(writers.collect::<Vec<_>>().into_iter().chain(readers).collect())
    })?;
    engine.close()
}

/// Threads that count a few counters up, `rounds` times each, by [`Handle::update`]: none of it is
/// lost.
///
/// # Errors
///
/// The engine fails, or a count is lost.
pub fn check_counters<E: Engine>(folder: &Path, setup: &Setup, rounds: u64) -> Result<()> {
    let engine = E::open_for_updates(&folder.join("counters"), setup, &TREES)?;
    let count = |thread: u64| -> Result<()> {
        let mut handle = engine.handle()?;
        for round in 0..rounds {
            let counter = ((round + thread) % COUNTERS).to_be_bytes();
            handle.update(0, &counter, &mut |old, new| {
                new.extend_from_slice(&(number(old.unwrap_or_default()) + 1).to_be_bytes());
            })?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let count = &count;
        let threads = (0..2 * WRITERS).map(|thread| scope.spawn(move || count(thread)));
        join_all(threads.collect())
    })?;
    let mut handle = engine.handle()?;
    let mut sum = 0;
    let add = &mut |_: &[u8], value: &[u8]| {
        sum += number(value);
        true
    };
    let counters = handle.scan(0, b"", u64::MAX, add)?;
    let right = 2 * WRITERS * rounds;
    if (counters, sum) != (COUNTERS, right) {
        return Err(format!(
            "{}: {counters} of {COUNTERS} counters have {sum} instead of {right}: updates were \
             lost",
            E::NAME
        )
        .into());
    }
    drop(handle);
    engine.close()
}

/// A counter's value; of what is none, 0.
fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_be_bytes)
}

/// The first error of threads that all have ended.
fn join_all(threads: Vec<ScopedJoinHandle<'_, Result<()>>>) -> Result<()> {
    let join = |thread: ScopedJoinHandle<'_, Result<()>>| {
        thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))
    };
    let ended: Vec<Result<()>> = threads.into_iter().map(join).collect();
    ended.into_iter().collect()
}

/// What is wrong with the values of a scan that began when the writers were done with these rounds.
/// A value is its round times [`WRITERS`] plus its writer.
pub(super) fn wrong_scan(
    values: &[u64],
    done: [u64; WRITERS as usize],
    scans: Scans,
) -> Option<String> {
    if values.len() as u64 != ROWS {
        return Some(format!("shows {} of {ROWS} rows", values.len()));
    }
    let is_old = |&value: &u64| value / WRITERS < done[(value % WRITERS) as usize];
    if let Some(at) = values.iter().position(is_old) {
        return Some(format!("shows row {at} as it was before the scan began"));
    }
    let batches = values.iter().collect::<BTreeSet<_>>().len();
    let is_torn = scans == Scans::OfOneMoment && batches > 1;
    is_torn.then(|| format!("shows parts of {batches} batches"))
}
