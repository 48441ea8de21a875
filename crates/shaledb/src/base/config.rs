//! Settings: plain data, few, each with a measured default. [`Config::validate`] refuses what is
//! contradictory; everything that can be computed or found out on the machine is not a setting.

use super::error::{Error, Result};
use serde::de::{self, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many levels a tree has, level 0 included.
pub const LEVELS: usize = 7;

/// How the blocks of one level are compressed. A block that does not shrink by an eighth is stored
/// plain. As text, and with serde, a codec is `auto`, `none`, `lz4`, `zlib:6` or `zstd:3`.
///
/// ```
/// use shaledb::Codec;
///
/// assert_eq!("auto".parse::<Codec>()?, Codec::Auto);
/// assert_eq!("zstd:3".parse::<Codec>()?, Codec::Zstd(3));
/// assert_eq!(Codec::Lz4.to_string(), "lz4");
/// assert!("zstd:99".parse::<Codec>().is_err());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// The engine chooses none, lz4 or zstd with one of its levels, by what it measures: what each
    /// saves of this tree's data and costs on this machine, how much there is to do, and whether
    /// CPU or storage is short. [`Stats`](crate::Stats) tells what it has chosen, and why.
    Auto,
    /// Stored as they are.
    None,
    /// LZ4: the cheapest to read and write.
    Lz4,
    /// zlib at a level from 1 (fast) to 9 (small). For data that must be zlib; zstd decompresses
    /// faster.
    Zlib(u8),
    /// zstd at a level from -5 (fast) to 19 (small), but not 0.
    Zstd(i8),
}

impl Codec {
    /// Its number and its level. Part of the persistent format: never renumber.
    pub(crate) fn encode(self) -> [u8; 2] {
        match self {
            Codec::None => [0, 0],
            Codec::Lz4 => [1, 0],
            Codec::Zlib(level) => [2, level],
            Codec::Zstd(level) => [3, level as u8],
            Codec::Auto => [4, 0],
        }
    }

    /// What [`Codec::encode`] made; its level is not checked.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Codec> {
        match *bytes {
            [0, 0] => Some(Codec::None),
            [1, 0] => Some(Codec::Lz4),
            [2, level] => Some(Codec::Zlib(level)),
            [3, level] => Some(Codec::Zstd(level as i8)),
            [4, 0] => Some(Codec::Auto),
            _ => None,
        }
    }

    /// Checks that the level is in the codec's range.
    ///
    /// # Errors
    /// [`Error::Config`] that names the range.
    ///
    /// ```
    /// use shaledb::Codec;
    ///
    /// assert!(Codec::Zlib(6).validate().is_ok());
    /// assert!(Codec::Zlib(10).validate().is_err());
    /// ```
    pub fn validate(self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Config { setting: "codecs", what: what.to_owned() });
        match self {
            Codec::Zlib(level) if !(1..=9).contains(&level) => wrong("a zlib level is from 1 to 9"),
            Codec::Zstd(level) if !(-5..=19).contains(&level) || level == 0 => {
                wrong("a zstd level is from -5 to -1 or 1 to 19")
            }
            _ => Ok(()),
        }
    }
}

impl std::fmt::Display for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Codec::Auto => f.write_str("auto"),
            Codec::None => f.write_str("none"),
            Codec::Lz4 => f.write_str("lz4"),
            Codec::Zlib(level) => write!(f, "zlib:{level}"),
            Codec::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl std::str::FromStr for Codec {
    type Err = Error;

    /// Reads `auto`, `none`, `lz4`, `zlib:6` or `zstd:3`; without a level `zlib` is `zlib:6` and
    /// `zstd` is `zstd:3`.
    fn from_str(text: &str) -> Result<Codec> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let wrong = || Error::Config {
            setting: "codecs",
            what: format!(
                "`{text}` is none of auto, none, lz4, zlib:1 to zlib:9, zstd:-5 to zstd:19"
            ),
        };
        let codec = match (name, level) {
            ("auto", None) => Codec::Auto,
            ("none", None) => Codec::None,
            ("lz4", None) => Codec::Lz4,
            ("zlib", None) => Codec::Zlib(6),
            ("zstd", None) => Codec::Zstd(3),
            ("zlib", Some(level)) => Codec::Zlib(level.parse().map_err(|_| wrong())?),
            ("zstd", Some(level)) => Codec::Zstd(level.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        };
        codec.validate()?;
        Ok(codec)
    }
}

