//! `memory_bytes` bounds what the process takes, not only what is counted. One test in a program of
//! its own, since it reads the resident memory of the process. The exact figures are those of
//! examples/memory_bench and docs/decisions/0006-memory.md; the margins here are wide.

#![cfg(target_os = "linux")]

use shale::{Config, Db, Result, Tree};

const MIB: u64 = 1 << 20;
const MEMORY: u64 = 32 * MIB;
const KEYS: u64 = 400_000;
const THREADS: u64 = 4;

/// Resident memory that is not of files, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    let number: String = line.chars().filter(char::is_ascii_digit).collect();
    number.parse::<u64>().unwrap() * 1024
}

fn value(number: u64) -> Vec<u8> {
    let mut word = number | 1;
    let words = (0..32).flat_map(|_| {
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ 0x5bd1;
        word.to_le_bytes()
    });
    words.collect()
}

/// Reads or writes at random from some threads.
fn at_random(operations: u64, work: impl Fn(u64, u64) -> Result<()> + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || {
                let mut random = thread * 7919 + 1;
                for _ in 0..operations / THREADS {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    work(thread, (random >> 20) % KEYS).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_database_takes_about_as_much_memory_as_it_may() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let base = resident();
    let config = Config { memory_bytes: MEMORY, ..Config::default() };
    let db = Db::open(dir.path(), config)?;
    let tree = db.tree_or_create("t")?;
    let mut ingest = tree.ingest()?;
    for number in 0..KEYS {
        ingest.add(&number.to_be_bytes(), &value(number))?;
    }
    ingest.finish()?;

    let taken = |what: &str| {
        let bytes = resident().saturating_sub(base);
        let counted: u64 = db.stats().memory_used.values().sum();
        println!("{what}: {} MiB, counted {} MiB", bytes / MIB, counted / MIB);
        // Half as much again, and what threads and compactions work with.
        assert!(bytes < MEMORY * 3 / 2 + 16 * MIB, "{what}: {bytes} bytes, {counted} counted");
        assert!(counted <= MEMORY + MEMORY / 16, "{what}: {counted} counted");
    };
    let read = |tree: &Tree, number: u64| -> Result<()> {
        assert_eq!(tree.get(&number.to_be_bytes())?.unwrap().len(), 256);
        Ok(())
    };
    // Twenty times what fits: each block of the cache is another one in the end.
    at_random(60_000, |_, number| read(&tree, number));
    taken("reads");
    at_random(60_000, |thread, number| {
        if thread == 0 {
            tree.put(&number.to_be_bytes(), &value(number + 1))
        } else {
            read(&tree, number)
        }
    });
    taken("reads beside writes");
    db.wait_idle()?;
    at_random(20_000, |_, number| read(&tree, number));
    taken("reads after a compaction");
    Ok(())
}
