//! How large the blocks of a tree's levels are: what is set, or what was chosen, and why.

use crate::base::config::LEVELS;
use crate::table::meta::{FileId, TableMeta};
use std::sync::Arc;

/// What is chosen from, in bytes before compression.
pub const SIZES: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];
/// Before anything is known, and where nothing speaks for less.
pub(super) const LARGEST: usize = SIZES.len() - 1;

/// How many blocks of a level tell what was chosen for it.
const BLOCKS_TELL: u64 = 64;
/// Blocks that are so many times as large as a size makes them, or as small, are of another one:
/// they are seldom quite full.
const OTHER_SIZE: f64 = 1.4;
/// Of so few blocks the last, which is short, would count.
const FEW: u64 = 4;

/// Why blocks of a level have their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockWhy {
    /// The tree's settings name it.
    Set,
    /// Nothing has spoken for another one yet.
    #[default]
    Unmeasured,
    /// Nothing is known of reads: it suits the codec.
    Unread,
    /// The tables that are there have it, as was chosen before they were opened.
    Found,
    /// Most reads want one row of a block.
    LookedUp,
    /// What is written and scanned costs less so, or smaller ones would take too much space.
    Scanned,
    /// The limit on space is near.
    SpaceShort,
}

impl BlockWhy {
    pub(super) const ALL: [BlockWhy; 7] = [
        BlockWhy::Set,
        BlockWhy::Unmeasured,
        BlockWhy::Unread,
        BlockWhy::Found,
        BlockWhy::LookedUp,
        BlockWhy::Scanned,
        BlockWhy::SpaceShort,
    ];

    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            BlockWhy::Set => "it is set",
            BlockWhy::Unmeasured => "nothing speaks for another size yet",
            BlockWhy::Unread => "they suit the codec, and nobody reads them yet",
            BlockWhy::Found => "those that are there were chosen so",
            BlockWhy::LookedUp => "reads want single rows of them",
            BlockWhy::Scanned => "smaller ones would cost more than they give",
            BlockWhy::SpaceShort => "the limit on space is near, and smaller ones take more",
        }
    }
}

/// The size that was chosen for a level, as its place in [`SIZES`], and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeChoice {
    pub(super) at: usize,
    pub(super) why: BlockWhy,
}

/// What was chosen for the levels of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChosenSizes {
    pub(super) levels: [Option<SizeChoice>; LEVELS],
    /// Whether tables of the last level of another size are to be rewritten.
    pub(super) rewrites_last: bool,
}

impl ChosenSizes {
    /// What was chosen before, by the tables of the last level: what most of it has. Large blocks
    /// tell nothing, since everything begins with these.
    pub fn of_last<'a>(tables: impl Iterator<Item = &'a Arc<TableMeta>>) -> ChosenSizes {
        let mut bytes = [0; SIZES.len()];
        let mut blocks = 0;
        // Where a row fills a block of any size, that tells nothing.
        let tells = |table: &&Arc<TableMeta>| (0..SIZES.len()).any(|at| is_other(table, at));
        for table in tables.filter(tells) {
            blocks += table.blocks;
            bytes[size_of(table)] += table.raw_bytes;
        }
        let at = (0..SIZES.len()).max_by_key(|at| bytes[*at]).unwrap_or(LARGEST);
        let mut sizes = ChosenSizes::default();
        if blocks >= BLOCKS_TELL && at < LARGEST {
            sizes.levels[LEVELS - 1] = Some(SizeChoice { at, why: BlockWhy::Found });
        }
        sizes
    }

    /// In one word, so that it is read without a lock.
    pub fn pack(&self) -> u64 {
        let byte = |choice: &SizeChoice| {
            let why = BlockWhy::ALL.iter().position(|why| *why == choice.why).unwrap_or(0);
            (choice.at as u64 + 1) | ((why as u64) << 4)
        };
        let levels = self.levels.iter().enumerate();
        let word: u64 =
            levels.map(|(level, choice)| choice.as_ref().map_or(0, byte) << (8 * level)).sum();
        word | u64::from(self.rewrites_last) << 63
    }

    /// Whether one was chosen for the last level.
    pub fn has_last(&self) -> bool {
        self.levels[LEVELS - 1].is_some()
    }

    /// The same, of which nothing is rewritten.
    pub fn without_rewriting(self) -> ChosenSizes {
        ChosenSizes { rewrites_last: false, ..self }
    }

    /// The size that tables of the last level of another one are to be rewritten for, if they are.
    pub fn rewrites(&self) -> Option<u32> {
        let last = self.levels[LEVELS - 1].filter(|_| self.rewrites_last)?;
        Some(SIZES[last.at])
    }

    /// What [`ChosenSizes::pack`] made.
    pub fn unpack(word: u64) -> ChosenSizes {
        let levels = std::array::from_fn(|level| {
            let byte = (word >> (8 * level) & 0x7f) as usize;
            let at = (byte & 15).checked_sub(1).filter(|at| *at < SIZES.len())?;
            let why = BlockWhy::ALL.get(byte >> 4).copied().unwrap_or_default();
            Some(SizeChoice { at, why })
        });
        ChosenSizes { levels, rewrites_last: word >> 63 == 1 }
    }
}