impl Serialize for Codec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Codec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Codec, D::Error> {
        deserializer.deserialize_any(CodecVisitor)
    }
}

/// Reads a codec's text, or what was written before there was one: `{"zstd":3}`.
struct CodecVisitor;

impl<'de> Visitor<'de> for CodecVisitor {
    type Value = Codec;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a codec, such as auto, none, lz4, zlib:6 or zstd:3")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Codec, E> {
        // Which setting it is, is said by who reads it.
        text.parse().map_err(|error| match error {
            Error::Config { what, .. } => E::custom(what),
            other => E::custom(other),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Codec, A::Error> {
        let named = map.next_entry::<String, i64>()?;
        let (Some((name, level)), None) = (named, map.next_key::<String>()?) else {
            return Err(de::Error::invalid_type(Unexpected::Map, &self));
        };
        self.visit_str(&format!("{name}:{level}"))
    }
}

/// Which codec each level of a tree uses.
///
/// Levels are counted by their distance from the top as data moves: `upper` serves level 0 and the
/// two levels below it that are in use, `bottommost` the last level, `middle` those between.
///
/// ```
/// use shaledb::{Codec, Codecs, TreeConfig};
///
/// let smaller = Codecs { bottommost: Codec::Zstd(9), ..Codecs::default() };
/// let config = TreeConfig { codecs: smaller, ..TreeConfig::default() };
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Codecs {
    /// For level 0 and the next two levels in use, unless one of them is the last.
    pub upper: Codec,
    /// For levels between the upper ones and the last.
    pub middle: Codec,
    /// For the last level, which holds about nine tenths of the data.
    pub bottommost: Codec,
}

impl Codecs {
    /// The same codec everywhere.
    ///
    /// ```
    /// use shaledb::{Codec, Codecs};
    ///
    /// let codecs = Codecs::all(Codec::Lz4);
    /// assert!([codecs.upper, codecs.middle, codecs.bottommost].iter().all(|c| *c == Codec::Lz4));
    /// ```
    pub fn all(codec: Codec) -> Codecs {
        Codecs { upper: codec, middle: codec, bottommost: codec }
    }

    /// Whether any of them is left to the engine.
    pub(crate) fn has_auto(&self) -> bool {
        [self.upper, self.middle, self.bottommost].contains(&Codec::Auto)
    }
}

impl Default for Codecs {
    /// The engine chooses, everywhere.
    fn default() -> Codecs {
        Codecs::all(Codec::Auto)
    }
}

/// The settings of one tree, fixed when it is created and kept with it.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// use shaledb::{Codec, Codecs, TreeConfig};
///
/// // Read one by one, at random: small blocks that are cheap to decompress.
/// let config = TreeConfig {
///     block_bytes: 4096,
///     codecs: Codecs::all(Codec::Lz4),
///     ..TreeConfig::default()
/// };
/// let tree = db.create_tree("sessions", config.clone())?;
/// assert_eq!(tree.config(), &config);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TreeConfig {
    /// The codec of each level. See [`Codecs::default`].
    pub codecs: Codecs,
    /// Whether blocks whose codec is zstd may be compressed with a dictionary of the tree's data.
    /// Default true: the engine makes one, renews it and leaves it out by what it saves of blocks
    /// that it was not made of; it must be at least 5 %, or 3 % where
    /// the engine chooses small blocks for it.
    pub dictionary: bool,
    /// The size of a data block before compression, in bytes: 1 KiB to 1 MiB; or 0, the default:
    /// the engine chooses 4, 8 or 16 KiB for each level, by what each does to the data and by what
    /// is read, or by the codec while nothing is read, and 16 KiB near the limit on space. Smaller
    /// blocks make random reads cheaper and the data larger.
    pub block_bytes: u32,
    /// Filter bits per key in the last level, 0 (no filters) to 20, default 10; smaller levels
    /// get more, since their filters cost little and spare the most reads.
    pub filter_bits: u8,
    /// Values of at least this many bytes are kept in blob files of their own and are not
    /// rewritten by compaction: 4 KiB to 1 GiB, default 1 MiB.
    pub blob_bytes: u32,
}

impl Default for TreeConfig {
    fn default() -> TreeConfig {
        TreeConfig {
            codecs: Codecs::default(),
            dictionary: true,
            block_bytes: 0,
            filter_bits: 10,
            blob_bytes: 1024 * 1024,
        }
    }
}

impl TreeConfig {
    /// Refuses values out of range; [`Db::create_tree`](crate::Db::create_tree) does it too.
    ///
    /// # Errors
    /// [`Error::Config`] that names the setting and its range.
    ///
    /// ```
    /// use shaledb::TreeConfig;
    ///
    /// let config = TreeConfig { block_bytes: 100, ..TreeConfig::default() };
    /// assert!(config.validate().unwrap_err().to_string().contains("`block_bytes`"));
    /// ```
    pub fn validate(&self) -> Result<()> {
        self.codecs.upper.validate()?;
        self.codecs.middle.validate()?;
        self.codecs.bottommost.validate()?;
        if self.block_bytes != 0 {
            check("block_bytes", self.block_bytes.into(), 1024, 1 << 20)?;
        }
        check("filter_bits", self.filter_bits.into(), 0, 20)?;
        check("blob_bytes", self.blob_bytes.into(), 4096, 1 << 30)
    }
}

/// How commits that do not ask for a sync become durable.
///
/// ```
/// use shaledb::{Config, SyncPolicy};
///
/// // After a crash of the machine at most about the last 100 ms of commits are lost.
/// let config = Config { sync: SyncPolicy::EveryMillis(100), ..Config::default() };
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPolicy {
    /// Only when a commit asks ([`WriteOptions::SYNC`](crate::WriteOptions::SYNC)) or
    /// [`Db::sync`](crate::Db::sync) is called. After a crash of the machine, what survives is a
    /// prefix of the commit order; a crash of the process loses nothing. The default.
    OnRequest,
    /// As `OnRequest`, and every so many milliseconds (1 to 60,000) by a background thread.
    EveryMillis(u32),
    /// With every commit, before it returns: one sync for each group of commits of threads that
    /// commit at the same time.
    Always,
}

/// The settings of a database, given at every open; none of them is kept on disk. With serde they
/// can be read from a file: what is left out has its default, an unknown name is refused.
///
/// ```
/// use shaledb::{Config, Env, OpenOptions, SyncPolicy};
///
/// let config = Config {
///     memory_bytes: 256 << 20,
///     sync: SyncPolicy::Always,
///     ..Config::default()
/// };
/// # let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
/// # let path = "/db";
/// let db = shaledb::Db::open_in(path, config, options)?;
/// assert_eq!(db.stats().memory_bytes, 256 << 20);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The bound on block cache, memtables, indexes and filters together, in bytes: 8 MiB to
    /// 64 TiB; 0 (the default) takes a quarter of the machine's (or its cgroup's) memory, but at
    /// least 64 MiB. It is taken as it is used.
    pub memory_bytes: u64,
    /// The memory of a memtable, in bytes, which is sealed and flushed when it is used: 64 KiB to
    /// 1 GiB and at most a quarter of `memory_bytes`; 0 (the default) takes a sixteenth of that, at
    /// most 64 MiB.
    pub memtable_bytes: u64,
    /// The aim for the size of a table file, in bytes: 64 KiB to 1 GiB, default 64 MiB.
    pub table_bytes: u64,
    /// Background threads for flush and compaction, 1 to 64; 0 (the default) takes one per core,
    /// at least 2 and at most 8.
    pub background_threads: u32,
    /// What all files of the database's directory may take together, in bytes: tables, log, and
    /// what compactions and transactions write meanwhile; 0 (the default) for no limit, else at
    /// least 2 MiB and 32 times `memtable_bytes`. Near it compactions make room first, then writers
    /// are slowed, then puts fail with [`Error::SpaceLimit`]; reads and deletes go on. Under a
    /// limit memtables (unless they are set) and tables are smaller: at most a 128th and a 256th
    /// of it. See [`Db::set_space_limit`](crate::Db::set_space_limit).
    pub space_limit: u64,
    /// When commits that do not ask for a sync become durable. Default
    /// [`SyncPolicy::OnRequest`].
    pub sync: SyncPolicy,
    /// Create the database if there is none. Default true; otherwise opening what does not exist
    /// is [`Error::NoDatabase`].
    pub create: bool,
    /// The settings of trees created without settings of their own, by
    /// [`Db::tree_or_create`](crate::Db::tree_or_create).
    pub tree: TreeConfig,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memory_bytes: 0,
            memtable_bytes: 0,
            table_bytes: 64 << 20,
            background_threads: 0,
            space_limit: 0,
            sync: SyncPolicy::OnRequest,
            create: true,
            tree: TreeConfig::default(),
        }
    }
}

