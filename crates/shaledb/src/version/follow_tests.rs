//! A manifest is read as it grows, and the one that takes its place.

use super::super::edit::Edit;
use super::super::manifest::Manifest;
use super::*;
use crate::base::config::TreeConfig;
use crate::fs::mem::MemFs;
use crate::fs::read_all;
use std::sync::Arc;

fn create(id: u32) -> Edit {
    let trees_created = vec![(id, format!("tree{id}"), TreeConfig::default())];
    Edit { trees_created, ..Edit::default() }
}

fn disk() -> (MemFs, Arc<dyn Fs>, &'static Path) {
    let fs = MemFs::new();
    let dir = Path::new("/db");
    fs.create_dir_all(dir).unwrap();
    (fs.clone(), Arc::new(fs), dir)
}

#[test]
fn edits_are_seen_when_they_are_complete() {
    let (fs, shared, dir) = disk();
    let mut manifest = Manifest::create(&shared, dir, 1, &create(1)).unwrap();
    let mut tail = ManifestTail::open(&fs, dir).unwrap();
    assert!(!tail.advance(&fs, dir).unwrap());
    let before = manifest.bytes() as usize;
    manifest.append(&create(2)).unwrap();
    let content = read_all(&fs, manifest.path()).unwrap();
    for bytes in before..content.len() {
        let mut file = fs.create(manifest.path()).unwrap();
        file.append(&content[..bytes]).unwrap();
        assert!(!tail.advance(&fs, dir).unwrap(), "at {bytes}");
    }
    fs.create(manifest.path()).unwrap().append(&content).unwrap();
    assert!(tail.advance(&fs, dir).unwrap());
    assert_eq!(tail.catalog(), manifest.catalog());
}

#[test]
fn the_manifest_that_takes_its_place_is_followed_and_no_older_one() {
    let (fs, shared, dir) = disk();
    let mut manifest = Manifest::create(&shared, dir, 1, &create(1)).unwrap();
    let mut tail = ManifestTail::open(&fs, dir).unwrap();
    manifest.append(&create(2)).unwrap();
    manifest.rewrite(7).unwrap();
    assert!(tail.advance(&fs, dir).unwrap());
    assert_eq!(tail.catalog(), manifest.catalog());
    manifest.append(&create(3)).unwrap();
    assert!(tail.advance(&fs, dir).unwrap());
    assert_eq!(tail.catalog().trees.len(), 3);
    let _other = Manifest::create(&shared, dir, 2, &create(1)).unwrap();
    let error = tail.advance(&fs, dir).unwrap_err();
    assert!(error.to_string().contains("another database"), "{error}");
}

#[test]
fn damage_before_a_later_edit_is_found() {
    let (fs, shared, dir) = disk();
    let mut manifest = Manifest::create(&shared, dir, 1, &create(1)).unwrap();
    let mut tail = ManifestTail::open(&fs, dir).unwrap();
    let at = manifest.bytes();
    manifest.append(&create(2)).unwrap();
    fs.corrupt(manifest.path(), at + 10, 1);
    assert!(!tail.advance(&fs, dir).unwrap(), "it may be under way");
    manifest.append(&create(3)).unwrap();
    let Error::Corruption { offset, .. } = tail.advance(&fs, dir).unwrap_err() else { panic!() };
    assert_eq!(offset, at);
}
