use super::*;
use crate::base::config::{Codec, Codecs, Config, TreeConfig};
use crate::base::error::{Error, Result};
use crate::db::{Background, Batch, Db, OpenOptions, TransactionOptions, Tree, WriteOptions};
use crate::fs::mem::{Call, CrashMode, Fault, MemClock, MemFs};
use crate::fs::{Env, Fs};
use crate::table::format::parse_file_name;
use crate::version::manifest::{ManifestDump, ManifestLine};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "/db";

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// The rows by tree.
type All = BTreeMap<String, Rows>;

struct World {
    fs: MemFs,
    env: Env,
}

fn open(env: &Env, dir: &Path) -> Db {
    let config = Config { memtable_bytes: 64 << 10, table_bytes: 64 << 10, ..Config::default() };
    let options =
        OpenOptions { env: env.clone(), background: Background::Stepped, read_only: false };
    Db::open_in(dir, config, options).unwrap()
}

fn rows_of(tree: &Tree) -> Rows {
    tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap()).map(|(k, v)| (k, v.to_vec())).collect()
}

fn all(db: &Db) -> All {
    db.tree_names()
        .into_iter()
        .map(|name| (name.clone(), rows_of(&db.tree(&name).unwrap())))
        .collect()
}

fn key(number: u32) -> Vec<u8> {
    format!("key/{number:05}").into_bytes()
}

impl World {
    /// A database with two trees, tables in several levels, range deletes, blobs, an ingested
    /// table, and a log with what is in no table; closed. And what is in it.
    fn new() -> (World, All) {
        let fs = MemFs::new();
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        let world = World { fs, env };
        let db = open(&world.env, Path::new(DIR));
        let config = TreeConfig {
            codecs: Codecs { bottommost: Codec::Zstd(3), middle: Codec::Lz4, upper: Codec::None },
            block_bytes: 1024,
            blob_bytes: 8192,
            ..TreeConfig::default()
        };
        let users = db.create_tree("users", config.clone()).unwrap();
        let items = db.create_tree("items", config).unwrap();
        let mut ingest = items.ingest().unwrap();
        for number in 0..300 {
            ingest.add(&key(number * 3), &[b'i'; 40]).unwrap();
        }
        ingest.finish().unwrap();
        for round in 0..3u32 {
            for number in (round..900).step_by(2) {
                users.put(&key(number), format!("user {number} {round}").as_bytes()).unwrap();
            }
            users.delete(&key(round * 10)).unwrap();
            users.delete_range(&key(100 * round + 20), &key(100 * round + 40)).unwrap();
            db.flush().unwrap();
            if round == 0 {
                users.compact().unwrap();
            }
        }
        users.put(b"large/1", &[1; 20_000]).unwrap();
        users.put(b"large/2", &[2; 100_000]).unwrap();
        db.flush().unwrap();
        items.put(&key(3), b"changed").unwrap();
        let mut batch = Batch::new();
        for number in 1000..1100 {
            batch.put(&users, &key(number), b"only in the log");
            batch.put(&items, &key(number), b"only in the log");
        }
        batch.delete(&users, &key(500));
        batch.put(&users, b"large/3", &[3; 30_000]);
        db.write(&batch, WriteOptions::SYNC).unwrap();
        for number in 1100..1120 {
            users.put_with(&key(number), b"one by one", WriteOptions::SYNC).unwrap();
        }
        let content = all(&db);
        drop((users, items, batch));
        db.close().unwrap();
        (world, content)
    }

    fn try_repair(&self, from: &str, to: &str) -> Result<RepairReport> {
        let options = RepairOptions { env: self.env.clone(), ..RepairOptions::default() };
        repair(Path::new(from), Path::new(to), &options, &mut |_| ())
    }

