//! Reads the WALs of a database back, oldest first, and decides where the log ends.
//!
//! A crash may take or garble any sector that was not synced, so behind the last synced byte
//! anything may be found: nothing, zeros, old blocks, a hole with sound records after it. Before
//! the last synced byte everything must be there. How far that was, the log tells itself: each
//! record carries the sequence number up to which the log was durable when it was appended. So:
//!
//! 1. Records are accepted as long as they are sound and their sequence numbers are consecutive,
//!    across files. (A torn tail in one file followed by a file that goes on with exactly the next
//!    number is what an earlier recovery leaves; nothing is missing. Nor is anything missing if
//!    all numbers of a gap are covered by tables.)
//!    Zeros up to the end of a file, which a process that was killed leaves behind its last record,
//!    are the end of that file.
//! 2. Where that ends, at sequence number L, the rest of all files is only searched for sound
//!    records, for what they say was durable: D is the largest such number of all sound records
//!    and of the manifest, which also has the numbers in tables.
//! 3. L < D: something that was durable is missing; [`Error::Corruption`] where the log ended.
//!    Otherwise the log ends at L and the rest, which was never durable, is dropped.

use super::payload::WalBatch;
use super::reader::{RecordReader, Resync, Search, Step};
use super::record::{FILE_HEADER_BYTES, WAL};
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::fs::Fs;
use std::path::{Path, PathBuf};

/// What is known before the log is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayStart {
    /// Every operation up to this number is in tables. The log starts at the next one or before.
    pub flushed_to: SeqNo,
    /// Every operation up to this number must be found, in tables or in the log.
    pub durable: SeqNo,
    /// The log must go on at least to this length of the file of this number.
    pub end: Option<(u64, u64)>,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayEnd {
    /// The last sequence number in use: of the log's last record, or what was flushed before.
    pub last_seq: SeqNo,
    /// Every operation up to this number is known to have been durable before the replay.
    pub durable_seq: SeqNo,
    /// The file that holds the last accepted record (or a sound header, if it has none); 0 if
    /// there is no such file.
    pub end_file: u64,
    /// Where in that file the last accepted record ends.
    pub end_offset: u64,
    /// How many records were accepted.
    pub records: u64,
    /// How many bytes behind accepted records are left out of the log.
    pub dropped_bytes: u64,
    /// From this number on nothing is missing in the log, up to its end and to what is in tables.
    pub whole_from: SeqNo,
    /// Whether the log ends with the mark of a close in good order.
    pub clean: bool,
    /// The file and the offset of the first damage behind which the log goes on, if any: what was
    /// there is in tables.
    pub skipped: Option<(u64, u64)>,
}

/// Where the log was first found not to go on.
struct Stop {
    id: u64,
    path: PathBuf,
    offset: u64,
    what: String,
}

