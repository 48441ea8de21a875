//! The measurement behind docs/decisions/0009-dictionaries.md: what compression dictionaries save
//! and cost on rows of several kinds, by the size of blocks.
//!
//! cargo run --release -p shale --example dictionary_bench -- [zstd level]
//!
//! Each kind of rows is written as a table with the setting on and off. Ratio = bytes of the data
//! blocks before / after, the dictionary counted. Blocks are compressed and decompressed again with
//! the table's dictionary; one thread, the best of five rounds. `-`: the engine decided against one.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shaledb::base::config::Codec;
use shaledb::base::cursor::Cursor;
use shaledb::base::key::Kind;
use shaledb::base::stats::Recorder;
use shaledb::fs::mem::{MemClock, MemFs};
use shaledb::fs::{Env, Fs};
use shaledb::table::compress::{Compressor, Dictionary, decompress_with};
use shaledb::table::format::open_dictionary_frame;
use shaledb::table::{Table, TableDictionary, TableEnv, TableMeta, TableOptions, TableWriter, Why};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 5;
/// Bytes of rows in a table.
const TABLE_BYTES: usize = 8 << 20;

type Row = (Vec<u8>, Vec<u8>);

fn main() {
    let level = std::env::args().nth(1).map_or(3, |level| level.parse().expect("a zstd level"));
    let codec = Codec::Zstd(level);
    println!("| rows | block KiB | ratio: off, on | smaller | compress MB/s | decompress MB/s |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, rows) in
        [("sysbench", sysbench()), ("links", links()), ("half", half()), ("json", json()), text()]
    {
        for block_bytes in [4, 8, 16].map(|kib| kib << 10) {
            measure(name, &rows, codec, block_bytes);
        }
    }
}

/// A table's file and what is in it.
struct Made {
    meta: TableMeta,
    dictionary: Option<Dictionary>,
    images: Vec<Vec<u8>>,
    bytes: u64,
}

fn make(rows: &[Row], codec: Codec, dictionary: bool, block_bytes: usize) -> Made {
    let (fs, path) = (MemFs::new(), Path::new("/1.table"));
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let shared = TableEnv::new(env, 64 << 20, Arc::new(Recorder::new()));
    let dictionary = if dictionary { TableDictionary::OfTable } else { TableDictionary::None };
    let options =
        TableOptions { codec, why: Why::Set, dictionary, block_bytes, filter_bits: 10, tree: 1 };
    let mut writer = TableWriter::new(fs.create(path).expect("no faults"), 1, options);
    for (key, value) in rows {
        writer.add(key, 0, Kind::Put, value).expect("in order");
    }
    let meta = writer.finish().expect("no faults");
    let table = Table::new(meta.clone(), path.to_owned(), &shared);
    let first = table.blocks().expect("sound")[0].1.handle.offset;
    let content = fs.content(path).expect("written");
    let dictionary = (first > 0)
        .then(|| open_dictionary_frame(&content[..first as usize]).expect("a dictionary"));
    let mut scan = table.scan(None, None);
    scan.seek_first().expect("sound");
    let mut images = Vec::new();
    while let Some(raw) = scan.raw_block() {
        images.push(raw.block.image().to_vec());
        scan.skip_block().expect("sound");
    }
    let bytes = meta.data_bytes + first;
    Made { meta, dictionary, images, bytes }
}

fn measure(name: &str, rows: &[Row], codec: Codec, block_bytes: usize) {
    let off = make(rows, codec, false, block_bytes);
    let on = make(rows, codec, true, block_bytes);
    let ratio = |made: &Made| made.meta.raw_bytes as f64 / made.bytes as f64;
    let (compress, decompress) = speeds(&off.images, codec, None);
    let kib = block_bytes >> 10;
    let Some(dictionary) = &on.dictionary else {
        let plain = ratio(&off);
        println!("| {name} | {kib} | {plain:.2}, - | - | {compress:.0}, - | {decompress:.0}, - |");
        return;
    };
    let (compress_on, decompress_on) = speeds(&on.images, codec, Some(dictionary));
    println!(
        "| {name} | {kib} | {:.2}, {:.2} | {:.1} % | {compress:.0}, {compress_on:.0} | \
         {decompress:.0}, {decompress_on:.0} |",
        ratio(&off),
        ratio(&on),
        100.0 - 100.0 * on.bytes as f64 / off.bytes as f64
    );
}

/// MB per second of raw bytes, compressed and decompressed.
fn speeds(images: &[Vec<u8>], codec: Codec, dictionary: Option<&Dictionary>) -> (f64, f64) {
    let mut compressor = Compressor::new(codec);
    if let Some(dictionary) = dictionary {
        assert!(compressor.use_dictionary(dictionary));
    }
    let total: usize = images.iter().map(Vec::len).sum();
    let mut packed = vec![(0, Vec::new()); images.len()];
    let (mut compress, mut decompress) = (f64::MAX, f64::MAX);
    let mut raw = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for (image, (used, out)) in images.iter().zip(&mut packed) {
            out.clear();
            *used = compressor.compress(image, out);
        }
        compress = compress.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for (image, (used, out)) in images.iter().zip(&packed) {
            decompress_with(dictionary, *used, out, image.len(), &mut raw).expect("as it was");
        }
        decompress = decompress.min(start.elapsed().as_secs_f64());
    }
    (total as f64 / compress / 1e6, total as f64 / decompress / 1e6)
}

