//! A log that another process appends to, read as it grows.
//!
//! A record that is not complete yet is not answered. It is told from damage as by a recovery (see
//! `replay`): by what later records, and the manifest, say was durable.
//!
//! The writer takes back an append that failed, and with it complete records of the same group,
//! whose commits have failed too. So the header of the last record taken is looked at again each
//! time: if it is no longer what it was, the log has to be read anew.

use super::payload::WalBatch;
use super::reader::{RecordReader, Resync, Search, Step};
use super::record::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES, WAL};
use super::replay::ReplayStart;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::fs::Fs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where reading on has ended.
#[derive(Debug)]
pub enum TailEnd {
    /// All that is there has been taken.
    End,
    /// The sink has not taken a record; it comes again.
    Held,
    /// What has been taken is no longer in the log.
    Undone,
    /// Something that was durable cannot be read: as far as is known from the start that was given.
    Damaged(Error),
}

/// A log, and how far it has been read.
#[derive(Debug, Default)]
pub struct LogTail {
    current: Option<Current>,
    /// The sequence number that the next record starts with; `None` before the first one.
    expected: Option<SeqNo>,
    /// The largest number that is known to have been durable.
    durable: SeqNo,
    records: u64,
    /// Why the log does not go on where it ends, if there is more than an end.
    stop: Option<Error>,
    /// By file: the zeros behind which nothing was found. They lie ahead of the writer, and a
    /// search of megabytes takes milliseconds.
    zeros: BTreeMap<u64, Zeros>,
}

/// Zeros that were searched: from where to where, and what was in tables then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zeros {
    offset: u64,
    end: u64,
    flushed_to: SeqNo,
}

/// The file in which the last record was found. It can be read on after it has been removed.
#[derive(Debug)]
struct Current {
    id: u64,
    reader: RecordReader,
    /// Where the next record will start.
    after: u64,
    /// The last record taken: where it starts, and its header.
    last: Option<(u64, [u8; RECORD_HEADER_BYTES])>,
}

impl LogTail {
    /// The last sequence number taken; 0 if there is none.
    pub fn last_seq(&self) -> SeqNo {
        self.expected.map_or(0, |next| next - 1)
    }

