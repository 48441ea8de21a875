use super::*;
use crate::fs::mem::{Call, CrashMode, Fault, MemFs};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;

fn failed() -> Error {
    Error::io("sync", Path::new("/log"), std::io::Error::other("device"))
}

#[test]
fn after_a_failure_nobody_passes() {
    let (guard, gate, other) = (Guard::new(Path::new("/db")), Gate::default(), Gate::default());
    assert!(gate.pass(&guard, || Ok(())).unwrap(), "alone it syncs itself");
    assert!(!guard.is_set() && guard.check().is_ok());
    assert!(matches!(gate.pass(&guard, || Err(failed())), Err(Error::Io { .. })));
    for gate in [&gate, &other] {
        let passed = gate.pass(&guard, || panic!("it is tried again"));
        assert!(matches!(passed, Err(Error::Poisoned(_))));
    }
    assert!(guard.is_set() && matches!(guard.check(), Err(Error::Poisoned(_))));
    // The first failure is the one that is told.
    let second = guard.poison(&Error::Closed).to_string();
    assert!(second.contains("device"), "{second}");
}

/// One at a time, and nobody is served by a sync that had begun before.
#[test]
fn who_waits_shares_the_next_sync() {
    let (guard, gate) = (Guard::new(Path::new("/db")), Gate::default());
    let (inside, most, syncs) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let (began, wait_began) = channel();
    let (go, wait_go) = channel::<()>();
    std::thread::scope(|scope| {
        let (gate, guard) = (&gate, &guard);
        scope.spawn(move || {
            let sync = || {
                began.send(()).unwrap();
                wait_go.recv().unwrap();
                Ok(())
            };
            gate.pass(guard, sync).unwrap();
        });
        wait_began.recv().unwrap();
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let (inside, most, syncs) = (&inside, &most, &syncs);
                scope.spawn(move || {
                    let sync = || {
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        syncs.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    };
                    gate.pass(guard, sync).unwrap();
                })
            })
            .collect();
        assert_eq!(syncs.load(Ordering::SeqCst), 0, "the first one has not ended");
        go.send(()).unwrap();
        waiting.into_iter().for_each(|waiting| waiting.join().unwrap());
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert!((1..=4).contains(&syncs.load(Ordering::SeqCst)));
}

/// All who wait are woken by each end, and the first of them may have begun the next sync by then.
#[test]
fn who_is_served_waits_for_no_later_sync() {
    // The third is under way.
    let syncs = Syncs { started: 3, ended: 2, done: 2 };
    assert!(!syncs.hold_up(2), "it has ended");
    assert!(syncs.hold_up(3) && syncs.hold_up(4));
    // Nobody syncs: who wants the next one makes it.
    let syncs = Syncs { started: 3, ended: 3, done: 3 };
    assert!(!syncs.hold_up(3) && !syncs.hold_up(4));
}

#[test]
fn a_panic_does_not_hold_up_others() {
    let (guard, gate) = (Guard::new(Path::new("/db")), Gate::default());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        gate.pass(&guard, || panic!("in a sync"))
    }));
    assert!(panicked.is_err());
    gate.pass(&guard, || Ok(())).unwrap();
}

#[test]
fn a_failed_sync_of_the_directory_poisons_and_of_another_does_not() {
    let disk = MemFs::new();
    disk.create_dir_all(Path::new("/db")).unwrap();
    disk.create_dir_all(Path::new("/other")).unwrap();
    let guard = Arc::new(Guard::new(Path::new("/db")));
    let fs = GuardedFs::new(Arc::new(disk.clone()), Path::new("/db"), guard.clone());
    disk.fail(Call::SyncDir, 1, Fault::Io, true);
    assert!(fs.sync_dir(Path::new("/other")).is_err());
    assert!(!guard.is_set());
    fs.create(Path::new("/db/file")).unwrap();
    disk.fail(Call::SyncDir, 1, Fault::Io, true);
    assert!(fs.sync_dir(Path::new("/db")).is_err());
    assert!(matches!(fs.sync_dir(Path::new("/db")), Err(Error::Poisoned(_))));
    assert!(disk.crash_clone(0, CrashMode::Lost).content(Path::new("/db/file")).is_none());
}
