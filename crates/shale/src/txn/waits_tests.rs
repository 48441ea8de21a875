//! Who waits for whom, and that nobody gives way without need: random requests against a plain book
//! of what is held.

use super::*;
use crate::fs::mem::MemClock;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

fn key(key: &[u8], mode: Mode) -> Lock<'_> {
    Lock { tree: 1, span: Span::Key(key), mode }
}

fn range<'a>(lower: &'a [u8], upper: &'a [u8], mode: Mode) -> Lock<'a> {
    Lock { tree: 1, span: Span::Range(lower, Some(upper)), mode }
}

fn ask(table: &LockTable, owner: &mut Owner, lock: Lock<'_>) -> Result<(), Refusal> {
    table.acquire(owner, lock, Wait::Step, &MemClock::new())
}

fn ask_row(
    table: &LockTable,
    owner: &mut Owner,
    gap: Lock<'_>,
    row: Lock<'_>,
) -> Result<(), Refusal> {
    table.acquire_row(owner, gap, row, Wait::Step, &MemClock::new())
}

#[track_caller]
fn waits(result: Result<(), Refusal>) {
    assert!(matches!(result, Err(Refusal::Queued { .. })), "{result:?}");
}

/// One who waits for a range holds nothing of it, in whichever shard the way is blocked: whoever is
/// in the way may write there. Keys enough to have some in each shard.
#[test]
fn who_waits_for_a_range_holds_nothing_of_it() {
    for blocked in 0..64u8 {
        let table = LockTable::new(1 << 20);
        let (mut writer, mut scan) = (table.owner(), table.owner());
        ask(&table, &mut writer, key(&[blocked], Mode::Write)).unwrap();
        waits(ask(&table, &mut scan, range(&[], &[255], Mode::Gap)));
        for other in 0..64 {
            ask(&table, &mut writer, key(&[other], Mode::Write)).unwrap();
        }
        assert_eq!((table.counts(), table.deadlocks().0), ((64, 0, 1), 0));
        table.release(&mut writer);
        ask(&table, &mut scan, range(&[], &[255], Mode::Gap)).unwrap();
        table.release(&mut scan);
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }
}

/// Two scan for the same row; the first writes it, and beside it, while the second waits.
#[test]
fn who_holds_a_row_may_write_it_and_before_it_while_a_scan_waits() {
    let table = LockTable::new(1 << 20);
    let (mut one, mut two) = (table.owner(), table.owner());
    let (gap, row) = (range(b"a", b"m\0", Mode::Gap), key(b"m", Mode::Exclusive));
    ask_row(&table, &mut one, gap, row).unwrap();
    waits(ask_row(&table, &mut two, gap, row));
    for written in [b"m", b"b", b"l"] {
        ask(&table, &mut one, key(written, Mode::Write)).unwrap();
    }
    waits(ask_row(&table, &mut two, gap, row));
    assert_eq!(table.counts(), (3, 1, 1));
    table.release(&mut one);
    ask_row(&table, &mut two, gap, row).unwrap();
    assert_eq!(two.keys(), 1);
    // And now it is protected.
    waits(ask(&table, &mut one, key(b"b", Mode::Write)));
    table.release(&mut two);
    table.release(&mut one);
    assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
}

/// 3 has asked first, waits for 2, and that one for 1: then 1 does not wait for 3.
#[test]
fn who_waits_by_way_of_others_is_passed() {
    let table = LockTable::new(1 << 20);
    let mut owners: Vec<Owner> = (0..3).map(|_| table.owner()).collect();
    let [one, two, three] = &mut owners[..] else { panic!() };
    ask(&table, one, key(b"a", Mode::Write)).unwrap();
    ask(&table, two, key(b"b", Mode::Shared)).unwrap();
    waits(ask(&table, three, key(b"b", Mode::Write)));
    waits(ask(&table, two, key(b"a", Mode::Write)));
    ask(&table, one, key(b"b", Mode::Shared)).unwrap();
    // Nor if it becomes so only while 1 waits: 4 waits for 5 until then.
    let (mut four, mut five, mut six) = (table.owner(), table.owner(), table.owner());
    ask(&table, &mut six, key(b"x", Mode::Write)).unwrap();
    ask(&table, &mut five, key(b"y", Mode::Shared)).unwrap();
    waits(ask(&table, &mut four, key(b"y", Mode::Write)));
    waits(ask(&table, &mut six, key(b"y", Mode::Shared)));
    waits(ask(&table, &mut five, key(b"x", Mode::Write)));
    ask(&table, &mut six, key(b"y", Mode::Shared)).unwrap();
    assert_eq!(table.deadlocks().0, 0);
    for owner in owners.iter_mut().chain([&mut four, &mut five, &mut six]) {
        table.release(owner);
    }
    assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
}

