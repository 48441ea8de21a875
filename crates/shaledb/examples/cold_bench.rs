//! Random reads of data eight times the memory, beside reads of the same files without an engine:
//! by one thread that asks for 100 at once, and by many threads that ask for one each.
//!
//! cargo run --release -p shaledb --example cold_bench [-- --rows 12M --seconds 2 --folder DIR]
//!
//! Rows as the lab's `kv` has them: keys of 20 bytes, values of 250 that compress to half. Each turn
//! begins with none of the files in the page cache, and engine and files take turns. What is shown
//! is the median of the rounds: reads per second, CPU of a read, and the engine's share of the rate
//! without one.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shaledb::fs::ReadFile;
use shaledb::{Codec, Codecs, Config, Db, Env, Tree, TreeConfig};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const BATCH: usize = 100;
const THREADS: usize = 16;
const ROUNDS: usize = 5;
const KEY_BYTES: usize = 20;
const VALUE_BYTES: usize = 250;

struct Args {
    rows: u64,
    turn: Duration,
    folder: PathBuf,
}

/// What a turn came to.
#[derive(Clone, Copy)]
struct Turn {
    reads_per_second: f64,
    cpu_micros: f64,
}

fn main() -> shaledb::Result<()> {
    let args = args();
    println!("{:10} {:28} {:>10} {:>12} {:>8}", "codec", "reads", "rate", "CPU, us", "share");
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd(3)] {
        let folder = args.folder.join(format!("shale-cold-{}", std::process::id()));
        let outcome = measure(&args, &folder, codec);
        // Only what was made here is removed.
        let _ = std::fs::remove_dir_all(&folder);
        outcome?;
    }
    Ok(())
}

fn measure(args: &Args, folder: &Path, codec: Codec) -> shaledb::Result<()> {
    let memory_bytes = (args.rows * (KEY_BYTES + VALUE_BYTES) as u64 / 8).max(8 << 20);
    let tree = TreeConfig { codecs: Codecs::all(codec), ..TreeConfig::default() };
    let db = Db::open(folder, Config { memory_bytes, tree, ..Config::default() })?;
    let tree = db.tree_or_create("t")?;
    let mut random = Pcg64::seed_from_u64(1);
    let mut value = [b'v'; VALUE_BYTES];
    for number in 0..args.rows {
        random.fill_bytes(&mut value[..VALUE_BYTES / 2]);
        tree.put(&key(number), &value)?;
    }
    db.flush()?;
    db.wait_idle()?;
    let files = Files::of(folder)?;
    let mut turns: [Vec<Turn>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let before = blocks_read(&db);
        turns[1].push(turn(args, &files, 1, BATCH, |random| get_many(&tree, args.rows, random)));
        let after = blocks_read(&db);
        let bytes = (after.1 - before.1) / (after.0 - before.0).max(1);
        turns[0].push(turn(args, &files, 1, BATCH, |random| files.read_many(bytes, random)));
        turns[3].push(turn(args, &files, THREADS, 1, |random| get_one(&tree, args.rows, random)));
        turns[2].push(turn(args, &files, THREADS, 1, |random| files.read_one(bytes, random)));
    }
    let names = ["100 at once, files", "100 at once, multi_get", "16 threads, files", "16 threads"];
    let medians: Vec<Turn> = turns.iter().map(|turns| median(turns)).collect();
    for (at, (name, turn)) in names.iter().zip(&medians).enumerate() {
        let share = turn.reads_per_second / medians[at / 2 * 2].reads_per_second;
        let (rate, cpu) = (turn.reads_per_second, turn.cpu_micros);
        println!("{:10} {name:28} {rate:10.0} {cpu:12.1} {share:8.2}", codec.to_string());
    }
    db.close()
}

fn get_many(tree: &Tree, rows: u64, random: &mut Pcg64) {
    let keys: Vec<Vec<u8>> = (0..BATCH).map(|_| key(random.random_range(0..rows))).collect();
    let found = tree.multi_get(&keys).expect("readable");
    assert!(found.iter().all(Option::is_some), "all rows are there");
}

fn get_one(tree: &Tree, rows: u64, random: &mut Pcg64) {
    let found = tree.get(&key(random.random_range(0..rows))).expect("readable");
    assert!(found.is_some(), "all rows are there");
}

/// The files with the rows, without an engine.
struct Files(Vec<(Arc<dyn ReadFile>, u64)>);

