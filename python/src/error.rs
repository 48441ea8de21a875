//! Exceptions: one class for each thing that a caller can do something about.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(shale, Error, PyException, "What the engine fails with.");
create_exception!(shale, DiskFull, Error, "No space: the write had no effect; try again later.");
create_exception!(shale, Corruption, Error, "Bytes on disk are not what was written.");
create_exception!(
    shale,
    ConfigError,
    Error,
    "A setting is unknown, out of range or contradictory."
);
create_exception!(shale, InvalidArgument, Error, "An argument is out of its bounds.");
create_exception!(shale, Locked, Error, "The database is open elsewhere.");
create_exception!(shale, NoSuchTree, Error, "There is no such tree, or it has been dropped.");
create_exception!(shale, TreeExists, Error, "A tree of that name exists.");
create_exception!(shale, NoDatabase, Error, "There is no database at the path.");
create_exception!(shale, Poisoned, Error, "Writes are unsafe: close and open anew.");
create_exception!(shale, ReadOnly, Error, "The database is open for reading only.");
create_exception!(shale, Forked, Error, "A fork of the process that opened it cannot write.");
create_exception!(shale, Closed, Error, "The database, the batch or the transaction has ended.");
create_exception!(shale, Retry, Error, "Roll back and try the transaction again.");
create_exception!(shale, Conflict, Retry, "Others have changed the same.");
create_exception!(shale, LockTimeout, Retry, "A lock was not to be had in time.");
create_exception!(shale, Deadlock, Retry, "Transactions waited for each other; this one gave way.");

/// The exception for an error of the engine.
pub(crate) fn raise(error: shale::Error) -> PyErr {
    use shale::Error as E;
    let text = error.to_string();
    match error {
        E::DiskFull { .. } => DiskFull::new_err(text),
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
    work: impl FnOnce() -> shale::Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(raise)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("DiskFull", py.get_type::<DiskFull>())?;
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
