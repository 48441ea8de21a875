//! What a lock that nobody disputes costs: `cargo run --release --example lock_bench`.
//!
//! Each transaction locks some keys to write and lets go of them; the CPU time of the thread is per
//! key, of both. Then as many threads as there are cores, each with keys of its own, and scans that
//! lock 1 and 100 rows of 10,000, with a transaction each. `lock_bench scans` makes these alone.
//! Then 128 keys of a tree whose rows are in cached tables, level 0 and a deep level: read with a
//! lock one by one, and locked one by one and read together; `lock_bench together` alone.

use shaledb::base::coding;
use shaledb::txn::{Lock, LockTable, Mode, Span, Wait};
use shaledb::{
    Background, Config, Db, Env, Isolation, LockMode, OpenOptions, ScanOptions, TransactionOptions,
    Tree,
};

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

/// Nanoseconds for a scan that locks so many rows.
fn scan(db: &Db, isolation: Isolation, rows: u64) -> shaledb::Result<f64> {
    const SCANS: u64 = 20_000;
    let (clock, tree) = (Env::os().clock, db.tree_or_create("t")?);
    let start = clock.thread_cpu_nanos();
    for n in 0..SCANS {
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        let mut txn = db.begin(options)?;
        let first = coding::hash(&n.to_le_bytes()) % (ROWS - rows);
        let (lower, upper) = (first.to_be_bytes().to_vec(), (first + rows).to_be_bytes().to_vec());
        let options =
            ScanOptions { lower: Some(lower), upper: Some(upper), ..ScanOptions::default() };
        let mut scan = txn.scan_locking(&tree, options, LockMode::Exclusive)?;
        while scan.next(&mut txn)? {}
    }
    Ok((clock.thread_cpu_nanos() - start) as f64 / SCANS as f64)
}

const ROWS: u64 = 10_000;

fn scans() -> shaledb::Result<()> {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let db = Db::open_in("/db", Config::default(), options)?;
    let tree = db.tree_or_create("t")?;
    for n in 0..ROWS {
        tree.put(&n.to_be_bytes(), &[7; 100])?;
    }
    tree.flush()?;
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        for rows in [1, 100] {
            let nanos = scan(&db, isolation, rows)?;
            println!("a scan that locks {rows} rows at {isolation:?}: {nanos:.0} ns");
        }
    }
    Ok(())
}

const PARENTS: u64 = 300_000;

type Way = fn(&Db, &Tree, &[[u8; 8]]) -> shaledb::Result<usize>;

/// Reads keys with a shared lock, one by one; answers how many are there.
#[inline(never)]
fn one_by_one(db: &Db, tree: &Tree, keys: &[[u8; 8]]) -> shaledb::Result<usize> {
    let mut txn = db.begin(TransactionOptions::default())?;
    let mut there = 0;
    for key in keys {
        there += usize::from(txn.get_for_share(tree, key)?.is_some());
    }
    Ok(there)
}

/// The same, but looks them up together.
#[inline(never)]
fn locked_then_read(db: &Db, tree: &Tree, keys: &[[u8; 8]]) -> shaledb::Result<usize> {
    let mut txn = db.begin(TransactionOptions::default())?;
    for key in keys {
        txn.lock(tree, key, LockMode::Shared)?;
    }
    Ok(txn.multi_get_locked(tree, keys)?.iter().flatten().count())
}

/// Keys of one call are `step` rows apart, and asked for in their order.
fn together(step: u64, missing: bool) -> shaledb::Result<()> {
    const ROUNDS: u64 = 1_000;
    let options = OpenOptions {
        env: Env::memory(),
        background: Background::Stepped,
        ..OpenOptions::default()
    };
    let config = Config { memory_bytes: 512 << 20, ..Config::default() };
    let db = Db::open_in("/db", config, options)?;
    let tree = db.tree_or_create("t")?;
    let put = |n: u64| tree.put(&(2 * n).to_be_bytes(), &[7; 100]);
    (0..PARENTS).try_for_each(put)?;
    tree.compact()?;
    for first in 0..2 {
        (first..PARENTS).step_by(20).try_for_each(put)?;
        tree.flush()?;
    }
    let clock = Env::os().clock;
    let mut nanos = [0.0; 2];
    for round in 0..ROUNDS {
        let first = coding::hash(&round.to_le_bytes()) % (PARENTS - 128 * step);
        let keys: Vec<[u8; 8]> =
            (0..128).map(|n| (2 * (first + n * step) + u64::from(missing)).to_be_bytes()).collect();
        let ways: [Way; 2] = [one_by_one, locked_then_read];
        // Each way goes first half of the time.
        for turn in 0..2 {
            let way = (turn + round as usize) % 2;
            let start = clock.thread_cpu_nanos();
            let there = ways[way](&db, &tree, &keys)?;
            nanos[way] += (clock.thread_cpu_nanos() - start) as f64;
            assert_eq!(there, if missing { 0 } else { 128 });
        }
    }
    let [one, many] = nanos.map(|nanos| nanos / (ROUNDS * 128) as f64);
    println!(
        "128 keys, each {step} rows apart, {}: one by one {one:.0} ns a key, together {many:.0}",
        if missing { "missing" } else { "there" }
    );
    Ok(())
}

fn main() {
    let only = |name: &str| std::env::args().any(|argument| argument == name);
    let all_together = || {
        for (step, missing) in [(1, false), (50, false), (2_000, false), (50, true)] {
            together(step, missing).expect("a database in memory");
        }
    };
    if only("scans") {
        return scans().expect("a database in memory");
    }
    if only("together") {
        return all_together();
    }
    let cores = std::thread::available_parallelism().map_or(2, |count| count.get());
    let mut table = LockTable::new(1 << 30);
    table.fit(cores);
    for each in [1, 10, 100, 10_000] {
        println!("{each:>6} keys a transaction: {:.0} ns a key", run(&table, 0, KEYS, each));
    }
    let threads = cores as u64;
    let nanos = std::thread::scope(|scope| {
        let table = &table;
        let running: Vec<_> =
            (0..threads).map(|n| scope.spawn(move || run(table, n << 40, KEYS, 10))).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).fold(0.0, f64::max)
    });
    println!("{threads} threads, 10 keys a transaction: {nanos:.0} ns a key");
    scans().expect("a database in memory");
    all_together();
}