/// How large the blocks of a tree's levels are to be at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockSizes {
    /// What is set, in bytes; 0 if the engine chooses.
    pub set: u32,
    /// What was chosen.
    pub chosen: ChosenSizes,
    /// Tables with smaller numbers were there when it was chosen what the last level is rewritten
    /// for: each is rewritten once at most, whatever its blocks become.
    pub rewrite_before: FileId,
}

impl BlockSizes {
    /// Large blocks, which take the least space, and no table that is rewritten for smaller ones;
    /// what is set stays.
    pub fn largest(self) -> BlockSizes {
        let all = SizeChoice { at: LARGEST, why: BlockWhy::SpaceShort };
        let chosen = ChosenSizes { levels: [Some(all); LEVELS], rewrites_last: false };
        BlockSizes { chosen, ..self }
    }

    /// For tables of `level`, in bytes before compression, and why.
    pub fn of(&self, level: usize) -> (u32, BlockWhy) {
        let chosen = self.chosen.levels[level.min(LEVELS - 1)];
        match (self.set, chosen) {
            (0, Some(SizeChoice { at, why })) => (SIZES[at], why),
            (0, None) => (SIZES[LARGEST], BlockWhy::Unmeasured),
            (set, _) => (set, BlockWhy::Set),
        }
    }

    /// Whether a table of the last level is to be rewritten for the size of its blocks.
    pub fn wants_rewrite(&self, table: &TableMeta) -> bool {
        self.set == 0
            && self.chosen.rewrites_last
            && table.id < self.rewrite_before
            && self.chosen.levels[LEVELS - 1].is_some_and(|choice| is_other(table, choice.at))
    }
}

/// The bytes of blocks that are full of rows of this length: as many as fit, one at least.
pub(super) fn full_bytes(at: usize, row_bytes: f64) -> f64 {
    let size = f64::from(SIZES[at]);
    if row_bytes < 1.0 { size } else { row_bytes * (size / row_bytes).floor().max(1.0) }
}

/// Bytes of a block of a table on average.
fn mean_bytes(table: &TableMeta) -> f64 {
    table.raw_bytes as f64 / table.blocks.max(1) as f64
}

/// Whether the blocks of a table are of another size than this.
pub fn is_other(table: &TableMeta, at: usize) -> bool {
    let mean = mean_bytes(table);
    let full = full_bytes(at, table.raw_bytes as f64 / table.entries.max(1) as f64);
    // Rows of many lengths make blocks that are fuller than rows of their mean length would.
    let most = full.max(f64::from(SIZES[at]));
    table.blocks > FEW && (mean > OTHER_SIZE * most || mean * OTHER_SIZE < full)
}

