//! What can be chosen for a tree.

use serde::{Serialize, Serializer};
use shaledb::{Codec, Codecs, TreeConfig};
use shaledb_lab::units::setting;

/// A codec for all levels, a block size, and whether the engine may make a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Choice {
    #[serde(serialize_with = "name")]
    pub(super) codec: Codec,
    pub(super) block_bytes: u32,
    pub(super) dictionary: bool,
}

fn name<S: Serializer>(codec: &Codec, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(codec)
}

/// The largest blocks that a dictionary is made for (docs/decisions/0009-dictionaries.md).
const DICTIONARY_BLOCK_BYTES_MAX: u32 = 32 << 10;

/// The block size at which a codec is measured where one is enough.
pub(super) const USUAL_BLOCK_BYTES: u32 = 16 << 10;

impl Choice {
    /// All that are tried: each codec with each block size, zstd also with a dictionary.
    pub(super) fn all(codecs: &[Codec], block_sizes: &[u32]) -> Vec<Choice> {
        let mut all = Vec::new();
        for &codec in codecs {
            for &block_bytes in block_sizes {
                all.push(Choice { codec, block_bytes, dictionary: false });
                if matches!(codec, Codec::Zstd(_)) && block_bytes <= DICTIONARY_BLOCK_BYTES_MAX {
                    all.push(Choice { codec, block_bytes, dictionary: true });
                }
            }
        }
        all
    }

    /// Without a dictionary.
    pub(super) fn plain(self) -> Choice {
        Choice { dictionary: false, ..self }
    }

    pub(super) fn config(self) -> TreeConfig {
        TreeConfig {
            codecs: Codecs::all(self.codec),
            block_bytes: self.block_bytes,
            dictionary: self.dictionary,
            ..TreeConfig::default()
        }
    }

    /// As it is written in a table.
    pub(super) fn label(self) -> String {
        let dictionary = if self.dictionary { " +dict" } else { "" };
        format!("{} {}{dictionary}", self.codec, self.short_size())
    }

    /// As it is said in a sentence.
    pub(super) fn words(self) -> String {
        let dictionary = match (self.dictionary, self.codec) {
            (true, _) => " with a dictionary",
            (false, Codec::Zstd(_)) => " without a dictionary",
            _ => "",
        };
        format!("{} in blocks of {}{dictionary}", self.codec, setting(self.block_bytes.into()))
    }

    /// The flags of `shale import` that choose it.
    pub(super) fn flags(self) -> String {
        let dictionary = match (self.dictionary, self.codec) {
            (false, Codec::Zstd(_)) => " --no-dictionary",
            _ => "",
        };
        format!("--codecs {} --block-bytes {}{dictionary}", self.codec, self.short_size())
    }

    /// The bytes of a block, exactly, as flags have them.
    fn short_size(self) -> String {
        match self.block_bytes.is_multiple_of(1 << 10) {
            true => format!("{}K", self.block_bytes >> 10),
            false => self.block_bytes.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaledb_lab::units::parse_bytes;

    #[test]
    fn what_is_said_is_what_was_measured() {
        for bytes in [4096, 5000, 16 << 10, 1 << 20] {
            let choice = Choice { codec: Codec::Lz4, block_bytes: bytes, dictionary: false };
            let flags = choice.flags();
            let told = flags.rsplit(' ').next().and_then(|size| parse_bytes(size).ok());
            assert_eq!(told, Some(bytes.into()), "{flags}");
        }
        let of = |block_bytes| Choice { codec: Codec::Zstd(3), block_bytes, dictionary: true };
        assert_eq!(
            (of(16 << 10).label(), of(5000).label()),
            ("zstd:3 16K +dict".to_owned(), "zstd:3 5000 +dict".to_owned())
        );
        assert_eq!(of(5000).words(), "zstd:3 in blocks of 5000 B with a dictionary");
        assert_eq!(of(16 << 10).words(), "zstd:3 in blocks of 16 KiB with a dictionary");
    }
}
