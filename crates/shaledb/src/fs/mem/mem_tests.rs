//! Tests of the simulated disk.

use super::clock::LOOK_NANOS;
use super::*;
use crate::base::error::Error;
use crate::fs::{Clock, Fs, read_all, replace};
use std::path::Path;

fn dir(fs: &MemFs) -> &'static Path {
    let dir = Path::new("/db");
    fs.create_dir_all(dir).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    dir
}

fn names(fs: &MemFs, dir: &str) -> Vec<String> {
    fs.list(Path::new(dir)).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn files_read_back_what_was_appended() {
    let fs = MemFs::new();
    let path = dir(&fs).join("a");
    let mut file = fs.create(&path).unwrap();
    file.append(b"hello ").unwrap();
    file.append(b"world").unwrap();
    file.truncate(5).unwrap();
    file.append(b"!").unwrap();
    assert_eq!(read_all(&fs, &path).unwrap(), b"hello!");
    match fs.open(&path).unwrap().read_at(4, &mut [0; 8]).unwrap_err() {
        Error::Corruption { offset, .. } => assert_eq!(offset, 6),
        other => panic!("{other}"),
    }
    assert_eq!(fs.append(&path).unwrap().len(), 6);
    assert!(fs.corrupt(&path, 0, 1) && !fs.corrupt(&path, 6, 1));
    assert_eq!(fs.content(&path).unwrap(), b"iello!");
    assert_eq!(fs.used_bytes(), 6);
    fs.remove(&path).unwrap();
    assert_eq!(fs.used_bytes(), 0);
    assert!(fs.open(&path).is_err());
    assert!(fs.create(Path::new("/nowhere/a")).is_err());
}

#[test]
fn relative_names_work() {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("a/b")).unwrap();
    fs.create(Path::new("a/b/c")).unwrap();
    fs.create(Path::new("d")).unwrap();
    assert_eq!(names(&fs, ""), ["a", "d"]);
    assert!(fs.remove_dir(Path::new("a/b")).is_err());
    fs.remove(Path::new("a/b/c")).unwrap();
    fs.remove_dir(Path::new("a/b")).unwrap();
    assert!(!fs.exists(Path::new("a/b")).unwrap());
}

#[test]
fn what_was_not_synced_is_lost_or_kept() {
    let fs = MemFs::new();
    let path = dir(&fs).join("a");
    let mut file = fs.create(&path).unwrap();
    file.append(b"one").unwrap();
    assert!(!fs.crash_clone(1, CrashMode::Lost).exists(&path).unwrap());
    file.sync().unwrap();
    assert!(!fs.crash_clone(1, CrashMode::Lost).exists(&path).unwrap());
    fs.sync_dir(Path::new("/db")).unwrap();
    file.append(b"two").unwrap();
    assert_eq!(fs.crash_clone(1, CrashMode::Lost).content(&path).unwrap(), b"one");
    assert_eq!(fs.crash_clone(1, CrashMode::Kept).content(&path).unwrap(), b"onetwo");
    let mut torn: Vec<Vec<u8>> =
        (0..200).map(|s| fs.crash_clone(s, CrashMode::Torn).content(&path).unwrap()).collect();
    assert!(torn.iter().all(|content| content.starts_with(b"one")));
    torn.sort();
    torn.dedup();
    assert!(torn.len() > 5, "{torn:?}");
    assert!(torn.contains(&b"one".to_vec()) && torn.contains(&b"onetwo".to_vec()));
    assert!(torn.contains(&b"one\0\0\0".to_vec()));
}

#[test]
fn sectors_are_torn_one_by_one_and_synced_bytes_stay() {
    let fs = MemFs::new();
    let path = dir(&fs).join("a");
    let mut file = fs.create(&path).unwrap();
    fs.sync_dir(Path::new("/db")).unwrap();
    file.append(&[1; 700]).unwrap();
    file.sync().unwrap();
    file.append(&[2; 5000]).unwrap();
    let mut mixed = 0;
    for seed in 0..100 {
        let after = fs.crash_clone(seed, CrashMode::Torn).content(&path).unwrap();
        assert_eq!(after[..700], [1; 700]);
        let sectors: Vec<&[u8]> = after.chunks(512).skip(2).collect();
        mixed += usize::from(
            sectors.iter().any(|s| s.iter().all(|&b| b == 2))
                && sectors.iter().any(|s| s.iter().all(|&b| b == 0)),
        );
    }
    assert!(mixed > 20, "{mixed}");
}

#[test]
fn a_truncation_not_synced_may_come_undone() {
    let fs = MemFs::new();
    let path = dir(&fs).join("a");
    let mut file = fs.create(&path).unwrap();
    fs.sync_dir(Path::new("/db")).unwrap();
    file.append(b"abcdef").unwrap();
    file.sync().unwrap();
    file.truncate(2).unwrap();
    file.append(b"XY").unwrap();
    assert_eq!(fs.crash_clone(0, CrashMode::Lost).content(&path).unwrap(), b"abcdef");
    for seed in 0..50 {
        let after = fs.crash_clone(seed, CrashMode::Torn).content(&path).unwrap();
        assert!(after.starts_with(b"ab") && (4..=6).contains(&after.len()));
    }
    file.sync().unwrap();
    assert_eq!(fs.crash_clone(0, CrashMode::Lost).content(&path).unwrap(), b"abXY");
}

