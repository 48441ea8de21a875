//! What memory a database takes of the system beside what it was given:
//! `cargo run --release -p shale --example memory_bench`.
//!
//! Arguments: `memory_bytes` in MiB (64), data in MiB (512), threads (4), seconds of each phase
//! (10), a directory (a new one that is removed in the end). Phases: random overwrites, an idle
//! time, random reads, reads beside writes. For each: the resident memory that is not of files
//! (the program's own subtracted), now and at most; what the engine accounts for; CPU and page
//! faults for each operation.

use shale::{Config, Db, Result, Tree};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const MIB: f64 = (1 << 20) as f64;
const VALUE_BYTES: usize = 280;

/// Anonymous resident memory of this process, in MiB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux 4.5");
    let number: String = line.chars().filter(char::is_ascii_digit).collect();
    number.parse::<f64>().expect("a number") / 1024.0
}

/// User and system CPU in microseconds, and page faults without a read, of this process.
fn usage() -> (f64, f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split(' ').collect();
    let field = |index: usize| fields[index].parse::<u64>().expect("a number");
    (field(12) as f64 * 1e4, field(13) as f64 * 1e4, field(8))
}

struct Bench {
    db: Db,
    tree: Tree,
    keys: u64,
    threads: u64,
    time: Duration,
    base: f64,
}

fn key(number: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// A value of which about half compresses away.
fn value(number: u64, out: &mut [u8; VALUE_BYTES]) {
    let mut word = number | 1;
    for chunk in out[..VALUE_BYTES / 2].chunks_mut(8) {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ 0x5bd1;
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

impl Bench {
    /// Runs `work` on all threads for the time of a phase, and says what memory that took.
    fn phase(&self, name: &str, work: impl Fn(u64, u64) -> Result<()> + Sync) -> Result<()> {
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let before = usage();
        let mut most = 0f64;
        std::thread::scope(|scope| {
            for thread in 0..self.threads {
                let (stop, done, work) = (&stop, &done, &work);
                scope.spawn(move || {
                    let mut random = thread * 7919 + 1;
                    while !stop.load(Relaxed) {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        work(thread, (random >> 20) % self.keys).expect("no error");
                        done.fetch_add(1, Relaxed);
                    }
                });
            }
            let started = Instant::now();
            while started.elapsed() < self.time {
                std::thread::sleep(Duration::from_millis(20));
                most = most.max(resident());
            }
            stop.store(true, Relaxed);
        });
        let after = usage();
        let operations = done.load(Relaxed).max(1);
        let each = |cpu: f64| cpu / operations as f64;
        println!(
            "{name:<12} resident {:>6.1} MiB, at most {:>6.1}; accounted {:>6.1}; {operations} \
             operations, each {:.2} us user, {:.2} us system, {:.4} faults",
            resident() - self.base,
            most - self.base,
            self.accounted(),
            each(after.0 - before.0),
            each(after.1 - before.1),
            (after.2 - before.2) as f64 / operations as f64,
        );
        Ok(())
    }

    fn accounted(&self) -> f64 {
        self.db.stats().memory_used.values().sum::<u64>() as f64 / MIB
    }

    fn put(&self, number: u64) -> Result<()> {
        let mut bytes = [b'v'; VALUE_BYTES];
        value(number, &mut bytes);
        self.tree.put(&key(number), &bytes)
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments.next().map_or(default, |argument| argument.parse::<u64>().expect("a number"))
    };
    let (memory, data, threads, seconds) = (number(64), number(512), number(4), number(10));
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = arguments.next().map_or(temporary.path().to_owned(), Into::into);
    let config = Config { memory_bytes: memory << 20, ..Config::default() };
    let base = resident();
    let db = Db::open(dir.join("memory_bench"), config.clone())?;
    let tree = db.tree_or_create("t")?;
    let keys = (data << 20) / (VALUE_BYTES as u64 + 20);
    let time = Duration::from_secs(seconds);
    let mut bench = Bench { db, tree, keys, threads, time, base };
    let mut ingest = bench.tree.ingest()?;
    let mut bytes = [b'v'; VALUE_BYTES];
    for number in 0..keys {
        value(number, &mut bytes);
        ingest.add(&key(number), &bytes)?;
    }
    ingest.finish()?;
    println!("memory_bytes {memory} MiB, {keys} keys, {threads} threads");

    bench.phase("overwrite", |_, number| bench.put(number))?;
    bench.db.wait_idle()?;
    bench.phase("idle", |_, _| {
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    })?;
    let handle = bench.tree.clone();
    bench.db.close()?;
    drop(handle);
    bench.db = Db::open(dir.join("memory_bench"), config)?;
    bench.tree = bench.db.tree("t")?;
    println!("closed and opened; resident {:.1} MiB", resident() - base);
    bench.phase("read", |_, number| bench.tree.get(&key(number)).map(drop))?;
    bench.phase("read+write", |thread, number| {
        if thread % 2 == 0 { bench.put(number) } else { bench.tree.get(&key(number)).map(drop) }
    })?;
    println!("{}", bench.db.stats());
    Ok(())
}
