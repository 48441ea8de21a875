//! The limit on space: never exceeded, refused in time, and given back.

use shaledb::{
    Background, Batch, Codec, Codecs, Config, Db, Env, Error, OpenOptions, Result, SpaceState,
    TransactionOptions, Tree, TreeConfig, WriteOptions,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LIMIT: u64 = 8 << 20;

fn config() -> Config {
    Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        space_limit: LIMIT,
        tree: TreeConfig { block_bytes: 4096, ..TreeConfig::default() },
        ..Config::default()
    }
}

/// A value that no codec makes smaller.
fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut value = Vec::with_capacity(bytes + 8);
    while value.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value.extend(state.to_le_bytes());
    }
    value.truncate(bytes);
    value
}

fn disk_bytes(env: &Env) -> u64 {
    env.fs.list("/db".as_ref()).unwrap().iter().map(|entry| entry.bytes).sum()
}

fn open(env: &Env, config: Config, background: Background) -> Result<Db> {
    Db::open_in("/db", config, OpenOptions { env: env.clone(), background, read_only: false })
}

/// Puts rows until one is refused; answers with their number.
fn fill(tree: &Tree, from: u32) -> u32 {
    for n in from.. {
        match tree.put(&n.to_be_bytes(), &value(n.into(), 1000)) {
            Ok(()) => {}
            Err(error) => {
                assert!(error.is_space_limit(), "{error}");
                return n - from;
            }
        }
    }
    unreachable!()
}

fn keeps_limit(env: &Env, db: &Db) {
    // With threads it may have changed in between, even to what it was: a file has come and gone.
    let mut first = None;
    let counted = (0..5).any(|_| {
        let (used, found, again) = (db.stats().space_used, disk_bytes(env), db.stats().space_used);
        assert!(found <= LIMIT && used <= LIMIT, "{found} {used}");
        first.get_or_insert((found, used));
        used != again || found <= used
    });
    assert!(counted, "found and counted: {first:?}");
}

fn fill_delete_and_fill_again(background: Background) {
    let env = Env::memory();
    let db = open(&env, config(), background).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let first = fill(&tree, 0);
    keeps_limit(&env, &db);
    let share = f64::from(first) * 1004.0 / LIMIT as f64;
    assert!(share > 0.75, "only {share:.2} of the limit is data");
    assert!(db.stats().space_state >= SpaceState::Slowed);
    // Reads go on, and nothing is poisoned.
    for n in (0..first).step_by(97) {
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap().unwrap(), value(n.into(), 1000));
    }
    for round in 0..3 {
        for n in 0..first {
            tree.delete(&n.to_be_bytes()).unwrap();
            if n % 64 == 0 {
                keeps_limit(&env, &db);
            }
        }
        let again = fill(&tree, 0);
        keeps_limit(&env, &db);
        assert!(again as f64 > 0.9 * f64::from(first), "round {round}: {again} of {first}");
    }
    tree.delete_range(b"", &[255; 5]).unwrap();
    // Room is asked for at most so often.
    std::thread::sleep(Duration::from_millis(150));
    let again = fill(&tree, 0);
    assert!(again as f64 > 0.9 * f64::from(first), "after a range delete: {again} of {first}");
    db.drop_tree("t").unwrap();
    let tree = db.tree_or_create("u").unwrap();
    let again = fill(&tree, 0);
    assert!(again as f64 > 0.9 * f64::from(first), "after a drop: {again} of {first}");
    keeps_limit(&env, &db);
    drop(tree);
    db.close().unwrap();
    let db = open(&env, config(), background).unwrap();
    assert_eq!(db.tree("u").unwrap().scan::<&[u8]>(..).unwrap().count(), again as usize);
    keeps_limit(&env, &db);
}

#[test]
fn what_is_full_takes_deletes_and_then_writes_stepped() {
    fill_delete_and_fill_again(Background::Stepped);
}

#[test]
fn what_is_full_takes_deletes_and_then_writes() {
    fill_delete_and_fill_again(Background::Threads);
}

