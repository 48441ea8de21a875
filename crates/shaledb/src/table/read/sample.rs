//! How many entries of a table lie in a range, and some of them: out of the index, and of single
//! blocks where these decide.

use super::reader::{Table, TableIndex};
use crate::base::coding;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo, common_prefix, head};
use crate::base::stats::Counter;
use crate::table::format::index::Index;
use crate::table::format::{Block, filter};

/// Up to so many blocks of a range the first and the last one are looked into; of more, what part
/// of them lies inside is judged by the keys.
const LOOK_BLOCKS: usize = 8;

/// One of some entries of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSample {
    /// Its key.
    pub key: Vec<u8>,
    /// Its position in the commit order.
    pub seq: SeqNo,
    /// What it says of its key.
    pub kind: Kind,
    /// Whether no newer version of the key is next to it.
    pub newest: bool,
}

/// The blocks that meet a range: the first, the one after the last, and the bounds that lie inside
/// of these two.
#[derive(Clone, Copy)]
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
        let last = upper.map_or(index.blocks(), |upper| {
            // Mostly a range is in one block.
            let ends = first < index.blocks() && index.reaches(first, upper);
            if ends { first } else { index.find(upper) }
        });
        let upper = upper.filter(|_| last < index.blocks());
        let empty = first >= index.blocks() || last < first;
        (!empty).then_some(Blocks { first, lower, last, upper })
    }

    /// About how many entries, deletes included, have keys from `lower` up to, not including,
    /// `upper`. Exact if they are in a few blocks.
    pub fn entries_between(&self, lower: &[u8], upper: Option<&[u8]>) -> Result<u64> {
        self.with_index(|table| {
            let blocks = self.blocks_of(&table.index, lower, upper);
            let Some(blocks) = blocks else { return Ok(0) };
            if blocks.last - blocks.first <= LOOK_BLOCKS {
                return self.count_in_few(table, &blocks);
            }
            let (from, to) = self.ranks(table, &blocks)?;
            Ok(to.saturating_sub(from))
        })
    }

    /// How many entries a range of few blocks has. Mostly it is in one: that is looked up once.
    fn count_in_few(&self, table: &TableIndex, blocks: &Blocks<'_>) -> Result<u64> {
        let (Blocks { first, last, .. }, mut hits) = (*blocks, 0);
        let rank = |block: &Block, key: &[u8]| block.lower_bound(key, SEQ_MAX) as u64;
        let mut before = 0;
        let mut block = None;
        if let Some(lower) = blocks.lower {
            let found = self.cached_block(table, first, &mut hits)?;
            before = rank(&found, lower);
            block = Some(found);
        }
        let whole: u64 = (first..last).map(|at| u64::from(table.index.info(at).entries)).sum();
        let mut entries = whole.saturating_sub(before);
        if let Some(upper) = blocks.upper {
            let of_first = block.filter(|_| first == last);
            let found = match of_first {
                Some(block) => block,
                None => self.cached_block(table, last, &mut hits)?,
            };
            entries = (whole + rank(&found, upper)).saturating_sub(before);
        }
        self.shared().recorder.add(Counter::DataHits, hits);
        Ok(entries)
    }

    /// About how many entries of the table come before the range, and how many before its end.
    fn ranks(&self, table: &TableIndex, blocks: &Blocks<'_>) -> Result<(u64, u64)> {
        let look = blocks.last - blocks.first <= LOOK_BLOCKS;
        let before = |at, key: Option<&[u8]>| {
            let of_block = match key {
                Some(key) if look => self.rank(table, at, key)?,
                Some(key) => self.rank_between(&table.index, at, key),
                None => 0,
            };
            Result::Ok(table.index.entries_before(at) + of_block)
        };
        Ok((before(blocks.first, blocks.lower)?, before(blocks.last, blocks.upper)?))
    }

    /// Whether all entries of a range are rows for a reader at `seq`, and
    /// [`Table::entries_between`] counts them: they are in few blocks, and of these the index says
    /// that they have nothing but puts in the state of the last level, of which a table has one
    /// for a key.
    pub fn has_only_rows(&self, lower: &[u8], upper: Option<&[u8]>, seq: SeqNo) -> Result<bool> {
        if self.meta.deletes > 0 || self.meta.max_seq > seq {
            return Ok(false);
        }
        self.with_index(|table| {
            let index = &table.index;
            let Some(blocks) = self.blocks_of(index, lower, upper) else { return Ok(true) };
            let last = blocks.last.min(index.blocks() - 1);
            let few = blocks.last - blocks.first <= LOOK_BLOCKS;
            Ok(few && (blocks.first..=last).all(|at| !index.info(at).tagged))
        })
    }

    /// Pieces of its data from all over it, `count` at most: each of blocks that follow one
    /// another, of about so many bytes before compression. The cache is left alone.
    pub fn pieces(&self, count: usize, bytes: usize) -> Result<Vec<Vec<u8>>> {
        self.with_index(|table| {
            let blocks = table.index.blocks();
            let (mut pieces, mut frame) = (Vec::with_capacity(count), Vec::new());
            let mut at = 0;
            for number in 0..count {
                at = at.max(number * blocks / count);
                let mut piece = Vec::new();
                while at < blocks && piece.len() < bytes {
                    let info = table.index.info(at);
                    frame.resize(info.handle.bytes as usize, 0);
                    self.read_at(info.handle.offset, &mut frame)?;
                    let block = self.decode_block(table, &frame, &info, Vec::new(), None)?;
                    // Of a large value its beginning will do.
                    let image = block.image();
                    piece.extend_from_slice(&image[..image.len().min(2 * bytes - piece.len())]);
                    at += 1;
                }
                if !piece.is_empty() {
                    pieces.push(piece);
                }
            }
            Ok(pieces)
        })
    }

    /// How many entries of a block come before a key.
    fn rank(&self, table: &TableIndex, at: usize, key: &[u8]) -> Result<u64> {
        let mut hits = 0;
        let block = self.cached_block(table, at, &mut hits)?;
        self.shared().recorder.add(Counter::DataHits, hits);
        Ok(block.lower_bound(key, SEQ_MAX) as u64)
    }

    /// As [`Table::rank`], estimated by where the key lies between the keys around the block.
    fn rank_between(&self, index: &Index, at: usize, key: &[u8]) -> u64 {
        let low = match at.checked_sub(1) {
            Some(before) => index.separator(before),
            None => self.meta.smallest.clone(),
        };
        let part = part_before(&low, &index.separator(at), key);
        (part * f64::from(index.info(at).entries)) as u64
    }

    /// The number of the block that has the entry of a range as far into it as `part` (0 to 1)
    /// says; `None` if no block meets the range. Blocks differ much in how many entries they have:
    /// deletes are short.
    pub fn block_at(&self, lower: &[u8], upper: Option<&[u8]>, part: f64) -> Result<Option<usize>> {
        self.with_index(|table| {
            let index = &table.index;
            let Some(blocks) = self.blocks_of(index, lower, upper) else { return Ok(None) };
            let (from, to) = self.ranks(table, &blocks)?;
            let entry = from + (part * to.saturating_sub(from) as f64) as u64;
            let last = blocks.last.min(index.blocks() - 1);
            Ok(Some(index.block_of(entry).clamp(blocks.first, last)))
        })
    }

    /// Up to `count` entries of a range, of one of the blocks that meet it.
    pub fn sample(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        at: usize,
        count: usize,
    ) -> Result<Vec<TableSample>> {
        let found = self.with_index(|table| {
            let Some(blocks) = self.blocks_of(&table.index, lower, upper) else { return Ok(None) };
            let mut hits = 0;
            let block = self.cached_block(table, at, &mut hits)?;
            Ok(Some((blocks, block, hits)))
        })?;
        let Some((blocks, block, hits)) = found else { return Ok(Vec::new()) };
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
        let told = self.with_index(|table| {
            let filter = table.filter();
            Ok((!filter.is_empty()).then(|| filter::may_contain(filter, hash)))
        })?;
        match told {
            Some(told) => Ok(told),
            None => Ok(self.get(key, hash, SEQ_MAX)?.is_some()),
        }
    }

    /// Whether the table surely has no entry of `key`: out of its range, or as its filter says.
    /// False where that is not known for little: no block is read, and a filter (with its index)
    /// only if there are that many bytes left of `loads`, and where it will not take the place of
    /// another for long: up to half of what all may take. Nor is an error told of: whoever reads
    /// the table for its rows will do that.
    pub fn surely_lacks(&self, key: &[u8], hash: u64, loads: &mut u64) -> bool {
        if !self.meta.covers(key) {
            return true;
        }
        let lacks = |table: &TableIndex| !filter::may_contain(table.filter(), hash);
        if let Some(lacks) = self.with_loaded(lacks) {
            return lacks;
        }
        let bytes = self.meta.file_bytes.saturating_sub(self.meta.data_bytes);
        let shared = self.shared();
        if *loads < bytes || shared.memory.meta() + bytes > shared.meta_bytes_max() / 2 {
            return false;
        }
        *loads -= bytes;
        self.with_index(|table| Ok(lacks(table))).unwrap_or(false)
    }
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
    use crate::base::config::Codec;
    use crate::table::testing::{Entry, World, options};

    #[test]
    fn only_rows_are_puts_as_the_last_level_has_them() {
        let world = World::new(16 << 20);
        let put =
            |at: u32, seq, kind| -> Entry { (at.to_be_bytes().into(), seq, kind, [7; 50].into()) };
        let rows = |change: Option<(SeqNo, Kind)>| -> Vec<Entry> {
            let (seq, kind) = change.unwrap_or((0, Kind::Put));
            (0..1_000)
                .map(|at| if at == 500 { put(at, seq, kind) } else { put(at, 0, Kind::Put) })
                .collect()
        };
        let has = |table: &Table, from: u32, to: u32| {
            table.has_only_rows(&from.to_be_bytes(), Some(&to.to_be_bytes()), 10).unwrap()
        };
        let open =
            |id, rows: &[Entry]| world.open(world.write(id, options(Codec::None, 1_000), rows));
        let plain = open(1, &rows(None));
        assert!(has(&plain, 450, 550) && has(&plain, 990, 2_000) && !has(&plain, 0, 1_000));
        // Where the one that differs is, and not elsewhere; of a table with deletes nowhere.
        let old = open(2, &rows(Some((7, Kind::Put))));
        assert!(!has(&old, 490, 510) && has(&old, 100, 150));
        let deleted = open(3, &rows(Some((7, Kind::Delete))));
        assert!(!has(&deleted, 490, 510) && !has(&deleted, 100, 150));
        let newer = open(4, &rows(Some((11, Kind::Put))));
        assert!(!has(&newer, 100, 150), "a reader at 10 may not see all");
    }

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
