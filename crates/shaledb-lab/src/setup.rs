//! What all engines of a run are given alike: memory, durability, codecs. An adapter turns this
//! into its engine's own settings, and prints those in full.

use crate::options::CodecNames;
use crate::units::{parse_block_bytes, parse_bytes, setting};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What a commit promises when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Durability {
    /// A commit survives the end of the process: the log is written at each commit, synced later
    Process,
    /// A commit survives a power loss: the log is synced at each commit
    Power,
}

/// A slower device would show nothing but itself.
const DEVICE_BOUND_MIN: u64 = 64 << 10;

/// The size of blocks of engines that do not choose it.
const USUAL_BLOCK_BYTES: u64 = 16 << 10;

/// How many memtables an engine may have at one time, by its adapter.
const MEMTABLES: u64 = 4;

/// What a memtable has of the memory, and the least and the most.
const MEMTABLE_SHARE: u64 = 16;
const MEMTABLE_MIN: u64 = 64 << 10;
const MEMTABLE_MAX: u64 = 64 << 20;

fn device_bound(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes if bytes >= DEVICE_BOUND_MIN => Ok(bytes),
        _ => Err(format!("`{text}` is no bound of a device: it has at least 64K a second")),
    }
}

/// The settings that every engine of a run gets.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// The most memory for cache, memtables, indexes and filters together (K, M, G: powers of 1024)
    #[arg(long, default_value = "1280M", value_parser = parse_bytes)]
    pub memory: u64,

    /// The size of a memtable; the memory has to have room for four [default: a sixteenth of
    /// --memory, at most 64M]
    #[arg(
        long,
        default_value = "0",
        hide_default_value = true,
        value_parser = parse_bytes
    )]
    pub memtable: u64,

    /// One codec, or three: upper levels, middle, bottommost. Engines with one codec take the last.
    /// `auto` is the engine's own choice; one that makes none gets none,lz4,zstd:3
    #[arg(long, default_value = "auto")]
    pub codecs: CodecNames,

    /// No compression dictionaries, for engines that make them by themselves
    #[arg(long)]
    #[serde(default)]
    pub no_dictionary: bool,

    /// Filter bits per key, for engines that have filters
    #[arg(long, default_value_t = 10)]
    pub filter_bits: u8,

    /// The size of a data block before compression, for engines that can set it. `auto` is the
    /// engine's own choice; one that makes none gets 16K
    #[arg(long, default_value = "auto", value_parser = parse_block_bytes)]
    pub block_bytes: u64,

    /// Threads for flush and compaction
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub background_threads: u32,

    /// The most that the files of the database may take together, for shale
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    #[serde(default)]
    pub space_limit: Option<u64>,

    /// Threads of another process that burn CPU beside each step
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(..=256)
    )]
    #[serde(default)]
    pub busy_threads: u32,

    /// The most bytes a second that the engine's files are read and written with, for engines that
    /// can be bounded: shale and rocksdb
    #[arg(long, value_name = "BYTES", value_parser = device_bound)]
    #[serde(default)]
    pub device_bound: Option<u64>,

    /// What a commit promises when it returns
    #[arg(long, value_enum, default_value = "process")]
    pub durability: Durability,

    /// The address of a running server to measure, instead of starting one: `SOCKET` or
    /// `HOST:PORT`, with `USER@` before it if the user is not root. The server keeps its settings.
    /// Its processes are not measured. Its database `shaledb_lab` is dropped and created again. The
    /// password is in MYSQL_PWD
    #[arg(long)]
    #[serde(default)]
    pub address: Option<String>,
}

impl Setup {
    /// As an engine of this name gets it: for one that does not choose codecs or the size of blocks
    /// itself, `auto` is a usual mix, and a usual size.
    #[must_use]
    pub fn of_engine(&self, engine: &str) -> Setup {
        let codecs = if engine.starts_with("shale") {
            self.codecs.clone()
        } else {
            self.codecs.without_auto()
        };
        let block_bytes = match self.block_bytes {
            0 if engine != "shale" => USUAL_BLOCK_BYTES,
            bytes => bytes,
        };
        Setup { codecs, block_bytes, ..self.clone() }
    }

