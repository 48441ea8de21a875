use super::*;
use std::fs::OpenOptions;
use std::path::PathBuf;

fn file(dir: &Path, read: bool) -> (PathBuf, LogFile) {
    let path = dir.join("log");
    let mut options = OpenOptions::new();
    let file = options.read(read).write(true).create(true).truncate(true).open(&path).unwrap();
    let log = LogFile::new(&path, file, 0);
    (path, log)
}

/// Bytes that differ from place to place, in pieces of all sizes.
fn pieces(count: usize) -> impl Iterator<Item = Vec<u8>> {
    let mut at = 0u64;
    (0..count).map(move |index| {
        let length = match index % 50 {
            7 => 9_000,
            13 => 0,
            other => 1 + other * 17,
        };
        let length = if index % 4_000 == 3_999 { 3 << 20 } else { length };
        at += 1;
        let pattern: Vec<u8> = (0..251).map(|byte| (at * 31 + byte * 7) as u8).collect();
        pattern.iter().copied().cycle().take(length).collect()
    })
}

/// Does all that is to be done for the log.
fn prepare_all(shared: &Shared) {
    while shared.prepare() {}
    assert!(shared.clear());
}

/// Appends them, and has windows prepared if `prepare` says so of the piece of this number. Answers
/// with what the file must be, and how many pieces began in a window.
fn append(log: &mut LogFile, count: usize, prepare: impl Fn(usize) -> bool) -> (Vec<u8>, usize) {
    let (mut expected, mut copied) = (Vec::new(), 0);
    for (index, piece) in pieces(count).enumerate() {
        copied += usize::from(log.window.is_some());
        log.append(&piece).unwrap();
        expected.extend_from_slice(&piece);
        assert_eq!(log.len(), expected.len() as u64);
        if prepare(index) && log.shared.takes_wish() {
            prepare_all(&log.shared);
        }
    }
    (expected, copied)
}

/// What the file has, as another process sees it, must begin with `expected` and go on with zeros.
fn check(path: &Path, expected: &[u8]) {
    let found = std::fs::read(path).unwrap();
    assert!(found.len() >= expected.len(), "{} of {} bytes", found.len(), expected.len());
    assert!(found[..expected.len()] == *expected, "a byte differs");
    assert!(found[expected.len()..].iter().all(|byte| *byte == 0), "zeros follow");
}

/// Of the folders that tests may use, one on a file system that has windows.
fn folder() -> tempfile::TempDir {
    let mut dirs = [std::env::temp_dir(), "/dev/shm".into()].into_iter().map(|parent| {
        let dir = tempfile::tempdir_in(parent).unwrap();
        let (_, log) = file(dir.path(), true);
        is_supported(&log.shared.file).then_some(dir)
    });
    dirs.find_map(|dir| dir).expect("a file system with windows")
}

#[test]
fn file_systems_that_write_a_page_anew_each_time_have_no_windows() {
    // With a full disk a copy to a page that was written before would end the process.
    let (btrfs, overlay) = (0x9123_683e, 0x794c_7630);
    assert!(!FILE_SYSTEMS.contains(&btrfs) && !FILE_SYSTEMS.contains(&overlay));
}

#[test]
fn appends_go_through_windows_and_read_as_appended() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    let (expected, copied) = append(&mut log, 12_000, |_| true);
    assert!(copied > 4_000, "only {copied} pieces were copied");
    check(&path, &expected);
    let preparer = log.preparer().unwrap();
    log.sync().unwrap();
    drop(log);
    assert!(preparer.takes_wish() && !preparer.clear(), "its writer has gone");
    drop(preparer);
    assert_eq!(std::fs::read(&path).unwrap().len(), expected.len(), "the file was cut");
    check(&path, &expected);
}

#[test]
fn appends_do_without_windows_that_come_late_or_never() {
    let dir = folder();
    for (late, some) in [(usize::MAX, false), (2_003, true), (13, true)] {
        let (path, mut log) = file(dir.path(), true);
        let (expected, copied) = append(&mut log, 6_000, |index| index % late == late - 1);
        assert_eq!(copied > 0, some, "every {late}: {copied} copied");
        check(&path, &expected);
        drop(log);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), expected.len() as u64);
    }
}

#[test]
fn a_file_without_windows_is_appended_to_by_calls() {
    let dir = folder();
    // It cannot be mapped, since it cannot be read.
    let (path, mut log) = file(dir.path(), false);
    let (expected, copied) = append(&mut log, 6_000, |_| true);
    assert_eq!(copied, 0);
    assert!(log.shared.state.lock().refused);
    drop(log);
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn a_log_that_is_synced_often_has_no_windows() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    let mut expected = Vec::new();
    for piece in pieces(700) {
        if piece.len() < 10_000 {
            log.append(&piece).unwrap();
            expected.extend_from_slice(&piece);
            log.syncer().unwrap().sync().unwrap();
        }
        assert!(!log.shared.takes_wish());
    }
    assert_eq!(std::fs::read(&path).unwrap(), expected, "not a byte longer");
}

