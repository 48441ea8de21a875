//! LinkBench's data: pieces of up to 128 bytes, each either fresh or copied from a buffer of
//! motifs. One row alone does not compress well; a block of many rows shows the motifs again and
//! again, as real rows do.

use super::distributions::LogNormal;
use crate::generate::Random;

const PIECE_BYTES: usize = 128;

/// What data looks like.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The least byte.
    pub least: u8,
    /// The greatest byte.
    pub most: u8,
    /// The chance that a piece is fresh.
    pub uniqueness: f64,
    /// The size of the buffer of motifs.
    pub motif_bytes: usize,
    /// The median of the sizes, which are log-normal with a deviation of 1.
    pub median_bytes: f64,
    /// The greatest size.
    pub most_bytes: u64,
}

/// The data of links.
pub const LINK_LOOK: Look = Look {
    least: 32,
    most: 100,
    uniqueness: 0.225,
    motif_bytes: 128,
    median_bytes: 8.0,
    most_bytes: 254,
};

/// The data of nodes.
pub const NODE_LOOK: Look = Look {
    least: 50,
    most: 220,
    uniqueness: 0.63,
    motif_bytes: 512,
    median_bytes: 128.0,
    most_bytes: (1 << 20) - 1,
};

/// Makes data of one look. Each client has motifs of its own, as in LinkBench, so that a block
/// with rows of several clients compresses less well than a block of one.
#[derive(Clone, Debug)]
pub struct Motif {
    look: Look,
    motifs: Box<[u8]>,
    sizes: LogNormal,
}

impl Motif {
    /// With motifs drawn from `random`.
    pub fn new(look: Look, random: &mut Random) -> Motif {
        let mut motifs = Vec::with_capacity(look.motif_bytes);
        fresh(look, random, look.motif_bytes, &mut motifs);
        let sizes = LogNormal::new(look.median_bytes, 1.0, look.most_bytes);
        Motif { look, motifs: motifs.into(), sizes }
    }

    /// Adds the next row's data to `to`.
    pub fn append(&mut self, random: &mut Random, to: &mut Vec<u8>) {
        let mut left = self.sizes.draw(random) as usize;
        while left > 0 {
            let piece = left.min(PIECE_BYTES).min(self.motifs.len());
            if random.unit() < self.look.uniqueness {
                fresh(self.look, random, piece, to);
            } else {
                let at = random.below((self.motifs.len() - piece + 1) as u64) as usize;
                to.extend_from_slice(&self.motifs[at..at + piece]);
            }
            left -= piece;
        }
    }
}

/// Adds random bytes of the look's range, four from each number drawn.
fn fresh(look: Look, random: &mut Random, count: usize, to: &mut Vec<u8>) {
    let range = u32::from(look.most - look.least) + 1;
    let (mut bits, mut fields) = (0u64, 0);
    to.extend(
        std::iter::repeat_with(|| {
            if fields == 0 {
                (bits, fields) = (random.bits(), 4);
            }
            let byte = (u32::from(bits as u16) * range) >> 16;
            bits >>= 16;
            fields -= 1;
            look.least + byte as u8
        })
        .take(count),
    );
}

#[cfg(test)]
#[path = "motif_tests.rs"]
mod tests;
