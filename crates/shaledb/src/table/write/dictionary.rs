//! Which compression dictionary some blocks should have, if any: of a whole tree, by blocks from
//! all over one of its tables; or of a table of which nothing is known before, by its first blocks,
//! which wait until then.
//!
//! The dictionary is pieces of three in four of these blocks, with the frequencies of symbols that
//! zstd finds in them; or, where tables are so large that this pays, what zstd finds by a search.
//! Its worth is measured on the other blocks: they must become smaller by what [`Least`] says, the
//! dictionary's own bytes counted. Otherwise there is none.
//!
//! Measured in docs/decisions/0009-dictionaries.md.

use super::options::{TableDictionary, TableOptions};
use crate::base::config::Codec;
use crate::table::format::compress::{Compressor, Dictionary};
use crate::table::format::{BlockInfo, put_dictionary_frame};
use std::sync::Arc;

/// How many bytes of blocks are waited for.
const SAMPLE_BYTES: usize = 256 * 1024;
/// A table of less takes the tree's dictionary only if that makes it smaller.
pub const SMALL_TABLE_BYTES: u64 = SAMPLE_BYTES as u64;
/// With fewer blocks there is nothing to tell.
const BLOCKS_MIN: usize = 8;
/// One block in so many is for measuring.
const MEASURED_ONE_IN: usize = 4;
/// The length of a piece, and how many a dictionary has at most.
const PIECE_BYTES: usize = 1024;
const PIECES_MAX: usize = 31;
/// A dictionary's content is at most this share of all blocks: one in so many.
const SHARE: u64 = 64;
/// What a dictionary must save, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Least {
    /// To be used.
    gain: f64,
    /// What one that is in use must go on saving. Less than the above, so that chance does not
    /// decide.
    kept: f64,
}

impl Least {
    /// Where only space is to be won.
    pub const USUAL: Least = Least { gain: 5.0, kept: 4.0 };
    /// Where it lets blocks be small, which look-ups win much by.
    pub const OF_SMALL: Least = Least { gain: 3.0, kept: 2.0 };
}

impl Default for Least {
    fn default() -> Least {
        Least::USUAL
    }
}

/// How much smaller a new one must make blocks than the one in use does, in percent: less, if that
/// was made for tables that were small.
const BETTER_PERCENT: f64 = 3.0;
const BETTER_THAN_SMALL_PERCENT: f64 = 1.0;
/// No other one is made while the one in use saves this share of what it saved at first.
const AS_BEFORE: f64 = 0.8;
/// How many times as large the tables may become until one that was made for them counts as small.
const AS_LARGE: u64 = 4;
/// A table that goes on after the samples is taken for so many times their length.
const GOES_ON: u64 = 8;
/// That is the size of a table that its own dictionary is made for.
pub const OWN_BYTES: u64 = SAMPLE_BYTES as u64 * GOES_ON;
/// zstd searches for the best content if the blocks are of a table of so many bytes at least: for
/// less the search would take longer than what is to be compressed.
const SEARCHED_BYTES_MIN: u64 = 4 << 20;
/// And if what is put together saves this, in percent: searching finds no more than twice of it.
const SEARCHED_GAIN_MIN: f64 = 2.5;

/// What is found of blocks.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The dictionary that they should have; `None` if they are better without.
    pub dictionary: Option<Arc<Dictionary>>,
    /// How much smaller it makes blocks that it was not made of, in percent; of the best one there
    /// was, if that is too little. The dictionary's own bytes are counted.
    pub saves_percent: f64,
}

/// Blocks of which dictionaries are made, and others, which are in none, to measure what they do.
#[derive(Clone, Debug, Default)]
pub struct HeldOut<'a> {
    /// To make dictionaries of.
    pub learnt: Vec<&'a [u8]>,
    /// To measure them on.
    pub measured: Vec<&'a [u8]>,
}

