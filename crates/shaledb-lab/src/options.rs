//! Values of flags that several workloads share.

use crate::units::parse_bytes;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The least and the most bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueBytes {
    /// The least.
    pub least: usize,
    /// The most.
    pub most: usize,
}

impl FromStr for ValueBytes {
    type Err = String;

    /// Reads `100-400` or `400`.
    fn from_str(text: &str) -> Result<ValueBytes, String> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let least = parse_bytes(least)? as usize;
        let most = parse_bytes(most)? as usize;
        if least > most {
            return Err(format!(
                "`{text}`: the least size is larger than the most. Write the least first"
            ));
        }
        if most > 64 << 20 {
            return Err(format!("`{text}`: a value of a benchmark has at most 64 MiB"));
        }
        Ok(ValueBytes { least, most })
    }
}

impl std::fmt::Display for ValueBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.least, self.most)
    }
}

/// How random keys spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// Each key as often as any other.
    #[default]
    Uniform,
    /// The key of rank `r` in proportion to `r^-exponent`; keys of all ranks lie anywhere.
    Zipf(f64),
}

/// The largest exponent: beyond it nearly all draws are of a few keys.
const EXPONENT_MAX: f64 = 2.0;

impl FromStr for Skew {
    type Err = String;

    /// Reads `uniform` or `zipf:0.9`.
    fn from_str(text: &str) -> Result<Skew, String> {
        match text.split_once(':') {
            None if text == "uniform" => Ok(Skew::Uniform),
            Some(("zipf", exponent)) => match exponent.parse() {
                Ok(known) if (0.0..=EXPONENT_MAX).contains(&known) => Ok(Skew::Zipf(known)),
                _ => Err(format!(
                    "`{exponent}` is not an exponent from 0 to {EXPONENT_MAX}, such as 0.9"
                )),
            },
            _ => Err(format!("`{text}` is not `uniform` or such as zipf:0.9")),
        }
    }
}

impl std::fmt::Display for Skew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Skew::Uniform => f.write_str("uniform"),
            Skew::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

/// The name for a codec that the engine chooses itself.
pub const AUTO: &str = "auto";

/// The codec of the upper levels, of those in the middle and of the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodecNames {
    /// Level 0 and the two below it that are in use.
    pub upper: String,
    /// Between the upper levels and the last.
    pub middle: String,
    /// The last level.
    pub bottommost: String,
}

impl FromStr for CodecNames {
    type Err = String;

    /// Reads `lz4` (everywhere) or `none,lz4,zstd:3`.
    fn from_str(text: &str) -> Result<CodecNames, String> {
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        let (upper, middle, bottommost) = match names[..] {
            [all] => (all, all, all),
            [upper, middle, bottommost] => (upper, middle, bottommost),
            _ => {
                return Err(format!(
                    "`{text}`: name one codec, or three for the upper levels, the middle and the \
                     last, such as none,lz4,zstd:3"
                ));
            }
        };
        for name in [upper, middle, bottommost] {
            let known = match name.split_once(':') {
                None => matches!(name, "none" | "lz4" | "zlib" | "zstd" | AUTO),
                Some(("zlib", level)) => level.parse().is_ok_and(|n: u8| (1..=9).contains(&n)),
                Some(("zstd", level)) => {
                    level.parse().is_ok_and(|n: i8| (-5..=19).contains(&n) && n != 0)
                }
                Some(_) => false,
            };
            if !known {
                return Err(format!(
                    "there is no codec `{name}`; the codecs are none, lz4, zlib:1 to zlib:9, \
                     zstd:-5 to zstd:19, auto"
                ));
            }
        }
        Ok(CodecNames {
            upper: upper.to_owned(),
            middle: middle.to_owned(),
            bottommost: bottommost.to_owned(),
        })
    }
}

impl CodecNames {
    /// The same with a usual mix, none, lz4 and zstd:3, where the engine was to choose.
    #[must_use]
    pub fn without_auto(&self) -> CodecNames {
        let fixed = |name: &String, usual: &str| {
            if name == AUTO { usual.to_owned() } else { name.clone() }
        };
        CodecNames {
            upper: fixed(&self.upper, "none"),
            middle: fixed(&self.middle, "lz4"),
            bottommost: fixed(&self.bottommost, "zstd:3"),
        }
    }

    /// Whether the engine is to choose one of them itself.
    pub fn has_auto(&self) -> bool {
        [&self.upper, &self.middle, &self.bottommost].iter().any(|name| *name == AUTO)
    }
}

impl std::fmt::Display for CodecNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.upper == self.middle && self.middle == self.bottommost {
            f.write_str(&self.upper)
        } else {
            write!(f, "{},{},{}", self.upper, self.middle, self.bottommost)
        }
    }
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.01..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a share from 0.01 to 1")),
    }
}

pub(crate) fn part(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a share from 0 to 1")),
    }
}

/// Seconds, rates and factors: as much as a clock can count, in either direction.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (1e-6..=1e9).contains(&number) => Ok(number),
        _ => Err(format!("`{text}` is not a number above 0 (0.000001 to 1e9)")),
    }
}

/// Whole seconds, 0 included, as many as a clock can count.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(seconds @ 0..=1_000_000_000) => Ok(seconds),
        _ => Err(format!("`{text}` is not a number of seconds from 0 to 1000000000")),
    }
}

pub(crate) fn key_bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes @ 1..=65_536) => Ok(bytes),
        _ => Err(format!("`{text}` is not a size from 1 to 65536 bytes")),
    }
}

/// Lists in a plan whose elements are written as on the command line: `#[serde(with = "texts")]`.
pub(crate) mod texts {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        list: &[T],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(T::to_string))
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr<Err = String>,
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_codecs_are_read() {
        assert_eq!("100-400".parse(), Ok(ValueBytes { least: 100, most: 400 }));
        assert_eq!("1K".parse(), Ok(ValueBytes { least: 1024, most: 1024 }));
        assert!("400-100".parse::<ValueBytes>().is_err());
        assert_eq!("none,lz4,zstd:3".parse::<CodecNames>().unwrap().to_string(), "none,lz4,zstd:3");
        assert_eq!("lz4".parse::<CodecNames>().unwrap().to_string(), "lz4");
        let has_auto = |text: &str| text.parse::<CodecNames>().unwrap().has_auto();
        assert!(has_auto("auto") && has_auto("none,lz4,auto") && !has_auto("none,lz4,zstd:3"));
        for wrong in ["none,lz4", "snappy", "zstd:20", "zlib:0", "auto:1"] {
            assert!(wrong.parse::<CodecNames>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_bounds() {
        assert!(share("2").is_err() && share("0.5") == Ok(0.5) && share("0").is_err());
        assert!(part("0") == Ok(0.0) && part("1") == Ok(1.0) && part("1.1").is_err());
        assert!(positive("0").is_err() && positive("inf").is_err() && positive("2.5") == Ok(2.5));
        assert!(positive("1e20").is_err() && positive("1e-20").is_err());
        assert!(seconds("1000000001").is_err() && seconds("0") == Ok(0));
    }
}
