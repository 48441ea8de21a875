//! Which entries of a merge are still needed.
//!
//! Snapshots cut the commit order into snapshot stripes: stripe 0 is everything up to and including
//! the oldest snapshot, and so on; the newest stripe has no snapshot above it. Readers are at
//! snapshots or at the newest position, so of each key at most the newest entry of each stripe
//! can be seen, and that only if no range delete of the same stripe is newer. A delete of stripe
//! 0 hides nothing but what is older, so it goes when nothing older can lie below the output. One
//! that has met the put which it deletes goes as well if tables there have the key in their range,
//! but lack it as their filters say ([`Older`]).
//!
//! The caller passes as snapshots every position at which a reader may still look at the outputs:
//! open snapshots, and the position of the newest commit that readers see.

use super::older::Older;
use crate::base::cursor::Cursor;
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::table::meta::{FileId, TableMeta};
use crate::table::{Block, RawBlock};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is written as it is.
    Keep,
    /// It is written with sequence number 0: nobody can tell any more how old it is.
    KeepAsSeqZero,
    /// It is left out.
    Drop,
    /// A delete: it is left out if [`DropFilter::has_met_all`] says so of the entry that comes
    /// next, else written as it is.
    Ask,
}

/// What lies below the output of a merge.
#[derive(Clone, Debug)]
pub enum Bottom {
    /// Anything may: the output goes to level 0.
    Unknown,
    /// Only these tables, by level, each level sorted and disjoint.
    Levels(Vec<Vec<Arc<TableMeta>>>),
}

impl Bottom {
    /// What lies below the output of this plan.
    pub fn of(plan: &super::plan::Plan) -> Bottom {
        if plan.output_level == 0 || plan.building {
            return Bottom::Unknown;
        }
        let levels = plan.below.iter().filter(|tables| !tables.is_empty());
        Bottom::Levels(levels.cloned().collect())
    }

    /// Whether nothing can lie below any key.
    fn is_empty(&self) -> bool {
        matches!(self, Bottom::Levels(levels) if levels.iter().all(Vec::is_empty))
    }

    /// Whether a table below may have a key from `start` up to (not including) `end`.
    fn meets(&self, start: &[u8], end: &[u8]) -> bool {
        let Bottom::Levels(levels) = self else { return true };
        levels.iter().any(|tables| {
            let first = tables.partition_point(|table| table.is_before(start));
            tables.get(first).is_some_and(|table| table.smallest.as_slice() < end)
        })
    }

    /// Whether a table below may have `key`.
    fn may_have(&self, key: &[u8]) -> bool {
        let Bottom::Levels(levels) = self else { return true };
        levels.iter().any(|tables| {
            let first = tables.partition_point(|table| table.is_before(key));
            tables.get(first).is_some_and(|table| table.smallest.as_slice() <= key)
        })
    }
}

/// The stripe of a sequence number.
#[inline]
fn stripe(snapshots: &[SeqNo], seq: SeqNo) -> usize {
    // Most jobs have one position to respect, or none.
    match snapshots {
        [] => 0,
        [only] => usize::from(seq > *only),
        _ => snapshots.partition_point(|&snapshot| snapshot < seq),
    }
}

/// Decides about the entries of one merge, in their order.
#[derive(Debug)]
pub struct DropFilter<'a> {
    snapshots: Vec<SeqNo>,
    deletes: RangeDeletes,
    bottom: Bottom,
    /// Who is asked about deletes that `bottom` keeps.
    older: Option<Older<'a>>,
    bottom_is_empty: bool,
    /// For each level below: the first table that is not before the last key asked for.
    below_at: Vec<usize>,
    /// The first fragment that does not end at or before the last key.
    fragment_at: usize,
    last_key: Vec<u8>,
    /// The stripe of which `last_key` needs no further entry; `usize::MAX` for none.
    done: usize,
}

