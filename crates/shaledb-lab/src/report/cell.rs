//! A cell of the matrix of conditions: what is stored, how fast it is written, what is short, how
//! many operations read. As text it is the variant of a row's setting.

use crate::options::positive;
use crate::workloads::kv::Data;
use clap::ValueEnum;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The word for writes without a rate.
const UNLIMITED: &str = "unlimited";

/// The writes per second, in MiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WriteRate {
    /// As fast as they go.
    Unlimited,
    /// So many MiB a second.
    Of(f64),
}

impl FromStr for WriteRate {
    type Err = String;

    /// Reads `unlimited` or `10`.
    fn from_str(text: &str) -> Result<WriteRate, String> {
        match text {
            UNLIMITED => Ok(WriteRate::Unlimited),
            _ => positive(text).map(WriteRate::Of).map_err(|_| {
                format!("`{text}` is neither `{UNLIMITED}` nor a rate above 0 in MB per second")
            }),
        }
    }
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum Short {
    /// CPU: other threads are busy
    Cpu,
    /// Storage: the device is bounded
    Storage,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// What values look like.
    pub data: Data,
    /// How fast they are written.
    pub writes: WriteRate,
    /// What there is too little of.
    pub short: Short,
    /// The share of operations that read.
    pub read_share: f64,
}

impl Cell {
    /// Whether the size counts. Where CPU is short and writes come as fast as they go, a codec that
    /// saves more costs what is short.
    pub fn size_counts(&self) -> bool {
        self.short != Short::Cpu || self.writes != WriteRate::Unlimited
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let writes = match self.writes {
            WriteRate::Unlimited => UNLIMITED.to_owned(),
            WriteRate::Of(rate) => format!("{rate} MB/s"),
        };
        let short = match self.short {
            Short::Cpu => "cpu",
            Short::Storage => "storage",
        };
        // Two digits after the point are enough for any share that is asked for.
        let percent = (self.read_share * 1e4).round() / 1e2;
        write!(f, "{}, {writes}, {short} short, {percent} % reads", self.data.name())
    }
}

impl FromStr for Cell {
    type Err = String;

    /// Reads what [`Display`] writes.
    fn from_str(text: &str) -> Result<Cell, String> {
        let wrong = || format!("`{text}` is no cell of a matrix");
        let parts: Vec<&str> = text.split(", ").collect();
        let [data, writes, short, reads] = parts[..] else { return Err(wrong()) };
        let percent: f64 =
            reads.strip_suffix(" % reads").and_then(|n| n.parse().ok()).ok_or_else(wrong)?;
        Ok(Cell {
            data: Data::from_str(data, false).map_err(|_| wrong())?,
            writes: writes.strip_suffix(" MB/s").unwrap_or(writes).parse()?,
            short: short
                .strip_suffix(" short")
                .and_then(|short| Short::from_str(short, false).ok())
                .ok_or_else(wrong)?,
            read_share: percent / 100.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_they_are_written() {
        let cell = Cell {
            data: Data::Json,
            writes: WriteRate::Of(10.0),
            short: Short::Cpu,
            read_share: 0.95,
        };
        assert_eq!(cell.to_string(), "json, 10 MB/s, cpu short, 95 % reads");
        let others = [
            Cell { writes: WriteRate::Unlimited, read_share: 0.0, ..cell },
            Cell { short: Short::Storage, writes: WriteRate::Of(2.5), read_share: 1.0, ..cell },
            Cell { data: Data::Random, read_share: 0.125, ..cell },
        ];
        for cell in others.into_iter().chain([cell]) {
            assert_eq!(cell.to_string().parse(), Ok(cell));
        }
        for wrong in ["", "100-1000 B, 20 % random", "json, 10 MB/s, rum short, 5 % reads"] {
            assert!(wrong.parse::<Cell>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn size_counts_unless_cpu_is_short_and_writes_have_no_rate() {
        let counts = |text: &str| text.parse::<Cell>().unwrap().size_counts();
        assert!(!counts("json, unlimited, cpu short, 0 % reads"));
        assert!(counts("json, 10 MB/s, cpu short, 0 % reads"));
        assert!(counts("json, unlimited, storage short, 0 % reads"));
    }

    #[test]
    fn rates_are_named_when_they_are_none() {
        assert_eq!("unlimited".parse(), Ok(WriteRate::Unlimited));
        assert_eq!("2.5".parse(), Ok(WriteRate::Of(2.5)));
        for wrong in ["fast", "0", "-1"] {
            assert!(wrong.parse::<WriteRate>().unwrap_err().contains(wrong));
        }
    }
}