    fn repair(&self) -> (All, RepairReport) {
        let to = PathBuf::from("/repaired");
        if self.fs.exists(&to).unwrap() {
            for entry in self.fs.list(&to).unwrap() {
                self.fs.remove(&to.join(entry.name)).unwrap();
            }
        }
        let before = self.files();
        let options = RepairOptions { env: self.env.clone(), ..RepairOptions::default() };
        let mut calls = 0;
        let report = repair(Path::new(DIR), &to, &options, &mut |_| calls += 1).unwrap();
        assert!(calls > 3);
        assert_eq!(self.files(), before, "the damaged database is as it was");
        let db = open(&self.env, &to);
        assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
        assert!(!report.to_string().is_empty());
        (all(&db), report)
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.fs.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name);
        let names = names.filter(|name| name != "LOCK");
        names.map(|name| (name.clone(), self.content(&name))).collect()
    }

    fn names(&self, part: &str) -> Vec<String> {
        let files = self.files().into_iter().map(|(name, _)| name);
        files.filter(|name| name.contains(part)).collect()
    }

    fn content(&self, name: &str) -> Vec<u8> {
        self.fs.content(&Path::new(DIR).join(name)).unwrap()
    }

    fn set(&self, name: &str, content: &[u8]) {
        self.fs.create(&Path::new(DIR).join(name)).unwrap().append(content).unwrap();
    }

    fn flip(&self, name: &str, at: usize) {
        let mut content = self.content(name);
        content[at] ^= 1;
        self.set(name, &content);
    }

    fn remove(&self, name: &str) {
        self.fs.remove(&Path::new(DIR).join(name)).unwrap();
    }

    fn fork(&self) -> World {
        self.on(self.fs.fork())
    }

    fn on(&self, fs: MemFs) -> World {
        World { env: Env { fs: Arc::new(fs.clone()), clock: self.env.clock.clone() }, fs }
    }

    /// The table with the most entries of the tree of this number.
    fn table_of(&self, tree: u32) -> (String, crate::table::inspect::TableInspection) {
        let tables = self.names(".table").into_iter().map(|name| {
            let path = Path::new(DIR).join(&name);
            (name, crate::table::inspect::TableInspection::open(&self.env, &path, 1).unwrap())
        });
        let tables = tables.filter(|(_, table)| table.tree == tree);
        tables.max_by_key(|(_, table)| table.meta.entries).unwrap()
    }
}

/// How many rows of `expected` are missing or different in `found`, and how many are new.
fn differences(expected: &All, found: &All) -> (usize, usize) {
    let (mut missing, mut new) = (0, 0);
    for (name, rows) in expected {
        let there = found.get(name).cloned().unwrap_or_default();
        missing += rows.iter().filter(|(key, value)| there.get(*key) != Some(value)).count();
        new += there.keys().filter(|key| !rows.contains_key(*key)).count();
    }
    (missing, new)
}

#[test]
fn an_undamaged_database_stays_as_it_is() {
    let (world, content) = World::new();
    let (found, report) = world.repair();
    assert!(report.is_clean(), "{report}");
    assert_eq!(found, content);
    assert_eq!(report.rows() as usize, content.values().map(Rows::len).sum::<usize>());
    assert!(report.trees.iter().any(|tree| tree.blobs == 3 && tree.log_ops > 100));
}

#[test]
fn without_current_or_manifest_the_tables_tell() {
    let (sound, content) = World::new();
    let world = sound.fork();
    world.remove("CURRENT");
    let (found, report) = world.repair();
    assert_eq!(found, content, "the manifest is still there");
    assert!(!report.is_clean() && report.catalog == CatalogStanding::Sound);

    let world = sound.fork();
    world.set("CURRENT", b"garbage");
    assert_eq!(world.repair().0, content);

    let manifest = sound.names("MANIFEST").pop().unwrap();
    let world = sound.fork();
    world.remove(&manifest);
    let (found, report) = world.repair();
    assert_eq!(report.catalog, CatalogStanding::Lost);
    let names: Vec<&str> = found.keys().map(|name| &name[..]).collect();
    assert_eq!(names, ["recovered-1", "recovered-2"]);
    assert_eq!(found["recovered-1"], content["users"]);
    assert_eq!(found["recovered-2"], content["items"]);
}

