//! Ranges of keys that tables span, and the search for the tables that overlap one.

use crate::table::meta::TableMeta;
use std::ops::Range;
use std::sync::Arc;

/// The keys from `smallest` to `largest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub smallest: Vec<u8>,
    /// The last key, or the first key after the range: see `largest_exclusive`.
    pub largest: Vec<u8>,
    /// Whether `largest` itself is outside.
    pub largest_exclusive: bool,
}

impl KeyRange {
    /// The range of one table.
    pub fn of(table: &TableMeta) -> KeyRange {
        KeyRange {
            smallest: table.smallest.clone(),
            largest: table.largest.clone(),
            largest_exclusive: table.largest_exclusive,
        }
    }

    /// The range that spans all of the tables; `None` if there are none.
    pub fn hull<'a>(tables: impl IntoIterator<Item = &'a Arc<TableMeta>>) -> Option<KeyRange> {
        let mut tables = tables.into_iter();
        let mut hull = KeyRange::of(tables.next()?);
        for table in tables {
            hull.extend(table);
        }
        Some(hull)
    }

    /// Widens the range so that it spans the table too.
    pub fn extend(&mut self, table: &TableMeta) {
        if table.smallest < self.smallest {
            self.smallest.clone_from(&table.smallest);
        }
        if table.largest > self.largest {
            self.largest.clone_from(&table.largest);
            self.largest_exclusive = table.largest_exclusive;
        } else if table.largest == self.largest && !table.largest_exclusive {
            self.largest_exclusive = false;
        }
    }

    /// Whether all of the range lies before `key`.
    #[inline]
    pub fn is_before(&self, key: &[u8]) -> bool {
        if self.largest_exclusive {
            self.largest.as_slice() <= key
        } else {
            self.largest.as_slice() < key
        }
    }

    /// Whether the ranges have a key in common.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        !self.is_before(&other.smallest) && !other.is_before(&self.smallest)
    }

    /// Whether the table has keys of the range.
    #[inline]
    pub fn overlaps_table(&self, table: &TableMeta) -> bool {
        !self.is_before(&table.smallest) && !table.is_before(&self.smallest)
    }

    /// Whether all of the table is inside.
    pub fn spans(&self, table: &TableMeta) -> bool {
        self.smallest <= table.smallest
            && (table.largest < self.largest
                || table.largest == self.largest
                    && (table.largest_exclusive || !self.largest_exclusive))
    }
}

/// Which of the tables of a level below 0 (sorted, disjoint) overlap `range`.
pub fn overlapping(tables: &[Arc<TableMeta>], range: &KeyRange) -> Range<usize> {
    let start = tables.partition_point(|table| table.is_before(&range.smallest));
    let count = tables[start..].partition_point(|table| !range.is_before(&table.smallest));
    start..start + count
}

/// The bytes of the tables' files.
pub fn bytes_of<'a>(tables: impl IntoIterator<Item = &'a Arc<TableMeta>>) -> u64 {
    tables.into_iter().map(|table| table.file_bytes).sum()
}