impl<'a> HeldOut<'a> {
    /// Of blocks, or of pieces of several.
    pub fn of(blocks: impl IntoIterator<Item = &'a [u8]>) -> HeldOut<'a> {
        let mut held = HeldOut::default();
        for (at, block) in blocks.into_iter().enumerate() {
            let measured = at % MEASURED_ONE_IN == MEASURED_ONE_IN - 1;
            if measured { &mut held.measured } else { &mut held.learnt }.push(block);
        }
        held
    }

    /// The same in blocks of about `size` bytes.
    pub fn cut(&self, size: usize) -> HeldOut<'a> {
        let all = |pieces: &[&'a [u8]]| pieces.iter().flat_map(|piece| cut(piece, size)).collect();
        HeldOut { learnt: all(&self.learnt), measured: all(&self.measured) }
    }
}

/// A piece of data in blocks of about `size` bytes.
pub fn cut(piece: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    // Without a short one at its end, which would pass for a block.
    let parts = ((piece.len() + size / 2) / size.max(1)).max(1);
    piece.chunks(piece.len().div_ceil(parts).max(1))
}

/// What was decided before.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// The dictionary in use, if any pays.
    pub dictionary: Option<Arc<Dictionary>>,
    /// What it saved when that was decided, or would have saved, in percent, and the size of the
    /// table then; zeros if that is not known.
    pub saved: (f64, u64),
    /// What one must save.
    pub least: Least,
}

impl Used {
    /// Whether a search may find more than the one before, where pieces put together save so much,
    /// in percent, for a table of so many bytes.
    fn may_find_more(&self, pieces_save: f64, raw_bytes: u64) -> bool {
        // One that found too little finds as little of blocks that are like those.
        let searched_in_vain = self.dictionary.is_none() && !was_small(self.saved.1, raw_bytes);
        pieces_save >= SEARCHED_GAIN_MIN && (!searched_in_vain || pieces_save > self.saved.0)
    }
}

/// Whether tables of `made_for` bytes, which something was decided by, were much smaller than this.
pub fn was_small(made_for: u64, raw_bytes: u64) -> bool {
    raw_bytes > AS_LARGE * made_for
}

/// Decides on a dictionary for zstd at `level`, by some blocks of a table of `raw_bytes` in all.
/// The one in use stays while it saves about as much as it did, or no new one is clearly better,
/// unless neither saves enough. zstd may search for a better one, which takes some megabytes for
/// the moment. `None`: there are too few blocks to tell.
pub fn decide(
    blocks: &HeldOut<'_>,
    level: i8,
    (raw_bytes, may_search): (u64, bool),
    known: &Used,
) -> Option<Verdict> {
    let HeldOut { learnt, measured } = blocks;
    if learnt.len() + measured.len() < BLOCKS_MIN || measured.is_empty() {
        return None;
    }
    let measured_bytes: usize = measured.iter().map(|block| block.len()).sum();
    let without = compressed_bytes(level, measured, None)?;
    let saves = |dictionary: &Dictionary| {
        let with = compressed_bytes(level, measured, Some(dictionary))?;
        // The dictionary's share in the measured blocks.
        let own =
            dictionary_bytes(dictionary) as f64 * measured_bytes as f64 / raw_bytes.max(1) as f64;
        Some(100.0 - 100.0 * (with as f64 + own) / without as f64)
    };
    let before = known.saved;
    let was_small = was_small(before.1, raw_bytes);
    let used = known.dictionary.as_ref();
    let used = used.and_then(|used| Some((Arc::clone(used), saves(used)?)));
    let better = if was_small { BETTER_THAN_SMALL_PERCENT } else { BETTER_PERCENT };
    if let Some((used, saves)) = &used
        && *saves >= (AS_BEFORE * before.0).max(known.least.gain)
        && !was_small
    {
        return Some(Verdict { dictionary: Some(Arc::clone(used)), saves_percent: *saves });
    }
    let (pieces, learnt) = (pieces_for(raw_bytes), &learnt[..]);
    let made = Dictionary::make(&pieces_of(learnt, pieces), learnt, level);
    let mut made = made.and_then(|made| Some((saves(&made)?, Arc::new(made))));
    // A search takes long, so there must be something to find.
    if may_search
        && raw_bytes >= SEARCHED_BYTES_MIN
        && made.as_ref().is_some_and(|(saves, _)| known.may_find_more(*saves, raw_bytes))
        && let Some(found) = Dictionary::train(learnt, pieces * PIECE_BYTES)
        && let Some(found_saves) = saves(&found)
        && made.as_ref().is_some_and(|(saves, _)| *saves < found_saves)
    {
        made = Some((found_saves, Arc::new(found)));
    }
    let kept = used.filter(|(_, saves)| *saves >= known.least.kept);
    let kept = kept.filter(|(_, saves)| {
        made.as_ref().is_none_or(|(made_saves, _)| *made_saves < saves + better)
    });
    let (dictionary, saves_percent) = match (kept, made) {
        (Some((used, saves)), _) => (Some(used), saves),
        (None, Some((saves, made))) => ((saves >= known.least.gain).then_some(made), saves),
        (None, None) => (None, 0.0),
    };
    Some(Verdict { dictionary, saves_percent })
}

