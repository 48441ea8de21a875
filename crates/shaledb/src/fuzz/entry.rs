//! The changes of a unique key, as writers put them into a tree.

use crate::db::{UniqueRow, entry_of_row, split_entry};

/// Takes bytes for an entry of (key, row), and for a value that tells its row: an entry is made in
/// one way only.
pub fn entry(data: &[u8]) {
    let mut key = Vec::new();
    if let Some(row) = split_entry(data, &mut key) {
        assert_eq!(entry_of_row(&key, row), data, "an entry has one form");
    }
    for unique in [UniqueRow::Value, UniqueRow::Counted] {
        assert!(unique.of(data).is_none_or(|row| row.len() <= data.len()));
    }
    let cut = data.first().map_or(0, |cut| usize::from(*cut) % data.len().max(1));
    let (key, row) = data.split_at(cut.min(data.len()));
    let mut found = Vec::new();
    assert_eq!(split_entry(&entry_of_row(key, row), &mut found), Some(row));
    assert_eq!(found, key);
}