#[test]
fn windows_are_short_beside_what_is_written_from_sync_to_sync() {
    let mut pace = Pace::default();
    assert_eq!(pace.window(1 << 16, 0), None, "too early to tell");
    assert_eq!(pace.window(1 << 21, 0), Some(64 << 10));
    assert_eq!(pace.window((8 << 20) + 1, 0), Some(256 << 10));
    assert_eq!(pace.window(1 << 30, 0), Some(2 << 20), "no more is needed ahead");
    assert_eq!(pace.window((1 << 30) + 1, 1), Some(2 << 20), "as much as before the sync");
    assert_eq!(pace.window((1 << 30) + (5 << 20), 3), Some(64 << 10), "two and a half each");
    assert_eq!(pace.window((1 << 30) + (6 << 20), 13), None, "a hundred thousand each");
    assert_eq!(pace.window((1 << 30) + (8 << 20), 13), Some(64 << 10), "no sync for a while");
}

#[test]
fn a_cut_takes_back_what_is_in_a_window() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    let (mut expected, _) = append(&mut log, 4_900, |_| true);
    assert!(log.window.is_some());
    let cut = expected.len() - 100_000;
    log.truncate(cut as u64).unwrap();
    expected.truncate(cut);
    assert_eq!(std::fs::read(&path).unwrap(), expected, "the file is cut at once");
    // What was mapped for the longer file is not used, nor what comes of an old wish.
    prepare_all(&log.shared);
    for piece in pieces(2_900) {
        log.append(&piece).unwrap();
        expected.extend_from_slice(&piece);
        if log.shared.takes_wish() {
            prepare_all(&log.shared);
        }
    }
    assert!(log.window.is_some());
    check(&path, &expected);
}

/// Appends by calls until a window is wished for again.
fn append_until_wished(log: &mut LogFile) -> Option<(u64, u64)> {
    loop {
        log.append(&[7; 1_000]).unwrap();
        if let Some(wanted) = log.shared.state.lock().wanted {
            return Some(wanted);
        }
    }
}

#[test]
fn a_window_from_before_a_cut_is_not_taken_for_the_same_one_wished_again() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    log.append(&vec![1; 20 << 20]).unwrap();
    let wished = append_until_wished(&mut log);
    // The other thread has mapped it when an append fails, and is slow to say so.
    let wish = log.shared.wish().unwrap();
    let (at, length) = wish.window;
    let mapped = log.shared.map(at, length);
    let bytes = at - 20_000;
    log.truncate(bytes).unwrap();
    assert_eq!(append_until_wished(&mut log), wished, "the same place and length");
    log.shared.hand_over(&wish, mapped);
    // The file has no such pages: a copy to them would end this process.
    for _ in 0..200 {
        log.append(&[2; 1_000]).unwrap();
    }
    let after = (log.len() - bytes) as usize;
    let found = std::fs::read(&path).unwrap();
    assert_eq!(found.len(), bytes as usize + after);
    assert!(found[bytes as usize..].iter().all(|byte| matches!(byte, 2 | 7)));
}

#[test]
fn a_full_disk_is_asked_for_space_now_and_then() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    log.append(&vec![1; 2 << 20]).unwrap();
    let mut asked = 0;
    for _ in 0..1_000 {
        log.append(&[7; 1_000]).unwrap();
        if log.shared.takes_wish() {
            let wish = log.shared.wish().unwrap();
            let full = Err(std::io::ErrorKind::StorageFull.into());
            assert!(!log.shared.hand_over(&wish, full), "not at once again");
            asked += 1;
        }
    }
    assert!((5..=20).contains(&asked), "{asked} times for a megabyte");
    // Once there is space there are windows again.
    for _ in 0..200 {
        log.append(&[7; 1_000]).unwrap();
        if log.shared.takes_wish() {
            prepare_all(&log.shared);
        }
    }
    assert!(log.window.is_some());
    assert!(std::fs::read(&path).unwrap().len() as u64 > log.len());
}

#[test]
fn other_threads_prepare_while_appends_go_on() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    let (ahead, behind) = (log.preparer().unwrap(), log.preparer().unwrap());
    let has_gone = Arc::new(AtomicBool::new(false));
    let ends = has_gone.clone();
    let ahead = std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            ahead.prepare();
        }
    });
    let behind = std::thread::spawn(move || while behind.clear() {});
    let (expected, _) = append(&mut log, 12_000, |_| false);
    check(&path, &expected);
    drop(log);
    behind.join().unwrap();
    has_gone.store(true, Ordering::Relaxed);
    ahead.join().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn a_file_cut_by_someone_else_is_never_made_shorter_than_appended() {
    let dir = folder();
    let (path, log) = file(dir.path(), true);
    let preparer = log.preparer().unwrap();
    std::fs::write(&path, b"of a later owner").unwrap();
    drop((log, preparer));
    assert_eq!(std::fs::read(&path).unwrap(), b"of a later owner", "nothing was made longer");
}

