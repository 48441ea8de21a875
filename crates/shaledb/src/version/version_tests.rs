//! Versions made by edits: what is shared, what is refused, and range deletes.

use super::*;
use crate::base::config::Codec;
use crate::base::key::Kind;
use crate::base::ranges::RangeDelete;
use crate::base::stats::Recorder;
use crate::fs::mem::{Call, MemClock, MemFs};
use crate::fs::{Env, Fs};
use crate::table::{TableEnv, TableOptions, TableWriter, Why};
use std::path::PathBuf;

struct World {
    fs: MemFs,
    env: Arc<TableEnv>,
}

impl World {
    fn new() -> World {
        let fs = MemFs::new();
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        World { fs, env: TableEnv::new(env, 8 << 20, Arc::new(Recorder::new())) }
    }

    fn open(&self, meta: TableMeta) -> Arc<Table> {
        let path = PathBuf::from(format!("/{}.table", meta.id));
        Table::new(meta, path, &self.env)
    }

    fn apply(&self, version: &Version, edit: &TreeEdit) -> Result<Version> {
        version.apply(edit, &|meta| self.open(meta))
    }

    /// Writes a table of `keys` and a range delete.
    fn write(&self, id: FileId, keys: &[&str], delete: Option<RangeDelete>) -> TableMeta {
        let file = self.fs.create(&PathBuf::from(format!("/{id}.table"))).unwrap();
        let options = TableOptions {
            codec: Codec::None,
            why: Why::Set,
            dictionary: crate::table::TableDictionary::None,
            block_bytes: 1024,
            filter_bits: 10,
            tree: 1,
        };
        let mut writer = TableWriter::new(file, id, options);
        for key in keys {
            writer.add(key.as_bytes(), id, Kind::Put, &[7; 100]).unwrap();
        }
        writer.add_range_deletes(&RangeDeletes::new(delete));
        writer.finish().unwrap()
    }
}

fn meta(id: FileId, smallest: &str, largest: &str) -> TableMeta {
    let (smallest, largest) = (smallest.into(), largest.into());
    TableMeta { id, file_bytes: 10, smallest, largest, max_seq: id, ..TableMeta::default() }
}

fn edit(removed: &[(usize, FileId)], added: &[(usize, TableMeta)]) -> TreeEdit {
    TreeEdit { tree: 1, removed: removed.to_vec(), added: added.to_vec(), flushed_seq: None }
}

fn ids(version: &Version) -> Vec<(usize, FileId)> {
    version.tables().map(|(level, table)| (level, table.meta.id)).collect()
}

#[test]
fn edits_make_versions_that_share_what_stays() {
    let world = World::new();
    let added = [(0, meta(1, "a", "m")), (0, meta(2, "c", "z")), (6, meta(3, "a", "c"))];
    let first = world.apply(&Version::new(), &edit(&[], &added)).unwrap();
    assert_eq!(ids(&first), [(0, 2), (0, 1), (6, 3)]);
    assert_eq!((first.bytes(), first.table_count()), (30, 3));
    // Table 1 moves down without being opened again.
    let moved = edit(&[(0, 1)], &[(2, meta(1, "a", "m"))]);
    let second = first.apply(&moved, &|_| panic!("opened")).unwrap();
    assert_eq!(ids(&second), [(0, 2), (2, 1), (6, 3)]);
    assert!(Arc::ptr_eq(first.table(0, 1).unwrap(), second.table(2, 1).unwrap()));
    assert!(second.table(0, 1).is_none());
    for level in [1, 3, 4, 5, 6] {
        assert!(Arc::ptr_eq(&first.levels[level], &second.levels[level]));
    }
    let shape = second.shape();
    assert_eq!(shape.levels.len(), LEVELS);
    assert_eq!(shape.levels[2][0].id, 1);
    let empty = world.apply(&second, &edit(&[(0, 2), (2, 1), (6, 3)], &[])).unwrap();
    assert!(empty.is_empty());
    let again = Version::from_levels(vec![
        vec![world.open(meta(1, "a", "m")), world.open(meta(2, "c", "z"))],
        vec![],
    ]);
    assert_eq!(ids(&again.unwrap()), [(0, 2), (0, 1)]);
}

