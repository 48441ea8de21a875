//! Writes the first inputs of the fuzz targets: sound data of every kind, small.
//!
//! cargo run -p shaledb --example fuzz_seeds -- fuzz/corpus

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shaledb::base::config::{Codec, TreeConfig};
use shaledb::base::cursor::Cursor;
use shaledb::base::key::Kind;
use shaledb::base::ranges::{RangeDelete, RangeDeletes};
use shaledb::base::stats::Recorder;
use shaledb::fs::mem::{MemClock, MemFs};
use shaledb::fs::{Env, Fs};
use shaledb::table::compress::{Compressor, Dictionary};
use shaledb::table::format::decode_frame;
use shaledb::table::{Table, TableDictionary, TableEnv, TableMeta, TableOptions, TableWriter, Why};
use shaledb::version::{Edit, LogStart, Manifest, TreeEdit};
use shaledb::wal::LogWriter;
use shaledb::wal::payload::{begin, put_decision, put_nothing, put_op, put_prepare};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn main() {
    let corpus = PathBuf::from(std::env::args().nth(1).expect("the directory of the corpora"));
    let sets = [
        ("compress", compress()),
        ("block", tables().into_iter().flat_map(|(_, blocks)| blocks).collect()),
        ("table", table()),
        ("table_roundtrip", (0..16).map(roundtrip).collect()),
        ("wal", wal()),
        ("manifest", manifest()),
    ];
    for (target, inputs) in sets {
        let dir = corpus.join(target);
        std::fs::create_dir_all(&dir).expect("the directory can be made");
        for (index, input) in inputs.iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{index:02}")), input).expect("it can be written");
        }
    }
}

fn compress() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    let texts = [b"a".repeat(700), b"the same again, ".repeat(20), (0..=255).collect::<Vec<u8>>()];
    for text in &texts {
        for codec in [Codec::None, Codec::Lz4, Codec::Zlib(6), Codec::Zstd(-3), Codec::Zstd(3)] {
            let mut image = Vec::new();
            let id = Compressor::new(codec).compress(text, &mut image);
            let length = (text.len() as u32).to_le_bytes();
            inputs.push([&[id, length[0], length[1], length[2]], &image[..]].concat());
        }
    }
    inputs.dedup();
    let samples = [b"one, two, three, four, ".repeat(9), b"five, six, seven, eight ".repeat(7)];
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).cycle().take(30).collect();
    let dictionary = Dictionary::make(&samples[..4].concat(), &samples, 3).expect("enough");
    inputs.push([&[5, 0, 1, 0], dictionary.bytes()].concat());
    let mut packed = Vec::new();
    Compressor::new(Codec::Zstd(3)).compress(dictionary.bytes(), &mut packed);
    let length = (dictionary.bytes().len() as u32).to_le_bytes();
    inputs.push([&[6, length[0], length[1], length[2]], &packed[..]].concat());
    inputs
}

/// Options and operations, as the targets read them.
fn operations(seed: u64) -> Vec<u8> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut out = vec![seed as u8, rng.random_range(0..40), 10, 200, 0];
    for _ in 0..rng.random_range(1..40) {
        let kept = rng.random_range(0..8u8);
        let part: Vec<u8> =
            (0..rng.random_range(0..6)).map(|_| rng.random_range(97..101)).collect();
        out.push(kept << 3 | rng.random_range(0..8));
        out.push(part.len() as u8);
        out.extend_from_slice(&part);
        out.extend_from_slice(&rng.random_range(0..300u16).to_le_bytes());
        out.extend_from_slice(&[rng.random(), rng.random_range(0..30)]);
    }
    out
}

/// Makes the options those of a table with a dictionary: zstd, and the high bit of the filter's.
fn with_dictionary(mut operations: Vec<u8>) -> Vec<u8> {
    (operations[0], operations[2]) = (5, 128 + 10);
    operations
}

fn roundtrip(seed: u64) -> Vec<u8> {
    let operations = if seed < 12 { operations(seed) } else { with_dictionary(operations(seed)) };
    let ingest_seq = if seed % 3 == 2 { 50 } else { 0 };
    [&[ingest_seq], &operations[..3], &[0b0101_1010], &operations[3..]].concat()
}

