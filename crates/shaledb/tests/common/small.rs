//! Settings of a small database.

use shaledb::{Config, TreeConfig};

/// Memtables, tables and values of their own are small, so that there are files of each kind.
pub fn small() -> Config {
    Config {
        memory_bytes: 16 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        tree: TreeConfig { blob_bytes: 4096, ..TreeConfig::default() },
        ..Config::default()
    }
}
