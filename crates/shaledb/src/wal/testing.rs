//! Logs for the tests of this module.

use super::payload::{begin, put_op};
use super::record::WAL;
use super::writer::LogWriter;
use crate::base::key::{Kind, SeqNo};
use crate::fs::Fs;
use crate::fs::mem::MemFs;
use std::path::{Path, PathBuf};

pub const DIR: &str = "/db";

pub fn path(id: u64) -> PathBuf {
    Path::new(DIR).join(format!("{id:06}.wal"))
}

pub fn disk() -> MemFs {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

/// A new WAL.
pub fn wal(fs: &MemFs, id: u64) -> LogWriter {
    LogWriter::create_as(fs, &path(id), id, WAL).unwrap()
}

/// Appends one record of `count` puts; answers where it starts.
pub fn append(wal: &mut LogWriter, first: SeqNo, count: u64, durable: SeqNo) -> u64 {
    let offset = wal.bytes();
    let mut framed = Vec::new();
    wal.framer().frame(&mut framed, |out| {
        begin(out, first, durable);
        for seq in first..first + count {
            put_op(out, Kind::Put, 1, &seq.to_be_bytes(), &value(seq));
        }
    });
    wal.append(&framed).unwrap();
    offset
}

pub fn value(seq: SeqNo) -> Vec<u8> {
    vec![seq as u8; 20 + (seq % 50) as usize]
}

/// Makes the file's content this, durably.
pub fn set_content(fs: &MemFs, path: &Path, content: &[u8]) {
    let mut file = fs.create(path).unwrap();
    file.append(content).unwrap();
    file.sync().unwrap();
    fs.sync_dir(Path::new(DIR)).unwrap();
}
