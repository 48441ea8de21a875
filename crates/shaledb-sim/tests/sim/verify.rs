//! A database with every kind of file, each of which is damaged in turn, anywhere, cut anywhere or
//! removed: `verify` (or the open before it) names that file, and goes on to all others.

use crate::Case;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::fs::mem::{CrashMode, MemClock, MemFs};
use shaledb::fs::{Env, Fs, read_all};
use shaledb::{Db, Error, OpenOptions, TransactionOptions, VerifyReport, WriteOptions};
use shaledb_sim::settings::{exhaustive, small};
use shaledb_sim::world::{PATH, open_db, state_hash};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many bytes of each file are changed, and at how many it is cut, unless all are.
const SAMPLES: u64 = 25;

/// A closed database: with tables, one of which has a dictionary, a log of several files, blobs that
/// tables, the log only, a prepared transaction in the log and one in tables refer to.
fn rich() -> MemFs {
    let fs = MemFs::new();
    let config = small();
    let db = open_db(&fs, PATH, &config).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let mut with_dictionary = config.tree.clone();
    with_dictionary.dictionary = true;
    let other = db.create_tree("dictionary", with_dictionary).unwrap();
    let large = |seed: u8| vec![seed; 10_000];
    for n in 0..3_000u32 {
        let text = format!("{{\"number\": {n}, \"name\": \"somebody called {n}\"}}");
        other.put(&n.to_be_bytes(), text.as_bytes()).unwrap();
    }
    tree.put(b"blob in a table", &large(1)).unwrap();
    tree.delete_range(b"x", b"y").unwrap();
    db.compact().unwrap();
    let spilling = TransactionOptions { memory_bytes: 100, ..TransactionOptions::default() };
    let mut txn = db.begin(spilling).unwrap();
    for n in 0..50u32 {
        txn.put(&tree, &[b"prepared", &n.to_be_bytes()[..]].concat(), b"in a table").unwrap();
    }
    txn.put(&tree, b"prepared blob in a table", &large(2)).unwrap();
    txn.prepare(b"in tables").unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&tree, b"prepared blob in the log", &large(3)).unwrap();
    txn.prepare(b"in the log").unwrap();
    for n in 0..2_000u32 {
        tree.put(&n.to_be_bytes(), &[n as u8; 40]).unwrap();
    }
    tree.put_with(b"blob in the log", &large(4), WriteOptions::SYNC).unwrap();
    drop((tree, other));
    db.close().unwrap();
    fs
}

fn open(fs: &MemFs) -> shaledb::Result<Db> {
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    Db::open_in(PATH, small(), OpenOptions { env, read_only: true, ..OpenOptions::default() })
}

fn verify(fs: &MemFs) -> shaledb::Result<VerifyReport> {
    open(fs)?.verify(&mut |_| ())
}

/// All that a database holds and has prepared.
fn content(fs: &MemFs) -> (u64, usize) {
    let db = open(fs).unwrap();
    (state_hash(&db).unwrap(), db.prepared().unwrap().len())
}

fn kind(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    let named = name.split_once('.').map(|(_, extension)| extension);
    named.unwrap_or_else(|| name.split('-').next().unwrap()).to_owned()
}

/// Whether this file was named; or why that need not be.
fn names_file(fs: &MemFs, path: &Path, whole: &(u64, usize), what: &str) -> bool {
    let damage = match verify(fs) {
        Ok(report) if report.damage.is_empty() => {
            // What is behind the last commit: the mark of a close in good order.
            assert!(report.unfinished_bytes > 0, "{what} was not noticed");
            assert!(content(fs) == *whole, "{what} has changed the content");
            return false;
        }
        Ok(report) => report.damage,
        Err(error) => vec![error],
    };
    // The number of a file of the log that is gone is known nowhere: the next one is named.
    let gone = kind(path) == "wal" && !fs.exists(path).unwrap();
    let names = |error: &Error| match error {
        Error::Corruption { path: named, what, .. } => {
            // `CURRENT` is what names a manifest that is missing.
            let name = path.file_name().unwrap().to_str().unwrap();
            named == path || what.contains(name) || (gone && kind(named) == "wal" && named > path)
        }
        _ => false,
    };
    // Without its mark the transaction is known, but not by the name of the file.
    let no_mark = |error: &Error| error.to_string().contains(".prepared tells of");
    assert!(
        damage.iter().any(|error| names(error) || (kind(path) == "prepared" && no_mark(error))),
        "{what} was reported as {damage:?}"
    );
    true
}

fn remove(fs: &MemFs, path: &Path) {
    fs.remove(path).unwrap();
    fs.sync_dir(Path::new(PATH)).unwrap();
}

