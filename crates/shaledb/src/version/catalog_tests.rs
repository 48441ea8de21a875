//! Edits that contradict the catalog are refused, and a snapshot says what the edits said.

use super::*;

fn table(id: FileId, smallest: &str, largest: &str) -> TableMeta {
    let (smallest, largest) = (smallest.into(), largest.into());
    TableMeta { id, smallest, largest, min_seq: id, max_seq: id, ..TableMeta::default() }
}

fn create(id: TreeId, name: &str) -> Edit {
    let trees_created = vec![(id, name.to_owned(), TreeConfig::default())];
    Edit { trees_created, ..Edit::default() }
}

fn change(tree: TreeId, removed: Vec<(usize, FileId)>, added: Vec<(usize, TableMeta)>) -> Edit {
    let trees = vec![TreeEdit { tree, removed, added, flushed_seq: None }];
    Edit { trees, ..Edit::default() }
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for edit in [
        create(1, "a"),
        create(2, "b"),
        change(1, vec![], vec![(0, table(10, "a", "m")), (0, table(11, "c", "z"))]),
        change(2, vec![], vec![(3, table(20, "a", "c")), (3, table(21, "d", "f"))]),
    ] {
        assert_eq!(catalog.check(&edit), Ok(()));
        catalog.apply(&edit);
    }
    catalog
}

/// No number follows the last one, so that it is not told by the next unused one.
#[test]
fn the_last_number_of_a_tree_is_used_once() {
    let mut catalog = catalog();
    let edit = create(TreeId::MAX, "last");
    assert_eq!(catalog.check(&edit), Ok(()));
    catalog.apply(&edit);
    let what = catalog.check(&create(TreeId::MAX, "again")).unwrap_err();
    assert!(what.contains("has been used before"), "{what}");
}

#[test]
fn contradictions_are_refused() {
    let catalog = catalog();
    let refused = |edit: &Edit, why: &str| {
        let what = catalog.check(edit).unwrap_err();
        assert!(what.contains(why), "{what}");
    };
    refused(&create(1, "c"), "has been used before");
    refused(&create(3, "a"), "the name `a` of another tree");
    refused(&create(3, &"x".repeat(2000)), "a name of 2000 bytes");
    refused(&Edit { trees_dropped: vec![3], ..Edit::default() }, "does not exist");
    refused(&Edit { trees_dropped: vec![1, 1], ..Edit::default() }, "does not exist");
    refused(&change(3, vec![], vec![]), "does not exist");
    refused(&Edit { trees_dropped: vec![1], ..change(1, vec![], vec![]) }, "does not exist");
    refused(&change(1, vec![(1, 10)], vec![]), "is not there");
    refused(&change(1, vec![(0, 20)], vec![]), "is not there");
    refused(&change(1, vec![(0, 10), (0, 10)], vec![]), "is not there");
    refused(&change(1, vec![], vec![(1, table(10, "a", "b"))]), "in use");
    refused(&change(1, vec![], vec![(1, table(20, "a", "b"))]), "in use");
    refused(&change(1, vec![], vec![(1, table(0, "a", "b"))]), "in use");
    refused(&change(1, vec![], vec![(9, table(30, "a", "b"))]), "level 9");
    refused(&change(1, vec![], vec![(1, table(30, "b", "a"))]), "ends before it starts");
    let empty = TableMeta { largest_exclusive: true, ..table(30, "b", "b") };
    refused(&change(1, vec![], vec![(1, empty)]), "ends before it starts");
    let seqs = TableMeta { min_seq: 50, ..table(30, "a", "b") };
    refused(&change(1, vec![], vec![(1, seqs)]), "sequence numbers");
    refused(&Edit { next_file: Some(3), ..Edit::default() }, "declared unused");
    let mut twice = change(1, vec![], vec![]);
    twice.trees.push(twice.trees[0].clone());
    refused(&twice, "changed twice");
    let mut logged = catalog.clone();
    logged.apply(&Edit { log: Some(LogStart { file: 9, seq: 9 }), ..Edit::default() });
    let back = Edit { log: Some(LogStart { file: 9, seq: 8 }), ..Edit::default() };
    assert!(logged.check(&back).is_err());
}

