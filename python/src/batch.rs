//! Batches.

use crate::error::{Closed, raise};
use crate::held::Held;
use crate::tree::Tree;
use pyo3::prelude::*;

/// Operations that are committed as a whole at the end of its `with`, or by `commit`.
#[pyclass(module = "shaledb")]
pub(crate) struct Batch {
    db: Held<shaledb::Db>,
    sync: bool,
    /// `None` when it has been committed or given up.
    batch: Option<Held<shaledb::Batch>>,
}

impl Batch {
    pub(crate) fn new(db: shaledb::Db, sync: bool) -> Batch {
        Batch { db: Held::new(db), sync, batch: Some(Held::new(shaledb::Batch::new())) }
    }

    fn open(&mut self) -> PyResult<&mut shaledb::Batch> {
        self.batch.as_deref_mut().ok_or_else(|| Closed::new_err("the batch has ended"))
    }
}

#[pymethods]
impl Batch {
    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.open()?.put(&tree.0, key, value);
        Ok(())
    }

    fn delete(&mut self, tree: &Tree, key: &[u8]) -> PyResult<()> {
        self.open()?.delete(&tree.0, key);
        Ok(())
    }

    fn delete_range(&mut self, tree: &Tree, start: &[u8], stop: &[u8]) -> PyResult<()> {
        self.open()?.delete_range(&tree.0, start, stop);
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.batch.as_deref().map_or(0, shaledb::Batch::len)
    }

    /// One that fails has done nothing and can be tried again, unless nobody knows what was done.
    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        let options = shaledb::WriteOptions { sync: self.sync };
        self.open()?;
        let Batch { db, batch, .. } = self;
        let done = py.detach(|| batch.as_deref().map_or(Ok(()), |batch| db.write(batch, options)));
        if matches!(done, Ok(()) | Err(shaledb::Error::Poisoned(_))) {
            self.batch = None;
        }
        done.map_err(raise)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __exit__(
        &mut self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() && self.batch.is_some() {
            return self.commit(py);
        }
        self.batch = None;
        Ok(())
    }
}
