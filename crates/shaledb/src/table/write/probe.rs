//! Some blocks of a table as they were before they were compressed, for whoever wants to know what
//! codecs and dictionaries do to them.

use crate::table::format::compress::Dictionary;
use std::sync::{Arc, OnceLock};

/// How many bytes are kept at most, and of each block.
const BYTES: usize = 256 << 10;
const BLOCK_BYTES: usize = 16 << 10;

/// Where the blocks are once the table is complete, with the size of all of it before compression.
pub type Probe = Arc<OnceLock<Probed>>;

/// What was kept of a table.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    /// Blocks from all over it, in order.
    pub blocks: Vec<Vec<u8>>,
    /// Bytes of all of its blocks.
    pub raw_bytes: u64,
    /// Its dictionary.
    pub dictionary: Option<Arc<Dictionary>>,
}

/// Collects every n-th block of a table; n doubles whenever they have become too many.
pub(super) struct Prober {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
    every: u64,
    into: Probe,
}

impl Prober {
    pub fn new(into: &Probe) -> Prober {
        Prober { blocks: Vec::new(), bytes: 0, every: 1, into: Arc::clone(into) }
    }

    /// Shows a block with its number.
    pub fn offer(&mut self, number: u64, image: &[u8]) {
        if !number.is_multiple_of(self.every) {
            return;
        }
        // Of a large value its beginning will do.
        let kept = &image[..image.len().min(BLOCK_BYTES)];
        self.bytes += kept.len();
        self.blocks.push(kept.to_vec());
        while self.bytes > BYTES {
            self.every *= 2;
            let mut at = 0;
            self.blocks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.bytes = self.blocks.iter().map(Vec::len).sum();
        }
    }

    /// Bytes of the blocks kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn end(self, raw_bytes: u64, dictionary: Option<Arc<Dictionary>>) {
        // Whoever asked for it has one table probed; of several the first counts.
        let _ = self.into.set(Probed { blocks: self.blocks, raw_bytes, dictionary });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_from_all_over() {
        for bytes in [4 << 10, 16 << 10, 1 << 20] {
            let probe = Probe::default();
            let mut prober = Prober::new(&probe);
            let block = |number: u64| [&number.to_le_bytes()[..], &vec![0; bytes]].concat();
            (0..1000u64).for_each(|number| prober.offer(number, &block(number)));
            prober.end(7, None);
            let kept = &probe.get().unwrap().blocks;
            let number = |block: &Vec<u8>| u64::from_le_bytes(block[..8].try_into().unwrap());
            let numbers: Vec<u64> = kept.iter().map(number).collect();
            let length: usize = kept.iter().map(Vec::len).sum();
            assert!(length > BYTES / 3 && length <= BYTES, "{length}");
            let step = numbers[1];
            assert!(numbers.iter().enumerate().all(|(at, number)| *number == at as u64 * step));
            assert!(numbers.len() as u64 * step > 900, "{numbers:?}");
        }
    }
}
