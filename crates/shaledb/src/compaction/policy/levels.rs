//! The rules for levels.
//!
//! The rule for moves: every byte is written once if that is possible. A table that overlaps
//! nothing in the next level is moved there as it is, and keeps the codec it has. The exception is
//! the last level, where the data stays and space counts: if its codec is another one, the table
//! is rewritten for it when compaction has time for that (no debt), and moved when it has not;
//! tables moved so are rewritten
//! ([`Reason::Recode`](crate::compaction::plan::Reason::Recode)) once the load has ended.

use super::candidates::index_of;
use super::chosen::{Choice, LevelCodecs};
use crate::base::config::{Codec, LEVELS};
use crate::base::key::SeqNo;
use crate::table::compress::id_of;
use crate::table::filter::bits_for_level;
use crate::table::meta::{TableMeta, Why};
use std::sync::Arc;

/// The last level.
pub const LAST: usize = LEVELS - 1;

/// Whether the codec in a block's frame tells that the block is compressed as outputs with
/// `choice`, written to `output`, are to be: the frame does not tell the level of zlib and zstd.
/// In the last level the frame is always enough: a block from another level still has sequence
/// numbers, which it loses there, so it is compressed anew, now or when no snapshot is in the way.
/// Where the engine chooses, any level of zstd will do: a block of another one is no reason to
/// spend CPU.
pub fn reuses_blocks(codecs: &LevelCodecs, choice: Choice, output: usize) -> bool {
    let same = |codec: Codec| codec == choice.codec || id_of(codec) != id_of(choice.codec);
    let set = &codecs.set;
    output == LAST
        || choice.why != Why::Set
        || [set.upper, set.middle, set.bottommost].into_iter().all(same)
}
/// Filter bits per key for tables of `level`: more for smaller levels, whose filters cost little
/// memory and spare the most reads.
pub fn filter_bits(last_level_bits: u8, level: usize) -> u8 {
    bits_for_level(last_level_bits, LAST - level.min(LAST))
}

/// The size for tables of `level` whose target size is `level_target`, in bytes; `aim` is that for
/// tables of large levels.
///
/// A small level gets smaller tables, down to an eighth, so that it has enough of them to choose
/// from and to work on in parallel. Level 0 is never cut by size: one flush or merge, one table.
pub fn table_bytes(aim: u64, level: usize, level_target: u64) -> u64 {
    if level == 0 {
        return u64::MAX;
    }
    (level_target / 16).clamp((aim / 8).max(1), aim)
}

/// Whether tables of `from` that overlap nothing may be moved to `to` as they are.
pub fn may_move(
    codecs: &LevelCodecs,
    tables: &[Arc<TableMeta>],
    (from, to, base): (usize, usize, usize),
    has_debt: bool,
) -> bool {
    let wanted = codecs.of(to, base).codec;
    let suits = |table: &Arc<TableMeta>| match table.codec {
        Some(codec) => !is_lighter(codec, wanted),
        None => codecs.of(from, base).codec == wanted,
    };
    to < LAST || has_debt || tables.iter().all(suits)
}

/// Whether a rewrite of tables of the last level where they are is for the size of their blocks, or
/// for their codec, which frames do not tell from the one that is wanted: then their blocks are
/// made anew.
pub fn makes_blocks_anew<'a>(
    codecs: &LevelCodecs,
    choice: Choice,
    mut inputs: impl Iterator<Item = (usize, &'a TableMeta)> + Clone,
    output: usize,
) -> bool {
    let is_alike = |has: Codec| id_of(has) == id_of(choice.codec) && is_lighter(has, choice.codec);
    output == LAST
        && inputs.clone().all(|(level, _)| level == LAST)
        && inputs.any(|(_, table)| {
            table.codec.is_some_and(is_alike) || codecs.blocks.wants_rewrite(table)
        })
}

/// Whether a table of the last level should be rewritten where it is when there is time: it has
/// deletes that no snapshot needs, or may have been moved there with another level's codec, or
/// the engine chose its codec while CPU was short, or reads want blocks of another size.
///
/// A merge into the last level gives every entry that it keeps sequence number 0 if no snapshot is
/// in the way, so a table with another number was moved, or written while a snapshot was open.
/// Rewriting it ends with number 0, and so ends; a table that the engine has rewritten has the
/// codec that is wanted.
pub fn wants_rewrite(codecs: &LevelCodecs, table: &TableMeta, oldest_snapshot: SeqNo) -> bool {
    let has_deletes = table.deletes > 0 || table.range_deletes > 0;
    let has_seqs = table.max_seq > 0 && table.max_seq <= oldest_snapshot;
    let set = &codecs.set;
    let wanted = codecs.of(LAST, LAST);
    let differs = match (set.bottommost, table.codec) {
        // Before anything is known of the data, nothing is known to be better.
        (Codec::Auto, _) if wanted.why == Why::Unmeasured => false,
        (Codec::Auto, Some(codec)) => is_lighter(codec, wanted.codec),
        _ => {
            let classes_differ = set.upper != set.bottommost || set.middle != set.bottommost;
            has_seqs && classes_differ && table.ingest_seq == 0
        }
    };
    let other_blocks = || codecs.blocks.wants_rewrite(table);
    has_seqs && has_deletes || differs || other_blocks()
}

