//! Where the log ends, for every kind of damage, and when damage is an error.

use super::super::payload;
use super::super::record::FILE_HEADER_BYTES;
use super::super::testing::{DIR, append, disk, path, set_content, value, wal};
use super::super::writer::LogWriter;
use super::*;
use crate::fs::mem::{CrashMode, MemFs};

fn wals(ids: &[u64]) -> Vec<(u64, PathBuf)> {
    ids.iter().map(|id| (*id, path(*id))).collect()
}

/// The sequence numbers replayed, and the end.
fn run_from(fs: &MemFs, ids: &[u64], start: ReplayStart) -> Result<(Vec<SeqNo>, ReplayEnd)> {
    let mut seqs = Vec::new();
    let end = replay(fs, Path::new(DIR), &wals(ids), start, &mut |batch| {
        for op in batch.ops {
            assert_eq!((op.key, op.value), (&op.seq.to_be_bytes()[..], &value(op.seq)[..]));
            seqs.push(op.seq);
        }
        Ok(())
    })?;
    assert_eq!(
        end.last_seq,
        seqs.last().copied().unwrap_or(start.flushed_to).max(start.flushed_to)
    );
    Ok((seqs, end))
}

fn run(fs: &MemFs, ids: &[u64]) -> Result<(Vec<SeqNo>, ReplayEnd)> {
    run_from(fs, ids, ReplayStart::default())
}

fn damage_at(result: Result<(Vec<SeqNo>, ReplayEnd)>) -> (PathBuf, u64) {
    match result {
        Err(Error::Corruption { path, offset, .. }) => (path, offset),
        other => panic!("{other:?}"),
    }
}

fn up_to(last: SeqNo) -> Vec<SeqNo> {
    (1..=last).collect()
}

#[test]
fn a_whole_log_is_replayed() {
    let fs = disk();
    let mut a = wal(&fs, 1);
    append(&mut a, 1, 3, 0);
    append(&mut a, 4, 1, 0);
    let mut b = wal(&fs, 2);
    append(&mut b, 5, 2, 4);
    let (seqs, end) = run(&fs, &[1, 2]).unwrap();
    assert_eq!(seqs, up_to(6));
    assert_eq!((end.end_file, end.end_offset), (2, b.bytes()));
    assert_eq!((end.records, end.dropped_bytes, end.durable_seq, end.clean), (3, 0, 4, false));
}

#[test]
fn a_torn_tail_ends_the_log_at_every_byte() {
    let fs = disk();
    let mut log = wal(&fs, 1);
    append(&mut log, 1, 2, 0);
    append(&mut log, 3, 1, 2);
    let third = append(&mut log, 4, 2, 2);
    let content = fs.content(&path(1)).unwrap();
    for cut in third as usize..content.len() {
        set_content(&fs, &path(1), &content[..cut]);
        let (seqs, end) = run(&fs, &[1]).unwrap();
        assert_eq!((seqs, end.end_offset), (up_to(3), third), "{cut}");
        assert_eq!(end.dropped_bytes, cut as u64 - third);
        // Zeros and garbage in place of what is missing end it at the same place.
        for fill in [0, 0xa5] {
            let mut filled = content[..cut].to_vec();
            filled.resize(content.len() + 1000, fill);
            set_content(&fs, &path(1), &filled);
            let (seqs, end) = run(&fs, &[1]).unwrap();
            assert_eq!((seqs, end.end_offset), (up_to(3), third), "{cut}");
        }
    }
    // Before the durable point the same cuts are damage.
    for cut in 1..third as usize {
        set_content(&fs, &path(1), &content[..cut]);
        let start = ReplayStart { flushed_to: 0, durable: 3, ..ReplayStart::default() };
        let (path_found, offset) = damage_at(run_from(&fs, &[1], start));
        assert_eq!(path_found, path(1));
        assert!(offset <= cut as u64);
    }
}