#[test]
fn damage_of_any_file_is_named() {
    let fs = rich();
    let whole = content(&fs);
    let report = verify(&fs).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    assert_eq!(report.blobs, 4, "of tables, memtables and what is prepared");
    assert!(report.log_files > 1 && report.log_records > 2_000 && report.log_bytes > 50_000);
    assert_eq!(report.unfinished_bytes, 0);
    let mut noticed: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let mut random = Pcg64Mcg::seed_from_u64(17);
    for (path, length) in fs.files() {
        let kind = kind(&path);
        if kind == "LOCK" {
            continue;
        }
        let stride = if exhaustive() { 1 } else { (length / SAMPLES).max(1) };
        let mut at = random.random_range(0..stride);
        let mut tally =
            |named: bool| noticed.entry(kind.clone()).or_default()[usize::from(named)] += 1;
        while at < length {
            let xor = 1 << random.random_range(0..8);
            let what = format!("{}: byte {at} changed by {xor}", path.display());
            let _case = Case::new(what.clone());
            let disk = fs.crash_clone(0, CrashMode::Kept);
            assert!(disk.corrupt(&path, at, xor));
            tally(names_file(&disk, &path, &whole, &what));
            let what = format!("{}: cut to {at} bytes", path.display());
            let disk = fs.crash_clone(0, CrashMode::Kept);
            let mut file = disk.append(&path).unwrap();
            file.truncate(at).unwrap();
            file.sync().unwrap();
            // The log that ends at a record's end is another matter: the close mark's.
            if kind != "wal" && kind != "MANIFEST" {
                tally(names_file(&disk, &path, &whole, &what));
            }
            at += random.random_range(1..=2 * stride);
        }
        let what = format!("{}: removed", path.display());
        let disk = fs.crash_clone(0, CrashMode::Kept);
        remove(&disk, &path);
        let later = |(other, _): &(PathBuf, u64)| self::kind(other) == "wal" && *other > path;
        if kind == "wal" && !fs.files().iter().any(later) {
            // As a log that is cut: what is left looks whole.
        } else if kind == "CURRENT" {
            assert!(matches!(verify(&disk), Err(Error::NoDatabase(_))), "{what}");
        } else {
            tally(names_file(&disk, &path, &whole, &what));
        }
    }
    println!("[not named, named] by kind: {noticed:?}");
    let kinds: Vec<&str> = noticed.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["CURRENT", "MANIFEST", "blob", "prepared", "run", "table", "wal"]);
    for (kind, [not, named]) in &noticed {
        let marks = ["MANIFEST", "wal"].contains(&kind.as_str());
        assert!(*named > 0 && (marks || *not == 0), "{kind}: {not} were not named");
    }
}

/// One damaged file does not keep the others from being read, nor does a missing one.
#[test]
fn all_damage_is_listed() {
    let fs = rich();
    let paths = |end: &str| -> Vec<PathBuf> {
        let files = fs.files().into_iter().map(|(path, _)| path);
        files.filter(|path| kind(path) == end).collect()
    };
    let (blobs, tables) = (paths("blob"), paths("table"));
    remove(&fs, &blobs[0]);
    fs.corrupt(&blobs[1], 100, 1);
    fs.corrupt(&blobs[2], 0, 1);
    remove(&fs, &blobs[3]);
    tables.iter().for_each(|path| assert!(fs.corrupt(path, 20, 4)));
    let report = verify(&fs).unwrap();
    let named: Vec<&PathBuf> = report
        .damage
        .iter()
        .map(|error| match error {
            Error::Corruption { path, .. } => path,
            other => panic!("{other}"),
        })
        .collect();
    for path in blobs.iter().chain(&tables) {
        // What only a damaged table names cannot be found.
        let of_damaged = blobs.iter().position(|blob| blob == path) == Some(0);
        assert!(of_damaged || named.contains(&path), "{} is not in {named:?}", path.display());
    }
}

/// Nothing is written, and all that only reads works: with a lock file and without.
#[test]
fn a_medium_that_cannot_be_written_is_read() {
    for with_lock in [true, false] {
        let fs = rich();
        let whole = content(&fs);
        if !with_lock {
            remove(&fs, &Path::new(PATH).join("LOCK"));
        }
        fs.set_read_only(Path::new(PATH));
        let before: Vec<_> =
            fs.files().into_iter().map(|(path, _)| (read_all(&fs, &path).unwrap(), path)).collect();
        assert_eq!(content(&fs), whole, "with a lock file: {with_lock}");
        let report = verify(&fs).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        assert_eq!(report.blobs, 4);
        let db = open(&fs).unwrap();
        assert_eq!(db.prepared().unwrap().len(), 2);
        assert!(db.stats().to_string().contains("3000 entries"), "{}", db.stats());
        assert!(matches!(db.refresh(), Err(Error::InvalidArgument(_))));
        let tree = db.tree("t").unwrap();
        assert_eq!(tree.get(b"blob in the log").unwrap().unwrap().len(), 10_000);
        assert!(matches!(tree.put(b"a", b""), Err(Error::ReadOnly)));
        assert_eq!(open(&fs).map(|db| db.tree_names().len()).unwrap(), 2, "a second reader");
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        let options = shaledb::repair::RepairOptions { env: env.clone(), ..Default::default() };
        let to = Path::new("/repaired");
        let report = shaledb::repair::repair(Path::new(PATH), to, &options, &mut |_| ()).unwrap();
        assert!(report.is_clean(), "{report}");
        assert!(Db::open_follower_in(PATH, small(), env).is_ok());
        drop((tree, db));
        let files = before.len();
        for (content, path) in before {
            assert!(read_all(&fs, &path).unwrap() == content, "{} has changed", path.display());
        }
        let there = fs.files().into_iter().filter(|(path, _)| path.starts_with(PATH)).count();
        assert_eq!(there, files, "a file has come or gone");
    }
}

/// A live database verifies its log as it is.
#[test]
fn damage_of_a_live_log_is_found() {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for n in 0..100u32 {
        tree.put(&n.to_be_bytes(), b"not synced").unwrap();
    }
    let report = db.verify(&mut |_| ()).unwrap();
    assert!(report.damage.is_empty() && report.log_records == 100, "{report:?}");
    let wals = fs.files().into_iter().filter(|(path, _)| kind(path) == "wal");
    let (path, bytes) = wals.max_by_key(|(_, bytes)| *bytes).unwrap();
    fs.corrupt(&path, bytes - 5, 1);
    let damage = db.verify(&mut |_| ()).unwrap().damage;
    assert!(matches!(&damage[..], [Error::Corruption { path: named, .. }] if *named == path));
}
