//! What others see of a build that has not ended: a checkpoint, a reader, a follower, who looks at
//! the directory, a repair.

use super::cases::{gone, named, rows_of};
use super::writer::{CHANGES, INDEX, Writer, check, fill};
use shaledb::fs::mem::{CrashMode, MemClock, MemFs};
use shaledb::inspect::{DirectoryInspection, Standing, directory_in};
use shaledb::repair::{CatalogStanding, RepairOptions, RepairReport, repair};
use shaledb::{Db, Env, OnlineBuild, OpenOptions, fs::Fs};
use shaledb_sim::settings::small;
use shaledb_sim::world::{PATH, open_db};
use std::path::Path;
use std::sync::Arc;

/// A build whose tree has rows and changes in tables, and changes in the log.
fn under_way() -> (MemFs, Db, Writer, OnlineBuild) {
    let (fs, db, mut writer, mut build) = named(&[(1, 10), (2, 20)]);
    fill(&mut build, &mut |_| ()).unwrap();
    writer.writes(100).unwrap();
    build.catch_up().unwrap();
    writer.writes(100).unwrap();
    db.flush().unwrap();
    writer.writes(20).unwrap();
    writer.end_move().unwrap();
    db.sync().unwrap();
    (fs, db, writer, build)
}

fn env(fs: &MemFs) -> Env {
    Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) }
}

fn inspect(fs: &MemFs, path: &str) -> DirectoryInspection {
    directory_in(&env(fs), Path::new(path)).unwrap()
}

/// The names of trees whose build has not ended.
fn unfinished(found: &DirectoryInspection) -> Vec<&str> {
    let trees = found.trees.iter().filter(|tree| tree.unfinished);
    trees.map(|tree| tree.name.as_str()).collect()
}

#[test]
fn a_checkpoint_and_a_reader_have_neither_tree() {
    let (fs, db, writer, build) = under_way();
    db.checkpoint("/copy").unwrap();
    let copied = inspect(&fs, "/copy");
    assert!(copied.trees.iter().all(|tree| tree.name == "source"), "{copied:?}");
    assert!(copied.files.iter().all(|file| file.standing == Standing::Needed), "{copied:?}");
    let copy = open_db(&fs, "/copy", &small()).unwrap();
    gone(&copy);
    assert_eq!(rows_of(&copy), writer.rows.len());
    let env = Env { fs: Arc::new(fs.crash_clone(0, CrashMode::Kept)), ..Env::memory() };
    let options = OpenOptions { env, read_only: true, ..OpenOptions::default() };
    gone(&Db::open_in(PATH, small(), options).unwrap());
    build.finish().unwrap();
    assert!(check(&db, "the build goes on"));
}

#[test]
fn a_follower_has_the_tree_when_its_build_has_ended() {
    let (fs, db, mut writer, build) = under_way();
    let follower = Db::open_follower_in(PATH, small(), env(&fs)).unwrap();
    gone(&follower);
    assert_eq!(follower.tree_names(), ["source"]);
    writer.writes(30).unwrap();
    writer.end_move().unwrap();
    db.sync().unwrap();
    follower.refresh().unwrap();
    gone(&follower);
    // What the last round has written is in the log only, and was before the build's end.
    build.finish().unwrap();
    follower.refresh().unwrap();
    assert!(check(&follower, "after the end"));
    let fresh = Db::open_follower_in(PATH, small(), env(&fs)).unwrap();
    assert!(check(&fresh, "a follower that has come later"));
    drop(db);
}

#[test]
fn who_looks_at_the_directory_is_told_what_is_unfinished() {
    let (fs, db, _writer, build) = under_way();
    let found = inspect(&fs, PATH);
    assert_eq!(unfinished(&found), [INDEX, CHANGES]);
    for name in [INDEX, CHANGES] {
        let files = found.files.iter().filter(|file| file.tree.as_deref() == Some(name));
        let standings: Vec<Standing> = files.map(|file| file.standing).collect();
        assert!(!standings.is_empty(), "{name} has tables");
        assert!(standings.iter().all(|standing| *standing == Standing::Orphan), "{name}");
    }
    // What an open would remove may be missing.
    let crashed = fs.crash_clone(0, CrashMode::Kept);
    let table = found.files.iter().find(|file| file.tree.as_deref() == Some(INDEX)).unwrap();
    crashed.remove(&Path::new(PATH).join(&table.name)).unwrap();
    assert!(inspect(&crashed, PATH).files.iter().all(|file| file.damage.is_none()));
    gone(&open_db(&crashed, PATH, &small()).unwrap());
    build.finish().unwrap();
    assert!(unfinished(&inspect(&fs, PATH)).is_empty());
    drop(db);
}

fn repaired(fs: &MemFs) -> (Db, RepairReport) {
    let options = RepairOptions { env: env(fs), config: small() };
    let report = repair(Path::new(PATH), Path::new("/repaired"), &options, &mut |_| ()).unwrap();
    (open_db(fs, "/repaired", &small()).unwrap(), report)
}

/// Damages the manifest at a byte that is so far from its end.
fn damage_manifest(fs: &MemFs, from_end: usize) {
    let manifest = inspect(fs, PATH).files.into_iter();
    let name = manifest.map(|file| file.name).find(|name| name.starts_with("MANIFEST")).unwrap();
    let path = Path::new(PATH).join(name);
    let mut bytes = shaledb::fs::read_all(fs, &path).unwrap();
    let at = bytes.len() - from_end;
    bytes[at] ^= 1;
    let mut file = fs.create(&path).unwrap();
    file.append(&bytes).unwrap();
    file.sync().unwrap();
}

#[test]
fn a_repair_leaves_an_unfinished_tree_out() {
    let (fs, _db, writer, build) = under_way();
    let crashed = fs.crash_clone(0, CrashMode::Kept);
    let (db, report) = repaired(&crashed);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.unfinished, [INDEX, CHANGES]);
    assert!(report.to_string().contains("build it again"), "{report}");
    gone(&db);
    assert_eq!(rows_of(&db), writer.rows.len());
    drop(build);
}

/// With the edit that ended the build, or the one before, a part of the manifest is lost.
#[test]
fn a_repair_says_if_a_tree_may_be_unfinished() {
    let (fs, db, _writer, build) = under_way();
    build.finish().unwrap();
    db.sync().unwrap();
    let whole = fs.crash_clone(0, CrashMode::Kept);
    let (ended, report) = repaired(&whole);
    assert!(report.unfinished.is_empty() && check(&ended, "repaired"), "{report}");
    // The last edits end the build, and drop the changes.
    let mut told = 0;
    for from_end in (1..160).step_by(3) {
        let disk = fs.crash_clone(0, CrashMode::Kept);
        damage_manifest(&disk, from_end);
        let (_, report) = repaired(&disk);
        if report.catalog != CatalogStanding::Partial {
            continue;
        }
        let doubted = |name| report.files.iter().any(|file| file.tree.as_deref() == Some(name));
        let saved = |name| report.trees.iter().any(|tree| tree.name == name);
        if doubted(INDEX) {
            assert!(saved(INDEX) && report.to_string().contains("build it again"), "{report}");
            told += 1;
        }
        assert!(!report.unfinished.iter().any(|tree| tree == INDEX), "{report}");
    }
    assert!(told > 0, "the edit that ended the build was lost at times");
}
