//! Reads RocksDB's statistics texts, the only form in which the C interface gives these counters.
//! Their figures are rounded: gigabytes to three digits after the point at best.

use shale_lab::engine::Metrics;

/// From `rocksdb.dbstats` and `rocksdb.cfstats-no-file-histogram`.
pub(crate) fn metrics(database: &str, levels: &str) -> Metrics {
    // "Cumulative writes: 10M writes, 10M keys, 10M commit groups, 1.0 writes per commit group,
    //  ingest: 2.52 GB, 141.13 MB/s"
    let ingest = line(database, "Cumulative writes:");
    // "Cumulative WAL: 10M writes, 0 syncs, 10000000.00 writes per sync, written: 2.52 GB, ..."
    let wal = line(database, "Cumulative WAL:");
    // "Cumulative stall: 00:00:1.250 H:M:S, 0.0 percent"
    let stall = line(database, "Cumulative stall:");
    // "Flush(GB): cumulative 1.315, interval 0.000"
    let flush = line(levels, "Flush(GB):");
    // "Cumulative compaction: 5.02 GB write, 110.51 MB/s write, ..."; flushes are in it.
    let written = amount(line(levels, "Cumulative compaction:"), "");
    let flushed = first_number(after(flush, "cumulative")).map_or(0.0, |gb| gb * GB);
    Metrics {
        user_bytes: amount(ingest, "ingest:") as u64,
        wal_bytes: amount(wal, "written:") as u64,
        flush_bytes: flushed as u64,
        compaction_bytes: (written - flushed).max(0.0) as u64,
        stall_seconds: clock(stall),
        background_cpu_seconds: compaction_cpu(levels),
        compaction_table: table(levels),
    }
}

const GB: f64 = (1u64 << 30) as f64;

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find_map(|line| line.trim_start().strip_prefix(start)).unwrap_or("")
}

fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.find(mark).map_or("", |at| &text[at + mark.len()..])
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.trim_end_matches(',').parse().ok()
}

/// The bytes named after `mark`, such as ` 2.52 GB`.
fn amount(text: &str, mark: &str) -> f64 {
    let mut words = after(text, mark).split_whitespace();
    let number: f64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    match words.next().unwrap_or("").trim_end_matches(',') {
        "KB" => number * 1024.0,
        "MB" => number * 1024.0 * 1024.0,
        "GB" => number * GB,
        "TB" => number * GB * 1024.0,
        _ => number,
    }
}

/// Seconds of ` 00:01:2.500 H:M:S`.
fn clock(text: &str) -> f64 {
    let Some(word) = text.split_whitespace().next() else { return 0.0 };
    word.split(':').fold(0.0, |total, part| total * 60.0 + part.parse::<f64>().unwrap_or(0.0))
}

/// The column `CompMergeCPU(sec)` (named `CPU` here and there) of the line ` Sum`.
fn compaction_cpu(levels: &str) -> Option<f64> {
    let header = levels.lines().find(|line| line.trim_start().starts_with("Level"))?;
    let column = header.split_whitespace().position(|name| name.starts_with("CompMergeCPU"))?;
    let sum = levels.lines().find(|line| line.trim_start().starts_with("Sum"))?;
    // The size takes two words, such as `1.50 GB`, under one name.
    sum.split_whitespace().nth(column + 1)?.parse().ok()
}

/// The table of levels, without the statistics around it.
fn table(levels: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in levels.lines() {
        let start = line.trim_start();
        let wanted = start.starts_with("Level")
            || start.starts_with("---")
            || start.starts_with("Sum")
            || (start.starts_with('L') && start[1..].starts_with(|c: char| c.is_ascii_digit()));
        if wanted {
            lines.push(line);
        }
        if start.starts_with("Sum") {
            break;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read() {
        let database = "** DB Stats **\nUptime(secs): 18.0 total, 18.0 interval\n\
            Cumulative writes: 10M writes, 10M keys, 9M commit groups, 1.0 writes per commit \
            group, ingest: 2.50 GB, 141.13 MB/s\n\
            Cumulative WAL: 10M writes, 0 syncs, 10000000.00 writes per sync, written: 512.00 MB, \
            1.00 MB/s\nCumulative stall: 00:01:2.500 H:M:S, 0.0 percent\n";
        let levels = "** Compaction Stats [default] **\n\
            Level    Files   Size     Score Read(GB)  CompMergeCPU(sec) KeyIn\n\
            ------------------------\n\
            \x20 L0      8/5   303.64 MB   2.0   0.0   9.80  0\n\
            \x20Sum     45/0    2.24 GB   0.0   4.3  36.72  0\n\
            \x20Int     45/0    2.24 GB   0.0   4.3  36.72  0\n\
            Flush(GB): cumulative 1.500, interval 0.000\n\
            Cumulative compaction: 5.00 GB write, 110.51 MB/s write, 4.30 GB read, 1 MB/s read\n";
        let metrics = metrics(database, levels);
        assert_eq!(metrics.user_bytes, (2.5 * GB) as u64);
        assert_eq!(metrics.wal_bytes, 512 << 20);
        assert_eq!(metrics.flush_bytes, (1.5 * GB) as u64);
        assert_eq!(metrics.compaction_bytes, (3.5 * GB) as u64);
        assert_eq!(metrics.stall_seconds, 62.5);
        assert_eq!(metrics.background_cpu_seconds, Some(36.72));
        assert_eq!(metrics.compaction_table.lines().count(), 4);
    }

    #[test]
    fn other_texts_are_zero() {
        let metrics = metrics("", "no such thing");
        assert_eq!((metrics.user_bytes, metrics.compaction_bytes), (0, 0));
    }
}