/// Whether a table of the last level may have versions that were kept for a snapshot which has
/// ended: number 0 beside others is what a merge under a snapshot leaves. A rewrite ends that.
pub fn may_have_kept(table: &TableMeta, oldest_snapshot: SeqNo) -> bool {
    table.min_seq == 0 && table.max_seq > 0 && table.max_seq <= oldest_snapshot
}

/// Whether a table becomes smaller when it is written with a codec that the engine has chosen: it
/// has a lighter one, and not since none made it smaller.
pub fn would_shrink(table: &TableMeta, choice: Choice) -> bool {
    let chosen = !matches!(choice.why, Why::Set | Why::Plain) && table.why != Why::Plain;
    chosen && table.codec.is_some_and(|has| is_lighter(has, choice.codec))
}

/// Whether a codec is known to save less than the one that is wanted. All levels of zstd from 1 on
/// count as one: rewriting a table for the little between them does not pay.
fn is_lighter(codec: Codec, wanted: Codec) -> bool {
    let rank = |codec| index_of(codec, false).map(|index| index.min(3));
    rank(codec).zip(rank(wanted)).is_some_and(|(has, wanted)| has < wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::config::Codecs;

    fn codecs(last: Option<Choice>) -> LevelCodecs {
        let mut codecs = LevelCodecs::from(Codecs::default());
        codecs.chosen.0[LAST] = last;
        codecs
    }

    fn choice(codec: Codec, why: Why) -> Choice {
        Choice { codec, dictionary: false, why }
    }

    fn table(codec: Codec) -> TableMeta {
        TableMeta { codec: Some(codec), why: Why::CpuShort, ..TableMeta::default() }
    }

    #[test]
    fn what_was_kept_for_a_snapshot_is_let_go_after_it() {
        let table = |min_seq, max_seq| TableMeta { min_seq, max_seq, ..table(Codec::Zstd(3)) };
        let wants = |table: &TableMeta, oldest| may_have_kept(table, oldest);
        assert!(wants(&table(0, 9), 9));
        assert!(!wants(&table(0, 9), 8), "a snapshot needs it");
        assert!(!wants(&table(0, 0), 9), "it has been rewritten");
        assert!(!wants(&table(5, 9), 9), "it was moved there");
    }

    #[test]
    fn what_was_written_light_is_rewritten_once_more_is_known_to_be_saved() {
        let zstd = choice(Codec::Zstd(3), Why::CpuFree);
        let wants = |codec, last| wants_rewrite(&codecs(last), &table(codec), SeqNo::MAX);
        for light in [Codec::None, Codec::Lz4, Codec::Zstd(-3)] {
            assert!(wants(light, Some(zstd)), "{light}");
            assert!(!wants(light, None), "{light}: after an open nothing is known yet");
        }
        for level in [1, 3, 9] {
            assert!(!wants(Codec::Zstd(level), Some(zstd)));
        }
        let plain = choice(Codec::None, Why::Plain);
        assert!(!wants(Codec::None, Some(plain)) && !wants(Codec::Zstd(1), Some(plain)));
        let ingested = TableMeta { ingest_seq: 7, ..table(Codec::None) };
        assert!(wants_rewrite(&codecs(Some(zstd)), &ingested, SeqNo::MAX));
    }

    #[test]
    fn a_table_is_moved_if_it_is_small_enough_whatever_its_level_has_now() {
        let codecs = codecs(Some(choice(Codec::Zstd(3), Why::CpuFree)));
        let moves = |codec, debt| {
            may_move(&codecs, &[Arc::new(table(codec))], (LAST - 1, LAST, LAST - 1), debt)
        };
        assert!(moves(Codec::Zstd(1), false) && moves(Codec::Lz4, true));
        assert!(!moves(Codec::Lz4, false));
    }

    #[test]
    fn a_level_that_is_set_reuses_no_other_level_of_zstd() {
        let set = Codecs { middle: Codec::Auto, upper: Codec::Zstd(1), bottommost: Codec::Zstd(9) };
        let of = |why| reuses_blocks(&set.into(), choice(Codec::Zstd(1), why), 1);
        assert!(!of(Why::Set) && of(Why::CpuFree));
    }
}
