//! Who waits for whom, and that nobody gives way without need: random requests against a plain book
//! of what is held.

use super::super::escalate::FEW;
use super::super::lock::Mode;
use super::*;
use crate::fs::mem::MemClock;
use crate::txn::Writers;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, BTreeSet};

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
        let mut table = LockTable::new(1 << 20);
        table.set_shards(2 << (blocked % 4));
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

/// What is claimed ahead counts, and given up by who waits for anything, but for what is used.
#[test]
fn a_claim_is_given_up_beyond_what_is_used() {
    let table = LockTable::new(1 << 20);
    let clock = MemClock::new();
    let (mut scan, mut other) = (table.owner(), table.owner());
    table.acquire(&mut other, key(b"r", Mode::Exclusive), Wait::Never, &clock).unwrap();
    ask(&table, &mut scan, range(b"a", b"c", Mode::Gap)).unwrap();
    let claim = table.claim(&mut scan, 1, (b"c", b"z"), &clock).unwrap();
    assert!(scan.use_claim(claim, b"f") && !scan.use_claim(claim + 1, b"f"));
    waits(ask(&table, &mut other, key(b"m", Mode::Write)));
    waits(ask(&table, &mut scan, key(b"r", Mode::Exclusive)));
    ask(&table, &mut other, key(b"m", Mode::Write)).unwrap();
    assert!(!scan.use_claim(claim, b"g"));
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

fn free_to_write(table: &LockTable, lock: Lock<'_>) -> bool {
    let mut other = table.owner();
    let free = table.acquire(&mut other, lock, Wait::Never, &MemClock::new()).is_ok();
    table.release(&mut other);
    free
}

/// A scan of each of two trees, as of a join: whatever either has claimed ahead is given up by who
/// waits, and that of one tree by who asks for another range of it, or makes ranges of keys there.
#[test]
fn the_claims_of_two_scans_are_given_up() {
    let clock = MemClock::new();
    let of = |tree, lock| Lock { tree, ..lock };
    for way in 0..5 {
        let table = LockTable::new(1 << 20);
        let (mut join, mut other) = (table.owner(), table.owner());
        table.acquire(&mut other, key(b"r", Mode::Exclusive), Wait::Never, &clock).unwrap();
        let claims = [1, 2].map(|tree| {
            let claim = table.claim(&mut join, tree, (b"c", b"m"), &clock).unwrap();
            assert!(join.use_claim(claim, b"f"));
            claim
        });
        for tree in [1, 2] {
            assert!(!free_to_write(&table, of(tree, key(b"g", Mode::Write))));
        }
        match way {
            0 => waits(ask(&table, &mut join, key(b"r", Mode::Exclusive))),
            1 => ask(&table, &mut join, range(b"s", b"t", Mode::Gap)).unwrap(),
            2 => drop(table.claim(&mut join, 1, (b"e", b"g"), &clock).unwrap()),
            3 => {
                for n in 0..9 {
                    ask(&table, &mut join, key(&[b'a', n], Mode::Shared)).unwrap();
                }
                assert!(table.escalate(&mut join, FEW));
            }
            _ => table.merge_gaps(&mut join),
        }
        let all = !matches!(way, 1 | 2);
        for (tree, claim, gone) in [(1, claims[0], true), (2, claims[1], all)] {
            let context = format!("{way} {tree}");
            assert!(!free_to_write(&table, of(tree, key(b"e", Mode::Write))), "{context}");
            let free = free_to_write(&table, of(tree, key(b"g", Mode::Write)));
            assert_eq!(free, gone, "{context}");
            assert_eq!(join.use_claim(claim, b"g"), !gone, "{context}");
        }
        table.release(&mut join);
        table.release(&mut other);
        assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
    }
}

/// Two scans of one tree, as of a join of a table with itself, that claim up to the same row: each
/// uses what it has claimed itself, and what one has used stays locked.
#[test]
fn a_claim_is_of_the_scan_that_made_it() {
    let table = LockTable::new(1 << 20);
    let clock = MemClock::new();
    let (mut join, mut other) = (table.owner(), table.owner());
    table.acquire(&mut other, key(b"r", Mode::Exclusive), Wait::Never, &clock).unwrap();
    let outer = table.claim(&mut join, 1, (b"c", b"m"), &clock).unwrap();
    assert!(join.use_claim(outer, b"f"));
    let inner = table.claim(&mut join, 1, (b"h", b"m"), &clock).unwrap();
    assert!(join.use_claim(inner, b"l"));
    assert!(!join.use_claim(outer, b"g"));
    assert!(join.use_claim(inner, b"k"));
    waits(ask(&table, &mut join, key(b"r", Mode::Exclusive)));
    for (at, free) in [(b"e", false), (b"g", true), (b"h", false), (b"k", false), (b"l", true)] {
        assert_eq!(free_to_write(&table, key(at, Mode::Write)), free, "{at:?}");
    }
    table.release(&mut join);
    table.release(&mut other);
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
        let count = rng.random_range(2..if seed % 4 == 0 { 16 } else { 6 });
        let mut table = LockTable::new(1 << 20);
        table.set_shards(2 << (seed / 4 % 4));
        let mut owners: Vec<Owner> = (0..count).map(|_| table.owner()).collect();
        for owner in &mut owners {
            owner.note_writes(rng.random_range(0..4), 0);
        }
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
                let found = table.deadlocks().0 - before;
                deadlocks += found;
                let context = format!("seed {seed}, step {step}: {who} asks for {asked:?}");
                assert_eq!(found > 0, expected, "{context}");
                if found > 0 {
                    check_report(&table, &owners, &book, who, &asked);
                }
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
            no_circle_is_left(&table);
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

/// The last deadlock begins with the one who asked; each of it waits for what the next one holds;
/// and the lightest has given way.
fn check_report(table: &LockTable, owners: &[Owner], book: &Book, who: usize, asked: &[Held]) {
    let Some((report, _)) = table.deadlocks().1 else { panic!() };
    let at = |id| owners.iter().position(|owner| owner.id() == id).unwrap();
    let edges = &report.edges;
    assert_eq!(edges[0].waiter, owners[who].id());
    for (edge, next) in edges.iter().zip(edges.iter().cycle().skip(1)) {
        assert_eq!(edge.holder, next.waiter);
        let waiter = at(edge.waiter);
        let asked = if waiter == who { asked } else { &book.waiting[&waiter] };
        assert!(book.holders(waiter, asked).contains(&at(edge.holder)), "{report:?}");
    }
    let weight = |edge: &Edge| edge.waiting.writes + edge.waiting.locks;
    let victim = edges.iter().find(|edge| edge.waiter == report.victim).map(weight);
    assert_eq!(victim, edges.iter().map(weight).min(), "{report:?}");
}

/// Of all who wait, whether for holders or for those who came before, some wait for nobody who
/// waits; without these there are such again; until nobody is left.
fn no_circle_is_left(table: &LockTable) {
    let waits = table.waits.lock();
    let mut left: BTreeMap<TxnId, Vec<TxnId>> =
        waits.keys().map(|id| (*id, table.blockers(&waits, *id))).collect();
    while !left.is_empty() {
        let (before, waiting) = (left.len(), left.keys().copied().collect::<BTreeSet<_>>());
        left.retain(|_, all| all.iter().any(|id| waiting.contains(id)));
        assert!(left.len() < before, "{left:?}");
    }
}

/// What is told of writers ahead is what a walk through all that is held finds, from either end.
#[test]
fn writers_are_found_from_either_end() {
    let mut found = [0; 3];
    for seed in 0..300 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut table = LockTable::new(1 << 20);
        table.set_shards(2 << (seed % 4));
        let mut owners: Vec<Owner> = (0..3).map(|_| table.owner()).collect();
        let keys = if seed % 3 == 0 { 4_000 } else { 12 };
        let mut held = vec![Vec::new(); 3];
        for _ in 0..rng.random_range(0..60) * if seed % 3 == 0 { 60 } else { 1 } {
            let alone = keys > 100 && !rng.random_ratio(1, 20);
            let who = if alone { 0 } else { rng.random_range(0..3) };
            let mode = [Mode::Gap, Mode::Shared, Mode::Exclusive, Mode::Write];
            let mode = mode[rng.random_range(0..4)];
            let lower = rng.random_range(0..keys as u16);
            let (a, b) = (lower.to_be_bytes(), rng.random_range(0..keys as u16).to_be_bytes());
            let span = match rng.random_range(0..if keys > 100 { 400 } else { 10 }) {
                0 => Span::Range(&a, None),
                1 if a < b => Span::Range(&a, Some(&b)),
                _ => Span::Key(&a),
            };
            let lock = Lock { tree: 1, span, mode };
            if table.acquire(&mut owners[who], lock, Wait::Never, &MemClock::new()).is_ok() {
                held[who].push((OwnedSpan::new(span), mode));
            }
        }
        let others: Vec<Span<'_>> = held[1..]
            .iter()
            .flatten()
            .filter(|(_, mode)| *mode == Mode::Write)
            .map(|(span, _)| span.get())
            .collect();
        for _ in 0..20 {
            let lower = rng.random_range(0..keys as u16).to_be_bytes();
            let upper = rng.random_range(0..keys as u16).to_be_bytes();
            let upper = rng.random_ratio(2, 3).then_some(&upper[..]);
            let inside = Span::Range(&lower, upper);
            let context = || format!("seed {seed}: {inside:?} of {others:?}");
            // Of keys and beginnings of ranges, which are all that matters.
            let starts =
                others.iter().filter(|span| span.overlaps(inside)).map(|span| match span {
                    Span::Key(key) => *key,
                    Span::Range(first, _) => lower.as_slice().max(first),
                });
            let (mut from, mut first) = (lower.to_vec(), Writers::UpTo(lower.to_vec()));
            while let Writers::UpTo(key) = &first {
                assert!(*key >= from && !starts.clone().any(|start| start < key), "{}", context());
                from.clone_from(key);
                first = table.writers(&owners[0], 1, (&from, upper), false);
                found[0] += 1;
            }
            let expected =
                starts.clone().min().filter(|_| upper.is_none_or(|end| lower[..] < *end));
            let expected = expected.map_or(Writers::Nowhere, |key| Writers::At(key.to_vec()));
            assert_eq!(first, expected, "{}", context());
            let (mut end, mut last) = (upper.map(<[u8]>::to_vec), None);
            loop {
                match table.writers(&owners[0], 1, (&lower, end.as_deref()), true) {
                    Writers::UpTo(key) => {
                        assert!(end.is_none_or(|end| key < end), "{}", context());
                        end = Some(key);
                        found[1] += 1;
                        continue;
                    }
                    Writers::At(key) => last = Some(key),
                    Writers::Nowhere => {}
                }
                break;
            }
            assert_eq!(last.is_some(), expected != Writers::Nowhere, "{}", context());
            let Some(last) = last else { continue };
            let of_range = |span: &Span<'_>| matches!(span, Span::Range(..)) && span.has(&last);
            if others.iter().any(of_range) {
                found[2] += 1;
            } else {
                let reach = |span: &Span<'_>| match span {
                    Span::Key(key) => **key > *last,
                    Span::Range(_, end) => end.is_none_or(|end| *end > *last),
                };
                let mut beyond = others.iter().filter(|span| span.overlaps(inside));
                assert!(!beyond.any(reach), "{}", context());
            }
        }
    }
    assert!(found.iter().all(|count| *count > 50), "{found:?}");
}