/// What is claimed ahead is in force, and given up by who waits for anything, but for what is used.
#[test]
fn a_claim_is_given_up_beyond_what_is_used() {
    let table = LockTable::new(1 << 20);
    let clock = MemClock::new();
    let (mut scan, mut other) = (table.owner(), table.owner());
    table.acquire(&mut other, key(b"r", Mode::Exclusive), Wait::Never, &clock).unwrap();
    ask(&table, &mut scan, range(b"a", b"c", Mode::Gap)).unwrap();
    table.claim(&mut scan, 1, (b"c", b"z"), &clock).unwrap();
    assert!(scan.use_claim(1, b"z", b"f") && !scan.use_claim(1, b"y", b"f"));
    waits(ask(&table, &mut other, key(b"m", Mode::Write)));
    waits(ask(&table, &mut scan, key(b"r", Mode::Exclusive)));
    ask(&table, &mut other, key(b"m", Mode::Write)).unwrap();
    assert!(!scan.use_claim(1, b"z", b"g"));
    // What it has used stays, and is a deadlock where it has to be one.
    assert!(matches!(
        ask(&table, &mut other, key(b"e", Mode::Write)),
        Err(Refusal::Queued { .. } | Refusal::Deadlock(_))
    ));
    assert_eq!(table.deadlocks().0, 1);
    table.release(&mut scan);
    table.release(&mut other);
    assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
}

/// A stream of others who share a key does not keep out one who waits for it alone.
#[test]
fn nobody_who_waits_is_overtaken_by_a_stream() {
    let table = LockTable::new(1 << 20);
    let mut first = table.owner();
    ask(&table, &mut first, key(b"k", Mode::Shared)).unwrap();
    let (mut waiter, mut ranger) = (table.owner(), table.owner());
    waits(ask(&table, &mut waiter, key(b"k", Mode::Write)));
    waits(ask(&table, &mut ranger, range(b"a", b"z", Mode::Exclusive)));
    let mut stream: Vec<Owner> = (0..20).map(|_| table.owner()).collect();
    for owner in &mut stream {
        waits(ask(&table, owner, key(b"k", Mode::Shared)));
        // Nor does one who has locks of his own that nobody waits for.
        ask(&table, owner, Lock { tree: 2, ..key(&owner.id().to_le_bytes(), Mode::Write) })
            .unwrap();
        waits(ask(&table, owner, key(b"k", Mode::Shared)));
    }
    table.release(&mut first);
    ask(&table, &mut waiter, key(b"k", Mode::Write)).unwrap();
    table.release(&mut waiter);
    ask(&table, &mut ranger, range(b"a", b"z", Mode::Exclusive)).unwrap();
    table.release(&mut ranger);
    for owner in &mut stream {
        ask(&table, owner, key(b"k", Mode::Shared)).unwrap();
    }
    stream.iter_mut().for_each(|owner| table.release(owner));
    assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
}

type Held = (OwnedSpan, Mode);

/// What each holds and waits for, by our own book.
#[derive(Default)]
struct Book {
    held: BTreeMap<usize, Vec<Held>>,
    waiting: BTreeMap<usize, Vec<Held>>,
}

impl Book {
    fn conflict(a: &[Held], b: &[Held]) -> bool {
        a.iter().any(|(span, mode)| {
            b.iter().any(|(other, held)| held.conflicts(*mode) && span.get().overlaps(other.get()))
        })
    }

    /// Who holds what a request of `who` conflicts with.
    fn holders(&self, who: usize, asked: &[Held]) -> Vec<usize> {
        let others = self.held.iter().filter(|(other, _)| **other != who);
        others.filter(|(_, held)| Book::conflict(asked, held)).map(|(other, _)| *other).collect()
    }

    /// Whether all of a circle through `who` is held, if it asks for this.
    fn is_deadlock(&self, who: usize, asked: &[Held]) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = self.holders(who, asked);
        while let Some(next) = open.pop() {
            if next == who {
                return true;
            }
            if seen.insert(next)
                && let Some(asked) = self.waiting.get(&next)
            {
                open.extend(self.holders(next, asked));
            }
        }
        false
    }
}

