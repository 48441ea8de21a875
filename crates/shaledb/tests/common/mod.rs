//! A small database on a disk in memory, and its files.

mod small;

use shaledb::fs::mem::MemFs;
use shaledb::{Background, Config, Db, Env, OpenOptions, TreeConfig};
use small::small;
use std::sync::Arc;

/// Memtables, tables and blobs are small, so that there are some of each.
pub fn open_on(fs: &MemFs) -> shaledb::Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), ..Env::memory() };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let tree = TreeConfig { block_bytes: 1024, ..small().tree };
    let config = Config { tree, ..small() };
    Db::open_in("/db", config, options)
}

/// The files whose names end so.
pub fn files(fs: &MemFs, end: &str) -> usize {
    fs.files().iter().filter(|(path, _)| path.to_string_lossy().ends_with(end)).count()
}
