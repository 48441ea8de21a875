//! `demo`: the main job on real data. Loads it under each codec, reads it back by key and by range,
//! checks every record against the source, and shows sizes, rates, response times and levels.

mod source;
mod report;

use crate::args::DemoOptions;
use crate::exit::{Exit, Failure, Outcome};
use crate::screen;
use indicatif::ProgressBar;
use report::{Figures, Report};
use shaledb::{Batch, Codec, Codecs, Config, Db, TreeConfig, WriteOptions};
use shaledb_lab::generate::Random;
use shaledb_lab::measure::{Latencies, disk_bytes};
use source::Source;
use std::path::{Path, PathBuf};
use std::time::Instant;

const TREE: &str = "default";
const BATCH_BYTES: usize = 64 << 10;

/// How many ranges are read, and how many rows of each.
const RANGES: usize = 2000;
const RANGE_ROWS: usize = 100;

/// Runs it.
pub(crate) fn demo(options: &DemoOptions, json: bool) -> Outcome {
    let folder = Folder::prepare(options.dir.as_deref())?;
    let spinner = screen::spinner("reading what there is to load".to_owned());
    let source = source::collect(options.source.as_deref(), options.limit)?;
    spinner.finish_and_clear();
    if !json {
        screen::line(&report::parts(&source))?;
    }

    let zlib = Codec::Zlib(6);
    let choices = [
        ("none", Codecs::all(Codec::None)),
        ("lz4", Codecs::all(Codec::Lz4)),
        ("zlib:6", Codecs::all(zlib)),
        ("zstd:3", Codecs::all(Codec::Zstd(3))),
        ("auto", Codecs::default()),
    ];
    let mut report = Report::new(&source);
    let last = choices.len() - 1;
    for (at, (name, codecs)) in choices.into_iter().enumerate() {
        let path = folder.path.join(name.replace([' ', ':'], "-"));
        let mut run = Run { name, codecs, path: &path, source: &source, levels: String::new() };
        let figures = run.all()?;
        report.codecs.push(figures);
        report.levels = run.levels;
        if !(options.keep && at == last) {
            remove(&path)?;
        }
    }
    let kept = options.keep.then(|| folder.path.join("auto"));
    if json {
        screen::json(&report)?;
    } else {
        screen::line(&report.text())?;
        screen::line(&report::closing(kept.as_deref(), &source))?;
    }
    folder.finish(options.keep);
    Ok(Exit::Done)
}

/// One codec.
struct Run<'a> {
    name: &'static str,
    codecs: Codecs,
    path: &'a Path,
    source: &'a Source,
    levels: String,
}

