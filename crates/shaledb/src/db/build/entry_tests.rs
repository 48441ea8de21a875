//! Tests of the form of entries, and of what is none.

use super::*;

/// All texts of up to three of these bytes.
fn texts() -> Vec<Vec<u8>> {
    let bytes = [0u8, 1, 2, 255];
    let mut texts = vec![Vec::new()];
    let mut longest = texts.clone();
    for _ in 0..3 {
        let longer = |text: &Vec<u8>| bytes.map(|byte| [&text[..], &[byte]].concat());
        longest = longest.iter().flat_map(longer).collect();
        texts.extend(longest.iter().cloned());
    }
    texts
}

#[test]
fn entries_give_back_what_they_were_made_of_and_sort_by_key_then_row() {
    let texts = texts();
    let rows = &texts[..25];
    let mut entries = Vec::new();
    let mut found = Vec::new();
    for key in &texts {
        for row in rows {
            let entry = entry_of_row(key, row);
            assert_eq!(split_entry(&entry, &mut found), Some(&row[..]));
            assert_eq!(&found, key);
            entries.push((entry, key, row));
        }
    }
    entries.sort();
    assert!(entries.is_sorted_by(|a, b| (a.1, a.2) < (b.1, b.2)));
}

#[test]
fn other_bytes_are_no_entries() {
    let mut key = Vec::new();
    for bytes in [&b""[..], b"a", b"a\0", b"\0\x02row", b"a\0\x01", b"a\0\xff\0\0row"] {
        assert_eq!(split_entry(bytes, &mut key), None, "{bytes:?}");
    }
}

#[test]
fn a_value_tells_its_row() {
    assert_eq!(UniqueRow::Value.of(b"row"), Some(&b"row"[..]));
    assert_eq!(UniqueRow::Counted.of(b"\x03row and more"), Some(&b"row"[..]));
    assert_eq!(UniqueRow::Counted.of(b"\0more"), Some(&b""[..]));
    assert_eq!(UniqueRow::Counted.of(b"\x04row"), None);
    assert_eq!(UniqueRow::Counted.of(b""), None);
}
