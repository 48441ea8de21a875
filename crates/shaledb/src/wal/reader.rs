//! Finds the records of one log file, in bounded memory, and the next sound record after damage.

use super::record::{
    FILE_HEADER_BYTES, Format, Header, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, RECORD_HEADER_BYTES,
    Seal, check_file_header,
};
use crate::base::error::{Error, Result};
use crate::fs::{Fs, ReadFile};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// How many bytes are read at a time; more only for a record that is longer.
const CHUNK_BYTES: usize = 1 << 20;

/// What is read at a time where the device answers with errors, in bytes: less than it fails by.
const PAGE_BYTES: u64 = 4096;

/// How many bytes of false candidates one search for a sound record checks before it gives up.
const RESYNC_BYTES_MAX: u64 = 32 << 30;

/// What is wrong with the bytes behind the last record, if there are any.
pub type Torn = Option<&'static str>;

/// What [`RecordReader::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A sound record.
    Record {
        /// Where it starts.
        offset: u64,
        /// What it says.
        payload: &'a [u8],
    },
    /// No record starts here.
    End {
        /// Where the records end.
        offset: u64,
        /// `None` at the end of the file; otherwise what is wrong with the bytes that follow.
        torn: Torn,
    },
}

/// What [`RecordReader::resync`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resync {
    /// The next sound record; [`RecordReader::next`] answers it.
    Found(u64),
    /// There is none.
    Nothing,
    /// So much of the file looks like records without being any that the search was given up.
    GaveUp,
}

/// A search for a sound record.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The smallest serial number that the record may have.
    pub serial_min: u64,
    /// At offset `p` of the file a record has at most the serial number `serial_base + p`.
    pub serial_base: u64,
    /// Whether a payload may be one, judged without its checksum; spares most checksums.
    pub plausible: fn(&[u8]) -> bool,
}

/// Reads a log file from its start.
pub struct RecordReader {
    file: Arc<dyn ReadFile>,
    seal: Seal,
    header: Header,
    /// The file's length when it was opened.
    bytes: u64,
    /// Where the next record is expected.
    at: u64,
    /// The part of the file in memory, and where it starts.
    window: Vec<u8>,
    window_at: u64,
    /// The parts that the device could not read, which count as zeros; `None`: they are errors.
    unreadable: Option<Vec<Range<u64>>>,
}

impl RecordReader {
    /// Opens the log file with this number. A header of an unknown version is an error; for a
    /// damaged one see [`RecordReader::header_damaged`].
    pub fn open(fs: &dyn Fs, path: &Path, id: u64, format: Format) -> Result<RecordReader> {
        RecordReader::start(fs, path, id, format, None)
    }

    /// As [`RecordReader::open`], of a file that may be damaged: what the device cannot read is no
    /// error, but zeros, which are no record.
    pub(super) fn open_damaged(
        fs: &dyn Fs,
        path: &Path,
        id: u64,
        format: Format,
    ) -> Result<RecordReader> {
        RecordReader::start(fs, path, id, format, Some(Vec::new()))
    }

    fn start(
        fs: &dyn Fs,
        path: &Path,
        id: u64,
        format: Format,
        unreadable: Option<Vec<Range<u64>>>,
    ) -> Result<RecordReader> {
        let file = fs.open(path)?;
        let bytes = file.len()?;
        let seal = Seal::new(format, id);
        let mut reader = RecordReader {
            file,
            seal,
            header: Header::Damaged,
            bytes,
            at: FILE_HEADER_BYTES as u64,
            window: Vec::new(),
            window_at: 0,
            unreadable,
        };
        let start = reader.peek(0, FILE_HEADER_BYTES)?;
        reader.header = check_file_header(format, seal, start);
        if let Header::Unknown(version) = reader.header {
            let what = format!(
                "its format version is {version}; this program knows version {}",
                format.version
            );
            return Err(Error::corruption(path, 8, what));
        }
        Ok(reader)
    }

    /// Goes on at `offset`, where a record starts or will start, with what the file has by now.
    pub fn go_on_at(&mut self, offset: u64) -> Result<()> {
        assert!(offset >= FILE_HEADER_BYTES as u64, "records follow the header");
        self.bytes = self.file.len()?;
        self.at = offset;
        self.window.clear();
        Ok(())
    }

    /// The bytes before the payload of the record at `offset`, if the file is as long.
    pub(super) fn record_header_at(
        &self,
        offset: u64,
    ) -> Result<Option<[u8; RECORD_HEADER_BYTES]>> {
        let mut header = [0; RECORD_HEADER_BYTES];
        match self.file.read_at(offset, &mut header) {
            Err(Error::Corruption { .. }) => Ok(None),
            other => other.map(|()| Some(header)),
        }
    }

    /// The same of the record that [`RecordReader::next`] has just answered, as it was read then.
    pub(super) fn header_read_at(&self, offset: u64) -> Option<[u8; RECORD_HEADER_BYTES]> {
        let skip = usize::try_from(offset.checked_sub(self.window_at)?).ok()?;
        self.window.get(skip..)?.first_chunk().copied()
    }

