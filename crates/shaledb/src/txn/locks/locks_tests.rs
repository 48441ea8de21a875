//! The lock table under threads, stepped by one thread, and (with the feature `shuttle`) under explored
//! interleavings.

use super::*;
#[cfg(not(feature = "shuttle"))]
use crate::base::rank;
use crate::base::sync::Arc;
#[cfg(not(feature = "shuttle"))]
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::fs::mem::MemClock;

fn write(key: &[u8]) -> Lock<'_> {
    Lock { tree: 1, span: Span::Key(key), mode: Mode::Write }
}

fn gap<'a>(lower: &'a [u8], upper: &'a [u8]) -> Lock<'a> {
    Lock { tree: 1, span: Span::Range(lower, Some(upper)), mode: Mode::Gap }
}

const LONG: Wait = Wait::Nanos(3_600_000_000_000);

#[cfg(feature = "shuttle")]
use shuttle::thread;
#[cfg(not(feature = "shuttle"))]
use std::thread;

/// Threads that lock two of three keys in orders of their own and then change what these guard:
/// nobody else is ever in between, and nobody waits for ever.
fn exclusion(threads: u64, rounds: u64) {
    let table = Arc::new(LockTable::new(1 << 20));
    let guarded = Arc::new([AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)]);
    let run = |thread: u64| {
        let (table, guarded) = (table.clone(), guarded.clone());
        thread::spawn(move || {
            let clock = MemClock::new();
            let mut done = 0;
            for round in 0..rounds {
                let first = ((thread + round) % 3) as usize;
                let second = ((thread * 2 + round + 1) % 3) as usize;
                let mut owner = table.owner();
                let got = [first, second].iter().try_for_each(|&key| {
                    table.acquire(&mut owner, write(&[key as u8]), LONG, &clock)
                });
                match got {
                    Ok(()) => {
                        for key in [first, second] {
                            let value = guarded[key].load(Ordering::Relaxed);
                            guarded[key].store(value + 1, Ordering::Relaxed);
                        }
                        done += 2;
                    }
                    Err(Refusal::Deadlock(report)) => assert_eq!(report.victim, owner.id()),
                    Err(other) => panic!("{other:?}"),
                }
                table.release(&mut owner);
            }
            done
        })
    };
    let running: Vec<_> = (0..threads).map(run).collect();
    let done: u64 = running.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(guarded.iter().map(|value| value.load(Ordering::Relaxed)).sum::<u64>(), done);
    assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    assert!(table.waits.lock().is_empty());
    assert!(table.cells.iter().all(|cell| cell.lock().slots.is_empty()));
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn threads_exclude_each_other() {
    for _ in 0..20 {
        exclusion(4, 50);
    }
}

/// An hour's wait ends when its flag is set, in whichever order the two begin, and leaves nothing.
#[cfg(not(feature = "shuttle"))]
#[test]
fn a_wait_is_interrupted() {
    let table = Arc::new(LockTable::new(1 << 20));
    let mut holder = table.owner();
    table.acquire(&mut holder, write(b"k"), LONG, &MemClock::new()).unwrap();
    for already_set in [false, true] {
        let interrupt = Interrupt::default();
        interrupt.set(already_set);
        let (waiters, flag) = (table.clone(), interrupt.clone());
        let waiting = thread::spawn(move || {
            let mut owner = waiters.owner();
            owner.interrupt = Some(flag);
            waiters.acquire(&mut owner, write(b"free"), LONG, &MemClock::new()).unwrap();
            let refused = waiters.acquire(&mut owner, write(b"k"), LONG, &MemClock::new());
            assert_eq!(owner.keys(), 1);
            waiters.release(&mut owner);
            refused
        });
        while !already_set && table.counts().2 == 0 {
            thread::yield_now();
        }
        interrupt.set(true);
        match waiting.join().unwrap() {
            Err(Refusal::Interrupted { holder: by }) => assert_eq!(by, holder.id()),
            other => panic!("{other:?}"),
        }
        assert_eq!(table.counts(), (1, 0, 0));
        assert!(table.waits.lock().is_empty());
    }
    table.release(&mut holder);
    assert_eq!(table.counts(), (0, 0, 0));
}