/// Transactions that do not fit their memory, each of a row in both trees: what becomes of them is
/// told without the manifest, too.
#[test]
fn without_a_manifest_undecided_transactions_stay_undecided() {
    let (world, mut content) = World::new();
    let db = open(&world.env, Path::new(DIR));
    let trees = [db.tree("users").unwrap(), db.tree("items").unwrap()];
    let prepare = |xid: &str| {
        let options = TransactionOptions { memory_bytes: 1, ..TransactionOptions::default() };
        let mut transaction = db.begin(options).unwrap();
        for tree in &trees {
            for part in ["a", "b"] {
                let key = format!("{xid}/{part}");
                transaction.put(tree, key.as_bytes(), xid.as_bytes()).unwrap();
            }
        }
        assert!(transaction.spilled_bytes() > 0);
        transaction.prepare(xid.as_bytes()).unwrap()
    };
    let add = |content: &mut All, xid: &str| {
        for rows in content.values_mut() {
            rows.insert(format!("{xid}/a").into_bytes(), xid.into());
            rows.insert(format!("{xid}/b").into_bytes(), xid.into());
        }
    };
    prepare("committed").commit(WriteOptions::SYNC).unwrap();
    prepare("rolled back").rollback(WriteOptions::SYNC).unwrap();
    prepare("undecided");
    prepare("again").rollback(WriteOptions::SYNC).unwrap();
    prepare("again");
    add(&mut content, "committed");
    drop(trees);
    db.close().unwrap();

    for lose_manifest in [false, true] {
        if lose_manifest {
            world.remove(&world.names("MANIFEST").pop().unwrap());
        }
        let (found, report) = world.repair();
        assert_eq!(report.is_clean(), !lose_manifest, "{report}");
        let found: Vec<Rows> = found.into_values().collect();
        let name = |index: usize| ["users", "items"][index];
        let order = if lose_manifest { [0, 1] } else { [1, 0] };
        for (index, rows) in order.into_iter().zip(found) {
            assert!(rows == content[name(index)], "{index}: {report}");
        }
        let db = open(&world.env, Path::new("/repaired"));
        let prepared = db.prepared().unwrap();
        let names: Vec<&[u8]> = prepared.iter().map(|prepared| prepared.xid()).collect();
        assert_eq!(names, [&b"again"[..], b"undecided"], "{report}");
        let mut decided = content.clone();
        for prepared in prepared {
            add(&mut decided, std::str::from_utf8(prepared.xid()).unwrap());
            prepared.commit(WriteOptions::SYNC).unwrap();
        }
        for (index, (_, rows)) in order.into_iter().zip(all(&db)) {
            assert!(rows == decided[name(index)], "{index}: {report}");
        }
    }
}

/// A closed database with a transaction prepared in tables, and the content once it is committed.
fn with_prepared() -> (World, All, All) {
    let (world, content) = World::new();
    let db = open(&world.env, Path::new(DIR));
    let tree = db.tree("users").unwrap();
    let options = TransactionOptions { memory_bytes: 1, ..TransactionOptions::default() };
    let mut transaction = db.begin(options).unwrap();
    let mut committed = content.clone();
    for key in [&b"prepared/1"[..], b"prepared/2"] {
        transaction.put(&tree, key, b"value").unwrap();
        committed.get_mut("users").unwrap().insert(key.to_vec(), b"value".to_vec());
    }
    transaction.prepare(b"order 17").unwrap();
    drop(tree);
    db.close().unwrap();
    (world, content, committed)
}

