use super::*;
use crate::base::key::compare;
use crate::table::format::block_builder::BlockBuilder;
use crate::table::testing::{Chance, Entry, entries};

fn build(entries: &[Entry]) -> Vec<u8> {
    let mut builder = BlockBuilder::new();
    // What is left from an earlier block must not show.
    builder.add(b"earlier", 9, Kind::Delete, b"");
    builder.finish();
    builder.reset();
    for (key, seq, kind, value) in entries {
        builder.add(key, *seq, *kind, value);
    }
    let size = builder.size();
    let image = builder.finish().to_vec();
    let is_wide = image[image.len() - 7] & FLAG_WIDE != 0;
    assert!(is_wide || image.len() == size, "{} {size}", image.len());
    image
}

fn content(block: &Block) -> Vec<Entry> {
    (0..block.entries())
        .map(|index| {
            let (seq, kind) = block.tag(index);
            (block.key(index), seq, kind, block.value(index).to_vec())
        })
        .collect()
}

fn plain(keys: &[&str], value: &str) -> Vec<Entry> {
    keys.iter().map(|key| (key.as_bytes().to_vec(), 0, Kind::Put, value.into())).collect()
}

fn check(entries: &[Entry]) {
    let block = Block::parse(build(entries)).unwrap();
    assert_eq!(content(&block), entries);
    let key_bytes: usize = entries.iter().map(|entry| entry.0.len()).sum();
    let value_bytes: usize = entries.iter().map(|entry| entry.3.len()).sum();
    assert_eq!(block.key_bytes(), key_bytes as u64);
    assert_eq!(block.value_bytes(), value_bytes as u64);
    let deletes = entries.iter().filter(|entry| entry.2 == Kind::Delete).count();
    assert_eq!(block.count_deletes(), deletes as u64);
    let mut probes: Vec<(Vec<u8>, SeqNo)> = vec![(vec![], 5), (b"~".to_vec(), 5)];
    for (key, seq, ..) in entries {
        let shorter = &key[..key.len() - key.len().min(1)];
        for probe in [key.as_slice(), shorter, &[key, &b"\0"[..]].concat()] {
            for seq in [0, seq.saturating_sub(1), *seq, seq + 1, SEQ_MAX] {
                probes.push((probe.to_vec(), seq));
            }
        }
    }
    for (key, _) in &probes {
        let before = entries.last().is_none_or(|last| last.0 < *key);
        assert_eq!(block.is_before(key), before, "{key:?}");
    }
    for (key, seq) in probes {
        let naive = entries.partition_point(|e| compare(&e.0, e.1, &key, seq).is_lt());
        assert_eq!(block.lower_bound(&key, seq), naive, "{key:?} {seq}");
        if naive < entries.len() {
            assert_eq!(block.key_is(naive, &key), entries[naive].0 == key);
        }
    }
}

#[test]
fn blocks_of_all_shapes_round_trip() {
    check(&[]);
    check(&plain(&[""], ""));
    check(&plain(&["only"], "value"));
    check(&plain(&["", "a", "ab", "abc", "abd"], "same"));
    check(&plain(&["key-1", "key-2", "key-3"], ""));
    check(&plain(&["aaaaaaaab", "aaaaaaaabc", "aaaaaaaac", "aaaaaaaacaaaaaaaab"], "v"));
    check(&entries(200, 4, 3));
    check(&entries(60, 1, 4));
    let mut big = entries(30, 2, 5);
    big[7].3 = vec![b'x'; 70_000];
    check(&big);
    let long = |byte: u8| (vec![byte; 40_000], 3, Kind::Put, vec![byte]);
    check(&[long(b'a'), long(b'b')]);
}

#[test]
fn sequence_numbers_keep_their_width() {
    for width in 0..7 {
        let base = 1000;
        let far = base + (1u64 << (8 * width));
        let far = far.min(SEQ_MAX);
        check(&[
            (b"a".to_vec(), far, Kind::Put, b"1".to_vec()),
            (b"a".to_vec(), base, Kind::Blob, b"2".to_vec()),
            (b"b".to_vec(), far, Kind::Merge, b"3".to_vec()),
        ]);
    }
    check(&[
        (b"a".to_vec(), SEQ_MAX, Kind::Delete, vec![]),
        (b"a".to_vec(), 0, Kind::Put, vec![1]),
    ]);
}

#[test]
fn a_block_is_these_bytes() {
    let image = build(&[
        (b"ka".to_vec(), 7, Kind::Put, b"one".to_vec()),
        (b"kbc".to_vec(), 5, Kind::Delete, b"".to_vec()),
    ]);
    let expected = [
        &b"one"[..],
        b"k",
        b"abc",
        &[2 << 3 | 1, 0],
        &[1, 0, 3, 0],
        &[3, 0, 3, 0],
        &[2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0],
        &[5, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(image, expected.concat());
    let image = build(&plain(&["ka", "kb"], "v"));
    let expected = [
        &b"vvkab"[..],
        &[2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0],
        &[0; 8],
        &[0, FLAG_FIXED_KEYS | FLAG_FIXED_VALUES, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(image, expected.concat());
}

/// Calls everything that takes an entry's number.
fn walk(block: &Block) {
    content(block);
    for key in [&b""[..], b"user/00010", b"zzzzzzzzzzzz"] {
        let at = block.lower_bound(key, 77);
        assert!(at <= block.entries());
    }
    block.count_deletes();
}

#[test]
fn any_bytes_are_safe() {
    let mut chance = Chance(11);
    let images =
        [build(&entries(20, 3, 8)), build(&plain(&["a", "b"], "x")), build(&entries(1, 1, 1))];
    for image in images {
        for cut in 0..image.len() {
            if let Ok(block) = Block::parse(image[..cut].to_vec()) {
                walk(&block);
            }
        }
        for _ in 0..20_000 {
            let mut image = image.clone();
            for _ in 0..1 + chance.below(3) {
                // Half of the damage goes to the part that describes the rest.
                let back = if chance.below(2) == 0 { 32 } else { image.len() as u64 };
                let at = image.len() - 1 - chance.below(back.min(image.len() as u64)) as usize;
                image[at] = chance.below(256) as u8;
            }
            if let Ok(block) = Block::parse(image) {
                walk(&block);
            }
        }
    }
}

#[test]
fn a_slice_keeps_its_block() {
    let block = Arc::new(Block::parse(build(&plain(&["a", "b"], "value"))).unwrap());
    let slice = BlockSlice::value_of(Arc::clone(&block), 1);
    drop(block);
    assert_eq!(&*slice, b"value");
}