/// Told before the wait begins and when it has ended; a second observer is refused; the shard is free in the call.
#[test]
#[cfg(not(feature = "shuttle"))]
fn waits_are_observed() {
    let table = Arc::new(LockTable::new(1 << 20));
    let seen = Arc::new(<Mutex<_, { rank::CALLER }>>::new(Vec::new()));
    let (notes, again) = (seen.clone(), table.clone());
    let observe = move |waiter: TxnId, holders: &[TxnId]| {
        notes.lock().push((waiter, holders.to_vec(), again.counts().2));
    };
    assert!(table.observed.set(Box::new(observe)));
    assert!(!table.observed.set(Box::new(|_, _| unreachable!())));
    let clock = MemClock::new();
    let (mut one, mut two) = (table.owner(), table.owner());
    table.acquire(&mut one, write(b"k"), LONG, &clock).unwrap();
    table.acquire(&mut two, write(b"other"), LONG, &clock).unwrap();
    assert!(seen.lock().is_empty());
    let refused = table.acquire(&mut two, write(b"k"), Wait::Step, &clock);
    assert!(matches!(refused, Err(Refusal::Queued { .. })));
    assert_eq!(*seen.lock(), [(two.id(), vec![one.id()], 1)]);
    // The time is up at once: told once, and of the end.
    table.release(&mut two);
    let refused = table.acquire(&mut two, write(b"k"), Wait::Nanos(1), &clock);
    assert!(matches!(refused, Err(Refusal::Timeout { .. })));
    assert_eq!(seen.lock()[1..], [(two.id(), vec![one.id()], 1), (two.id(), vec![], 0)]);
    // Who does not wait has nothing to tell.
    let refused = table.acquire(&mut two, write(b"k"), Wait::Never, &clock);
    assert!(matches!(refused, Err(Refusal::Timeout { .. })));
    assert_eq!(seen.lock().len(), 3);
    table.release(&mut one);
    table.release(&mut two);
}

#[cfg(feature = "shuttle")]
#[test]
fn interleavings() {
    shuttle::check_random(|| exclusion(3, 2), 1000);
    shuttle::check_pct(|| exclusion(3, 2), 1000, 3);
}

/// A locking scan and a writer into its range: whoever is first, the other waits, and then goes on.
#[cfg(feature = "shuttle")]
#[test]
fn interleavings_of_a_gap_and_a_writer() {
    fn once() {
        let table = Arc::new(LockTable::new(1 << 20));
        let inside = Arc::new(AtomicU64::new(0));
        let running: Vec<_> = (0..3u8)
            .map(|n| {
                let (table, inside) = (table.clone(), inside.clone());
                thread::spawn(move || {
                    let mut owner = table.owner();
                    let key = [n];
                    let lock = if n == 0 { gap(b"\0", b"\x09") } else { write(&key) };
                    table.acquire(&mut owner, lock, LONG, &MemClock::new()).unwrap();
                    let own = if n == 0 { 100 } else { 1 };
                    let others = inside.fetch_add(own, Ordering::SeqCst);
                    assert!(if n == 0 { others == 0 } else { others < 100 }, "{n} {others}");
                    inside.fetch_sub(own, Ordering::SeqCst);
                    table.release(&mut owner);
                })
            })
            .collect();
        running.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }
    shuttle::check_random(once, 1000);
}

/// Locks of keys become a range while others look who writes, in one shard after the other.
#[cfg(feature = "shuttle")]
#[test]
fn interleavings_of_an_escalation_and_a_look() {
    fn once() {
        let table = Arc::new(LockTable::new(1 << 20));
        let (mut writer, reader) = (table.owner(), table.owner());
        let beyond_first = |n: &u8| table.shard_of(1, &[*n]) != 0;
        for n in (0..=u8::MAX).filter(beyond_first).take(9) {
            table.acquire(&mut writer, write(&[n]), LONG, &MemClock::new()).unwrap();
        }
        let id = writer.id();
        let (escalates, lists) = (table.clone(), table.clone());
        let running = thread::spawn(move || {
            assert!(escalates.escalate(&mut writer, 2));
            writer
        });
        let listing = thread::spawn(move || {
            let mut found = false;
            lists.each(&mut |owner, lock, waits| {
                found |= owner == id && lock.mode == Mode::Write && !waits;
                !found
            });
            assert!(found, "the list lacks one who writes");
        });
        let ahead = table.writers(&reader, 1, (b"", None), false);
        assert!(matches!(ahead, Writers::At(_)), "{ahead:?}");
        listing.join().unwrap();
        let mut writer = running.join().unwrap();
        assert_eq!(table.counts(), (0, 1, 0));
        table.release(&mut writer);
    }
    shuttle::check_random(once, 1000);
    shuttle::check_pct(once, 1000, 3);
}

