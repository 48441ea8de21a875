//! Dumps and salvage of damaged WALs.

use super::super::testing::{append, disk, path, wal};
use super::*;

#[test]
fn a_dump_shows_records_and_damage() {
    let fs = disk();
    let mut wal = wal(&fs, 4);
    let a = append(&mut wal, 1, 2, 0);
    let b = append(&mut wal, 3, 2, 2);
    let c = append(&mut wal, 5, 1, 4);
    let end = wal.bytes();
    fs.corrupt(&path(4), b + 9, 1);
    let lines: Vec<WalLine> =
        WalDump::open(&fs, &path(4), 4).unwrap().map(|line| line.unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert!(matches!(
        lines[0],
        WalLine::Record { offset, bytes, first_seq: 1, count: 2, puts: 2, .. }
            if offset == a && bytes == b - a
    ));
    let what = "the record's checksum does not match";
    assert_eq!(lines[1], WalLine::Damage { offset: b, bytes: c - b, what });
    assert!(matches!(
        lines[2],
        WalLine::Record { offset, bytes, first_seq: 5, durable_seq: 4, .. }
            if offset == c && bytes == end - c
    ));
}

#[test]
fn salvage_keeps_what_is_sound() {
    let fs = disk();
    let mut wal = wal(&fs, 4);
    let starts: Vec<u64> = (1..=10).map(|seq| append(&mut wal, seq, 1, 0)).collect();
    let end = wal.bytes();
    for (damaged, at) in [(0, 3), (4, 0), (5, 20), (9, 8)] {
        fs.corrupt(&path(4), starts[damaged] + at, 0x10);
    }
    fs.corrupt(&path(4), 2, 0x10);
    let mut seqs = Vec::new();
    let salvage = salvage(&fs, &path(4), 4, &mut |batch| {
        seqs.extend(batch.ops.map(|op| op.seq));
        Ok(())
    })
    .unwrap();
    assert_eq!(seqs, [2, 3, 4, 7, 8, 9]);
    assert_eq!(salvage.records, 6);
    assert_eq!(salvage.lost, [0..starts[1], starts[4]..starts[6], starts[9]..end]);
}

#[test]
fn an_undamaged_wal_loses_nothing() {
    let fs = disk();
    let mut wal = wal(&fs, 4);
    append(&mut wal, 9, 3, 0);
    let salvage = salvage(&fs, &path(4), 4, &mut |_| Ok(())).unwrap();
    assert_eq!(salvage, Salvage { records: 1, lost: vec![] });
}

#[test]
fn zeros_ahead_of_a_writer_are_named_as_such() {
    for zeros in [1, 7, 12, 100, 4096, 3 << 20] {
        let fs = disk();
        let mut wal = wal(&fs, 4);
        append(&mut wal, 9, 3, 0);
        let end = wal.bytes();
        let mut file = fs.append(&path(4)).unwrap();
        file.append(&vec![0; zeros]).unwrap();
        let last = || WalDump::open(&fs, &path(4), 4).unwrap().map(Result::unwrap).last().unwrap();
        let bytes = zeros as u64;
        assert_eq!(last(), WalLine::Damage { offset: end, bytes, what: ZEROS });
        // One byte that is none makes all of it damage.
        file.append(&[1]).unwrap();
        assert!(matches!(last(), WalLine::Damage { what, .. } if what != ZEROS));
    }
}

#[test]
fn records_around_what_the_device_cannot_read_are_sound() {
    let fs = disk();
    let mut wal = wal(&fs, 4);
    // More than is read at a time.
    let starts: Vec<u64> = (1..=40_000).map(|seq| append(&mut wal, seq, 1, 0)).collect();
    assert!(wal.bytes() > 2 << 20, "{}", wal.bytes());
    let bad = 300 * 4096..301 * 4096;
    fs.set_unreadable(&path(4), bad.clone());
    let mut seqs = Vec::new();
    let salvage = salvage(&fs, &path(4), 4, &mut |batch| {
        seqs.extend(batch.ops.map(|op| op.seq));
        Ok(())
    })
    .unwrap();
    let first = starts.iter().rposition(|start| *start <= bad.start).unwrap();
    let next = starts.iter().position(|start| *start >= bad.end).unwrap();
    let lost = starts[first]..starts[next];
    assert_eq!(salvage.lost, std::slice::from_ref(&lost));
    assert_eq!(seqs.len(), 40_000 - (next - first));
    let damage = WalDump::open(&fs, &path(4), 4).unwrap().map(|line| line.unwrap());
    let damage: Vec<WalLine> =
        damage.filter(|line| matches!(line, WalLine::Damage { .. })).collect();
    assert!(
        matches!(&damage[..], [WalLine::Damage { what: "the device cannot read it", .. }]),
        "{damage:?}"
    );
}
