use super::*;
use crate::base::config::Codec;
use crate::base::key::SEQ_MAX;
use crate::base::ranges::RangeDelete;
use crate::table::blob::BlobRef;
use crate::table::testing::{World, entries, options, path};

#[test]
fn counts_what_was_written() {
    let world = World::new(64 << 20);
    let rows = entries(500, 3, 1);
    let table = world.open(world.write(1, options(Codec::Zstd(3), 1024), &rows));
    let counts = table.verify().unwrap();
    assert_eq!(counts.entries, rows.len() as u64);
    assert_eq!(counts.blocks, table.meta.blocks);
    assert!(counts.blocks > 20);
    assert_eq!(counts.bytes, world.fs.content(&path(1)).unwrap().len() as u64);
    assert_eq!(counts.range_deletes, 0);
}

#[test]
fn every_flipped_byte_is_found() {
    let ranges = RangeDeletes::new([RangeDelete { start: b"a".into(), end: b"zz".into(), seq: 5 }]);
    for codec in [Codec::None, Codec::Lz4, Codec::Zlib(6), Codec::Zstd(3)] {
        let world = World::new(64 << 20);
        let meta = world.write_with(1, options(codec, 512), &entries(40, 3, 2), &ranges);
        world.open(meta.clone()).verify().unwrap();
        for at in 0..meta.file_bytes {
            for xor in [1, 0x80] {
                assert!(world.fs.corrupt(&path(1), at, xor));
                let result = world.open(meta.clone()).verify();
                assert!(result.as_ref().is_err_and(|e| e.is_corruption()), "{at} {result:?}");
                assert!(world.fs.corrupt(&path(1), at, xor));
            }
        }
        world.open(meta).verify().unwrap();
    }
}

#[test]
fn a_damaged_table_is_never_read_wrong() {
    let rows = entries(40, 2, 3);
    let world = World::new(64 << 20);
    let meta = world.write(1, options(Codec::Lz4, 512), &rows);
    for at in 0..meta.file_bytes {
        world.fs.corrupt(&path(1), at, 0x10);
        let other = TableMeta { id: 1000 + at, ..meta.clone() };
        let table = Table::new(other, path(1), &world.shared);
        for (key, seq, _, value) in rows.iter().step_by(7) {
            match table.get(key, hash(key), *seq) {
                Ok(Some(found)) => assert_eq!(&*found.value, value.as_slice()),
                Ok(None) => panic!("lost {key:?} by a flip at {at}"),
                Err(error) => assert!(error.is_corruption()),
            }
        }
        world.fs.corrupt(&path(1), at, 0x10);
    }
}

#[test]
fn what_the_manifest_says_is_checked() {
    let world = World::new(64 << 20);
    let meta = world.write(1, options(Codec::None, 512), &entries(40, 1, 3));
    let changed = [
        TableMeta { entries: meta.entries + 1, ..meta.clone() },
        TableMeta { largest: b"x".to_vec(), ..meta.clone() },
        TableMeta { max_seq: SEQ_MAX, ..meta.clone() },
        TableMeta { file_bytes: meta.file_bytes - 1, ..meta.clone() },
    ];
    for meta in changed {
        assert!(world.open(meta).verify().unwrap_err().is_corruption());
    }
}

#[test]
fn a_table_of_range_deletes_or_blobs_is_sound() {
    let world = World::new(64 << 20);
    let ranges = RangeDeletes::new([RangeDelete { start: b"a".into(), end: b"k".into(), seq: 5 }]);
    let meta = world.write_with(1, options(Codec::Lz4, 512), &[], &ranges);
    assert_eq!((meta.min_seq, meta.max_seq, meta.entries), (5, 5, 0));
    let table = world.open(meta);
    assert_eq!(table.verify().unwrap().range_deletes, 1);
    assert_eq!(*table.range_deletes().unwrap(), ranges);

    let blob = |file| BlobRef { file, bytes: 9 }.encode();
    let rows = [
        (b"a".to_vec(), 4, Kind::Blob, blob(9)),
        (b"b".to_vec(), 3, Kind::Blob, blob(7)),
        (b"c".to_vec(), 2, Kind::Blob, blob(9)),
    ];
    let meta = world.write(2, options(Codec::Lz4, 512), &rows);
    assert_eq!(meta.blobs, [7, 9]);
    world.open(meta).verify().unwrap();
}

#[test]
fn a_table_is_these_bytes() {
    let ranges = RangeDeletes::new([RangeDelete { start: b"b".into(), end: b"c".into(), seq: 3 }]);
    let rows = [
        (b"ka".to_vec(), 7, Kind::Put, b"one".to_vec()),
        (b"kbc".to_vec(), 5, Kind::Delete, b"".to_vec()),
    ];
    let world = World::new(64 << 20);
    let meta = world.write_with(1, options(Codec::None, 4096), &rows, &ranges);
    let content = world.fs.content(&path(1)).unwrap();
    let hex: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
    // One frame after the other, then the footer; see docs/format/table.md.
    let expected = [
        "6f6e656b616263110001000300030003000200000001000000030000000300000005000000000000",
        "000100000000000000310000000065867e03",
        "00008000100000000080000000000000000000000000000401000000000000100000002000000000",
        "00004000000020000010000000000000000002080000000006060606060646000000008cea7e85",
        "010162016301030700000000c700df57",
        "003a0b6b626301000000030000000000000003000000000000000000000000060000000000002600",
        "00000062d6fec7",
        "010162036b6263000307020101050301313a0013000000007eceb50d",
        "3a000000000000004f00000089000000000000001000000099000000000000002f000000c8000000",
        "000000001c00000001000000e063e2105348414c4574626c",
    ];
    assert_eq!(hex, expected.concat());
    assert_eq!(world.open(meta).verify().unwrap().entries, 2);
}
