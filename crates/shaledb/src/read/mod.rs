//! Reading a tree's state: one key, several keys, a range.

pub mod write_set;
mod sources;
pub mod estimate;
pub mod value;
pub mod get;
pub mod conflict;
#[cfg(test)]
pub(crate) mod testing;
pub mod scan;
mod changes;

pub use changes::Changes;
pub use estimate::{RowEstimate, estimate_rows};
pub use get::{Found, find, get, multi_find, multi_get, prefetch};
pub use scan::Scan;
pub use sources::ScanRange;
pub use value::{BlobSource, Value};
pub use write_set::WriteSetSources;
