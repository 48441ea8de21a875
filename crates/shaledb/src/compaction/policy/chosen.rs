//! What was chosen for the levels of a tree, and why.

use super::candidates::{ALL, index_of};
use super::sizes::BlockSizes;
use crate::base::config::{Codec, Codecs, LEVELS, TreeConfig};
use crate::table::meta::{TableMeta, Why};
use std::sync::Arc;

/// A codec, and why it is this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Never [`Codec::Auto`].
    pub codec: Codec,
    /// Whether it uses the tree's dictionary, if it is zstd and there is one.
    pub dictionary: bool,
    /// Why.
    pub why: Why,
}

/// What was chosen for each level of a tree; `None` where nothing was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen(pub [Option<Choice>; LEVELS]);

impl Chosen {
    /// What was chosen before, by the tables of a tree: for each level what its newest table has,
    /// if that was chosen by what had been measured. Where the codec can go with a dictionary it is
    /// taken to have had the tree's, if it has one.
    pub fn of_tables<'a, T>(levels: impl Iterator<Item = T>) -> Chosen
    where
        T: Iterator<Item = &'a Arc<TableMeta>>,
    {
        let mut chosen = Chosen::default();
        for (choice, tables) in chosen.0.iter_mut().zip(levels) {
            let newest = tables.max_by_key(|table| table.id);
            *choice = newest.and_then(|table| {
                let (codec, why) = (table.codec?, table.why);
                let measured = !matches!(why, Why::Set | Why::Unmeasured);
                let dictionary = index_of(codec, true).is_some();
                measured.then_some(Choice { codec, dictionary, why })
            });
        }
        chosen
    }

    /// In one word, so that it is read without a lock: for each level a byte with the candidate's
    /// number, from 1 on, and that of the reason.
    pub fn pack(&self) -> u64 {
        let byte = |choice: &Choice| {
            let index = index_of(choice.codec, choice.dictionary);
            let candidate = index.map_or(0, |index| index as u64 + 1);
            candidate | u64::from(choice.why.number()) << 4
        };
        let bytes = self.0.iter().enumerate();
        bytes.map(|(level, choice)| choice.as_ref().map_or(0, byte) << (8 * level)).sum()
    }

    /// What [`Chosen::pack`] made.
    pub fn unpack(word: u64) -> Chosen {
        Chosen(std::array::from_fn(|level| {
            let byte = word >> (8 * level) & 0xff;
            let way = *ALL.get((byte as usize & 15).checked_sub(1)?)?;
            let why = Why::of_number(byte >> 4);
            Some(Choice { codec: way.codec, dictionary: way.dictionary, why })
        }))
    }
}

/// What the codecs of a tree's levels are at a moment, and how large their blocks: what is set, and
/// what was chosen where that is left to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelCodecs {
    /// What is set.
    pub set: Codecs,
    /// What was chosen.
    pub chosen: Chosen,
    /// How large blocks are.
    pub blocks: BlockSizes,
}

impl From<Codecs> for LevelCodecs {
    fn from(set: Codecs) -> LevelCodecs {
        LevelCodecs { set, chosen: Chosen::default(), blocks: BlockSizes::default() }
    }
}

/// The codec of a class of levels before anything is known of the data.
const USUAL: [Codec; 3] = [Codec::None, Codec::Lz4, Codec::Zstd(3)];

impl LevelCodecs {
    /// What is set; nothing is chosen.
    pub fn of_config(tree: &TreeConfig) -> LevelCodecs {
        let blocks = BlockSizes { set: tree.block_bytes, ..BlockSizes::default() };
        LevelCodecs { blocks, ..tree.codecs.into() }
    }

    /// The codec for tables of `level` when `base` is the first level below 0 in use: the upper
    /// codec for level 0, the base and the next level; the bottommost one for the last level.
    pub fn of(&self, level: usize, base: usize) -> Choice {
        let (set, usual) = if level >= LEVELS - 1 {
            (self.set.bottommost, USUAL[2])
        } else if level <= base + 1 {
            (self.set.upper, USUAL[0])
        } else {
            (self.set.middle, USUAL[1])
        };
        match set {
            Codec::Auto => self.chosen.0[level.min(LEVELS - 1)].unwrap_or(Choice {
                codec: usual,
                dictionary: true,
                why: Why::Unmeasured,
            }),
            codec => Choice { codec, dictionary: true, why: Why::Set },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidates::Way;
    use super::*;

    #[test]
    fn choices_fit_one_word() {
        let mut chosen = Chosen::default();
        assert_eq!(Chosen::unpack(chosen.pack()), chosen);
        for (level, choice) in chosen.0.iter_mut().enumerate() {
            let why = Why::ALL[level % Why::ALL.len()];
            let Way { codec, dictionary } = ALL[(level + 3) % ALL.len()];
            *choice = (level != 2).then_some(Choice { codec, dictionary, why });
        }
        assert_eq!(Chosen::unpack(chosen.pack()), chosen);
    }

    #[test]
    fn tables_tell_what_was_chosen() {
        let table = |id, codec, why| Arc::new(TableMeta { id, codec, why, ..TableMeta::default() });
        let levels = [
            vec![
                table(1, Some(Codec::Lz4), Why::CpuShort),
                table(9, Some(Codec::None), Why::Plain),
                table(4, Some(Codec::Zstd(1)), Why::CpuFree),
            ],
            vec![],
            vec![table(2, Some(Codec::Zstd(3)), Why::StorageShort)],
            vec![table(3, Some(Codec::Zstd(3)), Why::Unmeasured)],
            vec![table(5, None, Why::Set)],
        ];
        let chosen = Chosen::of_tables(levels.iter().map(|level| level.iter()));
        let plain = Choice { codec: Codec::None, dictionary: false, why: Why::Plain };
        assert_eq!(chosen.0[0], Some(plain));
        let zstd = Choice { codec: Codec::Zstd(3), dictionary: true, why: Why::StorageShort };
        assert_eq!(chosen.0[2], Some(zstd));
        assert!([1, 3, 4, 5, 6].into_iter().all(|level| chosen.0[level].is_none()));
    }

    #[test]
    fn what_is_set_is_not_chosen() {
        let mut codecs = LevelCodecs::from(Codecs { middle: Codec::Lz4, ..Codecs::default() });
        let choice = Choice { codec: Codec::Zstd(9), dictionary: false, why: Why::CpuFree };
        codecs.chosen.0 = [Some(choice); LEVELS];
        assert_eq!(codecs.of(0, 1).codec, Codec::Zstd(9));
        let set = Choice { codec: Codec::Lz4, dictionary: true, why: Why::Set };
        assert_eq!(codecs.of(4, 1), set);
        codecs.chosen = Chosen::default();
        let usual = [0, 4, 6].map(|level| codecs.of(level, 1).codec.to_string());
        assert_eq!(usual, ["none", "lz4", "zstd:3"]);
    }
}
