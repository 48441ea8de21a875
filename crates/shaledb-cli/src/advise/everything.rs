//! All rows of the source, for what is checked against predictions.

use super::sample::Row;
use super::{text, tree};
use crate::exit::Outcome;
use crate::import::source;
use shaledb_cli::rows::{Options, Record, Rows};
use shaledb_lab::browse::Browse;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

const CHUNK_BYTES: usize = 256 << 10;

/// Where all rows come from.
pub(super) enum Everything {
    /// Files one behind the other.
    Files(Vec<PathBuf>, Box<Options>),
    /// A tree of a database.
    Tree(RefCell<Box<dyn Browse>>),
}

/// Gives the next rows; false when there are no more.
pub(super) type Feed<'a> = Box<dyn FnMut(&mut Vec<Row>) -> Outcome<bool> + 'a>;

impl Everything {
    /// All rows from the beginning, some at a time.
    pub(super) fn feed(&self) -> Outcome<Feed<'_>> {
        match self {
            Everything::Files(paths, options) => {
                let mut paths = paths.iter();
                let mut open_now: Option<(Rows, String)> = None;
                let mut record = Record::default();
                Ok(Box::new(move |chunk: &mut Vec<Row>| {
                    chunk.clear();
                    let mut bytes = 0;
                    while bytes < CHUNK_BYTES {
                        let Some((rows, name)) = &mut open_now else {
                            let Some(path) = paths.next() else { break };
                            open_now = Some((open(path, options)?, path.display().to_string()));
                            continue;
                        };
                        let more = rows.next(&mut record);
                        if !more.map_err(|problem| text::failure(problem, name, 0))? {
                            open_now = None;
                            continue;
                        }
                        bytes += record.key.len() + record.value.len();
                        chunk.push((record.key.clone(), record.value.clone()));
                    }
                    Ok(!chunk.is_empty())
                }))
            }
            Everything::Tree(tree) => {
                let mut from = Vec::new();
                Ok(Box::new(move |chunk: &mut Vec<Row>| {
                    chunk.clear();
                    let rows = tree.borrow_mut().rows(&from, CHUNK_BYTES as u64, false)?;
                    chunk.extend(rows.into_iter().map(|row| (row.key, row.value)));
                    if let Some((last, _)) = chunk.last() {
                        from = tree::after(last);
                    }
                    Ok(!chunk.is_empty())
                }))
            }
        }
    }
}

fn open(path: &Path, options: &Options) -> Outcome<Rows> {
    let stop = crate::signals::stop_flag()?;
    let source = source::open(path, &stop)?;
    let name = path.display().to_string();
    Rows::open(source.input, options).map_err(|problem| text::failure(problem, &name, 0))
}