#[test]
fn replacing_a_file_is_atomic() {
    let fs = MemFs::new();
    let path = dir(&fs).join("CURRENT");
    replace(&fs, &path, b"old").unwrap();
    for changes in 0..6 {
        let fs = fs.crash_clone(0, CrashMode::Kept);
        fs.crash_after(changes);
        let done = replace(&fs, &path, b"newer").is_ok();
        for seed in 0..50 {
            let after = fs.crash_clone(seed, CrashMode::Torn).content(&path).unwrap();
            assert!(after == b"newer" || (!done && after == b"old"), "{changes} {after:?}");
        }
    }
}

#[test]
fn a_kept_change_of_a_name_brings_the_earlier_ones() {
    let fs = MemFs::new();
    let at = dir(&fs);
    let write = |name: &str, text: &[u8]| {
        let mut file = fs.create(&at.join(name)).unwrap();
        file.append(text).unwrap();
        file.sync().unwrap();
    };
    write("a", b"1");
    fs.rename(&at.join("a"), &at.join("b")).unwrap();
    write("a", b"2");
    fs.link(&at.join("b"), &at.join("c")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let after = fs.crash_clone(seed, CrashMode::Torn);
        let listed = names(&after, "/db").join("");
        if after.content(&at.join("a")) == Some(b"2".to_vec()) {
            assert_eq!(after.content(&at.join("b")).unwrap(), b"1");
        }
        seen.insert(listed);
    }
    let seen: Vec<String> = seen.into_iter().collect();
    assert_eq!(seen, ["", "a", "ab", "abc", "ac", "b", "bc", "c"]);
}

#[test]
fn faults_strike_the_call_they_were_set_for() {
    let fs = MemFs::new();
    let path = dir(&fs).join("a");
    let mut file = fs.create(&path).unwrap();
    fs.sync_dir(Path::new("/db")).unwrap();
    fs.fail(Call::Append, 2, Fault::ShortFull, true);
    file.append(b"1234").unwrap();
    assert!(file.append(b"5678").unwrap_err().is_disk_full());
    assert_eq!(fs.content(&path).unwrap(), b"123456");
    file.truncate(4).unwrap();
    file.append(b"5678").unwrap();
    assert_eq!(fs.faults_struck(), 1);
    fs.fail(Call::Read, 1, Fault::Io, false);
    assert!(read_all(&fs, &path).is_err() && read_all(&fs, &path).is_err());
    fs.clear_faults();
    assert_eq!(read_all(&fs, &path).unwrap(), b"12345678");
    // After a failed sync, a later one that says yes has synced nothing.
    fs.fail(Call::Sync, 1, Fault::Io, true);
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert_eq!(fs.crash_clone(0, CrashMode::Lost).content(&path).unwrap(), b"");
}

#[test]
fn a_full_disk_takes_what_fits_and_again_after_a_removal() {
    let fs = MemFs::new();
    let at = dir(&fs);
    fs.set_capacity(Some(10));
    fs.create(&at.join("a")).unwrap().append(b"12345678").unwrap();
    let mut file = fs.create(&at.join("b")).unwrap();
    assert!(file.append(b"12345").unwrap_err().is_disk_full());
    assert_eq!((fs.used_bytes(), fs.free_bytes(at).unwrap()), (10, 0));
    file.truncate(0).unwrap();
    fs.remove(&at.join("a")).unwrap();
    file.append(b"12345").unwrap();
    assert_eq!(fs.used_bytes(), 5);
}

#[test]
fn locks_are_released_when_dropped_and_by_a_crash() {
    let fs = MemFs::new();
    let path = dir(&fs).join("LOCK");
    let lock = fs.lock(&path).unwrap();
    assert!(matches!(fs.lock(&path), Err(Error::Locked { .. })));
    fs.crash_clone(0, CrashMode::Kept).lock(&path).unwrap();
    drop(lock);
    fs.lock(&path).unwrap();
}

#[test]
fn images_are_the_disk_before_each_change() {
    let fs = MemFs::new();
    let path = dir(&fs).join("a");
    fs.keep_images(Some(1));
    let mut file = fs.create(&path).unwrap();
    fs.sync_dir(Path::new("/db")).unwrap();
    file.append(b"one").unwrap();
    file.append(b"two").unwrap();
    file.sync().unwrap();
    file.append(b"three").unwrap();
    let images = fs.take_images();
    let lost: Vec<Option<Vec<u8>>> =
        images.iter().map(|i| i.fs.crash_clone(0, CrashMode::Lost).content(&path)).collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(lost, [None, None, text(""), text(""), text(""), text("onetwo")]);
    let kept = images[5].fs.crash_clone(0, CrashMode::Kept).content(&path);
    assert_eq!((images[5].changes, kept), (7, text("onetwo")));
    assert!(fs.take_images().is_empty());
}

