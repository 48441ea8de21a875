//! What every system under test gives the driver of a step, be it a library in this process or a
//! server beside it. Each workload adds the operations that it needs as a trait of its own.

use crate::stores::engine::{Metrics, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where an engine works, and so what is measured of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// In this process, as a library: the client's own share is told apart.
    Here,
    /// In these processes, this one not among them: a server.
    Processes(Vec<u32>),
    /// Where it cannot be measured: a server at an address that was given.
    Elsewhere,
}

/// An open store.
pub trait Store: Send + Sync + Sized {
    /// The engine's name, as on the command line.
    fn name(&self) -> String;

    /// Its version.
    fn version(&self) -> String;

    /// Its whole configuration as name and value, in its own words.
    fn configuration(&self) -> Vec<(String, String)>;

    /// Where its files are: their size and their device are measured. `None` if they are elsewhere,
    /// as those of a server at a given address.
    fn folder(&self) -> Option<PathBuf>;

    /// Whose CPU, I/O and memory are the engine's.
    fn host(&self) -> Host {
        Host::Here
    }

    /// What a reader must know of the step that was just done, for the row's notes.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Figures of this kind of store alone, for the row.
    fn extra(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    /// Flushes everything and waits until the engine has nothing more to do.
    fn wait_idle(&self) -> Result<()>;

    /// What the engine counted so far. Asked for once a second during a step.
    fn metrics(&self) -> Result<Metrics>;

    /// Closes it; everything that was written is there at the next open.
    fn close(self) -> Result<()>;
}
