//! Manifests survive crashes at every moment, and damage is told from a torn end.

use super::super::edit::TreeEdit;
use super::*;
use crate::fs::mem::{Call, CrashMode, Fault, MemFs};

const DIR: &str = "/db";

fn disk() -> (MemFs, Arc<dyn Fs>) {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    (fs.clone(), Arc::new(fs))
}

fn dir() -> &'static Path {
    Path::new(DIR)
}

fn file(id: FileId) -> PathBuf {
    dir().join(file_name(id))
}

fn create_tree() -> Edit {
    let trees_created = vec![(1, "tree".to_owned(), TreeConfig::default())];
    Edit { trees_created, ..Edit::default() }
}

/// Adds a table at level 1 with keys of its own.
fn add(id: FileId) -> Edit {
    let key = id.to_be_bytes();
    let meta = TableMeta {
        id,
        smallest: key.to_vec(),
        largest: [&key[..], b"z"].concat(),
        min_seq: id,
        max_seq: id,
        ..TableMeta::default()
    };
    let added = vec![(1, meta)];
    let trees = vec![TreeEdit { tree: 1, added, ..TreeEdit::default() }];
    Edit { trees, last_seq: Some(id), ..Edit::default() }
}

/// A manifest of a tree with the tables 10 and up, and where each edit's record starts.
fn manifest(fs: &Arc<dyn Fs>, tables: u64) -> (Manifest, Vec<u64>) {
    let mut manifest = Manifest::create(fs, dir(), 2, &create_tree()).unwrap();
    let mut starts = vec![FILE_HEADER_BYTES as u64];
    for id in 10..10 + tables {
        starts.push(manifest.bytes());
        manifest.append(&add(id)).unwrap();
    }
    (manifest, starts)
}

fn table_ids(recovered: &Recovered) -> Vec<FileId> {
    recovered.trees[&1].levels[1].iter().map(|meta| meta.id).collect()
}

