//! Reading a tree's state: one key, several keys, a range.

pub mod get;
pub mod newer;
pub mod scan;
#[cfg(test)]
pub(crate) mod testing;
pub mod value;

pub use get::{Found, find, get, multi_find, multi_get};
pub use scan::{Scan, ScanRange};
pub use value::{BlobSource, Value};
