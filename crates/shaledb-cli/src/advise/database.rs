//! Which engine's database a folder is, and how its rows are read.

use super::shale_tree::ShaleTree;
use crate::args::ReadFlags;
use crate::exit::{Exit, Failure, Outcome};
use crate::open;
use shaledb_lab::browse::{Browse, Driven};
use shaledb_lab::campaign;
use std::io::Read;
use std::path::Path;

const ROCKSDB: &str = "rocksdb";
/// What RocksDB's CURRENT begins with. Shale's begins with `shale`.
const MANIFEST: &[u8] = b"MANIFEST-";

/// Opens a tree of a database, or a column family of RocksDB's; also what messages call it.
pub(super) fn open(path: &Path, tree: &str) -> Outcome<(Box<dyn Browse>, String)> {
    if !is_rocksdb(path) {
        let db = open::reading(&ReadFlags { db: path.to_owned(), memory: None })?;
        let name = format!("{}: the tree {tree}", path.display());
        let tree = db.tree(tree)?;
        return Ok((Box::new(ShaleTree::new(db, tree)), name));
    }
    let driver = campaign::driver(ROCKSDB).map_err(|error| {
        let what = format!(
            "{} is a database of RocksDB, which `shale` reads by its driver: {error}",
            path.display()
        );
        Failure::new(Exit::NoSuch, what)
    })?;
    let name = format!("{}: the column family {tree}", path.display());
    Ok((Box::new(Driven::start(driver, path, tree)?), name))
}

fn is_rocksdb(path: &Path) -> bool {
    let mut begins = Vec::new();
    let read = std::fs::File::open(path.join("CURRENT"))
        .and_then(|file| file.take(MANIFEST.len() as u64).read_to_end(&mut begins));
    read.is_ok() && begins == MANIFEST
}