/// A deadlock is told if and only if each of a circle waits for what the next one holds; what is
/// granted does not conflict; who waits has nothing of what he waits for; and all come to an end.
#[test]
fn nobody_gives_way_without_need() {
    let mut deadlocks = 0;
    for seed in 0..400 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let count = rng.random_range(2..6);
        let table = LockTable::new(1 << 20);
        let mut owners: Vec<Owner> = (0..count).map(|_| table.owner()).collect();
        let mut book = Book::default();
        for step in 0..150 {
            let who = rng.random_range(0..count);
            if book.waiting.contains_key(&who) {
                continue;
            }
            if rng.random_ratio(1, 8) {
                table.release(&mut owners[who]);
                owners[who] = table.owner();
                book.held.remove(&who);
            } else {
                let asked = random_ask(&mut rng);
                let expected = book.is_deadlock(who, &asked);
                let before = table.deadlocks().0;
                let result = ask_for(&table, &mut owners[who], &asked);
                let told = table.deadlocks().0 - before;
                deadlocks += told;
                let context = format!("seed {seed}, step {step}: {who} asks for {asked:?}");
                assert_eq!(told > 0, expected, "{context}");
                match result {
                    Ok(()) => book.held.entry(who).or_default().extend(asked),
                    Err(Refusal::Queued { .. }) => drop(book.waiting.insert(who, asked)),
                    Err(Refusal::Deadlock(_)) => {
                        table.release(&mut owners[who]);
                        owners[who] = table.owner();
                        book.held.remove(&who);
                    }
                    Err(other) => panic!("{context}: {other:?}"),
                }
            }
            look_after_waits(&table, &mut owners, &mut book);
            check(&table, &owners, &book);
        }
        // Whoever goes on ends: then all do.
        while (0..count).any(|who| book.held.contains_key(&who) || book.waiting.contains_key(&who))
        {
            let runs = |who: &usize| book.held.contains_key(who) && !book.waiting.contains_key(who);
            let who = (0..count).find(runs).unwrap_or_else(|| panic!("seed {seed}: all wait"));
            table.release(&mut owners[who]);
            book.held.remove(&who);
            look_after_waits(&table, &mut owners, &mut book);
        }
        owners.iter_mut().for_each(|owner| table.release(owner));
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0), "seed {seed}");
    }
    assert!(deadlocks > 100, "{deadlocks}");
}

fn random_ask(rng: &mut Pcg64Mcg) -> Vec<Held> {
    let modes = [Mode::Gap, Mode::Shared, Mode::Exclusive, Mode::Write];
    let mode = modes[rng.random_range(0..4)];
    let (a, b) = (rng.random_range(0..10u8), rng.random_range(0..10u8));
    let (lower, upper) = ([a.min(b)], [a.max(b), 0]);
    let span = OwnedSpan::new(Span::Range(&lower, Some(&upper)));
    match rng.random_range(0..4) {
        0 => vec![(span, mode)],
        // As a scan that locks asks for a row.
        1 => vec![(span, Mode::Gap), (OwnedSpan::new(Span::Key(&[a.max(b)])), mode)],
        _ => vec![(OwnedSpan::new(Span::Key(&[a])), mode)],
    }
}

fn ask_for(table: &LockTable, owner: &mut Owner, asked: &[Held]) -> Result<(), Refusal> {
    let lock = |at: usize| Lock { tree: 1, span: asked[at].0.get(), mode: asked[at].1 };
    match asked.len() {
        1 => ask(table, owner, lock(0)),
        _ => ask_row(table, owner, lock(0), lock(1)),
    }
}

/// Asks again for what is waited for.
fn look_after_waits(table: &LockTable, owners: &mut [Owner], book: &mut Book) {
    let mut again = true;
    while std::mem::take(&mut again) {
        let waiting: Vec<usize> = book.waiting.keys().copied().collect();
        for who in waiting {
            let Some(asked) = book.waiting.remove(&who) else { continue };
            match ask_for(table, &mut owners[who], &asked) {
                Ok(()) => book.held.entry(who).or_default().extend(asked),
                Err(Refusal::Queued { .. }) => drop(book.waiting.insert(who, asked)),
                Err(Refusal::Deadlock(_)) => {
                    table.release(&mut owners[who]);
                    owners[who] = table.owner();
                    book.held.remove(&who);
                    again = true;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

fn check(table: &LockTable, owners: &[Owner], book: &Book) {
    let none = Vec::new();
    for (who, held) in &book.held {
        for (other, others) in &book.held {
            assert!(who == other || !Book::conflict(held, others), "{held:?} {others:?}");
        }
    }
    table.each(&mut |id, lock, waiting| {
        let who = owners.iter().position(|owner| owner.id() == id).unwrap();
        let held = book.held.get(&who).unwrap_or(&none);
        // Ranges that touch are one, so each key is looked at.
        for byte in 0..12u8 {
            for key in [vec![byte], vec![byte, 0]] {
                let by_book = |(span, mode): &Held| *mode >= lock.mode && span.get().has(&key);
                assert!(
                    waiting || !lock.span.has(&key) || held.iter().any(by_book),
                    "{who} holds {lock:?} beside {held:?}"
                );
            }
        }
        true
    });
}
