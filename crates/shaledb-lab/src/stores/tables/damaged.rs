//! What a tree says that has something else in it than its table.

use crate::stores::engine::Failure;

/// The error for a key or value that is not a row of its table.
#[cold]
pub fn damaged(tree: &str) -> Failure {
    format!("the tree `{tree}` has an entry that is not the benchmark's").into()
}