impl Config {
    /// Refuses values that are out of range or contradict each other; opening does it too.
    ///
    /// # Errors
    /// [`Error::Config`] that names the setting and what would be right.
    ///
    /// ```
    /// use shaledb::Config;
    ///
    /// assert!(Config::default().validate().is_ok());
    /// let config = Config { memory_bytes: 1000, ..Config::default() };
    /// assert!(config.validate().unwrap_err().to_string().contains("`memory_bytes`"));
    /// ```
    pub fn validate(&self) -> Result<()> {
        if self.memory_bytes != 0 {
            check("memory_bytes", self.memory_bytes, 8 << 20, 1 << 46)?;
        }
        if self.memtable_bytes != 0 {
            check("memtable_bytes", self.memtable_bytes, 64 << 10, 1 << 30)?;
            if self.memory_bytes != 0 && self.memtable_bytes > self.memory_bytes / 4 {
                return Err(Error::Config {
                    setting: "memtable_bytes",
                    what: format!(
                        "{} is more than a quarter of memory_bytes ({}): up to four memtables \
                         exist while flushes run, so lower the one or raise the other",
                        self.memtable_bytes, self.memory_bytes
                    ),
                });
            }
        }
        check("table_bytes", self.table_bytes, 64 << 10, 1 << 30)?;
        check("background_threads", self.background_threads.into(), 0, 64)?;
        if self.space_limit != 0 {
            check("space_limit", self.space_limit, SPACE_LIMIT_MIN, 1 << 60)?;
            check_space_limit(self.space_limit, self.memtable_bytes)?;
        }
        if let SyncPolicy::EveryMillis(millis) = self.sync {
            check("sync", millis.into(), 1, 60_000)?;
        }
        self.tree.validate()
    }
}

