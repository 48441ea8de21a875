use super::*;
use crate::base::config::Codec;
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::table::testing::{World, entries, options, path};

#[test]
fn a_table_is_described() {
    let world = World::new(1 << 20);
    let rows = entries(300, 3, 1);
    let ranges =
        RangeDeletes::new([RangeDelete { start: b"a".to_vec(), end: b"b\xff".to_vec(), seq: 9 }]);
    let meta = world.write_with(7, options(Codec::Lz4, 1000), &rows, &ranges);
    let found = TableInspection::open(&world.shared.env, &path(7), 7).unwrap();
    assert_eq!((found.tree, found.version), (1, 1));
    assert_eq!(found.meta, meta);
    assert_eq!(found.blocks.len() as u64, meta.blocks);
    assert_eq!(found.blocks.iter().map(|b| b.entries).sum::<u64>(), meta.entries);
    assert_eq!(found.blocks.iter().map(|b| b.deletes).sum::<u64>(), meta.deletes);
    assert_eq!(found.blocks.iter().map(|b| b.raw_bytes).sum::<u64>(), meta.raw_bytes);
    assert_eq!(found.codecs.iter().map(|c| c.bytes).sum::<u64>(), meta.data_bytes);
    assert!(found.codecs.iter().any(|c| c.codec == "lz4" && c.ratio > 1.1));
    assert!(found.filter_bits_per_entry > 4.0 && found.index_bytes > 0);
    assert_eq!(found.range_deletes[0].end, "b\\xff");
    assert!(found.damage.is_empty());
}

#[test]
fn damage_is_shown_where_it_is() {
    let world = World::new(1 << 20);
    let meta = world.write(7, options(Codec::None, 1000), &entries(300, 1, 2));
    let sound = world.fs.content(&path(7)).unwrap();
    let put = |content: &[u8]| world.fs_create(7).append(content).unwrap();
    let mut content = sound.clone();
    content[10] ^= 1;
    put(&content);
    let found = TableInspection::open(&world.shared.env, &path(7), 7).unwrap();
    assert_eq!(found.damage.len(), 1);
    assert!(found.blocks[0].damage.is_some() && found.blocks[1].damage.is_none());
    for at in [meta.data_bytes as usize + 400, sound.len() - 30] {
        let mut content = sound.clone();
        content[at] ^= 1;
        put(&content);
        match TableInspection::open(&world.shared.env, &path(7), 7) {
            Err(error) => assert!(error.is_corruption()),
            Ok(found) => assert_eq!(found.damage.len(), 1),
        }
    }
}