    /// Hands what has been appended since to `sink`, record by record, in order; this answers
    /// whether it has taken the record. `wals` are the files of the log, ascending.
    pub fn advance(
        &mut self,
        fs: &dyn Fs,
        wals: &[(u64, PathBuf)],
        start: ReplayStart,
        sink: &mut dyn FnMut(&WalBatch<'_>) -> Result<bool>,
    ) -> Result<TailEnd> {
        assert!(wals.is_sorted_by(|a, b| a.0 < b.0), "the oldest first");
        self.durable = self.durable.max(start.durable).max(start.flushed_to);
        let mut again = false;
        loop {
            let records = self.records;
            self.stop = None;
            if let Some(mut current) = self.current.take() {
                let end = self.read_file(&mut current, start.flushed_to, sink);
                self.current = Some(current);
                if let Some(end) = end? {
                    return Ok(end);
                }
            }
            if self.find_next(fs, wals, start.flushed_to)? {
                continue;
            }
            if self.last_seq().max(start.flushed_to) >= self.durable {
                return Ok(TailEnd::End);
            }
            // A later file was looked at after this one, which may have grown in between.
            if again && self.records == records {
                let stop = self.stop.take().or_else(|| self.ended(wals));
                return Ok(stop.map_or(TailEnd::End, TailEnd::Damaged));
            }
            again = true;
        }
    }

    /// The error for a log that just ends, too early.
    fn ended(&self, wals: &[(u64, PathBuf)]) -> Option<Error> {
        let (path, offset) = match &self.current {
            Some(current) => (current.reader.path().to_owned(), current.after),
            None => (wals.last()?.1.clone(), 0),
        };
        let what = format!(
            "the log ends at sequence number {}, but was durable up to {}",
            self.last_seq(),
            self.durable
        );
        Some(Error::corruption(&path, offset, what))
    }

    /// Whether the log goes on with this record.
    fn follows(&self, batch: &WalBatch<'_>, flushed_to: SeqNo) -> bool {
        self.expected == Some(batch.first_seq) || self.is_flushed(batch, flushed_to)
    }

    /// Whether the log may go on with it because what is missing before it, if anything, is in
    /// tables.
    fn is_flushed(&self, batch: &WalBatch<'_>, flushed_to: SeqNo) -> bool {
        let seq = batch.first_seq;
        seq <= flushed_to + 1 && self.expected.is_none_or(|next| seq >= next)
    }

    /// Reads the current file on; `None` at its end.
    fn read_file(
        &mut self,
        current: &mut Current,
        flushed_to: SeqNo,
        sink: &mut dyn FnMut(&WalBatch<'_>) -> Result<bool>,
    ) -> Result<Option<TailEnd>> {
        let reader = &mut current.reader;
        reader.go_on_at(current.after)?;
        if let Some((offset, header)) = current.last
            && reader.record_header_at(offset)? != Some(header)
        {
            return Ok(Some(TailEnd::Undone));
        }
        let path = reader.path().to_owned();
        loop {
            let (offset, torn) = match reader.next()? {
                Step::Record { offset, payload } => {
                    let after = offset + (RECORD_HEADER_BYTES + payload.len()) as u64;
                    let batch = WalBatch::parse(payload)
                        .map_err(|what| Error::corruption(&path, offset, what))?;
                    self.durable = self.durable.max(batch.durable_seq);
                    let (seq, next) = (batch.first_seq, batch.next_seq());
                    assert!(offset >= current.after, "records come in order");
                    if !self.follows(&batch, flushed_to) {
                        self.stop = Some(self.gap(reader.path(), offset, seq));
                        return Ok(None);
                    }
                    assert!(self.expected.is_none_or(|expected| expected <= seq), "none twice");
                    if !sink(&batch)? {
                        return Ok(Some(TailEnd::Held));
                    }
                    (self.expected, current.after) = (Some(next), after);
                    current.last = reader.header_read_at(offset).map(|header| (offset, header));
                    self.records += 1;
                    continue;
                }
                Step::End { offset, torn } => (offset, torn),
            };
            let Some(what) = torn else { return Ok(None) };
            if let Some(after) = self.search(current.id, offset, reader, flushed_to)? {
                current.after = after;
                reader.go_on_at(after)?;
                continue;
            }
            self.stop = Some(Error::corruption(&path, offset, what));
            return Ok(None);
        }
    }

    fn gap(&self, path: &Path, offset: u64, seq: SeqNo) -> Error {
        let last = self.last_seq();
        let what =
            format!("the record starts at sequence number {seq}, the log before it ends at {last}");
        Error::corruption(path, offset, what)
    }

    /// Looks behind damage at `offset` for what later records say was durable, and for one with
    /// which the log goes on, since what is before it is in tables: where that starts.
    fn search(
        &mut self,
        id: u64,
        offset: u64,
        reader: &mut RecordReader,
        flushed_to: SeqNo,
    ) -> Result<Option<u64>> {
        let zeros = Zeros { offset, end: reader.bytes(), flushed_to };
        let is_zero = reader.record_header_at(offset)? == Some([0; RECORD_HEADER_BYTES]);
        if is_zero && self.zeros.get(&id) == Some(&zeros) {
            return Ok(None);
        }
        let next = self.expected.unwrap_or(1);
        let plausible = |payload: &[u8]| WalBatch::parse(payload).is_ok();
        // Each sequence number takes at least a byte of a record.
        let search = Search { serial_min: next, serial_base: next, plausible };
        while let Resync::Found(_) = reader.resync(search)? {
            while let Step::Record { offset, payload } = reader.next()? {
                let Ok(batch) = WalBatch::parse(payload) else { continue };
                self.durable = self.durable.max(batch.durable_seq);
                if self.is_flushed(&batch, flushed_to) {
                    return Ok(Some(offset));
                }
            }
        }
        if is_zero {
            self.zeros.insert(id, zeros);
        }
        Ok(None)
    }

    /// Goes to the next file whose first record is where the log goes on; whether there is one.
    fn find_next(
        &mut self,
        fs: &dyn Fs,
        wals: &[(u64, PathBuf)],
        flushed_to: SeqNo,
    ) -> Result<bool> {
        let after = self.current.as_ref().map(|current| current.id);
        for (id, path) in wals.iter().filter(|(id, _)| after.is_none_or(|after| *id > after)) {
            let mut reader = match RecordReader::open(fs, path, *id, WAL) {
                // Removed since it was listed: then all of it is in tables.
                Err(error) if error.is_not_found() => continue,
                other => other?,
            };
            let (offset, torn) = match reader.next()? {
                Step::Record { offset, payload } => {
                    let batch = WalBatch::parse(payload)
                        .map_err(|what| Error::corruption(path, offset, what))?;
                    if self.follows(&batch, flushed_to) {
                        let after = FILE_HEADER_BYTES as u64;
                        self.zeros = self.zeros.split_off(id);
                        self.current = Some(Current { id: *id, reader, after, last: None });
                        return Ok(true);
                    }
                    self.durable = self.durable.max(batch.durable_seq);
                    let (seq, stop) = (batch.first_seq, self.stop.take());
                    self.stop = Some(stop.unwrap_or_else(|| self.gap(path, offset, seq)));
                    continue;
                }
                Step::End { offset, torn } => (offset, torn),
            };
            // One made in advance is empty.
            if let Some(what) = torn {
                if let Some(after) = self.search(*id, offset, &mut reader, flushed_to)? {
                    self.current = Some(Current { id: *id, reader, after, last: None });
                    return Ok(true);
                }
                self.stop.get_or_insert_with(|| Error::corruption(path, offset, what));
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
