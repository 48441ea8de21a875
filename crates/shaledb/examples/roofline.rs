//! What the parts of a write and of a read cost on this machine, each by itself: the floor that no
//! storage engine of this design goes below. `cargo xtask roofline` sets them against what Shale
//! takes.
//!
//! cargo run --release -p shaledb --example roofline [-- --json] [--folder DIR]
//!
//! One thread; the best of five rounds, since everything else on a machine only adds. Data as the
//! lab's `kv` has it: keys of 20 bytes, values of 250 bytes that compress to half. With `--json` a
//! line for each part: name, nanoseconds, what they are for.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shaledb::base::coding;
use shaledb::base::config::Codec;
use shaledb::table::compress::{Compressor, decompress};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

const ROUNDS: usize = 5;
const BLOCK_BYTES: usize = 16 << 10;
const KEY_BYTES: usize = 20;
const VALUE_BYTES: usize = 250;
/// Keys of a memtable of 64 MiB.
const MEMTABLE_KEYS: usize = 200_000;
/// Keys of a database of the size that `--num 3M` has.
const DATABASE_KEYS: usize = 3_000_000;
/// What is written to and read from a file.
const FILE_BYTES: usize = 256 << 20;

struct Args {
    json: bool,
    folder: PathBuf,
}

fn main() {
    let args = args();
    let show = |name: &str, nanos: f64, of: &str| {
        if args.json {
            println!("{{\"part\": \"{name}\", \"nanos\": {nanos:.3}, \"of\": \"{of}\"}}");
        } else {
            println!("{name:28} {nanos:12.2} ns for {of}");
        }
    };
    let mut random = Pcg64::seed_from_u64(1);
    let blocks: Vec<Vec<u8>> = (0..256).map(|_| block(&mut random)).collect();
    let kib = (blocks.len() * BLOCK_BYTES / 1024) as f64;
    show(
        "checksum",
        best(|| blocks.iter().map(|block| coding::hash(block)).sum::<u64>()) / kib,
        "KiB",
    );
    show("copy a row", copy_rows(&blocks), "row");
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd(3)] {
        let mut compressor = Compressor::new(codec);
        let mut images = Vec::new();
        let compressing = best(|| {
            images.clear();
            for block in &blocks {
                let mut image = Vec::new();
                let id = compressor.compress(block, &mut image);
                images.push((id, image));
            }
            images.len() as u64
        });
        let stored: usize = images.iter().map(|(_, image)| image.len()).sum();
        let ratio = stored as f64 / 1024.0 / kib;
        show(&format!("size by {codec}"), ratio, "a byte (no time: bytes)");
        let mut out = Vec::new();
        let decompressing = best(|| {
            let each = images.iter().map(|(id, image)| {
                out.clear();
                decompress(*id, image, BLOCK_BYTES, &mut out).expect("as it was");
                out[BLOCK_BYTES / 2] as u64
            });
            each.sum()
        });
        show(&format!("compress {codec}"), compressing / kib, "KiB");
        show(&format!("decompress {codec}"), decompressing / kib, "KiB");
    }
    for (name, keys) in [("find among memtable", MEMTABLE_KEYS), ("find among all", DATABASE_KEYS)]
    {
        show(name, find(keys, &mut random), "key");
    }
    files(&args.folder, &show);
}

fn args() -> Args {
    let mut args = Args { json: false, folder: std::env::temp_dir() };
    let mut rest = std::env::args().skip(1);
    while let Some(arg) = rest.next() {
        match (arg.as_str(), rest.len()) {
            ("--json", _) => args.json = true,
            ("--folder", 1..) => args.folder = rest.next().map(PathBuf::from).expect("counted"),
            (other, _) => {
                panic!("`{other}` is unknown or lacks its value; known are --json and --folder DIR")
            }
        }
    }
    args
}

/// Rows as the lab makes them, as many as fill a block: a number and zeros, then pieces of 100
/// printable characters whose second half repeats the first.
fn block(random: &mut Pcg64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK_BYTES + KEY_BYTES + VALUE_BYTES);
    while bytes.len() < BLOCK_BYTES {
        let mut key = [b'0'; KEY_BYTES];
        key[..8].copy_from_slice(&random.random_range(0..DATABASE_KEYS as u64).to_be_bytes());
        bytes.extend_from_slice(&key);
        let value = bytes.len();
        while bytes.len() < value + VALUE_BYTES {
            let fresh: Vec<u8> = (0..50).map(|_| b' ' + random.random_range(0..95)).collect();
            bytes.extend_from_slice(&fresh);
            bytes.extend_from_slice(&fresh);
        }
        bytes.truncate(value + VALUE_BYTES);
    }
    bytes.truncate(BLOCK_BYTES);
    bytes
}

