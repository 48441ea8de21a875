//! Rows of text files as keys and values: CSV, TSV, JSON, and lines of a key, a tab and a value.
//!
//! What a row says becomes a key and a value without a loss, or the row is refused with its line.
//! Nothing is rounded, trimmed or sorted, and two rows that differ in their key do not get the same
//! one. Memory is bounded by the longest row that the options allow.
//!
//! `input` makes plain bytes of compressed ones, `buffer` finds lines in them, `columns`, `json`
//! and `pairs` read a row each, `key` makes one key of several parts; `reader` is all of them.

mod input;
mod key;
mod options;
mod record;
mod buffer;
mod json;
mod pairs;
mod quotes;
mod columns;
mod reader;

pub use columns::names;
pub use input::{PACKED_PIECE_BYTES, is_bad_input, is_packed};
pub use json::{KeyFields, Members, Name, text_of};
pub use options::{Layout, Options};
pub use reader::Rows;
pub use record::{Problem, Record};
