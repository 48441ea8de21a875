//! Iterators.

use crate::error::run;
use crate::held::Held;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::VecDeque;

/// How many rows, and about how many bytes, are fetched at once without the interpreter's lock.
const ROWS: usize = 128;
const BYTES: usize = 256 * 1024;

/// What is iterated over.
#[derive(Clone)]
pub(crate) struct Range {
    pub(crate) start: Option<Vec<u8>>,
    pub(crate) stop: Option<Vec<u8>>,
    pub(crate) prefix: Option<Vec<u8>>,
    pub(crate) reverse: bool,
}

impl Range {
    pub(crate) fn options(self) -> shaledb::ScanOptions<'static> {
        shaledb::ScanOptions {
            lower: self.start,
            upper: self.stop,
            prefix: self.prefix,
            ..shaledb::ScanOptions::default()
        }
    }
}

/// What an iterator gives of each row.
#[derive(Clone, Copy)]
pub(crate) enum Shown {
    Keys,
    Values,
    Items,
}

/// An iterator over rows as they were when it was made. It keeps their database open.
#[pyclass(module = "shaledb")]
pub(crate) struct Rows(Held<(std::sync::Mutex<State>, shaledb::Tree)>);

struct State {
    /// `None` after the last row.
    scan: Option<shaledb::Scan>,
    begun: bool,
    reverse: bool,
    shown: Shown,
    fetched: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// What comes after those.
    failed: Option<shaledb::Error>,
}

impl State {
    /// Fetches some rows. Those before an error are given first; nothing comes after it.
    fn fetch(&mut self) -> shaledb::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Err(error) = self.fetch_some() else { return Ok(()) };
        self.scan = None;
        if self.fetched.is_empty() {
            return Err(error);
        }
        self.failed = Some(error);
        Ok(())
    }

    fn fetch_some(&mut self) -> shaledb::Result<()> {
        let Some(scan) = &mut self.scan else { return Ok(()) };
        let mut bytes = 0;
        while self.fetched.len() < ROWS && bytes < BYTES {
            match (self.begun, self.reverse) {
                (false, false) => scan.seek_first()?,
                (false, true) => scan.seek_last()?,
                (true, false) => scan.next()?,
                (true, true) => scan.prev()?,
            }
            self.begun = true;
            if !scan.valid() {
                self.scan = None;
                break;
            }
            let key = match self.shown {
                Shown::Values => Vec::new(),
                Shown::Keys | Shown::Items => scan.key().to_vec(),
            };
            let value = match self.shown {
                Shown::Keys => Vec::new(),
                Shown::Values | Shown::Items => scan.value()?.to_vec(),
            };
            bytes += key.len() + value.len();
            self.fetched.push_back((key, value));
        }
        Ok(())
    }
}

impl Rows {
    pub(crate) fn new(
        tree: &shaledb::Tree,
        scan: shaledb::Scan,
        reverse: bool,
        shown: Shown,
    ) -> Rows {
        let fetched = VecDeque::new();
        let state = State { scan: Some(scan), begun: false, reverse, shown, fetched, failed: None };
        Rows(Held::new((std::sync::Mutex::new(state), tree.clone())))
    }
}

#[pymethods]
impl Rows {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = self.0.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.fetched.is_empty() {
            run(py, || state.fetch())?;
        }
        let Some((key, value)) = state.fetched.pop_front() else { return Ok(None) };
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).into_any();
        Ok(Some(match state.shown {
            Shown::Keys => bytes(&key),
            Shown::Values => bytes(&value),
            Shown::Items => PyTuple::new(py, [bytes(&key), bytes(&value)])?.into_any(),
        }))
    }
}
