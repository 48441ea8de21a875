//! Transactions.

use crate::error::{Closed, InvalidArgument, raise, run};
use crate::held::Held;
use crate::rows::{Range, Rows, Shown};
use crate::signals::run_waiting;
use crate::tree::Tree;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shaledb::{Concurrency, Isolation, OnConflict, TransactionOptions};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A transaction: committed at the end of its `with`, rolled back if an exception leaves it.
#[pyclass(module = "shaledb")]
pub(crate) struct Transaction {
    /// `None` after its end.
    txn: Held<Mutex<Option<shaledb::Transaction>>>,
    savepoints: Vec<shaledb::Savepoint>,
    lock_timeout: Duration,
    sync: bool,
}

fn wrong(what: &str, text: &str, right: &str) -> PyErr {
    InvalidArgument::new_err(format!("{what} `{text}` is none of {right}"))
}

impl Transaction {
    pub(crate) fn begin(
        db: &shaledb::Db,
        isolation: &str,
        optimistic: bool,
        on_conflict: &str,
        lock_timeout: f64,
        sync: bool,
    ) -> PyResult<Transaction> {
        let options = TransactionOptions {
            isolation: match isolation {
                "read_committed" => Isolation::ReadCommitted,
                "repeatable_read" => Isolation::RepeatableRead,
                "serializable" => Isolation::Serializable,
                other => {
                    let right = "read_committed, repeatable_read, serializable";
                    return Err(wrong("isolation", other, right));
                }
            },
            concurrency: match optimistic {
                true => Concurrency::Optimistic,
                false => Concurrency::Pessimistic,
            },
            on_conflict: match on_conflict {
                "error" => OnConflict::Error,
                "latest" => OnConflict::Latest,
                other => return Err(wrong("on_conflict", other, "error, latest")),
            },
            lock_timeout: Duration::try_from_secs_f64(lock_timeout)
                .map_err(|error| InvalidArgument::new_err(format!("lock_timeout: {error}")))?,
            ..TransactionOptions::default()
        };
        let txn = Held::new(Mutex::new(Some(db.begin(options).map_err(raise)?)));
        let lock_timeout = options.lock_timeout;
        Ok(Transaction { txn, savepoints: Vec::new(), lock_timeout, sync })
    }

    /// Makes a call that may wait for a lock. It is tried without a wait first: few have to wait,
    /// and the others are not to pay for a thread.
    fn wait<T: Send>(
        &mut self,
        py: Python<'_>,
        call: impl Fn(&mut shaledb::Transaction) -> shaledb::Result<T> + Send + Sync,
    ) -> PyResult<T> {
        let timeout = self.lock_timeout;
        let txn = self.open()?;
        if timeout.is_zero() {
            return run(py, || call(txn));
        }
        let tried = py.detach(|| {
            txn.set_lock_timeout(Duration::ZERO);
            let tried = call(txn);
            txn.set_lock_timeout(timeout);
            tried
        });
        match tried {
            Err(shaledb::Error::LockTimeout { .. }) => run_waiting(py, txn, call),
            other => other.map_err(raise),
        }
    }

    fn open(&mut self) -> PyResult<&mut shaledb::Transaction> {
        let txn = self.txn.get_mut().unwrap_or_else(PoisonError::into_inner);
        txn.as_mut().ok_or_else(|| Closed::new_err("the transaction has ended"))
    }

    fn take(&mut self) -> Option<shaledb::Transaction> {
        self.txn.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Transaction {
    #[getter]
    fn id(&mut self) -> PyResult<u64> {
        Ok(self.open()?.id())
    }

    #[pyo3(signature = (tree, key, default = None, *, lock = None))]
    fn get<'py>(
        &mut self,
        py: Python<'py>,
        tree: &Tree,
        key: &[u8],
        default: Option<Bound<'py, PyAny>>,
        lock: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = match lock {
            None => self.wait(py, |txn| txn.get(&tree.0, key))?,
            Some("shared") => self.wait(py, |txn| txn.get_for_share(&tree.0, key))?,
            Some("exclusive") => self.wait(py, |txn| txn.get_for_update(&tree.0, key))?,
            Some(other) => return Err(wrong("lock", other, "None, shared, exclusive")),
        };
        Ok(found.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    fn put(&mut self, py: Python<'_>, tree: &Tree, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.wait(py, |txn| txn.put(&tree.0, key, value))
    }

    fn delete(&mut self, py: Python<'_>, tree: &Tree, key: &[u8]) -> PyResult<()> {
        self.wait(py, |txn| txn.delete(&tree.0, key))
    }

    fn delete_range(
        &mut self,
        py: Python<'_>,
        tree: &Tree,
        start: &[u8],
        stop: &[u8],
    ) -> PyResult<()> {
        self.wait(py, |txn| txn.delete_range(&tree.0, start, stop))
    }

    #[pyo3(signature = (tree, start = None, stop = None, *, prefix = None, reverse = false))]
    fn items(
        &mut self,
        py: Python<'_>,
        tree: &Tree,
        start: Option<Vec<u8>>,
        stop: Option<Vec<u8>>,
        prefix: Option<Vec<u8>>,
        reverse: bool,
    ) -> PyResult<Rows> {
        let range = Range { start, stop, prefix, reverse };
        let scan = self.wait(py, |txn| txn.scan(&tree.0, range.clone().options()))?;
        Ok(Rows::new(&tree.0, scan, reverse, Shown::Items))
    }

    /// A number to go back to.
    fn savepoint(&mut self) -> PyResult<usize> {
        let savepoint = self.open()?.savepoint();
        self.savepoints.push(savepoint);
        Ok(self.savepoints.len() - 1)
    }

    fn rollback_to(&mut self, savepoint: usize) -> PyResult<()> {
        let known = self.savepoints.get(savepoint).copied();
        let known = known.ok_or_else(|| {
            InvalidArgument::new_err(format!("there is no savepoint {savepoint}"))
        })?;
        self.open()?.rollback_to(known).map_err(raise)?;
        self.savepoints.truncate(savepoint + 1);
        Ok(())
    }

    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        self.open()?;
        let options = shaledb::WriteOptions { sync: self.sync };
        match self.take() {
            Some(txn) => run(py, || txn.commit(options)),
            None => Ok(()),
        }
    }

    fn rollback(&mut self, py: Python<'_>) {
        let txn = self.take();
        py.detach(|| drop(txn));
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
        match self.open().is_ok() && kind.is_none() {
            true => self.commit(py),
            false => {
                self.rollback(py);
                Ok(())
            }
        }
    }
}