    /// With what was left open: a memtable is as large as Shale makes it by itself.
    #[must_use]
    pub fn resolved(&self) -> Setup {
        let memtable = match self.memtable {
            0 => (self.memory / MEMTABLE_SHARE).clamp(MEMTABLE_MIN, MEMTABLE_MAX),
            bytes => bytes,
        };
        Setup { memtable, ..self.clone() }
    }

    /// The one codec that Shale's tables in a server get; `None` if the setup has other ones, or
    /// different ones for different levels.
    pub fn sql_codec(&self) -> Option<&str> {
        let CodecNames { upper, middle, bottommost } = &self.codecs;
        let is_known = match bottommost.split_once(':') {
            None => ["auto", "none", "lz4"].contains(&bottommost.as_str()),
            Some((_, level)) => !level.starts_with('-'),
        };
        (is_known && upper == bottommost && middle == bottommost).then_some(bottommost)
    }

    /// Whether the codecs of this setup make no difference to an engine.
    pub fn codecs_are_ignored(&self, engine: &str) -> bool {
        match engine {
            "lmdb" | "sqlite" | "innodb" => true,
            "innodb-compressed" | "innodb-punch" => !self.codecs.bottommost.starts_with("zlib"),
            "shale-sql" => self.sql_codec().is_none(),
            _ => false,
        }
    }

    /// The flags that were given and make no difference to an engine. What has its default value
    /// counts as not given.
    pub fn ignored(&self, engine: &str) -> Vec<&'static str> {
        let usual = Setup { memory: self.memory, ..Setup::default() }.resolved();
        let own = Setup::default().of_engine(engine);
        let is_server = engine.starts_with("innodb") || engine == "shale-sql";
        let has_blocks = !is_server && !["lmdb", "sqlite"].contains(&engine);
        let given = [
            ("--codecs", self.codecs != own.codecs && self.codecs_are_ignored(engine)),
            (
                "--memtable",
                self.resolved().memtable != usual.memtable && (is_server || engine == "lmdb"),
            ),
            (
                "--filter-bits",
                self.filter_bits != usual.filter_bits && (!has_blocks || engine == "wiredtiger"),
            ),
            ("--block-bytes", self.block_bytes != own.block_bytes && !has_blocks),
            (
                "--background-threads",
                self.background_threads != usual.background_threads && !has_blocks,
            ),
            ("--no-dictionary", self.no_dictionary && engine == "shale-sql"),
            ("--space-limit", self.space_limit.is_some() && !engine.starts_with("shale")),
        ];
        given.into_iter().filter(|(_, is)| *is && engine != "null").map(|(flag, _)| flag).collect()
    }

    /// Checks that the settings fit together.
    ///
    /// # Errors
    ///
    /// The memtables would be more than the memory: most engines would then have no cache, and
    /// would not keep to the memory either.
    pub fn check(&self) -> Result<(), String> {
        let memtables = MEMTABLES.saturating_mul(self.memtable);
        if memtables <= self.memory {
            return Ok(());
        }
        Err(format!(
            "--memtable: {MEMTABLES} memtables of {} are more than the memory of {}. Say \
             --memtable {} or less, or more --memory",
            setting(self.memtable),
            setting(self.memory),
            self.memory / MEMTABLES
        ))
    }
}

