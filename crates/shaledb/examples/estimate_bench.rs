//! What it costs to say how many rows a range has, as a server's optimizer asks with each statement:
//! `cargo run --release --example estimate_bench`.
//!
//! For ranges of several widths, beside a scan of the first ten rows: CPU time of the thread, and by
//! how much the answer is wrong. The tree fits the memory.

use shaledb::{Config, Db, Env, OpenOptions, Tree};

const KEYS: u64 = 200_000;
const ROUNDS: u64 = 5_000;

fn mixed(n: u64) -> u64 {
    (n ^ n >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

fn put(tree: &Tree, n: u64) {
    tree.put(&n.to_be_bytes(), &[7; 100]).expect("memory does not fail");
}

fn ten_rows(tree: &Tree, from: u64) {
    let mut scan = tree.scan(from.to_be_bytes()..).expect("open");
    scan.seek_first().expect("memory does not fail");
    for _ in 0..10 {
        assert!(scan.valid());
        scan.next().expect("memory does not fail");
    }
}

/// All keys are rows here, so that the truth is known.
fn measure(label: &str, tree: &Tree) {
    let clock = Env::os().clock;
    let cpu_us = |round: &mut dyn FnMut(u64)| {
        let start = clock.thread_cpu_nanos();
        (0..ROUNDS).for_each(round);
        (clock.thread_cpu_nanos() - start) as f64 / ROUNDS as f64 / 1e3
    };
    for width in [20, 100, 10_000, KEYS / 2] {
        let mut wrong = 0.0;
        let estimate = cpu_us(&mut |n| {
            let from = mixed(n) % (KEYS - width);
            let (lower, upper) = (from.to_be_bytes(), (from + width).to_be_bytes());
            let found = tree.estimate_rows(&lower, Some(&upper), 40).expect("open").rows;
            wrong += (found as f64 - width as f64).abs() / width as f64;
        });
        let scan = cpu_us(&mut |n| ten_rows(tree, mixed(n) % (KEYS - width)));
        println!(
            "{label}, {width} rows: {estimate:.1} us, wrong by {:.0} %; the first ten rows {scan:.1} us",
            100.0 * wrong / ROUNDS as f64
        );
    }
}

fn main() -> shaledb::Result<()> {
    let config = Config { memory_bytes: 512 << 20, ..Config::default() };
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let db = Db::open_in("/db", config, options)?;
    let tree = db.tree_or_create("t")?;
    (0..KEYS).for_each(|n| put(&tree, n));
    measure("a memtable", &tree);
    db.compact()?;
    measure("one level", &tree);
    (0..KEYS / 3).for_each(|n| put(&tree, mixed(n) % KEYS));
    measure("and a memtable", &tree);
    tree.flush()?;
    (0..KEYS / 3).for_each(|n| put(&tree, mixed(n + KEYS) % KEYS));
    measure("and level 0", &tree);
    Ok(())
}
