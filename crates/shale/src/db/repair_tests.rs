use super::*;
use crate::base::config::{Codec, Codecs, TreeConfig};
use crate::db::{Batch, Tree, WriteOptions};
use crate::fs::Fs;
use crate::fs::mem::{MemClock, MemFs};
use std::path::PathBuf;
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
            codecs: Codecs { last: Codec::Zstd(3), middle: Codec::Lz4, small: Codec::None },
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
        let fs = self.fs.fork();
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
fn what_cannot_be_done_is_refused() {
    let (world, _) = World::new();
    let options = RepairOptions { env: world.env.clone(), ..RepairOptions::default() };
    let run = |from: &str, to: &str| repair(Path::new(from), Path::new(to), &options, &mut |_| ());
    assert!(matches!(run("/none", "/to"), Err(Error::NoDatabase(_))));
    assert!(matches!(run(DIR, DIR), Err(Error::InvalidArgument(_))));
    let db = open(&world.env, Path::new(DIR));
    assert!(matches!(run(DIR, "/to"), Err(Error::Locked { .. })));
    drop(db);
    assert!(run(DIR, "/to").is_ok());
}
