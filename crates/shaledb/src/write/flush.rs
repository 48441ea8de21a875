//! Flush: sealed memtables become one table of level 0.

use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::SeqNo;
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;
use crate::compaction::drop::{Bottom, Decision, DropFilter, surviving_range_deletes};
use crate::compaction::older::Older;
use crate::fs::WriteFile;
use crate::iter::Merge;
use crate::memtable::{MemCursor, Memtable};
use crate::table::TableWriter;
use crate::table::meta::TableMeta;

/// Writes with `writer` what readers at `snapshots` (ascending, the newest reader included) can see
/// of `memtables`, newest first. Whoever gets the file makes it durable. `None` if nothing is left
/// to write; the file is then of no use.
///
/// Entries are dropped as in a compaction to level 0, which may lie on anything: older versions go,
/// deletes stay, but for those that delete a put of these memtables and, as `older` says, no more.
pub fn flush(
    memtables: &[Arc<Memtable>],
    snapshots: &[SeqNo],
    older: Option<Older<'_>>,
    mut writer: TableWriter,
) -> Result<Option<(TableMeta, Box<dyn WriteFile>)>> {
    assert!(!memtables.is_empty(), "a flush has something to write");
    let deletes: Vec<_> = memtables.iter().map(|memtable| memtable.range_deletes()).collect();
    let deletes = RangeDeletes::union(deletes.iter().map(|set| &**set));
    let surviving = surviving_range_deletes(&deletes, snapshots, &Bottom::Unknown);
    let mut filter = DropFilter::new(snapshots, Bottom::Unknown, deletes).asking(older);
    // The usual case of a lone memtable needs no merge.
    if let [memtable] = memtables {
        copy(memtable.cursor(), &mut filter, &mut writer)?;
    } else {
        let cursors: Vec<MemCursor> = memtables.iter().map(|memtable| memtable.cursor()).collect();
        copy(Merge::new(cursors), &mut filter, &mut writer)?;
    }
    if writer.entries() == 0 && surviving.is_empty() {
        return Ok(None);
    }
    writer.add_range_deletes(&surviving);
    writer.complete().map(Some)
}

fn copy(
    mut cursor: impl Cursor,
    filter: &mut DropFilter<'_>,
    writer: &mut TableWriter,
) -> Result<()> {
    cursor.seek_first()?;
    while cursor.valid() {
        let (seq, kind) = (cursor.seq(), cursor.kind());
        match filter.decide(cursor.key(), seq, kind) {
            Decision::Drop => {}
            Decision::Ask => {
                cursor.next()?;
                if !filter.has_met_all(&cursor) {
                    writer.add(filter.last_key(), seq, kind, b"")?;
                }
                continue;
            }
            Decision::Keep | Decision::KeepAsSeqZero => {
                writer.add(cursor.key(), seq, kind, cursor.value())?;
            }
        }
        cursor.next()?;
    }
    Ok(())
}
