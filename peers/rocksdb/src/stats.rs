//! Reads RocksDB's statistics texts, the only form in which the C interface gives these counters.
//! Their figures are rounded: the user's bytes and the log's to a hundredth of a GB, flushes and
//! levels to a thousandth.

use shaledb_lab::stores::engine::{Level, Metrics};

/// From `rocksdb.dbstats` and each family's name and `rocksdb.cfstats-no-file-histogram`. Without
/// families it is not known what flushes and compactions did.
pub(crate) fn metrics(database: &str, families: &[(&str, String)]) -> Metrics {
    // "Cumulative writes: 10M writes, 10M keys, 10M commit groups, 1.0 writes per commit group,
    //  ingest: 2.52 GB, 141.13 MB/s"
    let ingest = line(database, "Cumulative writes:");
    // "Cumulative WAL: 10M writes, 0 syncs, 10000000.00 writes per sync, written: 2.52 GB, ..."
    let wal = line(database, "Cumulative WAL:");
    // "Cumulative stall: 00:00:1.250 H:M:S, 0.0 percent"
    let stall = line(database, "Cumulative stall:");
    let mut sum = Metrics {
        user_bytes: amount(ingest, "ingest:") as u64,
        wal_bytes: amount(wal, "written:") as u64,
        stall_seconds: clock(stall),
        ..Metrics::default()
    };
    if families.is_empty() {
        return Metrics { table: database.to_owned(), ..sum };
    }
    let (mut flushes, mut compactions) = (0, 0);
    for (name, text) in families {
        // "Flush(GB): cumulative 1.315, interval 0.000"
        let flush = line(text, "Flush(GB):");
        // "Cumulative compaction: 5.02 GB write, 110.51 MB/s write, ..."; flushes are in it.
        let written = amount(line(text, "Cumulative compaction:"), "");
        let flushed = first_number(after(flush, "cumulative")).map_or(0.0, |gb| gb * GB);
        flushes += flushed as u64;
        compactions += (written - flushed).max(0.0) as u64;
        let levels = levels(text);
        let cpu: f64 = levels.iter().map(|level| level.cpu_seconds).sum();
        sum.background_cpu_seconds = Some(sum.background_cpu_seconds.unwrap_or(0.0) + cpu);
        levels.into_iter().for_each(|level| add(&mut sum.levels, level));
        sum.table.push_str(&format!("[{name}]\n{}\n", table(text)));
    }
    (sum.flush_bytes, sum.compaction_bytes) = (Some(flushes), Some(compactions));
    sum.levels.sort_by_key(|level| level.level);
    // The jobs of level 0 are flushes, but for the few that compact level 0 into itself.
    let below = || sum.levels.iter().filter(|level| level.level > 0);
    sum.compaction_seconds = Some(below().map(|level| level.seconds).sum());
    sum.compaction_cpu_seconds = Some(below().map(|level| level.cpu_seconds).sum());
    sum
}

fn add(levels: &mut Vec<Level>, more: Level) {
    let Some(level) = levels.iter_mut().find(|level| level.level == more.level) else {
        return levels.push(more);
    };
    level.files += more.files;
    level.bytes += more.bytes;
    level.read_bytes += more.read_bytes;
    level.written_bytes += more.written_bytes;
    level.jobs += more.jobs;
    level.seconds += more.seconds;
    level.cpu_seconds += more.cpu_seconds;
}

/// The rows of the table of levels.
fn levels(text: &str) -> Vec<Level> {
    let header = text.lines().find(|line| line.trim_start().starts_with("Level"));
    let names: Vec<&str> = header.unwrap_or("").split_whitespace().collect();
    let mut levels = Vec::new();
    for line in table(text).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(level) = words.first().and_then(|word| word.strip_prefix('L')?.parse().ok())
        else {
            continue;
        };
        // The size takes two words, such as `1.50 GB`, under one name.
        let at = |name: &str| -> f64 {
            let column = names.iter().position(|known| *known == name);
            let column = column.map(|column| if column > 2 { column + 1 } else { column });
            column.and_then(|column| words.get(column)?.parse().ok()).unwrap_or(0.0)
        };
        let files = words.get(1).and_then(|word| word.split('/').next()?.parse().ok());
        levels.push(Level {
            level,
            files: files.unwrap_or(0),
            bytes: amount(&words[2.min(words.len())..].join(" "), "") as u64,
            read_bytes: (at("Read(GB)") * GB) as u64,
            written_bytes: (at("Write(GB)") * GB) as u64,
            jobs: at("Comp(cnt)") as u64,
            seconds: at("Comp(sec)"),
            cpu_seconds: at("CompMergeCPU(sec)"),
            ..Level::default()
        });
    }
    levels
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
            Level    Files   Size     Score Read(GB)  Write(GB) Comp(sec) CompMergeCPU(sec) \
            Comp(cnt) Avg(sec) KeyIn\n\
            ------------------------\n\
            \x20 L0      8/5   303.00 MB   2.0   0.0   1.5   9.9  9.80  12 0.8 0\n\
            \x20 L5      4/0     1.50 GB   2.0   4.3   3.5  28.0 26.92   6 4.6 0\n\
            \x20Sum     45/0     2.24 GB   0.0   4.3   5.0  37.9 36.72  18 2.1 0\n\
            \x20Int     45/0     2.24 GB   0.0   4.3   5.0  37.9 36.72  18 2.1 0\n\
            Flush(GB): cumulative 1.500, interval 0.000\n\
            Cumulative compaction: 5.00 GB write, 110.51 MB/s write, 4.30 GB read, 1 MB/s read\n";
        let one = metrics(database, &[("a", levels.to_owned())]);
        assert_eq!(one.user_bytes, (2.5 * GB) as u64);
        assert_eq!(one.wal_bytes, 512 << 20);
        assert_eq!(one.flush_bytes, Some((1.5 * GB) as u64));
        assert_eq!(one.compaction_bytes, Some((3.5 * GB) as u64));
        assert_eq!(one.stall_seconds, 62.5);
        assert!((one.background_cpu_seconds.unwrap() - 36.72).abs() < 1e-9);
        assert_eq!((one.compaction_seconds, one.compaction_cpu_seconds), (Some(28.0), Some(26.92)));
        assert_eq!(one.table.lines().count(), 6);

        let two = metrics(database, &[("a", levels.to_owned()), ("b", levels.to_owned())]);
        assert_eq!(two.compaction_bytes, Some(2 * (3.5 * GB) as u64));
        let levels: Vec<_> = two.levels.iter().map(|level| (level.level, level.files)).collect();
        assert_eq!(levels, [(0, 16), (5, 8)]);
        let level = &two.levels[0];
        assert_eq!((level.bytes, level.jobs, level.seconds), (606 << 20, 24, 19.8));
    }

    #[test]
    fn other_texts_are_zero() {
        let metrics = metrics("", &[("a", "no such thing".to_owned())]);
        assert_eq!((metrics.user_bytes, metrics.compaction_bytes), (0, Some(0)));
        assert!(metrics.levels.is_empty());
    }
}
