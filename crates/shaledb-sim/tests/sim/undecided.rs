//! Crashes that take the manifest along: a repair tells from the files which large transactions are
//! undecided.

use crate::prepared::{Rows, State, Step, Write, crash_at_each_step, fail_each_call};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::fs::mem::{CrashMode, MemFs};
use shaledb::fs::{Env, Fs};
use shaledb::repair::{RepairOptions, repair};
use shaledb::{Concurrency, Error, WriteOptions};
use shaledb_sim::settings::{seeds, small};
use shaledb_sim::world::{PATH, open_db};
use std::path::Path;
use std::sync::Arc;

/// A program that puts each key once, so that rows need no numbers to be told apart, and syncs.
/// Names are used again.
fn program(seed: u64, length: usize) -> Vec<Step> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut open: Vec<Vec<u8>> = Vec::new();
    let mut steps = Vec::new();
    for number in 0..length as u8 {
        let mut writes = |count: u8| -> Vec<Write> {
            let length = [10, 500, 6_000][rng.random_range(0..3)];
            let put = |n: u8| Write::Put(usize::from(n % 2), vec![number, n], vec![number; length]);
            (0..count).map(put).collect()
        };
        let xid = vec![b'x', b'0' + number % 4];
        steps.push(match number % 5 {
            0 | 3 if !open.contains(&xid) => {
                open.push(xid.clone());
                // Four do not fit the transaction's memory.
                let writes = writes(if number % 3 == 0 { 2 } else { 4 });
                Step::Prepare(xid, writes, Concurrency::Pessimistic)
            }
            1 | 4 if open.len() > 1 => {
                let xid = open.remove(rng.random_range(0..open.len()));
                Step::Decide(xid, rng.random_range(0..3) > 0, true)
            }
            2 => match rng.random_range(0..4) {
                0 => Step::Reopen,
                1 => Step::Flush,
                _ => Step::Background,
            },
            _ => Step::Write(writes(2), true),
        });
    }
    steps
}

/// Takes the manifest away and repairs what is left: the result is a moment from `low` on, and what
/// is prepared in it is whole.
fn repaired(fs: &MemFs, moments: &[State], low: usize, label: &str) -> bool {
    for entry in fs.list(Path::new(PATH)).unwrap() {
        if entry.name.starts_with("MANIFEST") || entry.name.starts_with("CURRENT") {
            fs.remove(&Path::new(PATH).join(entry.name)).unwrap();
        }
    }
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    let options = RepairOptions { config: small(), env };
    let (from, to) = (Path::new(PATH), Path::new("/repaired"));
    let report = match repair(from, to, &options, &mut |_| ()) {
        // Not even a log was there yet.
        Err(Error::NoDatabase(_)) if low == 0 => return false,
        other => other.unwrap_or_else(|error| panic!("{label}: {error}")),
    };
    let db = open_db(fs, "/repaired", &small()).unwrap();
    let rows = || {
        let mut rows = Rows::new();
        for (index, name) in ["recovered-1", "recovered-2"].iter().enumerate() {
            let Ok(tree) = db.tree(name) else { continue };
            let found = tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap());
            rows.extend(found.map(|(key, value)| ((index, key), value)));
        }
        rows
    };
    let found = rows();
    let prepared: Vec<Vec<u8>> =
        db.prepared().unwrap().iter().map(|prepared| prepared.xid().to_vec()).collect();
    let is = |state: &&State| state.rows == found && state.prepared.keys().eq(prepared.iter());
    let Some(state) = moments[low..].iter().rfind(is) else {
        panic!("{label}: no moment is what was found, {prepared:?} being prepared: {report}");
    };
    let mut state = state.clone();
    for prepared in db.prepared().unwrap() {
        state.decide(prepared.xid(), true);
        prepared.commit(WriteOptions::SYNC).unwrap();
    }
    assert!(rows() == state.rows, "{label}: a part of what was prepared is missing: {report}");
    !prepared.is_empty()
}

#[test]
fn a_repair_without_a_manifest_shows_nothing_undecided() {
    let (mut crashes, mut undecided) = (0, 0);
    for seed in seeds(4) {
        let (steps, modes) = (program(seed + 400, 30), [CrashMode::Torn, CrashMode::Lost]);
        crash_at_each_step(seed, &steps, 3, modes, &mut |disk, world, low, label| {
            undecided += usize::from(repaired(disk, &world.moments, low, label));
            crashes += 1;
        });
    }
    assert!(crashes > 100 && undecided > 50, "{crashes} crashes, {undecided}");
}

#[test]
fn nor_does_one_after_a_failing_call() {
    let (mut failed, mut undecided) = (0, 0);
    for seed in seeds(2) {
        failed += fail_each_call(seed, &program(seed + 500, 25), 5, &mut |fs, world, label| {
            // A directory whose sync has failed may bring back the mark of what was rolled back last:
            // that it was is in the manifest, which is gone.
            let again = usize::from(label.contains("SyncDir") && world.durable > 0);
            let low = world.durable - again;
            for disk in [fs.crash_clone(seed, CrashMode::Torn), fs.fork()] {
                let found = repaired(&disk, &world.moments, low, label);
                undecided += usize::from(found);
            }
        });
    }
    assert!(failed > 20 && undecided > 20, "{failed} failed, {undecided}");
}
