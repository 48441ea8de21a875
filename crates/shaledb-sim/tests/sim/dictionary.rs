//! Tables with compression dictionaries on a failing or crashing disk: no wrong answer, and nothing
//! lost that was durable.

use crate::Case;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb::inspect::{Inspection, open_in};
use shaledb::{Codec, Codecs, Config, Db, Result, Tree, TreeConfig, WriteOptions};
use shaledb_sim::corrupt::kind;
use shaledb_sim::fault::faults_of;
use shaledb_sim::settings::{exhaustive, small};
use shaledb_sim::world::{PATH, open_db};
use std::collections::BTreeMap;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const ROWS: u32 = 1200;

fn config(dictionary: bool) -> Config {
    let codecs = Codecs::all(Codec::Zstd(1));
    let tree = TreeConfig { codecs, dictionary, ..small().tree };
    Config { table_bytes: 256 << 10, memtable_bytes: 256 << 10, tree, ..small() }
}

fn row(number: u32, version: u32) -> (Vec<u8>, Vec<u8>) {
    let noise = number.wrapping_mul(2_654_435_761) ^ version;
    let value = format!(
        "{{\"id\":{number},\"version\":{version},\"user\":\"{noise:08x}\",\"status\":\"active\",\
         \"currency\":\"EUR\",\"comment\":\"nothing of note, as in all the others\"}}"
    );
    (format!("order/{number:06}").into_bytes(), value.into_bytes())
}

/// Two rounds of rows, the second of every third; flushed and merged. Every commit is durable, so
/// `rows` is what must be there, but for the row that was being written.
fn work(db: &Db, rows: &mut Rows) -> Result<()> {
    let tree = db.tree_or_create("t")?;
    for (version, step) in [(1, 1), (2, 3)] {
        for number in (0..ROWS).step_by(step) {
            let (key, value) = row(number, version);
            tree.put(&key, &value)?;
            rows.insert(key, value);
        }
        let (key, value) = row(0, version + 10);
        tree.put_with(&key, &value, WriteOptions { sync: true })?;
        rows.insert(key, value);
        db.flush()?;
        db.compact()?;
    }
    Ok(())
}

fn read(tree: &Tree) -> Result<Rows> {
    let rows = tree.scan::<&[u8]>(..)?;
    rows.map(|row| row.map(|(key, value)| (key, value.to_vec()))).collect()
}

/// How many table files have a dictionary.
fn dictionaries(fs: &MemFs) -> usize {
    let env = shaledb::fs::Env {
        fs: std::sync::Arc::new(fs.clone()),
        clock: std::sync::Arc::new(shaledb::fs::mem::MemClock::new()),
    };
    let files = fs.files();
    let tables = files.iter().filter(|(path, _)| kind(path) == "table");
    let has_one = |path: &std::path::Path| match open_in(&env, path) {
        Ok(Inspection::Table(table)) => table.dictionary_bytes > 0,
        _ => false,
    };
    tables.filter(|(path, _)| has_one(path)).count()
}

#[test]
fn with_and_without_answers_are_the_same() {
    let mut bytes = Vec::new();
    for dictionary in [false, true] {
        let fs = MemFs::new();
        let mut rows = Rows::new();
        let db = open_db(&fs, PATH, &config(dictionary)).unwrap();
        work(&db, &mut rows).unwrap();
        assert_eq!(dictionaries(&fs) > 0, dictionary);
        for _ in 0..2 {
            let tree = db.tree("t").unwrap();
            assert_eq!(tree.config().dictionary, dictionary);
            assert!(read(&tree).unwrap() == rows);
            for (key, value) in rows.iter().step_by(7) {
                assert!(tree.get(key).unwrap().as_deref() == Some(value));
            }
        }
        assert!(db.verify(&mut |_| {}).unwrap().damage.is_empty());
        bytes.push(fs.files().iter().filter(|(path, _)| kind(path) == "table").map(|f| f.1).sum());
        db.close().unwrap();
        // The setting of trees to come changes nothing for this one.
        let db = open_db(&fs, PATH, &config(!dictionary)).unwrap();
        assert!(read(&db.tree("t").unwrap()).unwrap() == rows);
        work(&db, &mut rows).unwrap();
        assert!(read(&db.tree("t").unwrap()).unwrap() == rows);
        assert_eq!(dictionaries(&fs) > 0, dictionary);
    }
    let [without, with]: [u64; 2] = bytes.try_into().unwrap();
    assert!(with * 10 < without * 9, "{with} {without}");
}

