//! Real databases of some rows, made as a load makes them, and what they take: the sample's and,
//! for `--check`, that of all rows. So what is compared was made by the same code.

use super::choice::Choice;
use super::sample::Row;
use crate::exit::{Exit, Failure, Outcome};
use shaledb::table::format::{FileKind, parse_file_name};
use shaledb::{Batch, Config, Db, Tree, WriteOptions};
use shaledb_lab::measure::{Usage, thread_cpu_seconds};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const TREE: &str = "default";
const BATCH_BYTES: usize = 256 << 10;

/// So many gets of blocks that are in the cache are measured.
const CACHED_GETS: usize = 4000;

/// A folder of its own for databases; it is removed in the end.
pub(super) struct Workshop {
    folder: PathBuf,
    next: AtomicU64,
    /// Whether the user wants to stop.
    stop: Arc<AtomicBool>,
}

/// What a database of some rows took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Built {
    /// Tables and blob files.
    pub(super) stored: u64,
    pub(super) rows: u64,
    /// Keys and values.
    pub(super) bytes: u64,
    /// To write them.
    pub(super) cpu_seconds: f64,
    /// What they took in memtables before the flush.
    pub(super) memtable_bytes: u64,
    pub(super) write_amp: f64,
    /// CPU of a read whose block is in the page cache, but not in the engine's.
    pub(super) get_us: f64,
    /// CPU of a read whose block is in the engine's cache.
    pub(super) cached_get_us: f64,
}

/// How large a tree's parts are; 0 for what the engine takes by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    pub(super) memory_bytes: u64,
    pub(super) memtable_bytes: u64,
    pub(super) table_bytes: u64,
}

impl Parts {
    fn config(self, choice: Choice) -> Config {
        let usual = Config::default();
        let table_bytes = if self.table_bytes == 0 { usual.table_bytes } else { self.table_bytes };
        Config {
            memory_bytes: self.memory_bytes,
            memtable_bytes: self.memtable_bytes,
            table_bytes,
            tree: choice.config(),
            ..usual
        }
    }
}

/// How rows are loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) choice: Choice,
    pub(super) parts: Parts,
    /// Sorted rows go to tables directly; others through log, memtables and flushes.
    pub(super) direct: bool,
    /// Whether all is merged into one level in the end.
    pub(super) merged: bool,
}

impl Workshop {
    /// Makes the folder in `dir`, or under /var/tmp.
    pub(super) fn new(dir: Option<&Path>) -> Outcome<Workshop> {
        let base = dir.map_or_else(
            || match Path::new("/var/tmp").is_dir() {
                true => PathBuf::from("/var/tmp"),
                false => std::env::temp_dir(),
            },
            Path::to_owned,
        );
        let stop = crate::signals::stop_flag()?;
        Ok(Workshop { folder: new_folder(&base)?, next: AtomicU64::new(0), stop })
    }

    fn refuse_if_stopped(&self) -> Outcome<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Failure::new(Exit::Stopped, "stopped: there is no advice")),
            false => Ok(()),
        }
    }

    /// The path of a file or folder of this name.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The path of one more database.
    fn path(&self) -> PathBuf {
        self.folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// What sorted rows take in tables; nothing else is measured, so that threads may do it at
    /// once.
    pub(super) fn stored(&self, choice: Choice, rows: &[&Row]) -> Outcome<u64> {
        self.refuse_if_stopped()?;
        let path = self.path();
        let db = Db::open(&path, Parts::default().config(choice))?;
        ingest(&db.tree_or_create(TREE)?, rows)?;
        db.close()?;
        let stored = stored_bytes(&path)?;
        remove(&path)?;
        Ok(stored)
    }

    /// Writes sorted rows into tables directly, and reads by `keys`.
    pub(super) fn ingested(&self, choice: Choice, rows: &[&Row], keys: &[&[u8]]) -> Outcome<Built> {
        let load = Load { choice, parts: Parts::default(), direct: true, merged: true };
        self.load(load, &mut feed_of(rows), keys)
    }

    /// Loads what `feed` gives, whose own CPU does not count, until it gives nothing. Then it reads
    /// by `keys`.
    pub(super) fn load(
        &self,
        load: Load,
        feed: &mut dyn FnMut(&mut Vec<Row>) -> Outcome<bool>,
        keys: &[&[u8]],
    ) -> Outcome<Built> {
        let Load { choice, parts, direct, merged } = load;
        let path = self.path();
        let db = Db::open(&path, parts.config(choice))?;
        let tree = db.tree_or_create(TREE)?;
        let mut built = Built::default();
        let mut of_feed = 0.0;
        let begun = cpu_seconds();
        let mut chunk = Vec::new();
        let mut batch = Batch::new();
        let mut ingest = if direct { Some(tree.ingest()?) } else { None };
        loop {
            self.refuse_if_stopped()?;
            let started = thread_cpu_seconds();
            let more = feed(&mut chunk)?;
            of_feed += thread_cpu_seconds() - started;
            if !more {
                break;
            }
            for (key, value) in &chunk {
                built.rows += 1;
                built.bytes += (key.len() + value.len()) as u64;
                match &mut ingest {
                    Some(ingest) => ingest.add(key, value)?,
                    None => {
                        batch.put(&tree, key, value);
                        if batch.bytes() >= BATCH_BYTES {
                            db.write(&batch, WriteOptions::default())?;
                            batch.clear();
                        }
                    }
                }
            }
        }
        match ingest {
            Some(ingest) => {
                ingest.finish()?;
            }
            None => {
                db.write(&batch, WriteOptions::default())?;
                built.memtable_bytes =
                    db.stats().trees.iter().map(|tree| tree.memtable_used_bytes).sum();
                db.flush()?;
                if merged {
                    tree.compact()?;
                }
            }
        }
        built.cpu_seconds = (cpu_seconds() - begun - of_feed).max(0.0);
        let stats = db.stats();
        built.write_amp = stats.write_amp;
        drop((batch, tree));
        db.close()?;
        built.stored = stored_bytes(&path)?;
        if !keys.is_empty() {
            let db = Db::open(&path, parts.config(choice))?;
            (built.get_us, built.cached_get_us) = reads(&db.tree(TREE)?, keys)?;
            db.close()?;
        }
        remove(&path)?;
        Ok(built)
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What is left here is left in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Makes a folder that was not there: one of a killed process with the same number may be.
fn new_folder(base: &Path) -> Outcome<PathBuf> {
    std::fs::create_dir_all(base).map_err(|error| Failure::file("create", base, &error))?;
    let process = std::process::id();
    let mut number = 0;
    loop {
        let folder = base.join(format!("shale-advise-{process}-{number}"));
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Failure::file("create", &folder, &error)),
            Ok(()) => return Ok(folder),
        }
    }
}

