use super::*;
use crate::base::coding::hash;
use crate::base::config::Codec;
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::base::ranges::RangeDelete;
use crate::table::CursorOptions;
use crate::table::gone;
use crate::table::testing::{Entry, World, entries, options, path};

const CODECS: [Codec; 4] = [Codec::None, Codec::Lz4, Codec::Zlib(6), Codec::Zstd(3)];

fn naive<'a>(entries: &'a [Entry], key: &[u8], seq: SeqNo) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.0 == key && entry.1 <= seq)
}

#[test]
fn gets_find_what_a_naive_search_finds() {
    let entries = entries(400, 4, 7);
    for (id, codec) in (1..).zip(CODECS) {
        for block_bytes in [64, 1000, 16 * 1024] {
            let world = World::new(64 << 20);
            let table = world.open(world.write(id, options(codec, block_bytes), &entries));
            for (key, ..) in &entries {
                for seq in [0, 100, 400, 999, SEQ_MAX] {
                    let found = table.get(key, hash(key), seq).unwrap();
                    let found = found.map(|e| (key.clone(), e.seq, e.kind, e.value.to_vec()));
                    assert_eq!(found.as_ref(), naive(&entries, key, seq), "{codec} {block_bytes}");
                }
                let absent = [key.as_slice(), b"!"].concat();
                assert!(table.get(&absent, hash(&absent), SEQ_MAX).unwrap().is_none());
            }
            for absent in [&b""[..], b"user/", b"zzz"] {
                assert!(table.get(absent, hash(absent), SEQ_MAX).unwrap().is_none());
            }
        }
    }
}

#[test]
fn versions_that_spill_over_blocks_are_found() {
    // All versions of one key, over many blocks.
    let rows: Vec<Entry> =
        (0..500).rev().map(|seq| (b"key".to_vec(), seq, Kind::Put, vec![seq as u8; 20])).collect();
    let world = World::new(64 << 20);
    let table = world.open(world.write(1, options(Codec::None, 200), &rows));
    assert!(table.meta.blocks > 50);
    table.verify().unwrap();
    for seq in 0..500 {
        assert_eq!(table.get(b"key", hash(b"key"), seq).unwrap().unwrap().seq, seq);
    }
}

#[test]
fn nothing_is_read_before_it_is_needed_nor_twice() {
    let world = World::new(64 << 20);
    let rows = entries(300, 1, 7);
    let table = world.open(world.write(1, options(Codec::Lz4, 1000), &rows));
    assert_eq!(world.shared.files_open(), 0);
    assert!(table.range_deletes().unwrap().is_empty());
    let before = world.fs.counts().total();
    let get = || table.get(&rows[5].0, hash(&rows[5].0), SEQ_MAX).unwrap().unwrap();
    get();
    let first = world.fs.counts().total();
    assert!(first > before);
    get();
    assert_eq!(world.fs.counts().total(), first);
    assert_eq!(world.shared.files_open(), 1);
    let totals = world.shared.recorder.totals();
    assert_eq!(totals.get(Counter::DataMisses), 1);
    assert_eq!(totals.get(Counter::DataHits), 1);
    assert_eq!(totals.get(Counter::IndexMisses), 1);
    assert_eq!(totals.get(Counter::FilterChecks), 2);
}

#[test]
fn open_files_are_bounded() {
    let world = World::with_files_open_max(64 << 20, 4);
    let rows = entries(50, 1, 7);
    let tables: Vec<Arc<Table>> =
        (1..20).map(|id| world.open(world.write(id, options(Codec::Lz4, 1000), &rows))).collect();
    let get = |table: &Arc<Table>, row: usize| {
        let key = &rows[row].0;
        assert!(table.get(key, hash(key), SEQ_MAX).unwrap().is_some());
    };
    for round in 0..5 {
        for table in &tables {
            get(table, round);
            let open = tables.iter().filter(|table| table.file.load().is_some()).count();
            assert!((1..=4).contains(&open), "{open}");
        }
    }
    let held = Arc::clone(&tables[3]);
    drop(tables);
    get(&held, 9);
    assert!(world.shared.files_open() <= 4);
}

#[test]
fn memory_of_indexes_is_bounded_and_given_back() {
    let world = World::new(1 << 20);
    let rows = entries(2000, 1, 7);
    let tables: Vec<Arc<Table>> =
        (1..150).map(|id| world.open(world.write(id, options(Codec::Lz4, 1000), &rows))).collect();
    for _ in 0..2 {
        for table in &tables {
            assert!(table.get(&rows[9].0, hash(&rows[9].0), SEQ_MAX).unwrap().is_some());
            assert!(world.shared.memory.meta() <= world.shared.meta_bytes_max());
        }
    }
    let loaded = tables.iter().filter(|table| table.index.load().is_some()).count();
    assert!((3..149).contains(&loaded), "{loaded}");
    drop(tables);
    assert_eq!(world.shared.memory.meta(), 0);
}