#[test]
fn a_flipped_byte_before_the_durable_point_is_an_error() {
    let fs = disk();
    let mut log = wal(&fs, 1);
    let starts: Vec<u64> = (0..5).map(|n| append(&mut log, 1 + 2 * n, 2, 2 * n)).collect();
    // The last record says that those before it are durable.
    for at in FILE_HEADER_BYTES as u64..starts[4] {
        fs.corrupt(&path(1), at, 0x08);
        let record = starts.iter().rev().find(|start| **start <= at).unwrap();
        assert_eq!(damage_at(run(&fs, &[1])), (path(1), *record), "{at}");
        fs.corrupt(&path(1), at, 0x08);
    }
    for at in 0..FILE_HEADER_BYTES as u64 {
        fs.corrupt(&path(1), at, 0x08);
        // Nothing is lost with the header, unless a record is.
        assert_eq!(run(&fs, &[1]).unwrap().0, up_to(10), "{at}");
        fs.corrupt(&path(1), starts[0] + 9, 0x08);
        assert_eq!(damage_at(run(&fs, &[1])), (path(1), 0), "{at}");
        fs.corrupt(&path(1), starts[0] + 9, 0x08);
        fs.corrupt(&path(1), at, 0x08);
    }
    for at in starts[4]..log.bytes() {
        fs.corrupt(&path(1), at, 0x08);
        assert_eq!(run(&fs, &[1]).unwrap().0, up_to(8), "{at}");
        fs.corrupt(&path(1), at, 0x08);
    }
}

#[test]
fn sound_records_behind_a_lost_sector_are_dropped_if_nothing_was_durable() {
    let fs = disk();
    let mut log = wal(&fs, 1);
    let starts: Vec<u64> = (0..40).map(|n| append(&mut log, 1 + n, 1, 0)).collect();
    let content = fs.content(&path(1)).unwrap();
    for sector in 0..content.len() / 512 {
        for fill in [0u8, 0x77] {
            let mut torn = content.clone();
            torn[sector * 512..(sector + 1) * 512].fill(fill);
            set_content(&fs, &path(1), &torn);
            let (seqs, end) = run(&fs, &[1]).unwrap();
            let whole = starts.iter().skip(1).filter(|s| **s <= sector as u64 * 512).count();
            assert_eq!(seqs, up_to(whole as u64), "{sector}");
            assert!(end.dropped_bytes >= 512);
        }
    }
}

#[test]
fn a_hole_between_two_files() {
    let fs = disk();
    let mut a = wal(&fs, 1);
    append(&mut a, 1, 2, 0);
    let second = append(&mut a, 3, 2, 0);
    let mut b = wal(&fs, 2);
    append(&mut b, 5, 1, 0);
    let content = fs.content(&path(1)).unwrap();
    for cut in [second as usize, second as usize + 11] {
        set_content(&fs, &path(1), &content[..cut]);
        let (seqs, end) = run(&fs, &[1, 2]).unwrap();
        assert_eq!(seqs, up_to(2));
        assert_eq!(end.end_offset, if cut > second as usize { second } else { 16 });
        assert!(end.dropped_bytes >= b.bytes() - 16);
    }
    // A record that says the hole was durable makes it an error.
    append(&mut b, 6, 1, 4);
    set_content(&fs, &path(1), &content[..second as usize + 11]);
    assert_eq!(damage_at(run(&fs, &[1, 2])), (path(1), second));
    set_content(&fs, &path(1), &content[..second as usize]);
    assert_eq!(damage_at(run(&fs, &[1, 2])), (path(2), FILE_HEADER_BYTES as u64));
    assert_eq!(damage_at(run(&fs, &[2])), (path(2), FILE_HEADER_BYTES as u64));
    // So it does behind further damage.
    fs.corrupt(&path(2), 0, 1);
    fs.corrupt(&path(2), 18, 1);
    assert_eq!(damage_at(run(&fs, &[1, 2])), (path(2), 0));
}

#[test]
fn a_log_goes_on_in_a_new_file_behind_a_torn_tail() {
    let fs = disk();
    let mut a = wal(&fs, 1);
    append(&mut a, 1, 2, 0);
    append(&mut a, 3, 2, 0);
    fs.corrupt(&path(1), a.bytes() - 1, 1);
    // An earlier recovery ended at 2.
    let mut b = wal(&fs, 2);
    append(&mut b, 3, 5, 2);
    append(&mut b, 8, 1, 7);
    let (seqs, end) = run(&fs, &[1, 2]).unwrap();
    assert_eq!(seqs, up_to(8));
    assert_eq!((end.end_file, end.end_offset), (2, b.bytes()));
}

