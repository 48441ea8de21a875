use super::*;
use crate::table::format::Handle;
use crate::table::format::block::{FLAG_FIXED_KEYS, FLAG_FIXED_VALUES, TRAILER_BYTES};
use crate::table::testing::Chance;

fn between(last: &str, next: &str) -> String {
    let mut out = b"junk".to_vec();
    separator(last.as_bytes(), next.as_bytes(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn separators_are_short() {
    assert_eq!(between("apple", "crab"), "b");
    assert_eq!(between("apple", "banana"), "aq");
    assert_eq!(between("user1999", "user2000"), "user1:");
    assert_eq!(between("abc", "abcd"), "abc");
    assert_eq!(between("abc", "abc"), "abc");
    assert_eq!(between("", "a"), "");
    assert_eq!(between("a", "b"), "a");
}

#[test]
fn separators_lie_between() {
    let mut chance = Chance(5);
    let mut key = || -> Vec<u8> {
        let length = chance.below(5);
        (0..length).map(|_| [0, 1, 0x7f, 0xfe, 0xff][chance.below(5) as usize]).collect()
    };
    let mut out = Vec::new();
    for _ in 0..20_000 {
        let (mut last, mut next) = (key(), key());
        if last > next {
            std::mem::swap(&mut last, &mut next);
        }
        separator(&last, &next, &mut out);
        assert!(last <= out && out.len() <= last.len());
        assert!(out < next || last == next, "{last:?} {out:?} {next:?}");
    }
}

fn index_of(separators: &[Vec<u8>]) -> Index {
    let mut builder = IndexBuilder::default();
    for (at, separator) in separators.iter().enumerate() {
        let handle = Handle { offset: 100 * at as u64, bytes: 100 };
        builder.add(separator, &BlockInfo { handle, entries: 3, tagged: false, deletes: true });
    }
    Index::parse(builder.finish().to_vec(), 0..100 * separators.len() as u64).unwrap()
}

#[test]
fn finds_the_block_of_a_key() {
    let mut chance = Chance(9);
    for prefix in ["", "some long prefix of all keys/"] {
        let mut separators: Vec<Vec<u8>> = (0..300)
            .map(|_| {
                let tail = "x".repeat(chance.below(10) as usize);
                format!("{prefix}{}{tail}{}", chance.below(10), chance.below(40)).into_bytes()
            })
            .collect();
        separators.sort();
        let index = index_of(&separators);
        assert_eq!(index.blocks(), 300);
        assert_eq!(index.data_end(), 30_000);
        let mut keys = separators.clone();
        keys.extend(separators.iter().map(|key| [key, &b"\0"[..]].concat()));
        keys.extend(separators.iter().map(|key| key[..key.len() - 1].to_vec()));
        keys.extend([b"".to_vec(), b"~".to_vec()]);
        for key in keys {
            let naive = separators.partition_point(|separator| *separator < key);
            assert_eq!(index.find(&key), naive);
            let reaches = (0..300).map(|at| index.reaches(at, &key));
            assert!(reaches.eq(separators.iter().map(|separator| *separator >= key)));
            if naive < 300 {
                assert_eq!(index.separator_is(naive, &key), separators[naive] == key);
                assert_eq!(index.info(naive).handle.offset, 100 * naive as u64);
            }
        }
    }
}

#[test]
fn entries_are_counted_up_to_any_block() {
    let mut chance = Chance(12);
    for blocks in [1, 15, 16, 17, 32, 100] {
        let mut builder = IndexBuilder::default();
        let mut of_blocks = Vec::new();
        for at in 0..blocks {
            let handle = Handle { offset: 10 * at as u64, bytes: 10 };
            let entries = 1 + chance.below(4) as u32;
            of_blocks.extend(std::iter::repeat_n(at, entries as usize));
            let key = format!("{at:05}");
            let info = BlockInfo { handle, entries, tagged: false, deletes: false };
            builder.add(key.as_bytes(), &info);
        }
        let index = Index::parse(builder.finish().to_vec(), 0..10 * blocks as u64).unwrap();
        for at in 0..=blocks {
            let before = of_blocks.iter().filter(|&&block| block < at).count() as u64;
            assert_eq!(index.entries_before(at), before, "{at} of {blocks}");
        }
        for (entry, &block) in of_blocks.iter().enumerate() {
            assert_eq!(index.block_of(entry as u64), block, "{entry} of {blocks}");
        }
        assert_eq!(index.block_of(of_blocks.len() as u64 + 5), blocks - 1);
    }
}

/// Entries that take no bytes would bound nothing, and each takes memory in the index.
#[test]
fn more_blocks_than_bytes_are_refused() {
    let mut image = IndexBuilder::default().finish().to_vec();
    let trailer = image.len() - TRAILER_BYTES;
    image[trailer..trailer + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    image[trailer + 25] = FLAG_FIXED_KEYS | FLAG_FIXED_VALUES;
    assert!(Block::parse(image.clone()).is_err());
    assert!(Index::parse(image, 0..0).is_err());
}

#[test]
fn an_index_covers_the_data() {
    let mut builder = IndexBuilder::default();
    let info = BlockInfo {
        handle: Handle { offset: 0, bytes: 50 },
        entries: 1,
        tagged: false,
        deletes: false,
    };
    builder.add(b"k", &info);
    let image = builder.finish().to_vec();
    assert!(Index::parse(image.clone(), 0..50).is_ok());
    assert!(Index::parse(image.clone(), 0..51).is_err());
    assert!(Index::parse(image.clone(), 1..50).is_err());
    assert!(Index::parse(image, 0..0).is_err());
    assert_eq!(Index::parse(IndexBuilder::default().finish().to_vec(), 0..0).unwrap().blocks(), 0);
}
