use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::*;
use crate::base::cursor::Cursor;
use crate::base::key::{Kind, SEQ_MAX};
use crate::memtable::Memtable;
use crate::memtable::tests::size;

type Place = (Vec<u8>, Reverse<u64>);

fn made(memtable: &Memtable) -> usize {
    memtable.list.landmarks.get().map_or(0, |all| all.made.load(Ordering::Relaxed))
}

/// The keys that index entries, rows and others have: alike in more words than landmarks keep, or
/// in none; long, short and empty; few with many versions; in order.
fn shapes() -> [fn(u64) -> Vec<u8>; 7] {
    [
        |at| mixed(at).to_be_bytes().to_vec(),
        |at| [7u64.to_be_bytes(), (mixed(at) % 40).to_be_bytes(), at.to_be_bytes()].concat(),
        |at| [&[b'x'; 50][..], &mixed(at).to_be_bytes()].concat(),
        |at| vec![(mixed(at) % 3) as u8; (mixed(at) >> 8) as usize % 40],
        |at| (mixed(at) % 5).to_be_bytes().to_vec(),
        |at| format!("row/{at:08}").into_bytes(),
        |at| format!("{}/{:08}", if at < 200 { "m" } else { "a" }, mixed(at)).into_bytes(),
    ]
}

fn mixed(at: u64) -> u64 {
    (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

#[test]
fn searches_by_landmarks_equal_those_of_a_model() {
    for (shape, key) in shapes().iter().enumerate() {
        let mut random = Pcg64Mcg::seed_from_u64(shape as u64);
        let (memtable, mut model) = (Memtable::new(), BTreeSet::<Place>::new());
        for number in 0..size(3000, 150) as u64 {
            memtable.insert(&key(number), number + 1, Kind::Put, b"v");
            model.insert((key(number), Reverse(number + 1)));
            // Of what is there, of what is not yet, and of what never comes.
            let mut asked = key(random.random_range(0..2 * number + 2));
            asked.extend_from_slice(&b"z"[..random.random_range(0..2)]);
            asked.truncate(random.random_range(0..4) * 20 + asked.len() % 20);
            let seq = random.random_range(1..number + 3);
            let target = (asked.clone(), Reverse(seq));
            let at_or_after = model.range(&target..).next();
            let newest = at_or_after.filter(|(key, _)| *key == asked).map(|(_, seq)| seq.0);
            assert_eq!(memtable.get(&asked, seq).map(|entry| entry.seq), newest, "{shape}");
            let mut cursor = memtable.cursor();
            cursor.seek(&asked, seq).unwrap();
            let here = cursor.valid().then(|| (cursor.key().to_vec(), Reverse(cursor.seq())));
            assert_eq!(here.as_ref(), at_or_after, "shape {shape}");
            cursor.seek_back(&asked, seq).unwrap();
            let here = cursor.valid().then(|| (cursor.key().to_vec(), Reverse(cursor.seq())));
            assert_eq!(here.as_ref(), model.range(..&target).next_back(), "shape {shape}");
            let upper = key(random.random_range(0..=number));
            let (count, found) = memtable.sample(&asked, Some(&upper), 8);
            let few = (count as usize == found.len()).then_some(count as usize);
            let until = (upper, Reverse(SEQ_MAX));
            let from = (asked, Reverse(SEQ_MAX));
            let true_count = if from < until { model.range(from..until).count() } else { 0 };
            assert!(few.is_none_or(|few| few == true_count), "{count} of {true_count}, {shape}");
        }
        assert!(made(&memtable) > 0 && memtable.bytes() > memtable.list.bytes(), "shape {shape}");
    }
}

/// They are the nodes of their level, but for those that came while they were made.
#[test]
fn landmarks_follow_a_list_that_grows() {
    let memtable = Memtable::new();
    let key = |number: u64| [5u64, mixed(number)].map(u64::to_be_bytes).concat();
    let mut number = 0;
    for entries in [size(500, 100), size(2000, 200), size(8000, 400)] {
        while number < entries as u64 {
            memtable.insert(&key(number), number + 1, Kind::Put, b"v");
            number += 1;
        }
        // Who comes to far nodes asks for new ones; each search does a part.
        for searched in 0..2 * number {
            memtable.get(&key(searched % number), SEQ_MAX).expect("it was inserted");
        }
        assert!((1..GENERATIONS).contains(&made(&memtable)), "of {entries}");
        let near = |number: &u64| memtable.list.begin(&Target::at(&key(*number), 0)).1;
        let found = (0..number).filter(|number| near(number) == HINT_HEIGHT).count();
        assert!(found * 4 >= entries * 3, "{found} of {entries}");
    }
}

/// Before the first one searches begin at the head, and ask for new ones when it is far.
#[test]
fn keys_that_descend_have_landmarks() {
    let memtable = Memtable::new();
    let count = size(3000, 300) as u64;
    let near = |number: u64| {
        memtable.list.begin(&Target::at(&(count - number).to_be_bytes(), 0)).1 == HINT_HEIGHT
    };
    let mut found = 0;
    for number in 0..count {
        memtable.insert(&(count - number).to_be_bytes(), number + 1, Kind::Put, b"v");
        found += u64::from(near(number / 2)) + u64::from(near(number));
    }
    assert!(found > count, "{found} of {}", 2 * count);
}

/// A list that is small takes no memory for them.
#[test]
fn small_lists_have_none() {
    let memtable = Memtable::new();
    for number in 0..4u64 {
        memtable.insert(&number.to_be_bytes(), number + 1, Kind::Put, b"v");
        memtable.get(b"absent", SEQ_MAX);
    }
    assert!(memtable.list.height() < MARKED_FROM && memtable.list.landmarks.get().is_none());
    for number in 4..200u64 {
        memtable.insert(&number.to_be_bytes(), number + 1, Kind::Put, b"v");
    }
    assert!((4..=12).contains(&memtable.list.height()), "{}", memtable.list.height());
}

/// A range that has grown since they were made costs no more than others.
#[test]
fn a_sample_of_what_came_since_is_small() {
    let memtable = Memtable::new();
    let insert = |number: u64| {
        memtable.insert(&number.to_be_bytes(), number + 1, Kind::Put, b"v");
    };
    let (early, late) = (size(1000, 100) as u64, size(20_000, 2000) as u64);
    (0..early).for_each(insert);
    (0..early).for_each(|number| assert!(memtable.get(&number.to_be_bytes(), SEQ_MAX).is_some()));
    (early..late).for_each(insert);
    let lower = (early - 50).to_be_bytes();
    let (entries, found) = memtable.sample(&lower, None, 8);
    assert!((8..80).contains(&found.len()), "{} found", found.len());
    assert!((late / 3..3 * late).contains(&entries), "{entries} of {late}");
}

/// What comes while they are made may be missing; nothing else is, and they are in order.
#[test]
fn landmarks_are_in_the_order_of_the_list() {
    let memtable = Memtable::new();
    for number in 0..size(2000, 200) as u64 {
        memtable.insert(&mixed(number).to_be_bytes(), number + 1, Kind::Put, b"v");
        memtable.get(b"absent", SEQ_MAX);
    }
    let landmarks = memtable.list.landmarks.get().unwrap();
    for generation in landmarks.generations.iter().map_while(OnceLock::get) {
        // SAFETY: they are nodes of a list that lives.
        let keys = generation.marks.iter().map(|mark| unsafe { node_key(mark.node) });
        assert!(
            keys.clone().is_sorted() && keys.clone().all(|key| key.starts_with(&generation.prefix))
        );
        assert!(generation.marks.is_sorted_by_key(|mark| mark.words));
    }
}
