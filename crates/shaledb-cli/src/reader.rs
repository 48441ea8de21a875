//! Opening a database for reading, whoever else has it open.

use shaledb::{Config, Db, Error, Result};
use std::path::Path;

/// Opens for reading, and tells whether that is beside a writer.
pub(crate) fn open(path: &Path, config: Config) -> Result<(Db, bool)> {
    let config = Config { create: false, ..config };
    match Db::open_read_only(path, config.clone()) {
        Err(Error::Locked { .. }) => Ok((Db::open_follower(path, config)?, true)),
        other => Ok((other?, false)),
    }
}