#[test]
fn to_ask_a_loaded_filter_does_not_keep_it() {
    let world = World::new(1 << 20);
    let rows = entries(2000, 1, 7);
    let table = world.open(world.write(1, options(Codec::Lz4, 1000), &rows));
    let absent = [rows[0].0.as_slice(), b"!"].concat();
    assert!(!table.surely_lacks(&absent, hash(&absent), &mut 0));
    assert!(table.surely_lacks(&absent, hash(&absent), &mut (1 << 20)));
    assert!(!table.unload_unused(), "it was loaded just now");
    assert!(table.surely_lacks(&absent, hash(&absent), &mut 0));
    assert!(table.unload_unused() && !table.surely_lacks(&absent, hash(&absent), &mut 0));
}

#[test]
fn an_obsolete_table_goes_with_its_last_holder() {
    let world = World::new(64 << 20);
    let rows = entries(50, 1, 7);
    let table = world.open(world.write(1, options(Codec::Lz4, 1000), &rows));
    let cursor = table.cursor(CursorOptions::default());
    table.mark_obsolete();
    drop(table);
    assert!(world.fs.content(&path(1)).is_some());
    drop(cursor);
    assert!(world.fs.content(&path(1)).is_none());
    let kept = world.open(world.write(2, options(Codec::Lz4, 1000), &rows));
    drop(kept);
    assert!(world.fs.content(&path(2)).is_some());
}

#[test]
fn threads_leave_the_removal_of_tables_to_another() {
    let world = World::new(64 << 20);
    let woken = Arc::new(AtomicBool::new(false));
    let wake = Arc::clone(&woken);
    world.shared.wake_remover_by(move || wake.store(true, Relaxed));
    let rows = entries(50, 1, 7);
    let obsolete = |id| {
        let table = world.open(world.write(id, options(Codec::Lz4, 1000), &rows));
        assert!(table.get(&rows[9].0, hash(&rows[9].0), SEQ_MAX).unwrap().is_some());
        table.mark_obsolete();
        table
    };
    let engines = |tables: Vec<Arc<Table>>| {
        let thread = std::thread::spawn(move || {
            gone::engines_own_thread();
            drop(tables);
        });
        thread.join().unwrap();
    };
    let (second, third) = (obsolete(2), obsolete(3));
    world.shared.hurry_removals(|| true);
    engines(vec![obsolete(1)]);
    assert!(world.fs.content(&path(1)).is_none() && !woken.load(Relaxed), "room is short");
    world.shared.hurry_removals(|| false);
    engines((4..24).map(obsolete).collect());
    assert!(woken.swap(false, Relaxed));
    let left = (4..24).filter(|id| world.fs.content(&path(*id)).is_some()).count();
    assert_eq!(left, 16, "no more wait, or they would take much space");
    drop(second);
    assert!(world.fs.content(&path(2)).is_some() && woken.load(Relaxed));
    world.shared.remove_gone();
    assert!((2..3).chain(4..24).all(|id| world.fs.content(&path(id)).is_none()));
    world.shared.remove_last_gone();
    drop(third);
    assert!(world.fs.content(&path(3)).is_none(), "nobody is there to do it");
}

#[test]
fn split_points_cut_into_equal_parts() {
    let world = World::new(64 << 20);
    let rows = entries(3000, 1, 7);
    let table = world.open(world.write(1, options(Codec::None, 1000), &rows));
    assert!(table.split_points(1).unwrap().is_empty());
    let points = table.split_points(4).unwrap();
    assert_eq!(points.len(), 3);
    let quarter = table.meta.data_bytes as i64 / 4;
    for (at, point) in (1..).zip(&points) {
        let before = table.bytes_before(point).unwrap() as i64;
        assert!((before - at * quarter).abs() < 3000, "{before}");
    }
    assert!(points.is_sorted());
    assert_eq!(table.bytes_before(b"").unwrap(), 0);
    assert_eq!(table.bytes_before(b"zz").unwrap(), table.meta.data_bytes);
    let few = table.split_points(10_000).unwrap();
    assert!(few.len() as u64 >= table.meta.blocks - 2 && few.is_sorted());
}

#[test]
fn range_deletes_are_read_once() {
    let world = World::new(64 << 20);
    let ranges = RangeDeletes::new([RangeDelete { start: b"u".into(), end: b"v".into(), seq: 9 }]);
    let meta = world.write_with(1, options(Codec::Lz4, 1000), &entries(5, 1, 7), &ranges);
    let table = world.open(meta);
    assert_eq!(*table.range_deletes().unwrap(), ranges);
    assert!(Arc::ptr_eq(&table.range_deletes().unwrap(), &table.range_deletes().unwrap()));
}

#[test]
fn many_threads_read_one_table() {
    let world = World::with_files_open_max(300 << 10, 1);
    let rows = entries(500, 1, 7);
    let tables: Vec<Arc<Table>> =
        (1..4).map(|id| world.open(world.write(id, options(Codec::Lz4, 1000), &rows))).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (tables, rows) = (&tables, &rows);
            scope.spawn(move || {
                for at in 0..3000 {
                    let (key, seq, _, value) = &rows[(at * 7 + thread) % rows.len()];
                    let found = tables[at % 3].get(key, hash(key), *seq).unwrap().unwrap();
                    assert_eq!(*found.value, **value);
                }
            });
        }
    });
}
