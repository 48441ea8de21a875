//! Two answers to one question.

use crate::stores::engine::Result;
use std::fmt::Debug;

/// The error of two answers that differ.
pub(super) fn same<A: PartialEq + Debug>(what: &dyn Debug, tested: A, model: A) -> Result<()> {
    if tested == model {
        return Ok(());
    }
    Err(format!("{what:?}: the store answers {tested:?}, the model {model:?}").into())
}
