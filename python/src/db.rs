//! Databases.

use crate::batch::Batch;
use crate::error::{ConfigError, raise, run};
use crate::held::Held;
use crate::signals::run_long;
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::txn::Transaction;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::path::PathBuf;

/// Opens a database. `settings` is JSON; what is left out has its default.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf, read_only: bool, settings: &str) -> PyResult<Db> {
    let config: shaledb::Config = serde_json::from_str(settings)
        .map_err(|error| ConfigError::new_err(format!("settings: {error}")))?;
    let options = shaledb::OpenOptions { read_only, ..shaledb::OpenOptions::default() };
    let tree = config.tree.clone();
    let db = run(py, || shaledb::Db::open_in(&path, config, options))?;
    Ok(Db { db: Held::new(db), tree })
}

/// Opens a database that another process may write. `settings` as for `open`.
#[pyfunction]
pub(crate) fn open_follower(py: Python<'_>, path: PathBuf, settings: &str) -> PyResult<Db> {
    let config: shaledb::Config = serde_json::from_str(settings)
        .map_err(|error| ConfigError::new_err(format!("settings: {error}")))?;
    let tree = config.tree.clone();
    let db = run(py, || shaledb::Db::open_follower(&path, config))?;
    Ok(Db { db: Held::new(db), tree })
}

/// An open database. Any thread may use it.
#[pyclass(frozen, module = "shaledb")]
pub(crate) struct Db {
    db: Held<shaledb::Db>,
    /// The settings of trees that are made without their own.
    tree: shaledb::TreeConfig,
}

/// The settings of a tree, as a text of JSON or a mapping, or by their names; `None` if there are
/// none. What is left out has its default.
fn tree_config(
    py: Python<'_>,
    settings: Option<&Bound<'_, PyAny>>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<shaledb::TreeConfig>> {
    let named = named.filter(|named| !named.is_empty());
    let text = match (settings, named) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let what = "the tree's settings are given twice: as `settings` and by their names";
            return Err(ConfigError::new_err(what));
        }
        (Some(text), None) if text.is_instance_of::<PyString>() => text.extract()?,
        (Some(settings), None) => {
            let settings = py.get_type::<PyDict>().call1((settings,))?;
            py.import("json")?.call_method1("dumps", (settings,))?.extract()?
        }
        (None, Some(named)) => py.import("json")?.call_method1("dumps", (named,))?.extract()?,
    };
    let text: String = text;
    let config: shaledb::TreeConfig = serde_json::from_str(&text)
        .map_err(|error| ConfigError::new_err(format!("settings of a tree: {error}")))?;
    // Also where the tree is there and keeps its own.
    config.validate().map_err(raise)?;
    Ok(Some(config))
}

#[pymethods]
impl Db {
    /// Where it is.
    #[getter]
    fn path(&self) -> PathBuf {
        self.db.path().to_owned()
    }

    /// The tree of this name. With `create` it is made if it is not there, with these settings; one
    /// that is there keeps its own, or with `exist_ok=False` is an error.
    #[pyo3(signature = (name, *, create = true, exist_ok = true, settings = None, **named))]
    fn tree(
        &self,
        py: Python<'_>,
        name: &str,
        create: bool,
        exist_ok: bool,
        settings: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Tree> {
        use shaledb::Error::{NoSuchTree, TreeExists};
        let config = tree_config(py, settings, named)?;
        if !create && (config.is_some() || !exist_ok) {
            let what = "settings and exist_ok=False are for a tree that is made: with \
                        create=False none is";
            return Err(ConfigError::new_err(what));
        }
        let config = config.unwrap_or_else(|| self.tree.clone());
        let tree = run(py, || {
            if !exist_ok {
                return self.db.create_tree(name, config);
            }
            loop {
                match self.db.tree(name) {
                    Err(NoSuchTree(_)) if create => {}
                    other => return other,
                }
                // Somebody else may make it meanwhile.
                match self.db.create_tree(name, config.clone()) {
                    Err(TreeExists(_)) => {}
                    other => return other,
                }
            }
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
        let db = self.db.clone();
        run_long(py, move || db.compact())
    }

    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        let db = self.db.clone();
        run_long(py, move || db.wait_idle())
    }

    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run(py, || self.db.checkpoint(&path))
    }

    /// The report as JSON. Raises if anything is damaged; then the error has it as `report`.
    fn verify(&self, py: Python<'_>) -> PyResult<String> {
        let db = self.db.clone();
        let report = run_long(py, move || db.verify(&mut |_| ()))?;
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