/// Rows up to the bytes of a table.
fn fill(mut row: impl FnMut(u32, &mut Pcg64) -> Row) -> Vec<Row> {
    let mut rng = Pcg64::seed_from_u64(1);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while bytes < TABLE_BYTES {
        let (key, value) = row(rows.len() as u32, &mut rng);
        bytes += key.len() + value.len();
        rows.push((key, value));
    }
    rows
}

/// As sysbench makes them: digits in groups.
fn sysbench() -> Vec<Row> {
    fill(|number, rng| {
        let mut value = rng.random_range(0..1_000_000u32).to_be_bytes().to_vec();
        for text in [10, 5] {
            let groups: Vec<String> = (0..text)
                .map(|_| format!("{:011}", rng.random_range(0..100_000_000_000u64)))
                .collect();
            value.extend_from_slice(groups.join("-").as_bytes());
        }
        (number.to_be_bytes().to_vec(), value)
    })
}

/// As LinkBench makes links: ids, a time, a version, some bytes of which most are copied.
fn links() -> Vec<Row> {
    let mut motif = [0; 128];
    Pcg64::seed_from_u64(2).fill_bytes(&mut motif);
    fill(|number, rng| {
        let (id1, id2) =
            (u64::from(number / 6), u64::from(number) * 1000 + rng.random_range(0..1000));
        let key = [id1, 123_456_789, id2].map(u64::to_be_bytes).concat();
        let mut value = vec![1];
        value.extend_from_slice(
            &(1_700_000_000_000 + rng.random_range(0..1u64 << 27)).to_be_bytes(),
        );
        value.extend_from_slice(&rng.random_range(0..3u32).to_be_bytes());
        let length = rng.random_range(0..40);
        if rng.random_range(0..1000) < 225 {
            value.extend((0..length).map(|_| rng.random_range(32..101u8)));
        } else {
            let at = rng.random_range(0..=motif.len() - length);
            value.extend(motif[at..at + length].iter().map(|byte| 32 + byte % 69));
        }
        (key, value)
    })
}

/// As db_bench makes them: half of a value repeats the other.
fn half() -> Vec<Row> {
    fill(|number, rng| {
        let half: Vec<u8> = (0..120).map(|_| rng.random_range(b' '..=b'~')).collect();
        (format!("{number:016}").into_bytes(), half.repeat(2))
    })
}

fn json() -> Vec<Row> {
    fill(|number, rng| {
        let mut below = |bound: u32| rng.random_range(0..bound);
        let state = ["active", "inactive", "pending", "closed"][below(4) as usize];
        let value = format!(
            "{{\"id\":{number},\"user\":{{\"name\":\"user{}\",\"email\":\"user{}@example.com\",\
             \"status\":\"{state}\"}},\"created_at\":\"2026-11-{:02}T{:02}:{:02}:00Z\",\
             \"amount\":{}.{:02},\"currency\":\"EUR\",\"tags\":[\"t{}\",\"t{}\"]}}",
            below(100_000),
            below(100_000),
            1 + below(28),
            below(24),
            below(60),
            below(10_000),
            below(100),
            below(50),
            below(50)
        );
        (format!("order/{number:012}").into_bytes(), value.into_bytes())
    })
}

/// The lines of /var/lib/dpkg/status, each once.
fn text() -> (&'static str, Vec<Row>) {
    let text = std::fs::read_to_string("/var/lib/dpkg/status").expect("a Debian system");
    let row = |(number, line): (usize, &str)| {
        ((number as u32).to_be_bytes().to_vec(), line.as_bytes().to_vec())
    };
    ("text", text.lines().enumerate().map(row).collect())
}
