//! A file of rows: of each its key and its value, both with their lengths before them. It is made
//! for one run by the program that reads it, so it has no version.

use crate::stores::engine::Result;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Longer ones are not written, so they are not read either.
const BYTES_MAX: u32 = 1 << 30;

const BUFFER_BYTES: usize = 256 << 10;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Bytes of the longest key.
    pub key_bytes_max: u64,
}

/// Writes a file of rows.
pub struct RowWriter {
    to: BufWriter<File>,
    path: PathBuf,
    written: Written,
}

impl RowWriter {
    /// Makes the file.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn create(path: &Path) -> Result<RowWriter> {
        let file = File::create(path)
            .map_err(|error| format!("could not create {}: {error}", path.display()))?;
        let to = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(RowWriter { to, path: path.to_owned(), written: Written::default() })
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// The key or the value has more than 1 GiB, or the file cannot be written.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok().filter(|&len| len <= BYTES_MAX);
        let (Some(of_key), Some(of_value)) = (length(key), length(value)) else {
            return Err("a key or a value has more than 1 GiB, which is not measured".into());
        };
        let mut put = |bytes: &[u8]| self.to.write_all(bytes);
        put(&of_key.to_le_bytes())
            .and_then(|()| put(&of_value.to_le_bytes()))
            .and_then(|()| put(key))
            .and_then(|()| put(value))
            .map_err(|error| format!("could not write {}: {error}", self.path.display()))?;
        self.written.rows += 1;
        self.written.bytes += u64::from(of_key) + u64::from(of_value);
        self.written.key_bytes_max = self.written.key_bytes_max.max(of_key.into());
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<Written> {
        self.to
            .flush()
            .map_err(|error| format!("could not write {}: {error}", self.path.display()))?;
        Ok(self.written)
    }
}

/// Reads a file of rows.
pub struct RowReader {
    from: BufReader<File>,
    path: PathBuf,
    /// The row that was read last.
    pub key: Vec<u8>,
    /// See `key`.
    pub value: Vec<u8>,
}

impl RowReader {
    /// Opens the file.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<RowReader> {
        let file = File::open(path)
            .map_err(|error| format!("could not open {}: {error}", path.display()))?;
        Ok(RowReader {
            from: BufReader::with_capacity(BUFFER_BYTES, file),
            path: path.to_owned(),
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    /// Reads the next row into `key` and `value`; false at the end.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or ends within a row.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        let mut lengths = [0; 8];
        self.key.clear();
        // Not `read`, which a signal ends.
        let first = (&mut self.from).take(lengths.len() as u64).read_to_end(&mut self.key);
        match first.map_err(|error| self.failed(&error))? {
            0 => return Ok(false),
            8 => lengths.copy_from_slice(&self.key),
            _ => return Err(self.failed(&ErrorKind::UnexpectedEof.into()).into()),
        }
        let length = |at: usize| {
            let bytes = [lengths[at], lengths[at + 1], lengths[at + 2], lengths[at + 3]];
            u32::from_le_bytes(bytes)
        };
        let (of_key, of_value) = (length(0), length(4));
        if of_key > BYTES_MAX || of_value > BYTES_MAX {
            return Err(format!("{} is no file of rows", self.path.display()).into());
        }
        for (part, length) in [(&mut self.key, of_key), (&mut self.value, of_value)] {
            part.clear();
            let read = (&mut self.from).take(length.into()).read_to_end(part);
            let read = read.and_then(|read| match read == length as usize {
                true => Ok(()),
                false => Err(ErrorKind::UnexpectedEof.into()),
            });
            read.map_err(|error| format!("could not read {}: {error}", self.path.display()))?;
        }
        Ok(true)
    }

    fn failed(&self, error: &std::io::Error) -> String {
        format!("could not read {}: {error}", self.path.display())
    }
}