/// The size that the blocks of a table are of, as its place in [`SIZES`]; of several, the largest.
pub fn size_of(table: &TableMeta) -> usize {
    let mean = mean_bytes(table);
    let nearest = || SIZES.iter().position(|size| mean <= OTHER_SIZE * f64::from(*size));
    let of = (0..SIZES.len()).rev().find(|at| !is_other(table, *at));
    of.or_else(nearest).unwrap_or(LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_fit_one_word() {
        let mut sizes = ChosenSizes::default();
        assert_eq!(ChosenSizes::unpack(sizes.pack()), sizes);
        for (level, choice) in sizes.levels.iter_mut().enumerate() {
            let why = BlockWhy::ALL[level % BlockWhy::ALL.len()];
            *choice = (level != 2).then_some(SizeChoice { at: level % SIZES.len(), why });
        }
        for rewrites_last in [false, true] {
            sizes.rewrites_last = rewrites_last;
            assert_eq!(ChosenSizes::unpack(sizes.pack()), sizes);
        }
    }

    /// A table of blocks of so many bytes, with rows of as many.
    fn table(id: FileId, blocks: u64, bytes: u64, row_bytes: u64) -> TableMeta {
        let raw_bytes = blocks * bytes;
        TableMeta { id, blocks, raw_bytes, entries: raw_bytes / row_bytes, ..TableMeta::default() }
    }

    #[test]
    fn the_last_level_tells_what_was_chosen() {
        let of = |tables: &[(u64, u64, u64)]| {
            let table = |&(blocks, bytes, row): &(u64, u64, u64)| table(1, blocks, bytes, row);
            let tables: Vec<_> = tables.iter().map(|one| Arc::new(table(one))).collect();
            let chosen = ChosenSizes::of_last(tables.iter());
            BlockSizes { chosen, ..BlockSizes::default() }.of(LEVELS - 1)
        };
        assert_eq!(of(&[(1000, 3_900, 270)]), (4 << 10, BlockWhy::Found));
        assert_eq!(of(&[(1000, 7_900, 270)]).0, 8 << 10);
        // Half of it has been rewritten.
        assert_eq!(of(&[(410, 4_000, 270), (100, 16_000, 270)]).0, 4 << 10);
        let large = [(1000, 16_100, 270), (1000, 100_000, 100_000), (1000, 9_500, 9_500)];
        for other in large.into_iter().chain([(3, 3_900, 270), (0, 0, 1)]) {
            assert_eq!(of(&[other]), (16 << 10, BlockWhy::Unmeasured), "{other:?}");
        }
    }

    #[test]
    fn blocks_are_of_the_sizes_that_would_make_them_so() {
        for (bytes, row, of) in [
            (4_000, 270, [true, false, false]),
            (3_500, 270, [true, false, false]),
            (8_000, 270, [false, true, false]),
            (16_000, 270, [false, false, true]),
            // In each of the first two a row has a block of its own.
            (6_000, 6_000, [true, true, false]),
            (12_000, 6_000, [false, false, true]),
            (10_000, 10_000, [true, true, true]),
            (50_000, 50_000, [true, true, true]),
        ] {
            let found = [0, 1, 2].map(|at| !is_other(&table(1, 1000, bytes, row), at));
            assert_eq!(found, of, "{bytes} {row}");
        }
    }

    #[test]
    fn a_table_is_rewritten_once() {
        let mut chosen = ChosenSizes::default();
        chosen.levels[LEVELS - 1] = Some(SizeChoice { at: 0, why: BlockWhy::LookedUp });
        chosen.rewrites_last = true;
        let sizes = BlockSizes { set: 0, chosen, rewrite_before: 10 };
        let large = table(9, 1000, 16_000, 270);
        assert!(sizes.wants_rewrite(&large));
        assert!(!sizes.wants_rewrite(&table(10, 1000, 16_000, 270)), "it is new");
        assert!(!sizes.wants_rewrite(&table(9, 1000, 4_000, 270)), "they are as wanted");
        assert!(!sizes.wants_rewrite(&table(9, 1000, 16_000, 16_000)), "rows are as large");
        assert!(!sizes.wants_rewrite(&table(9, 4, 16_000, 270)), "they are few");
        assert!(!BlockSizes { set: 2048, ..sizes }.wants_rewrite(&large));
        let chosen = ChosenSizes { rewrites_last: false, ..chosen };
        assert!(!BlockSizes { chosen, ..sizes }.wants_rewrite(&large));
    }
}
