//! Snapshots.

use crate::error::Closed;
use crate::held::Held;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A moment at which reads can be repeated. Until it ends it keeps its database open.
#[pyclass(frozen, module = "shaledb")]
pub(crate) struct Snapshot(Mutex<Option<Held<(shaledb::Snapshot, shaledb::Db)>>>);

impl Snapshot {
    pub(crate) fn new(db: &shaledb::Db) -> Snapshot {
        Snapshot(Mutex::new(Some(Held::new((db.snapshot(), db.clone())))))
    }

    /// The engine's own, or an exception if it has ended.
    pub(crate) fn get(&self) -> PyResult<shaledb::Snapshot> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.as_ref().map(|open| open.0.clone());
        open.ok_or_else(|| Closed::new_err("the snapshot has ended"))
    }
}

#[pymethods]
impl Snapshot {
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        Ok(self.get()?.seq())
    }

    fn close(&self) {
        // Let go of after the mutex.
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(ended);
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        self.close();
    }
}