#[cfg(not(feature = "shuttle"))]
mod stepped {
    use super::tree_locks::looks;
    use super::*;
    use std::collections::BTreeSet;

    fn ask(table: &LockTable, owner: &mut Owner, lock: Lock<'_>) -> Result<(), Refusal> {
        table.acquire(owner, lock, Wait::Step, &MemClock::new())
    }

    fn key(key: &[u8], mode: Mode) -> Lock<'_> {
        Lock { tree: 1, span: Span::Key(key), mode }
    }

    #[track_caller]
    fn waits(result: Result<(), Refusal>) {
        assert!(matches!(result, Err(Refusal::Queued { .. })), "{result:?}");
    }

    #[track_caller]
    fn queued(result: Result<(), Refusal>, by: &Owner) {
        match result {
            Err(Refusal::Queued { holder }) => assert_eq!(holder, by.id()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_stays_in_the_queue_until_it_is_asked_for_again() {
        let table = LockTable::new(1 << 20);
        let (mut a, mut b, mut c) = (table.owner(), table.owner(), table.owner());
        ask(&table, &mut a, write(b"k")).unwrap();
        queued(ask(&table, &mut b, write(b"k")), &a);
        queued(ask(&table, &mut b, write(b"k")), &a);
        queued(ask(&table, &mut c, write(b"k")), &a);
        assert_eq!(table.counts(), (1, 0, 2));
        table.release(&mut a);
        // b was first, though c asks first.
        queued(ask(&table, &mut c, write(b"k")), &b);
        ask(&table, &mut b, write(b"k")).unwrap();
        // Asking for something else takes the request back.
        ask(&table, &mut c, write(b"other")).unwrap();
        assert_eq!(table.counts(), (2, 0, 0));
        table.release(&mut b);
        table.release(&mut c);
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }

    #[test]
    fn what_was_granted_unasked_is_let_go_of() {
        let table = LockTable::new(1 << 20);
        let (mut a, mut b) = (table.owner(), table.owner());
        ask(&table, &mut a, write(b"k")).unwrap();
        queued(ask(&table, &mut b, write(b"k")), &a);
        table.release(&mut a);
        table.release(&mut b);
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }

    #[test]
    fn the_cheapest_of_a_circle_gives_way_and_is_told_why() {
        let table = LockTable::new(1 << 20);
        let mut owners: Vec<Owner> = (0..3).map(|_| table.owner()).collect();
        for (n, owner) in owners.iter_mut().enumerate() {
            owner.note_writes([5, 1, 7][n], 0);
            ask(&table, owner, write(&[n as u8])).unwrap();
        }
        let ids: Vec<TxnId> = owners.iter().map(Owner::id).collect();
        let [a, b, c] = &mut owners[..] else { panic!() };
        queued(ask(&table, a, write(&[1])), b);
        queued(ask(&table, b, write(&[2])), c);
        // c closes the circle; b has written least.
        queued(ask(&table, c, write(&[0])), a);
        let Err(Refusal::Deadlock(report)) = ask(&table, b, write(&[2])) else { panic!() };
        assert_eq!(report.victim, ids[1]);
        let waits: Vec<(TxnId, TxnId)> =
            report.edges.iter().map(|edge| (edge.waiter, edge.holder)).collect();
        assert_eq!(waits, [(ids[2], ids[0]), (ids[0], ids[1]), (ids[1], ids[2])]);
        assert_eq!(report.edges[0].waiting.span.get(), Span::Key(&[0]));
        assert_eq!(table.deadlocks().0, 1);
        assert_eq!(table.deadlocks().1.unwrap().0.victim, ids[1]);
        table.release(b);
        ask(&table, a, write(&[1])).unwrap();
        table.release(a);
        ask(&table, c, write(&[0])).unwrap();
        table.release(c);
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }

    #[test]
    fn two_gaps_and_two_writers_are_a_deadlock() {
        let table = LockTable::new(1 << 20);
        let (mut a, mut b) = (table.owner(), table.owner());
        ask(&table, &mut a, gap(b"a", b"m")).unwrap();
        ask(&table, &mut b, gap(b"a", b"z")).unwrap();
        queued(ask(&table, &mut a, write(b"c")), &b);
        // Both have written nothing; the one that closes the circle gives way, at once.
        assert!(matches!(ask(&table, &mut b, write(b"d")), Err(Refusal::Deadlock(_))));
        table.release(&mut b);
        ask(&table, &mut a, write(b"c")).unwrap();
        table.release(&mut a);
    }

    #[test]
    fn a_range_waits_for_each_of_those_in_it() {
        let table = LockTable::new(1 << 20);
        let mut writers: Vec<Owner> = (0..40).map(|_| table.owner()).collect();
        for (n, writer) in writers.iter_mut().enumerate() {
            ask(&table, writer, write(&[n as u8])).unwrap();
        }
        let mut scan = table.owner();
        let all = gap(b"", b"\xff");
        let mut waits = 0;
        for writer in &mut writers {
            waits += usize::from(ask(&table, &mut scan, all).is_err());
            table.release(writer);
        }
        ask(&table, &mut scan, all).unwrap();
        assert!(waits == 40, "{waits}");
        table.release(&mut scan);
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }

    #[test]
    fn who_does_not_wait_leaves_nothing_behind() {
        let table = LockTable::new(1 << 20);
        let (mut a, mut b) = (table.owner(), table.owner());
        ask(&table, &mut a, write(b"k")).unwrap();
        let clock = MemClock::new();
        for wait in [Wait::Never, Wait::Nanos(0), Wait::Nanos(1_000)] {
            let refused = table.acquire(&mut b, write(b"k"), wait, &clock);
            assert!(matches!(refused, Err(Refusal::Timeout { holder }) if holder == a.id()));
            assert_eq!(table.counts(), (1, 0, 0));
            assert!(table.waits.lock().is_empty());
        }
        table.release(&mut a);
        table.acquire(&mut b, write(b"k"), Wait::Never, &clock).unwrap();
        table.release(&mut b);
    }

    #[test]
    fn beyond_the_bound_locks_are_refused() {
        let table = LockTable::new(64 << 10);
        // Neither can have a range: every other key is the other's.
        let mut owners = [table.owner(), table.owner()];
        let refused = (0u32..10_000).find_map(|n| {
            let owner = &mut owners[n as usize % 2];
            ask(&table, owner, write(&n.to_be_bytes())).err().map(|e| (n, e))
        });
        let Some((count, Refusal::Full { bytes_max })) = refused else { panic!() };
        assert_eq!(bytes_max, 64 << 10);
        assert!((200..1000).contains(&count), "{count}");
        assert_eq!(table.counts(), (count as usize, 0, 0));
        owners.iter_mut().for_each(|owner| table.release(owner));
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }

    /// The bound is on all shards together, however many they are, and each of them is of use.
    #[test]
    fn a_table_has_as_many_shards_as_the_machine_has_use_for() {
        for (cores, shards) in [(0, 4), (1, 4), (2, 4), (3, 8), (4, 8), (5, 16), (128, 16)] {
            let mut table = LockTable::new(1 << 20);
            table.fit(cores);
            assert_eq!((table.cells.len(), table.bytes_max()), (shards, 1 << 20), "{cores} cores");
            let used: BTreeSet<usize> =
                (0..200u32).map(|n| table.shard_of(1, &n.to_be_bytes())).collect();
            assert!(used.into_iter().eq(0..shards), "{cores} cores");
            let (mut a, mut b) = (table.owner(), table.owner());
            ask(&table, &mut a, write(b"k")).unwrap();
            let all = Lock { tree: 1, span: Span::Range(b"", None), mode: Mode::Gap };
            queued(ask(&table, &mut b, all), &a);
            table.release(&mut a);
            ask(&table, &mut b, all).unwrap();
            table.release(&mut b);
            assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
        }
    }

    /// What a wait behind many others costs: a few looks at each of them, though each of them waits for
    /// all that came before; and one of a transaction for which nobody can wait, a look at none.
    #[test]
    fn a_wait_behind_many_looks_at_each_of_them_a_few_times() {
        const MANY: u64 = 300;
        for shared in [0, 2, 1] {
            let table = LockTable::new(1 << 20);
            let mut holder = table.owner();
            ask(&table, &mut holder, key(b"k", Mode::Shared)).unwrap();
            let mut many: Vec<Owner> = (0..MANY).map(|_| table.owner()).collect();
            let mode = |n: u64| match shared {
                0 => Mode::Write,
                _ if n.is_multiple_of(shared) => Mode::Exclusive,
                _ => Mode::Shared,
            };
            let mut most = 0;
            for (n, owner) in many.iter_mut().enumerate() {
                ask(&table, owner, Lock { tree: 2, ..key(&n.to_be_bytes(), Mode::Write) }).unwrap();
                looks::take();
                waits(ask(&table, owner, key(b"k", mode(n as u64))));
                most = most.max(looks::take());
            }
            assert!(most < 10 * MANY, "{most}");
            // Nobody can wait for this one. Nor is it dear to ask what has become of it.
            let mut last = table.owner();
            for _ in 0..2 {
                waits(ask(&table, &mut last, key(b"k", Mode::Write)));
                let looks = looks::take();
                assert!(looks < 20, "{looks}");
            }
            // One in the middle is waited for by him whom all wait for, which is a deadlock.
            let middle = MANY as usize / 2;
            let held = middle.to_be_bytes();
            let answer = ask(&table, &mut holder, Lock { tree: 2, ..key(&held, Mode::Write) });
            let looks = looks::take();
            assert!(looks < 20 * MANY, "{looks}");
            assert_eq!(table.deadlocks().0, 1, "{answer:?}");
            for owner in many.iter_mut().chain([&mut holder, &mut last]) {
                table.release(owner);
            }
            assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
        }
    }

    /// It looks at those who ask for what it asks for, not at all of a shard: where two keys are
    /// asked for by many, and where each waits for a key that the next one holds.
    #[test]
    fn a_wait_looks_at_requests_for_its_key_only() {
        const MANY: usize = 300;
        let any = LockTable::new(1 << 20);
        let one_shard = |n: &u64| any.shard_of(1, &n.to_be_bytes()) == 0;
        let keys: Vec<[u8; 8]> =
            (0..).filter(one_shard).take(MANY).map(|n: u64| n.to_be_bytes()).collect();
        for chain in [false, true] {
            let table = LockTable::new(1 << 20);
            let mut many: Vec<Owner> = (0..MANY).map(|_| table.owner()).collect();
            let mut most = 0;
            for (n, owner) in many.iter_mut().enumerate() {
                // All wait behind the first two, or each behind the one before it.
                let tree = if chain || n < 2 { 1 } else { 2 };
                ask(&table, owner, Lock { tree, ..key(&keys[n], Mode::Write) }).unwrap();
                let wanted = match (chain, n) {
                    (true, 1..) => &keys[n - 1],
                    (false, 2..) => &keys[n % 2],
                    _ => continue,
                };
                looks::take();
                waits(ask(&table, owner, key(wanted, Mode::Write)));
                most = most.max(looks::take());
            }
            assert!(most < 10 * MANY as u64, "{most}");
            many.iter_mut().for_each(|owner| table.release(owner));
            assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
        }
    }

    /// An observer is told of all who are in the way once, and then of those who hold what is waited
    /// for: without a look at the others.
    #[test]
    fn who_waits_long_tells_of_holders_only() {
        let table = LockTable::new(1 << 20);
        let told = Arc::new(AtomicU64::new(0));
        let sum = told.clone();
        let observe = move |_, all: &[TxnId]| {
            sum.fetch_add(all.len() as u64, Ordering::Relaxed);
        };
        assert!(table.observed.set(Box::new(observe)));
        let mut many: Vec<Owner> = (0..101).map(|_| table.owner()).collect();
        ask(&table, &mut many[0], key(b"k", Mode::Write)).unwrap();
        for owner in &mut many[1..100] {
            waits(ask(&table, owner, key(b"k", Mode::Write)));
        }
        told.store(0, Ordering::Relaxed);
        waits(ask(&table, &mut many[100], key(b"k", Mode::Write)));
        assert_eq!(told.swap(0, Ordering::Relaxed), 100);
        looks::take();
        table.tell_of_holders(&many[100]);
        assert_eq!((told.load(Ordering::Relaxed), looks::take()), (1, 1));
        // Of one that has become a holder.
        table.release(&mut many[0]);
        table.tell_of_holders(&many[100]);
        assert_eq!(told.load(Ordering::Relaxed), 2);
        // Of a range with its row, too.
        let mut scan = table.owner();
        let row = key(b"k", Mode::Exclusive);
        let (gap, clock) = (gap(b"a", b"k\0"), MemClock::new());
        waits(table.acquire_row(&mut scan, gap, row, Wait::Step, &clock));
        told.store(0, Ordering::Relaxed);
        table.tell_of_holders(&scan);
        assert_eq!(told.load(Ordering::Relaxed), 1);
        many.iter_mut().chain([&mut scan]).for_each(|owner| table.release(owner));
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn a_lock_is_given_up_if_one_read_alone_relies_on_it() {
    let (table, clock) = (LockTable::new(1 << 20), MemClock::new());
    let (mut owner, mut other) = (table.owner(), table.owner());
    let lock = |mode| Lock { tree: 1, span: Span::Key(b"k"), mode };
    for (modes, gives_up) in [
        (&[Mode::Shared][..], true),
        (&[Mode::Exclusive], true),
        (&[Mode::Shared, Mode::Shared], false),
        (&[Mode::Shared, Mode::Exclusive], false),
        (&[Mode::Exclusive, Mode::Shared], false),
        (&[Mode::Write], false),
        (&[Mode::Exclusive, Mode::Write], false),
        (&[], false),
    ] {
        for &mode in modes {
            table.acquire(&mut owner, lock(mode), Wait::Never, &clock).unwrap();
        }
        assert_eq!(table.give_up_last(&mut owner, 1, b"k"), gives_up, "{modes:?}");
        assert!(!table.give_up_last(&mut owner, 1, b"k"));
        assert!(
            !table.give_up_last(&mut owner, 2, b"k") && !table.give_up_last(&mut other, 1, b"k")
        );
        assert_eq!(owner.keys(), usize::from(!gives_up && !modes.is_empty()));
        table.release(&mut owner);
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }
    // What was held before is held again, by calls of which each may give up its own only.
    let shared = |owner: &mut _, allowed| {
        let asked = table.acquire(owner, lock(Mode::Shared), Wait::Never, &clock);
        assert_eq!(asked.is_ok(), allowed);
    };
    for (before, then, allowed) in [
        (&[Mode::Shared][..], Mode::Exclusive, true),
        (&[Mode::Shared, Mode::Shared], Mode::Exclusive, true),
        (&[Mode::Shared, Mode::Exclusive], Mode::Exclusive, false),
        (&[Mode::Exclusive], Mode::Shared, false),
        (&[Mode::Exclusive], Mode::Exclusive, false),
        (&[Mode::Shared], Mode::Write, false),
    ] {
        for &mode in before {
            table.acquire(&mut owner, lock(mode), Wait::Never, &clock).unwrap();
        }
        table.acquire(&mut owner, lock(then), Wait::Never, &clock).unwrap();
        for _ in 0..2 {
            assert!(!table.give_up_last(&mut owner, 1, b"k"));
            shared(&mut other, allowed);
            table.release(&mut other);
        }
        table.release(&mut owner);
        // A duplicate that was to be written is held as before too, and shared at least.
        for &mode in before {
            table.acquire(&mut owner, lock(mode), Wait::Never, &clock).unwrap();
        }
        table.acquire(&mut owner, lock(Mode::Write), Wait::Never, &clock).unwrap();
        table.keep_as(&owner, 1, b"k", Mode::Shared);
        shared(&mut other, !before.contains(&Mode::Exclusive));
        table.release(&mut other);
        table.release(&mut owner);
    }
    // A range that has the key is not given up with it, nor does the key count then.
    let gap = Lock { tree: 1, span: Span::Range(b"a", None), mode: Mode::Shared };
    table.acquire(&mut owner, gap, Wait::Never, &clock).unwrap();
    table.acquire(&mut owner, lock(Mode::Shared), Wait::Never, &clock).unwrap();
    assert!(!table.give_up_last(&mut owner, 1, b"k"));
    table.release(&mut owner);
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn who_waits_for_a_lock_that_is_given_up_gets_it() {
    let (table, clock) = (LockTable::new(1 << 20), MemClock::new());
    let (mut owner, mut other) = (table.owner(), table.owner());
    let lock = Lock { tree: 1, span: Span::Key(b"k"), mode: Mode::Exclusive };
    table.acquire(&mut owner, lock, Wait::Never, &clock).unwrap();
    let asked = table.acquire(&mut other, lock, Wait::Step, &clock);
    assert!(matches!(asked, Err(Refusal::Queued { .. })));
    assert!(table.give_up_last(&mut owner, 1, b"k"));
    table.acquire(&mut other, lock, Wait::Step, &clock).unwrap();
    let asked = table.acquire(&mut owner, lock, Wait::Never, &clock);
    assert!(matches!(asked, Err(Refusal::Timeout { .. })));
}
