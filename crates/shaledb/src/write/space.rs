//! What becomes of writes near the limit on space: a pure function of what is counted.
//!
//! From far below the limit to the limit itself: nothing; merges make room before all else; writers
//! are slowed while that goes on; puts are refused. Below the limit are kept back, from the top:
//!
//! - room for the manifest and for what is in memtables: what is acknowledged can be flushed;
//! - room for deletes, which only later make room;
//! - room for one merge, which makes it.
//!
//! So with every put refused deletes go on, and so do the merges that give their room back.

use crate::fs::balance::{Balance, HeldBack, Limit};
use serde::Serialize;

/// Unless it is set, a memtable is at most one part in so many of the limit: four of them may be in
/// memory, and as much of the log on the disk.
const MEMTABLE_SHARE: u64 = 128;

/// A table is at most one part in so many: what a merge needs at once goes by it.
const TABLE_SHARE: u64 = 256;

/// No memtable and no table is made smaller than this.
const BYTES_MIN: u64 = 64 << 10;

/// How many memtables and tables of room one merge has in any case.
const MERGE_MEMTABLES: u64 = 4;
const MERGE_TABLES: u64 = 5;

/// The part of a limit in which merges make room, and the last part of that, in which writers are
/// slowed.
const NEAR_SHARE: u64 = 32;
const SLOW_SHARE: u64 = 64;

/// With less than this part of a limit left, tables are compressed whatever CPU that takes.
const TIGHT_SHARE: u64 = 4;

/// Up to how much log there may be from before the present file: one part in so many of the limit.
const LOG_SHARE: u64 = 32;

/// Large values that a memtable refers to are at most one part in so many: those that newer ones
/// hide go with its flush.
const LARGE_SHARE: u64 = 16;

/// How near the limit the database is.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// assert_eq!(db.stats().space_state, shaledb::SpaceState::Free);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpaceState {
    /// There is room, or no limit.
    #[default]
    Free,
    /// Merges make room before all else.
    Compacting,
    /// Writers are slowed while merges make room.
    Slowed,
    /// There is no room for a put.
    Full,
}

impl SpaceState {
    /// The state in one word.
    ///
    /// ```
    /// assert_eq!(shaledb::SpaceState::Slowed.name(), "slowed");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            SpaceState::Free => "free",
            SpaceState::Compacting => "compacting",
            SpaceState::Slowed => "slowed",
            SpaceState::Full => "full",
        }
    }
}

/// The size of a memtable under a limit, where none is set: `wanted`, or less.
pub fn memtable_bytes(limit: u64, wanted: u64) -> u64 {
    if limit == 0 { wanted } else { wanted.min((limit / MEMTABLE_SHARE).max(BYTES_MIN)) }
}

/// The size of a table under a limit: `wanted`, or less.
pub fn table_bytes(limit: u64, wanted: u64) -> u64 {
    if limit == 0 { wanted } else { wanted.min((limit / TABLE_SHARE).max(BYTES_MIN)) }
}

/// Up to how much log there may be from before the present file.
pub fn old_log_bytes(limit: u64, memtable: u64) -> u64 {
    let usual = 8 * memtable;
    if limit == 0 { usual } else { usual.min((limit / LOG_SHARE).max(memtable)) }
}

/// The bytes of large values with which a memtable is full: `wanted`, or less.
pub fn large_bytes(limit: u64, wanted: u64) -> u64 {
    if limit == 0 { wanted } else { wanted.min(limit / LARGE_SHARE) }
}

/// From how many bytes on a log whose operations are all in tables is worth a new one, since it
/// goes then: `wanted`, or less.
pub fn log_bytes_worth(limit: u64, wanted: u64) -> u64 {
    if limit == 0 { wanted } else { wanted.min(limit / 1024) }
}

/// What of a limit is kept back.
pub fn limit(bytes: u64, memtable: u64, table: u64) -> Limit {
    if bytes == 0 {
        return Limit::default();
    }
    assert!(bytes / 32 >= memtable, "a limit has room for memtables");
    let held = HeldBack {
        merges: (MERGE_MEMTABLES * memtable + MERGE_TABLES * table).min(merges_most(bytes)),
        deletes: memtable + bytes / MEMTABLE_SHARE,
        files: bytes / MEMTABLE_SHARE + BYTES_MIN,
        commit: memtable,
    };
    Limit { bytes, held }
}

/// The most that is kept back for merges.
pub fn merges_most(limit: u64) -> u64 {
    limit / 4
}

/// The largest commit of puts.
pub fn commit_most(limit: u64) -> u64 {
    if limit == 0 { u64::MAX } else { limit / 8 }
}

/// How much of a transaction is kept in memory at most: `wanted`, or less.
pub fn transaction_most(limit: u64, wanted: u64) -> u64 {
    if limit == 0 { wanted } else { wanted.min(limit / 16) }
}

/// What the merge needs that needs the most: the flush of a tree that has so much in memory makes
/// a table of that, and there is a table that needs so much.
pub fn merge_needs(memtables: u64, tables: u64, table: u64) -> u64 {
    tables.max(memtables + MERGE_TABLES * table)
}

/// The largest merge of level 0's tables with each other: a larger table could not go down in the
/// room that is kept back.
pub fn level0_merge_bytes(memtable: u64) -> u64 {
    MERGE_MEMTABLES * memtable
}

/// What a commit of so many bytes of operations adds: to all files, and of that to tables.
pub fn cost(bytes: u64, operations: u64) -> (u64, u64) {
    // With the framing of the log, and what an entry takes in a table, its part of the filter too.
    let (log, tables) = (bytes + 64, bytes + 16 * operations);
    (log + tables, tables)
}

/// How near the limit this is.
pub fn state(balance: &Balance) -> SpaceState {
    let (limit, room) = (balance.limit.bytes, balance.for_users());
    match room {
        _ if limit == 0 => SpaceState::Free,
        0 => SpaceState::Full,
        _ if room < limit / SLOW_SHARE => SpaceState::Slowed,
        _ if room < limit / NEAR_SHARE => SpaceState::Compacting,
        _ => SpaceState::Free,
    }
}

/// Whether there is so little room that bytes count more than the time to compress them.
pub fn is_tight(balance: &Balance) -> bool {
    balance.limit.bytes > 0 && balance.for_users() < balance.limit.bytes / TIGHT_SHARE
}

/// How far into the part of the limit it is in which writers are slowed, and how long that part is.
pub fn missing(balance: &Balance) -> (u64, u64) {
    let slow = balance.limit.bytes / SLOW_SHARE;
    (slow.saturating_sub(balance.for_users()), slow)
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
