//! The Python module `shaledb._shaledb`: a thin layer over the engine, without policy
//! of its own. The engine works without the interpreter's lock.

mod error;
mod held;
mod signals;
mod rows;
mod snapshot;
mod tree;
mod batch;
mod txn;
mod db;

use pyo3::prelude::*;

#[pymodule]
fn _shaledb(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<db::Db>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<tree::Tree>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<txn::Transaction>()?;
    module.add_function(wrap_pyfunction!(db::open, module)?)?;
    module.add_function(wrap_pyfunction!(db::open_follower, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::add(module)
}
