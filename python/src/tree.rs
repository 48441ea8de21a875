//! Trees.

use crate::error::run;
use crate::held::Held;
use crate::rows::{Range, Rows, Shown};
use crate::snapshot::Snapshot;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An ordered map from bytes to bytes. Any thread may use it.
#[pyclass(frozen, module = "shaledb")]
pub(crate) struct Tree(pub(crate) Held<shaledb::Tree>);

impl Tree {
    fn find<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let snapshot = snapshot.map(Snapshot::get).transpose()?;
        let found = run(py, || match &snapshot {
            Some(snapshot) => self.0.get_at(key, snapshot),
            None => self.0.get(key),
        })?;
        Ok(found.map(|value| PyBytes::new(py, &value)))
    }

    fn rows(
        &self,
        py: Python<'_>,
        range: Range,
        snapshot: Option<&Snapshot>,
        shown: Shown,
    ) -> PyResult<Rows> {
        let snapshot = snapshot.map(Snapshot::get).transpose()?;
        let reverse = range.reverse;
        let scan = run(py, || {
            let options = shaledb::ScanOptions { snapshot: snapshot.as_ref(), ..range.options() };
            self.0.scan_with(options)
        })?;
        Ok(Rows::new(&self.0, scan, reverse, shown))
    }
}

#[pymethods]
impl Tree {
    #[getter]
    fn name(&self) -> String {
        self.0.name().to_owned()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.find(py, key, None)?;
        found.ok_or_else(|| PyKeyError::new_err(PyBytes::new(py, key).unbind()))
    }

    #[pyo3(signature = (key, default = None, *, snapshot = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        default: Option<Bound<'py, PyAny>>,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(py, key, snapshot)?.map(Bound::into_any).or(default))
    }

    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<Vec<u8>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let found = run(py, || self.0.multi_get(&keys))?;
        Ok(found.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect())
    }

    fn __contains__(&self, py: Python<'_>, key: &[u8]) -> PyResult<bool> {
        run(py, || self.0.contains(key))
    }

    #[pyo3(signature = (key, value, *, sync = false))]
    fn put(&self, py: Python<'_>, key: &[u8], value: &[u8], sync: bool) -> PyResult<()> {
        run(py, || self.0.put_with(key, value, shaledb::WriteOptions { sync }))
    }

    fn __setitem__(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.put(py, key, value, false)
    }

    #[pyo3(signature = (key, *, sync = false))]
    fn delete(&self, py: Python<'_>, key: &[u8], sync: bool) -> PyResult<()> {
        run(py, || self.0.delete_with(key, shaledb::WriteOptions { sync }))
    }

    fn __delitem__(&self, py: Python<'_>, key: &[u8]) -> PyResult<()> {
        if !self.__contains__(py, key)? {
            return Err(PyKeyError::new_err(PyBytes::new(py, key).unbind()));
        }
        self.delete(py, key, false)
    }

    #[pyo3(signature = (start, stop, *, sync = false))]
    fn delete_range(&self, py: Python<'_>, start: &[u8], stop: &[u8], sync: bool) -> PyResult<()> {
        run(py, || self.0.delete_range_with(start, stop, shaledb::WriteOptions { sync }))
    }

    /// Removes every row: up to the last key, and that one.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || {
            let mut scan = self.0.scan::<&[u8]>(..)?;
            scan.seek_last()?;
            if !scan.valid() {
                return Ok(());
            }
            let last = scan.key().to_vec();
            self.0.delete_range(b"", &last)?;
            self.0.delete(&last)
        })
    }

    #[pyo3(
        signature = (start = None, stop = None, *, prefix = None, reverse = false, snapshot = None)
    )]
    fn items(
        &self,
        py: Python<'_>,
        start: Option<Vec<u8>>,
        stop: Option<Vec<u8>>,
        prefix: Option<Vec<u8>>,
        reverse: bool,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Rows> {
        self.rows(py, Range { start, stop, prefix, reverse }, snapshot, Shown::Items)
    }

    #[pyo3(
        signature = (start = None, stop = None, *, prefix = None, reverse = false, snapshot = None)
    )]
    fn keys(
        &self,
        py: Python<'_>,
        start: Option<Vec<u8>>,
        stop: Option<Vec<u8>>,
        prefix: Option<Vec<u8>>,
        reverse: bool,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Rows> {
        self.rows(py, Range { start, stop, prefix, reverse }, snapshot, Shown::Keys)
    }

    #[pyo3(
        signature = (start = None, stop = None, *, prefix = None, reverse = false, snapshot = None)
    )]
    fn values(
        &self,
        py: Python<'_>,
        start: Option<Vec<u8>>,
        stop: Option<Vec<u8>>,
        prefix: Option<Vec<u8>>,
        reverse: bool,
        snapshot: Option<&Snapshot>,
    ) -> PyResult<Rows> {
        self.rows(py, Range { start, stop, prefix, reverse }, snapshot, Shown::Values)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        self.keys(py, None, None, None, false, None)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Rows> {
        self.keys(py, None, None, None, true, None)
    }

    #[pyo3(signature = (start = None, stop = None))]
    fn approximate_bytes(
        &self,
        py: Python<'_>,
        start: Option<&[u8]>,
        stop: Option<&[u8]>,
    ) -> PyResult<u64> {
        run(py, || self.0.approximate_bytes(start.unwrap_or_default(), stop))
    }

    /// Loads rows that come in order, each written once; answers how many.
    fn load(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut ingest = Some(run(py, || self.0.ingest())?);
        for row in rows.try_iter()? {
            let (key, value): (Vec<u8>, Vec<u8>) = row?.extract()?;
            if let Some(ingest) = &mut ingest {
                run(py, || ingest.add(&key, &value))?;
            }
        }
        match ingest.take() {
            Some(ingest) => run(py, || ingest.finish()),
            None => Ok(0),
        }
    }
}