#[test]
fn files_without_records() {
    let fs = disk();
    set_content(&fs, &path(1), b"");
    let (seqs, end) = run(&fs, &[1]).unwrap();
    assert_eq!((seqs, end.end_file, end.end_offset), (vec![], 0, 0));
    let _header_only = wal(&fs, 2);
    let (_, end) = run(&fs, &[2]).unwrap();
    assert_eq!((end.end_file, end.end_offset, end.dropped_bytes), (2, 16, 0));
    // A torn header, of a file that was just made: nothing in it can have been durable.
    let mut a = wal(&fs, 3);
    append(&mut a, 1, 4, 0);
    let content = fs.content(&path(2)).unwrap();
    for cut in 0..16 {
        set_content(&fs, &path(4), &content[..cut]);
        let (seqs, end) = run(&fs, &[3, 4]).unwrap();
        assert_eq!((seqs, end.end_file, end.end_offset), (up_to(4), 3, a.bytes()));
        assert_eq!(end.dropped_bytes, cut as u64);
    }
    let nothing = ReplayEnd { whole_from: 1, ..ReplayEnd::default() };
    assert_eq!(run(&fs, &[]).unwrap().1, nothing);
    let start = ReplayStart { flushed_to: 3, durable: 4, ..ReplayStart::default() };
    assert_eq!(damage_at(run_from(&fs, &[], start)), (PathBuf::from(DIR), 0));
}

#[test]
fn a_close_in_good_order_makes_the_whole_log_durable() {
    let fs = disk();
    let mut log = wal(&fs, 1);
    let first = append(&mut log, 1, 2, 0);
    let mut mark = Vec::new();
    log.framer().frame(&mut mark, |out| payload::begin(out, 3, 2));
    log.append(&mark).unwrap();
    let (seqs, end) = run(&fs, &[1]).unwrap();
    assert_eq!((seqs, end.clean, end.durable_seq), (up_to(2), true, 2));
    fs.corrupt(&path(1), first + 12, 1);
    assert_eq!(damage_at(run(&fs, &[1])), (path(1), first));
    fs.corrupt(&path(1), first + 12, 1);
    // The database is opened again, and written to.
    let mut next = wal(&fs, 2);
    append(&mut next, 3, 1, 2);
    let (seqs, end) = run(&fs, &[1, 2]).unwrap();
    assert_eq!((seqs, end.clean), (up_to(3), false));
}

#[test]
fn what_tables_cover_need_not_be_in_the_log() {
    let fs = disk();
    let mut log = wal(&fs, 5);
    append(&mut log, 101, 2, 100);
    let start = ReplayStart { flushed_to: 100, durable: 102, ..ReplayStart::default() };
    assert_eq!(run_from(&fs, &[5], start).unwrap().0, [101, 102]);
    // A log that starts earlier is replayed as it is.
    let start = ReplayStart { flushed_to: 101, durable: 102, ..ReplayStart::default() };
    assert_eq!(run_from(&fs, &[5], start).unwrap().0, [101, 102]);
    // One that starts later has lost its start.
    let start = ReplayStart { flushed_to: 99, durable: 99, ..ReplayStart::default() };
    assert_eq!(damage_at(run_from(&fs, &[5], start)), (path(5), 16));
    // All that was to be found is in tables.
    let start = ReplayStart { flushed_to: 200, durable: 200, ..ReplayStart::default() };
    let (_, end) = run_from(&fs, &[5], start).unwrap();
    assert_eq!((end.last_seq, end.whole_from), (200, 201));
}

