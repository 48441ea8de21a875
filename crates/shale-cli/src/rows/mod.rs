//! Rows of text files as keys and values: CSV, TSV, JSON, and lines of a key, a tab and a value.
//!
//! What a row says becomes a key and a value without a loss, or the row is refused with its line.
//! Nothing is rounded, trimmed or sorted, and two rows that differ in their key do not get the same
//! one. Memory is bounded by the longest row that the options allow.
//!
//! `input` makes plain bytes of compressed ones, `buffer` finds lines in them, `columns`, `json`
//! and `pairs` read a row each, `key` makes one key of several parts.

mod buffer;
mod columns;
mod input;
mod json;
mod key;
mod pairs;
mod quotes;

pub use columns::names;
pub use input::is_bad_input;
pub use json::{KeyFields, Members, Name, text_of};

use key::Joined;
use std::io::{self, Read};

/// One pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// What the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Lines of a key, a tab and a value.
    Pairs {
        /// Whether backslashes are escapes.
        escaped: bool,
    },
    /// An object in each line, or one array of objects.
    Json,
    /// Rows of fields.
    Columns {
        /// What stands between two fields: ASCII, no quote and no line end.
        delimiter: u8,
        /// Whether a field may stand in quotes, which are doubled inside it.
        quotes: bool,
        /// Whether the first row names the columns.
        header: bool,
    },
}

/// How text is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the text is.
    pub layout: Layout,
    /// The columns or fields that make the key.
    pub key: Vec<String>,
    /// What stands between the parts of a key.
    pub separator: String,
    /// The column or field that is the value; else the whole row is.
    pub value: Option<String>,
    /// The longest row.
    pub row_bytes_max: usize,
}

impl Options {
    /// Rows of this layout, without a choice of columns.
    pub fn new(layout: Layout) -> Options {
        let (key, separator) = (Vec::new(), "/".to_owned());
        Options { layout, key, separator, value: None, row_bytes_max: 256 << 20 }
    }
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
    /// The input cannot be read; [`is_bad_input`] tells whether what is in it is to blame.
    Read(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Read(error)
    }
}

/// Reads rows.
pub struct Rows {
    reader: Reader,
    line: u64,
}

enum Reader {
    Pairs(pairs::Pairs),
    Json(Box<json::Json>),
    Columns(Box<columns::Columns>),
}

impl Rows {
    /// Begins to read: a mark of encoding, a header, the start of an array. The input may be
    /// compressed by gzip or zstd.
    pub fn open(input: Box<dyn Read>, options: &Options) -> Result<Rows, Problem> {
        let (input, mark) = input::plain(input)?;
        let max = options.row_bytes_max;
        let reader = match options.layout {
            Layout::Pairs { escaped: false } if mark => {
                let what = "the file begins with a byte order mark, which would be a part of the \
                            first key; remove it, or use --escaped, which passes over it";
                return Err(Problem::Rest(1, what.to_owned()));
            }
            Layout::Pairs { escaped } => Reader::Pairs(pairs::Pairs::new(input, max, escaped)),
            Layout::Json => Reader::Json(Box::new(json::Json::new(input, options)?)),
            Layout::Columns { delimiter, quotes, header } => Reader::Columns(Box::new(
                columns::Columns::new(input, options, delimiter, quotes, header)?,
            )),
        };
        Ok(Rows { reader, line: 0 })
    }

    /// Reads the next row; false if there is none.
    pub fn next(&mut self, record: &mut Record) -> Result<bool, Problem> {
        record.key.clear();
        record.value.clear();
        let line = match &mut self.reader {
            Reader::Pairs(pairs) => pairs.next(record),
            Reader::Json(json) => json.next(record),
            Reader::Columns(columns) => columns.next(record),
        };
        match line {
            Ok(Some(line)) => {
                self.line = line;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(problem) => {
                if let Problem::Row(line, _) | Problem::Rest(line, _) = problem {
                    self.line = line;
                }
                Err(problem)
            }
        }
    }

    /// The line in which the last row began, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }
}

/// What every longest row says.
fn too_long(max: usize) -> String {
    format!(
        "the row has more than {max} bytes: is this the right --format? (--max-row allows longer \
         ones)"
    )
}
