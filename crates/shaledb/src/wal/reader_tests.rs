//! Finding records: all of them, over chunk boundaries, up to damage and behind it.

use super::super::payload::{WalBatch, begin, put_op};
use super::super::record::WAL;
use super::super::testing::{append, disk, path, set_content, wal};
use super::super::writer::LogWriter;
use super::*;
use crate::base::key::Kind;
use crate::fs::mem::MemFs;

fn open(fs: &MemFs) -> RecordReader {
    RecordReader::open(fs, &path(1), 1, WAL).unwrap()
}

fn search(min: u64) -> Search {
    let plausible = |payload: &[u8]| WalBatch::parse(payload).is_ok();
    Search { serial_min: min, serial_base: min, plausible }
}

/// Offsets of the records up to the end, and what is torn there.
fn offsets(reader: &mut RecordReader) -> (Vec<u64>, Torn) {
    let mut offsets = Vec::new();
    loop {
        match reader.next().unwrap() {
            Step::Record { offset, .. } => offsets.push(offset),
            Step::End { torn, .. } => return (offsets, torn),
        }
    }
}

fn append_value(wal: &mut LogWriter, seq: u64, value: &[u8]) -> u64 {
    let offset = wal.bytes();
    let mut framed = Vec::new();
    wal.framer().frame(&mut framed, |out| {
        begin(out, seq, seq - 1);
        put_op(out, Kind::Put, 1, b"k", value);
    });
    wal.append(&framed).unwrap();
    offset
}

#[test]
fn records_of_all_sizes_cross_chunks() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    let sizes = [0, 1, 100, 5000, CHUNK_BYTES - 40, CHUNK_BYTES, 3 * CHUNK_BYTES + 7, 9, 700_000];
    let mut expected = Vec::new();
    for (seq, size) in (1..).zip(sizes.iter().cycle().take(40)) {
        expected.push(append_value(&mut wal, seq, &vec![seq as u8; *size]));
    }
    let mut reader = open(&fs);
    assert_eq!(offsets(&mut reader), (expected, None));
    // What a long record made the window grow to does not stay.
    assert!(reader.window.capacity() <= 16 * CHUNK_BYTES);
}

#[test]
fn memory_is_not_taken_for_a_length_that_the_file_does_not_have() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    append(&mut wal, 1, 1, 0);
    let mut content = fs.content(&path(1)).unwrap();
    content.extend_from_slice(&[1, 2, 3, 4, 0, 0, 0, 0x20]);
    content.resize(content.len() + 1000, 9);
    set_content(&fs, &path(1), &content);
    let mut reader = open(&fs);
    let (found, torn) = offsets(&mut reader);
    assert_eq!((found.len(), torn), (1, Some("the file ends inside a record")));
    assert!(reader.window.capacity() < 2 * CHUNK_BYTES);
}

#[test]
fn resync_finds_the_next_sound_record() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    let starts: Vec<u64> = (0..6).map(|n| append(&mut wal, 1 + 3 * n, 3, 0)).collect();
    for at in [starts[2], starts[2] + 5, starts[2] + 30, starts[3] - 1] {
        assert!(fs.corrupt(&path(1), at, 0x40));
        let mut reader = open(&fs);
        let (found, torn) = offsets(&mut reader);
        assert_eq!(found, starts[..2]);
        assert!(torn.is_some());
        assert_eq!(reader.resync(search(7)).unwrap(), Resync::Found(starts[3]));
        assert_eq!(offsets(&mut reader), (starts[3..].to_vec(), None));
        // Records that are too old are none.
        let mut reader = open(&fs);
        offsets(&mut reader);
        assert_eq!(reader.resync(search(11)).unwrap(), Resync::Found(starts[4]));
        assert!(fs.corrupt(&path(1), at, 0x40));
    }
}

#[test]
fn a_log_inside_a_value_is_no_log() {
    let fs = disk();
    let mut inner = wal(&fs, 1);
    for n in 0..20 {
        append(&mut inner, 2 + n, 1, n + 1);
    }
    let copy = fs.content(&path(1)).unwrap();
    let mut outer = wal(&fs, 1);
    let offset = append_value(&mut outer, 1, &copy);
    assert!(fs.corrupt(&path(1), offset, 1));
    let mut reader = open(&fs);
    assert!(offsets(&mut reader).1.is_some());
    assert_eq!(reader.resync(search(1)).unwrap(), Resync::Nothing);
    assert_eq!(offsets(&mut reader), (Vec::new(), None));
}

