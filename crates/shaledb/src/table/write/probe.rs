//! Some blocks of a table as they were before they were compressed, for whoever wants to know what
//! codecs and dictionaries do to them.

use crate::table::format::compress::Dictionary;
use std::sync::{Arc, OnceLock};

/// How many bytes are kept at most.
const BYTES: usize = 256 << 10;
/// How many bytes are kept of each block.
pub const BLOCK_BYTES: usize = 32 << 10;

/// Where the blocks are once the table is complete, with the size of all of it before compression.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    into: Arc<OnceLock<Probed>>,
    /// Smaller blocks are kept in pieces of about so many bytes, each of blocks that follow one
    /// another, for who wants to know what larger ones would be like.
    piece_bytes: usize,
}

impl Probe {
    /// One that keeps small blocks in pieces of about so many bytes.
    pub fn of_pieces(piece_bytes: usize) -> Probe {
        Probe { piece_bytes, ..Probe::default() }
    }

    /// What was kept, once the table is complete.
    pub fn get(&self) -> Option<&Probed> {
        self.into.get()
    }
}

/// What was kept of a table.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    /// Blocks from all over it, in order, or pieces of several ([`Probe::of_pieces`]).
    pub blocks: Vec<Vec<u8>>,
    /// Bytes of all of its blocks.
    pub raw_bytes: u64,
    /// Its dictionary.
    pub dictionary: Option<Arc<Dictionary>>,
}

/// Collects every n-th block of a table, or every n-th run of so many that a piece has; n doubles
/// whenever they have become too many.
pub(super) struct Prober {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
    every: u64,
    /// Blocks of a piece, and the number of the block that was kept last.
    run: u64,
    last: Option<u64>,
    into: Probe,
}

impl Prober {
    /// For a table whose blocks have `block_bytes`.
    pub fn new(into: &Probe, block_bytes: usize) -> Prober {
        let run = (into.piece_bytes / block_bytes.max(1)).max(1) as u64;
        Prober { blocks: Vec::new(), bytes: 0, every: 1, run, last: None, into: into.clone() }
    }

    /// Shows a block with its number.
    pub fn offer(&mut self, number: u64, image: &[u8]) {
        if !(number / self.run).is_multiple_of(self.every) {
            return;
        }
        // Of a large value its beginning will do.
        let kept = &image[..image.len().min(BLOCK_BYTES)];
        let follows = self.last.replace(number).is_some_and(|last| last + 1 == number);
        match self.blocks.last_mut() {
            Some(piece)
                if follows
                    && !number.is_multiple_of(self.run)
                    && piece.len() + kept.len() <= BLOCK_BYTES =>
            {
                piece.extend_from_slice(kept);
            }
            _ => self.blocks.push(kept.to_vec()),
        }
        self.bytes += kept.len();
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
        let _ = self.into.into.set(Probed { blocks: self.blocks, raw_bytes, dictionary });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_from_all_over() {
        for bytes in [4 << 10, 16 << 10, 1 << 20] {
            let probe = Probe::default();
            let mut prober = Prober::new(&probe, bytes);
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

    #[test]
    fn small_blocks_are_kept_in_runs() {
        let probe = Probe::of_pieces(16 << 10);
        let mut prober = Prober::new(&probe, 4 << 10);
        let block = |number: u64| [&number.to_le_bytes()[..], &vec![0; 4000]].concat();
        // Others are reused whole, and not shown.
        let shown = (0..1000u64).filter(|number| *number != 401);
        shown.for_each(|number| prober.offer(number, &block(number)));
        prober.end(7, None);
        let kept = &probe.get().unwrap().blocks;
        assert!(kept.len() > 5 && kept.iter().map(Vec::len).sum::<usize>() <= BYTES);
        for piece in kept {
            let numbers =
                piece.chunks(4008).map(|b| u64::from_le_bytes(b[..8].try_into().unwrap()));
            let numbers: Vec<u64> = numbers.collect();
            assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
            let whole = numbers[0].is_multiple_of(4) && numbers.len() == 4;
            assert!(whole || (400..404).contains(&numbers[0]), "{numbers:?}");
        }
    }
}
