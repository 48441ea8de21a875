//! Databases of every released format, checked in, open with this release and hold what they held.
//!
//! `tests/golden/v1` was written by this file, with `SHALE_GOLDEN_WRITE=1` set and `v1` absent. It
//! is never written again: a release that changes the format adds a directory of its own. It has
//! every codec, tagged and untagged blocks, blocks beyond 64 KiB, range deletes, blobs, a bulk
//! load, several trees, and operations that are in the log only.

use shaledb::repair::{RepairOptions, repair};
use shaledb::{
    Background, Batch, Codec, Codecs, Config, Db, OpenOptions, Result, Tree, TreeConfig,
    WriteOptions,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The trees, one for each codec.
const TREES: [(&str, Codec); 4] = [
    ("plain", Codec::None),
    ("lz4", Codec::Lz4),
    ("zlib", Codec::Zlib(6)),
    ("zstd", Codec::Zstd(3)),
];

fn v1() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn stepped() -> OpenOptions {
    OpenOptions { background: Background::Stepped, ..OpenOptions::default() }
}

fn key(number: u32) -> Vec<u8> {
    format!("row/{number:04}").into_bytes()
}

fn value(number: u32, version: &str) -> Vec<u8> {
    format!("{version} {number} ").repeat(1 + number as usize % 7).into_bytes()
}

/// Bytes that no codec makes much smaller.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut byte = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..length).map(|_| byte()).collect()
}

/// A value of 70,000 bytes: it has a block of its own, whose offsets are wide.
fn wide() -> Vec<u8> {
    b"wide ".repeat(14_000)
}

/// What is done to a tree, in order; the last part stays in the log.
enum Step {
    Load(Vec<(Vec<u8>, Vec<u8>)>),
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
    Compact,
    Flush,
}

fn recipe() -> Vec<Step> {
    let mut steps = vec![Step::Load((0..200).map(|n| (key(2 * n), value(n, "loaded"))).collect())];
    steps.extend((0..100).map(|n| Step::Put(key(3 * n), value(n, "first"))));
    steps.push(Step::Put(b"wide".to_vec(), wide()));
    steps.push(Step::Put(b"blob/1".to_vec(), noise(1, 9_000)));
    // Rows with sequence number 0, in blocks without tags.
    steps.push(Step::Compact);
    steps.extend((0..40).map(|n| Step::Put(key(5 * n), value(n, "second"))));
    steps.extend((0..20).map(|n| Step::Delete(key(7 * n))));
    steps.push(Step::DeleteRange(key(150), key(180)));
    steps.push(Step::Put(key(160), b"after the range".to_vec()));
    steps.push(Step::Put(b"blob/2".to_vec(), noise(2, 6_000)));
    steps.push(Step::Put(b"".to_vec(), b"the empty key".to_vec()));
    steps.push(Step::Put(b"empty".to_vec(), Vec::new()));
    steps.push(Step::Flush);
    steps.extend((390..420).map(|n| Step::Put(key(n), value(n, "logged"))));
    steps.push(Step::Delete(key(2)));
    steps.push(Step::DeleteRange(key(300), key(310)));
    steps.push(Step::Put(key(305), b"after the logged range".to_vec()));
    steps.push(Step::Put(b"blob/3".to_vec(), noise(3, 5_000)));
    steps
}

/// The rows that the recipe leaves.
fn expected() -> Rows {
    let mut rows = Rows::new();
    for step in recipe() {
        match step {
            Step::Load(loaded) => rows.extend(loaded),
            Step::Put(key, value) => {
                rows.insert(key, value);
            }
            Step::Delete(key) => {
                rows.remove(&key);
            }
            Step::DeleteRange(start, end) => rows.retain(|key, _| *key < start || *key >= end),
            Step::Compact | Step::Flush => {}
        }
    }
    rows
}

fn write(dir: &Path) -> Result<()> {
    let mut db = Db::open_in(dir, Config::default(), stepped())?;
    let mut trees = Vec::new();
    for (name, codec) in TREES {
        let config = TreeConfig {
            codecs: Codecs::all(codec),
            block_bytes: 1024,
            blob_bytes: 100_000,
            ..TreeConfig::default()
        };
        // A wide value stays in a block; blobs are written as such by a tree of lower bounds.
        trees.push(db.create_tree(name, config)?);
    }
    let blobs = TreeConfig { blob_bytes: 4096, ..TreeConfig::default() };
    let mut blobs = db.create_tree("blobs", blobs)?;
    db.create_tree("dropped", TreeConfig::default())?;
    db.drop_tree("dropped")?;
    for step in recipe() {
        let mut batch = Batch::new();
        for tree in &trees {
            match &step {
                Step::Load(rows) => {
                    let mut ingest = tree.ingest()?;
                    for (key, value) in rows {
                        ingest.add(key, value)?;
                    }
                    ingest.finish()?;
                }
                Step::Put(key, value) => batch.put(tree, key, value),
                Step::Delete(key) => batch.delete(tree, key),
                Step::DeleteRange(start, end) => batch.delete_range(tree, start, end),
                Step::Compact | Step::Flush => {}
            }
        }
        match &step {
            Step::Put(key, value) if key.starts_with(b"blob") => batch.put(&blobs, key, value),
            Step::Compact => db.compact()?,
            Step::Flush => {
                // A new log, so that the old one, which is in tables, goes away.
                db.flush()?;
                drop((batch, std::mem::take(&mut trees), blobs));
                db.close()?;
                db = Db::open_in(dir, Config::default(), stepped())?;
                trees = TREES.iter().map(|(name, _)| db.tree(name)).collect::<Result<_>>()?;
                blobs = db.tree("blobs")?;
                continue;
            }
            _ => {}
        }
        db.write(&batch, WriteOptions::default())?;
    }
    // A load on top of newer rows: its sequence number is kept in the manifest.
    let mut ingest = blobs.ingest()?;
    ingest.add(b"loaded/1", b"small")?;
    ingest.add(b"loaded/2", &noise(4, 7_000))?;
    ingest.finish()?;
    blobs.put_with(b"last", b"one", WriteOptions::SYNC)?;
    drop((trees, blobs));
    db.close()
}