fn ingest(tree: &Tree, rows: &[&Row]) -> Outcome<()> {
    let mut ingest = tree.ingest()?;
    for (key, value) in rows {
        ingest.add(key, value)?;
    }
    ingest.finish()?;
    Ok(())
}

/// Gives rows, some at a time.
pub(super) fn feed_of<'a>(rows: &'a [&'a Row]) -> impl FnMut(&mut Vec<Row>) -> Outcome<bool> + 'a {
    let mut rest = rows.chunks(1024);
    move |chunk: &mut Vec<Row>| {
        chunk.clear();
        chunk.extend(rest.next().unwrap_or_default().iter().map(|row| (*row).clone()));
        Ok(!chunk.is_empty())
    }
}

/// Of all threads so far.
fn cpu_seconds() -> f64 {
    let usage = Usage::now();
    usage.user_seconds + usage.system_seconds
}

/// CPU microseconds of a get whose block nothing has read before, and of one whose block was just
/// read. The keys have blocks of their own; the first half of them only opens tables.
fn reads(tree: &Tree, keys: &[&[u8]]) -> Outcome<(f64, f64)> {
    let (first, keys) = keys.split_at(keys.len() / 2);
    for key in first {
        tree.get(key)?;
    }
    let begun = thread_cpu_seconds();
    for key in keys {
        std::hint::black_box(tree.get(key)?);
    }
    let cold = (thread_cpu_seconds() - begun) / keys.len() as f64;
    let rounds = CACHED_GETS.div_ceil(keys.len());
    let begun = thread_cpu_seconds();
    for _ in 0..rounds {
        for key in keys {
            std::hint::black_box(tree.get(key)?);
        }
    }
    let cached = (thread_cpu_seconds() - begun) / (rounds * keys.len()) as f64;
    Ok((cold * 1e6, cached * 1e6))
}

/// Bytes of tables and blob files.
fn stored_bytes(path: &Path) -> Outcome<u64> {
    let failed = |error| Failure::file("read", path, &error);
    let mut sum = 0;
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = parse_file_name(&entry.file_name().to_string_lossy()).map(|(kind, _)| kind);
        if matches!(kind, Some(FileKind::Table | FileKind::Blob)) {
            sum += entry.metadata().map_err(failed)?.len();
        }
    }
    Ok(sum)
}

fn remove(path: &Path) -> Outcome<()> {
    std::fs::remove_dir_all(path).map_err(|error| Failure::file("remove", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_there_is_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let left = Workshop::new(Some(base.path())).unwrap();
        let other = Workshop::new(Some(base.path())).unwrap();
        assert_ne!(left.folder, other.folder);
        drop(other);
        assert!(left.folder.is_dir(), "what is removed is the own folder");
    }

    #[test]
    fn a_load_ends_when_the_user_stops_it() {
        let base = tempfile::tempdir().unwrap();
        let workshop = Workshop::new(Some(base.path())).unwrap();
        let choice = Choice::all(&[shaledb::Codec::Lz4], &[16 << 10])[0];
        let row = (b"key".to_vec(), b"value".to_vec());
        assert!(workshop.stored(choice, &[&row]).is_ok());
        workshop.stop.store(true, Ordering::Relaxed);
        assert!(workshop.stored(choice, &[&row]).is_err());
        assert!(workshop.ingested(choice, &[&row], &[]).is_err());
        drop(workshop);
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0, "nothing is left");
    }
}