impl Default for Setup {
    fn default() -> Setup {
        let auto = || "auto".to_owned();
        Setup {
            memory: 1280 << 20,
            memtable: 0,
            codecs: CodecNames { upper: auto(), middle: auto(), bottommost: auto() },
            no_dictionary: false,
            filter_bits: 10,
            block_bytes: 0,
            background_threads: 2,
            space_limit: None,
            busy_threads: 0,
            device_bound: None,
            durability: Durability::Process,
            address: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        setup: Setup,
    }

    #[test]
    fn engines_that_choose_no_codec_get_a_mix() {
        let of = |engine: &str| Setup::default().of_engine(engine).codecs.to_string();
        assert_eq!([of("shale"), of("shale-sql")], ["auto", "auto"]);
        assert_eq!(of("rocksdb"), "none,lz4,zstd:3");
        let blocks = |engine: &str| Setup::default().of_engine(engine).block_bytes;
        assert_eq!([blocks("shale"), blocks("rocksdb")], [0, 16 << 10]);
    }

    #[test]
    fn the_default_is_that_of_the_command_line() {
        let parsed = Command::parse_from(["x"]).setup;
        let (a, b) = (serde_json::to_value(parsed), serde_json::to_value(Setup::default()));
        assert_eq!(a.unwrap(), b.unwrap());
    }

    #[test]
    fn memtables_follow_the_memory_or_are_refused() {
        let parse =
            |flags: &[&str]| Command::parse_from(["x"].iter().chain(flags.iter())).setup.resolved();
        for (memory, memtable) in [("2G", 64 << 20), ("64M", 4 << 20), ("8M", 512 << 10)] {
            let setup = parse(&["--memory", memory]);
            assert_eq!(setup.memtable, memtable, "{memory}");
            setup.check().unwrap();
        }
        let asked = ["--memory", "64M", "--memtable", "16M"];
        assert_eq!(parse(&asked).memtable, 16 << 20);
        parse(&asked).check().unwrap();
        let why = parse(&["--memory", "64M", "--memtable", "17M"]).check().unwrap_err();
        assert!(why.starts_with("--memtable") && why.contains("--memory"), "{why}");
        assert!(parse(&["--memtable", "9000000T"]).check().is_err());
    }

    #[test]
    fn what_an_engine_does_not_take_is_named() {
        let of = |flags: &[&str], engine: &str| {
            let setup = Command::parse_from(["x"].iter().chain(flags)).setup;
            setup.of_engine(engine).ignored(engine)
        };
        for (engine, _) in crate::campaign::ENGINES {
            assert!(of(&[], engine).is_empty(), "{engine}");
        }
        let all = [
            "--memtable",
            "1M",
            "--filter-bits",
            "4",
            "--block-bytes",
            "4K",
            "--codecs",
            "none,lz4,zstd:3",
            "--background-threads",
            "5",
            "--no-dictionary",
            "--space-limit",
            "9G",
        ];
        let flags = [
            "--codecs",
            "--memtable",
            "--filter-bits",
            "--block-bytes",
            "--background-threads",
            "--no-dictionary",
        ];
        assert_eq!(of(&all, "shale-sql"), flags);
        assert!(of(&all, "shale").is_empty());
        assert_eq!(of(&all, "rocksdb"), ["--space-limit"]);
        assert_eq!(of(&["--codecs", "zlib:1"], "innodb-punch"), [""; 0]);
        assert_eq!(of(&["--codecs", "lz4"], "innodb-punch"), ["--codecs"]);
        for (codecs, known) in [("lz4", true), ("zstd:3", true), ("zstd:-1", false)] {
            assert_eq!(of(&["--codecs", codecs], "shale-sql").is_empty(), known, "{codecs}");
        }
    }

    #[test]
    fn a_bound_is_a_size_of_some_account() {
        let parse = |text| Command::try_parse_from(["x", "--device-bound", text]);
        assert_eq!(parse("60M").unwrap().setup.device_bound, Some(60 << 20));
        for wrong in ["0", "1K", "fast"] {
            let why = parse(wrong).err().unwrap().to_string();
            assert!(why.contains("--device-bound"), "{why}");
        }
    }

    #[test]
    fn plans_from_before_there_were_bounds_are_read() {
        let mut old = serde_json::to_value(Setup::default()).unwrap();
        let fields = old.as_object_mut().unwrap();
        fields.remove("busy_threads");
        fields.remove("device_bound");
        let setup: Setup = serde_json::from_value(old).unwrap();
        assert_eq!((setup.busy_threads, setup.device_bound), (0, None));
    }
}
