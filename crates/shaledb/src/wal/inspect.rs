//! Reads log files that may be damaged: for people ([`WalDump`]) and for repair ([`salvage`]).

use super::payload::{Entry, Op, WalBatch, prepared_ops};
use super::reader::{RecordReader, Resync, Search, Step};
use super::record::{Format, RECORD_HEADER_BYTES, WAL};
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::fs::Fs;
use serde::Serialize;
use std::ops::Range;
use std::path::Path;

/// What [`Piece::Damage`] says of zeros to the end of a file.
const ZEROS: &str = "zeros follow, to the end of the file";
/// What it says where the device answers with errors.
const UNREADABLE: &str = "the device cannot read it";

/// A part of a log file, as [`Pieces`] finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A record with a right checksum.
    Record {
        /// Where it starts.
        offset: u64,
        /// What it says.
        payload: &'a [u8],
    },
    /// Bytes that are no record.
    Damage {
        /// Where they start.
        offset: u64,
        /// How many they are.
        bytes: u64,
        /// What is wrong with the first of them.
        what: &'static str,
    },
}

/// All of a log file in pieces, sound or not, in order.
#[derive(Debug)]
pub struct Pieces {
    reader: RecordReader,
    plausible: fn(&[u8]) -> bool,
    serial_min: u64,
    done: bool,
}

impl Pieces {
    /// Opens a log file; `plausible` judges payloads behind damage.
    pub fn open(
        fs: &dyn Fs,
        path: &Path,
        id: u64,
        format: Format,
        plausible: fn(&[u8]) -> bool,
    ) -> Result<Pieces> {
        let reader = RecordReader::open_damaged(fs, path, id, format)?;
        Ok(Pieces { reader, plausible, serial_min: 0, done: false })
    }

    /// The next piece; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "the piece borrows the reader")]
    pub fn next(&mut self) -> Result<Option<Piece<'_>>> {
        if self.done {
            return Ok(None);
        }
        // A first look without keeping the record, whose borrow could not end before the search.
        let damage = match self.reader.peek_step()? {
            Ok(()) => None,
            Err((_, None)) => {
                self.done = true;
                return Ok(None);
            }
            Err((offset, Some(what))) => Some((offset, what)),
        };
        if let Some((offset, what)) = damage {
            let end = self.search()?;
            assert!(end >= offset, "damage ends behind its start");
            let zeros = self.done && offset > 0 && self.reader.has_only_zeros(offset)?;
            let what = match zeros {
                _ if self.reader.is_unreadable(offset..end) => UNREADABLE,
                true => ZEROS,
                false => what,
            };
            return Ok(Some(Piece::Damage { offset, bytes: end - offset, what }));
        }
        match self.reader.next()? {
            Step::Record { offset, payload } => {
                let serial = payload.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
                self.serial_min = serial.saturating_add(1);
                Ok(Some(Piece::Record { offset, payload }))
            }
            Step::End { .. } => Ok(None),
        }
    }

    /// Where the next sound record starts, or the end of the file.
    fn search(&mut self) -> Result<u64> {
        let search = Search {
            serial_min: self.serial_min,
            serial_base: if self.serial_min == 0 { SEQ_MAX } else { self.serial_min },
            plausible: self.plausible,
        };
        match self.reader.resync(search)? {
            Resync::Found(offset) => Ok(offset),
            Resync::Nothing | Resync::GaveUp => {
                self.done = true;
                Ok(self.reader.bytes())
            }
        }
    }
}

/// One line of a dump of a WAL.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.ends_with(".wal")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// use shaledb::inspect::{Inspection, WalLine, open_in};
///
/// let Inspection::Wal(mut records) = open_in(&env, &path)? else { panic!() };
/// match records.next().unwrap()? {
///     WalLine::Record { first_seq, puts, .. } => assert_eq!((first_seq, puts), (1, 1)),
///     WalLine::Damage { offset, what, .. } => panic!("damaged at byte {offset}: {what}"),
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WalLine {
    /// A sound record.
    Record {
        /// Its first byte in the file.
        offset: u64,
        /// Its length with its header, in bytes.
        bytes: u64,
        /// The sequence number of its first operation.
        first_seq: SeqNo,
        /// Up to where the log was durable when it was appended.
        durable_seq: SeqNo,
        /// How many sequence numbers it takes.
        count: u64,
        /// How many of its operations (or of those that it prepares) are puts, blobs included.
        puts: u64,
        /// How many are deletes.
        deletes: u64,
        /// How many are range deletes.
        range_deletes: u64,
        /// The bytes of keys and values in it.
        data_bytes: u64,
    },
    /// Bytes that are no record.
    Damage {
        /// Where they start.
        offset: u64,
        /// How many they are.
        bytes: u64,
        /// What is wrong with them.
        what: &'static str,
    },
}