/// Rows are deleted by statements that read the table while they delete, as those of SQL do. What
/// merges replace meanwhile stays to the end of the statement, and takes nothing from deletes.
fn delete_while_reading(background: Background) {
    let env = Env::memory();
    let db = open(&env, config(), background).unwrap();
    let (tree, index) = (db.tree_or_create("t").unwrap(), db.tree_or_create("by").unwrap());
    let full = fill(&tree, 0);
    let mut deleted = 0;
    for every in [2, 1] {
        let mut from = Some(Vec::new());
        while let Some(start) = from.take() {
            let mut txn = db.begin(TransactionOptions::default()).unwrap();
            let mut scan = tree.scan_with(Default::default()).unwrap();
            scan.seek(&start).unwrap();
            let mut rows = 0;
            while scan.valid() && rows < 50 {
                let key = scan.key().to_vec();
                if u32::from_be_bytes(key[..].try_into().unwrap()) % every == 0 {
                    let gone = txn.delete(&tree, &key).and_then(|()| txn.delete(&index, &key));
                    gone.unwrap_or_else(|error| panic!("{deleted}: {error}\n{}", db.stats()));
                    rows += 1;
                }
                from = Some(key);
                scan.next().unwrap();
            }
            if rows == 0 {
                break;
            }
            deleted += rows;
            let made = txn.commit(WriteOptions::default());
            made.unwrap_or_else(|error| panic!("{deleted}: {error}\n{}", db.stats()));
            keeps_limit(&env, &db);
        }
    }
    assert_eq!(deleted, full);
    let again = fill(&tree, 0);
    assert!(again as f64 > 0.9 * f64::from(full), "{again} of {full}");
}

#[test]
fn deletes_go_on_while_their_statements_read_stepped() {
    delete_while_reading(Background::Stepped);
}

#[test]
fn deletes_go_on_while_their_statements_read() {
    delete_while_reading(Background::Threads);
}

