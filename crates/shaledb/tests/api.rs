//! The public interface, on a real directory, with background threads.

use shaledb::{
    Batch, Codec, Codecs, Config, Db, Env, Error, OpenOptions, Result, ScanOptions, TreeConfig,
    WriteOptions,
};
use std::io::Read;

/// Small memtables and tables, so that little data makes many of them.
fn small() -> Config {
    Config {
        memory_bytes: 16 << 20,
        memtable_bytes: 128 << 10,
        table_bytes: 128 << 10,
        background_threads: 2,
        ..Config::default()
    }
}

fn key(n: u64) -> [u8; 8] {
    (n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes()
}

fn value(n: u64) -> Vec<u8> {
    format!("value {n} ").repeat(1 + (n % 13) as usize).into_bytes()
}

#[test]
fn what_is_written_is_read_back_through_flush_compaction_and_reopen() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    const N: u64 = 30_000;
    {
        let db = Db::open(dir.path(), small())?;
        let tree = db.tree_or_create("t")?;
        for n in 0..N {
            tree.put(&key(n), &value(n))?;
        }
        for n in (0..N).step_by(3) {
            tree.delete(&key(n))?;
        }
        for n in (0..N).step_by(5) {
            tree.put(&key(n), &value(n + 1))?;
        }
    }
    for compact in [false, true] {
        let db = Db::open(dir.path(), small())?;
        let tree = db.tree("t")?;
        if compact {
            tree.compact()?;
        }
        let expected = |n: u64| match n {
            n if n.is_multiple_of(5) => Some(value(n + 1)),
            n if n.is_multiple_of(3) => None,
            n => Some(value(n)),
        };
        for n in 0..N {
            assert_eq!(tree.get(&key(n))?.map(|v| v.to_vec()), expected(n), "{n}");
        }
        let keys: Vec<[u8; 8]> = (0..200).map(key).collect();
        let many = tree.multi_get(&keys)?;
        for (n, found) in (0..).zip(many) {
            assert_eq!(found.map(|v| v.to_vec()), expected(n), "{n}");
        }
        let mut rows = 0;
        let mut last = Vec::new();
        let mut scan = tree.scan::<&[u8]>(..)?;
        scan.seek_first()?;
        while scan.valid() {
            assert!(rows == 0 || last.as_slice() < scan.key());
            last = scan.key().to_vec();
            rows += 1;
            scan.next()?;
        }
        assert_eq!(rows, (0..N).filter(|n| expected(*n).is_some()).count());
        scan.seek_last()?;
        let mut back = 0;
        while scan.valid() {
            back += 1;
            scan.prev()?;
        }
        assert_eq!(back, rows);
        let report = db.verify(&mut |_| ())?;
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        let stats = db.stats();
        let mut upper = stats.trees[0].levels.iter().filter(|l| l.level != 6 && l.tables > 0);
        assert!(!compact || upper.next().is_none(), "{stats}");
    }
    Ok(())
}

#[test]
fn blocks_that_updates_do_not_touch_are_reused() -> Result<()> {
    // A dictionary may be another one after the first compaction, which shows more of the data.
    [(false, 1), (true, 2)]
        .into_iter()
        .try_for_each(|(dictionary, rounds)| blocks_are_reused(dictionary, rounds))
}

fn blocks_are_reused(dictionary: bool, rounds: u64) -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    // Where the engine chooses the codec, another one may be chosen between the two compactions.
    let codecs = Codecs { upper: Codec::None, middle: Codec::Lz4, bottommost: Codec::Zstd(3) };
    let tree = TreeConfig { codecs, dictionary, ..TreeConfig::default() };
    let db = Db::open(dir.path(), Config { tree, ..small() })?;
    let tree = db.tree_or_create("t")?;
    const N: u64 = 20_000;
    let row = |n: u64, version: u64| format!("row {n} version {version} {n:>60}");
    for n in 0..N {
        tree.put(&n.to_be_bytes(), row(n, 0).as_bytes())?;
    }
    tree.compact()?;
    let reused = || {
        let stats = db.stats();
        let levels = &stats.trees[0].levels;
        levels.iter().fold((0, 0), |(blocks, bytes), level| {
            assert!(level.bytes_reused <= level.write_bytes);
            (blocks + level.blocks_reused, bytes + level.bytes_reused)
        })
    };
    let version = |n: u64, last: u64| if n % 5000 < 20 { last } else { 0 };
    for round in 1..=rounds {
        let before = reused();
        for n in (0..N).filter(|&n| version(n, round) > 0) {
            tree.put(&n.to_be_bytes(), row(n, round).as_bytes())?;
        }
        tree.compact()?;
        let (blocks, bytes) = reused();
        let last = db.stats().trees[0].levels.last().map_or(0, |level| level.bytes);
        let enough = blocks > before.0 + 50 && bytes > before.1 + last / 2;
        assert!(enough || round < rounds, "{blocks} {bytes} {last}");
    }
    for n in 0..N {
        let row = row(n, version(n, rounds));
        assert_eq!(*tree.get(&n.to_be_bytes())?.unwrap(), *row.as_bytes());
    }
    assert!(db.verify(&mut |_| ())?.damage.is_empty());
    Ok(())
}

