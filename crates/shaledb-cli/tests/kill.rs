//! A process that is killed loses nothing that it acknowledged.
//!
//! A child process writes from several threads, synced and not, single puts, deletes and batches,
//! and says of each commit that it returned through a pipe to this process, which is the log kept
//! outside. It is killed by SIGKILL at a moment of chance; the database is opened again and
//! compared: every acknowledged commit is there, of the one that each thread may have begun without
//! acknowledging it either all or nothing, and the files verify. Then the next child goes on.
//!
//! The child is this same test binary, which runs [`child`] with an environment variable set.
//! `SHALE_SEED` replays a run's moments (as far as a killed process can be replayed).

use shaledb::{Batch, Config, Db, TreeConfig, WriteOptions};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KILLS: u32 = 60;
const THREADS: u64 = 4;
const SLOTS: u64 = 400;
const CHILD: &str = "SHALE_KILL_CHILD";

/// Small, so that flushes, compactions and log changes happen all the time.
fn config() -> Config {
    Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 2,
        tree: TreeConfig { block_bytes: 1024, ..TreeConfig::default() },
        ..Config::default()
    }
}

/// Numbers of chance, good enough for a choice of moments and operations.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What commit `number` of a thread does, known to the child, which does it, and to the parent,
/// which checks it: nothing but the numbers goes through the pipe.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Put(u64),
    Delete(u64),
    /// A put in each of the two trees, to be there together or not at all.
    Batch(Vec<u64>),
}

fn change(thread: u64, number: u64) -> Change {
    let mut chance = Chance(thread << 40 ^ number);
    match chance.below(10) {
        0 => Change::Delete(chance.below(SLOTS)),
        1..4 => Change::Batch((0..2 + chance.below(6)).map(|_| chance.below(SLOTS)).collect()),
        _ => Change::Put(chance.below(SLOTS)),
    }
}

fn is_synced(thread: u64, number: u64) -> bool {
    (thread + number).is_multiple_of(7)
}

fn key(thread: u64, slot: u64) -> Vec<u8> {
    format!("thread {thread} slot {slot:06}").into_bytes()
}

/// The value says which commit wrote it; its length varies.
fn value(thread: u64, number: u64) -> Vec<u8> {
    let length = Chance(number << 8 ^ thread).below(300) as usize;
    let mut value = format!("{thread} {number} ").into_bytes();
    value.resize(value.len() + length, b'.');
    value
}

const TREES: [&str; 2] = ["one", "two"];

/// In the child: writes for ever, beginning each thread with the number that the parent names.
#[test]
fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let mut words = text.split(' ');
    let starts: Vec<u64> =
        words.by_ref().take(THREADS as usize).map(|word| word.parse().unwrap()).collect();
    let path: String = words.collect::<Vec<_>>().join(" ");
    let db = Db::open(Path::new(&path), config()).expect("the database opens after a kill");
    std::thread::scope(|scope| {
        for (thread, &start) in starts.iter().enumerate() {
            let db = db.clone();
            scope.spawn(move || write(&db, thread as u64, start));
        }
    });
}

