//! By what codecs are chosen where that is left to the engine, as statistics say it.

use crate::compaction::policy::auto::{Price, Short};
use crate::db::core::{Learned, TreeDictionary};
use serde::Serialize;
use std::fmt;

/// What the engine goes by when it chooses codecs ([`Codec::Auto`](crate::Codec::Auto)): averages
/// of the last seconds, as of the last choice. Zeros before the first.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let codecs: shaledb::CodecStats = db.stats().codecs;
/// assert_eq!(codecs.short, "nothing is short");
/// println!("{codecs}");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CodecStats {
    /// What is short, in words.
    pub short: &'static str,
    /// Nanoseconds of CPU that a byte not written is worth, beside the time that it would take.
    pub byte_worth_ns: f64,
    /// Background threads that were at work.
    pub background_busy: f64,
    /// How many of those waited for storage.
    pub background_waiting: f64,
    /// Cores that users' calls used.
    pub users_cpu: f64,
    /// How many times its CPU time work took, waits for storage not counted: above 1, threads
    /// share cores.
    pub cpu_shared: f64,
    /// Nanoseconds that background work took to write a byte to a table and to read one.
    pub storage_ns: f64,
    /// Nanoseconds of CPU in that.
    pub storage_cpu_ns: f64,
    /// The share of the time for which writers were slowed.
    pub slowed: f64,
}

impl CodecStats {
    pub(super) fn of(price: &Price) -> CodecStats {
        let window = &price.window;
        CodecStats {
            short: match price.short {
                Short::Nothing => "nothing is short",
                Short::CpuForWrites => "CPU is short for writes",
                Short::Cpu => "CPU is short",
                Short::Storage => "storage is short",
            },
            byte_worth_ns: price.worth,
            background_busy: window.busy,
            background_waiting: window.waiting,
            users_cpu: window.users_cpu,
            cpu_shared: window.dilation,
            storage_ns: window.storage_nanos,
            storage_cpu_ns: window.storage_cpu_nanos,
            slowed: window.slowed,
        }
    }
}

impl fmt::Display for CodecStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; a byte less is worth {:.1} ns (busy in the background {:.2} threads, of which \
             {:.2} wait for storage; with users' calls {:.2} cores; work takes {:.2} of its CPU \
             time; a byte takes {:.2} ns to write and read, {:.2} of it CPU; writers slowed \
             {:.1} % of the time)",
            self.short,
            self.byte_worth_ns,
            self.background_busy,
            self.background_waiting,
            self.users_cpu,
            self.cpu_shared,
            self.storage_ns,
            self.storage_cpu_ns,
            100.0 * self.slowed,
        )
    }
}

/// The compression dictionary of a tree's tables to come.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let tree = db.tree_or_create("t")?;
/// for n in 0..20_000u32 {
///     let hash = n.wrapping_mul(0x9e3779b9);
///     let value = format!(r#"{{"id":{n},"hash":{hash},"state":"shipped"}}"#);
///     tree.put(format!("order/{n:08}").as_bytes(), value.as_bytes())?;
/// }
/// db.compact()?;
/// let dictionary: Option<shaledb::DictionaryStats> = db.stats().trees[0].dictionary.clone();
/// println!("{}", dictionary.map_or("none pays".to_owned(), |dictionary| dictionary.to_string()));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DictionaryStats {
    /// Its length; each table that uses it has a copy. 0 if it is in tables only for now.
    pub bytes: u64,
    /// How much smaller it makes blocks that it was not made of, its own bytes counted, in percent;
    /// `None` if that was not looked at since the database was opened.
    pub saves_percent: Option<f64>,
    /// How often the tree has got another one, since the database was opened.
    pub changes: u64,
}

impl DictionaryStats {
    pub(super) fn of(learned: &Learned) -> Option<DictionaryStats> {
        let TreeDictionary::With { held, .. } = learned.dictionary() else { return None };
        let bytes = held.upgrade().map_or(0, |dictionary| dictionary.bytes().len() as u64);
        let (saves_percent, changes) = learned.dictionary_saves();
        Some(DictionaryStats { bytes, saves_percent, changes })
    }
}

impl fmt::Display for DictionaryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} KiB", self.bytes as f64 / 1024.0)?;
        if let Some(percent) = self.saves_percent {
            write!(f, ", makes blocks {percent:.1} % smaller")?;
        }
        write!(f, ", changed {} times", self.changes)
    }
}
