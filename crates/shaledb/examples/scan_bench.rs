//! What a row of a scan costs: over one memtable, over one run of tables with cached blocks, and
//! over a memtable, level 0 and a run together. Also gets and multi-gets of the same state.
//!
//! `cargo run --release -p shale --example scan_bench [rows]`

use shaledb::base::config::{Codec, LEVELS};
use shaledb::base::error::Result;
use shaledb::base::key::{Kind, SEQ_MAX};
use shaledb::base::stats::Recorder;
use shaledb::base::sync::Arc;
use shaledb::fs::mem::{MemClock, MemFs};
use shaledb::fs::{Env, Fs};
use shaledb::memtable::Memtable;
use shaledb::read::{BlobSource, Scan, ScanRange, get, multi_get};
use shaledb::state::TreeState;
use shaledb::table::{
    CursorOptions, Table, TableDictionary, TableEnv, TableOptions, TableWriter, Why,
};
use shaledb::version::Version;
use std::path::Path;
use std::time::Instant;

const VALUE: [u8; 100] = [b'v'; 100];

struct NoBlobs;

impl BlobSource for NoBlobs {
    fn read(&self, _: &[u8]) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("user{number:016}").into_bytes()
}

struct Bench {
    fs: MemFs,
    tables: Arc<TableEnv>,
    next: u64,
    rows: u64,
}

impl Bench {
    fn table(&mut self, numbers: impl Iterator<Item = u64>, seq: u64) -> Arc<Table> {
        let path = Path::new("/t").join(format!("{}.table", self.next));
        let options = TableOptions {
            codec: Codec::None,
            why: Why::Set,
            dictionary: TableDictionary::None,
            block_bytes: 16 << 10,
            filter_bits: 10,
            tree: 1,
        };
        let file = self.fs.create(&path).expect("a file in memory");
        let mut writer = TableWriter::new(file, self.next, options);
        for number in numbers {
            writer.add(&key(number), seq, Kind::Put, &VALUE).expect("ascending keys");
        }
        let meta = writer.finish().expect("a file in memory");
        self.next += 1;
        Table::new(meta, path, &self.tables)
    }

    fn state(&self, active: Memtable, levels: Vec<Vec<Arc<Table>>>) -> TreeState {
        let version = Version::from_levels(levels).expect("disjoint runs");
        TreeState { active: Arc::new(active), sealed: Vec::new(), version: Arc::new(version) }
    }

    fn measure(&self, name: &str, state: &TreeState) {
        for (way, forward) in [("forward", true), ("backward", false)] {
            let range =
                ScanRange { lower: Vec::new(), upper: None, cursor: CursorOptions::default() };
            let mut scan =
                Scan::new(state, range, SEQ_MAX, Arc::new(NoBlobs)).expect("nothing to fail");
            let mut best = f64::MAX;
            for _ in 0..3 {
                let start = Instant::now();
                let (mut rows, mut sum) = (0u64, 0u64);
                if forward { scan.seek_first() } else { scan.seek_last() }.expect("readable");
                while scan.valid() {
                    rows += 1;
                    sum += u64::from(scan.key()[19]) + scan.value().expect("readable").len() as u64;
                    if forward { scan.next() } else { scan.prev() }.expect("readable");
                }
                assert!(rows >= self.rows && sum > 0);
                best = best.min(start.elapsed().as_nanos() as f64 / rows as f64);
            }
            println!("{name:40} {way:9} {best:7.1} ns/row");
        }
        let gets = 200_000;
        let order = |i: u64| key(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.rows);
        let start = Instant::now();
        for i in 0..gets {
            let value = get(state, &order(i), SEQ_MAX, &NoBlobs).expect("readable");
            assert!(value.is_some());
        }
        let each = start.elapsed().as_nanos() as f64 / gets as f64;
        println!("{name:40} get       {each:7.1} ns");
        let start = Instant::now();
        for i in 0..gets / 50 {
            let keys: Vec<Vec<u8>> = (0..50).map(|j| order(i * 50 + j)).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let values = multi_get(state, &keys, SEQ_MAX, &NoBlobs).expect("readable");
            assert!(values.iter().all(Option::is_some));
        }
        let each = start.elapsed().as_nanos() as f64 / gets as f64;
        println!("{name:40} multi-get {each:7.1} ns/key");
    }
}

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(500_000);
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("/t")).expect("a directory in memory");
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let tables = TableEnv::new(env, 1 << 30, Arc::new(Recorder::new()));
    let mut bench = Bench { fs, tables, next: 1, rows };

    let memtable = Memtable::new();
    for number in 0..rows {
        memtable.insert(&key(number), 1, Kind::Put, &VALUE);
    }
    let state = bench.state(memtable, Vec::new());
    bench.measure("one memtable", &state);

    let part = rows / 8;
    let run: Vec<Arc<Table>> = (0..8)
        .map(|at| bench.table(at * part..if at == 7 { rows } else { (at + 1) * part }, 0))
        .collect();
    let mut levels = vec![Vec::new(); LEVELS];
    levels[6] = run.clone();
    let state = bench.state(Memtable::new(), levels.clone());
    bench.measure("one run of 8 tables", &state);

    let memtable = Memtable::new();
    for number in (0..rows).step_by(20) {
        memtable.insert(&key(number), 100, Kind::Put, &VALUE);
    }
    levels[0] = (0..4).map(|at| bench.table((at..rows).step_by(40), 10 + at)).collect();
    let state = bench.state(memtable, levels.clone());
    bench.measure("memtable + 4 tables in level 0 + run", &state);

    let memtable = Memtable::new();
    memtable.delete_range(&key(rows), &key(rows + 1), 200, 200);
    let state = bench.state(memtable, levels);
    bench.measure("4 tables in level 0 + run, a range delete", &state);
}