/// The lines of a dump of a WAL, read one by one. What damage hides is passed over.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.ends_with(".wal")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// use shaledb::inspect::{Inspection, WalDump, open_in};
///
/// let Inspection::Wal(dump) = open_in(&env, &path)? else { panic!() };
/// let dump: WalDump = dump;
/// assert_eq!(dump.count(), 1);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Debug)]
pub struct WalDump(Pieces);

impl WalDump {
    /// Opens the WAL with this number; [`open`](crate::inspect::open) takes it from the name.
    ///
    /// ```
    /// # let env = shaledb::Env::memory();
    /// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # db.tree_or_create("t")?.put(b"a", b"1")?;
    /// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
    /// # let names = files.iter().map(|file| &file.name);
    /// # let name = names.filter(|name| name.ends_with(".wal")).next().unwrap();
    /// # let path = std::path::Path::new("/db").join(name);
    /// use shaledb::inspect::WalDump;
    ///
    /// let id = name.trim_end_matches(".wal").parse().unwrap();
    /// assert_eq!(WalDump::open(&*env.fs, &path, id)?.count(), 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open(fs: &dyn Fs, path: &Path, id: u64) -> Result<WalDump> {
        Ok(WalDump(Pieces::open(fs, path, id, WAL, is_batch)?))
    }
}

impl Iterator for WalDump {
    type Item = Result<WalLine>;

    fn next(&mut self) -> Option<Result<WalLine>> {
        match self.0.next() {
            Ok(Some(Piece::Damage { offset, bytes, what })) => {
                Some(Ok(WalLine::Damage { offset, bytes, what }))
            }
            Ok(Some(Piece::Record { offset, payload })) => Some(Ok(line(offset, payload))),
            Ok(None) => None,
            Err(error) => {
                self.0.done = true;
                Some(Err(error))
            }
        }
    }
}

fn line(offset: u64, payload: &[u8]) -> WalLine {
    let bytes = (RECORD_HEADER_BYTES + payload.len()) as u64;
    let batch = match WalBatch::parse(payload) {
        Ok(batch) => batch,
        Err(what) => return WalLine::Damage { offset, bytes, what },
    };
    let (mut puts, mut deletes, mut range_deletes, mut data_bytes) = (0, 0, 0, 0);
    let mut count = |op: Op<'_>| {
        match op.kind {
            Kind::Delete => deletes += 1,
            Kind::RangeDelete => range_deletes += 1,
            Kind::Put | Kind::Blob | Kind::Merge => puts += 1,
        }
        data_bytes += (op.key.len() + op.value.len()) as u64;
    };
    for entry in batch.entries() {
        match entry {
            Entry::Op(op) => count(op),
            Entry::Prepare { seq, ops, .. } => prepared_ops(ops, seq).for_each(&mut count),
            Entry::Commit { .. } | Entry::Rollback { .. } => {}
        }
    }
    let WalBatch { first_seq, durable_seq, count, .. } = batch;
    WalLine::Record {
        offset,
        bytes,
        first_seq,
        durable_seq,
        count,
        puts,
        deletes,
        range_deletes,
        data_bytes,
    }
}

fn is_batch(payload: &[u8]) -> bool {
    WalBatch::parse(payload).is_ok()
}

/// What a salvage of a WAL found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvage {
    /// How many records are sound.
    pub records: u64,
    /// The parts of the file that hold none, ascending. The last one reaches to the end of the
    /// file if the log's tail is damaged (or was never synced).
    pub lost: Vec<Range<u64>>,
}

/// Hands every sound record of a damaged WAL to `sink`, in order, passing over damage. What was
/// lost in between may belong before what follows: the result is not a state the database was in.
pub fn salvage(
    fs: &dyn Fs,
    path: &Path,
    id: u64,
    sink: &mut dyn FnMut(WalBatch<'_>) -> Result<()>,
) -> Result<Salvage> {
    let mut pieces = Pieces::open(fs, path, id, WAL, is_batch)?;
    let mut salvage = Salvage::default();
    while let Some(piece) = pieces.next()? {
        let lost = match piece {
            Piece::Damage { offset, bytes, .. } => offset..offset + bytes,
            Piece::Record { offset, payload } => match WalBatch::parse(payload) {
                Ok(batch) => {
                    salvage.records += 1;
                    sink(batch)?;
                    continue;
                }
                Err(_) => offset..offset + (RECORD_HEADER_BYTES + payload.len()) as u64,
            },
        };
        assert!(salvage.lost.last().is_none_or(|last| last.end <= lost.start), "in order");
        match salvage.lost.last_mut() {
            Some(last) if last.end == lost.start => last.end = lost.end,
            _ => salvage.lost.push(lost),
        }
    }
    Ok(salvage)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
