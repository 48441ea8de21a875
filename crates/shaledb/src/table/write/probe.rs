//! Some blocks of a table as they were before they were compressed, for whoever wants to know what
//! codecs do to them.

use std::sync::{Arc, OnceLock};

/// How many bytes are kept at most, and of each block.
const BYTES: usize = 64 << 10;
const BLOCK_BYTES: usize = 16 << 10;

/// Where the blocks are once the table is complete.
pub type Probe = Arc<OnceLock<Vec<Vec<u8>>>>;

/// Collects blocks from all over a table.
pub(super) struct Prober {
    blocks: Vec<Vec<u8>>,
    /// The number of the next block to keep.
    next: u64,
    into: Probe,
}

impl Prober {
    pub fn new(into: &Probe) -> Prober {
        Prober { blocks: Vec::new(), next: 0, into: Arc::clone(into) }
    }

    /// Shows a block with its number. Kept are the first ones, and later ones instead of them, at
    /// distances that grow: so the last ones kept are from all over the table.
    pub fn offer(&mut self, number: u64, image: &[u8]) {
        if number < self.next {
            return;
        }
        self.next = number + number / 2 + 1;
        // Of a large value its beginning will do.
        self.blocks.push(image[..image.len().min(BLOCK_BYTES)].to_vec());
        while self.blocks.iter().map(Vec::len).sum::<usize>() > BYTES {
            self.blocks.remove(0);
        }
    }

    pub fn end(self) {
        // Whoever asked for it has one table probed; of several the first counts.
        let _ = self.into.set(self.blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_from_all_over() {
        let probe = Probe::default();
        let mut prober = Prober::new(&probe);
        let block = |number: u64| [&number.to_le_bytes()[..], &[0; 1 << 20]].concat();
        (0..1000u64).for_each(|number| prober.offer(number, &block(number)));
        prober.end();
        let kept = probe.get().unwrap();
        let numbers: Vec<u64> =
            kept.iter().map(|block| u64::from_le_bytes(block[..8].try_into().unwrap())).collect();
        assert!(kept.len() == 4 && kept.iter().all(|block| block.len() == BLOCK_BYTES));
        assert!(numbers[0] > 100 && numbers[3] > 500 && numbers.is_sorted(), "{numbers:?}");
    }
}
