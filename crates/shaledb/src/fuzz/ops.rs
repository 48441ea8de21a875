//! The operations of a database, on a simulated disk, against a map.

use super::input::Input;
use crate::base::config::{Codec, Codecs, Config, TreeConfig};
use crate::fs::Env;
use crate::fs::mem::{MemClock, MemFs};
use crate::{Background, Db, OpenOptions, Tree, WriteOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Runs the input as a program of puts, deletes, range deletes, flushes, compactions, bulk loads,
/// reopenings and reads; every answer must be the map's. Input: an operation a byte, then its
/// arguments.
pub fn ops(data: &[u8]) {
    let mut input = Input(data);
    let fs = MemFs::new();
    let config = config(input.byte());
    let mut db = open(&fs, &config);
    let mut tree = db.tree_or_create("t").expect("a tree");
    let mut map = Map::new();
    // Long inputs say nothing that shorter ones do not.
    for _ in 0..400 {
        if input.0.is_empty() {
            break;
        }
        match input.byte() % 16 {
            0..=5 => {
                let (key, value) = (key(&mut input), value(&mut input));
                tree.put(&key, &value).expect("a put");
                map.insert(key, value);
            }
            6 | 7 => {
                let key = key(&mut input);
                tree.delete_with(&key, WriteOptions::SYNC).expect("a delete");
                map.remove(&key);
            }
            8 => {
                let (start, end) = (key(&mut input), key(&mut input));
                tree.delete_range(&start, &end).expect("a range delete");
                map.retain(|key, _| *key < start || *key >= end);
            }
            9 => tree.flush().expect("a flush"),
            10 => tree.compact().expect("a compaction"),
            11 => drop(db.step().expect("a step")),
            12 => {
                drop(tree);
                db.close().expect("a close");
                db = open(&fs, &config);
                tree = db.tree("t").expect("the tree");
            }
            13 => ingest(&tree, &mut input, &mut map),
            _ => {
                let key = key(&mut input);
                let got = tree.get(&key).expect("a get").map(|value| value.to_vec());
                assert_eq!(got.as_ref(), map.get(&key));
            }
        }
    }
    check(&tree, &map);
    assert!(db.verify(&mut |_| ()).expect("a verification").damage.is_empty());
}

fn config(byte: u8) -> Config {
    let codec = [Codec::None, Codec::Lz4, Codec::Zlib(1), Codec::Zstd(1)][usize::from(byte) % 4];
    let tree = TreeConfig {
        codecs: Codecs::all(codec),
        dictionary: byte & 16 != 0,
        block_bytes: [1024, 2048, 4096, 0][usize::from(byte / 4) % 4],
        blob_bytes: 4096,
        ..TreeConfig::default()
    };
    Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 1,
        tree,
        ..Config::default()
    }
}

fn open(fs: &MemFs, config: &Config) -> Db {
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    Db::open_in(Path::new("/db"), config.clone(), options).expect("a database")
}

fn key(input: &mut Input<'_>) -> Vec<u8> {
    let byte = input.byte();
    vec![byte % 23 + b'a'; 1 + usize::from(byte) % 3]
}

fn value(input: &mut Input<'_>) -> Vec<u8> {
    let byte = input.byte();
    // Now and then one for a blob file.
    vec![byte; usize::from(byte) * if byte % 32 == 31 { 40 } else { 3 }]
}

fn ingest(tree: &Tree, input: &mut Input<'_>, map: &mut Map) {
    let rows: Map = (0..input.byte() % 8).map(|_| (key(input), value(input))).collect();
    let mut ingest = tree.ingest().expect("an ingest");
    for (key, value) in &rows {
        ingest.add(key, value).expect("a row");
    }
    ingest.finish().expect("the end of an ingest");
    map.extend(rows);
}

fn check(tree: &Tree, map: &Map) {
    let rows: Vec<_> =
        tree.scan::<&[u8]>(..).expect("a scan").map(|row| row.expect("a row")).collect();
    assert!(rows.iter().map(|(key, value)| (key, value)).eq(map.iter()));
    let mut scan = tree.scan::<&[u8]>(..).expect("a scan");
    scan.seek_last().expect("a seek");
    for (key, value) in map.iter().rev() {
        assert_eq!((scan.key(), scan.value().expect("a value")), (&key[..], &value[..]));
        scan.prev().expect("a step back");
    }
    assert!(!scan.valid());
}