fn damage_at(fs: &MemFs) -> (PathBuf, u64, String) {
    match recover(fs, dir()) {
        Err(Error::Corruption { path, offset, what }) => (path, offset, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_appended_is_recovered() {
    let (fs, shared) = disk();
    assert!(matches!(recover(&fs, dir()), Err(Error::NoDatabase(_))));
    let (mut manifest, _) = manifest(&shared, 3);
    let log = LogStart { file: 30, seq: 12 };
    let edit = Edit { log: Some(log), next_file: Some(40), ..Edit::default() };
    manifest.append(&edit).unwrap();
    let recovered = recover(&fs, dir()).unwrap();
    assert_eq!(table_ids(&recovered), [10, 11, 12]);
    assert_eq!(recovered.log, log);
    assert_eq!((recovered.next_file, recovered.next_tree, recovered.last_seq), (40, 2, 12));
    assert_eq!((recovered.manifest_id, recovered.edits, recovered.torn_bytes), (2, 5, 0));
    assert_eq!(recovered.snapshot, manifest.catalog().snapshot());
    // A new manifest from the snapshot says the same, and comes into force.
    let next = Manifest::create(&shared, dir(), 41, &recovered.snapshot).unwrap();
    assert_eq!(next.id(), 41);
    let again = recover(&fs, dir()).unwrap();
    assert_eq!((again.manifest_id, again.next_file, again.edits), (41, 42, 1));
    assert_eq!(again.trees, recovered.trees);
}

#[test]
fn the_current_file_is_checked() {
    let (fs, shared) = disk();
    manifest(&shared, 0);
    let path = dir().join(CURRENT);
    let content = fs.content(&path).unwrap();
    let text = String::from_utf8(content.clone()).unwrap();
    assert_eq!(text, "shale 1 MANIFEST-000002 1328aaa5\n");
    for at in 0..content.len() {
        fs.corrupt(&path, at as u64, 1);
        assert_eq!(damage_at(&fs).0, path);
        fs.corrupt(&path, at as u64, 1);
    }
    fs.remove(&file(2)).unwrap();
    assert!(damage_at(&fs).2.contains("MANIFEST-000002"));
}

#[test]
fn a_torn_last_edit_was_never_made() {
    let (fs, shared) = disk();
    let (_, starts) = manifest(&shared, 3);
    let content = fs.content(&file(2)).unwrap();
    let last = *starts.last().unwrap() as usize;
    for cut in last..content.len() {
        for fill in [None, Some(0), Some(0x5a)] {
            let mut torn = content[..cut].to_vec();
            if let Some(fill) = fill {
                torn.resize(content.len(), fill);
            }
            let mut out = fs.create(&file(2)).unwrap();
            out.append(&torn).unwrap();
            let recovered = recover(&fs, dir()).unwrap();
            assert_eq!(table_ids(&recovered), [10, 11], "{cut}");
            assert_eq!(recovered.torn_bytes, (torn.len() - last) as u64);
        }
    }
}

#[test]
fn damage_before_a_sound_edit_is_an_error() {
    let (fs, shared) = disk();
    let (manifest, starts) = manifest(&shared, 3);
    for at in 0..manifest.bytes() {
        fs.corrupt(&file(2), at, 0x10);
        let start = starts.iter().rev().find(|start| **start <= at).copied().unwrap_or(0);
        if start == *starts.last().unwrap() {
            assert_eq!(table_ids(&recover(&fs, dir()).unwrap()), [10, 11]);
        } else {
            let (path, offset, _) = damage_at(&fs);
            assert_eq!((path, offset), (file(2), start), "{at}");
        }
        fs.corrupt(&file(2), at, 0x10);
    }
    // A manifest without any edit was never installed.
    let content = fs.content(&file(2)).unwrap();
    for cut in [0, 10, 16, 20] {
        fs.create(&file(2)).unwrap().append(&content[..cut]).unwrap();
        damage_at(&fs);
    }
}

#[test]
fn contradictions_on_disk_name_the_record() {
    let (fs, shared) = disk();
    let (mut manifest, _) = manifest(&shared, 1);
    // Around the check of `append`.
    let offset = manifest.bytes();
    manifest.log(&add(10)).unwrap();
    let (path, found, what) = damage_at(&fs);
    assert_eq!((path, found), (file(2), offset));
    assert!(what.contains("in use"), "{what}");

    let (fs, shared) = disk();
    let (mut manifest, _) = super::tests::manifest(&shared, 2);
    let offset = manifest.bytes();
    let mut overlapping = add(12);
    overlapping.trees[0].added[0].1.smallest = 10u64.to_be_bytes().to_vec();
    manifest.append(&overlapping).unwrap();
    manifest.append(&add(20)).unwrap();
    let (_, found, what) = damage_at(&fs);
    assert_eq!(found, offset);
    assert!(what.contains("overlapping"), "{what}");

    let (fs, shared) = disk();
    let (mut manifest, _) = super::tests::manifest(&shared, 2);
    let offset = manifest.bytes();
    manifest.number += 1;
    manifest.append(&add(20)).unwrap();
    let (_, found, what) = damage_at(&fs);
    assert_eq!(found, offset);
    assert!(what.contains("edit 3 was expected"), "{what}");
}

#[test]
fn refused_edits_and_full_disks_leave_it_as_it_was() {
    let (fs, shared) = disk();
    let (mut manifest, _) = manifest(&shared, 2);
    let before = manifest.catalog().clone();
    assert!(matches!(manifest.append(&add(10)), Err(Error::InvalidArgument(_))));
    fs.fail(Call::Append, 1, Fault::ShortFull, true);
    assert!(manifest.append(&add(12)).unwrap_err().is_disk_full());
    assert_eq!(*manifest.catalog(), before);
    assert_eq!(table_ids(&recover(&fs, dir()).unwrap()), [10, 11]);
    manifest.append(&add(12)).unwrap();
    assert_eq!(table_ids(&recover(&fs, dir()).unwrap()), [10, 11, 12]);
    fs.fail(Call::Sync, 1, Fault::Io, true);
    assert!(matches!(manifest.append(&add(13)), Err(Error::Io { .. })));
    assert!(matches!(manifest.append(&add(14)), Err(Error::Poisoned(_))));
    assert!(matches!(manifest.rewrite(50), Err(Error::Poisoned(_))));
}

#[test]
fn it_is_rewritten_when_it_has_grown() {
    let (fs, shared) = disk();
    let (mut manifest, _) = manifest(&shared, 3);
    assert!(!manifest.rewrite_due(u64::MAX));
    let name = "n".repeat(1000);
    let mut tree = 2;
    while !manifest.rewrite_due(u64::MAX) {
        let trees_created = vec![(tree, name.clone(), TreeConfig::default())];
        manifest.append(&Edit { trees_created, ..Edit::default() }).unwrap();
        manifest.append(&Edit { trees_dropped: vec![tree], ..Edit::default() }).unwrap();
        tree += 1;
    }
    assert!(manifest.bytes() > REWRITE_BYTES_MIN);
    let catalog = manifest.catalog().clone();
    manifest.rewrite(60).unwrap();
    assert!(manifest.bytes() < 10_000 && !manifest.rewrite_due(u64::MAX));
    assert!(!fs.exists(&file(2)).unwrap());
    manifest.append(&add(70)).unwrap();
    let recovered = recover(&fs, dir()).unwrap();
    assert_eq!(table_ids(&recovered), [10, 11, 12, 70]);
    assert_eq!(recovered.next_tree, catalog.next_tree);
}

#[test]
fn a_failed_rewrite_keeps_the_old_one_or_poisons() {
    for call in [Call::Create, Call::Append, Call::Sync, Call::SyncDir, Call::Rename] {
        for nth in 1..=2 {
            let (fs, shared) = disk();
            let (mut manifest, _) = manifest(&shared, 2);
            fs.fail(call, nth, Fault::Io, true);
            let rewritten = manifest.rewrite(60);
            fs.clear_faults();
            let appended = manifest.append(&add(12));
            let recovered = recover(&fs.crash_clone(1, CrashMode::Kept), dir()).unwrap();
            let expected: &[FileId] = if appended.is_ok() { &[10, 11, 12] } else { &[10, 11] };
            assert_eq!(table_ids(&recovered), expected, "{call:?} {nth}");
            if appended.is_err() {
                assert!(rewritten.is_err());
                assert!(matches!(appended, Err(Error::Poisoned(_))));
            }
        }
    }
}

#[test]
fn crashes_lose_only_what_was_not_acknowledged() {
    for changes in 0..60 {
        let (fs, shared) = disk();
        fs.crash_after(changes);
        let mut acknowledged = None;
        let mut run = || -> Result<()> {
            let mut manifest = Manifest::create(&shared, dir(), 2, &create_tree())?;
            acknowledged = Some(9);
            for id in 10..20 {
                manifest.append(&add(id))?;
                acknowledged = Some(id);
                if id == 15 {
                    manifest.rewrite(100)?;
                }
            }
            Ok(())
        };
        let _ = run();
        for (seed, mode) in (0..8).flat_map(|seed| {
            [CrashMode::Lost, CrashMode::Kept, CrashMode::Torn].map(|mode| (seed, mode))
        }) {
            let after = fs.crash_clone(seed, mode);
            match (acknowledged, recover(&after, dir())) {
                (None, Err(Error::NoDatabase(_))) => {}
                (None, Ok(recovered)) => assert!(table_ids(&recovered).is_empty()),
                (Some(last), Ok(recovered)) => {
                    let found = table_ids(&recovered);
                    let expected: Vec<FileId> = (10..=last).collect();
                    let one_more: Vec<FileId> = (10..=last + 1).collect();
                    assert!(found == expected || found == one_more, "{changes} {mode:?}");
                }
                (_, Err(error)) => panic!("{changes} {mode:?} {seed}: {error}"),
            }
        }
    }
}

#[test]
fn a_dump_shows_edits_and_damage() {
    let (fs, shared) = disk();
    let (_, starts) = manifest(&shared, 2);
    fs.corrupt(&file(2), starts[1] + 10, 1);
    let lines: Vec<ManifestLine> =
        ManifestDump::open(&fs, &file(2), 2).unwrap().map(|line| line.unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert!(matches!(&lines[0], ManifestLine::Edit { number: 0, offset: 16, .. }));
    let damage = ManifestLine::Damage {
        offset: starts[1],
        bytes: starts[2] - starts[1],
        what: "the record's checksum does not match".to_owned(),
    };
    assert_eq!(lines[1], damage);
    assert!(matches!(&lines[2], ManifestLine::Edit { number: 2, edit, .. } if *edit == add(11)));
}