#[test]
fn unknown_versions_are_refused_and_damaged_headers_are_passed_over() {
    use super::super::record::{Seal, file_header};
    let fs = disk();
    let mut wal = wal(&fs, 1);
    let first = append(&mut wal, 1, 1, 0);
    let mut content = fs.content(&path(1)).unwrap();
    let newer = file_header(Format { version: 3, ..WAL }, Seal::new(WAL, 1));
    content[..16].copy_from_slice(&newer);
    set_content(&fs, &path(1), &content);
    let error = RecordReader::open(&fs, &path(1), 1, WAL).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("version is 3"), "{error}");
    content[8] ^= 1;
    set_content(&fs, &path(1), &content);
    let mut reader = open(&fs);
    assert!(reader.header_damaged());
    assert_eq!(offsets(&mut reader).0, []);
    assert_eq!(reader.resync(search(1)).unwrap(), Resync::Found(first));
    assert_eq!(offsets(&mut reader), (vec![first], None));
}

#[test]
fn no_bytes_panic() {
    let fs = disk();
    let mut state = 7u64;
    for round in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..round {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            bytes.push(if state >> 62 == 0 { (state >> 40) as u8 } else { (state >> 60) as u8 });
        }
        set_content(&fs, &path(1), &bytes);
        let mut reader = open(&fs);
        offsets(&mut reader);
        assert_eq!(
            reader.resync(Search { serial_base: u64::MAX, ..search(0) }).unwrap(),
            Resync::Nothing
        );
        let _ = WalBatch::parse(&bytes);
    }
}

#[test]
fn a_record_behind_zeros_is_found_wherever_it_lies() {
    let fs = disk();
    for gap in (0..40).chain([CHUNK_BYTES - 9, CHUNK_BYTES + 5, 2 * CHUNK_BYTES]) {
        let mut wal = wal(&fs, 1);
        append(&mut wal, 1, 1, 0);
        let torn = wal.bytes() as usize;
        // A record that is lost, as long as the gap is to be.
        append_value(&mut wal, 2, &vec![7; gap + 30]);
        let found = append_value(&mut wal, 3, b"found");
        let mut content = fs.content(&path(1)).unwrap();
        content[torn..found as usize].fill(0);
        content.resize(content.len() + CHUNK_BYTES, 0);
        set_content(&fs, &path(1), &content);
        let mut reader = open(&fs);
        assert_eq!(offsets(&mut reader).1, Some("the record's length is impossible"));
        assert_eq!(reader.resync(search(2)).unwrap(), Resync::Found(found));
        assert_eq!(offsets(&mut reader).0, [found]);
        assert_eq!(reader.resync(search(2)).unwrap(), Resync::Nothing);
    }
}

#[test]
fn zeros_that_the_writer_cuts_off_meanwhile_are_not_missed() {
    let fs = disk();
    let mut wal = wal(&fs, 1);
    for seq in 1..4 {
        append(&mut wal, seq, 1, 0);
    }
    let content = fs.content(&path(1)).unwrap();
    let longer = |by: usize| [&content[..], &vec![0; by]].concat();
    // Cut at the look for the next record, and in the search behind what was read already.
    for by in [7, 5_000, 3 * CHUNK_BYTES] {
        set_content(&fs, &path(1), &longer(by));
        let mut reader = open(&fs);
        assert!(matches!(reader.next().unwrap(), Step::Record { .. }));
        reader.window.clear();
        set_content(&fs, &path(1), &content);
        assert_eq!(offsets(&mut reader).0.len(), 2);
        set_content(&fs, &path(1), &longer(by));
        let mut reader = open(&fs);
        assert_eq!(offsets(&mut reader).0.len(), 3);
        set_content(&fs, &path(1), &content);
        assert_eq!(reader.resync(search(4)).unwrap(), Resync::Nothing);
    }
}
