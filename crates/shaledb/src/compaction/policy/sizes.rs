//! How large the blocks of a tree's levels are: what is set, or what was chosen, and why.

use crate::base::config::LEVELS;

/// What is chosen from, in bytes before compression.
pub const SIZES: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];
/// Before anything is known, and where nothing speaks for less.
pub(super) const LARGEST: usize = SIZES.len() - 1;

/// Blocks of a level that are so many times as large as wanted, or as small, are of another size.
const OTHER_SIZE: f64 = 1.5;

/// Why blocks of a level have their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockWhy {
    /// The tree's settings name it.
    Set,
    /// Nothing has spoken for another one yet.
    #[default]
    Unmeasured,
    /// Larger ones would save little space.
    Unread,
    /// Most reads want one row of a block.
    LookedUp,
    /// What is written and scanned costs less so, or smaller ones would take too much space.
    Scanned,
}

impl BlockWhy {
    pub(super) const ALL: [BlockWhy; 5] = [
        BlockWhy::Set,
        BlockWhy::Unmeasured,
        BlockWhy::Unread,
        BlockWhy::LookedUp,
        BlockWhy::Scanned,
    ];

    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            BlockWhy::Set => "it is set",
            BlockWhy::Unmeasured => "nothing speaks for another size yet",
            BlockWhy::Unread => "larger ones would save little space",
            BlockWhy::LookedUp => "reads want single rows of them",
            BlockWhy::Scanned => "smaller ones would cost more than they give",
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
    /// What was chosen before, by what a level's blocks are like: for each level about how many
    /// bytes they have, 0 where there are none. Large ones tell nothing, since everything begins
    /// with these.
    pub fn of_blocks(bytes: [f64; LEVELS]) -> ChosenSizes {
        let of = |bytes: f64| {
            let at = SIZES.iter().position(|size| bytes <= f64::from(*size))?;
            let tells = bytes > 0.0 && at < LARGEST;
            tells.then_some(SizeChoice { at, why: BlockWhy::Unread })
        };
        ChosenSizes { levels: bytes.map(of), rewrites_last: false }
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

    /// The size that tables of the last level of another one are to be rewritten for, if they are.
    pub fn rewrites(&self) -> Option<u32> {
        let last = self.levels[LEVELS - 1].filter(|_| self.rewrites_last)?;
        Some(SIZES[last.at])
    }

    /// The same choice, but nothing is rewritten for it.
    pub fn without_rewrite(self) -> ChosenSizes {
        ChosenSizes { rewrites_last: false, ..self }
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
}

impl BlockSizes {
    /// For tables of `level`, in bytes before compression, and why.
    pub fn of(&self, level: usize) -> (u32, BlockWhy) {
        let chosen = self.chosen.levels[level.min(LEVELS - 1)];
        match (self.set, chosen) {
            (0, Some(SizeChoice { at, why })) => (SIZES[at], why),
            (0, None) => (SIZES[LARGEST], BlockWhy::Unmeasured),
            (set, _) => (set, BlockWhy::Set),
        }
    }

    /// Whether a table of the last level, of `blocks` with `raw_bytes`, is to be rewritten for the
    /// size of its blocks.
    pub fn wants_rewrite(&self, blocks: u64, raw_bytes: u64) -> bool {
        // Of a few blocks the last, which is short, would count.
        let wanted = f64::from(self.of(LEVELS - 1).0);
        self.set == 0
            && self.chosen.rewrites_last
            && blocks > 4
            && is_other(raw_bytes as f64 / blocks as f64, wanted)
    }
}

/// Whether blocks of about `has` bytes are of another size than those of `wanted`, which are
/// seldom quite full.
pub(super) fn is_other(has: f64, wanted: f64) -> bool {
    has > OTHER_SIZE * wanted || has * OTHER_SIZE < 0.8 * wanted
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

    #[test]
    fn tables_tell_what_was_chosen() {
        let mut bytes = [0.0; LEVELS];
        (bytes[3], bytes[5], bytes[LEVELS - 1]) = (16_100.0, 7_900.0, 3_900.0);
        let sizes = BlockSizes { set: 0, chosen: ChosenSizes::of_blocks(bytes) };
        let of = |level| sizes.of(level);
        assert_eq!(of(3), (16 << 10, BlockWhy::Unmeasured));
        assert_eq!(of(4), (16 << 10, BlockWhy::Unmeasured));
        assert_eq!((of(5).0, of(LEVELS - 1).0), (8 << 10, 4 << 10));
    }
}