/// Files of tables, each with the images of its blocks.
fn tables() -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
    let fs = MemFs::new();
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let shared = TableEnv::new(env, 1 << 24, Arc::new(Recorder::new()));
    let mut made = Vec::new();
    for (number, codec) in [Codec::None, Codec::Lz4, Codec::Zstd(3)].into_iter().enumerate() {
        for shape in 0..3u64 {
            let path = PathBuf::from(format!("/{number}{shape}.table"));
            let file = fs.create(&path).expect("no faults");
            let options = TableOptions {
                codec,
                why: Why::Set,
                dictionary: TableDictionary::None,
                block_bytes: 300,
                filter_bits: 10,
                tree: 1,
            };
            let mut writer = TableWriter::new(file, 1, options);
            for row in 0..20u64 {
                let fixed = shape == 0;
                let length = if fixed { 8 } else { row % 13 };
                let key =
                    format!("row/{row:03}{}", "x".repeat(if fixed { 0 } else { row as usize % 4 }));
                let value = "value ".repeat(length as usize);
                for version in 0..=u64::from(shape == 2) {
                    let seq = if shape == 0 { 0 } else { 1000 + row * 7 - version };
                    let delete = shape == 2 && row % 3 == version;
                    let (kind, value) =
                        if delete { (Kind::Delete, "") } else { (Kind::Put, &value[..]) };
                    writer.add(key.as_bytes(), seq, kind, value.as_bytes()).expect("in order");
                }
            }
            if shape == 2 {
                writer.add_range_deletes(&RangeDeletes::new((0..3u8).map(|i| RangeDelete {
                    start: vec![b'p' + i],
                    end: vec![b's' + i],
                    seq: 5 + u64::from(i),
                })));
            }
            let meta = writer.finish().expect("no faults");
            let table = Table::new(meta, path.clone(), &shared);
            let mut scan = table.scan(None, None);
            scan.seek_first().expect("sound");
            let mut blocks = Vec::new();
            while let Some(raw) = scan.raw_block() {
                let mut image = Vec::new();
                decode_frame(raw.bytes, &mut image).expect("sound");
                blocks.push(image);
                scan.skip_block().expect("sound");
            }
            blocks.truncate(if number == 0 { 2 } else { 0 });
            made.push((fs.content(&path).expect("written"), blocks));
        }
    }
    made
}

fn table() -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> =
        tables().into_iter().map(|(file, _)| [&[0], &file[..]].concat()).collect();
    for seed in 0..14 {
        let mut rng = Pcg64::seed_from_u64(100 + seed);
        let mut operations = operations(100 + seed);
        if seed >= 8 {
            operations = with_dictionary(operations);
        }
        let mut input = vec![1];
        input.extend_from_slice(&operations[..3]);
        let patches = rng.random_range(0..5u8);
        input.push(patches);
        for _ in 0..patches {
            input.extend_from_slice(&[rng.random(), rng.random(), 1 << rng.random_range(0..8)]);
        }
        input.extend_from_slice(&operations[3..]);
        inputs.push(input);
    }
    inputs
}

/// Payloads of WAL records: the next after the one before, `count` of them.
fn payloads(first: u64, count: u64) -> Vec<Vec<u8>> {
    let mut seq = first;
    let mut payloads = Vec::new();
    for number in 0..count {
        let mut payload = Vec::new();
        begin(&mut payload, seq, seq - 1 - number.min(seq - 1).min(2));
        put_op(&mut payload, Kind::Put, 1, format!("key{number}").as_bytes(), b"value");
        put_op(&mut payload, Kind::Delete, 2, b"gone", b"");
        put_op(&mut payload, Kind::RangeDelete, 1, b"a", b"c");
        put_nothing(&mut payload);
        seq += 4;
        payloads.push(payload);
    }
    payloads
}

/// Payloads of transactions in two phases: prepared, prepared again, committed, rolled back.
fn prepared(first: u64) -> Vec<Vec<u8>> {
    let mut ops = Vec::new();
    put_op(&mut ops, Kind::RangeDelete, 1, b"a", b"c");
    put_op(&mut ops, Kind::Put, 1, b"b", b"value");
    put_op(&mut ops, Kind::Delete, 2, b"gone", b"");
    let mut payloads = Vec::new();
    for number in 0..5 {
        let mut payload = Vec::new();
        begin(&mut payload, first + number, first + number - 1);
        match number {
            0 | 2 => put_prepare(&mut payload, b"one", &ops),
            1 => put_prepare(&mut payload, b"two", &ops),
            3 => put_decision(&mut payload, b"one", true),
            _ => put_decision(&mut payload, b"two", false),
        }
        payloads.push(payload);
    }
    payloads
}

fn wal_file(id: u64, payloads: &[Vec<u8>]) -> Vec<u8> {
    let fs = MemFs::new();
    let path = Path::new("/wal");
    let mut writer =
        LogWriter::create_as(&fs, path, id, shaledb::wal::record::WAL).expect("no faults");
    for payload in payloads {
        let mut framed = Vec::new();
        writer.framer().frame(&mut framed, |out| out.extend_from_slice(payload));
        writer.append(&framed).expect("no faults");
    }
    fs.content(path).expect("written")
}

