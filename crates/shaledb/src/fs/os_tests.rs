//! Tests of the real file system.

use super::*;

#[test]
fn files_read_back_what_was_appended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let fs = OsFs;
    let mut file = fs.create(&path).unwrap();
    file.append(b"hello ").unwrap();
    file.append(b"world").unwrap();
    file.flush_hint();
    file.sync().unwrap();
    file.syncer().unwrap().sync().unwrap();
    assert_eq!(file.len(), 11);
    let reader = fs.open(&path).unwrap();
    reader.prefetch(0, 11);
    let mut buf = [0; 5];
    reader.read_at(6, &mut buf).unwrap();
    assert_eq!(&buf, b"world");
    file.truncate(5).unwrap();
    file.append(b"!").unwrap();
    drop(file);
    assert_eq!(super::super::read_all(&fs, &path).unwrap(), b"hello!");
    let mut file = fs.append(&path).unwrap();
    file.append(b"?").unwrap();
    assert_eq!(file.len(), 7);
    assert!(fs.allocated_bytes(&path).unwrap().is_multiple_of(512));
    assert!(fs.free_bytes(dir.path()).unwrap() > 0);
}

#[test]
fn a_lock_is_given_up_while_a_child_process_is_being_started() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let lock = OsLock::new(&path).unwrap();
    assert!(matches!(OsFs.lock(&path), Err(Error::Locked { .. })));
    // What a fork leaves in the child until it executes its program.
    let of_the_child = lock.file.try_clone().unwrap();
    drop(lock);
    OsFs.lock(&path).unwrap();
    drop(of_the_child);
}

#[test]
fn shares_of_a_lock_need_no_right_to_write_and_keep_others_from_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    assert!(matches!(OsFs.lock_shared(&path), Err(Error::Io { .. })), "it makes no file");
    drop(OsFs.lock(&path).unwrap());
    let mut rights = fs::metadata(&path).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&path, rights).unwrap();
    let (one, other) = (OsFs.lock_shared(&path).unwrap(), OsFs.lock_shared(&path).unwrap());
    drop(one);
    let refused = OsFs.lock(&path);
    assert!(matches!(refused, Err(Error::Locked { .. } | Error::Io { .. })), "not root: no right");
    drop(other);
    OsFs.lock_shared(&path).unwrap();
}

#[test]
fn a_read_past_the_end_is_damage_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    OsFs.create(&path).unwrap().append(b"12345678").unwrap();
    let error = OsFs.open(&path).unwrap().read_at(4, &mut [0; 8]).unwrap_err();
    match error {
        Error::Corruption { path: at, offset, what } => {
            assert_eq!((at, offset), (path, 8));
            assert!(what.contains("ends early"), "{what}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn names_are_listed_renamed_linked_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    let fs = OsFs;
    fs.create(&a).unwrap().append(b"x").unwrap();
    fs.link(&a, &b).unwrap();
    fs.rename(&b, &c).unwrap();
    fs.create_dir_all(&dir.path().join("d/e")).unwrap();
    fs.sync_dir(dir.path()).unwrap();
    let names: Vec<(String, u64, bool)> =
        fs.list(dir.path()).unwrap().into_iter().map(|e| (e.name, e.bytes, e.is_dir)).collect();
    assert_eq!(names, [("a".into(), 1, false), ("c".into(), 1, false), ("d".into(), 0, true)]);
    fs.remove(&a).unwrap();
    assert!(!fs.exists(&a).unwrap() && fs.exists(&c).unwrap());
    fs.remove_dir(&dir.path().join("d/e")).unwrap();
    let error = fs.open(&a).err().unwrap().to_string();
    assert!(error.contains("could not open") && error.contains("/a"), "{error}");
}

#[test]
fn a_lock_refuses_a_second_holder_until_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let lock = OsFs.lock(&path).unwrap();
    assert!(matches!(OsFs.lock(&path), Err(Error::Locked { .. })));
    // Another process is refused too.
    let status = std::process::Command::new("flock").arg("-n").arg(&path).arg("true").status();
    if let Ok(status) = status {
        assert!(!status.success());
    }
    drop(lock);
    OsFs.lock(&path).unwrap();
}

#[test]
fn the_clock_goes_forward() {
    let clock = OsClock::new();
    let (now, cpu) = (clock.now_nanos(), clock.thread_cpu_nanos());
    clock.sleep_nanos(1_000_000);
    assert!(clock.now_nanos() >= now + 1_000_000);
    assert!(clock.thread_cpu_nanos() >= cpu);
}

#[test]
fn the_memory_of_the_machine_is_found() {
    assert_eq!(total_memory("MemTotal:       24689764 kB\nMemFree: 1 kB\n"), Some(25282318336));
    assert_eq!(total_memory("nothing"), None);
    assert!(memory_bytes() >= 1 << 26);
}
