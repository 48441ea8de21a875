//! The mark of a prepared transaction whose writes are in tables: its name and these tables once
//! more, in a file of its own, for a repair of a database whose manifest is lost.
//!
//! ```text
//! 000123.prepared := a manifest of this number with one edit, which says what is prepared
//! ```
//!
//! The transaction is undecided for as long as one of its tables is called `000123.run`: a commit
//! calls all of them tables before its edit.

use super::edit::Edit;
use super::manifest::{MANIFEST, ManifestDump, ManifestLine, frame_edit};
use super::prepared::PreparedTables;
use crate::base::error::{Error, Result};
use crate::fs::Fs;
use crate::table::meta::FileId;
use crate::wal::writer::LogWriter;
use std::path::Path;

/// Writes the mark of this number to `path`. It and all new names in its directory are durable on
/// return.
pub fn write(fs: &dyn Fs, path: &Path, id: FileId, prepared: &PreparedTables) -> Result<()> {
    let mut writer = LogWriter::create_as(fs, path, id, MANIFEST)?;
    let edit = Edit { prepared: vec![prepared.clone()], ..Edit::default() };
    let mut record = Vec::new();
    frame_edit(&writer, 0, &edit, &mut record);
    writer.append(&record)?;
    writer.sync()
}

/// Reads a mark; or what is wrong with it.
pub fn read(
    fs: &dyn Fs,
    path: &Path,
    id: FileId,
) -> Result<std::result::Result<PreparedTables, String>> {
    let mut found = None;
    let lines = match ManifestDump::open(fs, path, id) {
        Err(Error::Corruption { what, .. }) => return Ok(Err(what)),
        other => other?,
    };
    for line in lines {
        match line? {
            ManifestLine::Edit { edit, .. } => found = found.or(edit.prepared.into_iter().next()),
            ManifestLine::Damage { what, .. } => return Ok(Err(what)),
        }
    }
    Ok(found.ok_or_else(|| "it was not completed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Env;
    use crate::fs::read_all;
    use crate::table::meta::TableMeta;

    #[test]
    fn a_mark_round_trips_and_damage_is_seen() {
        let fs = Env::memory().fs;
        let path = Path::new("/000007.prepared");
        let table = TableMeta { id: 5, smallest: b"a".into(), ..TableMeta::default() };
        let prepared = PreparedTables { xid: b"order 17".into(), trees: vec![(3, vec![table])] };
        write(&*fs, path, 7, &prepared).unwrap();
        assert_eq!(read(&*fs, path, 7).unwrap(), Ok(prepared));
        assert!(read(&*fs, path, 8).unwrap().is_err(), "of another number");
        let bytes = read_all(&*fs, path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs.create(path).unwrap().append(&damaged).unwrap();
            assert!(!matches!(read(&*fs, path, 7), Ok(Ok(_))), "flipped at {at}");
            fs.create(path).unwrap().append(&bytes[..at]).unwrap();
            assert!(!matches!(read(&*fs, path, 7), Ok(Ok(_))), "cut at {at}");
        }
    }
}