/// The record of a commit may be in the part of the manifest that is lost.
#[test]
fn a_commit_that_the_manifest_has_lost_counts() {
    let (world, content, committed) = with_prepared();
    let (found, report) = world.repair();
    assert!(found == content && report.is_clean(), "{report}");
    let db = open(&world.env, Path::new(DIR));
    db.prepared().unwrap().pop().unwrap().commit(WriteOptions::SYNC).unwrap();
    drop(db);
    assert!(world.names(".prepared").is_empty() && world.names(".run").is_empty());
    let manifest = world.names("MANIFEST").pop().unwrap();
    let path = Path::new(DIR).join(&manifest);
    let (_, id) = parse_file_name(&manifest).unwrap();
    let lines = ManifestDump::open(&world.fs, &path, id).unwrap();
    let mut places = lines.filter_map(|line| match line.unwrap() {
        ManifestLine::Edit { offset, edit, .. } if !edit.decided.is_empty() => Some(offset),
        _ => None,
    });
    world.flip(&manifest, places.next().unwrap() as usize + 30);
    let db = || open(&world.env, Path::new("/repaired"));
    let (found, report) = world.repair();
    assert_eq!(report.catalog, CatalogStanding::Partial, "{report}");
    assert!(found == committed && db().prepared().unwrap().is_empty(), "{report}");
    assert!(report.to_string().contains("`order 17`"), "{report}");
}

#[test]
fn a_damaged_mark_leaves_out_what_it_names() {
    let (world, content, _) = with_prepared();
    world.remove(&world.names("MANIFEST").pop().unwrap());
    let mark = world.names(".prepared").pop().unwrap();
    world.flip(&mark, 40);
    let (found, report) = world.repair();
    assert!(found["recovered-1"] == content["users"], "{report}");
    assert!(report.files.iter().any(|file| file.name == mark), "{report}");
    assert!(open(&world.env, Path::new("/repaired")).prepared().unwrap().is_empty());
}

/// As a program left it that wrote no marks and called what is prepared tables.
#[test]
fn what_was_prepared_before_there_were_marks_gets_one() {
    let (world, content, committed) = with_prepared();
    for name in world.names(".prepared") {
        world.remove(&name);
    }
    for name in world.names(".run") {
        let (from, to) = (Path::new(DIR).join(&name), name.replace(".run", ".table"));
        world.fs.rename(&from, &Path::new(DIR).join(to)).unwrap();
    }
    assert!(world.repair().0 == content);
    let needed = || {
        let files = crate::inspect::directory_in(&world.env, Path::new(DIR)).unwrap().files;
        files.iter().all(|file| file.standing == crate::inspect::Standing::Needed)
    };
    assert!(needed());
    let db = open(&world.env, Path::new(DIR));
    assert_eq!((world.names(".prepared").len(), world.names(".run").len()), (1, 1));
    assert!(needed());
    db.prepared().unwrap().pop().unwrap().commit(WriteOptions::SYNC).unwrap();
    assert!(all(&db) == committed && needed());
}

/// Tables that were written for a load, or a transaction, that did not come to its commit.
#[test]
fn without_a_manifest_what_was_not_committed_stays_away() {
    let (world, content) = World::new();
    let db = open(&world.env, Path::new(DIR));
    let tree = db.tree("users").unwrap();
    let mut ingest = tree.ingest().unwrap();
    for number in 0..3_000u32 {
        let words = (0..12u64).map(|word| (u64::from(number) * 12 + word).wrapping_pow(5));
        let noise = words.flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        ingest.add(format!("load/{number:05}").as_bytes(), &noise.collect::<Vec<_>>()).unwrap();
    }
    let names: Vec<String> = world.names(".run");
    assert!(names.len() > 1, "tables of the load are there: {names:?}");
    let killed = world.fork();
    killed.remove(&killed.names("MANIFEST").pop().unwrap());
    let (found, report) = killed.repair();
    assert!(found["recovered-1"] == content["users"], "{report}");
    assert_eq!(ingest.finish().unwrap(), 3_000);
    drop((tree, db));
    world.remove(&world.names("MANIFEST").pop().unwrap());
    let (found, report) = world.repair();
    assert_eq!(found["recovered-1"].len(), content["users"].len() + 3_000, "{report}");
}

