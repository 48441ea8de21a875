//! What values look like. All are made from the seed alone, so that every machine has the same.

use super::{rows, text};
use crate::generate::{Random, Values};
use crate::options::ValueBytes;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Bytes of the buffer that values are slices of: more than a core's cache, and than what a codec
/// looks back.
const BUFFER_BYTES: usize = 8 << 20;

/// What values look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Data {
    /// As db_bench's: a share of each 100 bytes is noise, which the rest repeats
    #[default]
    Half,
    /// Lists of LinkBench's links: ids, times, and data that repeats motifs
    Links,
    /// Lines of a log, as JSON
    Json,
    /// What a package manager says of its packages
    Text,
    /// Noise, which nothing compresses
    Random,
}

impl Data {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Data::Half => "half",
            Data::Links => "links",
            Data::Json => "json",
            Data::Text => "text",
            Data::Random => "random",
        }
    }

    /// The mean bytes of a value.
    pub fn mean_bytes(self, bytes: ValueBytes) -> f64 {
        match self {
            Data::Links => rows::LINKS_BYTES,
            Data::Json => rows::JSON_BYTES,
            Data::Half | Data::Text | Data::Random => ((bytes.least + bytes.most) / 2) as f64,
        }
    }

    /// The values of a run. Rows have their own sizes, all else has `bytes`.
    pub(super) fn values(self, seed: u64, bytes: ValueBytes, compressibility: f64) -> Values {
        let mut random = Random::named(seed, self.name(), 0);
        let wanted = BUFFER_BYTES.max(bytes.most * 2);
        match self {
            Data::Half => Values::new(seed, bytes.least, bytes.most, compressibility),
            Data::Links => rows::links(&mut random, BUFFER_BYTES),
            Data::Json => rows::json(&mut random, BUFFER_BYTES),
            Data::Text => Values::slices(text::text(&mut random, wanted), bytes.least, bytes.most),
            Data::Random => {
                let noise = std::iter::repeat_with(|| random.bits().to_le_bytes());
                let noise = noise.take(wanted.div_ceil(8)).flatten().collect();
                Values::slices(noise, bytes.least, bytes.most)
            }
        }
    }
}

#[cfg(all(test, feature = "shale"))]
#[path = "data_tests.rs"]
mod tests;