/// How many pieces a dictionary has, for `raw_bytes` in all.
fn pieces_for(raw_bytes: u64) -> usize {
    (raw_bytes / SHARE / PIECE_BYTES as u64).clamp(1, PIECES_MAX as u64) as usize
}

/// The length of a dictionary in a file.
pub fn dictionary_bytes(dictionary: &Dictionary) -> usize {
    put_dictionary_frame(dictionary, &mut Vec::new())
}

/// So many pieces from all over the blocks.
fn pieces_of(blocks: &[&[u8]], count: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(count * PIECE_BYTES);
    for piece in 0..count {
        let block = blocks[piece * blocks.len() / count];
        let room = block.len().saturating_sub(PIECE_BYTES);
        // Another place in each block: its start, two fifths into it, four fifths, one fifth, ...
        let start = room * (2 * piece % 5) / 5;
        out.extend_from_slice(&block[start..block.len().min(start + PIECE_BYTES)]);
    }
    out
}

/// The length of all blocks compressed one by one; `None` without memory for the dictionary.
fn compressed_bytes(level: i8, blocks: &[&[u8]], dictionary: Option<&Dictionary>) -> Option<usize> {
    let mut compressor = Compressor::new(Codec::Zstd(level));
    if let Some(dictionary) = dictionary
        && !compressor.use_dictionary(dictionary)
    {
        return None;
    }
    let mut out = Vec::new();
    let mut total = 0;
    for block in blocks {
        out.clear();
        compressor.compress(block, &mut out);
        total += out.len();
    }
    Some(total)
}

/// A block that waits to be compressed.
pub(super) struct WaitingBlock {
    pub image: Vec<u8>,
    /// All but where it is.
    pub info: BlockInfo,
    /// Not known of the last one.
    pub separator: Vec<u8>,
}

/// The first blocks of a table.
#[derive(Default)]
pub(super) struct Samples {
    pub blocks: Vec<WaitingBlock>,
    bytes: usize,
    /// The length of the first block when it is compressed.
    first: usize,
}

impl Samples {
    /// Adds the next block.
    pub fn add(&mut self, image: &[u8], info: BlockInfo, compressor: &mut Compressor) {
        if self.blocks.is_empty() {
            let mut out = Vec::new();
            compressor.compress(image, &mut out);
            self.first = out.len();
        }
        self.bytes += image.len();
        self.blocks.push(WaitingBlock { image: image.to_vec(), info, separator: Vec::new() });
    }

    /// Bytes of the blocks.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// About how long the blocks are when they are compressed.
    pub fn estimated_bytes(&self) -> usize {
        let first = self.blocks.first().map_or(1, |first| first.image.len());
        (self.bytes as f64 * self.first as f64 / first.max(1) as f64) as usize
    }

    /// Whether it is time to decide.
    pub fn are_enough(&self) -> bool {
        self.bytes >= SAMPLE_BYTES
    }

    /// The dictionary for the table; `None` if it is better without. `ended`: there are no more
    /// blocks than these.
    pub fn dictionary(&self, options: &TableOptions, ended: bool) -> Option<Arc<Dictionary>> {
        let Codec::Zstd(level) = options.codec else { return None };
        let blocks: Vec<&[u8]> = self.blocks.iter().map(|block| &block.image[..]).collect();
        if let TableDictionary::Given(given) = &options.dictionary {
            // Whether a table of so little is smaller with its copy is soon found out.
            let with = || {
                let blocks = compressed_bytes(level, &blocks, Some(given))?;
                Some(blocks + dictionary_bytes(given))
            };
            let pays = || Some(with()? < compressed_bytes(level, &blocks, None)?);
            return (!ended || pays() == Some(true)).then(|| Arc::clone(given));
        }
        let raw_bytes = if ended { self.bytes as u64 } else { OWN_BYTES };
        // What is to come is a guess, so nothing is searched for.
        decide(&HeldOut::of(blocks), level, (raw_bytes, false), &Used::default())?.dictionary
    }
}

#[cfg(test)]
#[path = "dictionary_tests.rs"]
mod tests;