impl Run<'_> {
    fn config(&self) -> Config {
        let tree = TreeConfig { codecs: self.codecs, ..TreeConfig::default() };
        Config { tree, ..Config::default() }
    }

    fn all(&mut self) -> Outcome<Figures> {
        let bar = screen::bytes_bar(Some(self.source.bytes * 3), "demo  ");
        let step = |what: &str| bar.set_message(format!("{}: {what}", self.name));
        step("writing");
        let mut figures = Figures { name: self.name.to_owned(), ..Figures::default() };
        self.levels = self.load(&mut figures, &bar)?;
        figures.stored_bytes = disk_bytes(self.path);
        // What is read is read from files, not from memtables that the writes left.
        let db = Db::open(self.path, self.config())?;
        step("reading by key");
        self.gets(&db, &mut figures, &bar)?;
        step("reading by range");
        self.ranges(&db, &mut figures)?;
        self.whole(&db, &mut figures, &bar)?;
        db.close()?;
        bar.finish_and_clear();
        Ok(figures)
    }

    /// Writes every record, in random order as a busy application would, then waits until
    /// the engine is idle.
    fn load(&self, figures: &mut Figures, bar: &ProgressBar) -> Outcome<String> {
        let db = Db::open(self.path, self.config())?;
        let tree = db.tree_or_create(TREE)?;
        let records = &self.source.records;
        let start = Instant::now();
        let mut batch = Batch::new();
        for &at in &shuffled(records.len(), "write") {
            let (key, value) = &records[at];
            batch.put(&tree, key, value);
            bar.inc((key.len() + value.len()) as u64);
            if batch.bytes() >= BATCH_BYTES {
                db.write(&batch, WriteOptions::default())?;
                batch.clear();
            }
        }
        db.write(&batch, WriteOptions::SYNC)?;
        figures.write_seconds = start.elapsed().as_secs_f64();
        db.flush()?;
        db.wait_idle()?;
        figures.wait_idle_seconds = start.elapsed().as_secs_f64() - figures.write_seconds;
        let levels = db.stats().to_string();
        drop((batch, tree));
        db.close()?;
        Ok(levels)
    }

    /// Looks every record up, in random order.
    fn gets(&self, db: &Db, figures: &mut Figures, bar: &ProgressBar) -> Outcome<()> {
        let tree = db.tree(TREE)?;
        let records = &self.source.records;
        let mut latencies = Latencies::new();
        let mut busy = std::time::Duration::ZERO;
        for &at in &shuffled(records.len(), "read") {
            let (key, value) = &records[at];
            let start = Instant::now();
            let found = tree.get(key)?;
            let latency = start.elapsed();
            latencies.record(latency);
            busy += latency;
            if found.as_deref() != Some(value.as_slice()) {
                return Err(differs(key, found.is_some()));
            }
            bar.inc((key.len() + value.len()) as u64);
        }
        figures.get_seconds = busy.as_secs_f64();
        figures.get_us = latencies.summary();
        figures.checked += records.len() as u64;
        Ok(())
    }

    /// Reads ranges that begin at random records.
    fn ranges(&self, db: &Db, figures: &mut Figures) -> Outcome<()> {
        let tree = db.tree(TREE)?;
        let records = &self.source.records;
        let mut random = Random::named(1, "ranges", 0);
        let mut latencies = Latencies::new();
        for _ in 0..RANGES {
            let from = random.below(records.len() as u64) as usize;
            let expected = &records[from..records.len().min(from + RANGE_ROWS)];
            let start = Instant::now();
            let mut scan = tree.scan_with(shaledb::ScanOptions::default())?;
            scan.seek(&records[from].0)?;
            for (key, value) in expected {
                check_row(&scan, key, value)?;
                scan.next()?;
            }
            latencies.record(start.elapsed());
        }
        figures.range_us = latencies.summary();
        Ok(())
    }

    /// Reads everything in order and compares it with the source.
    fn whole(&self, db: &Db, figures: &mut Figures, bar: &ProgressBar) -> Outcome<()> {
        let tree = db.tree(TREE)?;
        let start = Instant::now();
        let mut scan = tree.scan_with(shaledb::ScanOptions::default())?;
        scan.seek_first()?;
        for (key, value) in &self.source.records {
            check_row(&scan, key, value)?;
            bar.inc((key.len() + value.len()) as u64);
            scan.next()?;
        }
        if scan.valid() {
            return Err(differs(scan.key(), true));
        }
        figures.scan_seconds = start.elapsed().as_secs_f64();
        figures.checked += self.source.records.len() as u64;
        Ok(())
    }
}

fn check_row(scan: &shaledb::Scan, key: &[u8], value: &[u8]) -> Outcome<()> {
    if !scan.valid() {
        return Err(differs(key, false));
    }
    if scan.key() != key || scan.value()? != value {
        return Err(differs(scan.key(), true));
    }
    Ok(())
}

fn differs(key: &[u8], found: bool) -> Failure {
    let what = if found { "is not what was written" } else { "is missing" };
    let key = shaledb_cli::text::escaped(key);
    Failure::new(
        Exit::Corruption,
        format!("the record of key {key} {what}. This is a bug of Shale: please report it"),
    )
}

/// The numbers below `count` in an order of chance.
fn shuffled(count: usize, name: &str) -> Vec<usize> {
    let mut random = Random::named(1, name, 0);
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    order
}

/// The folder of the databases. Only what this run made is removed.
struct Folder {
    path: PathBuf,
    made: bool,
}

impl Folder {
    fn prepare(named: Option<&Path>) -> Outcome<Folder> {
        let path = named.map_or_else(scratch, Path::to_owned);
        let made = !path.exists();
        std::fs::create_dir_all(&path).map_err(|error| Failure::file("create", &path, &error))?;
        let mut entries =
            std::fs::read_dir(&path).map_err(|error| Failure::file("read", &path, &error))?;
        if entries.next().is_some() {
            return Err(Failure::usage(format!(
                "{} is not empty. Name a new folder with --dir",
                path.display()
            )));
        }
        Ok(Folder { path, made })
    }

    fn finish(self, keep: bool) {
        if self.made && !keep {
            // Empty by now; if it is not, it stays.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// A new name under /var/tmp, which is on a disk where /tmp may be memory.
fn scratch() -> PathBuf {
    let disk = Path::new("/var/tmp");
    let base = if disk.is_dir() { disk.to_owned() } else { std::env::temp_dir() };
    base.join(format!("shale-demo-{}", std::process::id()))
}

fn remove(path: &Path) -> Outcome<()> {
    std::fs::remove_dir_all(path).map_err(|error| Failure::file("remove", path, &error))
}
