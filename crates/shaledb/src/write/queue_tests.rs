//! The queue under threads, and (with the feature `shuttle`) under explored interleavings.

use super::*;
use crate::base::key::Kind;
use crate::base::rank;
use crate::base::sync::Arc;

fn op(key: u8) -> Ops {
    let mut ops = Ops::new();
    ops.push(Kind::Put, 1, &[key], b"").unwrap();
    ops
}

fn commit(
    queue: &CommitQueue,
    ops: &Ops,
    sync: bool,
    write: impl FnOnce(&Group) -> Result<()>,
) -> Result<()> {
    match queue.join(ops, sync) {
        Turn::Written(result) => result,
        Turn::Lead(lead) => {
            let result = write(lead.group());
            lead.finish(result)
        }
    }
}

#[cfg(not(feature = "shuttle"))]
use std::thread;

#[cfg(feature = "shuttle")]
use shuttle::thread;

/// Several threads commit; every commit is led exactly once, order within a thread is kept, and a
/// failing group fails for all its members and for nobody else.
fn commits_from_threads(threads: u8, each: u8) {
    let queue = Arc::new(CommitQueue::new());
    let log = Arc::new(<Mutex<_, { rank::CALLER }>>::new(Vec::<u8>::new()));
    let handles: Vec<_> = (0..threads)
        .map(|thread| {
            let (queue, log) = (queue.clone(), log.clone());
            thread::spawn(move || {
                for n in 0..each {
                    let key = thread * each + n;
                    let result = commit(&queue, &op(key), key.is_multiple_of(3), |group| {
                        let mut log = log.lock();
                        let keys: Vec<u8> = group.commits().map(|(ops, _)| ops[3]).collect();
                        assert!(group.sync == keys.iter().any(|key| key % 3 == 0));
                        if keys.contains(&5) {
                            return Err(Error::ReadOnly);
                        }
                        log.extend(keys);
                        Ok(())
                    });
                    let written = log.lock().contains(&key);
                    assert_eq!(result.is_ok(), written, "{key}");
                }
            })
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    let log = log.lock();
    for thread in 0..threads {
        let own: Vec<u8> = log.iter().copied().filter(|key| key / each == thread).collect();
        assert!(own.is_sorted(), "{own:?}");
    }
    let mut all = log.clone();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), log.len());
    assert!(!log.contains(&5));
    assert!(queue.state.lock().failed.is_empty());
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn every_commit_is_led_once() {
    for _ in 0..20 {
        commits_from_threads(4, 20);
    }
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn a_panicking_leader_does_not_hang_the_queue() {
    let queue = CommitQueue::new();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = commit(&queue, &op(1), false, |_| panic!("as intended"));
    }));
    assert!(panicked.is_err());
    assert!(commit(&queue, &op(2), false, |_| Ok(())).is_ok());
}

#[cfg(feature = "shuttle")]
#[test]
fn interleavings() {
    shuttle::check_random(|| commits_from_threads(3, 2), 2000);
}