#[test]
fn batches_are_atomic_over_trees_and_snapshots_repeat() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small())?;
    let (a, b) = (db.tree_or_create("a")?, db.tree_or_create("b")?);
    let mut batch = Batch::new();
    batch.put(&a, b"k", b"1");
    batch.put(&b, b"k", b"1");
    db.write(&batch, WriteOptions::SYNC)?;
    let before = db.snapshot();
    batch.clear();
    batch.put(&a, b"k", b"2");
    batch.delete(&b, b"k");
    batch.put(&b, b"l", b"2");
    batch.delete_range(&b, b"l", b"m");
    db.write(&batch, WriteOptions::default())?;
    assert_eq!(a.get(b"k")?.unwrap(), b"2");
    assert!(b.get(b"k")?.is_none() && b.get(b"l")?.is_none());
    db.flush()?;
    db.compact()?;
    assert_eq!(a.get_at(b"k", &before)?.unwrap(), b"1");
    assert_eq!(b.get_at(b"k", &before)?.unwrap(), b"1");
    let mut scan =
        b.scan_with(ScanOptions { snapshot: Some(&before), ..ScanOptions::default() })?;
    scan.seek_first()?;
    assert_eq!((scan.key(), scan.value()?), (&b"k"[..], &b"1"[..]));
    drop((scan, before));
    db.compact()?;
    assert_eq!(b.scan::<&[u8]>(..)?.count(), 0);
    Ok(())
}

#[test]
fn trees_are_changed_together_or_not_at_all() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let new = |names: &[&'static str]| -> Vec<(&str, TreeConfig)> {
        names.iter().map(|name| (*name, TreeConfig::default())).collect()
    };
    {
        let db = Db::open(dir.path(), small())?;
        let trees = db.change_trees(&new(&["b", "a"]), &[])?;
        assert_eq!(trees.iter().map(|tree| tree.name()).collect::<Vec<_>>(), ["b", "a"]);
        trees[0].put(b"k", b"v")?;
        type Refused = fn(&Error) -> bool;
        let exists: Refused = |error| matches!(error, Error::TreeExists(_));
        let missing: Refused = |error| matches!(error, Error::NoSuchTree(_));
        let invalid: Refused = |error| matches!(error, Error::InvalidArgument(_));
        let cases: [(&[&str], &[&str], Refused); 6] = [
            (&["c", "a"], &["b"], exists),
            (&["c", "c"], &[], exists),
            (&["c"], &["b", "d"], missing),
            (&["c"], &["b", "b"], missing),
            (&["c"], &["c"], missing),
            (&["c", ""], &["b"], invalid),
        ];
        for (create, drop, refused) in cases {
            let error = db.change_trees(&new(create), drop).unwrap_err();
            assert!(refused(&error), "{create:?} {drop:?}: {error}");
        }
        assert_eq!(db.tree_names(), ["a", "b"]);
        assert_eq!(trees[0].get(b"k")?.unwrap(), b"v");
        // Of the same name, but another tree.
        let renewed = db.change_trees(&new(&["b", "c"]), &["a", "b"])?;
        assert!(renewed[0].get(b"k")?.is_none());
        assert!(matches!(trees[0].get(b"k"), Err(Error::NoSuchTree(_))));
        renewed[1].put(b"k", b"new")?;
        assert!(db.change_trees(&[], &[])?.is_empty());
    }
    let db = Db::open(dir.path(), small())?;
    assert_eq!(db.tree_names(), ["b", "c"]);
    assert!(db.tree("b")?.get(b"k")?.is_none());
    assert_eq!(db.tree("c")?.get(b"k")?.unwrap(), b"new");
    Ok(())
}

