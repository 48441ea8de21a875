//! What the tree knows of a table without opening it. Kept in the manifest.

use crate::base::config::Codec;
use crate::base::key::SeqNo;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;

/// Why a table has the codec that it has.
///
/// ```
/// use shaledb::inspect::Why;
///
/// assert_eq!(Why::default(), Why::Set);
/// assert!(Why::CpuShort.words().contains("CPU is short"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The tree's settings name it.
    #[default]
    Set,
    /// Nothing was known of the data yet.
    Unmeasured,
    /// The data does not become smaller.
    Plain,
    /// Flushes and compactions could hardly keep up, or threads waited for a core.
    CpuShort,
    /// Flushes and compactions could hardly keep up, and waited for storage.
    StorageShort,
    /// The level is read so often that decompressing counts.
    Read,
    /// There was CPU to spare for fewer bytes.
    CpuFree,
}

impl Why {
    /// All reasons, in the order of their numbers.
    pub(crate) const ALL: [Why; 7] = [
        Why::Set,
        Why::Unmeasured,
        Why::Plain,
        Why::CpuShort,
        Why::StorageShort,
        Why::Read,
        Why::CpuFree,
    ];

    /// Its number in files: never change one.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// The reason of a number; of one that is not known here, [`Why::Set`].
    pub(crate) fn of_number(number: u64) -> Why {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        Why::ALL.get(index).copied().unwrap_or_default()
    }

    /// The reason in words.
    ///
    /// ```
    /// assert_eq!(shaledb::inspect::Why::Set.words(), "it is set");
    /// ```
    pub fn words(self) -> &'static str {
        match self {
            Why::Set => "it is set",
            Why::Unmeasured => "nothing is measured yet, and it usually suits this level",
            Why::Plain => "the data does not become smaller",
            Why::CpuShort => "CPU is short, and it costs the least time",
            Why::StorageShort => "storage is short, and fewer bytes take less time",
            Why::Read => "the level is read often, and it decompresses fast",
            Why::CpuFree => "there is CPU to spare for fewer bytes",
        }
    }
}

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
    /// The codec that its blocks were written with, if the engine chose it; blocks taken over from
    /// other tables may have others.
    #[serde(serialize_with = "as_name")]
    pub codec: Option<Codec>,
    /// Why it is this codec.
    pub why: Why,
}

fn as_name<S: Serializer>(codec: &Option<Codec>, to: S) -> Result<S::Ok, S::Error> {
    match codec {
        Some(codec) => to.collect_str(codec),
        None => to.serialize_none(),
    }
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

    /// Its place in level 0, ascending: of two tables with a key in common, the one with the newer
    /// versions comes first.
    ///
    /// Tables whose highest number is the same are of one bulk load or merge, and have no key in
    /// common; or one of them was merged with older tables since, which its lowest number shows.
    pub(crate) fn age(&self) -> (Reverse<SeqNo>, Reverse<SeqNo>) {
        (Reverse(self.max_seq), Reverse(self.min_seq))
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

    /// Whether it may have keys from `lower` up to (not including) `upper`; `None` is no bound.
    ///
    /// ```
    /// # use shaledb::inspect::TableMeta;
    /// # let (smallest, largest) = (b"d".to_vec(), b"m".to_vec());
    /// let table = TableMeta { smallest, largest, ..TableMeta::default() };
    /// assert!(table.meets(Some(b"m"), None) && table.meets(None, Some(b"dd")));
    /// assert!(!table.meets(Some(b"n"), None) && !table.meets(None, Some(b"d")));
    /// ```
    #[inline]
    pub fn meets(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> bool {
        lower.is_none_or(|lower| !self.is_before(lower))
            && upper.is_none_or(|upper| self.smallest.as_slice() < upper)
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
