//! What a snapshot costs, and a transaction beside its reads and writes:
//! `cargo run --release --example txn_bench`.
//!
//! In as many threads as there are cores: CPU time of a thread for each. The tree fits the memory.

use shaledb::{Config, Db, Env, OpenOptions, Transaction, TransactionOptions, Tree, WriteOptions};

const ROUNDS: u64 = 400_000;
const KEYS: u64 = 100_000;

/// Nanoseconds of CPU time a round, of the slowest of so many threads.
fn run(threads: u64, round: &(dyn Fn(u64) + Sync)) -> f64 {
    let clock = Env::os().clock;
    std::thread::scope(|scope| {
        let run = |thread: u64| {
            let clock = clock.clone();
            move || {
                let start = clock.thread_cpu_nanos();
                for n in 0..ROUNDS {
                    round((thread << 40 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS);
                }
                (clock.thread_cpu_nanos() - start) as f64 / ROUNDS as f64
            }
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
        running.into_iter().map(|one| one.join().expect("no panic")).fold(0.0, f64::max)
    })
}

fn read(txn: &mut Transaction, tree: &Tree, n: u64) {
    assert!(txn.get(tree, &n.to_be_bytes()).expect("memory does not fail").is_some());
}

fn main() -> shaledb::Result<()> {
    let config = Config { memory_bytes: 512 << 20, ..Config::default() };
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let db = Db::open_in("/db", config, options)?;
    let tree = db.tree_or_create("t")?;
    for n in 0..KEYS {
        tree.put(&n.to_be_bytes(), &[7; 190])?;
    }
    db.compact()?;
    let begin = || db.begin(TransactionOptions::default()).expect("open");
    let cores = std::thread::available_parallelism().map_or(2, |count| count.get() as u64);
    for threads in [1, cores] {
        let snapshot = run(threads, &|_| drop(db.snapshot()));
        let empty = run(threads, &|_| begin().commit(WriteOptions::default()).expect("open"));
        let one = run(threads, &|n| {
            let mut txn = begin();
            read(&mut txn, &tree, n);
            txn.commit(WriteOptions::default()).expect("open");
        });
        let plain = run(threads, &|n| {
            assert!(tree.get(&n.to_be_bytes()).expect("memory does not fail").is_some());
        });
        println!(
            "{threads} threads, ns: snapshot {snapshot:.0}, transaction {empty:.0}, with a read \
             {one:.0}, the read alone {plain:.0}"
        );
    }
    Ok(())
}
