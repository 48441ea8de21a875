//! What a memtable's operations cost: `cargo run --release -p shale --example memtable_bench`.
//!
//! Keys are 20 bytes (a number, big-endian, then '0's), values 280 bytes, as a common benchmark
//! of storage engines has them. Arguments: megabytes (64), shared prefix of the keys in bytes (0),
//! threads (1).

use std::hint::black_box;

use shaledb::base::cursor::Cursor;
use shaledb::base::key::{Kind, SEQ_MAX};
use shaledb::memtable::Memtable;

const VALUE: [u8; 280] = [b'v'; 280];

/// Writes the key of `number` and returns it.
fn key(out: &mut [u8; 64], prefix: usize, number: u64) -> &[u8] {
    out[prefix..prefix + 8].copy_from_slice(&number.to_be_bytes());
    &out[..prefix + 20]
}

/// A permutation of 0..count, cheap to compute.
fn shuffled(index: u64, count: u64) -> u64 {
    (u128::from(index) * 0x9e37_79b9_7f4a_7c15 % u128::from(count)) as u64
}

/// Nanoseconds that this thread has had a processor: a machine shared with others tells no truth by
/// the wall clock.
fn now() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let first = text.split(' ').next().expect("three numbers");
    first.parse().expect("a number")
}

fn report(what: &str, started: u64, operations: u64) {
    let nanoseconds = (now() - started) as f64 / operations as f64;
    println!("{what:<24} {nanoseconds:>8.0} ns");
}

/// Inserts `count` entries from `threads` threads, of which the caller is one.
fn fill(memtable: &Memtable, prefix: usize, count: u64, threads: u64, order: fn(u64, u64) -> u64) {
    let part = |thread: u64| {
        let mut buffer = [b'0'; 64];
        for index in (thread * count / threads)..((thread + 1) * count / threads) {
            let key = key(&mut buffer, prefix, order(index, count));
            memtable.insert(key, index + 1, Kind::Put, &VALUE);
        }
    };
    std::thread::scope(|scope| {
        for thread in 1..threads {
            scope.spawn(move || part(thread));
        }
        part(0);
    });
}

fn main() {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|argument| argument.parse().expect("a number")).collect();
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (megabytes, prefix, threads) = (argument(0, 64), argument(1, 0), argument(2, 1) as u64);
    let mut count = (megabytes as u64 * 1_000_000) / (300 + prefix as u64 + 40);
    // No common divisor with the multiplier of `shuffled`, whose prime factors are larger than 3.
    count = count / 2 * 2 + 1;
    println!("{count} entries, shared prefix {prefix}, {threads} threads");
    let sequential = Memtable::new();
    let started = now();
    fill(&sequential, prefix, count, threads, |index, _| index);
    report("sequential insert", started, count / threads);
    let started = now();
    drop(sequential);
    report("drop", started, count);

    let memtable = Memtable::new();
    let started = now();
    fill(&memtable, prefix, count, threads, shuffled);
    report("random insert", started, count / threads);
    println!("{} bytes, {} used", memtable.bytes(), memtable.used_bytes());

    let mut buffer = [b'0'; 64];
    let lookups = count.min(1_000_000);
    let started = now();
    for index in 0..lookups {
        // Another order than that of the inserts, which would find its path in the cache.
        let number = shuffled(index * 7 % count, count);
        let entry = memtable.get(key(&mut buffer, prefix, number), SEQ_MAX).expect("inserted");
        black_box(entry.value[0]);
    }
    report("lookup, found", started, lookups);
    let started = now();
    for index in 0..lookups {
        let number = shuffled(index * 7 % count, count);
        let mut key = *key(&mut buffer, prefix, number).last_chunk::<20>().expect("20 bytes");
        key[19] = b'1';
        let mut full = buffer;
        full[prefix..prefix + 20].copy_from_slice(&key);
        black_box(memtable.get(&full[..prefix + 20], SEQ_MAX).is_none());
    }
    report("lookup, absent", started, lookups);

    let mut cursor = memtable.cursor();
    let mut sum = 0;
    let started = now();
    cursor.seek_first().expect("never fails");
    while cursor.valid() {
        sum += cursor.key().len() as u64;
        cursor.next().expect("never fails");
    }
    report("cursor next, keys", started, count);
    let started = now();
    cursor.seek_first().expect("never fails");
    while cursor.valid() {
        sum += cursor.value().iter().map(|&byte| u64::from(byte)).sum::<u64>();
        cursor.next().expect("never fails");
    }
    report("cursor next, values", started, count);
    let started = now();
    cursor.seek_last().expect("never fails");
    while cursor.valid() {
        sum += cursor.key().len() as u64;
        cursor.prev().expect("never fails");
    }
    report("cursor prev", started, count);
    black_box(sum);
}