/// Who waits for a writer that he has come upon is in no circle but of held locks, and has nothing
/// of it but the key.
#[test]
fn who_waits_for_a_writer_is_told_of_a_deadlock_only_if_it_is_one() {
    let table = LockTable::new(1 << 20);
    let (mut scan, mut writer) = (table.owner(), table.owner());
    ask(&table, &mut writer, key(b"m", Mode::Write)).unwrap();
    let at = |key: &[u8]| Writers::At(key.to_vec());
    assert_eq!(table.writers(&scan, 1, (b"a", None), false), at(b"m"));
    assert_eq!(table.writers(&writer, 1, (b"a", None), false), Writers::Nowhere);
    assert_eq!(table.writers(&scan, 2, (b"a", None), false), Writers::Nowhere);
    assert_eq!(table.writers(&scan, 1, (b"z", Some(b"a")), false), Writers::Nowhere);
    waits(ask(&table, &mut scan, key(b"m", Mode::Shared)));
    // The one that waits is no writer, and the writer may go on, before and after.
    assert_eq!(table.writers(&writer, 1, (b"a", None), true), Writers::Nowhere);
    ask(&table, &mut writer, key(b"l", Mode::Write)).unwrap();
    ask(&table, &mut writer, key(b"n", Mode::Write)).unwrap();
    assert_eq!(table.writers(&scan, 1, (b"a", None), true), at(b"n"));
    table.release(&mut writer);
    ask(&table, &mut scan, key(b"m", Mode::Shared)).unwrap();
    assert!(table.give_up_last(&mut scan, 1, b"m"));
    // Each waits for what the other holds.
    let mut writer = table.owner();
    ask(&table, &mut scan, key(b"a", Mode::Exclusive)).unwrap();
    ask(&table, &mut writer, key(b"m", Mode::Write)).unwrap();
    waits(ask(&table, &mut writer, key(b"a", Mode::Exclusive)));
    let answer = ask(&table, &mut scan, key(b"m", Mode::Exclusive));
    assert!(matches!(answer, Err(Refusal::Deadlock(_) | Refusal::Queued { .. })), "{answer:?}");
    assert_eq!(table.deadlocks().0, 1);
    table.release(&mut scan);
    table.release(&mut writer);
    assert_eq!((table.counts(), table.bytes()), ((0, 0, 0), 0));
}
