//! How a tree is built from live data.

use super::entry::UniqueRow;
use std::time::Duration;

/// How a tree is built.
///
/// ```
/// let options = shaledb::BuildOptions { memory_bytes: 16 << 20, ..Default::default() };
/// assert_eq!(options.writers_wait.as_secs(), 50);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BuildOptions {
    /// What sorting may take in memory, in bytes; one entry more if it is larger. What is beyond
    /// goes to files in the database's directory. 0: entries come in the order of their keys, so
    /// nothing is to be sorted; each is written at once (not of unique builds). Default 64 MiB.
    pub memory_bytes: u64,
    /// How long the begin may wait for transactions that have written to the source, and the end
    /// of a unique build for prepared ones. Default 50 s.
    pub writers_wait: Duration,
    /// Set if no two rows may have the same key: how an entry tells its row. Default `None`.
    pub unique: Option<UniqueRow>,
}

impl Default for BuildOptions {
    fn default() -> BuildOptions {
        BuildOptions { memory_bytes: 64 << 20, writers_wait: Duration::from_secs(50), unique: None }
    }
}
