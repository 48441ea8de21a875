//! The levels of a tree, as statistics show them.

use crate::compaction::policy::sizes::BlockWhy;
use crate::table::meta::Why;
use serde::Serialize;
use std::fmt;

const MB: f64 = 1e6;

/// One level of a tree: its shape now, and the jobs that wrote to it since the database was opened.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"a", b"1")?;
/// tree.flush()?;
/// for level in &db.stats().trees[0].levels {
///     println!("level {}: {} tables, {} bytes", level.level, level.tables, level.bytes);
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct LevelStats {
    /// The level's number: 0, where flushes write to, to 6, the last.
    pub level: usize,
    /// Table files.
    pub tables: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// The size that the level should have, in bytes; 0 if it should be empty.
    pub target_bytes: u64,
    /// Entries, deletes and older versions included.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Bytes of data blocks before compression divided by their bytes in the files; 0 if there are
    /// none.
    pub ratio: f64,
    /// The codec that the level's tables are written with now.
    pub codec: String,
    /// Why it is this one, in words.
    pub codec_why: &'static str,
    /// Whether it uses the tree's dictionary.
    pub dictionary: bool,
    /// Bytes of a block before compression, as the level's tables are written now.
    pub block_bytes: u64,
    /// Why it is this size, in words.
    pub block_why: &'static str,
    /// Bytes that its blocks have before compression, on average; 0 without any.
    pub block_bytes_mean: u64,
    /// Flushes (level 0) or compactions into this level.
    pub jobs: u64,
    /// Compactions that moved tables here, or dropped them, without reading.
    pub moves: u64,
    /// Bytes read by those jobs.
    pub read_bytes: u64,
    /// Bytes written by those jobs.
    pub write_bytes: u64,
    /// Bytes of tables moved here without reading.
    pub moved_bytes: u64,
    /// Blocks that those jobs reused as they were: not taken apart, not compressed again.
    pub blocks_reused: u64,
    /// Bytes of those blocks in the files; they count as read and as written, too.
    pub bytes_reused: u64,
    /// Bytes written divided by the bytes that arrived from the level above; 0 if none did.
    pub write_amp: f64,
    /// Wall seconds of the jobs.
    pub seconds: f64,
    /// Wall seconds for each job, on average.
    pub seconds_per_job: f64,
    /// CPU seconds of the jobs.
    pub cpu_seconds: f64,
    /// Entries that the jobs dropped: overwritten or deleted ones, and deletes with nothing below.
    pub dropped: u64,
    /// Times that a part of a job was installed before the rest of it was done.
    pub early_installs: u64,
}

/// A line for each level, and then what was chosen for each and why.
pub(super) fn write_levels(f: &mut fmt::Formatter<'_>, levels: &[LevelStats]) -> fmt::Result {
    writeln!(
        f,
        "{:>5} {:>6} {:>10} {:>10} {:>6} {:>8} {:>9} {:>9} {:>10} {:>9} {:>6} {:>6} {:>6} \
         {:>8} {:>9}",
        "level",
        "files",
        "MB",
        "target MB",
        "ratio",
        "codec",
        "read MB",
        "write MB",
        "reused MB",
        "moved MB",
        "w-amp",
        "jobs",
        "moves",
        "s/job",
        "CPU s"
    )?;
    for l in levels {
        writeln!(
            f,
            "{:>5} {:>6} {:>10.1} {:>10.1} {:>6.2} {:>8} {:>9.1} {:>9.1} {:>10.1} {:>9.1} \
             {:>6.2} {:>6} {:>6} {:>8.3} {:>9.2}",
            l.level,
            l.tables,
            l.bytes as f64 / MB,
            l.target_bytes as f64 / MB,
            l.ratio,
            l.codec,
            l.read_bytes as f64 / MB,
            l.write_bytes as f64 / MB,
            l.bytes_reused as f64 / MB,
            l.moved_bytes as f64 / MB,
            l.write_amp,
            l.jobs,
            l.moves,
            l.seconds_per_job,
            l.cpu_seconds
        )?;
    }
    for l in levels {
        if l.codec_why != Why::Set.words() {
            let with = if l.dictionary { " with the tree's dictionary" } else { "" };
            writeln!(f, "level {}: {}{with}, since {}", l.level, l.codec, l.codec_why)?;
        }
        if l.block_why != BlockWhy::Set.words() {
            let (kib, mean) = (l.block_bytes >> 10, l.block_bytes_mean as f64 / 1024.0);
            let what = format!("blocks of {kib} KiB, since {}", l.block_why);
            writeln!(f, "level {}: {what} (those that are there have {mean:.1} KiB)", l.level)?;
        }
    }
    Ok(())
}
