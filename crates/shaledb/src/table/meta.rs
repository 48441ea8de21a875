//! What the tree knows of a table without opening it. Kept in the manifest.

use crate::base::key::SeqNo;
use serde::{Serialize, Serializer};

/// The number of a file in a database; never used twice.
///
/// ```
/// let id: shaledb::inspect::FileId = 123;
/// let name = format!("{id:06}.table");
/// assert_eq!(name, "000123.table");
/// ```
pub type FileId = u64;

/// One table file, described.
///
/// ```
/// use shaledb::inspect::TableMeta;
///
/// let (smallest, largest) = (b"a".to_vec(), b"m".to_vec());
/// let table = TableMeta { smallest, largest, entries: 3, ..TableMeta::default() };
/// assert!(table.covers(b"b") && !table.covers(b"x"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableMeta {
    /// The file's number.
    pub id: FileId,
    /// The file's length in bytes.
    pub file_bytes: u64,
    /// The smallest user key of an entry or the start of a range delete.
    #[serde(serialize_with = "as_text")]
    pub smallest: Vec<u8>,
    /// The largest user key of an entry, or the end of a range delete.
    #[serde(serialize_with = "as_text")]
    pub largest: Vec<u8>,
    /// Whether `largest` is the end of a range delete, so that no entry has that key.
    pub largest_exclusive: bool,
    /// The oldest and newest sequence number inside (range deletes included).
    pub min_seq: SeqNo,
    /// See `min_seq`.
    pub max_seq: SeqNo,
    /// For an ingested table: the sequence number of all its entries, which carry none themselves;
    /// otherwise 0.
    pub ingest_seq: SeqNo,
    /// Entries, deletes included, range deletes not.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Fragments of range deletes.
    pub range_deletes: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Bytes of the data blocks before compression.
    pub raw_bytes: u64,
    /// Bytes of the data blocks in the file.
    pub data_bytes: u64,
    /// Blob files whose values this table refers to, ascending.
    pub blobs: Vec<FileId>,
}

/// A key as text, what is not printable ASCII escaped.
fn as_text<S: Serializer>(key: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&key.escape_ascii())
}

impl TableMeta {
    /// Whether `key` lies in the table's key range.
    ///
    /// ```
    /// # use shaledb::inspect::TableMeta;
    /// # let (smallest, largest) = (b"a".to_vec(), b"m".to_vec());
    /// let table = TableMeta { smallest, largest, ..TableMeta::default() };
    /// assert!(table.covers(b"a") && table.covers(b"m") && !table.covers(b"mm"));
    /// ```
    #[inline]
    pub fn covers(&self, key: &[u8]) -> bool {
        self.smallest.as_slice() <= key && !self.is_before(key)
    }

    /// Whether all of the table lies before `key`.
    ///
    /// ```
    /// # use shaledb::inspect::TableMeta;
    /// # let (smallest, largest) = (b"a".to_vec(), b"m".to_vec());
    /// let table = TableMeta { smallest, largest, ..TableMeta::default() };
    /// assert!(table.is_before(b"n") && !table.is_before(b"m"));
    /// ```
    #[inline]
    pub fn is_before(&self, key: &[u8]) -> bool {
        if self.largest_exclusive {
            self.largest.as_slice() <= key
        } else {
            self.largest.as_slice() < key
        }
    }

    /// Whether the key ranges of the two tables have a key in common.
    ///
    /// ```
    /// # use shaledb::inspect::TableMeta;
    /// # let table = |smallest: &[u8], largest: &[u8]| TableMeta {
    /// #     smallest: smallest.to_vec(),
    /// #     largest: largest.to_vec(),
    /// #     ..TableMeta::default()
    /// # };
    /// let (a_to_m, m_to_z, n_to_z) = (table(b"a", b"m"), table(b"m", b"z"), table(b"n", b"z"));
    /// assert!(a_to_m.overlaps(&m_to_z) && !a_to_m.overlaps(&n_to_z));
    /// ```
    pub fn overlaps(&self, other: &TableMeta) -> bool {
        !self.is_before(&other.smallest) && !other.is_before(&self.smallest)
    }
}
