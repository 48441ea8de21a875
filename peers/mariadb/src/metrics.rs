//! What the server counts, from its status variables and MyRocks's tables of the information
//! schema.

use crate::settings::Form;
use crate::sql::{Sql, number};
use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use shaledb_lab::stores::engine::{Level, Metrics};
use std::collections::BTreeMap;

/// What was counted since the server began.
pub(crate) fn metrics(form: Form, connection: &mut Conn) -> Sql<Metrics> {
    match form {
        Form::Myrocks => myrocks(connection),
        Form::Shale => shale(connection),
        _ => innodb(connection),
    }
}

fn status(connection: &mut Conn, names: &[&str]) -> Sql<BTreeMap<String, u64>> {
    let query = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ('{}')", names.join("','"));
    let rows: Vec<Row> = connection.query(query)?;
    let pair = |row: &Row| (row.get::<String, _>(0).unwrap_or_default(), number(row, 1));
    Ok(rows.iter().map(pair).collect())
}

fn innodb(connection: &mut Conn) -> Sql<Metrics> {
    let names = [
        "Innodb_os_log_written",
        "Innodb_data_written",
        "Innodb_data_read",
        "Innodb_pages_written",
        "Innodb_pages_read",
        "Innodb_dblwr_pages_written",
        "Innodb_buffer_pool_wait_free",
        "Innodb_buffer_pool_pages_dirty",
        "Innodb_history_list_length",
        "Innodb_row_lock_waits",
        "Innodb_row_lock_time",
        "Innodb_deadlocks",
    ];
    let known = status(connection, &names)?;
    let of = |name: &str| known.get(name).copied().unwrap_or(0);
    let log = of("Innodb_os_log_written");
    Ok(Metrics {
        wal_bytes: log,
        flush_bytes: Some(of("Innodb_data_written").saturating_sub(log)),
        table: known.iter().map(|(name, value)| format!("{name} {value}\n")).collect(),
        ..Metrics::default()
    })
}

fn myrocks(connection: &mut Conn) -> Sql<Metrics> {
    let names = [
        "Rocksdb_wal_bytes",
        "Rocksdb_flush_write_bytes",
        "Rocksdb_compact_write_bytes",
        "Rocksdb_compact_read_bytes",
        "Rocksdb_stall_micros",
        "Rocksdb_bytes_written",
        "Rocksdb_block_cache_miss",
        "Rocksdb_block_cache_hit",
        "Rocksdb_row_lock_deadlocks",
        "Rocksdb_row_lock_wait_timeouts",
    ];
    let known = status(connection, &names)?;
    let of = |name: &str| known.get(name).copied().unwrap_or(0);
    let levels = levels(connection)?;
    // What has level 0 as its output is flushes, but for merges of level 0 into itself. RocksDB's
    // own counters have flushes of the recovery among compactions.
    let compactions = || levels.iter().filter(|level| level.level > 0);
    let compacted = compactions().map(|level| level.written_bytes).sum();
    let written = of("Rocksdb_flush_write_bytes") + of("Rocksdb_compact_write_bytes");
    Ok(Metrics {
        compaction_seconds: Some(compactions().map(|level| level.seconds).sum()),
        compaction_cpu_seconds: Some(compactions().map(|level| level.cpu_seconds).sum()),
        background_cpu_seconds: Some(levels.iter().map(|level| level.cpu_seconds).sum()),
        levels,
        wal_bytes: of("Rocksdb_wal_bytes"),
        flush_bytes: Some(written.saturating_sub(compacted)),
        compaction_bytes: Some(compacted),
        stall_seconds: of("Rocksdb_stall_micros") as f64 / 1e6,
        table: known.iter().map(|(name, value)| format!("{name} {value}\n")).collect(),
        ..Metrics::default()
    })
}

fn shale(connection: &mut Conn) -> Sql<Metrics> {
    let rows: Vec<Row> = connection.query("SHOW GLOBAL STATUS LIKE 'Shale\\_%'")?;
    let text = |row: &Row, column| row.get::<String, _>(column).unwrap_or_default();
    let known: BTreeMap<String, String> =
        rows.iter().map(|row| (text(row, 0), text(row, 1))).collect();
    let of = |name: &str| known.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
    // Of all trees together.
    let query = "SELECT level, SUM(files), SUM(bytes), SUM(jobs), SUM(read_bytes), \
                 SUM(written_bytes) FROM information_schema.shale_levels GROUP BY level";
    let rows: Vec<Row> = connection.query(query)?;
    let level = |row: &Row| Level {
        level: number(row, 0) as u32,
        files: number(row, 1),
        bytes: number(row, 2),
        jobs: number(row, 3),
        read_bytes: number(row, 4),
        written_bytes: number(row, 5),
        ..Level::default()
    };
    Ok(Metrics {
        levels: rows.iter().map(level).collect(),
        user_bytes: of("Shale_bytes_written_by_users"),
        wal_bytes: of("Shale_bytes_written_to_log"),
        flush_bytes: Some(of("Shale_bytes_flushed")),
        compaction_bytes: Some(of("Shale_bytes_compacted")),
        stall_seconds: of("Shale_stall_microseconds") as f64 / 1e6,
        table: known.iter().map(|(name, value)| format!("{name} {value}\n")).collect(),
        ..Metrics::default()
    })
}

/// The levels of all column families together.
fn levels(connection: &mut Conn) -> Sql<Vec<Level>> {
    let query = "SELECT level, type, SUM(value) FROM information_schema.rocksdb_compaction_stats \
                 GROUP BY level, type";
    let rows: Vec<(String, String, f64)> = connection.query(query)?;
    let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
    for (name, kind, value) in rows {
        // Beside `L0`, `L1`, ... there is `Sum`.
        let Some(number) = name.strip_prefix('L').and_then(|number| number.parse().ok()) else {
            continue;
        };
        let level = levels.entry(number).or_default();
        level.level = number;
        let count = value as u64;
        let gigabytes = (value * f64::from(1 << 30)) as u64;
        match kind.as_str() {
            "NumFiles" => level.files = count,
            "SizeBytes" => level.bytes = count,
            "ReadGB" => level.read_bytes = gigabytes,
            "WriteGB" => level.written_bytes = gigabytes,
            "CompCount" => level.jobs = count,
            "CompSec" => level.seconds = value,
            "CompMergeCPU" => level.cpu_seconds = value,
            _ => {}
        }
    }
    Ok(levels.into_values().collect())
}
