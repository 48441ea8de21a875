//! Interleavings of inserts and reads, explored step by step:
//! `cargo test -p shaledb --lib --features shuttle memtable::shuttle`.

use shuttle::thread;

use super::hints::HINT_HEIGHT;
use super::node::Target;
use super::*;
use crate::base::key::SEQ_MAX;

/// Runs `test` under many random schedules and under those with few preemptions.
fn explore(test: fn()) {
    shuttle::check_random(test, 2000);
    shuttle::check_pct(test, 1000, 3);
}

/// The keys in order; panics if they are not.
fn keys(memtable: &Memtable) -> Vec<(Vec<u8>, SeqNo)> {
    let mut cursor = memtable.cursor();
    let mut keys: Vec<(Vec<u8>, SeqNo)> = Vec::new();
    cursor.seek_first().unwrap();
    while cursor.valid() {
        let here = (cursor.key().to_vec(), cursor.seq());
        if let Some((key, seq)) = keys.last() {
            assert!(*key < here.0 || (*key == here.0 && *seq > here.1));
        }
        keys.push(here);
        cursor.next().unwrap();
    }
    keys
}

/// Neighbours inserted at once, with equal and unequal heads: every thread finds its own entry as
/// soon as its insert has returned, whatever the others are in the middle of.
#[test]
fn an_insert_that_returned_is_seen() {
    explore(|| {
        let memtable = Arc::new(Memtable::new());
        memtable.insert(b"a", 1, Kind::Put, b"1");
        memtable.insert(b"z", 2, Kind::Put, b"2");
        let inserts: [&[&[u8]]; 3] =
            [&[b"m", b"mm"], &[b"l", b"n"], &[b"mmmmmmmmx", b"mmmmmmmmw", b"m\0"]];
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let memtable = Arc::clone(&memtable);
                thread::spawn(move || {
                    for (at, key) in (0..).zip(inserts[thread as usize]) {
                        let seq = 10 + 10 * thread + at;
                        memtable.insert(key, seq, Kind::Put, &[thread as u8]);
                        let found = memtable.get(key, seq).expect("its insert returned");
                        assert_eq!((found.seq, found.value), (seq, &[thread as u8][..]));
                        let mut cursor = memtable.cursor();
                        cursor.seek(key, seq).unwrap();
                        assert_eq!((cursor.key(), cursor.seq()), (*key, seq));
                        cursor.prev().unwrap();
                        assert!(cursor.key() < *key);
                        assert!(memtable.last_seq() >= seq);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(keys(&memtable).len(), 9);
    });
}

/// Versions of one key: a reader at a sequence number sees exactly that version.
#[test]
fn versions_of_one_key() {
    explore(|| {
        let memtable = Arc::new(Memtable::new());
        let threads: Vec<_> = (1..=3u64)
            .map(|seq| {
                let memtable = Arc::clone(&memtable);
                thread::spawn(move || {
                    memtable.insert(b"key", seq, Kind::Put, &[seq as u8]);
                    assert_eq!(memtable.get(b"key", seq).map(|entry| entry.seq), Some(seq));
                    assert!(memtable.get(b"key", SEQ_MAX).is_some_and(|entry| entry.seq >= seq));
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let seqs: Vec<SeqNo> = keys(&memtable).into_iter().map(|(_, seq)| seq).collect();
        assert_eq!(seqs, [3, 2, 1]);
    });
}

/// A reader that walks while others insert sees what was there before it began, in order.
#[test]
fn a_walk_during_inserts_is_in_order() {
    explore(|| {
        let memtable = Arc::new(Memtable::new());
        for (seq, key) in (1..).zip([b"b", b"d", b"f"]) {
            memtable.insert(key, seq, Kind::Put, b"");
        }
        let writers: Vec<_> = [[b"a", b"e"], [b"c", b"g"]]
            .into_iter()
            .enumerate()
            .map(|(writer, mine)| {
                let memtable = Arc::clone(&memtable);
                thread::spawn(move || {
                    for (at, key) in mine.into_iter().enumerate() {
                        memtable.insert(key, (10 + 2 * writer + at) as u64, Kind::Put, b"");
                    }
                })
            })
            .collect();
        let seen = keys(&memtable);
        for key in [b"b", b"d", b"f"] {
            assert!(seen.iter().any(|(found, _)| found == key));
        }
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(keys(&memtable).len(), 7);
    });
}

/// Chunks are added by several threads at once, and the arena's counts stay exact.
#[test]
fn chunks_added_at_once() {
    explore(|| {
        let memtable = Arc::new(Memtable::new());
        let value = vec![0; 900];
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let (memtable, value) = (Arc::clone(&memtable), value.clone());
                thread::spawn(move || {
                    for at in 0..3u64 {
                        let seq = 1 + thread + 3 * at;
                        memtable.insert(&seq.to_be_bytes(), seq, Kind::Put, &value);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(keys(&memtable).len(), 9);
        assert!(memtable.used_bytes() > 9 * 900 && memtable.used_bytes() <= memtable.bytes());
    });
}

#[test]
fn inserts_by_hints_among_others() {
    fn run() {
        let memtable = Arc::new(Memtable::new());
        let mixed = |number: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // A list that has hints.
        for number in 0..40u64 {
            memtable.insert(&(mixed(number) >> 58).to_be_bytes(), number + 1, Kind::Put, b"");
        }
        // Neighbours in few places, with equal heads and others.
        let inserts: [&[(u64, &[u8])]; 3] = [
            &[(20, b""), (45, b"a"), (20, b"b"), (46, b"")],
            &[(21, b""), (45, b"b"), (20, b"a"), (45, b"")],
            &[(46, b"z"), (20, b"aa"), (45, b"c"), (19, b"z")],
        ];
        let threads: Vec<_> = (0u64..)
            .zip(inserts)
            .map(|(thread, inserts)| {
                let memtable = Arc::clone(&memtable);
                thread::spawn(move || {
                    let mut own: Vec<(Vec<u8>, u64)> = Vec::new();
                    for (at, (head, rest)) in (0..).zip(inserts) {
                        own.push((
                            [&head.to_be_bytes()[..], rest].concat(),
                            100 + 10 * thread + at,
                        ));
                        let (key, seq) = &own[at as usize];
                        memtable.insert(key, *seq, Kind::Put, &[thread as u8]);
                        for (key, seq) in &own {
                            let found = memtable.get(key, *seq).expect("its insert has returned");
                            assert_eq!(found.seq, *seq);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(keys(&memtable).len(), 52);
    }
    explore(run);
}

/// A filter begins between two inserts and is filled while others read at what was published.
#[test]
fn a_filter_excludes_nothing_that_was_published() {
    explore(|| {
        let memtable = Arc::new(Memtable::new());
        let visible = Arc::new(AtomicU64::new(4));
        (1..=4u64).for_each(|seq| memtable.insert(&seq.to_be_bytes(), seq, Kind::Put, b""));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (memtable, visible) = (Arc::clone(&memtable), Arc::clone(&visible));
                thread::spawn(move || {
                    for _ in 0..3 {
                        let seq = visible.load(Ordering::Acquire);
                        for key in [seq, 1, seq / 2 + 1] {
                            let found = memtable.get(&key.to_be_bytes(), seq);
                            assert_eq!(found.map(|entry| entry.seq), Some(key));
                        }
                    }
                })
            })
            .collect();
        for seq in 5..=8u64 {
            memtable.insert(&seq.to_be_bytes(), seq, Kind::Put, b"");
            visible.store(seq, Ordering::Release);
            if seq == 5 {
                memtable.begin_filter(1 << 12);
            }
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(memtable.get(&9u64.to_be_bytes(), SEQ_MAX), None);
    });
}

/// Searches begin at landmarks, and inserts where hints are of no use, while others are being
/// inserted and new landmarks made.
#[test]
fn an_insert_that_returned_is_seen_from_landmarks() {
    explore(|| {
        let memtable = Arc::new(Memtable::new());
        // Their heads are equal, and some have the height of landmarks.
        let key = |number: u64| format!("same head {:02}", number * 2).into_bytes();
        for number in 0..40 {
            memtable.insert(&key(number), number + 1, Kind::Put, b"v");
        }
        (0..8).for_each(|number| assert!(memtable.get(&key(number), SEQ_MAX).is_some()));
        let begins_near =
            |number| memtable.list.begin(&Target::at(&key(number), 0)).1 == HINT_HEIGHT;
        assert!((0..40).any(begins_near), "there are landmarks");
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let memtable = Arc::clone(&memtable);
                thread::spawn(move || {
                    for at in 0..3 {
                        let key = format!("same head {:02}", 5 + thread * 2 + at * 6).into_bytes();
                        let seq = 100 + 10 * thread + at;
                        memtable.insert(&key, seq, Kind::Put, b"v");
                        let found = memtable.get(&key, SEQ_MAX).expect("its insert returned");
                        assert_eq!(found.seq, seq);
                        let mut cursor = memtable.cursor();
                        cursor.seek_back(&key, 0).unwrap();
                        assert_eq!((cursor.key(), cursor.seq()), (&key[..], seq));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(keys(&memtable).len(), 49);
    });
}
