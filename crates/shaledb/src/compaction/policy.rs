//! How the tables of a level are written: codec, filter, size. And when a table may be moved into
//! a level although it was written for another one.
//!
//! The rule for moves: every byte is written once if that is possible. A table that overlaps
//! nothing in the next level is moved there as it is, and keeps the codec it has. The exception is
//! the last level, where the data stays and space counts: if its codec is another one, the table
//! is rewritten for it when compaction has time for that (no debt), and moved when it has not;
//! tables moved so are rewritten ([`Reason::Recode`](super::plan::Reason::Recode)) once the load
//! has ended.

use super::plan::{Plan, Settings};
use crate::base::config::{Codec, Codecs, LEVELS};
use crate::base::key::SeqNo;
use crate::table::compress::id_of;
use crate::table::filter::bits_for_level;
use crate::table::meta::TableMeta;

/// The last level.
pub const LAST: usize = LEVELS - 1;

/// The codec for tables of `level` when `base` is the first level below 0 in use: the upper codec
/// for level 0, the base and the next level; the bottommost one for the last level.
pub fn codec(codecs: &Codecs, level: usize, base: usize) -> Codec {
    if level >= LAST {
        codecs.bottommost
    } else if level <= base + 1 {
        codecs.upper
    } else {
        codecs.middle
    }
}

/// Whether the codec in a block's frame tells that the block is compressed as the outputs of `plan`
/// are to be: the frame does not tell the level of zlib and zstd. In the last level the frame is
/// always enough: a block from another level still has sequence numbers, which it loses there, so
/// it is compressed anew, now or when no snapshot is in the way.
pub fn tells_codec(codecs: &Codecs, plan: &Plan) -> bool {
    let same = |codec: Codec| codec == plan.codec || id_of(codec) != id_of(plan.codec);
    plan.output_level == LAST
        || [codecs.upper, codecs.middle, codecs.bottommost].into_iter().all(same)
}

/// Filter bits per key for tables of `level`: more for smaller levels, whose filters cost little
/// memory and spare the most reads.
pub fn filter_bits(last_level_bits: u8, level: usize) -> u8 {
    bits_for_level(last_level_bits, LAST - level.min(LAST))
}

/// The aim for the size of a table of `level` whose target size is `level_target`, in bytes.
///
/// A small level gets smaller tables, down to an eighth, so that it has enough of them to choose
/// from and to work on in parallel. Level 0 is never cut by size: one flush or merge, one table.
pub fn table_bytes(settings: &Settings, level: usize, level_target: u64) -> u64 {
    if level == 0 {
        return u64::MAX;
    }
    (level_target / 16).clamp((settings.table_bytes / 8).max(1), settings.table_bytes)
}

/// Whether tables of `from` that overlap nothing may be moved to `to` as they are.
pub fn may_move(codecs: &Codecs, from: usize, to: usize, base: usize, has_debt: bool) -> bool {
    to < LAST || has_debt || codec(codecs, from, base) == codecs.bottommost
}

/// Whether a table of the last level should be rewritten where it is when there is time: it has
/// deletes that no snapshot needs, or may have been moved there with another level's codec.
///
/// A merge into the last level gives every entry that it keeps sequence number 0 if no snapshot is
/// in the way, so a table with another number was moved, or written while a snapshot was open.
/// Rewriting it ends with number 0, and so ends.
pub fn wants_rewrite(codecs: &Codecs, table: &TableMeta, oldest_snapshot: SeqNo) -> bool {
    let has_deletes = table.deletes > 0 || table.range_deletes > 0;
    let codecs_differ = codecs.upper != codecs.bottommost || codecs.middle != codecs.bottommost;
    table.max_seq > 0
        && table.max_seq <= oldest_snapshot
        && (has_deletes || codecs_differ && table.ingest_seq == 0)
}
