//! Reports on what a database is busy with and what it looks like, as JSON.

use crate::bytes::shale_bytes;
use crate::db::shale_db;
use crate::error::{Fail, shale_error};
use crate::guard::{can_store, give, guard, handle};
use serde_json::{Value, json};
use std::ffi::c_int;

/// What shale_report tells of. Fields may be added to what it gives.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum shale_report_kind {
    /// The transactions that have not ended, a list: id, age_seconds, isolation, optimistic,
    /// prepared (its name, or null), writes, write_bytes, keys_locked, trees, waits_for (a text, or
    /// null), blockers (ids).
    SHALE_REPORT_TRANSACTIONS = 0,
    /// Up to 10,000 locks, a list: transaction, tree, waits, text.
    SHALE_REPORT_LOCKS = 1,
    /// The last deadlock, or null: count, seconds_ago, text, deadlock (waits, victim).
    SHALE_REPORT_DEADLOCK = 2,
    /// The trees, a list: name, rows (an estimate), tables, bytes (of tables on disk), raw_bytes
    /// (before compression, about), ratio, entries, deletes, levels, memtable_bytes, blob_files,
    /// debt_bytes.
    SHALE_REPORT_TREES = 3,
    /// The levels of the trees, a list: tree, level, tables, bytes, target_bytes, codec, ratio, and
    /// what compactions into it have read, written and taken.
    SHALE_REPORT_COMPACTION = 4,
    /// The statistics: levels, compactions, stalls, cache, filters, latencies, CPU,
    /// lock_escalations (how often locks of keys were made ranges).
    SHALE_REPORT_STATS = 5,
    /// The same as tables to read, which is no JSON.
    SHALE_REPORT_STATS_TEXT = 6,
}

use shale_report_kind::*;

/// How many locks are reported.
const LOCKS_MAX: usize = 10_000;

/// A report of a shale_report_kind, as JSON.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shale_report(
    db: *const shale_db,
    kind: c_int,
    report: *mut *mut shale_bytes,
) -> *mut shale_error {
    guard(|| {
        can_store(report, "report")?;
        // SAFETY: a live handle.
        let db = &unsafe { handle(db, "db") }?.0;
        let bytes = match kind {
            n if n == SHALE_REPORT_STATS_TEXT as c_int => {
                shale_bytes::owned(db.stats().to_string())
            }
            n if n == SHALE_REPORT_STATS as c_int => shale_bytes::json(&db.stats())?,
            _ => shale_bytes::json(&report_of(db, kind)?)?,
        };
        // SAFETY: a place for a pointer.
        unsafe { give(report, "report", bytes) }
    })
}

fn report_of(db: &shaledb::Db, kind: c_int) -> Result<Value, Fail> {
    match kind {
        n if n == SHALE_REPORT_TRANSACTIONS as c_int => Ok(json!(db.transactions()?)),
        n if n == SHALE_REPORT_LOCKS as c_int => Ok(json!(db.locks(LOCKS_MAX)?)),
        n if n == SHALE_REPORT_DEADLOCK as c_int => {
            let last = db.last_deadlock()?;
            let reported = last.map(|last| {
                let text = last.deadlock.to_string();
                json!({
                    "count": last.count,
                    "seconds_ago": last.seconds_ago,
                    "text": text,
                    "deadlock": last.deadlock,
                })
            });
            Ok(reported.unwrap_or_default())
        }
        n if n == SHALE_REPORT_TREES as c_int => trees(db),
        n if n == SHALE_REPORT_COMPACTION as c_int => Ok(levels(db)),
        other => Err(Fail::Argument(format!("{other} is no kind of report"))),
    }
}

fn trees(db: &shaledb::Db) -> Result<Value, Fail> {
    let mut all = Vec::new();
    for stats in db.stats().trees {
        let rows = match db.tree(&stats.name).and_then(|tree| tree.estimate_rows(b"", None, 0)) {
            Ok(estimate) => estimate.rows,
            // It was dropped meanwhile.
            Err(shaledb::Error::NoSuchTree(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let sum = |of: fn(&shaledb::LevelStats) -> u64| stats.levels.iter().map(of).sum::<u64>();
        let bytes = sum(|level| level.bytes);
        let raw = stats.levels.iter().map(|level| level.bytes as f64 * level.ratio).sum::<f64>();
        all.push(json!({
            "name": stats.name,
            "rows": rows,
            "tables": sum(|level| level.tables),
            "bytes": bytes,
            "raw_bytes": raw.round() as u64,
            "ratio": if bytes > 0 { raw / bytes as f64 } else { 0.0 },
            "entries": sum(|level| level.entries),
            "deletes": sum(|level| level.deletes),
            "levels": stats.levels.iter().filter(|level| level.tables > 0).count(),
            "memtable_bytes": stats.memtable_bytes,
            "blob_files": stats.blob_files,
            "debt_bytes": stats.debt_bytes,
        }));
    }
    Ok(Value::Array(all))
}

fn levels(db: &shaledb::Db) -> Value {
    let mut all = Vec::new();
    for tree in db.stats().trees {
        for level in tree.levels {
            let mut row = json!(level);
            if let Value::Object(fields) = &mut row {
                fields.insert("tree".to_owned(), tree.name.clone().into());
            }
            all.push(row);
        }
    }
    Value::Array(all)
}
