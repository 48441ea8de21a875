//! Builds an index on live data beside a writer: the writer's longest stall, and its rate beside
//! the build against its rate without.
//!
//! `cargo run --release --example online_bench -- [ROWS]`

use shaledb::{Batch, BuildOptions, Config, Db, Tree, TreeConfig, WriteOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a writer has seen.
struct Seen {
    writes: u64,
    longest: Duration,
    took: Duration,
}

impl Seen {
    fn rate(&self) -> f64 {
        self.writes as f64 / self.took.as_secs_f64()
    }
}

fn row(number: u64, turn: u64) -> [u8; 100] {
    let mut row = [b'.'; 100];
    let mixed = (number + turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    row[..8].copy_from_slice(&mixed.to_be_bytes());
    row
}

fn entry(row: &[u8], key: &[u8]) -> Vec<u8> {
    [&row[..8], key].concat()
}

/// Changes rows and their entries until `stop`.
fn write(db: &Db, source: &Tree, index: Option<&Tree>, rows: u64, stop: &AtomicBool) -> Seen {
    let started = Instant::now();
    let mut seen = Seen { writes: 0, longest: Duration::ZERO, took: Duration::ZERO };
    while !stop.load(Ordering::Relaxed) {
        let number = seen.writes.wrapping_mul(0x2545_f491_4f6c_dd1d) % rows;
        let (key, began) = (number.to_be_bytes(), Instant::now());
        let old = source.get(&key).unwrap().unwrap();
        let new = row(number, seen.writes + 1);
        let mut batch = Batch::new();
        batch.put(source, &key, &new);
        if let Some(index) = index {
            batch.delete(index, &entry(&old, &key));
            batch.put(index, &entry(&new, &key), b"");
        }
        db.write(&batch, WriteOptions::default()).unwrap();
        seen.longest = seen.longest.max(began.elapsed());
        seen.writes += 1;
    }
    seen.took = started.elapsed();
    seen
}

fn told(what: &str, seen: &Seen) {
    let (rate, longest) = (seen.rate(), seen.longest.as_secs_f64() * 1e3);
    println!("{what}: {rate:.0} writes/s, longest stall {longest:.1} ms");
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

    let stop = AtomicBool::new(false);
    let without = std::thread::scope(|scope| {
        // With another index, so that both write as much.
        let writer = scope.spawn(|| write(&db, &source, Some(&other), rows, &stop));
        std::thread::sleep(Duration::from_secs(5));
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    told("without a build", &without);

    stop.store(false, Ordering::Relaxed);
    let options = BuildOptions::default();
    let mut build = source.build_online("index", TreeConfig::default(), options).unwrap();
    let index = build.tree().clone();
    let beside = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&db, &source, Some(&index), rows, &stop));
        let started = Instant::now();
        build.fill(|key, row, entries| entries.add(&entry(row, key), b"")).unwrap();
        let (filled, spilled) = (started.elapsed(), build.spilled_bytes());
        build.finish().unwrap();
        println!(
            "{rows} rows: filled in {filled:.1?}, {spilled} B spilled, complete in {:.1?}",
            started.elapsed()
        );
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    told("beside the build", &beside);
    println!("rate beside the build / without: {:.2}", beside.rate() / without.rate());
    let entries = index.scan::<&[u8]>(..).unwrap().count() as u64;
    assert_eq!(entries, rows, "each row has one entry");
}
