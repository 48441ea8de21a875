//! How many entries of a table lie in a range, and some of them: out of the index, and of single
//! blocks where these decide.

use super::filter;
use super::index::Index;
use super::reader::{Table, TableIndex};
use crate::base::coding;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo, common_prefix, head};
use crate::base::stats::Counter;

/// Up to so many blocks of a range the first and the last one are looked into; of more, what part
/// of them lies inside is judged by the keys.
const LOOK_BLOCKS: usize = 8;

/// Up to so many blocks their entries are added up; of more, their bytes tell.
const SUM_BLOCKS: usize = 256;

/// One of some entries of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSample {
    /// Its key.
    pub key: Vec<u8>,
    /// Its place in the commit order.
    pub seq: SeqNo,
    /// What it says of its key.
    pub kind: Kind,
    /// Whether no newer version of the key is next to it.
    pub newest: bool,
}

/// The blocks that meet a range: the first, the one after the last, and the bounds that lie inside
/// of these two.
struct Blocks<'a> {
    first: usize,
    lower: Option<&'a [u8]>,
    /// The block in which the range ends, if there is a bound inside; else the number of blocks.
    last: usize,
    upper: Option<&'a [u8]>,
}

impl Table {
    fn blocks_of<'a>(
        &self,
        index: &Index,
        lower: &'a [u8],
        upper: Option<&'a [u8]>,
    ) -> Option<Blocks<'a>> {
        let lower = (self.meta.smallest.as_slice() < lower).then_some(lower);
        let upper = upper.filter(|upper| !self.meta.is_before(upper));
        let first = lower.map_or(0, |lower| index.find(lower));
        let last = upper.map_or(index.blocks(), |upper| index.find(upper));
        let upper = upper.filter(|_| last < index.blocks());
        let empty = first >= index.blocks() || last < first;
        (!empty).then_some(Blocks { first, lower, last, upper })
    }

    /// About how many entries, deletes included, have keys from `lower` up to, not including,
    /// `upper`. Exact if they are in a few blocks.
    pub fn entries_between(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<u64> {
        let table = self.index()?;
        let index = &table.index;
        let Some(blocks) = self.blocks_of(index, lower, upper) else { return Ok(0) };
        let look = blocks.last - blocks.first <= LOOK_BLOCKS;
        let before = |at, key: Option<&[u8]>| match key {
            Some(key) if look => self.rank(&table, at, key),
            Some(key) => Ok(self.judge(index, at, key)),
            None => Ok(0),
        };
        let skipped = before(blocks.first, blocks.lower)?;
        let entries = self.whole(index, blocks.first, blocks.last);
        Ok((entries + before(blocks.last, blocks.upper)?).saturating_sub(skipped))
    }

    /// About how many entries blocks have, from the first up to, not including, the second.
    fn whole(&self, index: &Index, first: usize, end: usize) -> u64 {
        if end - first <= SUM_BLOCKS {
            return (first..end).map(|at| u64::from(index.info(at).entries)).sum();
        }
        let bytes = index.info(end - 1).handle.end() - index.info(first).handle.offset;
        let part = bytes as f64 / index.data_end().max(1) as f64;
        (part * self.meta.entries as f64) as u64
    }

    /// How many entries of a block come before a key.
    fn rank(&self, table: &TableIndex, at: usize, key: &[u8]) -> Result<u64> {
        let mut hits = 0;
        let block = self.cached_block(table, at, &mut hits)?;
        self.shared().recorder.add(Counter::DataHits, hits);
        Ok(block.lower_bound(key, SEQ_MAX) as u64)
    }

    /// As [`Table::rank`], judged by where the key lies between the keys around the block.
    fn judge(&self, index: &Index, at: usize, key: &[u8]) -> u64 {
        let low = match at.checked_sub(1) {
            Some(before) => index.separator(before),
            None => self.meta.smallest.clone(),
        };
        let part = part_before(&low, &index.separator(at), key);
        (part * f64::from(index.info(at).entries)) as u64
    }

    /// Up to `count` entries of a range, of the block that has the entry as far into it as `part`
    /// (0 to 1) says.
    pub fn sample(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        part: f64,
        count: usize,
    ) -> Result<Vec<TableSample>> {
        let table = self.index()?;
        let index = &table.index;
        let Some(blocks) = self.blocks_of(index, lower, upper) else { return Ok(Vec::new()) };
        let last = blocks.last.min(index.blocks() - 1);
        let at = block_at(index, blocks.first, last, part);
        let mut hits = 0;
        let block = self.cached_block(&table, at, &mut hits)?;
        self.shared().recorder.add(Counter::DataHits, hits);
        let rank = |key: &[u8]| block.lower_bound(key, SEQ_MAX);
        let from = if at == blocks.first { blocks.lower.map_or(0, rank) } else { 0 };
        let to = if at == blocks.last { blocks.upper.map(rank) } else { None };
        let to = to.unwrap_or(block.entries());
        let step = to.saturating_sub(from).div_ceil(count.max(1)).max(1);
        // One of each step, at random: a pattern in the keys must not meet one in the steps.
        let one_of = |start: usize| start + (coding::hash(&start.to_le_bytes()) as usize) % step;
        let entries =
            (from..to).step_by(step).map(one_of).filter(|&entry| entry < to).map(|entry| {
                let (seq, kind) = block.tag(entry);
                let key = block.key(entry);
                let newest = entry == 0 || !block.key_is(entry - 1, &key);
                TableSample { key, seq: seq.max(self.meta.ingest_seq), kind, newest }
            });
        Ok(entries.collect())
    }

    /// Whether the table has an entry of `key`, as its filter says: of those that have none some
    /// are said to have one. Without a filter the block is read.
    pub fn may_contain(&self, key: &[u8], hash: u64) -> Result<bool> {
        if !self.meta.covers(key) {
            return Ok(false);
        }
        let table = self.index()?;
        let filter = table.filter();
        if filter.is_empty() {
            return Ok(self.get(key, hash, SEQ_MAX)?.is_some());
        }
        Ok(filter::may_contain(filter, hash))
    }
}

