use super::*;
use crate::base::config::Config;
use crate::db::{Background, Db, OpenOptions, WriteOptions};
use crate::fs::Fs;
use crate::fs::mem::{MemClock, MemFs};
use std::sync::Arc;

#[test]
fn a_directory_and_its_files_are_described() {
    let fs = MemFs::new();
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let dir = Path::new("/db");
    let options =
        OpenOptions { env: env.clone(), background: Background::Stepped, read_only: false };
    assert!(matches!(directory_in(&env, dir), Err(Error::NoDatabase(_))));
    let db = Db::open_in(dir, Config::default(), options).unwrap();
    let tree = db.create_tree("t", TreeConfig { blob_bytes: 4096, ..TreeConfig::default() });
    let tree = tree.unwrap();
    tree.put(b"a", b"1").unwrap();
    tree.put(b"b", &[7; 100_000]).unwrap();
    db.flush().unwrap();
    tree.put_with(b"c", &[8; 5000], WriteOptions::SYNC).unwrap();
    drop(tree);
    db.close().unwrap();

    drop(fs.create(&dir.join("000099.table")).unwrap());
    drop(fs.create(&dir.join("notes")).unwrap());
    let found = directory_in(&env, dir).unwrap();
    assert!(found.damage.is_none());
    assert_eq!((found.trees.len(), found.trees[0].tables, &found.trees[0].name[..]), (1, 1, "t"));
    let mut kinds = BTreeMap::new();
    for file in &found.files {
        let path = dir.join(&file.name);
        let kind = match open_in(&env, &path) {
            Ok(Inspection::Table(table)) => {
                assert_eq!((table.tree, table.meta.entries), (found.trees[0].id, 2));
                assert_eq!(file.tree.as_deref(), Some("t"));
                "table"
            }
            Ok(Inspection::Wal(lines)) => {
                for line in lines {
                    assert!(matches!(line.unwrap(), WalLine::Record { .. }));
                }
                "wal"
            }
            Ok(Inspection::Manifest(lines)) => {
                for line in lines {
                    assert!(matches!(line.unwrap(), ManifestLine::Edit { .. }));
                }
                "manifest"
            }
            Ok(Inspection::Blob(blob)) => {
                assert!(blob.damage.is_none());
                assert!([5000, 100_000].contains(&blob.value_bytes));
                "blob"
            }
            Ok(Inspection::Current { manifest }) => {
                assert!(found.files.iter().any(|file| file.name == manifest));
                "current"
            }
            Err(error) if file.name == "000099.table" => {
                assert!(error.is_corruption());
                "bad"
            }
            Err(error) => {
                assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
                "other"
            }
        };
        let standing = match &file.name[..] {
            "000099.table" => Standing::Orphan,
            "notes" => Standing::Foreign,
            _ => Standing::Needed,
        };
        assert_eq!((file.standing, &file.damage), (standing, &None), "{}", file.name);
        *kinds.entry(kind).or_insert(0) += 1;
    }
    let blobs = kinds.remove("blob");
    assert_eq!(blobs, Some(2), "one in a table, one in the log");
    for kind in ["table", "wal", "manifest", "current", "bad", "other"] {
        assert!(kinds.contains_key(kind), "{kind}");
    }

    let table = found.files.iter().find(|f| f.tree.is_some() && f.level == Some(0)).unwrap();
    fs.remove(&dir.join(&table.name)).unwrap();
    let found = directory_in(&env, dir).unwrap();
    assert_eq!(found.files.last().map(|file| file.standing), Some(Standing::Missing));
    fs.remove(&dir.join("CURRENT")).unwrap();
    let found = directory_in(&env, dir).unwrap();
    assert!(found.damage.is_some() && found.trees.is_empty());
    assert!(found.files.iter().any(|file| file.standing == Standing::Unknown));
}