/// A tree may have nothing but what a transaction has prepared.
#[test]
fn without_a_manifest_prepared_writes_find_their_tree() {
    for memory_bytes in [1, 1 << 20] {
        let (world, _) = World::new();
        let db = open(&world.env, Path::new(DIR));
        let tree = db.tree_or_create("new").unwrap();
        let options = TransactionOptions { memory_bytes, ..TransactionOptions::default() };
        let mut transaction = db.begin(options).unwrap();
        transaction.put(&tree, b"a", b"1").unwrap();
        transaction.put(&tree, b"b", b"2").unwrap();
        transaction.prepare(b"x").unwrap();
        drop(tree);
        db.close().unwrap();
        world.remove(&world.names("MANIFEST").pop().unwrap());
        let (found, report) = world.repair();
        assert_eq!(found["recovered-3"].len(), 0, "{report}");
        let db = open(&world.env, Path::new("/repaired"));
        for prepared in db.prepared().unwrap() {
            prepared.commit(WriteOptions::SYNC).unwrap();
        }
        assert_eq!(all(&db)["recovered-3"].len(), 2, "{report}");
    }
}

#[test]
fn a_damaged_manifest_is_used_as_far_as_it_goes() {
    let (sound, content) = World::new();
    let manifest = sound.names("MANIFEST").pop().unwrap();
    let bytes = sound.content(&manifest).len();
    for at in [3, 40, bytes / 4, bytes / 2, bytes - 100] {
        let world = sound.fork();
        world.flip(&manifest, at);
        let (found, report) = world.repair();
        assert_ne!(report.catalog, CatalogStanding::Sound, "{at}");
        assert!(report.files.iter().any(|file| file.name == manifest), "{report}");
        let named = |(name, rows): (String, Rows)| match &name[..] {
            "recovered-1" => ("users".to_owned(), rows),
            "recovered-2" => ("items".to_owned(), rows),
            _ => (name, rows),
        };
        let found = found.into_iter().map(named).collect();
        assert_eq!(differences(&content, &found).0, 0, "at {at}: {report}");
    }
}

#[test]
fn a_damaged_table_loses_what_the_report_names() {
    let (sound, content) = World::new();
    let (name, table) = sound.table_of(1);
    let world = sound.fork();
    let block = &table.blocks[table.blocks.len() / 2];
    world.flip(&name, block.offset as usize + 3);
    let (found, report) = world.repair();
    let [file] = &report.files[..] else { panic!("{report}") };
    assert_eq!((&file.name, file.tree.as_deref()), (&name, Some("users")));
    let lost = &file.lost[0];
    assert_eq!((lost.offset, lost.entries), (block.offset, Some(block.entries)));
    assert_eq!(found["items"], content["items"]);
    let (missing, _) = differences(&content, &found);
    assert!(missing > 0 && missing <= block.entries as usize, "{missing}: {report}");
    for (key, value) in &content["users"] {
        let key_text = String::from_utf8(key.clone()).unwrap();
        let inside = *lost.after.as_ref().unwrap() <= key_text
            && key_text <= *lost.through.as_ref().unwrap();
        assert!(inside || found["users"].get(key) == Some(value), "{key_text}: {report}");
    }

    // Footer and index can be done without.
    let bytes = sound.content(&name).len();
    for at in [bytes - 30, bytes - 64 - table.properties_bytes as usize - 10] {
        let world = sound.fork();
        world.flip(&name, at);
        let (found, report) = world.repair();
        assert_eq!(found, content, "{report}");
        assert_eq!(report.files.len(), 1);
    }

    // What comes before a cut is kept.
    let world = sound.fork();
    world.set(&name, &sound.content(&name)[..bytes / 2]);
    let (found, report) = world.repair();
    assert!(!report.is_clean() && report.lost_bytes() > 0);
    let missing = differences(&content, &found).0;
    assert!(missing > 0 && missing < table.meta.entries as usize * 3 / 4, "{missing}");

    let world = sound.fork();
    world.remove(&name);
    let (found, report) = world.repair();
    assert!(report.files[0].what.contains("missing"));
    assert!(differences(&content, &found).0 <= table.meta.entries as usize);
    assert_eq!(found["items"], content["items"]);
}

