//! Exceptions: one class for each thing that a caller can do something about.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(shaledb, Error, PyException, "What the engine fails with.");
create_exception!(shaledb, DiskFull, Error, "No space: the write had no effect; try again later.");
create_exception!(shaledb, SpaceLimit, Error, "The space_limit is reached; deletes go on.");
create_exception!(shaledb, Corruption, Error, "Bytes on disk are not what was written.");
create_exception!(
    shaledb,
    ConfigError,
    Error,
    "A setting is unknown, out of range or contradictory."
);
create_exception!(shaledb, InvalidArgument, Error, "An argument is out of its bounds.");
create_exception!(shaledb, Locked, Error, "The database is open elsewhere.");
create_exception!(shaledb, NoSuchTree, Error, "There is no such tree, or it has been dropped.");
create_exception!(shaledb, TreeExists, Error, "A tree of that name exists.");
create_exception!(shaledb, NoDatabase, Error, "There is no database at the path.");
create_exception!(shaledb, Poisoned, Error, "Writes are unsafe: close and open anew.");
create_exception!(shaledb, ReadOnly, Error, "The database is open for reading only.");
create_exception!(shaledb, Forked, Error, "A fork of the process that opened it cannot write.");
create_exception!(shaledb, Closed, Error, "The database, the batch or the transaction has ended.");
create_exception!(shaledb, Retry, Error, "Roll back and try the transaction again.");
create_exception!(shaledb, Conflict, Retry, "Another transaction changed the same rows.");
create_exception!(shaledb, LockTimeout, Retry, "Lock wait timeout.");
create_exception!(shaledb, Deadlock, Retry, "Deadlock: this transaction was chosen.");

/// The exception for an error of the engine.
pub(crate) fn raise(error: shaledb::Error) -> PyErr {
    use shaledb::Error as E;
    let text = error.to_string();
    match error {
        E::DiskFull { .. } => DiskFull::new_err(text),
        E::SpaceLimit { .. } => SpaceLimit::new_err(text),
        E::Corruption { .. } => Corruption::new_err(text),
        E::Config { .. } => ConfigError::new_err(text),
        E::InvalidArgument(_) => InvalidArgument::new_err(text),
        E::Locked { .. } => Locked::new_err(text),
        E::NoSuchTree(_) => NoSuchTree::new_err(text),
        E::TreeExists(_) => TreeExists::new_err(text),
        E::NoDatabase(_) => NoDatabase::new_err(text),
        E::Poisoned(_) => Poisoned::new_err(text),
        E::ReadOnly => ReadOnly::new_err(text),
        E::Forked { .. } => Forked::new_err(text),
        E::Closed => Closed::new_err(text),
        E::Conflict { .. } => Conflict::new_err(text),
        E::LockTimeout { .. } => LockTimeout::new_err(text),
        E::Deadlock(_) => Deadlock::new_err(text),
        E::RolledBack(_) => Retry::new_err(text),
        _ => Error::new_err(text),
    }
}

/// Runs the engine without the interpreter's lock.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> shaledb::Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(raise)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("DiskFull", py.get_type::<DiskFull>())?;
    module.add("SpaceLimit", py.get_type::<SpaceLimit>())?;
    module.add("Corruption", py.get_type::<Corruption>())?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("InvalidArgument", py.get_type::<InvalidArgument>())?;
    module.add("Locked", py.get_type::<Locked>())?;
    module.add("NoSuchTree", py.get_type::<NoSuchTree>())?;
    module.add("TreeExists", py.get_type::<TreeExists>())?;
    module.add("NoDatabase", py.get_type::<NoDatabase>())?;
    module.add("Poisoned", py.get_type::<Poisoned>())?;
    module.add("ReadOnly", py.get_type::<ReadOnly>())?;
    module.add("Forked", py.get_type::<Forked>())?;
    module.add("Closed", py.get_type::<Closed>())?;
    module.add("Retry", py.get_type::<Retry>())?;
    module.add("Conflict", py.get_type::<Conflict>())?;
    module.add("LockTimeout", py.get_type::<LockTimeout>())?;
    module.add("Deadlock", py.get_type::<Deadlock>())
}