#[test]
fn a_table_can_move_and_a_name_can_be_used_again() {
    let mut catalog = catalog();
    let edit = change(1, vec![(0, 10)], vec![(2, table(10, "a", "m"))]);
    assert_eq!(catalog.check(&edit), Ok(()));
    catalog.apply(&edit);
    assert_eq!(catalog.trees[&1].tables[&10].0, 2);
    let edit = Edit { trees_dropped: vec![1], ..create(3, "a") };
    assert_eq!(catalog.check(&edit), Ok(()));
    catalog.apply(&edit);
    assert_eq!((catalog.next_tree, catalog.next_file), (4, 22));
    assert!(!catalog.trees.contains_key(&1));
    assert_eq!(catalog.check(&change(3, vec![], vec![(0, table(10, "a", "m"))])), Ok(()));
}

#[test]
fn a_snapshot_is_the_catalog() {
    let mut catalog = catalog();
    catalog.apply(&Edit { last_seq: Some(99), next_file: Some(50), ..Edit::default() });
    let snapshot = catalog.snapshot();
    let mut again = Catalog::default();
    assert_eq!(again.check(&snapshot), Ok(()));
    again.apply(&snapshot);
    assert_eq!(again, catalog);
}

#[test]
fn levels_are_sorted_and_checked() {
    let mut catalog = catalog();
    let ids = |catalog: &Catalog, tree, level: usize| -> Vec<FileId> {
        let tree: &CatalogTree = &catalog.trees[&tree];
        tree.levels()[level].iter().map(|meta| meta.id).collect()
    };
    assert_eq!(ids(&catalog, 1, 0), [11, 10]);
    assert_eq!(ids(&catalog, 2, 3), [20, 21]);
    assert!(catalog.check_levels().is_ok());
    // A range delete that ends where the next table starts does not overlap it.
    let touching = TableMeta { largest_exclusive: true, ..table(22, "f\0", "h") };
    catalog.apply(&change(2, vec![], vec![(3, touching), (3, table(23, "h", "i"))]));
    assert!(catalog.check_levels().is_ok());
    catalog.apply(&change(2, vec![], vec![(3, table(24, "i", "k"))]));
    let (a, b, what) = catalog.check_levels().unwrap_err();
    assert_eq!((a, b), (23, 24));
    assert!(what.contains("level 3"), "{what}");
}

fn prepared(xid: &str, trees: Vec<(TreeId, Vec<TableMeta>)>) -> Edit {
    let prepared = vec![PreparedTables { xid: xid.into(), trees }];
    Edit { prepared, ..Edit::default() }
}

fn decided(xid: &str) -> Edit {
    Edit { decided: vec![xid.into()], ..Edit::default() }
}

#[test]
fn tables_of_prepared_transactions_are_in_use_until_they_are_decided() {
    let mut catalog = catalog();
    let both = vec![(1, vec![table(30, "a", "b")]), (2, vec![table(31, "a", "b")])];
    let two = prepared("two", both.clone());
    assert_eq!(catalog.check(&two), Ok(()));
    catalog.apply(&two);
    assert_eq!(catalog.next_file, 32);
    let why = |edit: &Edit| catalog.check(edit).unwrap_err();
    assert!(why(&two).contains("prepared twice"));
    assert!(why(&decided("one")).contains("not prepared"));
    assert!(why(&prepared("one", both)).contains("in use"));
    let added = vec![(5, table(30, "a", "b"))];
    assert!(why(&change(1, vec![], added.clone())).contains("in use"));
    assert!(why(&prepared("one", vec![(1, vec![table(30, "b", "a")])])).contains("in use"));
    assert!(why(&prepared("one", vec![(1, vec![table(32, "b", "a")])])).contains("ends before"));

    let mut again = Catalog::default();
    again.apply(&catalog.snapshot());
    assert_eq!(again, catalog);
    // A commit puts them in their trees, of those that are still there.
    let mut dropped = catalog.clone();
    dropped.apply(&Edit { trees_dropped: vec![2], ..Edit::default() });
    let commit = Edit { trees: change(1, vec![], added).trees, ..decided("two") };
    for catalog in [&mut catalog, &mut dropped] {
        assert_eq!(catalog.check(&commit), Ok(()));
        catalog.apply(&commit);
        assert!(catalog.prepared.is_empty() && catalog.trees[&1].tables.contains_key(&30));
        assert!(catalog.check(&prepared("x", vec![(1, vec![table(31, "a", "b")])])).is_ok());
    }
}