#[test]
fn contradictions_are_refused() {
    let world = World::new();
    let added = [(0, meta(1, "a", "m")), (3, meta(2, "a", "c")), (3, meta(3, "e", "f"))];
    let version = world.apply(&Version::new(), &edit(&[], &added)).unwrap();
    let refused = |removed: &[(usize, FileId)], added: &[(usize, TableMeta)], why: &str| {
        let error = world.apply(&version, &edit(removed, added)).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)));
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(&[(0, 9)], &[], "is not there");
    refused(&[(1, 1)], &[], "is not there");
    refused(&[(0, 1), (0, 1)], &[], "twice");
    refused(&[(0, 1), (3, 1)], &[], "twice");
    refused(&[(9, 1)], &[], "no level 9");
    refused(&[], &[(7, meta(9, "a", "b"))], "no level 7");
    refused(&[], &[(1, meta(1, "a", "b"))], "there already");
    refused(&[], &[(1, meta(9, "a", "b")), (2, meta(9, "a", "b"))], "twice");
    refused(&[], &[(3, meta(9, "c", "d"))], "overlapping");
    refused(&[], &[(3, meta(9, "d", "c"))], "ends before");
    assert_eq!(ids(&version), [(0, 1), (3, 2), (3, 3)]);
    let wrong = vec![vec![], vec![world.open(meta(1, "a", "b")), world.open(meta(2, "b", "c"))]];
    assert!(Version::from_levels(wrong).is_err());
    assert!(Version::from_levels(vec![vec![]; LEVELS + 1]).is_err());
}

#[test]
fn range_deletes_are_read_once_and_kept() {
    let world = World::new();
    let delete =
        |start: &str, end: &str, seq| RangeDelete { start: start.into(), end: end.into(), seq };
    let a = world.write(1, &["a"], Some(delete("b", "d", 5)));
    let b = world.write(2, &["k"], Some(delete("c", "e", 9)));
    let c = world.write(3, &["x"], None);
    let first = world.apply(&Version::new(), &edit(&[], &[(0, a), (0, b)])).unwrap();
    assert!(first.has_range_deletes());
    let all = Arc::clone(first.range_deletes().unwrap());
    let expected = RangeDeletes::new([delete("b", "d", 5), delete("c", "e", 9)]);
    assert_eq!(*all, expected);
    // A change that has nothing to do with range deletes keeps the set.
    let second = world.apply(&first, &edit(&[], &[(0, c)])).unwrap();
    let reads = world.fs.counts().of(Call::Read);
    assert!(Arc::ptr_eq(second.range_deletes().unwrap(), &all));
    assert_eq!(world.fs.counts().of(Call::Read), reads);
    // One that removes a table with range deletes does not.
    let third = world.apply(&second, &edit(&[(0, 2)], &[])).unwrap();
    assert_eq!(**third.range_deletes().unwrap(), RangeDeletes::new([delete("b", "d", 5)]));
    let fourth = world.apply(&third, &edit(&[(0, 1)], &[])).unwrap();
    assert!(!fourth.has_range_deletes() && fourth.range_deletes().unwrap().is_empty());
}

#[test]
fn bytes_of_a_range() {
    let world = World::new();
    let keys: Vec<String> = (0..1000).map(|n| format!("{n:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let tables: Vec<(usize, TableMeta)> = [(1, 0..500), (2, 500..1000)]
        .map(|(id, range)| (1, world.write(id, &keys[range], None)))
        .to_vec();
    let version = world.apply(&Version::new(), &edit(&[], &tables)).unwrap();
    let total = version.bytes();
    let bytes = |lower: &str, upper: Option<&str>| {
        version.approximate_bytes(lower.as_bytes(), upper.map(str::as_bytes)).unwrap()
    };
    assert_eq!(bytes("", None), total);
    assert_eq!(bytes("", Some("zzz")), total);
    assert_eq!((bytes("b", Some("a")), bytes("x", None), bytes("", Some("0"))), (0, 0, 0));
    let quarter = bytes("0100", Some("0350"));
    assert!(quarter > total / 5 && quarter < total / 3, "{quarter} of {total}");
    let middle = bytes("0250", Some("0750"));
    assert!(middle > total * 2 / 5 && middle < total * 3 / 5, "{middle} of {total}");
}
