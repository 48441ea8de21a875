//! Prepares in the new database what was prepared in the old one.

use super::options::RepairProgress;
use super::report::RepairReport;
use super::rows::{note_table, open_blob, read_table};
use super::work::Work;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::Kind;
use crate::db::{Db, Transaction, TransactionOptions, Tree};
use crate::table::format::{FileKind, file_name};
use crate::table::meta::TableMeta;
use crate::version::TreeId;
use crate::wal::OpIter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was in the log.
pub fn logged(
    work: &Work<'_>,
    db: &Db,
    trees: &BTreeMap<TreeId, Tree>,
    xid: &[u8],
    ops: &[u8],
    report: &mut RepairReport,
) -> Result<()> {
    let mut transaction = db.begin(TransactionOptions::default())?;
    for op in OpIter::new(ops, 1) {
        // One that is not there was dropped.
        let Some(tree) = trees.get(&op.tree) else { continue };
        match op.kind {
            Kind::RangeDelete => transaction.delete_range(tree, op.key, op.value)?,
            kind => write(work, &mut transaction, tree, (op.key, kind, op.value), report)?,
        }
    }
    transaction.prepare(xid).map(drop)
}

/// What was in tables.
pub fn in_tables(
    work: &mut Work<'_>,
    db: &Db,
    trees: &BTreeMap<TreeId, Tree>,
    (xid, tables): (&[u8], &[(TreeId, Vec<TableMeta>)]),
    report: &mut RepairReport,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<()> {
    let mut transaction = db.begin(TransactionOptions::default())?;
    for (id, metas) in tables {
        let Some(tree) = trees.get(id) else { continue };
        for meta in metas {
            // A commit that was not made may have named it.
            let there = [FileKind::Run, FileKind::Table]
                .into_iter()
                .find(|kind| work.files.contains_key(&(*kind, meta.id)));
            let Some(kind) = there else {
                let what = "it is missing, and with it writes of a prepared transaction";
                report.note(&file_name(FileKind::Table, meta.id), Some(tree.name()), what);
                continue;
            };
            let table = Arc::new(read_table(work, (kind, meta.id), 0, progress)?);
            note_table(report, Some(tree.name()), &table, Some(meta));
            for range in table.ranges.fragments() {
                transaction.delete_range(tree, &range.start, &range.end)?;
            }
            let mut rows = table.scan();
            rows.seek_first()?;
            while rows.valid() {
                let row = (rows.key(), rows.kind(), rows.value());
                write(work, &mut transaction, tree, row, report)?;
                rows.next()?;
            }
        }
    }
    transaction.prepare(xid).map(drop)
}

fn write(
    work: &Work<'_>,
    transaction: &mut Transaction,
    tree: &Tree,
    (key, kind, value): (&[u8], Kind, &[u8]),
    report: &mut RepairReport,
) -> Result<()> {
    match kind {
        Kind::Delete => transaction.delete(tree, key),
        Kind::Put | Kind::Merge | Kind::RangeDelete => transaction.put(tree, key, value),
        Kind::Blob => match open_blob(work, value)? {
            Ok(mut reader) => transaction.put(tree, key, &reader.read_all()?),
            Err((name, lost)) => {
                let what = "a write of a prepared transaction is lost";
                report.note_lost(&name, Some(tree.name()), what, vec![lost]);
                Ok(())
            }
        },
    }
}
