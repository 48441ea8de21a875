//! What a row gives: a key and a value, or why there is none.

use std::io;

/// One pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// Why there is no next row.
#[derive(Debug)]
pub enum Problem {
    /// The row that begins in this line is bad; the one after it can be read.
    Row(u64, String),
    /// The row that begins in this line is bad, and where the next one begins cannot be known.
    Rest(u64, String),
    /// The options do not fit the text.
    Options(String),
    /// The input cannot be read; [`is_bad_input`](super::is_bad_input) tells whether what is in it
    /// is to blame.
    Read(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Read(error)
    }
}

/// What every longest row says.
pub(super) fn too_long(max: usize) -> String {
    format!(
        "the row has more than {max} bytes. Check the --format, or allow longer rows with --max-row"
    )
}
