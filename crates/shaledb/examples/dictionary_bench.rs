//! The measurement behind docs/decisions/0009-dictionaries.md: what compression dictionaries save
//! and cost on rows of several kinds, by the size of blocks.
//!
//! cargo run --release -p shaledb --example dictionary_bench -- [zstd level] [MiB of rows in a table]
//!
//! Each kind of rows is written as a table without a dictionary, with one of its own first blocks,
//! and with one of the tree's: made by blocks from all over another table of such rows. Ratio =
//! bytes of the data blocks before / after, the dictionary counted. Blocks are compressed and
//! decompressed again with the table's dictionary; one thread, the best of five rounds. `-`: the
//! engine decided against one.

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
use shaledb::table::write::{HeldOut, Used, decide};
use shaledb::table::{
    Probe, Table, TableDictionary, TableEnv, TableMeta, TableOptions, TableWriter, Why,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 5;
/// Bytes of rows in the table that the tree's dictionary is made by.
const TREE_BYTES: usize = 32 << 20;

type Row = (Vec<u8>, Vec<u8>);

fn main() {
    let mut args = std::env::args().skip(1);
    let level = args.next().map_or(3, |level| level.parse().expect("a zstd level"));
    let mib: usize = args.next().map_or(8, |mib| mib.parse().expect("a number of MiB"));
    println!("zstd:{level}, tables of {mib} MiB; ratios and MB/s: off, of the table, of the tree");
    println!("| rows | block KiB | ratio | smaller, % | compress | decompress |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, rows) in kinds() {
        let cut = rows.iter().scan(0, |bytes, (key, value)| {
            *bytes += key.len() + value.len();
            Some(*bytes)
        });
        let count = cut.take_while(|bytes| *bytes <= mib << 20).count();
        for block_bytes in [4, 8, 16].map(|kib| kib << 10) {
            measure(name, (&rows, count), level, block_bytes);
        }
    }
}

fn kinds() -> [(&'static str, Vec<Row>); 5] {
    [("sysbench", sysbench()), ("links", links()), ("half", half()), ("json", json()), text()]
}

/// A table's file and what is in it.
struct Made {
    meta: TableMeta,
    dictionary: Option<Dictionary>,
    images: Vec<Vec<u8>>,
    bytes: u64,
    probe: Probe,
}

fn make(rows: &[Row], codec: Codec, dictionary: TableDictionary, block_bytes: usize) -> Made {
    let (fs, path) = (MemFs::new(), Path::new("/1.table"));
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let shared = TableEnv::new(env, 64 << 20, Arc::new(Recorder::new()));
    let options =
        TableOptions { codec, why: Why::Set, dictionary, block_bytes, filter_bits: 10, tree: 1 };
    let probe = Probe::default();
    let writer = TableWriter::new(fs.create(path).expect("no faults"), 1, options);
    let mut writer = writer.probed_by(&probe);
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
    Made { bytes, meta, dictionary, images, probe }
}

/// The tables of the first `count` rows in each form.
fn measure(name: &str, (rows, count): (&[Row], usize), level: i8, block_bytes: usize) {
    let codec = Codec::Zstd(level);
    let whole = make(rows, codec, TableDictionary::None, block_bytes);
    let probed = whole.probe.get().expect("the table is complete");
    let blocks: Vec<&[u8]> = probed.blocks.iter().map(Vec::as_slice).collect();
    let verdict = decide(
        &HeldOut::of(blocks.iter().copied()),
        level,
        (probed.raw_bytes, true),
        &Used::default(),
    )
    .expect("enough blocks");
    let of_tree = verdict.dictionary.map_or(TableDictionary::None, TableDictionary::Given);
    let forms = [TableDictionary::None, TableDictionary::OfTable, of_tree];
    let made = forms.map(|form| make(&rows[..count], codec, form, block_bytes));
    let (ratio, speeds): (Vec<f64>, Vec<_>) = made
        .iter()
        .map(|made| {
            let ratio = made.meta.raw_bytes as f64 / made.bytes as f64;
            (ratio, speeds(&made.images, codec, made.dictionary.as_ref()))
        })
        .unzip();
    let all = |each: &dyn Fn(usize) -> String| {
        let has = |at: usize| at == 0 || made[at].dictionary.is_some();
        let texts: Vec<String> =
            (0..3).map(|at| if has(at) { each(at) } else { "-".to_owned() }).collect();
        texts.join(", ")
    };
    let saves = |at: usize| format!("{:.1}", 100.0 - 100.0 * ratio[0] / ratio[at]);
    println!(
        "| {name} | {} | {} | {} | {} | {} |",
        block_bytes >> 10,
        all(&|at| format!("{:.2}", ratio[at])),
        all(&saves).trim_start_matches("0.0, "),
        all(&|at| format!("{:.0}", speeds[at].0)),
        all(&|at| format!("{:.0}", speeds[at].1)),
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

/// Rows up to the bytes of a tree.
fn fill(mut row: impl FnMut(u32, &mut Pcg64) -> Row) -> Vec<Row> {
    let mut rng = Pcg64::seed_from_u64(1);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while bytes < TREE_BYTES {
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