impl<'a> DropFilter<'a> {
    /// A filter for a merge (or a part of one) whose inputs have these range deletes. `snapshots`
    /// ascend.
    pub fn new(snapshots: &[SeqNo], bottom: Bottom, deletes: RangeDeletes) -> DropFilter<'a> {
        assert!(snapshots.is_sorted(), "snapshots ascend");
        let levels = match &bottom {
            Bottom::Unknown => 0,
            Bottom::Levels(levels) => levels.len(),
        };
        if let Bottom::Levels(levels) = &bottom {
            let in_order =
                |tables: &Vec<Arc<TableMeta>>| tables.is_sorted_by(|a, b| a.is_before(&b.smallest));
            debug_assert!(levels.iter().all(in_order), "levels below are in order");
        }
        DropFilter {
            snapshots: snapshots.to_vec(),
            deletes,
            bottom_is_empty: bottom.is_empty(),
            below_at: vec![0; levels],
            bottom,
            older: None,
            fragment_at: 0,
            last_key: Vec::new(),
            done: usize::MAX,
        }
    }

    /// Has it ask this one about deletes; without, it never says [`Decision::Ask`].
    pub fn asking(self, older: Option<Older<'a>>) -> DropFilter<'a> {
        DropFilter { older, ..self }
    }

    /// What becomes of this entry. Entries come in merge order: key ascending, then newest first.
    #[inline]
    pub fn decide(&mut self, key: &[u8], seq: SeqNo, kind: Kind) -> Decision {
        let stripe = stripe(&self.snapshots, seq);
        if self.last_key == key {
            if stripe == self.done {
                return Decision::Drop;
            }
        } else {
            debug_assert!(self.last_key.as_slice() < key, "entries come in the order of a merge");
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        // A merge operand needs the entries under it.
        self.done = if kind == Kind::Merge { usize::MAX } else { stripe };
        let mut in_range = false;
        if !self.deletes.is_empty()
            && let Some(fragment) = self.fragment_of(key)
        {
            in_range = true;
            if self.is_covered(fragment, seq, stripe) {
                self.done = stripe;
                return Decision::Drop;
            }
        }
        if stripe > 0 {
            return Decision::Keep;
        }
        match kind {
            Kind::Delete if self.is_bottom(key) => Decision::Drop,
            Kind::Delete if self.older.is_some() => Decision::Ask,
            // A range delete that stays must not come to lie above an entry it is older than.
            Kind::Put | Kind::Blob if self.bottom_is_empty && !in_range => Decision::KeepAsSeqZero,
            _ => Decision::Keep,
        }
    }

    /// The key of the last entry that was decided about.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Whether the delete that was decided about last has no more to hide: `next`, which stands on
    /// what comes after it, has the put that it deletes (which goes, being of the same stripe), and
    /// nothing older has the key. A delete that has met none may be of anything: nobody is asked.
    #[inline]
    pub fn has_met_all(&mut self, next: &impl Cursor) -> bool {
        let has_met = next.valid() && next.key() == self.last_key && next.kind() != Kind::Delete;
        has_met && self.older.as_mut().is_some_and(|older| older.surely_lacks(&self.last_key))
    }

    /// Whether a whole block that comes next may be kept as it is: each of its entries would be,
    /// its sequence number included. May be wrong in saying no.
    pub fn keeps_block(&self, raw: &RawBlock<'_>) -> bool {
        let block = raw.block;
        // The last entry may make one of its key needless, and two tables must not have that key.
        if block.key_is(0, &self.last_key) || self.has_fragments_in(block) {
            return false;
        }
        let mut done = usize::MAX;
        // Where all entries are alike and no key is there twice, the first one stands for all.
        let entries = if block.is_uniform() { 1 } else { block.entries() };
        for index in 0..entries {
            let (stored, kind) = block.tag(index);
            let seq = stored.max(raw.ingest_seq);
            let stripe = stripe(&self.snapshots, seq);
            if stripe == done && block.suffix(index) == block.suffix(index - 1) {
                return false;
            }
            done = if kind == Kind::Merge { usize::MAX } else { stripe };
            let stays = match kind {
                Kind::Put | Kind::Blob if stripe == 0 && self.bottom_is_empty => stored == 0,
                Kind::Delete if stripe == 0 => {
                    stored == seq && self.bottom.may_have(&block.key(index))
                }
                _ => stored == seq,
            };
            if !stays {
                return false;
            }
        }
        true
    }

    /// Notes that a block for which [`DropFilter::keeps_block`] said yes has been kept.
    pub fn kept_block(&mut self, raw: &RawBlock<'_>) {
        let Some(last) = raw.block.entries().checked_sub(1) else { return };
        debug_assert!(self.last_key < raw.block.key(0), "a block that is kept comes next");
        let (seq, kind) = raw.block.tag(last);
        let stripe = stripe(&self.snapshots, seq.max(raw.ingest_seq));
        raw.block.key_into(last, &mut self.last_key);
        self.done = if kind == Kind::Merge { usize::MAX } else { stripe };
    }

    /// Whether a fragment may cover a key of the block, which has one.
    fn has_fragments_in(&self, block: &Block) -> bool {
        let fragments = self.deletes.fragments();
        if fragments.is_empty() {
            return false;
        }
        let (first, last) = (block.key(0), block.key(block.entries() - 1));
        let at = fragments.partition_point(|fragment| fragment.end <= first);
        fragments.get(at).is_some_and(|fragment| fragment.start <= last)
    }

    /// The number of the fragment that covers `key`.
    fn fragment_of(&mut self, key: &[u8]) -> Option<usize> {
        let fragments = self.deletes.fragments();
        while fragments.get(self.fragment_at).is_some_and(|f| f.end.as_slice() <= key) {
            self.fragment_at += 1;
        }
        let fragment = fragments.get(self.fragment_at)?;
        (fragment.start.as_slice() <= key).then_some(self.fragment_at)
    }

    /// Whether the fragment has a delete newer than `seq` in the same stripe.
    fn is_covered(&self, fragment: usize, seq: SeqNo, of: usize) -> bool {
        let seqs = &self.deletes.fragments()[fragment].seqs;
        let newer = seqs.partition_point(|&delete| delete > seq);
        seqs[..newer].last().is_some_and(|&s| stripe(&self.snapshots, s) == of)
    }

    /// Whether no table below can have `key`.
    fn is_bottom(&mut self, key: &[u8]) -> bool {
        if self.bottom_is_empty {
            return true;
        }
        let Bottom::Levels(levels) = &self.bottom else { return false };
        for (tables, at) in levels.iter().zip(&mut self.below_at) {
            while tables.get(*at).is_some_and(|table| table.is_before(key)) {
                *at += 1;
            }
            if tables.get(*at).is_some_and(|table| table.smallest.as_slice() <= key) {
                return false;
            }
        }
        true
    }
}

/// The range deletes of the inputs that the outputs must carry on: of each stripe the newest, and
/// of stripe 0 only where something older may lie below.
pub fn surviving_range_deletes(
    deletes: &RangeDeletes,
    snapshots: &[SeqNo],
    bottom: &Bottom,
) -> RangeDeletes {
    let mut kept: Vec<RangeDelete> = Vec::new();
    for fragment in deletes.fragments() {
        let mut done = usize::MAX;
        for &seq in &fragment.seqs {
            let stripe = stripe(snapshots, seq);
            if stripe == done {
                continue;
            }
            done = stripe;
            if stripe > 0 || bottom.meets(&fragment.start, &fragment.end) {
                let (start, end) = (fragment.start.clone(), fragment.end.clone());
                kept.push(RangeDelete { start, end, seq });
            }
        }
    }
    RangeDeletes::new(kept)
}

/// The blob files that `removed` tables refer to and the tables that `stay`, or come, do not:
/// nothing needs them any more. Ascending.
pub fn dropped_blobs<'a>(
    removed: impl IntoIterator<Item = &'a TableMeta>,
    stay: impl IntoIterator<Item = &'a TableMeta>,
) -> Vec<FileId> {
    let mut dropped: BTreeSet<FileId> =
        removed.into_iter().flat_map(|table| table.blobs.iter().copied()).collect();
    if !dropped.is_empty() {
        for blob in stay.into_iter().flat_map(|table| &table.blobs) {
            dropped.remove(blob);
        }
    }
    dropped.into_iter().collect()
}
