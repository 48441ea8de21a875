//! The lines of a file or of the standard input, with their numbers.

use crate::exit::{Failure, Outcome};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line: a value cannot be longer, and a file without line ends must not fill memory.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// Reads lines.
pub(super) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    total_bytes: Option<u64>,
    done_bytes: u64,
    number: u64,
    text: Vec<u8>,
}

/// One line, or several that a quoted field spans.
pub(super) struct Line<'a> {
    /// Of the first of them, from 1.
    pub(super) number: u64,
    /// Without the line end.
    pub(super) text: &'a [u8],
}

impl Lines {
    /// Opens a file; `-` is the standard input.
    pub(super) fn open(path: &Path) -> Outcome<Lines> {
        let (reader, total_bytes): (Box<dyn BufRead>, _) = if path == Path::new("-") {
            (Box::new(BufReader::with_capacity(1 << 16, std::io::stdin())), None)
        } else {
            let file = File::open(path).map_err(|error| Failure::file("open", path, &error))?;
            let meta = file.metadata().map_err(|error| Failure::file("look at", path, &error))?;
            if meta.is_dir() {
                return Err(Failure::usage(format!("{} is a folder", path.display())));
            }
            let length = meta.is_file().then_some(meta.len());
            (Box::new(BufReader::with_capacity(1 << 18, file)), length)
        };
        let path = path.to_owned();
        Ok(Lines { path, reader, total_bytes, done_bytes: 0, number: 0, text: Vec::new() })
    }

    /// The length of the file, if it has one.
    pub(super) fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// How much has been read.
    pub(super) fn done_bytes(&self) -> u64 {
        self.done_bytes
    }

    /// The next line. If `quoted`, a line with an open `"` goes on in the next, as in CSV.
    pub(super) fn next(&mut self, quoted: bool) -> Outcome<Option<Line<'_>>> {
        self.text.clear();
        let first = self.number + 1;
        loop {
            if !self.read_one()? {
                // An open quote at the end of the file: the parser will say so.
                break;
            }
            self.number += 1;
            let quotes = self.text.iter().filter(|&&byte| byte == b'"').count();
            if !quoted || quotes.is_multiple_of(2) {
                break;
            }
        }
        if self.number < first {
            return Ok(None);
        }
        if self.text.last() == Some(&b'\n') {
            self.text.pop();
            if self.text.last() == Some(&b'\r') {
                self.text.pop();
            }
        }
        Ok(Some(Line { number: first, text: &self.text }))
    }

    fn read_one(&mut self) -> Outcome<bool> {
        let room = LINE_BYTES_MAX - (self.text.len() as u64).min(LINE_BYTES_MAX);
        let read = (&mut self.reader)
            .take(room)
            .read_until(b'\n', &mut self.text)
            .map_err(|error| Failure::file("read", &self.path, &error))?;
        self.done_bytes += read as u64;
        if self.text.len() as u64 >= LINE_BYTES_MAX {
            return Err(Failure::new(
                crate::exit::Exit::BadInput,
                format!(
                    "{}: line {} is longer than a GiB: is this the right --format?",
                    self.path.display(),
                    self.number + 1
                ),
            ));
        }
        Ok(read > 0)
    }
}
