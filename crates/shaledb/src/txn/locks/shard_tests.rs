//! What a shard grants, to whom first, and that it forgets nothing.

use super::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const MAX: usize = 1 << 20;

fn key(key: &[u8], mode: Mode) -> Lock<'_> {
    Lock { tree: 1, span: Span::Key(key), mode }
}

fn range<'a>(lower: &'a [u8], upper: &'a [u8], mode: Mode) -> Lock<'a> {
    Lock { tree: 1, span: Span::Range(lower, Some(upper)), mode }
}

impl Shard {
    /// Asks, and waits if it must; answers whether it is held.
    fn ask(&mut self, owner: TxnId, lock: Lock<'_>) -> bool {
        match self.request(owner, lock, MAX) {
            Decision::Held | Decision::Granted(_) => true,
            Decision::Busy => {
                self.enqueue(owner, lock, true);
                false
            }
            Decision::Full => panic!("full"),
        }
    }

    fn let_go(&mut self, owner: TxnId, key: &[u8]) -> Vec<TxnId> {
        self.release(owner, 1, key);
        self.promoted()
    }

    fn promoted(&mut self) -> Vec<TxnId> {
        let Promoted { granted, parts } = self.promote(1);
        assert_eq!(parts, []);
        granted.into_iter().map(|granted| granted.0).collect()
    }

    fn in_the_way_of(&self, owner: TxnId) -> Vec<TxnId> {
        let mut all = Vec::new();
        self.blockers(owner, 1, &mut |blocker| {
            all.push(blocker.id);
            true
        });
        all
    }

    fn sizes(&self) -> ((usize, usize), usize, usize) {
        let mut waiting = BTreeSet::new();
        (self.counts(&mut waiting), waiting.len(), self.bytes())
    }
}

#[test]
fn modes_conflict_as_the_table_says() {
    use Mode::{Exclusive, Gap, Shared, Write};
    let table = [
        (Gap, [false, false, false, true]),
        (Shared, [false, false, true, true]),
        (Exclusive, [false, true, true, true]),
        (Write, [true, true, true, true]),
    ];
    for (mode, row) in table {
        for (other, conflicts) in [Gap, Shared, Exclusive, Write].into_iter().zip(row) {
            assert_eq!(mode.conflicts(other), conflicts, "{mode:?} {other:?}");
            let mut shard = Shard::default();
            assert!(shard.ask(1, key(b"k", mode)));
            assert_eq!(shard.ask(2, key(b"k", other)), !conflicts, "{mode:?} {other:?}");
            assert!(shard.ask(3, key(b"l", Write)), "another key is free");
        }
    }
}

