//! A manifest that another process appends to, read as it grows.

use super::catalog::Catalog;
use super::manifest::{self, CURRENT, apply_record, open_current, resync};
use crate::base::error::{Error, Result};
use crate::fs::Fs;
use crate::table::meta::FileId;
use crate::wal::reader::{RecordReader, Step};
use crate::wal::record::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES};
use std::path::Path;

/// The current manifest, whoever writes it.
#[derive(Debug)]
pub struct ManifestTail {
    id: FileId,
    reader: RecordReader,
    catalog: Catalog,
    /// The number of the next edit.
    number: u64,
    /// Where its record will start.
    at: u64,
}

impl ManifestTail {
    /// Reads the current manifest.
    pub fn open(fs: &dyn Fs, dir: &Path) -> Result<ManifestTail> {
        let (id, reader) = open_current(fs, dir)?;
        let at = FILE_HEADER_BYTES as u64;
        let mut tail = ManifestTail { id, reader, catalog: Catalog::default(), number: 0, at };
        tail.read()?;
        Ok(tail)
    }

    /// What the edits add up to.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Takes in the edits that have been made since; whether there are any.
    pub fn advance(&mut self, fs: &dyn Fs, dir: &Path) -> Result<bool> {
        let id = manifest::current(fs, dir)?;
        if id == self.id {
            self.reader.go_on_at(self.at)?;
            return self.read();
        }
        if id < self.id {
            let what = "it names an older manifest than before: another database has been put in \
                        this place; open it anew";
            return Err(Error::corruption(&dir.join(CURRENT), 0, what));
        }
        *self = ManifestTail::open(fs, dir)?;
        assert!(self.number > 0, "a manifest begins with a snapshot");
        Ok(true)
    }

    fn read(&mut self) -> Result<bool> {
        let before = self.number;
        loop {
            let path = self.reader.path().to_owned();
            match self.reader.next()? {
                Step::Record { offset, payload } => {
                    apply_record(&mut self.catalog, payload, self.number)
                        .map_err(|what| Error::corruption(&path, offset, what))?;
                    assert_eq!(offset, self.at, "edits follow one another");
                    self.number += 1;
                    self.at = offset + (RECORD_HEADER_BYTES + payload.len()) as u64;
                }
                Step::End { torn: None, .. } if self.number > 0 => break,
                Step::End { offset, torn } => {
                    // The last record may be under way; nothing is appended before it is complete.
                    let what = torn.unwrap_or("the manifest has no edit");
                    if self.number == 0 || resync(&mut self.reader, self.number)? {
                        return Err(Error::corruption(&path, offset, what));
                    }
                    break;
                }
            }
        }
        if self.number > before {
            let at = self.at;
            self.catalog
                .check_levels()
                .map_err(|(_, _, what)| Error::corruption(self.reader.path(), at, what))?;
        }
        Ok(self.number > before)
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