/// A log's content as the targets make it from pieces.
fn pieces(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![1];
    for payload in payloads {
        out.push(payload.len() as u8);
        out.extend_from_slice(payload);
    }
    out
}

fn wal() -> Vec<Vec<u8>> {
    let join = |first: Vec<u8>, second: Vec<u8>| {
        let length = (first.len() as u16).to_le_bytes();
        [&[0, 0, length[0], length[1]], &first[..], &second[..]].concat()
    };
    let raw = |id, payloads: &[Vec<u8>]| [vec![0], wal_file(id, payloads)].concat();
    let (first, second) = (payloads(1, 4), payloads(17, 3));
    let mut inputs = vec![
        join(raw(3, &first), raw(5, &second)),
        join(raw(3, &first), raw(5, &[])),
        join(raw(3, &[]), raw(5, &payloads(1, 2))),
        join(pieces(&first), pieces(&second)),
        join(pieces(&first), pieces(&payloads(30, 1))),
        join(pieces(&first), vec![]),
    ];
    let mut torn = raw(3, &first);
    torn.truncate(torn.len() - 5);
    inputs.push(join(torn, raw(5, &second)));
    let mut damaged = pieces(&first);
    damaged.extend_from_slice(&[254, 20]);
    damaged.extend_from_slice(&[7; 20]);
    damaged.extend_from_slice(&pieces(&payloads(17, 1))[1..]);
    inputs.push(join(damaged, pieces(&second)));
    let mut covered = join(pieces(&first), pieces(&second));
    covered[..2].copy_from_slice(&[9, 12]);
    inputs.push(covered);
    inputs.push(join(pieces(&first), pieces(&prepared(17))));
    inputs.push(join(raw(3, &prepared(1)[..3]), raw(5, &prepared(1)[3..])));
    inputs
}

fn edits() -> Vec<Edit> {
    let table = |id: u64, smallest: &str, largest: &str| TableMeta {
        id,
        file_bytes: 1000,
        smallest: smallest.into(),
        largest: largest.into(),
        min_seq: 3,
        max_seq: 90,
        entries: 20,
        ..TableMeta::default()
    };
    vec![
        Edit {
            trees_created: vec![(1, "default".into(), TreeConfig::default())],
            next_file: Some(10),
            next_tree: Some(2),
            ..Edit::default()
        },
        Edit {
            trees: vec![TreeEdit {
                tree: 1,
                added: vec![
                    (0, table(4, "b", "k")),
                    (6, table(5, "a", "c")),
                    (6, table(6, "d", "x")),
                ],
                flushed_seq: Some(90),
                ..TreeEdit::default()
            }],
            last_seq: Some(95),
            log: Some(LogStart { file: 7, seq: 90 }),
            ..Edit::default()
        },
        Edit {
            trees_created: vec![(2, "other".into(), TreeConfig::default())],
            trees: vec![TreeEdit {
                tree: 1,
                removed: vec![(0, 4), (6, 5)],
                added: vec![(6, table(8, "a", "c"))],
                ..TreeEdit::default()
            }],
            next_tree: Some(3),
            ..Edit::default()
        },
        Edit { trees_dropped: vec![2], ..Edit::default() },
    ]
}

fn manifest() -> Vec<Vec<u8>> {
    let encoded: Vec<Vec<u8>> = edits()
        .iter()
        .map(|edit| {
            let mut out = Vec::new();
            shaledb::version::edit::encode(edit, &mut out);
            out
        })
        .collect();
    let mut inputs: Vec<Vec<u8>> =
        (1..=encoded.len()).map(|count| [vec![0], pieces(&encoded[..count])].concat()).collect();
    let fs = Arc::new(MemFs::new());
    let shared: Arc<dyn Fs> = Arc::<MemFs>::clone(&fs);
    let dir = Path::new("/");
    let edits = edits();
    let mut manifest = Manifest::create(&shared, dir, 1, &edits[0]).expect("no faults");
    for edit in &edits[1..] {
        manifest.append(edit).expect("in order");
    }
    let file = fs.content(manifest.path()).expect("written");
    inputs.push([&[0, 0], &file[..]].concat());
    inputs.push([&[0, 0], &file[..file.len() - 3]].concat());
    let current = fs.content(&dir.join("CURRENT")).expect("written");
    inputs.push([&[1], &current[..]].concat());
    let mut noise = vec![0; 100];
    Pcg64::seed_from_u64(1).fill_bytes(&mut noise);
    inputs.push(noise);
    inputs
}