#[test]
fn threads_keep_the_limit_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let config = Config { background_threads: 2, ..config() };
    let db = Db::open(&path, config.clone()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let (done, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    let on_disk = || -> u64 {
        // What goes between the listing and the look at it takes nothing any more.
        let files =
            std::fs::read_dir(&path).unwrap().filter_map(|entry| entry.unwrap().metadata().ok());
        files.map(|file| file.len()).sum()
    };
    std::thread::scope(|scope| {
        let look = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(on_disk());
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let writers: Vec<_> = (0..4u32)
            .map(|writer| {
                let (tree, refused, db) = (&tree, &refused, &db);
                scope.spawn(move || {
                    for n in 0..600u32 {
                        let key = [writer.to_be_bytes(), (n % 450).to_be_bytes()].concat();
                        match tree.put(&key, &value((n + writer).into(), 5_000)) {
                            Ok(()) => {}
                            Err(error) => {
                                assert!(error.is_space_limit(), "{error}");
                                refused.fetch_add(1, Ordering::Relaxed);
                                // Its own rows of before make room.
                                let start = writer.to_be_bytes();
                                tree.delete_range(&start, &key).unwrap();
                            }
                        }
                        if n % 100 == 0 {
                            drop(db.snapshot());
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        let most = look.join().unwrap();
        assert!(most <= LIMIT && most > LIMIT / 2, "{most}");
    });
    assert!(refused.into_inner() > 0, "there is no room for all");
    let rows = tree.scan::<&[u8]>(..).unwrap().count();
    drop(tree);
    db.close().unwrap();
    let db = Db::open(&path, config).unwrap();
    assert_eq!(db.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count(), rows);
    assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
}

#[test]
fn a_transaction_is_refused_as_a_whole() {
    let env = Env::memory();
    let db = open(&env, config(), Background::Threads).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let full = fill(&tree, 0);
    let rows = || tree.scan::<&[u8]>(..).unwrap().count();
    // At a write: one that fits its memory, and one that does not.
    for memory_bytes in [100_000, 8 << 20] {
        let options = TransactionOptions { memory_bytes, ..TransactionOptions::default() };
        let mut txn = db.begin(options).unwrap();
        let mut refused = 0;
        for n in 0..1_000u32 {
            let key = [b"txn", &n.to_be_bytes()[..]].concat();
            if let Err(error) = txn.put(&tree, &key, &value(n.into(), 1000)) {
                assert!(error.is_space_limit(), "{error}");
                refused += 1;
            }
        }
        assert!(refused > 900, "{refused}");
        drop(txn);
        assert_eq!(rows(), full as usize);
    }
    // At the commit: a batch, of which no part is there.
    let mut batch = Batch::new();
    for n in 0..500u32 {
        batch.put(&tree, &[b"batch", &n.to_be_bytes()[..]].concat(), &value(n.into(), 1000));
    }
    assert!(db.write(&batch, WriteOptions::default()).unwrap_err().is_space_limit());
    assert_eq!(rows(), full as usize);
    // A bulk load and a large value.
    let mut ingest = tree.ingest().unwrap();
    let loaded = (0..500u32).try_for_each(|n| {
        ingest.add(&[b"load", &n.to_be_bytes()[..]].concat(), &value(n.into(), 1000))
    });
    let loaded = loaded.and_then(|()| ingest.finish());
    assert!(loaded.unwrap_err().is_space_limit());
    assert!(tree.put(b"large", &value(7, 2 << 20)).unwrap_err().is_space_limit());
    assert_eq!(rows(), full as usize);
    keeps_limit(&env, &db);
    // A transaction that deletes is made.
    for from in [0, 1_000] {
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        for n in from..from + 1_000u32 {
            txn.delete(&tree, &n.to_be_bytes()).unwrap();
        }
        txn.commit(WriteOptions::default()).unwrap();
    }
    assert_eq!(rows(), full as usize - 2_000);
    let written = (0..100u32).map(|n| tree.put(&n.to_be_bytes(), &value(n.into(), 1000)));
    written.collect::<Result<Vec<()>>>().unwrap();
}

/// A large value is in one file, and in no log and no table beside it.
#[test]
fn a_large_value_needs_room_for_itself_alone() {
    let env = Env::memory();
    let db = open(&env, config(), Background::Stepped).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let large = value(1, 5 << 20);
    let mut batch = Batch::new();
    batch.put(&tree, b"batch", &large);
    db.write(&batch, WriteOptions::default()).unwrap();
    keeps_limit(&env, &db);
    tree.delete(b"batch").unwrap();
    // There is room once the other one is gone.
    tree.put(b"put", &large).unwrap();
    keeps_limit(&env, &db);
    assert_eq!(tree.get(b"put").unwrap().unwrap(), large);
    // Nothing of one that has no room is left.
    let mut reader = &value(2, 4 << 20)[..];
    let refused = tree.put_reader(b"more", &mut reader, WriteOptions::default());
    assert!(refused.unwrap_err().is_space_limit());
    assert!(tree.put(b"more", &value(2, 4 << 20)).unwrap_err().is_space_limit());
    assert!(disk_bytes(&env) < 6 << 20, "{}", disk_bytes(&env));
}

/// How long it is nobody knows while it is read: it waits for merges to make the room that it
/// turns out to need.
#[test]
fn a_large_value_that_is_read_has_room_made_for_it() {
    // With less than two of them free there is room for a start of each.
    let sizes = [5 << 19, 3 << 20];
    for (background, bytes) in
        [Background::Stepped, Background::Threads].iter().flat_map(|b| sizes.map(|s| (*b, s)))
    {
        let env = Env::memory();
        let db = open(&env, config(), background).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        for n in 0..12 {
            let large = value(n, bytes);
            let put = tree.put_reader(b"a", &mut &large[..], WriteOptions::default());
            put.unwrap_or_else(|error| panic!("{n}, {background:?}: {error}\n{}", db.stats()));
            keeps_limit(&env, &db);
            assert!(tree.get(b"a").unwrap().unwrap() == large);
        }
    }
}

#[test]
fn what_a_snapshot_pins_is_refused_and_nothing_hangs() {
    let env = Env::memory();
    let db = open(&env, config(), Background::Threads).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let full = fill(&tree, 0);
    let snapshot = db.snapshot();
    let mut scan = tree.scan_with(Default::default()).unwrap();
    scan.seek_first().unwrap();
    // Deletes make no room now, and so may be refused at last.
    let delete = |n: u32| tree.delete(&n.to_be_bytes());
    let refused = (0..full).find_map(|n| delete(n).err());
    assert!(refused.is_none_or(|error| error.is_space_limit()));
    // The rows are still read by those who began before.
    let began = Instant::now();
    for n in 0..20u32 {
        let put = tree.put(&n.to_be_bytes(), &value(1, 100_000));
        assert!(put.is_ok() || put.unwrap_err().is_space_limit());
    }
    assert!(fill(&tree, 0) < full / 4, "its room is not given away");
    assert!(began.elapsed() < Duration::from_secs(60), "nobody waits for the snapshot");
    keeps_limit(&env, &db);
    assert_eq!(tree.get_at(&5u32.to_be_bytes(), &snapshot).unwrap().unwrap(), value(5, 1000));
    drop(scan);
    drop(snapshot);
    std::thread::sleep(Duration::from_millis(150));
    (0..full).try_for_each(delete).unwrap();
    let again = fill(&tree, 0);
    assert!(again > full / 2, "{again} of {full} after it has ended");
}

/// What a crash brought back of names that were removed takes more than there may be: some of it
/// goes before the limit is set, the rest once the log has been read.
#[test]
fn what_a_crash_has_brought_back_goes_when_the_database_is_opened() {
    let env = Env::memory();
    let db = open(&env, config(), Background::Stepped).unwrap();
    db.tree_or_create("t").unwrap().put(b"a", b"").unwrap();
    db.close().unwrap();
    let put = |name: &str, content: &[u8]| {
        let path = Path::new("/db").join(name);
        env.fs.create(&path).unwrap().append(content).unwrap();
        path
    };
    for _ in 0..2 {
        let left = [put("MANIFEST-000001", b"old"), put("000001.blob", &value(7, LIMIT as usize))];
        let db = open(&env, config(), Background::Stepped).unwrap();
        assert!(left.iter().all(|path| !env.fs.exists(path).unwrap()));
        assert!(db.tree("t").unwrap().contains(b"a").unwrap());
        keeps_limit(&env, &db);
    }
}

#[test]
fn what_cannot_be_kept_is_refused_by_name() {
    let env = Env::memory();
    let setting = |result: Result<Db>| match result {
        Err(Error::Config { setting: "space_limit", what }) => what,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let small = |space_limit| Config { space_limit, ..config() };
    assert!(setting(open(&env, small(1000), Background::Stepped)).contains("2097152"));
    let large = Config { memtable_bytes: 1 << 20, ..small(8 << 20) };
    assert!(setting(open(&env, large, Background::Stepped)).contains("memtable_bytes"));
    let db = open(&env, small(0), Background::Stepped).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for n in 0..4_000u32 {
        tree.put(&n.to_be_bytes(), &value(n.into(), 1000)).unwrap();
    }
    assert_eq!((db.stats().space_limit, db.stats().space_reserved), (0, 0));
    assert!(disk_bytes(&env) <= db.stats().space_used);
    let refused = db.set_space_limit(3 << 20).unwrap_err().to_string();
    assert!(refused.contains("`space_limit`") && refused.contains("3145728"), "{refused}");
    db.set_space_limit(16 << 20).unwrap();
    db.close().unwrap();
    let refused = setting(open(&env, small(3 << 20), Background::Stepped));
    assert!(refused.contains("bytes") && refused.contains("3145728"), "{refused}");
    // Nothing has been harmed by that.
    let db = open(&env, small(8 << 20), Background::Stepped).unwrap();
    assert_eq!(db.tree("t").unwrap().scan::<&[u8]>(..).unwrap().count(), 4_000);
    // A lower limit is what holds from then on.
    db.set_space_limit(6 << 20).unwrap();
    let tree = db.tree("t").unwrap();
    fill(&tree, 100_000);
    assert!(disk_bytes(&env) <= 6 << 20);
    db.set_space_limit(0).unwrap();
    tree.put(b"more", &value(1, 3 << 20)).unwrap();
}

/// A value of which a codec saves half.
fn half(seed: u64, bytes: usize) -> Vec<u8> {
    let mut value = value(seed, bytes / 2);
    value.resize(bytes, b'-');
    value
}

/// Of data that takes 1 of a limit of 1.3 much is overwritten, in no order: merges always can make room for
/// that, so nothing is refused.
fn overwrite(tree: TreeConfig, background: Background) {
    const ROWS: u64 = 30_000;
    // Three times what there is room for.
    const OVERWRITTEN: u64 = 12_000;
    let row = |n: u64, round: u64| ((n * 7_919 % ROWS).to_be_bytes(), half(ROWS * round + n, 400));
    let load = |space_limit| {
        let env = Env::memory();
        let config = Config { space_limit, tree: tree.clone(), ..config() };
        let db = open(&env, config, background).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        for n in 0..ROWS {
            let (key, value) = row(n, 0);
            tree.put(&key, &value).unwrap();
        }
        tree.compact().unwrap();
        (env, db, tree)
    };
    let limit = disk_bytes(&load(0).0) * 13 / 10;
    let (env, db, tree) = load(limit);
    for n in 0..OVERWRITTEN {
        let (key, value) = row(n, 1);
        tree.put(&key, &value).unwrap_or_else(|error| panic!("row {n}: {error}\n{}", db.stats()));
        if n % 256 == 0 {
            assert!(disk_bytes(&env) <= limit);
        }
    }
    for n in 0..ROWS {
        let (key, value) = row(n, u64::from(n < OVERWRITTEN));
        assert_eq!(tree.get(&key).unwrap().unwrap(), value);
    }
}

fn codecs(codec: Codec) -> Codecs {
    Codecs { upper: codec, middle: codec, bottommost: codec }
}

#[test]
fn an_overwrite_in_a_third_more_is_not_refused_stepped() {
    overwrite(config().tree, Background::Stepped);
}

#[test]
fn an_overwrite_in_a_third_more_is_not_refused() {
    overwrite(config().tree, Background::Threads);
}

/// What is light above and strong below.
#[test]
fn an_overwrite_under_a_lighter_codec_is_not_refused() {
    let up = Codecs { bottommost: Codec::Zstd(3), ..codecs(Codec::None) };
    overwrite(TreeConfig { codecs: up, ..config().tree }, Background::Stepped);
}

#[test]
fn an_overwrite_under_one_codec_is_not_refused() {
    overwrite(TreeConfig { codecs: codecs(Codec::Zstd(1)), ..config().tree }, Background::Stepped);
}

fn log_bytes(env: &Env) -> u64 {
    let files = env.fs.list("/db".as_ref()).unwrap();
    let logs = files.iter().filter(|file| file.name.ends_with(".wal"));
    logs.map(|file| file.bytes).sum()
}

/// No memtable fills up, and none is flushed.
#[test]
fn the_log_of_trees_that_come_and_go_is_not_kept() {
    for (background, space_limit) in
        [Background::Stepped, Background::Threads].iter().flat_map(|b| [(*b, 0), (*b, 2 << 20)])
    {
        let env = Env::memory();
        let db = open(&env, Config { space_limit, ..config() }, background).unwrap();
        for n in 0..300u32 {
            let tree = db.tree_or_create("staging").unwrap();
            tree.put(&n.to_be_bytes(), &value(n.into(), 32 << 10))
                .unwrap_or_else(|error| panic!("{n}, {space_limit}: {error}\n{}", db.stats()));
            db.drop_tree("staging").unwrap();
        }
        let bytes = log_bytes(&env);
        assert!(bytes < 512 << 10, "{bytes} of log, {background:?}, {space_limit}");
    }
}

/// What is prepared and rolled back is in the log and nowhere else.
#[test]
fn the_log_of_what_is_rolled_back_is_not_kept() {
    for background in [Background::Stepped, Background::Threads] {
        let env = Env::memory();
        let db = open(&env, Config { space_limit: 2 << 20, ..config() }, background).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        for n in 0..300u32 {
            let mut txn = db.begin(TransactionOptions::default()).unwrap();
            let put = txn.put(&tree, &n.to_be_bytes(), &value(n.into(), 32 << 10));
            let prepared = put.and_then(|()| txn.prepare(b"x"));
            let prepared = prepared.unwrap_or_else(|error| panic!("{n}: {error}\n{}", db.stats()));
            prepared.rollback(WriteOptions::default()).unwrap();
        }
    }
}

/// Another tree has a little in what is otherwise of trees that are gone.
#[test]
fn a_little_memtable_that_keeps_a_long_log_is_sealed() {
    let env = Env::memory();
    let db = open(&env, Config { space_limit: 0, ..config() }, Background::Stepped).unwrap();
    let kept = db.tree_or_create("kept").unwrap();
    kept.put(b"a", b"").unwrap();
    for n in 0..40u32 {
        let tree = db.tree_or_create("staging").unwrap();
        tree.put(&n.to_be_bytes(), &value(n.into(), 32 << 10)).unwrap();
        db.drop_tree("staging").unwrap();
    }
    let sealed = db.stats().trees.iter().map(|tree| tree.memtables_sealed).sum::<u64>();
    assert_eq!(sealed, 1);
    // Its flush takes the log with it.
    kept.flush().unwrap();
    let bytes = log_bytes(&env);
    assert!(bytes < 256 << 10, "{bytes} of log");
    assert!(kept.contains(b"a").unwrap());
}
