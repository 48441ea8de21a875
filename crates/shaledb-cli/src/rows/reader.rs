//! The reader of rows, whatever their layout.

use super::columns::Columns;
use super::input;
use super::json::Json;
use super::options::{Layout, Options};
use super::pairs::Pairs;
use super::record::{Problem, Record};
use std::io::Read;

/// Reads rows.
pub struct Rows {
    reader: Reader,
    line: u64,
}

enum Reader {
    Pairs(Pairs),
    Json(Box<Json>),
    Columns(Box<Columns>),
}

impl Rows {
    /// Begins to read: a mark of encoding, a header, the start of an array. The input may be
    /// compressed by gzip or zstd.
    pub fn open(input: Box<dyn Read>, options: &Options) -> Result<Rows, Problem> {
        let (input, mark) = input::plain(input)?;
        let max = options.row_bytes_max;
        let reader = match options.layout {
            Layout::Pairs { escaped: false } if mark => {
                let what = "the file begins with a byte order mark, which would become part of \
                            the first key. Remove it, or use --escaped, which skips it";
                return Err(Problem::Rest(1, what.to_owned()));
            }
            Layout::Pairs { escaped } => Reader::Pairs(Pairs::new(input, max, escaped)),
            Layout::Json => Reader::Json(Box::new(Json::new(input, options)?)),
            Layout::Columns { delimiter, quotes, header } => {
                Reader::Columns(Box::new(Columns::new(input, options, delimiter, quotes, header)?))
            }
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
