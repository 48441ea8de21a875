//! Point reads: filter, index, cache, and on a miss one read of the device; then a search in the
//! block as it lies.

use super::reader::{Table, TableIndex};
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::base::stats::Counter;
use crate::table::format::{Block, BlockSlice, filter};
use std::sync::Arc;

/// The newest entry of a key in a table, as of a read position.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// Its sequence number.
    pub seq: SeqNo,
    /// Its kind.
    pub kind: Kind,
    /// Its value: empty for a delete, a blob reference for a blob.
    pub value: BlockSlice,
}

/// What a look-up in memory comes to.
#[derive(Debug)]
pub enum Look {
    /// The entry, or that there is none.
    Known(Option<TableEntry>),
    /// A block has to be read.
    Miss(Miss),
}

/// The block that a look-up needs and that is not in memory.
#[derive(Clone, Debug)]
pub struct Miss {
    index: Arc<TableIndex>,
    at: usize,
}

/// What the search of some blocks comes to: the entry or none, or the block that is not there.
type Searched = std::result::Result<Option<TableEntry>, usize>;

impl Miss {
    /// Whether it is the same block of the same table.
    pub(super) fn is(&self, other: &Miss) -> bool {
        self.at == other.at && Arc::ptr_eq(&self.index, &other.index)
    }
}

impl Table {
    /// The newest entry of `key` with a sequence number of at most `seq`; `hash` is the key's
    /// ([`crate::base::coding::hash`]). Range deletes are not considered.
    #[inline]
    pub fn get(&self, key: &[u8], hash: u64, seq: SeqNo) -> Result<Option<TableEntry>> {
        let block_of = |table: &_, at, hits: &mut _| self.cached_block(table, at, hits).map(Some);
        match self.look_up(key, hash, seq, block_of)? {
            Look::Known(entry) => Ok(entry),
            Look::Miss(_) => unreachable!("what is not in memory is read"),
        }
    }

    /// What [`Table::get`] finds, unless a block has to be read for it.
    #[inline]
    pub fn get_in_memory(&self, key: &[u8], hash: u64, seq: SeqNo) -> Result<Look> {
        self.look_up(key, hash, seq, |table, at, hits| {
            let block = self.block_in_memory(table, at);
            *hits += u64::from(block.is_some());
            Ok(block)
        })
    }

    /// Goes on with a look-up that has missed `block`.
    pub(super) fn get_from(
        &self,
        miss: &Miss,
        block: &Arc<Block>,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<TableEntry>> {
        let (mut hits, mut missed) = (0, Some(Arc::clone(block)));
        let searched = self.search(&miss.index, miss.at, key, seq, |at| match missed.take() {
            Some(block) => Ok(Some(block)),
            None => self.cached_block(&miss.index, at, &mut hits).map(Some),
        })?;
        let entry = searched.unwrap_or_else(|_| unreachable!("what is not in memory is read"));
        self.count_look_up(&miss.index, hits, entry.is_some());
        Ok(entry)
    }

    /// Reads the block that was missed, for the cache as well.
    pub(super) fn read_missed(&self, miss: &Miss) -> Result<Arc<Block>> {
        self.fill_cache(&miss.index, miss.at)
    }

    /// Tells the system that the block will be read soon. Never fails; a hint.
    pub(super) fn prefetch_missed(&self, miss: &Miss) {
        self.prefetch_at(&miss.index, miss.at);
    }

    /// Tells the system that [`Table::get`] of this key will come soon, unless that needs no block
    /// or one that is in memory; answers whether it did. Never fails; a hint.
    pub fn prefetch_block(&self, key: &[u8], hash: u64) -> bool {
        let asked = self.with_index(|table| {
            if !filter::may_contain(table.filter(), hash) {
                return Ok(false);
            }
            let at = table.index.find(key);
            if at >= table.index.blocks() {
                return Ok(false);
            }
            let place = self.cache_key(table.index.info(at).handle);
            Ok(!self.shared().cache.has(&place) && self.prefetch_at(table, at))
        });
        asked.unwrap_or(false)
    }

    fn prefetch_at(&self, table: &TableIndex, at: usize) -> bool {
        let handle = table.index.info(at).handle;
        // An error shows again when the block is read.
        let asked = self.with_file(|file| {
            file.prefetch(handle.offset, u64::from(handle.bytes));
            Ok(())
        });
        asked.is_ok()
    }

    /// Looks a key up in blocks that `block_of` gives, as long as it gives them.
    #[inline]
    fn look_up(
        &self,
        key: &[u8],
        hash: u64,
        seq: SeqNo,
        mut block_of: impl FnMut(&TableIndex, usize, &mut u64) -> Result<Option<Arc<Block>>>,
    ) -> Result<Look> {
        if self.meta.ingest_seq > seq {
            return Ok(Look::Known(None));
        }
        self.with_index(|table| {
            if !filter::may_contain(table.filter(), hash) {
                let counts = [(Counter::FilterChecks, 1), (Counter::FilterUseful, 1)];
                self.shared().recorder.add_all(counts);
                return Ok(Look::Known(None));
            }
            let mut hits = 0;
            let first = table.index.find(key);
            match self.search(table, first, key, seq, |at| block_of(table, at, &mut hits))? {
                Ok(entry) => {
                    self.count_look_up(table, hits, entry.is_some());
                    Ok(Look::Known(entry))
                }
                Err(at) => Ok(Look::Miss(Miss { index: Arc::clone(table), at })),
            }
        })
    }

    /// Counts a look-up that the filter has let through.
    #[inline]
    fn count_look_up(&self, table: &TableIndex, hits: u64, found: bool) {
        let filtered = !table.filter().is_empty();
        self.shared().recorder.add_all([
            (Counter::IndexHits, 1),
            (Counter::DataHits, hits),
            (Counter::FilterChecks, filtered.into()),
            (Counter::FilterFalse, (filtered && !found).into()),
        ]);
    }

    /// Searches blocks from number `at` on.
    #[inline]
    fn search(
        &self,
        table: &TableIndex,
        mut at: usize,
        key: &[u8],
        seq: SeqNo,
        mut block_of: impl FnMut(usize) -> Result<Option<Arc<Block>>>,
    ) -> Result<Searched> {
        let index = &table.index;
        // The entries of an ingested table have sequence number 0 in their blocks.
        let search_seq = if self.meta.ingest_seq == 0 { seq } else { SEQ_MAX };
        while at < index.blocks() {
            let Some(block) = block_of(at)? else { return Ok(Err(at)) };
            let entry = block.lower_bound(key, search_seq);
            if entry < block.entries() {
                if !block.key_is(entry, key) {
                    return Ok(Ok(None));
                }
                let (seq, kind) = block.tag(entry);
                let seq = seq.max(self.meta.ingest_seq);
                let value = BlockSlice::value_of(block, entry);
                return Ok(Ok(Some(TableEntry { seq, kind, value })));
            }
            if !index.separator_is(at, key) {
                return Ok(Ok(None));
            }
            at += 1;
        }
        Ok(Ok(None))
    }
}
