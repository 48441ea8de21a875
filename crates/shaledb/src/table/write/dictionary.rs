//! Whether a table gets a compression dictionary, and which: decided from its first blocks, which
//! wait until then.
//!
//! The dictionary is pieces of three in four of these blocks, with the frequencies of symbols that
//! zstd finds in them. Its worth is measured on the others: they must become smaller by
//! [`GAIN_PERCENT_MIN`], the dictionary's own bytes counted. Otherwise the table has none.
//!
//! Measured in docs/decisions/0009-dictionaries.md.

use crate::base::config::Codec;
use crate::table::format::BlockInfo;
use crate::table::format::compress::{Compressor, Dictionary};
use std::sync::Arc;

/// How many bytes of blocks are waited for.
const SAMPLE_BYTES: usize = 256 * 1024;
/// With fewer blocks there is nothing to tell.
const BLOCKS_MIN: usize = 8;
/// One block in so many is for measuring.
const MEASURED_ONE_IN: usize = 4;
/// The length of a piece, and how many a dictionary has at most.
const PIECE_BYTES: usize = 1024;
const PIECES_MAX: usize = 31;
/// A dictionary's content is at most this share of all blocks, if there are no more than the
/// samples: one in so many.
const SHARE: usize = 64;
/// What a dictionary must save to be used, in percent.
const GAIN_PERCENT_MIN: usize = 5;
/// A table that goes on after the samples is taken for so many times their length.
const GOES_ON: usize = 32;

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
}

impl Samples {
    /// Adds the next block.
    pub fn add(&mut self, image: &[u8], info: BlockInfo) {
        self.bytes += image.len();
        self.blocks.push(WaitingBlock { image: image.to_vec(), info, separator: Vec::new() });
    }

    /// Bytes of the blocks.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is time to decide.
    pub fn are_enough(&self) -> bool {
        self.bytes >= SAMPLE_BYTES
    }

    /// The dictionary for the table; `None` if it is better without. `ended`: there are no more
    /// blocks than these.
    pub fn dictionary(&self, codec: Codec, ended: bool) -> Option<Arc<Dictionary>> {
        let Codec::Zstd(level) = codec else { return None };
        if self.blocks.len() < BLOCKS_MIN {
            return None;
        }
        let is_measured = |at: usize| at % MEASURED_ONE_IN == MEASURED_ONE_IN - 1;
        let images = || self.blocks.iter().map(|block| &block.image[..]).enumerate();
        let learnt: Vec<&[u8]> =
            images().filter(|(at, _)| !is_measured(*at)).map(|(_, image)| image).collect();
        let measured: Vec<&[u8]> =
            images().filter(|(at, _)| is_measured(*at)).map(|(_, image)| image).collect();
        let count = if ended { self.bytes / SHARE / PIECE_BYTES } else { PIECES_MAX };
        let content = pieces(&learnt, count.clamp(1, PIECES_MAX));
        let dictionary = Dictionary::make(&content, &learnt, level)?;
        let mut compressor = Compressor::new(codec);
        let without = compressed_bytes(&mut compressor, &measured);
        if !compressor.use_dictionary(&dictionary) {
            return None;
        }
        let with = compressed_bytes(&mut compressor, &measured);
        let expected = if ended { self.bytes } else { self.bytes.saturating_mul(GOES_ON) };
        // The dictionary's share in the measured blocks.
        let measured_bytes: usize = measured.iter().map(|image| image.len()).sum();
        let own = dictionary.bytes().len() as u128 * measured_bytes as u128 / expected as u128;
        let pays = (with as u128 + own) * 100 <= without as u128 * (100 - GAIN_PERCENT_MIN as u128);
        pays.then(|| Arc::new(dictionary))
    }
}

/// So many pieces from all over the blocks.
fn pieces(blocks: &[&[u8]], count: usize) -> Vec<u8> {
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

fn compressed_bytes(compressor: &mut Compressor, blocks: &[&[u8]]) -> usize {
    let mut out = Vec::new();
    let mut total = 0;
    for block in blocks {
        out.clear();
        compressor.compress(block, &mut out);
        total += out.len();
    }
    total
}

#[cfg(test)]
#[path = "dictionary_tests.rs"]
mod tests;