/// The log gives what a damaged table has lost, but no row whose delete left no trace in tables.
#[test]
fn a_damaged_table_brings_no_row_back_that_went_with_its_delete() {
    let fs = MemFs::new();
    let world =
        World { env: Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) }, fs };
    let db = open(&world.env, Path::new(DIR));
    let (rows, other) = (db.tree_or_create("rows").unwrap(), db.tree_or_create("other").unwrap());
    // It keeps the log.
    other.put(b"k", b"v").unwrap();
    for number in 0..1000 {
        rows.put(&key(number), b"value").unwrap();
    }
    rows.delete(&key(500)).unwrap();
    rows.flush().unwrap();
    db.sync().unwrap();
    let content = all(&db);
    drop((rows, other));
    db.close().unwrap();
    let (name, table) = world.table_of(1);
    assert_eq!((table.meta.entries, table.meta.deletes), (999, 0));
    for block in &table.blocks {
        let damaged = world.fork();
        damaged.flip(&name, block.offset as usize + 3);
        let (found, report) = damaged.repair();
        assert!(report.lost_bytes() > 0);
        assert_eq!(found, content);
    }
}

/// Nor a row whose range delete did, nor does that delete take rows with it that came later.
#[test]
fn a_damaged_table_brings_no_row_back_that_went_with_its_range_delete() {
    let fs = MemFs::new();
    let world =
        World { env: Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) }, fs };
    let db = open(&world.env, Path::new(DIR));
    let config = TreeConfig { block_bytes: 1024, ..TreeConfig::default() };
    let rows = db.create_tree("rows", config).unwrap();
    let other = db.tree_or_create("other").unwrap();
    // It keeps the log.
    other.put(b"k", b"v").unwrap();
    for number in 0..1000 {
        rows.put(&key(number), b"value").unwrap();
    }
    rows.delete_range(&key(300), &key(700)).unwrap();
    for number in (0..1000).step_by(2) {
        rows.put(&key(number), b"again").unwrap();
    }
    let mut transaction = db.begin(TransactionOptions::default()).unwrap();
    transaction.delete_range(&rows, &key(100), &key(200)).unwrap();
    transaction.put(&rows, &key(151), b"of one number").unwrap();
    transaction.prepare(b"one").unwrap().commit(WriteOptions::SYNC).unwrap();
    // What came before it gets number 0, what comes after it keeps its own: so the holes span all.
    // It takes two merges, as a range delete keeps the numbers of what it meets.
    let snapshot = db.snapshot();
    for number in [0, 999] {
        rows.put(&key(number), b"newest").unwrap();
        rows.compact().unwrap();
    }
    db.sync().unwrap();
    let content = all(&db);
    drop((rows, other, snapshot));
    db.close().unwrap();
    let (name, table) = world.table_of(1);
    assert_eq!((table.meta.deletes, table.meta.range_deletes), (0, 0));
    assert!(table.blocks.len() > 5);
    for block in &table.blocks {
        let damaged = world.fork();
        damaged.flip(&name, block.offset as usize + 3);
        let (found, report) = damaged.repair();
        assert!(report.lost_bytes() > 0);
        assert_eq!(differences(&content, &found), (0, 0), "{report}");
    }
}

#[test]
fn a_damaged_log_loses_the_damaged_records() {
    let (sound, content) = World::new();
    let wals = sound.names(".wal");
    let name = wals.iter().max_by_key(|name| sound.content(name).len()).unwrap();
    let bytes = sound.content(name).len();
    let world = sound.fork();
    world.flip(name, bytes - 400);
    let (found, report) = world.repair();
    assert!(
        report.files.iter().any(|file| file.name == *name && !file.lost.is_empty()),
        "{report}"
    );
    let (missing, _) = differences(&content, &found);
    assert!((1..=2).contains(&missing), "one record of one row: {missing}, {report}");

    let world = sound.fork();
    world.remove(name);
    let (found, report) = world.repair();
    assert!(!report.is_clean());
    assert!(differences(&content, &found).0 <= 100 + 100 + 25, "{report}");
}