#[test]
fn ranges_have_their_lower_bound_and_not_their_upper() {
    let held = Span::Range(b"b", Some(b"d"));
    let overlapping: [(Span<'_>, bool); 8] = [
        (Span::Key(b"a"), false),
        (Span::Key(b"b"), true),
        (Span::Key(b"czz"), true),
        (Span::Key(b"d"), false),
        (Span::Range(b"", Some(b"b")), false),
        (Span::Range(b"", Some(b"b\0")), true),
        (Span::Range(b"d", None), false),
        (Span::Range(b"c", None), true),
    ];
    for (span, overlaps) in overlapping {
        assert_eq!(held.overlaps(span), overlaps, "{span:?}");
        assert_eq!(span.overlaps(held), overlaps, "{span:?}");
    }
}

#[test]
fn gaps_keep_writers_out_and_nobody_else() {
    let mut shard = Shard::default();
    assert!(shard.ask(1, range(b"b", b"d", Mode::Gap)));
    assert!(shard.ask(2, range(b"a", b"z", Mode::Gap)));
    assert!(shard.ask(3, key(b"c", Mode::Exclusive)), "a row that is there may be locked");
    assert!(!shard.ask(3, key(b"c", Mode::Write)));
    assert_eq!(shard.in_the_way_of(3), [1, 2]);
    shard.release_ranges(1, 1, true);
    assert_eq!(shard.promoted(), []);
    shard.release_ranges(2, 1, true);
    // It had the key already.
    assert_eq!(shard.promote(1).granted, [(3, None)]);
    // And a gap is not granted over what another is writing.
    assert!(!shard.ask(4, range(b"a", b"z", Mode::Gap)));
    assert_eq!(shard.let_go(3, b"c"), [4]);
}

#[test]
fn requests_are_served_in_order() {
    let mut shard = Shard::default();
    assert!(shard.ask(1, key(b"k", Mode::Shared)));
    assert!(!shard.ask(2, key(b"k", Mode::Exclusive)));
    assert!(!shard.ask(3, key(b"k", Mode::Shared)), "it would starve the one before");
    assert!(!shard.ask(4, key(b"k", Mode::Shared)));
    assert_eq!(shard.in_the_way_of(3), [2]);
    assert_eq!(shard.let_go(1, b"k"), [2]);
    assert_eq!(shard.let_go(2, b"k"), [3, 4]);
}

#[test]
fn an_upgrade_does_not_wait_for_those_who_wait_for_it() {
    let mut shard = Shard::default();
    assert!(shard.ask(1, key(b"k", Mode::Shared)));
    assert!(!shard.ask(2, key(b"k", Mode::Exclusive)));
    assert!(shard.ask(1, key(b"k", Mode::Write)), "2 waits for 1 in any case");
    assert!(shard.ask(1, key(b"k", Mode::Shared)), "what is held covers less");
    assert_eq!(shard.let_go(1, b"k"), [2]);

    // Nor does a write into a gap of one's own.
    let mut shard = Shard::default();
    assert!(shard.ask(1, range(b"a", b"z", Mode::Gap)));
    assert!(!shard.ask(2, key(b"m", Mode::Write)));
    assert!(shard.ask(1, key(b"m", Mode::Write)));

    // Two who share cannot both have more: each waits for the other, which is a deadlock.
    let mut shard = Shard::default();
    assert!(shard.ask(1, key(b"k", Mode::Shared)) && shard.ask(2, key(b"k", Mode::Shared)));
    assert!(!shard.ask(1, key(b"k", Mode::Write)) && !shard.ask(2, key(b"k", Mode::Write)));
    assert_eq!((shard.in_the_way_of(1), shard.in_the_way_of(2)), (vec![2], vec![1]));
    assert!(shard.cancel(2, 1));
    assert_eq!(shard.let_go(2, b"k"), [1]);
}

#[test]
fn a_range_of_ones_own_covers_its_keys() {
    let mut shard = Shard::default();
    assert!(shard.ask(1, range(b"a", b"m", Mode::Write)));
    assert_eq!(shard.request(1, key(b"c", Mode::Write), MAX), Decision::Held);
    assert_eq!(shard.request(1, range(b"b", b"c", Mode::Shared), MAX), Decision::Held);
    assert!(!shard.ask(2, key(b"c", Mode::Shared)));
    assert!(shard.ask(3, key(b"m", Mode::Shared)));
}

#[test]
fn ranges_that_touch_become_one() {
    let mut shard = Shard::default();
    for (lower, upper) in [("a", "c"), ("e", "g"), ("c", "d"), ("d", "e"), ("b", "f")] {
        assert!(shard.ask(1, range(lower.as_bytes(), upper.as_bytes(), Mode::Gap)));
    }
    // The last one may be taken back still.
    assert_eq!(shard.sizes().0, (0, 2));
    assert!(shard.ask(1, Lock { tree: 1, span: Span::Range(b"g", None), mode: Mode::Gap }));
    assert!(shard.ask(2, range(b"a", b"b", Mode::Gap)));
    assert_eq!(shard.sizes().0, (0, 3));
    assert!(!shard.ask(3, key(b"zzz", Mode::Write)));
    assert!(shard.ask(4, key(b"Z", Mode::Write)));
    shard.release_ranges(1, 1, true);
    shard.release_ranges(2, 1, true);
    shard.release(4, 1, b"Z");
    assert_eq!(shard.promoted(), [3]);
    shard.release(3, 1, b"zzz");
    assert_eq!(shard.sizes(), ((0, 0), 0, 0));
}

#[test]
fn a_range_is_taken_back_and_nothing_else() {
    let mut shard = Shard::default();
    assert!(shard.ask(1, range(b"a", b"c", Mode::Gap)));
    assert!(shard.ask(1, range(b"c", b"e", Mode::Gap)));
    assert!(!shard.ask(2, key(b"d", Mode::Write)));
    shard.take_back(1, 1);
    assert_eq!(shard.promoted(), [2]);
    assert!(!shard.ask(3, key(b"b", Mode::Write)));
    assert!(!shard.ask(4, range(b"a", b"z", Mode::Gap)));
    // There is nothing more to take back.
    shard.take_back(1, 1);
    assert_eq!(shard.promoted(), []);
}

#[test]
fn memory_is_bounded() {
    let mut shard = Shard::default();
    let mut granted = 0u32;
    while shard.request(1, key(&granted.to_be_bytes(), Mode::Write), 10_000) != Decision::Full {
        granted += 1;
    }
    assert!((50..200).contains(&granted), "{granted}");
    assert_eq!(shard.request(1, key(&[0; 4], Mode::Write), 10_000), Decision::Held);
    for n in 0..granted {
        shard.release(1, 1, &n.to_be_bytes());
    }
    assert_eq!(shard.bytes(), 0);
}

/// Tables come and go, and nobody locks a range.
#[test]
fn trees_of_which_nothing_is_held_are_forgotten() {
    let mut shard = Shard::default();
    let lock = |tree, key| Lock { tree, span: Span::Key(key), mode: Mode::Write };
    assert!(matches!(shard.request(1, lock(7, b"kept"), 10_000), Decision::Granted(_)));
    for tree in 100..10_000 {
        assert!(matches!(shard.request(2, lock(tree, b"a"), 10_000), Decision::Granted(_)));
        shard.release(2, tree, b"a");
        shard.tidy();
    }
    assert!(shard.trees.len() <= 70, "{}", shard.trees.len());
    assert_eq!(shard.mode_of(1, 7, b"kept"), Some(Mode::Write));
}

/// What is granted never conflicts, whoever waits has a reason, and all is forgotten at the end.
#[test]
fn random_requests() {
    for seed in 0..200 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut shard = Shard::default();
        // What each holds, by our own book; and what each waits for.
        let mut held: Vec<(TxnId, OwnedSpan, Mode)> = Vec::new();
        let mut waiting: BTreeMap<TxnId, (OwnedSpan, Mode)> = BTreeMap::new();
        for _ in 0..300 {
            let owner = rng.random_range(1..6);
            let waits_not = !waiting.contains_key(&owner);
            if rng.random_ratio(1, 6) {
                if waiting.remove(&owner).is_some() {
                    assert!(shard.cancel(owner, 1));
                }
                for (_, span, _) in held.iter().filter(|h| h.0 == owner) {
                    if let OwnedSpan::Key(key) = span {
                        shard.release(owner, 1, key);
                    }
                }
                shard.release_ranges(owner, 1, true);
                held.retain(|h| h.0 != owner);
                for owner in shard.promoted() {
                    let (span, mode) = waiting.remove(&owner).unwrap();
                    note(&mut held, owner, span, mode);
                }
            } else if waits_not {
                let modes = [Mode::Gap, Mode::Shared, Mode::Exclusive, Mode::Write];
                let mode = modes[rng.random_range(0..4)];
                let (a, b) = (rng.random_range(0..8u8), rng.random_range(0..8u8));
                let (lower, upper) = ([a.min(b)], [a.max(b)]);
                let span = match rng.random_range(0..3) {
                    0 => Span::Range(&lower, Some(&upper)),
                    1 if a == 0 => Span::Range(&upper, None),
                    _ => Span::Key(&lower),
                };
                if shard.ask(owner, Lock { tree: 1, span, mode }) {
                    note(&mut held, owner, OwnedSpan::new(span), mode);
                } else {
                    waiting.insert(owner, (OwnedSpan::new(span), mode));
                }
            }
            for (at, a) in held.iter().enumerate() {
                for b in held[..at].iter().filter(|b| b.0 != a.0 && b.2.conflicts(a.2)) {
                    assert!(!a.1.get().overlaps(b.1.get()), "seed {seed}: {a:?} {b:?}");
                }
            }
            for owner in waiting.keys() {
                assert!(!shard.in_the_way_of(*owner).is_empty(), "seed {seed}: {owner} waits");
            }
        }
        for owner in waiting.keys() {
            assert!(shard.cancel(*owner, 1));
        }
        for (owner, span, _) in &held {
            match span {
                OwnedSpan::Key(key) => {
                    shard.release(*owner, 1, key);
                }
                OwnedSpan::Range(..) => {
                    shard.release_ranges(*owner, 1, true);
                }
            }
        }
        assert_eq!(shard.sizes(), ((0, 0), 0, 0), "seed {seed}");
    }
}

fn note(held: &mut Vec<(TxnId, OwnedSpan, Mode)>, owner: TxnId, span: OwnedSpan, mode: Mode) {
    // A stronger lock on the same key takes the place of the weaker one.
    let weaker = |h: &(TxnId, OwnedSpan, Mode)| h.0 == owner && h.1 == span && h.2 <= mode;
    let key = matches!(span, OwnedSpan::Key(_));
    held.retain(|h| !(key && weaker(h)));
    held.push((owner, span, mode));
}