#[test]
fn a_log_that_follows_a_fast_one_has_a_window_from_its_start() {
    let dir = folder();
    let (path, before) = file(dir.path(), true);
    assert_eq!(before.pace(), 0);
    let options = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut log = LogFile::new(&path, options(), 80 << 20);
    assert!(log.shared.takes_wish() && log.shared.prepare());
    let (expected, copied) = append(&mut log, 3_000, |_| true);
    assert_eq!((copied, log.pace()), (2_999, 80 << 20), "all but the first found a window");
    assert_eq!(log.window.as_ref().unwrap().pages.len() as u64, WINDOW_BYTES_MAX);
    check(&path, &expected);
    // Nobody has prepared this one: it is as any other.
    let mut log = LogFile::new(&path, options(), 80 << 20);
    log.append(b"other").unwrap();
    assert!(log.window.is_none());
}

#[test]
fn several_windows_are_ready_ahead_of_the_writer() {
    let dir = folder();
    let (path, _) = file(dir.path(), true);
    let begin = |pace| {
        let options = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let log = LogFile::new(&path, options, pace);
        let mut made = 1;
        while log.shared.prepare() {
            made += 1;
        }
        assert_eq!(made, log.shared.state.lock().ready.len());
        (log, made)
    };
    for (pace, ready) in [(4 << 20, 3), (64 << 20, 3), (100 << 20, 5), (1 << 30, 6)] {
        assert_eq!(begin(pace).1, ready, "{pace} bytes from one sync to the next");
    }
    let (mut log, made) = begin(80 << 20);
    assert_eq!(made, 4);
    // The thread ahead does not come for as long as these last.
    let mut expected = Vec::new();
    let room = made * WINDOW_BYTES_MAX as usize - (1 << 20);
    for piece in pieces(usize::MAX) {
        if expected.len() + piece.len() > room {
            break;
        }
        log.append(&piece).unwrap();
        assert!(log.window.is_some(), "a call at {}", expected.len());
        expected.extend_from_slice(&piece);
    }
    assert!(log.shared.takes_wish(), "it was called at the first");
    check(&path, &expected);
    assert!(log.shared.prepare(), "more than one is missing");
    log.truncate(1_000).unwrap();
    assert!(!log.shared.prepare() && log.shared.clear(), "after a cut there is nothing to do");
    assert_eq!(std::fs::read(&path).unwrap(), expected[..1_000]);
}

#[test]
fn what_may_be_late_is_not_done_ahead() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    let mut expected = Vec::new();
    for piece in pieces(20_000) {
        log.append(&piece).unwrap();
        expected.extend_from_slice(&piece);
        while log.shared.prepare() {}
    }
    {
        let state = log.shared.state.lock();
        assert!(state.left.len() > 5, "{} mappings wait to be given back", state.left.len());
        assert_eq!((state.hinted, state.dropped), (0, 0), "the device was not asked to write");
    }
    let preparer = log.preparer().unwrap();
    drop(log);
    while preparer.prepare() {}
    assert!(std::fs::metadata(&path).unwrap().len() > expected.len() as u64, "not cut yet");
    assert!(!preparer.clear());
    assert_eq!(std::fs::read(&path).unwrap(), expected, "cut, though it is still held");
}

#[test]
fn windows_that_the_writer_has_passed_are_not_made() {
    let dir = folder();
    let (path, mut log) = file(dir.path(), true);
    log.append(&vec![1; 80 << 20]).unwrap();
    let (at, length) = append_until_wished(&mut log).unwrap();
    // The thread ahead maps the first one while the writer goes on by calls.
    let wish = log.shared.wish().unwrap();
    let mapped = log.shared.map(at, length);
    log.append(&vec![2; 10 << 20]).unwrap();
    log.append(&[3; 1_000]).unwrap();
    assert!(log.shared.hand_over(&wish, mapped), "another is wished for");
    let next = log.shared.wish().unwrap().window;
    assert_eq!(next, ((log.len() - 1_000) / ALIGN_BYTES * ALIGN_BYTES, length));
    prepare_all(&log.shared);
    log.append(&[4; 1_000]).unwrap();
    assert!(log.window.is_some());
    let found = std::fs::read(&path).unwrap();
    assert!(found[(80 << 20) + 1_000..log.len() as usize - 2_000].ends_with(&[2; 1_000]));
    assert!(found[..log.len() as usize].ends_with(&[4; 1_000]));
}
