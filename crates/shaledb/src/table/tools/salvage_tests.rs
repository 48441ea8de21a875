use super::*;
use crate::base::config::Codec;
use crate::base::ranges::RangeDelete;
use crate::fs::Fs;
use crate::table::testing::{Entry, World, entries, options, path};

fn ranges() -> RangeDeletes {
    RangeDeletes::new([RangeDelete { start: b"user/a".to_vec(), end: b"user/b".to_vec(), seq: 3 }])
}

/// A table of one codec: the world, its rows, and the bytes of its file.
fn made(codec: Codec) -> (World, Vec<Entry>, TableMeta, Vec<u8>) {
    let world = World::new(1 << 24);
    let rows = entries(400, 2, 5);
    let meta = world.write_with(1, options(codec, 700), &rows, &ranges());
    let content = world.fs.content(&path(1)).unwrap();
    (world, rows, meta, content)
}

fn salvage(world: &World, content: &[u8]) -> Arc<SalvagedTable> {
    world.fs_create(1).append(content).unwrap();
    Arc::new(SalvagedTable::open(&world.shared.env, &path(1), 1, 0).unwrap())
}

fn read(table: &Arc<SalvagedTable>) -> Vec<Entry> {
    let mut scan = table.scan();
    scan.seek_first().unwrap();
    let mut found = Vec::new();
    while scan.valid() {
        found.push((scan.key().to_vec(), scan.seq(), scan.kind(), scan.value().to_vec()));
        scan.next().unwrap();
    }
    assert_eq!(found.len() as u64, table.entries);
    found
}

const CODECS: [Codec; 4] = [Codec::None, Codec::Lz4, Codec::Zlib(6), Codec::Zstd(3)];

#[test]
fn a_sound_table_loses_nothing() {
    for codec in CODECS {
        let (world, rows, meta, content) = made(codec);
        let table = salvage(&world, &content);
        assert_eq!(read(&table), rows);
        assert!(table.lost.is_empty() && table.ranges == ranges());
        assert_eq!((table.tree, table.meta.clone(), table.max_seq()), (Some(1), Some(meta), 1000));
        let mut scan = table.scan();
        for row in rows.iter().step_by(7) {
            scan.seek(&row.0, row.1).unwrap();
            assert_eq!((scan.key(), scan.seq()), (&row.0[..], row.1));
        }
    }
}

#[test]
fn a_damaged_block_loses_its_keys_only() {
    for codec in CODECS {
        let (world, rows, meta, mut content) = made(codec);
        let at = meta.data_bytes as usize / 2;
        content[at] ^= 4;
        let table = salvage(&world, &content);
        let found = read(&table);
        let [lost] = &table.lost[..] else { panic!("{:?}", table.lost) };
        assert!((lost.offset..lost.offset + lost.bytes).contains(&(at as u64)));
        assert_eq!(lost.entries, Some((rows.len() - found.len()) as u64));
        let (after, through) = (lost.after.as_ref().unwrap(), lost.through.as_ref().unwrap());
        for row in rows.iter().filter(|row| !found.contains(row)) {
            assert!(*after <= row.0 && row.0 <= *through);
        }
        assert!(found.len() > rows.len() * 9 / 10);
    }
}

#[test]
fn without_footer_or_index_the_blocks_are_found() {
    for codec in CODECS {
        let (world, rows, meta, sound) = made(codec);
        let footer = sound.len() - 20;
        let index = {
            let file = world.fs.open(&path(1)).unwrap();
            read_footer(&*file, sound.len() as u64).unwrap().index.offset as usize + 5
        };
        for at in [footer, index] {
            let mut content = sound.clone();
            content[at] ^= 4;
            let table = salvage(&world, &content);
            assert_eq!(read(&table), rows, "{codec}");
            assert_eq!((table.tree, &table.meta), (Some(1), &Some(meta.clone())), "{codec}");
            assert_eq!(table.ranges, ranges());
            let [lost] = &table.lost[..] else { panic!("{:?}", table.lost) };
            assert_eq!(lost.entries, Some(0));
        }
        // With the footer also a data block.
        let mut content = sound.clone();
        content[footer] ^= 4;
        content[meta.data_bytes as usize / 3] ^= 1;
        let found = read(&salvage(&world, &content));
        assert!(found.len() > rows.len() * 9 / 10 && found.len() < rows.len(), "{codec}");
        assert!(found.iter().all(|row| rows.contains(row)));
    }
}

#[test]
fn a_cut_file_keeps_what_is_before_the_cut() {
    for codec in CODECS {
        let (world, rows, meta, sound) = made(codec);
        let table = salvage(&world, &sound[..meta.data_bytes as usize / 2]);
        let found = read(&table);
        assert!(found.len() > rows.len() / 3 && rows.starts_with(&found), "{codec}");
        assert!(table.meta.is_none() && table.tree.is_none());
        let lost = table.lost.last().unwrap();
        assert_eq!((lost.entries, &lost.after), (None, &found.last().map(|row| row.0.clone())));
        // A hole before the cut.
        let mut content = sound[..meta.data_bytes as usize / 2].to_vec();
        content[1000] ^= 1;
        let table = salvage(&world, &content);
        let holed = read(&table);
        assert!(holed.len() < found.len() && holed.len() > found.len() / 2, "{codec}");
        assert_eq!(table.lost.len(), 2);
    }
    let (world, ..) = made(Codec::None);
    assert!(salvage(&world, b"").is_lost());
    assert!(salvage(&world, &[7; 3000]).is_lost());
}
