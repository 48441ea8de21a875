//! Builds an index on live data beside a writer, then a unique one: the writer's longest stall, and
//! its rate beside the build against its rate without.
//!
//! `cargo run --release --example online_bench -- [ROWS]`

use shaledb::{Batch, BuildOptions, Config, Db, Tree, TreeConfig, UniqueRow, WriteOptions};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A unique build goes on to its end when so few entries are left to take.
const FEW_CHANGES: u64 = 2000;

/// What a writer has seen.
struct Seen {
    writes: u64,
    longest: Duration,
    /// How long after its begin the longest stall ended.
    longest_at: Duration,
    took: Duration,
}

impl Seen {
    fn note(&mut self, stall: Duration, started: Instant) {
        if stall > self.longest {
            (self.longest, self.longest_at) = (stall, started.elapsed());
        }
    }

    fn rate(&self) -> f64 {
        self.writes as f64 / self.took.as_secs_f64()
    }
}

/// Where a writer writes.
struct World {
    db: Db,
    source: Tree,
    rows: u64,
    /// Writers hold it to read; who holds them off, to write.
    gate: RwLock<()>,
    stop: AtomicBool,
}

/// A row that begins with what no other row has, nor this one at another turn.
fn row(number: u64, turn: u64) -> [u8; 100] {
    let mut row = [b'.'; 100];
    let mixed = (number << 32 | turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    row[..8].copy_from_slice(&mixed.to_be_bytes());
    row
}

fn entry(unique: bool, row: &[u8], key: &[u8]) -> Vec<u8> {
    if unique { shaledb::entry_of_row(&row[..8], key) } else { [&row[..8], key].concat() }
}

/// Changes rows and their entries until it is stopped; `turn` tells its rows from others'.
fn write(world: &World, index: &Tree, unique: bool, turn: u64) -> Seen {
    let started = Instant::now();
    let zero = Duration::ZERO;
    let mut seen = Seen { writes: 0, longest: zero, longest_at: zero, took: zero };
    loop {
        let number = seen.writes.wrapping_mul(0x2545_f491_4f6c_dd1d) % world.rows;
        let (key, began) = (number.to_be_bytes(), Instant::now());
        let open = world.gate.read().unwrap();
        if world.stop.load(Ordering::Relaxed) {
            // The wait for the gate is one of its stalls.
            seen.note(began.elapsed(), started);
            break;
        }
        let old = world.source.get(&key).unwrap().unwrap();
        let new = row(number, turn + seen.writes + 1);
        let mut batch = Batch::new();
        batch.put(&world.source, &key, &new);
        batch.delete(index, &entry(unique, &old, &key));
        batch.put(index, &entry(unique, &new, &key), if unique { &key } else { b"" });
        world.db.write(&batch, WriteOptions::default()).unwrap();
        drop(open);
        seen.note(began.elapsed(), started);
        seen.writes += 1;
    }
    seen.took = started.elapsed();
    seen
}

fn told(what: &str, seen: &Seen) {
    let (rate, longest) = (seen.rate(), seen.longest.as_secs_f64() * 1e3);
    let at = seen.longest_at;
    println!("{what}: {rate:.0} writes/s, longest stall {longest:.1} ms, after {at:.1?}");
}

/// Builds an index beside a writer; answers what that has seen.
fn build(world: &World, name: &str, unique: bool, turn: u64) -> Seen {
    world.stop.store(false, Ordering::Relaxed);
    let options =
        BuildOptions { unique: unique.then_some(UniqueRow::Value), ..BuildOptions::default() };
    let mut build = world.source.build_online(name, TreeConfig::default(), options).unwrap();
    let index = build.tree().clone();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(world, &index, unique, turn));
        let started = Instant::now();
        build
            .fill(|key, row, entries| match unique {
                true => entries.add(&row[..8], key),
                false => entries.add(&entry(false, row, key), b""),
            })
            .unwrap();
        let (filled, spilled) = (started.elapsed(), build.spilled_bytes());
        let mut rounds = Vec::new();
        while unique && rounds.last().is_none_or(|last| *last > FEW_CHANGES) && rounds.len() < 20 {
            rounds.push(build.catch_up().unwrap());
        }
        let held = unique.then(|| world.gate.write().unwrap());
        let began = Instant::now();
        let tree = build.finish().unwrap();
        let end = began.elapsed();
        world.stop.store(true, Ordering::Relaxed);
        drop(held);
        let rows = world.rows;
        println!(
            "{rows} rows: filled in {filled:.1?}, {spilled} B spilled, rounds {rounds:?}, ended in \
             {end:.1?}, complete in {:.1?}",
            started.elapsed()
        );
        let seen = writer.join().unwrap();
        let entries = tree.scan::<&[u8]>(..).unwrap().count() as u64;
        assert_eq!(entries, rows, "each row has one entry");
        seen
    })
}

fn main() {
    let rows: u64 = std::env::args().nth(1).map_or(2_000_000, |rows| rows.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Config::default()).unwrap();
    let source = db.tree_or_create("rows").unwrap();
    let other = db.tree_or_create("other").unwrap();
    let mut load = source.ingest().unwrap();
    (0..rows).for_each(|number| load.add(&number.to_be_bytes(), &row(number, 0)).unwrap());
    load.finish().unwrap();
    let (gate, stop) = (RwLock::new(()), AtomicBool::new(false));
    let world = World { db, source, rows, gate, stop };

    let without = std::thread::scope(|scope| {
        // With another index, so that both write as much.
        let writer = scope.spawn(|| write(&world, &other, false, 0));
        std::thread::sleep(Duration::from_secs(5));
        world.stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    told("without a build", &without);
    for (name, unique, turn) in [("index", false, 1 << 28), ("unique", true, 1 << 29)] {
        let beside = build(&world, name, unique, turn);
        told(&format!("beside the build of `{name}`"), &beside);
        println!("rate beside the build / without: {:.2}", beside.rate() / without.rate());
    }
}
