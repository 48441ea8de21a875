//! Flush: sealed memtables become one table of level 0.

use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::SeqNo;
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;
use crate::fs::WriteFile;
use crate::iter::Merge;
use crate::memtable::{MemCursor, Memtable};
use crate::table::TableWriter;
use crate::table::meta::TableMeta;

/// Writes what snapshots and the newest reader can see of `memtables` with `writer`. Whoever gets
/// the file makes it durable. `None` if nothing is left to write; the file is then of no use.
///
/// Entries are judged as in a compaction whose output lies on everything else: older versions go,
/// deletes stay. (The judge itself is in `compaction`, above this module, so it is passed in.)
pub fn flush(
    memtables: &[Arc<Memtable>],
    mut judge: impl FnMut(&[u8], SeqNo, crate::base::key::Kind) -> bool,
    range_deletes: &RangeDeletes,
    mut writer: TableWriter,
) -> Result<Option<(TableMeta, Box<dyn WriteFile>)>> {
    let cursors: Vec<MemCursor> = memtables.iter().map(|memtable| memtable.cursor()).collect();
    if let Ok([cursor]) = <[MemCursor; 1]>::try_from(cursors) {
        copy(cursor, &mut judge, &mut writer)?;
    } else {
        let cursors = memtables.iter().map(|memtable| memtable.cursor()).collect();
        copy(Merge::new(cursors), &mut judge, &mut writer)?;
    }
    if writer.entries() == 0 && range_deletes.is_empty() {
        return Ok(None);
    }
    writer.add_range_deletes(range_deletes);
    writer.complete().map(Some)
}

fn copy(
    mut cursor: impl Cursor,
    judge: &mut impl FnMut(&[u8], SeqNo, crate::base::key::Kind) -> bool,
    writer: &mut TableWriter,
) -> Result<()> {
    cursor.seek_first()?;
    while cursor.valid() {
        if judge(cursor.key(), cursor.seq(), cursor.kind()) {
            writer.add(cursor.key(), cursor.seq(), cursor.kind(), cursor.value())?;
        }
        cursor.next()?;
    }
    Ok(())
}
