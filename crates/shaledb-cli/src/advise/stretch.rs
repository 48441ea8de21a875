//! Rows that were read together, and which part of the source they stand for.

use serde::Serialize;

/// Rows that stand together in the source.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    /// Where in the source it begins, from 0 to 1.
    pub(super) at: f64,
    /// How much of the source it is: bytes of a file, stored bytes of a database.
    pub(super) units: u64,
    /// The number of the file in which it begins, where there are several.
    pub(super) file: usize,
    pub(super) rows: Vec<Row>,
}

/// A key and a value.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// Which part of the source was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Seen {
    /// All of it.
    All,
    /// Stretches from all over it.
    Spread,
    /// Only its beginning, since it cannot be read elsewhere.
    Head,
}
