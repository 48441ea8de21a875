//! A log that grows byte by byte, in several files, is read record by record; what is damaged is
//! told from what is not complete.

use super::super::testing::{append, disk, path, set_content, value, wal};
use super::*;
use crate::fs::mem::MemFs;
use crate::fs::read_all;

fn wals(ids: &[u64]) -> Vec<(u64, PathBuf)> {
    ids.iter().map(|id| (*id, path(*id))).collect()
}

/// Reads on; answers with the numbers taken, and how it ended.
fn advance(tail: &mut LogTail, fs: &MemFs, ids: &[u64]) -> (Vec<SeqNo>, TailEnd) {
    from(tail, fs, ids, ReplayStart::default())
}

fn from(tail: &mut LogTail, fs: &MemFs, ids: &[u64], start: ReplayStart) -> (Vec<SeqNo>, TailEnd) {
    let mut seqs = Vec::new();
    let end = tail.advance(fs, &wals(ids), start, &mut |batch| {
        for op in batch.ops {
            assert_eq!(op.value, &value(op.seq)[..]);
            seqs.push(op.seq);
        }
        Ok(true)
    });
    (seqs, end.unwrap())
}

#[test]
fn a_log_that_grows_byte_by_byte_is_read_record_by_record() {
    let fs = disk();
    let mut one = wal(&fs, 3);
    let mut ends: Vec<(usize, SeqNo)> = Vec::new();
    for (first, last) in [(1, 3), (4, 4), (5, 8), (9, 12)] {
        append(&mut one, first, last + 1 - first, 0);
        ends.push((one.bytes() as usize, last));
    }
    let content = read_all(&fs, &path(3)).unwrap();
    let growing = disk();
    let mut tail = LogTail::default();
    let mut taken = Vec::new();
    for bytes in 0..=content.len() {
        set_content(&growing, &path(3), &content[..bytes]);
        let (seqs, end) = advance(&mut tail, &growing, &[3]);
        assert!(matches!(end, TailEnd::End), "at {bytes}: {end:?}");
        taken.extend(seqs);
        let complete = ends.iter().filter(|(end, _)| *end <= bytes).map(|(_, last)| *last).max();
        assert_eq!(taken, (1..=complete.unwrap_or(0)).collect::<Vec<_>>(), "at {bytes}");
    }
}

#[test]
fn it_goes_on_in_the_next_file_and_past_one_made_in_advance() {
    let fs = disk();
    let mut tail = LogTail::default();
    let mut one = wal(&fs, 3);
    append(&mut one, 1, 2, 0);
    let _spare = wal(&fs, 5);
    assert_eq!(advance(&mut tail, &fs, &[3, 5]).0, [1, 2]);
    append(&mut one, 3, 1, 0);
    let mut two = wal(&fs, 8);
    append(&mut two, 4, 2, 0);
    assert_eq!(advance(&mut tail, &fs, &[3, 5, 8]).0, [3, 4, 5]);
    // A file that has been removed can still be read on.
    append(&mut two, 6, 1, 0);
    fs.remove(&path(8)).unwrap();
    let mut three = wal(&fs, 9);
    append(&mut three, 7, 1, 0);
    assert_eq!(advance(&mut tail, &fs, &[9]).0, [6, 7]);
    assert!(advance(&mut tail, &fs, &[9]).0.is_empty());
}

#[test]
fn what_is_in_tables_may_be_missing_and_nothing_else() {
    let fs = disk();
    let mut tail = LogTail::default();
    append(&mut wal(&fs, 3), 1, 2, 0);
    assert_eq!(advance(&mut tail, &fs, &[3]).0, [1, 2]);
    // The files with 3 to 9 came and went.
    append(&mut wal(&fs, 7), 10, 2, 8);
    let (seqs, end) = advance(&mut tail, &fs, &[3, 7]);
    assert!(seqs.is_empty() && matches!(end, TailEnd::Damaged(_)), "8 was durable: {end:?}");
    let start = ReplayStart { flushed_to: 9, durable: 9, ..ReplayStart::default() };
    assert_eq!(from(&mut tail, &fs, &[7], start).0, [10, 11]);
}

