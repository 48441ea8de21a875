//! Two-phase commit where neither the prepare nor the decision asks for a sync, and one sync later
//! is for all: as a server does that syncs its logs once a second. What a crash may take is the end
//! of the commit order, prepares and decisions included, from the last sync on; never a part of a
//! transaction, and never one whose commit came before the sync.

use crate::prepared::{State, Step, World, Write, crash_at_each_step, recover, same};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::WriteOptions;
use shaledb::fs::mem::{CrashMode, MemFs};
use shaledb_sim::settings::{seeds, small};
use shaledb_sim::world::{PATH, open_db};

/// A program in which only `Sync` and `Reopen` ask for a sync. The keys of transactions differ.
fn program(seed: u64, length: usize) -> Vec<Step> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut open: Vec<Vec<u8>> = Vec::new();
    let mut steps = Vec::new();
    for number in 0..length {
        let choice = rng.random_range(0..4);
        let mut writes = |first: u8, count: u8| -> Vec<Write> {
            let write = |n: u8| {
                let (tree, key) = (rng.random_range(0..2), vec![first, n]);
                match rng.random_range(0..6) {
                    0 => Write::Delete(tree, key),
                    1 => Write::DeleteRange(tree, key, vec![first, 9]),
                    2 => Write::Put(tree, key, vec![number as u8; 5_000]),
                    _ => Write::Put(tree, key, vec![number as u8; 20]),
                }
            };
            (0..count).map(write).collect()
        };
        let place = number % 7;
        let own = number as u8 + 1;
        steps.push(match place {
            0 => Step::Write(writes(0, 2), false),
            // Mostly small enough to be in the log only.
            1 | 3 => {
                let xid = format!("x{number}").into_bytes();
                open.push(xid.clone());
                Step::PrepareLazily(xid, writes(own, [1, 2, 2, 4][number / 7 % 4]))
            }
            2 | 4 if !open.is_empty() => {
                let xid = open.remove(rng.random_range(0..open.len()));
                Step::Decide(xid, rng.random_range(0..3) > 0, false)
            }
            5 => match choice {
                0 => Step::Sync,
                1 => Step::Reopen,
                2 => Step::Flush,
                _ => Step::Write(writes(0, 1), false),
            },
            _ => Step::Background,
        });
    }
    steps
}

#[test]
fn a_crash_takes_the_end_of_what_was_not_synced() {
    let (mut crashes, mut lost, mut kept) = (0, 0, 0);
    for seed in seeds(8) {
        let (steps, modes) = (program(seed + 300, 60), [CrashMode::Lost, CrashMode::Torn]);
        crash_at_each_step(seed, &steps, 3, modes, &mut |disk, world, low, label| {
            let found = recover(disk, &world.moments, low, label);
            crashes += 1;
            lost += usize::from(found + 1 < world.moments.len());
            kept += usize::from(found > low);
        });
    }
    assert!(crashes > 200 && lost > 20 && kept > 20, "{crashes} crashes, {lost}, {kept}");
}

/// What a sync was asked for after is there: of a transaction prepared and committed without one,
/// all; of one that is prepared, the prepare; of one rolled back, nothing.
#[test]
fn a_sync_makes_prepares_and_decisions_before_it_durable() {
    let fs = MemFs::new();
    let mut world = World::create(fs.clone()).unwrap();
    let put = |tree, key: &[u8]| Write::Put(tree, key.to_vec(), b"value".to_vec());
    let prepare = |xid: &str| {
        let key = xid.as_bytes();
        Step::PrepareLazily(key.to_vec(), vec![put(0, key), put(1, key)])
    };
    let decide = |xid: &str, commit| Step::Decide(xid.as_bytes().to_vec(), commit, false);
    let start = world.moments.len() - 1;
    for step in [
        prepare("committed"),
        prepare("prepared"),
        prepare("rolled back"),
        decide("committed", true),
        decide("rolled back", false),
    ] {
        world.step(&step).unwrap();
    }
    let before = fs.crash_clone(1, CrashMode::Lost);
    let found = recover(&before, &world.moments, start, "before the sync");
    assert_eq!(found, start, "nothing of it was synced");
    world.step(&Step::Sync).unwrap();
    let now = world.moments.len() - 1;
    for mode in [CrashMode::Lost, CrashMode::Torn] {
        let found = recover(&fs.crash_clone(2, mode), &world.moments, now, "after the sync");
        assert_eq!(found, now);
    }
}

/// A flush makes a write durable that came after a prepare, while nothing asks for a sync of the
/// log: numbers that the table has must not be given out again after the crash.
#[test]
fn a_flush_past_an_undecided_prepare_takes_the_log_along() {
    for synced in [true, false] {
        let fs = MemFs::new();
        let mut world = World::create(fs.clone()).unwrap();
        let put = |key: u8| vec![Write::Put(0, vec![key], vec![key; 10])];
        let concurrency = shaledb::Concurrency::Pessimistic;
        world
            .step(&match synced {
                true => Step::Prepare(b"x".to_vec(), put(1), concurrency),
                false => Step::PrepareLazily(b"x".to_vec(), put(1)),
            })
            .unwrap();
        world.step(&Step::Write(put(2), false)).unwrap();
        world.step(&Step::Write(put(3), false)).unwrap();
        world.step(&Step::Flush).unwrap();
        let disk = fs.crash_clone(1, CrashMode::Lost);
        let db = open_db(&disk, PATH, &small()).unwrap();
        same(&db, world.now(), "what was flushed is there, and what came before it");
        let tree = db.tree("a").unwrap();
        let mut state: State = world.now().clone();
        for key in 4..8 {
            tree.put_with(&[key], &[key; 10], WriteOptions::SYNC).unwrap();
            state.apply(&[Write::Put(0, vec![key], vec![key; 10])]);
        }
        for prepared in db.prepared().unwrap() {
            prepared.commit(WriteOptions::SYNC).unwrap();
            state.decide(b"x", true);
        }
        drop((tree, db));
        let db = open_db(&disk.crash_clone(2, CrashMode::Lost), PATH, &small()).unwrap();
        same(&db, &state, "what was synced after the crash is there");
    }
}
