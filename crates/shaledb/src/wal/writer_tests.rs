//! What failures leave behind, and when a writer is poisoned.

use super::super::testing::{append, disk, path, wal};
use super::*;
use crate::fs::mem::{Call, CrashMode, Fault};

fn record(wal: &LogWriter, seq: u64) -> Vec<u8> {
    let mut out = Vec::new();
    wal.framer().frame(&mut out, |out| super::super::payload::begin(out, seq, seq - 1));
    out
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    append(&mut wal, 1, 3, 0);
    let before = fs.content(&path(1)).unwrap();
    for fault in [Fault::Full, Fault::ShortFull] {
        fs.fail(Call::Append, 1, fault, true);
        assert!(wal.append(&record(&wal, 4)).unwrap_err().is_disk_full());
        assert_eq!(fs.content(&path(1)).unwrap(), before);
        assert_eq!(wal.bytes(), before.len() as u64);
    }
    append(&mut wal, 4, 1, 0);
    wal.sync().unwrap();
}

/// Of a group that is refused the first record is whole, and made durable by another thread, before
/// it is cut off. After a power loss it is not there.
#[test]
fn what_was_refused_is_off_the_device_before_that_is_said() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    append(&mut wal, 1, 3, 0);
    wal.sync().unwrap();
    let before = fs.content(&path(1)).unwrap();
    let mut group = Vec::new();
    for seq in 4..7 {
        wal.framer().frame(&mut group, |out| super::super::payload::begin(out, seq, seq - 1));
    }
    let (beside, disk, whole) = (wal.syncer().unwrap(), fs.clone(), before.len() + group.len() / 3);
    fs.pause(Some(Arc::new(move |call, _: &Path| {
        if call == Call::Truncate {
            beside.sync().unwrap();
            assert!(disk.content(&path(1)).unwrap().len() >= whole, "a record is there");
        }
    })));
    let syncs = fs.counts().of(Call::Sync);
    fs.fail(Call::Append, 1, Fault::ShortFull, true);
    assert!(wal.append(&group).unwrap_err().is_disk_full());
    assert_eq!(fs.counts().of(Call::Sync), syncs + 2, "before the cut and after it");
    fs.pause(None);
    let after = fs.crash_clone(0, CrashMode::Lost).content(&path(1)).unwrap();
    assert!(after.starts_with(&before) && after[before.len()..].iter().all(|byte| *byte == 0));
    append(&mut wal, 4, 1, 0);
    fs.fail(Call::Append, 1, Fault::ShortFull, true);
    fs.fail(Call::Sync, 1, Fault::Io, true);
    assert!(matches!(wal.append(&record(&wal, 5)), Err(Error::Io { .. })));
    assert!(matches!(wal.check(), Err(Error::Poisoned(_))));
}

#[test]
fn a_log_for_which_there_is_no_room_leaves_no_file() {
    let fs = disk();
    let guard = Arc::new(Guard::new(Path::new("/db")));
    for fault in [Fault::Full, Fault::ShortFull] {
        fs.fail(Call::Append, 1, fault, true);
        let made = LogWriter::create(&fs, &path(1), 1, &guard, 0);
        assert!(made.is_err_and(|error| error.is_disk_full()));
        assert!(fs.content(&path(1)).is_none());
    }
    assert!(LogWriter::create(&fs, &path(1), 1, &guard, 0).is_ok());
}

#[test]
fn other_failures_poison() {
    let faults: [(Call, Fault); 3] =
        [(Call::Append, Fault::Io), (Call::Append, Fault::Short), (Call::Sync, Fault::Io)];
    for (call, fault) in faults {
        let fs = disk();
        let mut wal = wal(&fs, 1);
        fs.fail(call, 1, fault, true);
        let result = wal.append(&record(&wal, 1)).and_then(|()| wal.sync());
        assert!(matches!(result, Err(Error::Io { .. })), "{call:?}");
        let framed = record(&wal, 1);
        assert!(matches!(wal.append(&framed), Err(Error::Poisoned(_))));
        assert!(matches!(wal.sync(), Err(Error::Poisoned(_))));
        assert!(matches!(wal.syncer().map(|_| ()), Err(Error::Poisoned(_))));
    }
}

#[test]
fn a_failed_cut_poisons() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    fs.fail(Call::Append, 1, Fault::ShortFull, true);
    fs.fail(Call::Truncate, 1, Fault::Io, true);
    assert!(matches!(wal.append(&record(&wal, 1)), Err(Error::Io { .. })), "and not a full disk");
    assert!(matches!(wal.check(), Err(Error::Poisoned(_))));
}

#[test]
fn a_failed_sync_of_a_syncer_poisons_the_writer() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    let syncer = wal.syncer().unwrap();
    append(&mut wal, 1, 1, 0);
    syncer.sync().unwrap();
    fs.fail(Call::Sync, 1, Fault::Io, true);
    assert!(matches!(syncer.sync(), Err(Error::Io { .. })));
    assert!(matches!(syncer.sync(), Err(Error::Poisoned(_))));
    assert!(matches!(wal.sync(), Err(Error::Poisoned(_))));
}

#[test]
fn one_append_is_one_call_and_a_sync_keeps_it() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    let before = fs.counts().of(Call::Append);
    append(&mut wal, 1, 50, 0);
    assert_eq!(fs.counts().of(Call::Append), before + 1);
    wal.sync().unwrap();
    assert!(!wal.is_empty());
    let after = fs.crash_clone(1, CrashMode::Lost);
    assert!(after.content(&path(1)) == fs.content(&path(1)));
}