impl Files {
    fn of(folder: &Path) -> shaledb::Result<Files> {
        let fs = Env::os().fs;
        let mut files = Vec::new();
        for entry in fs.list(folder)? {
            if entry.name.ends_with(".table") {
                let file = fs.open(&folder.join(&entry.name))?;
                let bytes = file.len()?;
                files.push((file, bytes));
            }
        }
        Ok(Files(files))
    }

    /// Any place of any file, where as many bytes are.
    fn place(&self, bytes: u64, random: &mut Pcg64) -> (&dyn ReadFile, u64) {
        let all: u64 = self.0.iter().map(|(_, length)| length - bytes).sum();
        let mut at = random.random_range(0..all);
        for (file, length) in &self.0 {
            if at < length - bytes {
                return (&**file, at);
            }
            at -= length - bytes;
        }
        unreachable!("it is within the sum of all")
    }

    fn read_one(&self, bytes: u64, random: &mut Pcg64) {
        let (file, at) = self.place(bytes, random);
        file.read_at(at, &mut vec![0; bytes as usize]).expect("readable");
    }

    fn read_many(&self, bytes: u64, random: &mut Pcg64) {
        let places: Vec<_> = (0..BATCH).map(|_| self.place(bytes, random)).collect();
        places.iter().for_each(|(file, at)| file.prefetch(*at, bytes));
        let mut buffer = vec![0; bytes as usize];
        places.iter().for_each(|(file, at)| file.read_at(*at, &mut buffer).expect("readable"));
    }

    /// Has the page cache let go of them.
    fn forget(&self) {
        for (file, _) in &self.0 {
            let mut input = std::ffi::OsString::from("if=");
            input.push(file.path());
            let done = Command::new("dd").arg(input).args(["iflag=nocache", "count=0"]).output();
            assert!(done.is_ok_and(|done| done.status.success()), "dd runs");
        }
    }
}

/// Each of the threads reads `each` at once, until the turn is over.
fn turn(
    args: &Args,
    files: &Files,
    threads: usize,
    each: usize,
    read: impl Fn(&mut Pcg64) + Sync,
) -> Turn {
    static SEED: AtomicU64 = AtomicU64::new(1);
    files.forget();
    let reads = AtomicU64::new(0);
    let (started, cpu) = (Instant::now(), cpu());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut random = Pcg64::seed_from_u64(SEED.fetch_add(1, Relaxed));
                while started.elapsed() < args.turn {
                    read(&mut random);
                    reads.fetch_add(each as u64, Relaxed);
                }
            });
        }
    });
    let reads = reads.into_inner() as f64;
    Turn {
        reads_per_second: reads / started.elapsed().as_secs_f64(),
        cpu_micros: (crate::cpu() - cpu) * 1e6 / reads,
    }
}

/// The seconds that the process has had a processor for.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    // Behind the name, which is in parentheses; in hundredths.
    let (_, fields) = stat.rsplit_once(')').expect("the name is there");
    let field = |at: usize| fields.split_whitespace().nth(at).and_then(|n| n.parse::<f64>().ok());
    (field(11).expect("utime") + field(12).expect("stime")) / 100.0
}

/// How many blocks were read, and their bytes.
fn blocks_read(db: &Db) -> (u64, u64) {
    let counters = db.stats().counters;
    (counters["data_block_misses"], counters["block_read_bytes"])
}

fn median(turns: &[Turn]) -> Turn {
    let mut turns = turns.to_vec();
    turns.sort_by(|a, b| a.reads_per_second.total_cmp(&b.reads_per_second));
    turns[turns.len() / 2]
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:0width$}", width = KEY_BYTES).into_bytes()
}

fn args() -> Args {
    let mut args =
        Args { rows: 12_000_000, turn: Duration::from_secs(2), folder: "/var/tmp".into() };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().unwrap_or_else(|| panic!("{name} has a value"));
        match name.as_str() {
            "--rows" => {
                let (number, times) = match value.strip_suffix('M') {
                    Some(number) => (number, 1_000_000),
                    None => (value.as_str(), 1),
                };
                args.rows = number.parse::<u64>().expect("--rows is a number") * times;
            }
            "--seconds" => {
                args.turn = Duration::from_secs_f64(value.parse().expect("--seconds is a number"));
            }
            "--folder" => args.folder = value.into(),
            other => panic!("{other} is none of --rows, --seconds, --folder"),
        }
    }
    args
}
