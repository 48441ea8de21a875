//! What a compaction costs, and what the reuse of whole blocks saves:
//! `cargo run --release -p shaledb --example compact_bench -- [rows] [bytes] [rounds] [pattern]`.
//!
//! A run of `rows` rows in the last level is merged with a tenth as many rows from above. Keys are
//! of 20 bytes, half of each value is noise. The rows from above are
//! - `uniform`: updates of rows anywhere;
//! - `clustered`: updates in 5 % of the key space, which are 200 spots spread over all of it;
//! - `append`: nineteen of twenty are new rows behind the last key, the others updates anywhere;
//! - `nothing`: none at all; the run is written again as it is.
//!
//! CPU is that of the thread, the best of the rounds, per MB (10^6 bytes) of keys and values read.
//! The files lie in the directory for temporary files.

use shaledb::base::config::Codecs;
use shaledb::base::error::Result;
use shaledb::base::key::Kind;
use shaledb::base::stats::Recorder;
use shaledb::compaction::job::{Context, Done, PartMerge};
use shaledb::compaction::plan::{Action, Plan, Reason};
use shaledb::compaction::policy::LAST;
use shaledb::compaction::policy::chosen::Choice;
use shaledb::compaction::range::KeyRange;
use shaledb::compaction::split::Part;
use shaledb::fs::Env;
use shaledb::table::{FileId, Table, TableDictionary, TableEnv, TableOptions, TableWriter, Why};
use shaledb::{Codec, SeqNo};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK_BYTES: usize = 16 * 1024;
const FILTER_BITS: u8 = 10;
const SPOTS: u64 = 200;

/// A generator that is good enough here.
struct Random {
    state: u64,
    noise: Vec<u8>,
}

impl Random {
    fn new() -> Random {
        let mut random = Random { state: 88172645463325252, noise: Vec::new() };
        random.noise = (0..1 << 20).map(|_| random.below(256) as u8).collect();
        random
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % bound
    }

    /// Makes the first half of a value noise.
    fn fill(&mut self, value: &mut [u8]) {
        let half = value.len() / 2;
        let at = self.below((self.noise.len() - half) as u64) as usize;
        value[..half].copy_from_slice(&self.noise[at..at + half]);
    }
}