#[test]
fn what_was_durable_and_cannot_be_read_is_damage() {
    let fs = disk();
    let mut one = wal(&fs, 3);
    let damaged = append(&mut one, 1, 2, 0);
    append(&mut one, 3, 1, 0);
    fs.corrupt(&path(3), damaged + 20, 1);
    let mut tail = LogTail::default();
    let (seqs, end) = advance(&mut tail, &fs, &[3]);
    assert!(seqs.is_empty() && matches!(end, TailEnd::End), "it may never have been durable");
    append(&mut one, 4, 1, 2);
    let (seqs, end) = advance(&mut tail, &fs, &[3]);
    let TailEnd::Damaged(Error::Corruption { path: named, offset, .. }) = end else {
        panic!("{end:?}")
    };
    assert_eq!((seqs.len(), named, offset), (0, path(3), damaged));
}

#[test]
fn a_record_that_is_not_taken_comes_again() {
    let fs = disk();
    let mut one = wal(&fs, 3);
    append(&mut one, 1, 1, 0);
    append(&mut one, 2, 1, 0);
    let mut tail = LogTail::default();
    let start = ReplayStart::default();
    let end = tail.advance(&fs, &wals(&[3]), start, &mut |batch| Ok(batch.first_seq < 2)).unwrap();
    assert!(matches!(end, TailEnd::Held), "{end:?}");
    assert_eq!(advance(&mut tail, &fs, &[3]).0, [2]);
}

#[test]
fn an_append_that_was_taken_back_is_noticed() {
    let fs = disk();
    let mut one = wal(&fs, 3);
    append(&mut one, 1, 1, 0);
    let kept = one.bytes() as usize;
    append(&mut one, 2, 3, 0);
    let content = read_all(&fs, &path(3)).unwrap();
    let mut tail = LogTail::default();
    assert_eq!(advance(&mut tail, &fs, &[3]).0, [1, 2, 3, 4]);
    set_content(&fs, &path(3), &content[..kept]);
    // The same numbers, other operations.
    let other = disk();
    let mut again = wal(&other, 3);
    append(&mut again, 1, 1, 0);
    append(&mut again, 2, 1, 0);
    append(&mut again, 3, 2, 0);
    let content = read_all(&other, &path(3)).unwrap();
    let (seqs, end) = advance(&mut tail, &fs, &[3]);
    assert!(seqs.is_empty() && matches!(end, TailEnd::Undone), "{end:?}");
    set_content(&fs, &path(3), &content);
    let (seqs, end) = advance(&mut tail, &fs, &[3]);
    assert!(seqs.is_empty() && matches!(end, TailEnd::Undone), "{end:?}");
    assert_eq!(advance(&mut LogTail::default(), &fs, &[3]).0, [1, 2, 3, 4]);
}

#[test]
fn zeros_ahead_of_the_writer_are_searched_once() {
    use crate::fs::mem::Call;
    let fs = disk();
    let mut tail = LogTail::default();
    let mut one = wal(&fs, 3);
    append(&mut one, 1, 2, 0);
    let bytes = one.bytes() as usize;
    let record = append(&mut one, 3, 1, 0) as usize;
    let mut content = read_all(&fs, &path(3)).unwrap();
    content.resize(8 << 20, 0);
    let mut before = content.clone();
    before[bytes..].fill(0);
    set_content(&fs, &path(3), &before);
    // The next log may have pages ahead, too.
    set_content(&fs, &path(4), &{
        let _ = wal(&fs, 4);
        let mut spare = read_all(&fs, &path(4)).unwrap();
        spare.resize(8 << 20, 0);
        spare
    });
    assert_eq!(advance(&mut tail, &fs, &[3, 4]).0, [1, 2]);
    let reads = |tail: &mut LogTail| {
        let before = fs.counts().of(Call::Read);
        assert!(matches!(advance(tail, &fs, &[3, 4]), (seqs, TailEnd::End) if seqs.is_empty()));
        fs.counts().of(Call::Read) - before
    };
    reads(&mut tail);
    let again = reads(&mut tail);
    assert!(again <= 6, "{again} reads, of a megabyte or less each");
    // What comes in their place is taken.
    assert_eq!(record, bytes);
    set_content(&fs, &path(3), &content);
    assert_eq!(advance(&mut tail, &fs, &[3, 4]).0, [3]);
}