#[test]
fn a_damaged_blob_loses_its_row() {
    let (sound, content) = World::new();
    for name in sound.names(".blob") {
        let bytes = sound.content(&name).len();
        for damage in 0..3 {
            let world = sound.fork();
            match damage {
                0 => world.flip(&name, bytes / 2),
                1 => world.set(&name, &sound.content(&name)[..bytes - 7]),
                _ => world.remove(&name),
            }
            let (found, report) = world.repair();
            let [file] = &report.files[..] else { panic!("{report}") };
            assert_eq!((&file.name, file.tree.as_deref()), (&name, Some("users")));
            assert!(file.lost[0].after.as_ref().unwrap().starts_with("large/"));
            assert_eq!(differences(&content, &found), (1, 0));
        }
    }
}

#[test]
fn any_single_flip_is_survived() {
    let (sound, content) = World::new();
    let total: usize = content.values().map(Rows::len).sum();
    let mut state = 7u64;
    for (name, bytes) in sound.files() {
        for _ in 0..4 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (state >> 33) as usize % bytes.len().max(1);
            let world = sound.fork();
            world.flip(&name, at);
            let (found, report) = world.repair();
            let missing = differences(&content, &found).0;
            let is_manifest = name.starts_with("MANIFEST");
            assert!(is_manifest || missing * 4 < total, "{name} at {at}: {missing}, {report}");
        }
    }
}

#[test]
fn what_the_device_cannot_read_is_damage() {
    let (sound, content) = World::new();
    let kinds = ["CURRENT", "MANIFEST", ".wal"];
    let is_of = |name: &str| kinds.iter().any(|kind| name.contains(kind));
    for (name, bytes) in sound.files().into_iter().filter(|(name, _)| is_of(name)) {
        let bytes = bytes.len() as u64;
        let world = sound.fork();
        // The last bytes, whose page is most of the file.
        world.fs.set_unreadable(&Path::new(DIR).join(&name), bytes - 1..bytes);
        let (found, report) = world.repair();
        assert!(report.files.iter().any(|file| file.name == name), "{name}: {report}");
        // Without a manifest trees have other names.
        let rows = |all: &All| all.values().map(Rows::len).sum::<usize>();
        let missing = rows(&content).saturating_sub(rows(&found));
        assert!(missing <= 225, "what is in tables is there: {name}, {missing}, {report}");
    }
}

#[test]
fn a_repair_that_fails_leaves_nothing_and_one_that_is_killed_nothing_that_opens() {
    let (sound, content) = World::new();
    let (to, beside) = (Path::new("/to"), Path::new("/to.unfinished"));
    let run = |world: &World| world.try_repair(DIR, "/to");
    let before = sound.fork();
    run(&before).unwrap();
    let changes = before.fs.changes();
    for nth in 1.. {
        let world = sound.fork();
        world.fs.fail(Call::Append, nth, Fault::Full, false);
        let Err(error) = run(&world) else { break };
        assert!(matches!(error, Error::DiskFull { .. }) && nth < 1000, "{nth}: {error}");
        assert!(!world.fs.exists(to).unwrap() && !world.fs.exists(beside).unwrap(), "{nth}");
    }
    let mut seen = 0;
    for nth in (0..changes).step_by(3) {
        let world = sound.fork();
        world.fs.crash_after(nth);
        run(&world).unwrap_err();
        let world = world.on(world.fs.crash_clone(nth, CrashMode::Torn));
        if world.fs.exists(beside).unwrap() {
            seen += 1;
            let options = OpenOptions { env: world.env.clone(), ..OpenOptions::default() };
            let error = Db::open_in(beside, Config::default(), options).unwrap_err();
            assert!(error.to_string().contains("was not completed"), "{error}");
        }
        if !world.fs.exists(to).unwrap() {
            run(&world).unwrap();
        }
        assert_eq!(all(&open(&world.env, to)), content, "{nth}");
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let (world, _) = World::new();
    let run = |from: &str, to: &str| world.try_repair(from, to);
    assert!(matches!(run("/none", "/to"), Err(Error::NoDatabase(_))));
    assert!(matches!(run(DIR, DIR), Err(Error::InvalidArgument(_))));
    let db = open(&world.env, Path::new(DIR));
    assert!(matches!(run(DIR, "/to"), Err(Error::Locked { .. })));
    drop(db);
    assert!(run(DIR, "/to").is_ok());
}