fn key(number: u64) -> [u8; 20] {
    let mut key = [b'0'; 20];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// Numbers of the rows that come from above: some of `0..rows`, or ones behind them.
fn above(pattern: &str, rows: u64, random: &mut Random) -> Vec<u64> {
    let count = if pattern == "nothing" { 0 } else { rows / 10 };
    let spot = rows / 20 / SPOTS;
    let mut number = |at: u64| match pattern {
        "clustered" => random.below(SPOTS) * (rows / SPOTS) + random.below(spot.max(1)),
        "append" if !at.is_multiple_of(20) => rows + at,
        _ => random.below(rows),
    };
    let mut numbers: Vec<u64> = (0..count).map(&mut number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

struct Bench {
    env: Env,
    shared: Arc<TableEnv>,
    dir: PathBuf,
    next: AtomicU64,
    codec: Codec,
}

impl Bench {
    fn new_file(&self) -> (FileId, PathBuf) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (id, self.dir.join(format!("{id:06}.table")))
    }

    fn write(
        &self,
        numbers: impl Iterator<Item = u64>,
        seq: SeqNo,
        value_bytes: usize,
        random: &mut Random,
    ) -> Result<Arc<Table>> {
        let (id, path) = self.new_file();
        let (block_bytes, filter_bits) = (BLOCK_BYTES, FILTER_BITS);
        let options = TableOptions {
            codec: self.codec,
            why: Why::Set,
            dictionary: TableDictionary::None,
            block_bytes,
            filter_bits,
            tree: 1,
        };
        let mut writer = TableWriter::new(self.env.fs.create(&path)?, id, options);
        let mut value = vec![b' '; value_bytes];
        for (at, number) in numbers.enumerate() {
            random.fill(&mut value);
            let seq = if seq == 0 { 0 } else { seq + at as u64 };
            writer.add(&key(number), seq, Kind::Put, &value)?;
        }
        Ok(Table::new(writer.finish()?, path, &self.shared))
    }

    fn plan(&self, tables: &[Arc<Table>]) -> Plan {
        let mut range = KeyRange::of(&tables[0].meta);
        tables.iter().for_each(|table| range.extend(&table.meta));
        Plan {
            reason: Reason::Size,
            action: Action::Merge,
            inputs: Vec::new(),
            output_level: LAST,
            is_last: true,
            range,
            input_bytes: 0,
            output_level_bytes: 0,
            grandparents: Vec::new(),
            below: Vec::new(),
            building: false,
            choice: Choice { codec: self.codec, dictionary: true, why: Why::Set },
            block_bytes: None,
            filter_bits: FILTER_BITS,
            table_bytes: 64 << 20,
        }
    }

    /// Merges the tables (the first in the last level, the others above); removes what was written.
    fn merge(&self, tables: &[Arc<Table>]) -> Result<(Done, u64)> {
        let plan = self.plan(tables);
        let inputs: Vec<(usize, Vec<Arc<Table>>)> = tables
            .iter()
            .enumerate()
            .map(|(at, table)| (LAST - at, vec![Arc::clone(table)]))
            .rev()
            .collect();
        let context = Context {
            env: &self.env,
            meter: &self.shared.meter,
            memory: &self.shared.memory,
            memory_bytes: 64 << 20,
            plan: &plan,
            inputs: &inputs,
            part_bytes: tables.iter().map(|table| table.meta.file_bytes).sum(),
            snapshots: &[],
            state: None,
            tree: 1,
            block_bytes: BLOCK_BYTES,
            codecs: &Codecs::all(self.codec).into(),
            probe: None,
            dictionary: &TableDictionary::None,
            dir: &self.dir,
            next_file: &self.next,
        };
        let before = self.env.clock.thread_cpu_nanos();
        let mut merge = PartMerge::begin(&context, &Part::default())?;
        while merge.step()? {}
        let done = merge.finish()?;
        let cpu = self.env.clock.thread_cpu_nanos() - before;
        for id in merge.into_files() {
            self.env.fs.remove(&self.dir.join(format!("{id:06}.table")))?;
        }
        Ok((done, cpu))
    }
}

fn run(env: &Env, dir: PathBuf, codec: Codec, pattern: &str, sizes: [u64; 3]) -> Result<()> {
    let [rows, value_bytes, rounds] = sizes;
    let shared = TableEnv::new(env.clone(), 64 << 20, Arc::new(Recorder::new()));
    let bench = Bench { env: env.clone(), shared, dir, next: AtomicU64::new(1), codec };
    let mut random = Random::new();
    let numbers = above(pattern, rows, &mut random);
    let mut tables = vec![bench.write(0..rows, 0, value_bytes as usize, &mut random)?];
    if !numbers.is_empty() {
        let numbers = numbers.iter().copied();
        tables.push(bench.write(numbers, 1000, value_bytes as usize, &mut random)?);
    }
    let input: u64 = tables.iter().map(|t| t.meta.key_bytes + t.meta.value_bytes).sum();
    let blocks: u64 = tables.iter().map(|table| table.meta.blocks).sum();
    let mut best = u64::MAX;
    let mut done = Done::default();
    for _ in 0..rounds {
        let (result, cpu) = bench.merge(&tables)?;
        best = best.min(cpu);
        done = result;
    }
    let sum = |of: fn(&shaledb::table::TableMeta) -> u64| done.tables.iter().map(of).sum::<u64>();
    println!(
        "{pattern:>10} {codec:>8} {:>9.3} {:>10.1} {:>9.1} {:>8} {:>9} {:>9.1}",
        best as f64 / 1e6 / (input as f64 / 1e6),
        best as f64 / done.entries_in as f64,
        100.0 * done.blocks_reused as f64 / blocks as f64,
        blocks,
        sum(|meta| meta.blocks),
        sum(|meta| meta.file_bytes) as f64 / 1e6,
        codec = codec.to_string(),
    );
    for table in tables {
        table.mark_obsolete();
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (rows, value_bytes, rounds) = (number(0, 1_000_000), number(1, 100), number(2, 3));
    let dir = std::env::temp_dir().join(format!("shale-compact-bench-{}", std::process::id()));
    let env = Env::os();
    env.fs.create_dir_all(&dir)?;
    println!("{rows} rows, values of {value_bytes} bytes, the best of {rounds} rounds");
    println!(
        "{:>10} {:>8} {:>9} {:>10} {:>9} {:>8} {:>9} {:>9}",
        "pattern", "codec", "ms/MB", "ns/entry", "reused %", "blocks", "new", "new MB"
    );
    let wanted = |pattern: &&str| args.get(3).is_none_or(|only| only == pattern);
    for pattern in ["uniform", "clustered", "append", "nothing"].into_iter().filter(wanted) {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd(3)] {
            run(&env, dir.clone(), codec, pattern, [rows, value_bytes, rounds])?;
        }
    }
    env.fs.remove_dir(&dir)
}