fn write(db: &Db, thread: u64, start: u64) {
    let trees = TREES.map(|name| db.tree_or_create(name).unwrap());
    for number in start.. {
        let options = WriteOptions { sync: is_synced(thread, number) };
        let value = value(thread, number);
        match change(thread, number) {
            Change::Put(slot) => {
                trees[0].put_with(&key(thread, slot), &value, options).unwrap();
            }
            Change::Delete(slot) => {
                trees[0].delete_with(&key(thread, slot), options).unwrap();
            }
            Change::Batch(slots) => {
                let mut batch = Batch::new();
                for slot in slots {
                    batch.put(&trees[0], &key(thread, slot), &value);
                    batch.put(&trees[1], &key(thread, slot), &value);
                }
                db.write(&batch, options).unwrap();
            }
        }
        // One short write to a pipe is whole or not at all; the test's harness captures `print!`,
        // but not this.
        let line = format!("ack {thread} {number}\n");
        std::io::stderr().lock().write_all(line.as_bytes()).unwrap();
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the trees must hold, and how far each thread has come.
#[derive(Clone, Default)]
struct Model {
    trees: [Rows; 2],
    next: [u64; THREADS as usize],
}

impl Model {
    fn apply(&mut self, thread: u64, number: u64) {
        assert_eq!(self.next[thread as usize], number, "acknowledgements come in order");
        self.next[thread as usize] += 1;
        let value = value(thread, number);
        match change(thread, number) {
            Change::Put(slot) => {
                self.trees[0].insert(key(thread, slot), value);
            }
            Change::Delete(slot) => {
                self.trees[0].remove(&key(thread, slot));
            }
            Change::Batch(slots) => {
                for slot in slots {
                    self.trees[0].insert(key(thread, slot), value.clone());
                    self.trees[1].insert(key(thread, slot), value.clone());
                }
            }
        }
    }

    fn of_thread(&self, thread: u64) -> [Rows; 2] {
        let prefix = format!("thread {thread} ").into_bytes();
        self.trees
            .clone()
            .map(|rows| rows.into_iter().filter(|(key, _)| key.starts_with(&prefix)).collect())
    }

    /// Compares with what is stored; a thread may have committed one more than it acknowledged, and
    /// then the model learns it.
    fn check(&mut self, stored: &Model, story: &str) {
        for thread in 0..THREADS {
            let found = stored.of_thread(thread);
            if self.of_thread(thread) == found {
                continue;
            }
            let mut ahead = self.clone();
            let number = ahead.next[thread as usize];
            ahead.apply(thread, number);
            if ahead.of_thread(thread) == found {
                *self = ahead;
                continue;
            }
            let expected = self.of_thread(thread);
            for (tree, name) in TREES.iter().enumerate() {
                for (key, value) in &expected[tree] {
                    let other = found[tree].get(key);
                    assert!(
                        other == Some(value),
                        "{story}: tree {name}, {}: acknowledged {}, found {:?} (thread {thread} \
                         acknowledged up to {number})",
                        String::from_utf8_lossy(key),
                        String::from_utf8_lossy(&value[..value.len().min(16)]),
                        other.map(|value| String::from_utf8_lossy(&value[..value.len().min(16)])),
                    );
                }
            }
            panic!("{story}: thread {thread} has rows that were never written or half a batch");
        }
    }
}

fn stored(path: &Path, story: &str) -> Model {
    let db = Db::open(path, config()).unwrap_or_else(|error| panic!("{story}: {error}"));
    let mut model = Model::default();
    for (rows, name) in model.trees.iter_mut().zip(TREES) {
        let Ok(tree) = db.tree(name) else { continue };
        for row in tree.scan::<&[u8]>(..).unwrap() {
            let (key, value) = row.unwrap_or_else(|error| panic!("{story}: {error}"));
            rows.insert(key, value.to_vec());
        }
    }
    let report = db.verify(&mut |_| {}).unwrap();
    assert!(report.damage.is_empty(), "{story}: {:?}", report.damage);
    db.close().unwrap();
    model
}

#[test]
fn killed_processes_lose_nothing_they_acknowledged() {
    let seed = match std::env::var("SHALE_SEED") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => {
            std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |now| now.as_nanos() as u64)
        }
    };
    let mut chance = Chance(seed);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut model = Model::default();
    let (mut acks, start) = (0u64, Instant::now());
    for kill in 1..=KILLS {
        let story = format!("kill {kill} of a run with SHALE_SEED={seed}");
        let lifetime = Duration::from_micros(chance.below(250_000));
        for (thread, number) in one_life(&path, &model.next, lifetime, &story) {
            model.apply(thread, number);
            acks += 1;
        }
        model.check(&stored(&path, &story), &story);
    }
    assert!(
        acks > u64::from(KILLS),
        "{acks} commits in {KILLS} lives are too few to mean anything"
    );
    println!("{KILLS} kills survived, {acks} acknowledged commits, {:?}", start.elapsed());
}

/// Starts a child, kills it some time after its first acknowledgement (or before: then it may be in
/// the middle of its recovery), and gives what it acknowledged.
fn one_life(path: &Path, next: &[u64], lifetime: Duration, story: &str) -> Vec<(u64, u64)> {
    let starts: Vec<String> = next.iter().map(u64::to_string).collect();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{} {}", starts.join(" "), path.display()))
        .env_remove("RUST_BACKTRACE")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = child.stderr.take().unwrap();
    // The pipe is read all the time, so that the child never waits for this process.
    let reader = std::thread::spawn(move || {
        let (mut acks, mut noise) = (Vec::new(), String::new());
        let mut reader = BufReader::new(pipe);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            // Only what ends in a line end was written whole.
            match line.strip_suffix('\n').and_then(|line| line.strip_prefix("ack ")) {
                Some(ack) => {
                    let (thread, number) = ack.split_once(' ').unwrap();
                    acks.push((thread.parse().unwrap(), number.parse().unwrap()));
                }
                None => noise.push_str(&line),
            }
            line.clear();
        }
        (acks, noise)
    });
    std::thread::sleep(lifetime);
    // A child that ended by itself had a failure.
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let (acks, noise) = reader.join().unwrap();
    assert!(ended.is_none(), "{story}: the child ended by itself: {noise}");
    acks
}