#[test]
fn a_gap_that_tables_cover_is_none() {
    let fs = disk();
    let mut a = wal(&fs, 1);
    let starts: Vec<u64> = (1..=8).map(|seq| append(&mut a, seq, 1, seq - 1)).collect();
    fs.corrupt(&path(1), starts[2] + 9, 1);
    fs.corrupt(&path(1), starts[5] + 9, 1);
    // Up to 5: the log goes on at 4, and stops at 6.
    let start = ReplayStart { flushed_to: 5, durable: 5, ..ReplayStart::default() };
    assert_eq!(damage_at(run_from(&fs, &[1], start)), (path(1), starts[5]));
    let start = ReplayStart { flushed_to: 6, durable: 6, ..ReplayStart::default() };
    let (seqs, end) = run_from(&fs, &[1], start).unwrap();
    assert_eq!((seqs, end.last_seq, end.whole_from), (vec![1, 2, 4, 5, 7, 8], 8, 7));
    // Nothing is left of an unsynced log whose operations were flushed; a new one follows them.
    let mut b = wal(&fs, 2);
    let mut c = wal(&fs, 3);
    append(&mut b, 1, 1, 0);
    append(&mut c, 101, 2, 100);
    let start = ReplayStart { flushed_to: 100, durable: 100, ..ReplayStart::default() };
    assert_eq!(run_from(&fs, &[2, 3], start).unwrap().0, [1, 101, 102]);
    let start = ReplayStart { flushed_to: 99, durable: 99, ..ReplayStart::default() };
    assert_eq!(damage_at(run_from(&fs, &[2, 3], start)), (path(3), 16));
}

#[test]
fn a_sound_record_of_nonsense_is_an_error() {
    let fs = disk();
    let mut log = wal(&fs, 1);
    append(&mut log, 1, 1, 0);
    let offset = log.bytes();
    let mut framed = Vec::new();
    log.framer().frame(&mut framed, |out| {
        payload::begin(out, 2, 1);
        out.push(99);
    });
    log.append(&framed).unwrap();
    assert_eq!(damage_at(run(&fs, &[1])), (path(1), offset));
}

#[test]
fn cutting_leaves_a_log_that_can_be_continued() {
    let fs = disk();
    let mut a = wal(&fs, 1);
    append(&mut a, 1, 2, 0);
    append(&mut a, 3, 2, 0);
    fs.corrupt(&path(1), a.bytes() - 1, 1);
    let mut b = wal(&fs, 2);
    append(&mut b, 5, 1, 0);
    let (_, end) = run(&fs, &[1, 2]).unwrap();
    cut(&fs, Path::new(DIR), &wals(&[1, 2]), &end).unwrap();
    assert!(!fs.exists(&path(2)).unwrap());
    assert_eq!(fs.content(&path(1)).unwrap().len() as u64, end.end_offset);
    let mut c = wal(&fs, 3);
    append(&mut c, 3, 4, 2);
    assert_eq!(run(&fs, &[1, 3]).unwrap().0, up_to(6));
}

/// Writes with syncs and rotations, crashes in every mode, and checks that what was synced is
/// there, that what is there is a prefix, and that no legal crash counts as damage.
#[test]
fn crashes_lose_only_what_was_not_synced() {
    for seed in 0..300u64 {
        let fs = disk();
        let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |bound: u64| {
            chance = chance.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (chance >> 33) % bound
        };
        let mut logs: Vec<LogWriter> = vec![wal(&fs, 1)];
        let (mut next, mut durable) = (1, 0);
        for _ in 0..below(60) {
            match below(12) {
                0 => {
                    logs.iter_mut().for_each(|log| log.sync().unwrap());
                    durable = next - 1;
                }
                1 => logs.push(wal(&fs, logs.len() as u64 + 1)),
                _ => {
                    let count = below(20);
                    append(logs.last_mut().unwrap(), next, count, durable);
                    next += count;
                }
            }
        }
        let ids: Vec<u64> = (1..=logs.len() as u64).collect();
        for mode in [CrashMode::Lost, CrashMode::Torn, CrashMode::Kept] {
            let after = fs.crash_clone(seed, mode);
            let (seqs, end) = run(&after, &ids).unwrap_or_else(|error| {
                panic!("seed {seed}, {mode:?}: {error}");
            });
            assert_eq!(seqs, up_to(end.last_seq), "seed {seed}, {mode:?}");
            assert!(end.last_seq >= durable, "seed {seed}, {mode:?}");
            if mode == CrashMode::Kept {
                assert_eq!(end.last_seq, next - 1);
            }
            cut(&after, Path::new(DIR), &wals(&ids), &end).unwrap();
            let kept: Vec<u64> = ids.iter().copied().filter(|id| *id <= end.end_file).collect();
            let (again, end_again) = run(&after, &kept).unwrap();
            assert_eq!((again.len(), end_again.end_offset), (seqs.len(), end.end_offset));
        }
    }
}
