//! What a lock that nobody disputes costs: `cargo run --release --example lock_bench`.
//!
//! Each transaction locks some keys to write and lets go of them; the CPU time of the thread is per
//! key, of both. The last line is of as many threads as there are cores, each with keys of its own.

use shale::Env;
use shale::base::coding;
use shale::txn::{Lock, LockTable, Mode, Span, Wait};

const KEYS: u64 = 4_000_000;

/// Nanoseconds for each key, with so many keys in a transaction.
fn run(table: &LockTable, first: u64, keys: u64, each: u64) -> f64 {
    let clock = Env::os().clock;
    let start = clock.thread_cpu_nanos();
    for round in 0..keys / each {
        let mut owner = table.owner();
        for n in 0..each {
            let key = coding::hash(&(first + round * each + n).to_le_bytes()).to_be_bytes();
            let lock = Lock { tree: 1, span: Span::Key(&key), mode: Mode::Write };
            table.acquire(&mut owner, lock, Wait::Never, &*clock).expect("nobody is in the way");
        }
        table.release(&mut owner);
    }
    (clock.thread_cpu_nanos() - start) as f64 / keys as f64
}

fn main() {
    let table = LockTable::new(1 << 30);
    for each in [1, 10, 100, 10_000] {
        println!("{each:>6} keys a transaction: {:.0} ns a key", run(&table, 0, KEYS, each));
    }
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get() as u64);
    let nanos = std::thread::scope(|scope| {
        let table = &table;
        let running: Vec<_> =
            (0..threads).map(|n| scope.spawn(move || run(table, n << 40, KEYS, 10))).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).fold(0.0, f64::max)
    });
    println!("{threads} threads, 10 keys a transaction: {nanos:.0} ns a key");
}
