//! What one table costs: `cargo run --release -p shale --example table_bench -- lz4 [rows]`.
//!
//! Rows have keys of 20 bytes (an 8-byte big-endian number and twelve `0`) and values of 280 bytes
//! of which half is noise. The file is written to the directory for temporary files.

use shaledb::base::config::Codec;
use shaledb::base::cursor::Cursor;
use shaledb::base::key::{Kind, SEQ_MAX};
use shaledb::base::stats::Recorder;
use shaledb::base::{coding, error::Result};
use shaledb::fs::Env;
use shaledb::table::{
    CursorOptions, Table, TableDictionary, TableEnv, TableOptions, TableWriter, Why,
};
use std::sync::Arc;
use std::time::Instant;

const VALUE_BYTES: usize = 280;

/// The next number of a generator that is good enough here.
fn step(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn key(number: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn report(what: &str, since: Instant, count: u64) {
    let nanos = since.elapsed().as_nanos() as f64 / count as f64;
    println!("{what:<28} {:>8.3} us", nanos / 1000.0);
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let codec: Codec = args.next().unwrap_or_else(|| "lz4".to_owned()).parse()?;
    let rows: u64 = args.next().and_then(|rows| rows.parse().ok()).unwrap_or(200_000);
    let path = std::env::temp_dir().join(format!("shale-table-bench-{}.table", std::process::id()));
    let env = Env::os();
    let shared = TableEnv::new(env.clone(), 1 << 30, Arc::new(Recorder::new()));
    let mut state = 88172645463325252u64;
    let mut noise = vec![0u8; 1 << 20];
    noise.iter_mut().for_each(|byte| *byte = step(&mut state) as u8);

    let mut value = [b' '; VALUE_BYTES];
    let options = TableOptions {
        codec,
        why: Why::Set,
        dictionary: TableDictionary::None,
        block_bytes: 16 * 1024,
        filter_bits: 10,
        tree: 1,
    };
    let begin = Instant::now();
    let mut writer = TableWriter::new(env.fs.create(&path)?, 1, options);
    for number in 0..rows {
        let at = step(&mut state) as usize % (noise.len() - VALUE_BYTES);
        value[..VALUE_BYTES / 2].copy_from_slice(&noise[at..at + VALUE_BYTES / 2]);
        writer.add(&key(number * 7), 0, Kind::Put, &value)?;
    }
    let meta = writer.finish()?;
    report("write, per row", begin, rows);
    println!("{} bytes in {} blocks, {} raw", meta.file_bytes, meta.blocks, meta.raw_bytes);

    let table = Table::new(meta, path, &shared);
    table.mark_obsolete();
    let get = |table: &Arc<Table>, number: u64, sum: &mut u64| -> Result<()> {
        let key = key(number);
        let found = table.get(&key, coding::hash(&key), SEQ_MAX)?;
        *sum += found.map_or(0, |entry| u64::from(entry.value[7]));
        Ok(())
    };
    let mut sum = 0;
    for round in ["scan, per row", "scan again, per row"] {
        let begin = Instant::now();
        let mut scan = table.scan(None, None);
        scan.seek_first()?;
        while scan.valid() {
            sum += u64::from(scan.key()[7]) + u64::from(scan.value()[9]);
            scan.next()?;
        }
        report(round, begin, rows);
    }
    for fill_cache in [false, true, true] {
        let begin = Instant::now();
        if !fill_cache {
            shared.cache.set_capacity(0);
        }
        let mut cursor = table.cursor(CursorOptions { fill_cache, ..CursorOptions::default() });
        cursor.seek_first()?;
        while cursor.valid() {
            sum += u64::from(cursor.key()[7]) + u64::from(cursor.value()[9]);
            cursor.next()?;
        }
        report(
            if fill_cache { "cursor, filling, per row" } else { "cursor, per row" },
            begin,
            rows,
        );
        shared.cache.set_capacity(1 << 30);
    }
    let gets = 1_000_000;
    let begin = Instant::now();
    for _ in 0..gets {
        get(&table, step(&mut state) % rows * 7, &mut sum)?;
    }
    report("get, cached", begin, gets);
    let begin = Instant::now();
    for _ in 0..gets {
        get(&table, step(&mut state) % rows * 7 + 1, &mut sum)?;
    }
    report("get of an absent key", begin, gets);
    shared.cache.set_capacity(0);
    let gets = 100_000;
    let begin = Instant::now();
    for _ in 0..gets {
        get(&table, step(&mut state) % rows * 7, &mut sum)?;
    }
    report("get, not cached", begin, gets);
    println!("(sum {sum})");
    Ok(())
}