fn rows(tree: &Tree) -> Rows {
    let rows = tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap());
    rows.map(|(key, value)| (key, value.to_vec())).collect()
}

fn check(db: &Db) {
    assert_eq!(db.tree_names(), ["blobs", "lz4", "plain", "zlib", "zstd"]);
    let expected = expected();
    for (name, codec) in TREES {
        let tree = db.tree(name).unwrap();
        assert_eq!(tree.config().codecs, Codecs::all(codec));
        assert!(rows(&tree) == expected, "tree {name}");
        for (key, value) in &expected {
            assert_eq!(tree.get(key).unwrap().unwrap(), value[..]);
        }
        assert!(tree.get(&key(2)).unwrap().is_none());
    }
    let blobs = rows(&db.tree("blobs").unwrap());
    let keys: Vec<&[u8]> = blobs.keys().map(|key| &key[..]).collect();
    let all: [&[u8]; 6] = [b"blob/1", b"blob/2", b"blob/3", b"last", b"loaded/1", b"loaded/2"];
    assert_eq!(keys, all);
    for (number, length) in [(1, 9_000), (2, 6_000), (3, 5_000)] {
        let key = format!("blob/{number}").into_bytes();
        assert!(blobs[&key] == noise(number, length));
    }
    assert!(blobs[&b"loaded/2"[..]] == noise(4, 7_000) && blobs[&b"last"[..]] == b"one");
}

/// A copy of the checked-in database, which opening would change.
fn copy() -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(v1()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

#[test]
fn version_1_is_written_once() {
    if std::env::var_os("SHALE_GOLDEN_WRITE").is_some() && !v1().exists() {
        write(&v1()).unwrap();
        let _ = fs::remove_file(v1().join("LOCK"));
    }
    let bytes: u64 =
        fs::read_dir(v1()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 500_000, "{bytes} bytes");
}

#[test]
fn version_1_opens_and_holds_what_it_held() {
    if std::env::var_os("SHALE_GOLDEN_WRITE").is_some() {
        return;
    }
    let dir = copy();
    let db = Db::open_read_only(dir.path(), Config::default()).unwrap();
    check(&db);
    drop(db);
    // The second time what was in the log is in tables.
    for _ in 0..2 {
        let db = Db::open_in(dir.path(), Config::default(), stepped()).unwrap();
        check(&db);
        let verified = db.verify(&mut |_| ()).unwrap();
        assert!(verified.damage.is_empty() && verified.blobs >= 2, "{verified:?}");
        db.compact().unwrap();
        check(&db);
        db.close().unwrap();
    }
}

#[test]
fn version_1_has_every_feature() {
    if std::env::var_os("SHALE_GOLDEN_WRITE").is_some() {
        return;
    }
    let (mut codecs, mut blobs, mut logs) = (Vec::new(), 0, 0);
    let (mut tagged, mut untagged, mut wide, mut ranges) = (0, 0, 0, 0);
    for entry in fs::read_dir(v1()).unwrap() {
        match shaledb::inspect::open(&entry.unwrap().path()).unwrap() {
            shaledb::inspect::Inspection::Table(table) => {
                codecs.extend(table.codecs.iter().map(|total| total.codec));
                tagged += table.blocks.iter().filter(|block| block.tagged).count();
                untagged += table.blocks.iter().filter(|block| !block.tagged).count();
                wide += table.blocks.iter().filter(|block| block.raw_bytes > 65_536).count();
                ranges += table.range_deletes.len();
            }
            shaledb::inspect::Inspection::Blob(blob) => blobs += usize::from(blob.damage.is_none()),
            shaledb::inspect::Inspection::Wal(lines) => {
                logs += lines.collect::<Result<Vec<_>>>().unwrap().len();
            }
            _ => {}
        }
    }
    codecs.sort_unstable();
    codecs.dedup();
    assert_eq!(codecs, ["lz4", "none", "zlib", "zstd"]);
    assert!(blobs >= 4 && logs > 30, "{blobs} blobs, {logs} records");
    assert!(tagged > 10 && untagged > 10 && wide >= 4 && ranges >= 4);
}

#[test]
fn version_1_can_be_repaired() {
    if std::env::var_os("SHALE_GOLDEN_WRITE").is_some() {
        return;
    }
    let (from, to) = (copy(), tempfile::tempdir().unwrap());
    let report = repair(from.path(), to.path(), &RepairOptions::default(), &mut |_| ()).unwrap();
    assert!(report.is_clean(), "{report}");
    check(&Db::open_in(to.path(), Config::default(), stepped()).unwrap());
}