#[test]
fn failing_calls_give_no_wrong_answer() {
    let whole = MemFs::new();
    work(&open_db(&whole, PATH, &config(true)).unwrap(), &mut Rows::new()).unwrap();
    assert!(dictionaries(&whole) > 0);
    let counts = whole.counts();
    let samples = if exhaustive() { u64::MAX } else { 12 };
    let mut failed = 0;
    for call in [Call::Append, Call::Create, Call::Sync, Call::Read] {
        let stride = (counts.of(call) / samples).max(1);
        for nth in (1..=counts.of(call)).step_by(stride as usize) {
            for &fault in faults_of(call) {
                let _case = Case::new(format!("{call:?} {nth} {fault:?}"));
                failed += u64::from(one_failure(call, nth, fault));
            }
        }
    }
    assert!(failed > 10, "{failed}");
}

/// Whether a call of the engine failed with the nth call of the disk.
fn one_failure(call: Call, nth: u64, fault: Fault) -> bool {
    let fs = MemFs::new();
    fs.fail(call, nth, fault, true);
    let mut rows = Rows::new();
    let result = open_db(&fs, PATH, &config(true)).and_then(|db| work(&db, &mut rows));
    fs.clear_faults();
    let db = open_db(&fs, PATH, &config(true)).unwrap();
    let found = db.tree("t").ok().map(|tree| read(&tree).unwrap()).unwrap_or_default();
    // The row whose write failed may be there or not.
    let differ = |(key, value): &(&Vec<u8>, &Vec<u8>)| rows.get(*key) != Some(*value);
    assert!(found.iter().filter(differ).count() <= 1, "{call:?} {nth} {fault:?}");
    assert!(rows.keys().all(|key| found.contains_key(key)), "{call:?} {nth} {fault:?}");
    assert!(db.verify(&mut |_| {}).unwrap().damage.is_empty());
    result.is_err()
}

#[test]
fn a_crash_loses_nothing_that_was_durable() {
    let fs = MemFs::new();
    let mut rows = Rows::new();
    let db = open_db(&fs, PATH, &config(true)).unwrap();
    work(&db, &mut rows).unwrap();
    for torn in 0..if exhaustive() { 200 } else { 8 } {
        for mode in [CrashMode::Kept, CrashMode::Lost, CrashMode::Torn] {
            let _case = Case::new(format!("{mode:?} {torn}"));
            let left = fs.crash_clone(torn, mode);
            let db = open_db(&left, PATH, &config(true)).unwrap();
            assert!(read(&db.tree("t").unwrap()).unwrap() == rows, "{mode:?} {torn}");
            assert!(db.verify(&mut |_| {}).unwrap().damage.is_empty());
            assert!(dictionaries(&left) > 0);
        }
    }
}

#[test]
fn flipped_bytes_are_found() {
    let fs = MemFs::new();
    let mut rows = Rows::new();
    let db = open_db(&fs, PATH, &config(true)).unwrap();
    work(&db, &mut rows).unwrap();
    db.close().unwrap();
    let files = fs.files();
    for (path, bytes) in files.iter().filter(|(path, _)| kind(path) == "table") {
        let stride = if exhaustive() { 7 } else { 499 };
        for at in (0..*bytes).step_by(stride) {
            let _case = Case::new(format!("{} {at}", path.display()));
            assert!(fs.corrupt(path, at, 0x40));
            let db = open_db(&fs, PATH, &config(true)).unwrap();
            // What it is damaged in decides whether reading meets it; if not, the rows are right.
            match db.tree("t").and_then(|tree| read(&tree)) {
                Ok(found) => assert!(found == rows, "{at}"),
                Err(error) => assert!(error.is_corruption(), "{error}"),
            }
            let verified = db.verify(&mut |_| {}).unwrap();
            assert!(!verified.damage.is_empty(), "{at}");
            drop(db);
            assert!(fs.corrupt(path, at, 0x40));
        }
    }
}
