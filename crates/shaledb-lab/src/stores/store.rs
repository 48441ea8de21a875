//! What the driver of a step needs of every system under test, a library in this process or a
//! server. Each workload has a trait for the operations that it needs besides.

use crate::stores::engine::{Metrics, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where an engine works, and so what is measured of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// In this process, as a library. The CPU of the client is subtracted.
    Here,
    /// In these processes, by their ids, without this one: a server.
    Processes(Vec<u32>),
    /// Where nothing can be measured: a server at a given address.
    Elsewhere,
}

/// An open store. Every call fails with the store's error.
pub trait Store: Send + Sync + Sized {
    /// The engine's name, as on the command line.
    fn name(&self) -> String;

    /// Its version.
    fn version(&self) -> String;

    /// Its whole configuration as name and value, in its own words.
    fn configuration(&self) -> Vec<(String, String)>;

    /// The folder of its files, whose size and device are measured. `None` for a server at a given
    /// address.
    fn folder(&self) -> Option<PathBuf>;

    /// Whose CPU, I/O and memory are the engine's.
    fn host(&self) -> Host {
        Host::Here
    }

    /// What a reader must know about the last step, for the notes of the row.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Figures of this kind of store alone, for the row.
    fn extra(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    /// Flushes everything and waits until no flush and no compaction is due.
    fn wait_idle(&self) -> Result<()>;

    /// What the engine counted so far. Asked for once a second during a step.
    fn metrics(&self) -> Result<Metrics>;

    /// Closes it; everything that was written is there at the next open.
    fn close(self) -> Result<()>;
}