/// Nanoseconds of the fastest round.
fn best(mut round: impl FnMut() -> u64) -> f64 {
    let time = |round: &mut dyn FnMut() -> u64| {
        let started = Instant::now();
        black_box(round());
        started.elapsed().as_nanos() as f64
    };
    (0..ROUNDS).map(|_| time(&mut round)).fold(f64::INFINITY, f64::min)
}

fn copy_rows(blocks: &[Vec<u8>]) -> f64 {
    let row = KEY_BYTES + VALUE_BYTES;
    let mut out = Vec::with_capacity(row);
    let rows = blocks.len() * (BLOCK_BYTES / row);
    let round = || {
        let mut sum = 0;
        for block in blocks {
            for bytes in block.chunks_exact(row) {
                out.clear();
                out.extend_from_slice(bytes);
                sum += u64::from(black_box(&out)[row / 2]);
            }
        }
        sum
    };
    best(round) / rows as f64
}

/// One look-up by comparisons in a sorted array: what a sorted structure of so many keys cannot do
/// without, on memory that is not in the processor's caches.
fn find(keys: usize, random: &mut Pcg64) -> f64 {
    let mut sorted: Vec<[u8; KEY_BYTES]> = Vec::with_capacity(keys);
    for number in 0..keys as u64 {
        let mut key = [b'0'; KEY_BYTES];
        key.copy_from_slice(format!("{:020}", number * 1_000).as_bytes());
        sorted.push(key);
    }
    let wanted: Vec<[u8; KEY_BYTES]> =
        (0..200_000).map(|_| sorted[random.random_range(0..keys)]).collect();
    let round = || wanted.iter().map(|key| sorted.partition_point(|at| at < key) as u64).sum();
    best(round) / wanted.len() as f64
}

fn files(folder: &Path, show: &impl Fn(&str, f64, &str)) {
    let path = folder.join(format!("shale-roofline-{}", std::process::id()));
    let kib = (FILE_BYTES / 1024) as f64;
    let chunk = vec![7u8; 1 << 20];
    let write = || {
        let file = File::create(&path).expect("the folder can be written to");
        for offset in (0..FILE_BYTES).step_by(chunk.len()) {
            file.write_all_at(&chunk, offset as u64).expect("there is space");
        }
        0
    };
    show("write through page cache", best(write) / kib, "KiB");
    let file = OpenOptions::new().read(true).write(true).open(&path).expect("it was written");
    let mut buffer = vec![0u8; 256 << 10];
    let read = || {
        for offset in (0..FILE_BYTES).step_by(buffer.len()) {
            file.read_exact_at(&mut buffer, offset as u64).expect("it was written");
        }
        u64::from(buffer[0])
    };
    show("read from page cache", best(read) / kib, "KiB");
    file.sync_all().expect("it can be synced");
    let row = [7u8; KEY_BYTES + VALUE_BYTES];
    let appends = 20_000;
    let append = || {
        (0..appends).for_each(|at| {
            file.write_all_at(&row, at * row.len() as u64).expect("there is space");
        });
        0
    };
    show("append a row by a call", best(append) / appends as f64, "row");
    if let Some(nanos) = device_reads(&path) {
        show("read of a block, device", nanos, "16 KiB, one at a time");
    }
    drop(file);
    std::fs::remove_file(&path).expect("it is there");
}

/// Random reads that no cache serves; `None` where the file system has no such reads.
fn device_reads(path: &Path) -> Option<f64> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
    let mut memory = vec![0u8; 2 * BLOCK_BYTES];
    let start = memory.as_ptr().align_offset(4096);
    let mut random = Pcg64::seed_from_u64(2);
    let count = 2_000;
    let started = Instant::now();
    for _ in 0..count {
        let block = random.random_range(0..FILE_BYTES / BLOCK_BYTES);
        let buffer = &mut memory[start..start + BLOCK_BYTES];
        file.read_exact_at(buffer, (block * BLOCK_BYTES) as u64).ok()?;
    }
    Some(started.elapsed().as_nanos() as f64 / count as f64)
}