#[test]
fn equal_calls_leave_equal_traces() {
    let run = |text: &[u8]| {
        let fs = MemFs::new();
        fs.keep_trace();
        let path = dir(&fs).join("a");
        fs.create(&path).unwrap().append(text).unwrap();
        (fs.trace_hash(), fs.trace(), fs.counts(), fs.changes())
    };
    assert_eq!(run(b"x"), run(b"x"));
    assert_ne!(run(b"x").0, run(b"y").0);
    let (_, trace, counts, changes) = run(b"x");
    assert_eq!(trace[3], "4 append /db/a at 0, 1 bytes");
    assert_eq!((counts.of(Call::Append), counts.total(), changes), (1, 4, 4));
}

#[test]
fn the_clock_moves_by_itself_and_by_sleeping() {
    let clock = MemClock::new();
    let now = clock.now_nanos();
    clock.sleep_nanos(5_000);
    assert_eq!(clock.now_nanos(), now + 5_000 + LOOK_NANOS);
}

#[test]
fn a_directory_is_the_same_under_another_name() {
    let fs = MemFs::new();
    let (old, new) = (Path::new("/db/old"), Path::new("/db/new"));
    fs.create_dir_all(&dir(&fs).join("old")).unwrap();
    fs.create(&old.join("synced")).unwrap().sync().unwrap();
    fs.sync_dir(old).unwrap();
    fs.create(&old.join("late")).unwrap().sync().unwrap();
    fs.create_dir_all(new).unwrap();
    fs.create(&new.join("file")).unwrap();
    assert!(fs.rename(old, new).is_err(), "it is not empty");
    assert!(fs.rename(old, &new.join("file")).is_err());
    assert!(fs.rename(old, &old.join("inside")).is_err());
    fs.remove(&new.join("file")).unwrap();
    fs.rename(old, new).unwrap();
    assert_eq!(names(&fs, "/db/new"), ["late", "synced"]);
    assert!(!fs.exists(old).unwrap());
    // Neither name is durable yet, nor is the late file.
    assert_eq!(names(&fs.crash_clone(0, CrashMode::Lost), "/db"), [""; 0]);
    // A new directory of the old name is another one.
    fs.create_dir_all(old).unwrap();
    fs.sync_dir(Path::new("/db")).unwrap();
    let after = fs.crash_clone(0, CrashMode::Lost);
    assert_eq!(names(&after, "/db/new"), ["synced"]);
    assert_eq!(names(&after, "/db/old"), [""; 0]);
    fs.sync_dir(new).unwrap();
    assert_eq!(names(&fs.crash_clone(0, CrashMode::Lost), "/db/new"), ["late", "synced"]);
}

#[test]
fn torn_renames_of_a_directory_leave_it_under_one_name() {
    let fs = MemFs::new();
    let (old, new) = (Path::new("/db/old"), Path::new("/db/new"));
    fs.create_dir_all(&dir(&fs).join("old")).unwrap();
    fs.create(&old.join("file")).unwrap().sync().unwrap();
    fs.sync_dir(old).unwrap();
    fs.sync_dir(Path::new("/db")).unwrap();
    fs.rename(old, new).unwrap();
    let mut seen = [0; 2];
    for seed in 0..100 {
        let after = fs.crash_clone(seed, CrashMode::Torn);
        let found = names(&after, "/db");
        assert!(found == ["new"] || found == ["old"], "{found:?}");
        seen[usize::from(found == ["new"])] += 1;
        assert_eq!(names(&after, &format!("/db/{}", found[0])), ["file"]);
    }
    assert!(seen[0] > 0 && seen[1] > 0);
}

#[test]
fn shares_of_a_lock_keep_others_from_the_whole() {
    let fs = MemFs::new();
    let path = dir(&fs).join("LOCK");
    assert!(matches!(fs.lock_shared(&path), Err(Error::Io { .. })), "it makes no file");
    drop(fs.lock(&path).unwrap());
    let (one, other) = (fs.lock_shared(&path).unwrap(), fs.lock_shared(&path).unwrap());
    assert!(matches!(fs.lock(&path), Err(Error::Locked { .. })));
    drop(one);
    assert!(matches!(fs.lock(&path), Err(Error::Locked { .. })));
    drop(other);
    let whole = fs.lock(&path).unwrap();
    assert!(matches!(fs.lock_shared(&path), Err(Error::Locked { .. })));
    drop(whole);
    fs.lock_shared(&path).unwrap();
}

#[test]
fn a_read_only_directory_refuses_every_change() {
    let fs = MemFs::new();
    let dir = dir(&fs);
    let path = dir.join("a");
    fs.create(&path).unwrap().append(b"1").unwrap();
    drop(fs.lock(&dir.join("LOCK")).unwrap());
    fs.set_read_only(dir);
    assert!(fs.create(&path).is_err());
    assert!(fs.append(&path).is_err());
    assert!(fs.rename(&path, &dir.join("b")).is_err());
    assert!(fs.remove(&path).is_err());
    assert!(fs.lock(&dir.join("LOCK")).is_err());
    fs.lock_shared(&dir.join("LOCK")).unwrap();
    assert_eq!(fs.open(&path).unwrap().len().unwrap(), 1);
}