#[test]
fn trees_are_created_listed_and_dropped() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    {
        let db = Db::open(dir.path(), small())?;
        let tree = db.create_tree("x", TreeConfig::default())?;
        assert!(matches!(db.create_tree("x", TreeConfig::default()), Err(Error::TreeExists(_))));
        let codecs = Codecs::all(Codec::Zstd(1));
        db.create_tree("y", TreeConfig { codecs, ..TreeConfig::default() })?;
        for n in 0..20_000 {
            tree.put(&key(n), &value(n))?;
        }
        db.flush()?;
        db.drop_tree("x")?;
        assert!(matches!(tree.get(&key(1)), Err(Error::NoSuchTree(_))));
        assert!(matches!(tree.put(&key(1), b""), Err(Error::NoSuchTree(_))));
        assert!(matches!(db.drop_tree("x"), Err(Error::NoSuchTree(_))));
        db.wait_idle()?;
        let tables = std::fs::read_dir(dir.path())
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "table"));
        assert_eq!(tables.count(), 0, "a dropped tree's files are gone at once");
    }
    let db = Db::open(dir.path(), small())?;
    assert_eq!(db.tree_names(), ["y"]);
    assert_eq!(db.tree("y")?.config().codecs.bottommost, Codec::Zstd(1));
    Ok(())
}

#[test]
fn a_second_opener_is_refused_and_a_reader_changes_nothing() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small())?;
    assert!(matches!(Db::open(dir.path(), small()), Err(Error::Locked { .. })));
    db.tree_or_create("t")?.put(b"k", b"v")?;
    let before_close = db.clone();
    db.close()?;
    assert!(matches!(before_close.tree("t"), Err(Error::Closed)));
    drop(before_close);
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    {
        let db = Db::open_read_only(dir.path(), small())?;
        let tree = db.tree("t")?;
        assert_eq!(tree.get(b"k")?.unwrap(), b"v");
        assert!(matches!(tree.put(b"k", b"w"), Err(Error::ReadOnly)));
        assert!(matches!(db.create_tree("u", TreeConfig::default()), Err(Error::ReadOnly)));
        assert!(matches!(db.flush(), Err(Error::ReadOnly)));
    }
    assert_eq!(names(), before);
    let nowhere = dir.path().join("nowhere");
    assert!(matches!(Db::open_read_only(&nowhere, small()), Err(Error::NoDatabase(_))));
    let config = Config { create: false, ..small() };
    assert!(matches!(Db::open(&nowhere, config), Err(Error::NoDatabase(_))));
    Ok(())
}

#[test]
fn bulk_loads_are_atomic_and_newer_than_what_was_there() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    {
        let db = Db::open(dir.path(), small())?;
        let tree = db.tree_or_create("t")?;
        tree.put(b"00000005", b"old")?;
        tree.delete_range(b"00000000", b"00000003")?;
        let before = db.snapshot();
        let mut ingest = tree.ingest()?;
        for n in 0..20_000u32 {
            ingest.add(format!("{n:08}").as_bytes(), &value(n.into()))?;
        }
        assert!(ingest.add(b"00000005", b"").is_err());
        assert_eq!(tree.get(b"00000005")?.unwrap(), b"old");
        assert_eq!(ingest.finish()?, 20_000);
        assert_eq!(tree.get(b"00000005")?.unwrap(), value(5));
        assert_eq!(tree.get_at(b"00000005", &before)?.unwrap(), b"old");
        tree.put(b"00000006", b"newer")?;
        drop(tree.ingest()?);
        let mut dropped = tree.ingest()?;
        dropped.add(b"zzz", b"")?;
        drop(dropped);
    }
    let db = Db::open(dir.path(), small())?;
    let tree = db.tree("t")?;
    for round in 0..2 {
        assert_eq!(tree.scan::<&[u8]>(..)?.count(), 20_000, "round {round}");
        assert_eq!(tree.get(b"00000006")?.unwrap(), b"newer");
        assert_eq!(tree.get(b"00000001")?.unwrap(), value(1));
        assert!(tree.get(b"zzz")?.is_none());
        db.compact()?;
    }
    assert!(db.verify(&mut |_| ())?.damage.is_empty());
    Ok(())
}

