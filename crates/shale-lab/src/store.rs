//! What every system under test gives the driver of a step, be it a library in this process or a
//! server beside it. Each workload adds the operations that it needs as a trait of its own.

use crate::engine::{Metrics, Result};

/// An open store.
pub trait Store: Send + Sync + Sized {
    /// The engine's name, as on the command line.
    fn name(&self) -> String;

    /// Its version.
    fn version(&self) -> String;

    /// Its whole configuration as name and value, in its own words.
    fn configuration(&self) -> Vec<(String, String)>;

    /// The processes, this one not among them, whose CPU, I/O and memory are the engine's. Empty for
    /// a library: then this process is measured, and the client's own share told apart.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Flushes everything and waits until the engine has nothing more to do.
    fn settle(&self) -> Result<()>;

    /// What the engine counted so far.
    fn metrics(&self) -> Result<Metrics>;

    /// Closes it; everything that was written is there at the next open.
    fn close(self) -> Result<()>;
}
