//! All rows of the source, for what is checked against predictions.

use super::sample::Row;
use super::text;
use crate::exit::Outcome;
use crate::import::source;
use shaledb::{ScanOptions, Tree};
use shaledb_cli::rows::{Options, Record, Rows};
use std::path::{Path, PathBuf};

const CHUNK_BYTES: usize = 256 << 10;

/// Where all rows come from.
pub(super) enum Everything {
    /// Files one behind the other.
    Files(Vec<PathBuf>, Box<Options>),
    /// A tree of a database.
    Tree(Tree),
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
                let options = ScanOptions { fill_cache: false, ..ScanOptions::default() };
                let mut scan = tree.scan_with(options)?;
                scan.seek_first()?;
                Ok(Box::new(move |chunk: &mut Vec<Row>| {
                    chunk.clear();
                    let mut bytes = 0;
                    while bytes < CHUNK_BYTES && scan.valid() {
                        chunk.push((scan.key().to_vec(), scan.value()?.to_vec()));
                        bytes += chunk.last().map_or(0, |(key, value)| key.len() + value.len());
                        scan.next()?;
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