#[test]
fn large_values_live_in_blob_files_and_go_with_their_keys() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let blobs = || {
        let files = std::fs::read_dir(dir.path()).unwrap();
        let names = files.map(|e| e.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|x| x == "blob")).count()
    };
    let config =
        Config { tree: TreeConfig { blob_bytes: 100_000, ..TreeConfig::default() }, ..small() };
    let large: Vec<u8> = (0..1_000_000u32).map(|n| (n.wrapping_mul(n) >> 3) as u8).collect();
    {
        let db = Db::open(dir.path(), config.clone())?;
        let tree = db.tree_or_create("t")?;
        tree.put(b"put", &large)?;
        tree.put_reader(b"reader", &mut large.as_slice(), WriteOptions::SYNC)?;
        let mut batch = Batch::new();
        batch.put(&tree, b"batch", &large);
        batch.put(&tree, b"small", b"s");
        db.write(&batch, WriteOptions::default())?;
        assert_eq!(blobs(), 3);
    }
    let db = Db::open(dir.path(), config)?;
    let tree = db.tree("t")?;
    for _ in 0..2 {
        for name in ["put", "reader", "batch"] {
            assert_eq!(tree.get(name.as_bytes())?.unwrap(), large, "{name}");
            let mut reader = tree.get_reader(name.as_bytes())?.unwrap();
            assert_eq!(reader.len(), large.len() as u64);
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, large);
        }
        assert_eq!(tree.get(b"small")?.unwrap(), b"s");
        assert_eq!(tree.scan::<&[u8]>(..)?.count(), 4);
        assert_eq!(db.verify(&mut |_| ())?.damage.len(), 0);
        db.compact()?;
    }
    tree.put(b"put", b"now small")?;
    tree.delete(b"reader")?;
    db.compact()?;
    assert_eq!(blobs(), 1);
    db.drop_tree("t")?;
    assert_eq!(blobs(), 0);
    Ok(())
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a"), dir.path().join("b"));
    let db = Db::open(&first, small())?;
    let tree = db.tree_or_create("t")?;
    for n in 0..10_000 {
        tree.put(&key(n), &value(n))?;
    }
    db.checkpoint(&second)?;
    assert!(db.checkpoint(&second).is_err());
    for n in 0..10_000 {
        tree.put(&key(n), b"changed")?;
    }
    db.compact()?;
    let copy = Db::open(&second, small())?;
    let copied = copy.tree("t")?;
    for n in 0..10_000 {
        assert_eq!(copied.get(&key(n))?.unwrap(), value(n));
    }
    copied.put(b"only here", b"")?;
    assert!(tree.get(b"only here")?.is_none());
    assert!(copy.verify(&mut |_| ())?.damage.is_empty());
    Ok(())
}

#[test]
fn threads_share_handles() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small())?;
    let tree = db.tree_or_create("t")?;
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (db, tree) = (db.clone(), tree.clone());
            scope.spawn(move || {
                let mut batch = Batch::new();
                for n in 0..2_000u64 {
                    batch.clear();
                    for part in 0..3u8 {
                        let key = [&key(thread << 32 | n)[..], &[part]].concat();
                        batch.put(&tree, &key, &n.to_le_bytes());
                    }
                    db.write(&batch, WriteOptions { sync: n % 500 == 0 }).unwrap();
                    let at = key(thread << 32 | (n / 2));
                    let got = tree.get(&[&at[..], &[1]].concat()).unwrap().unwrap();
                    assert_eq!(got, (n / 2).to_le_bytes());
                }
            });
        }
        let tree = &tree;
        scope.spawn(move || {
            for _ in 0..20 {
                // Every batch is there with all its rows or not at all.
                let mut rows = 0;
                for row in tree.scan::<&[u8]>(..).unwrap() {
                    row.unwrap();
                    rows += 1;
                }
                assert_eq!(rows % 3, 0);
            }
        });
    });
    assert_eq!(tree.scan::<&[u8]>(..)?.count(), 4 * 2_000 * 3);
    Ok(())
}

#[test]
fn bad_arguments_are_refused_with_a_reason() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), small())?;
    let tree = db.tree_or_create("t")?;
    let long = vec![0; 64 * 1024 + 1];
    assert!(tree.put(&long, b"").unwrap_err().to_string().contains("65537"));
    let mut batch = Batch::new();
    batch.put(&tree, b"good", b"");
    batch.put(&tree, &long, b"");
    assert!(db.write(&batch, WriteOptions::default()).is_err());
    assert!(tree.get(b"good")?.is_none());
    assert!(db.create_tree("", TreeConfig::default()).is_err());
    let other_dir = tempfile::tempdir().unwrap();
    let other = Db::open_in(other_dir.path(), small(), OpenOptions::default())?;
    let mut batch = Batch::new();
    batch.put(&other.tree_or_create("t")?, b"k", b"");
    assert!(db.write(&batch, WriteOptions::default()).is_err());
    assert!(tree.get_at(b"k", &other.snapshot()).is_err());
    tree.put(b"", b"the empty key is a key")?;
    assert_eq!(tree.get(b"")?.unwrap(), b"the empty key is a key");
    assert!(matches!(
        Db::open(dir.path(), Config { memory_bytes: 1, ..small() }),
        Err(Error::Config { .. })
    ));
    Ok(())
}

