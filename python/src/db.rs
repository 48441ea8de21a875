//! Databases.

use crate::batch::Batch;
use crate::error::{ConfigError, raise, run};
use crate::held::Held;
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::txn::Transaction;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Opens a database. `settings` is JSON; what is left out has its default.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf, read_only: bool, settings: &str) -> PyResult<Db> {
    let config: shaledb::Config = serde_json::from_str(settings)
        .map_err(|error| ConfigError::new_err(format!("settings: {error}")))?;
    let options = shaledb::OpenOptions { read_only, ..shaledb::OpenOptions::default() };
    let db = run(py, || shaledb::Db::open_in(&path, config, options))?;
    Ok(Db { db: Held::new(db) })
}

/// Opens a database that another process may write. `settings` as for `open`.
#[pyfunction]
pub(crate) fn open_follower(py: Python<'_>, path: PathBuf, settings: &str) -> PyResult<Db> {
    let config: shaledb::Config = serde_json::from_str(settings)
        .map_err(|error| ConfigError::new_err(format!("settings: {error}")))?;
    let db = run(py, || shaledb::Db::open_follower(&path, config))?;
    Ok(Db { db: Held::new(db) })
}

/// An open database. Any thread may use it.
#[pyclass(frozen, module = "shaledb")]
pub(crate) struct Db {
    db: Held<shaledb::Db>,
}

#[pymethods]
impl Db {
    /// Where it is.
    #[getter]
    fn path(&self) -> PathBuf {
        self.db.path().to_owned()
    }

    #[pyo3(signature = (name, *, create = true, settings = None))]
    fn tree(
        &self,
        py: Python<'_>,
        name: &str,
        create: bool,
        settings: Option<&str>,
    ) -> PyResult<Tree> {
        let config: Option<shaledb::TreeConfig> = settings
            .map(serde_json::from_str)
            .transpose()
            .map_err(|error| ConfigError::new_err(format!("settings: {error}")))?;
        if config.is_some() && !create {
            let what = "settings are for a tree that is made: with create=False none is";
            return Err(ConfigError::new_err(what));
        }
        let tree = run(py, || match (config, create) {
            (Some(config), _) => self.db.create_tree(name, config),
            (None, true) => self.db.tree_or_create(name),
            (None, false) => self.db.tree(name),
        })?;
        Ok(Tree(Held::new(tree)))
    }

    fn drop_tree(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        run(py, || self.db.drop_tree(name))
    }

    fn tree_names(&self) -> Vec<String> {
        self.db.tree_names()
    }

    #[pyo3(signature = (*, sync = false))]
    fn batch(&self, sync: bool) -> Batch {
        Batch::new(self.db.clone(), sync)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.db)
    }

    #[pyo3(signature = (
        *, isolation = "repeatable_read", optimistic = false, on_conflict = "error",
        lock_timeout = 10.0, sync = false
    ))]
    fn transaction(
        &self,
        isolation: &str,
        optimistic: bool,
        on_conflict: &str,
        lock_timeout: f64,
        sync: bool,
    ) -> PyResult<Transaction> {
        Transaction::begin(&self.db, isolation, optimistic, on_conflict, lock_timeout, sync)
    }

    /// Moves a follower on; the position in the commit order that it shows then.
    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        run(py, || self.db.refresh())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.db.sync())
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.db.flush())
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.db.compact())
    }

    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.db.wait_idle())
    }

    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run(py, || self.db.checkpoint(&path))
    }

    /// The report as JSON. Raises if anything is damaged; then the error has it as `report`.
    fn verify(&self, py: Python<'_>) -> PyResult<String> {
        let report = run(py, || self.db.verify(&mut |_| ()))?;
        match report.damage.first() {
            Some(damage) => {
                let error = raise(damage.clone());
                error.value(py).setattr("report", json(&report)?)?;
                Err(error)
            }
            None => json(&report),
        }
    }

    /// The statistics as JSON.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.db.stats()))
    }

    fn __str__(&self, py: Python<'_>) -> String {
        py.detach(|| self.db.stats().to_string())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || self.db.clone().close())
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

fn json(value: &impl SerializeAsJson) -> PyResult<String> {
    value.text().map_err(|error| crate::error::Error::new_err(error.to_string()))
}

/// What the engine can say as JSON.
trait SerializeAsJson {
    fn text(&self) -> serde_json::Result<String>;
}

impl SerializeAsJson for shaledb::Stats {
    fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

impl SerializeAsJson for shaledb::VerifyReport {
    fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