/// The block from `first` to `last` that has the entry at `part` (0 to 1) of all of theirs. Blocks
/// differ much in how many they have: deletes are short.
fn block_at(index: &Index, first: usize, last: usize, part: f64) -> usize {
    if last - first > SUM_BLOCKS {
        return first + ((last - first) as f64 * part).round() as usize;
    }
    let entries = |at| f64::from(index.info(at).entries);
    let mut left = part * (first..=last).map(entries).sum::<f64>();
    let found = (first..last).find(|&at| {
        left -= entries(at);
        left < 0.0
    });
    found.unwrap_or(last)
}

/// What part of the keys from `low` to `high` comes before `key`, were they spread evenly: 0 to 1.
fn part_before(low: &[u8], high: &[u8], key: &[u8]) -> f64 {
    if key <= low {
        return 0.0;
    }
    if key >= high {
        return 1.0;
    }
    let skip = common_prefix(low, high);
    let [low, high, key] = [low, high, key].map(|key| head(&key[skip.min(key.len())..]));
    if high <= low {
        return 0.5;
    }
    (key.clamp(low, high) - low) as f64 / (high - low) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_between_two_are_judged_by_where_they_lie() {
        let part = |key: &[u8]| (100.0 * part_before(b"key/100", b"key/200", key)).round();
        assert_eq!(
            (part(b"a"), part(b"key/100"), part(b"z"), part(b"key/200")),
            (0.0, 0.0, 100.0, 100.0)
        );
        // '1' and '2' are one apart, "15" lies about a fifth of a byte's range above "10".
        assert!(part(b"key/101") < part(b"key/150") && part(b"key/150") < part(b"key/199"));
        let part = |key: u32| {
            let [low, high, key] = [1000u32, 2000, key].map(u32::to_be_bytes);
            (100.0 * part_before(&low, &high, &key)).round()
        };
        assert_eq!((part(1250), part(1500), part(1999)), (25.0, 50.0, 100.0));
        assert_eq!(part_before(b"a", b"a\0\0\0\0\0\0\0\0\0z", b"a\0\0\0\0\0\0\0\0\0b"), 0.5);
    }
}