#[test]
fn a_database_in_memory_is_there_until_the_last_clone_of_its_world_is_gone() -> Result<()> {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    const N: u64 = 5_000;
    for round in 0..2 {
        let db = Db::open_in("/db", small(), options.clone())?;
        let tree = db.tree_or_create("t")?;
        for n in (round..N).step_by(2) {
            tree.put(&key(n), &value(n))?;
        }
        db.wait_idle()?;
    }
    let db = Db::open_in("/db", small(), options)?;
    for n in 0..N {
        assert_eq!(db.tree("t")?.get(&key(n))?.unwrap(), value(n));
    }
    let other = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    assert!(Db::open_in("/db", small(), other)?.tree_names().is_empty());
    Ok(())
}

#[test]
fn bounds_with_nothing_between_give_no_rows() -> Result<()> {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let db = Db::open_in("/db", small(), options)?;
    let tree = db.tree_or_create("t")?;
    for flushed in [true, false] {
        for n in 0..100u8 {
            tree.put(&[b'k', n], b"")?;
        }
        if flushed {
            db.compact()?;
        }
    }
    let bound = |n: u8| Some(vec![b'k', n]);
    for (lower, upper, prefix) in [
        (bound(7), bound(7), None),
        (bound(8), bound(7), None),
        (bound(200), None, None),
        (None, Some(Vec::new()), None),
        (None, None, Some(b"x".to_vec())),
        (bound(7), None, bound(3)),
    ] {
        let options = ScanOptions { lower, upper, prefix, ..ScanOptions::default() };
        let mut scan = tree.scan_with(options.clone())?;
        for to in [b"".to_vec(), vec![b'k', 7], vec![b'k', 99], b"z".to_vec()] {
            scan.seek(&to)?;
            assert!(!scan.valid(), "{options:?}");
            scan.seek_back(&to)?;
            assert!(!scan.valid(), "{options:?}");
        }
        scan.seek_first()?;
        assert!(!scan.valid(), "{options:?}");
        scan.seek_last()?;
        assert!(!scan.valid(), "{options:?}");
        assert_eq!(tree.scan_with(options)?.count(), 0);
    }
    Ok(())
}

#[test]
fn every_call_on_a_dropped_tree_is_refused() -> Result<()> {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let db = Db::open_in("/db", small(), options)?;
    let tree = db.tree_or_create("t")?;
    db.drop_tree("t")?;
    db.tree_or_create("t")?.put(b"a", b"of another")?;
    let mut batch = Batch::new();
    batch.put(&tree, b"a", b"1");
    let answers = [
        tree.put(b"a", b"1"),
        tree.delete(b"a"),
        tree.delete_range(b"a", b"b"),
        tree.put_reader(b"a", &mut &b"1"[..], WriteOptions::default()),
        db.write(&batch, WriteOptions::default()),
        tree.get(b"a").map(drop),
        tree.multi_get(&["a"]).map(drop),
        tree.prefetch(&["a"]).map(drop),
        tree.get_reader(b"a").map(drop),
        tree.contains(b"a").map(drop),
        tree.scan::<&[u8]>(..).map(drop),
        tree.ingest().map(drop),
        tree.flush(),
        tree.compact(),
        tree.compact_range(b"a", None),
        tree.approximate_bytes(b"a", None).map(drop),
    ];
    for (at, answer) in answers.into_iter().enumerate() {
        assert!(matches!(answer, Err(Error::NoSuchTree(_))), "{at}: {answer:?}");
    }
    Ok(())
}

#[test]
fn blocks_of_keys_that_are_looked_up_next_are_asked_for() -> Result<()> {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    const N: u64 = 5_000;
    {
        let db = Db::open_in("/db", small(), options.clone())?;
        let tree = db.tree_or_create("t")?;
        for n in 0..N {
            tree.put(&key(n), &value(n))?;
        }
        assert_eq!(tree.prefetch(&[key(N - 1)])?, 0, "it is in memory");
        tree.compact()?;
    }
    let db = Db::open_in("/db", small(), options)?;
    let tree = db.tree("t")?;
    let (there, nowhere) = (key(17), key(N + 17));
    assert_eq!(tree.prefetch(&[there, nowhere])?, 1);
    assert_eq!(tree.get(&there)?.unwrap(), value(17));
    assert_eq!(tree.prefetch(&[there])?, 0);
    assert_eq!(tree.prefetch::<&[u8]>(&[])?, 0);
    assert_eq!(db.stats().counters["blocks_prefetched"], 1);
    Ok(())
}
