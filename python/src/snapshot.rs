//! Snapshots.

use crate::error::Closed;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A moment at which reads can be repeated.
#[pyclass(frozen, module = "shaledb")]
pub(crate) struct Snapshot(Mutex<Option<shaledb::Snapshot>>);

impl Snapshot {
    pub(crate) fn new(snapshot: shaledb::Snapshot) -> Snapshot {
        Snapshot(Mutex::new(Some(snapshot)))
    }

    /// The engine's own, or an exception if it has ended.
    pub(crate) fn get(&self) -> PyResult<shaledb::Snapshot> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| Closed::new_err("the snapshot has ended"))
    }
}

#[pymethods]
impl Snapshot {
    #[getter]
    fn seq(&self) -> PyResult<u64> {
        Ok(self.get()?.seq())
    }

    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
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