    /// Whether the file's header is missing or damaged. Then the first call of
    /// [`RecordReader::next`] says so, and [`RecordReader::resync`] still looks for records.
    pub fn header_damaged(&self) -> bool {
        self.header == Header::Damaged
    }

    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Whether the device could not read some of these bytes.
    pub(super) fn is_unreadable(&self, bytes: Range<u64>) -> bool {
        let mut parts = self.unreadable.iter().flatten();
        parts.any(|part| part.start < bytes.end && bytes.start < part.end)
    }

    /// The next record, or where and why there is none. Does not move past damage.
    #[expect(clippy::should_implement_trait, reason = "the record borrows the reader")]
    pub fn next(&mut self) -> Result<Step<'_>> {
        if self.header_damaged() {
            let torn = Some("the file's header is missing or damaged");
            return Ok(Step::End { offset: 0, torn });
        }
        let offset = self.at;
        if offset >= self.bytes {
            return Ok(Step::End { offset, torn: None });
        }
        match self.examine(offset)? {
            Ok(length) => {
                self.at = offset + (RECORD_HEADER_BYTES + length) as u64;
                assert!(self.at <= self.bytes, "a record ends inside the file");
                let record = self.peek(offset, RECORD_HEADER_BYTES + length)?;
                let payload = record.get(RECORD_HEADER_BYTES..).unwrap_or_default();
                assert_eq!(payload.len(), length, "what was examined is what is handed on");
                Ok(Step::Record { offset, payload })
            }
            Err(what) => Ok(Step::End { offset, torn: Some(what) }),
        }
    }

    /// As [`RecordReader::next`], without moving and without the record: `Err` at an end, with its
    /// offset and what is torn.
    pub(super) fn peek_step(&mut self) -> Result<std::result::Result<(), (u64, Torn)>> {
        let at = self.at;
        let end = match self.next()? {
            Step::Record { .. } => None,
            Step::End { offset, torn } => Some((offset, torn)),
        };
        self.at = at;
        Ok(end.map_or(Ok(()), Err))
    }

    /// Looks for the next sound record after the place where [`RecordReader::next`] stopped.
    pub fn resync(&mut self, search: Search) -> Result<Resync> {
        let mut offset = if self.header_damaged() { self.at } else { self.at + 1 };
        self.header = Header::Good;
        let mut budget = RESYNC_BYTES_MAX;
        while let Some(found) = self.next_candidate(offset, search)? {
            let (candidate, length) = found;
            let record = self.peek(candidate, RECORD_HEADER_BYTES + length)?;
            let payload = record.get(RECORD_HEADER_BYTES..).unwrap_or_default();
            if (search.plausible)(payload) && self.examine(candidate)?.is_ok() {
                assert!(candidate >= offset && candidate < self.bytes, "a search goes on only");
                self.at = candidate;
                return Ok(Resync::Found(candidate));
            }
            match budget.checked_sub(length as u64) {
                Some(left) => budget = left,
                None => return Ok(Resync::GaveUp),
            }
            offset = candidate + 1;
        }
        self.at = self.bytes;
        Ok(Resync::Nothing)
    }

    /// Whether the file has nothing but zeros from `offset` on, as a writer has them ahead of it.
    pub(super) fn has_only_zeros(&mut self, mut offset: u64) -> Result<bool> {
        while offset < self.bytes {
            let some = self.peek_some(offset, 1)?;
            if some.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += some.len().max(1) as u64;
        }
        Ok(true)
    }

    /// The first offset from `offset` on whose bytes could be the start of a record by their
    /// length and serial number alone, and that length.
    fn next_candidate(&mut self, offset: u64, search: Search) -> Result<Option<(u64, usize)>> {
        const HEAD: usize = RECORD_HEADER_BYTES + 8;
        let mut start = offset;
        while start + HEAD as u64 <= self.bytes {
            let there = self.peek_some(start, HEAD)?.len();
            if there < HEAD {
                break;
            }
            let bytes = self.bytes;
            let window = &self.window[self.window.len() - there..];
            // No record begins with zeros as far as into its length: they lie ahead of a writer.
            let zeros = window.iter().take_while(|byte| **byte == 0).count();
            let first = zeros.saturating_sub(HEAD - 1).min(window.len() - HEAD);
            for (index, head) in window.windows(HEAD).enumerate().skip(first) {
                let at = start + index as u64;
                let length = u32_at(head, 4) as usize;
                let serial = u64_at(head, 8);
                let rest = bytes - at - RECORD_HEADER_BYTES as u64;
                if (PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&length)
                    && length as u64 <= rest
                    && serial >= search.serial_min
                    && serial <= search.serial_base.saturating_add(at)
                {
                    return Ok(Some((at, length)));
                }
            }
            start += (window.len() - HEAD + 1) as u64;
        }
        Ok(None)
    }

    /// The length of the payload of the record at `offset`, or why there is no sound record.
    fn examine(&mut self, offset: u64) -> Result<std::result::Result<usize, &'static str>> {
        let seal = self.seal;
        let left = self.bytes.saturating_sub(offset);
        if left < RECORD_HEADER_BYTES as u64 {
            return Ok(Err("the file ends inside a record's header"));
        }
        let length = u32_at(self.peek(offset, RECORD_HEADER_BYTES)?, 4) as usize;
        if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&length) {
            return Ok(Err("the record's length is impossible"));
        }
        if (left - RECORD_HEADER_BYTES as u64) < length as u64 {
            return Ok(Err("the file ends inside a record"));
        }
        let record = self.peek(offset, RECORD_HEADER_BYTES + length)?;
        let Some((checksum, sealed)) = record.split_first_chunk::<4>() else {
            return Ok(Err("the file ends inside a record"));
        };
        if u32::from_le_bytes(*checksum) == seal.checksum(offset, sealed) {
            Ok(Ok(length))
        } else {
            Ok(Err("the record's checksum does not match"))
        }
    }

    /// The bytes at `offset`: `count`, or fewer at the end of the file.
    fn peek(&mut self, offset: u64, count: usize) -> Result<&[u8]> {
        let window = self.peek_some(offset, count)?;
        Ok(window.get(..count).unwrap_or(window))
    }

    /// All bytes in memory from `offset` on: at least `count`, or all up to the end of the file.
    fn peek_some(&mut self, offset: u64, count: usize) -> Result<&[u8]> {
        let have = (offset.checked_sub(self.window_at))
            .and_then(|skip| Some((self.window.len() as u64).checked_sub(skip)? as usize));
        let left = self.bytes.saturating_sub(offset);
        let want = (count as u64).min(left) as usize;
        let have = match have {
            Some(have) if have >= want => have,
            have => {
                self.refill(offset, have.unwrap_or(0), want)?;
                self.window.len()
            }
        };
        Ok(self.window.get(self.window.len() - have..).unwrap_or_default())
    }

    /// Makes the window start at `offset` and hold at least `want` bytes, of which its last `have`
    /// are in it already; or fewer, if the writer has cut off the zeros ahead of it meanwhile.
    fn refill(&mut self, offset: u64, have: usize, want: usize) -> Result<()> {
        let Err(error) = self.refill_known(offset, have, want) else { return Ok(()) };
        let bytes = self.file.len()?;
        if !error.is_corruption() || bytes >= self.bytes {
            return Err(error);
        }
        self.bytes = bytes;
        let left = bytes.saturating_sub(offset);
        self.refill_known(offset, 0, (want as u64).min(left) as usize)
    }

    fn refill_known(&mut self, offset: u64, have: usize, want: usize) -> Result<()> {
        let left = self.bytes.saturating_sub(offset);
        let target = (want.max(CHUNK_BYTES) as u64).min(left) as usize;
        assert!(have <= want && want <= target, "the window grows to what is wanted");
        let kept = self.window.len() - have;
        self.window.copy_within(kept.., 0);
        // A window that grew for a long record shrinks again after it.
        if self.window.capacity() > 4 * target.max(CHUNK_BYTES) {
            self.window.truncate(have);
            self.window.shrink_to(target);
        }
        self.window.resize(target, 0);
        self.window_at = offset;
        let from = offset + have as u64;
        let rest = self.window.get_mut(have..).unwrap_or_default();
        let read = match (self.file.read_at(from, rest), &mut self.unreadable) {
            (Err(error), Some(unreadable)) if error.is_of_the_device() => {
                read_by_pages(&*self.file, from, rest, unreadable)
            }
            (read, _) => read,
        };
        if let Err(error) = read {
            self.window.clear();
            return Err(error);
        }
        self.file.prefetch(offset + target as u64, CHUNK_BYTES as u64);
        Ok(())
    }
}

impl std::fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordReader").field("path", &self.path()).field("at", &self.at).finish()
    }
}

/// Fills `buf` page by page. Pages that the device cannot read are zeros, and noted.
fn read_by_pages(
    file: &dyn ReadFile,
    mut offset: u64,
    mut buf: &mut [u8],
    unreadable: &mut Vec<Range<u64>>,
) -> Result<()> {
    while !buf.is_empty() {
        let in_page = (PAGE_BYTES - offset % PAGE_BYTES) as usize;
        let (page, rest) = buf.split_at_mut(in_page.min(buf.len()));
        let end = offset + page.len() as u64;
        match file.read_at(offset, page) {
            Err(error) if error.is_of_the_device() => {
                page.fill(0);
                match unreadable.last_mut() {
                    Some(last) if last.end == offset => last.end = end,
                    _ => unreadable.push(offset..end),
                }
            }
            read => read?,
        }
        (offset, buf) = (end, rest);
    }
    Ok(())
}

/// The number at `at`, or 0 if the bytes end before it.
#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The number at `at`, or 0 if the bytes end before it.
#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