/// Reads the WALs of the database in `dir` (ascending by number) and hands the records to `sink`
/// in order. See the module for what counts as damage.
pub fn replay(
    fs: &dyn Fs,
    dir: &Path,
    wals: &[(u64, PathBuf)],
    start: ReplayStart,
    sink: &mut dyn FnMut(WalBatch<'_>) -> Result<()>,
) -> Result<ReplayEnd> {
    assert!(wals.is_sorted_by(|a, b| a.0 < b.0), "the oldest first");
    let mut replayer = Replayer {
        id: 0,
        flushed_to: start.flushed_to,
        expected: None,
        durable: start.durable.max(start.flushed_to),
        searched: 0,
        end_min: start.end,
        end: ReplayEnd { last_seq: start.flushed_to, ..ReplayEnd::default() },
        stop: None,
        zeros: None,
    };
    for (id, path) in wals {
        replayer.file(RecordReader::open(fs, path, *id, WAL)?, *id, sink)?;
    }
    replayer.finish(dir, wals)
}

struct Replayer {
    /// The file being read.
    id: u64,
    flushed_to: SeqNo,
    /// The sequence number that the next record starts with; `None` before the first one.
    expected: Option<SeqNo>,
    durable: SeqNo,
    /// The bytes of the files since the log was last known to go on.
    searched: u64,
    /// The file and the offset that it must go on to.
    end_min: Option<(u64, u64)>,
    end: ReplayEnd,
    stop: Option<Stop>,
    /// The first file since the log was last known to go on that ends in zeros: a stop if it turns
    /// out that something is missing.
    zeros: Option<Stop>,
}

impl Replayer {
    fn file(
        &mut self,
        mut reader: RecordReader,
        id: u64,
        sink: &mut dyn FnMut(WalBatch<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut good = 0;
        self.id = id;
        if !reader.header_damaged() {
            good = FILE_HEADER_BYTES as u64;
            if self.stop.is_none() {
                (self.end.end_file, self.end.end_offset) = (id, good);
            }
        }
        let path = reader.path().to_owned();
        // Whether the file's first record is still to come: there a stopped log may go on.
        let mut first = true;
        loop {
            let (offset, torn) = match reader.next()? {
                Step::Record { offset, payload } => {
                    let batch = WalBatch::parse(payload)
                        .map_err(|what| Error::corruption(&path, offset, what))?;
                    self.durable = self.durable.max(batch.durable_seq);
                    let after =
                        offset + (super::record::RECORD_HEADER_BYTES + payload.len()) as u64;
                    if self.follows(&batch, first) {
                        self.accept(&batch, id, after);
                        good = after;
                        sink(batch)?;
                    } else {
                        self.stop_at_gap(&path, offset, &batch);
                    }
                    first = false;
                    continue;
                }
                Step::End { offset, torn } => (offset, torn),
            };
            let Some(what) = torn else { break };
            if offset > 0 && reader.has_only_zeros(offset)? {
                self.end.clean = false;
                let what = "zeros follow".to_owned();
                self.zeros.get_or_insert_with(|| Stop { id, path: path.clone(), offset, what });
                break;
            }
            first = false;
            self.stop_at(&path, offset, what.to_owned());
            if !self.search(&mut reader)? {
                break;
            }
        }
        self.searched += reader.bytes();
        self.end.dropped_bytes += reader.bytes().saturating_sub(good);
        Ok(())
    }

    /// Whether the log goes on with this record; `first` if it is the first of its file.
    fn follows(&self, batch: &WalBatch<'_>, first: bool) -> bool {
        let seq = batch.first_seq;
        // What is missing before it, if anything, is in tables.
        let flushed = seq <= self.flushed_to + 1 && self.expected.is_none_or(|next| seq >= next);
        flushed || (self.expected == Some(seq) && (first || self.stop.is_none()))
    }

    fn accept(&mut self, batch: &WalBatch<'_>, id: u64, after: u64) {
        let next = batch.next_seq();
        assert!(self.expected.is_none_or(|expected| expected <= batch.first_seq), "none twice");
        assert!((self.end.end_file, self.end.end_offset) < (id, after), "the log goes on only");
        // Without a gap it is the torn end of a file that an earlier recovery has left.
        if let Some(stop) = self.stop.take()
            && self.expected != Some(batch.first_seq)
        {
            self.end.skipped.get_or_insert((stop.id, stop.offset));
        }
        if self.expected != Some(batch.first_seq) {
            self.end.whole_from = batch.first_seq;
        }
        self.zeros = None;
        self.expected = Some(next);
        self.searched = 0;
        self.end.last_seq = self.end.last_seq.max(next - 1);
        (self.end.end_file, self.end.end_offset) = (id, after);
        self.end.records += 1;
        self.end.clean = batch.count == 0 && batch.durable_seq + 1 == batch.first_seq;
    }

    fn stop_at(&mut self, path: &Path, offset: u64, what: String) {
        self.end.clean = false;
        let id = self.id;
        self.stop.get_or_insert_with(|| Stop { id, path: path.to_owned(), offset, what });
    }

    fn stop_at_gap(&mut self, path: &Path, offset: u64, batch: &WalBatch<'_>) {
        let name = |zeros: &Stop| format!(", with zeros behind it in {}", zeros.path.display());
        let what = format!(
            "the record starts at sequence number {}, the log before it ends at {}{}",
            batch.first_seq,
            self.end.last_seq,
            self.zeros.as_ref().map(name).unwrap_or_default()
        );
        self.stop_at(path, offset, what);
    }

    /// Goes to the next sound record behind damage; false if there is none.
    fn search(&mut self, reader: &mut RecordReader) -> Result<bool> {
        let next = self.expected.unwrap_or(self.flushed_to + 1);
        let search = Search {
            serial_min: next,
            // Each sequence number takes at least a byte of a record.
            serial_base: next.saturating_add(self.searched),
            plausible: |payload| WalBatch::parse(payload).is_ok(),
        };
        match reader.resync(search)? {
            Resync::Found(_) => Ok(true),
            Resync::Nothing => Ok(false),
            Resync::GaveUp => Err(self.corruption(
                reader.path(),
                "; so much of what follows looks like records that it cannot be told whether \
                 durable ones are among them",
            )),
        }
    }

    /// The error for a log that ends too early, where it ended.
    fn corruption(&self, path: &Path, note: &str) -> Error {
        match self.stop.as_ref().or(self.zeros.as_ref()) {
            Some(stop) => Error::corruption(&stop.path, stop.offset, stop.what.clone() + note),
            None => Error::corruption(path, self.end.end_offset, "the log ends".to_owned() + note),
        }
    }

    fn finish(self, dir: &Path, wals: &[(u64, PathBuf)]) -> Result<ReplayEnd> {
        let (last, durable) = (self.end.last_seq, self.durable);
        assert!(durable >= self.flushed_to && last >= self.flushed_to, "tables are durable");
        assert!(self.expected.is_none_or(|next| next <= last + 1), "what was accepted counts");
        if last < durable {
            let path = wals.last().map_or(dir, |(_, path)| path);
            let note = format!(
                " (the log can be read up to sequence number {last}, but was durable up to \
                 {durable})"
            );
            return Err(self.corruption(path, &note));
        }
        if let Some((id, bytes)) = self.end_min
            && (self.end.end_file, self.end.end_offset) < (id, bytes)
        {
            let found = wals.iter().find(|(other, _)| *other == id);
            let path = found.map_or(dir, |(_, path)| path);
            let note = format!(" (it was sound up to byte {bytes} when the database was closed)");
            return Err(self.corruption(path, &note));
        }
        let flushed = self.flushed_to + 1;
        let ends_before = self.expected.is_none_or(|next| next < flushed);
        let whole_from = if ends_before { flushed } else { self.end.whole_from };
        Ok(ReplayEnd { durable_seq: durable, whole_from, ..self.end })
    }
}

/// Cuts off what a replay dropped, so that a new WAL can continue the log: removes the files after
/// the last accepted record, newest first, and what follows it in its own file.
pub fn cut(fs: &dyn Fs, dir: &Path, wals: &[(u64, PathBuf)], end: &ReplayEnd) -> Result<()> {
    if end.dropped_bytes == 0 {
        return Ok(());
    }
    for (_, path) in wals.iter().rev().take_while(|(id, _)| *id > end.end_file) {
        fs.remove(path)?;
    }
    fs.sync_dir(dir)?;
    if let Some((_, path)) = wals.iter().find(|(id, _)| *id == end.end_file) {
        assert!(end.end_offset >= FILE_HEADER_BYTES as u64, "a log keeps its header");
        let mut file = fs.append(path)?;
        if file.len() > end.end_offset {
            file.truncate(end.end_offset)?;
            file.sync()?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