/// The smallest limit on space, in bytes, and how many memtables it has room for at least.
const SPACE_LIMIT_MIN: u64 = 2 << 20;
const SPACE_LIMIT_MEMTABLES: u64 = 32;

/// Refuses a limit on space that has no room for memtables of this size.
pub(crate) fn check_space_limit(limit: u64, memtable_bytes: u64) -> Result<()> {
    let least = SPACE_LIMIT_MIN.max(memtable_bytes.saturating_mul(SPACE_LIMIT_MEMTABLES));
    if limit == 0 || limit >= least {
        return Ok(());
    }
    let what = format!(
        "{limit} is too little for memtables of {memtable_bytes} bytes; it is 0 for no limit, or \
         at least {least}: {SPACE_LIMIT_MEMTABLES} times `memtable_bytes`, and {SPACE_LIMIT_MIN}"
    );
    Err(Error::Config { setting: "space_limit", what })
}

fn check(setting: &'static str, value: u64, low: u64, high: u64) -> Result<()> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(Error::Config { setting, what: format!("{value} is not from {low} to {high}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error as ValueError, MapDeserializer};

    #[test]
    fn codecs_read_what_they_print() {
        for text in ["auto", "none", "lz4", "zlib:1", "zlib:9", "zstd:-5", "zstd:19"] {
            assert_eq!(text.parse::<Codec>().unwrap().to_string(), text);
        }
        for text in ["", "auto:1", "lz4:1", "zlib:10", "zstd:20", "zstd:0", "snappy", "zstd:x"] {
            assert!(text.parse::<Codec>().is_err(), "{text}");
        }
    }

    /// What serde reads of a map with such a value.
    fn codecs_of<'a, V>(fields: Vec<(&'a str, V)>) -> std::result::Result<Codecs, String>
    where
        V: IntoDeserializer<'a, ValueError>,
    {
        let map = MapDeserializer::new(fields.into_iter());
        Codecs::deserialize(map).map_err(|error: ValueError| error.to_string())
    }

    /// Serde's formatter writes what is one text, as JSON would have it between quotes.
    struct Written(Codec);

    impl std::fmt::Display for Written {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.serialize(f)
        }
    }

    #[test]
    fn codecs_in_files_are_as_in_words() {
        for (text, codec) in [
            ("auto", Codec::Auto),
            ("zlib", Codec::Zlib(6)),
            ("zstd", Codec::Zstd(3)),
            ("zstd:-5", Codec::Zstd(-5)),
        ] {
            let found = codecs_of(vec![("middle", text)]).unwrap();
            assert_eq!(found, Codecs { middle: codec, ..Codecs::default() }, "the rest is default");
            let again = Written(codec).to_string();
            assert_eq!(codecs_of(vec![("middle", &*again)]), Ok(found));
        }
        assert_eq!(Written(Codec::Zstd(3)).to_string(), "zstd:3");
        // As they were written before.
        let old = |name, level: i64| {
            let map = MapDeserializer::new([(name, level)].into_iter());
            Codec::deserialize(map).map_err(|error: ValueError| error.to_string())
        };
        assert_eq!(old("zstd", -5), Ok(Codec::Zstd(-5)));
        assert_eq!(old("zlib", 9), Ok(Codec::Zlib(9)));
        for (name, level) in [("zstd", 20), ("zstd", 300), ("zlib", 0), ("lz4", 1)] {
            assert!(old(name, level).is_err(), "{name} {level}");
        }
        let none = MapDeserializer::new(Vec::<(&str, i64)>::new().into_iter());
        let error: ValueError = Codec::deserialize(none).unwrap_err();
        assert!(error.to_string().contains("zstd:3"), "{error}");
        assert!(codecs_of(vec![("middle", "gzip")]).unwrap_err().contains("gzip"));
        assert!(codecs_of(vec![("last", "lz4")]).unwrap_err().contains("last"));
        assert!(codecs_of(vec![("middle", 3u32)]).unwrap_err().contains("zstd:3"));
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(Config::default().validate().is_ok());
        let config = Config { memory_bytes: 1 << 20, ..Config::default() };
        assert!(config.validate().is_err());
        let config = Config { memory_bytes: 64 << 20, memtable_bytes: 64 << 20, ..config };
        assert!(config.validate().unwrap_err().to_string().contains("quarter"));
        for (space_limit, memtable_bytes, is_right) in [
            (0, 1 << 30, true),
            (2 << 20, 0, true),
            ((2 << 20) - 1, 0, false),
            (2 << 20, 64 << 10, true),
            (2 << 20, 65 << 10, false),
            ((65 * 32) << 10, 65 << 10, true),
        ] {
            let config = Config { space_limit, memtable_bytes, ..Config::default() };
            let refused = config.validate().err().map(|error| error.to_string());
            assert_eq!(refused.is_none(), is_right, "{space_limit} {memtable_bytes} {refused:?}");
            assert!(refused.is_none_or(|text| text.contains("`space_limit`")));
        }
        let tree = TreeConfig { block_bytes: 7, ..TreeConfig::default() };
        assert!(Config { tree, ..Config::default() }.validate().is_err());
    }
}
