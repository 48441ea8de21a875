//! What a reader of one tree sees: the memtables and the tables, behind one `Arc`.
//!
//! A state never changes; a flush or a compaction makes a new one. Only the active memtable grows,
//! by entries newer than any sequence number that a reader of this state was given.
//!
//! The sources are ordered from new to old: for any one key, every version in the active memtable
//! is newer than every version in a sealed one, those are newer the nearer to the front, all are
//! newer than those in level 0, and a level's are newer than those of the levels below it. A
//! look-up may therefore stop at the first version that it may see. What makes it so:
//!
//! - A memtable is sealed between two commits, so memtables never overlap in sequence numbers, and
//!   neither do the tables flushed from them.
//! - Level 0 is sorted by largest, then smallest sequence number. All entries of an ingested table
//!   have one sequence number, given out after everything older was sealed, so it does not lie
//!   within the span of a flushed table.
//! - A compaction takes, with a version of a key, all older versions of that key in its levels.
//!
//! While a compaction is installed in stages, and after one that ended between two, lower sources
//! may have copies of entries of higher ones: see [`crate::compaction::stages`]. The first version
//! that a reader may see is still the newest such.

use crate::base::sync::Arc;
use crate::memtable::Memtable;
use crate::version::Version;

/// The memtables and tables of a tree at one moment. Aligned, so that the count of the references
/// to it, which scans change, is on another cache line than what all reads go by.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct TreeState {
    /// Where writes go.
    pub active: Arc<Memtable>,
    /// Waiting to be flushed, newest first.
    pub sealed: Vec<Arc<Memtable>>,
    /// The tables.
    pub version: Arc<Version>,
}

impl TreeState {
    /// That of a tree without entries.
    pub fn empty() -> TreeState {
        let active = Arc::new(Memtable::new());
        TreeState { active, sealed: Vec::new(), version: Arc::new(Version::new()) }
    }

    /// All memtables, newest first.
    #[inline]
    pub fn memtables(&self) -> impl DoubleEndedIterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }
}
