//! An engine in memory that is plainly right: ordered maps under one lock. Tests compare others
//! with it. Its rows are kept in one file between a close and the next open.

use crate::setup::Setup;
use crate::stores::engine::{Batch, Engine, Handle, Metrics, Op, Result, TreeId};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

/// A tree in the file: JSON has no maps from bytes.
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// The engine.
pub struct Model {
    trees: Arc<RwLock<Vec<Tree>>>,
    names: Vec<String>,
    file: PathBuf,
}

/// See [`Model`].
pub struct ModelHandle {
    trees: Arc<RwLock<Vec<Tree>>>,
}

fn read(trees: &RwLock<Vec<Tree>>) -> RwLockReadGuard<'_, Vec<Tree>> {
    trees.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(trees: &RwLock<Vec<Tree>>) -> RwLockWriteGuard<'_, Vec<Tree>> {
    trees.write().unwrap_or_else(PoisonError::into_inner)
}

impl Engine for Model {
    type Handle = ModelHandle;
    const NAME: &'static str = "model";

    fn version() -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn open(dir: &Path, _: &Setup, trees: &[&str]) -> Result<Model> {
        std::fs::create_dir_all(dir)?;
        let file = dir.join("model.json");
        let mut kept: BTreeMap<String, Rows> = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error.into()),
        };
        let names: Vec<String> = trees.iter().map(|name| (*name).to_owned()).collect();
        let rows = |name: &String| kept.remove(name).unwrap_or_default().into_iter().collect();
        let trees = Arc::new(RwLock::new(names.iter().map(rows).collect()));
        Ok(Model { trees, names, file })
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Model> {
        Model::open(dir, setup, trees)
    }

    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }

    fn handle(&self) -> Result<ModelHandle> {
        Ok(ModelHandle { trees: self.trees.clone() })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        write(&self.trees)[tree].clear();
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        let trees = read(&self.trees);
        let rows = |tree: &Tree| tree.clone().into_iter().collect::<Rows>();
        let kept: BTreeMap<&String, Rows> = self.names.iter().zip(trees.iter().map(rows)).collect();
        Ok(std::fs::write(&self.file, serde_json::to_vec(&kept)?)?)
    }
}

impl Handle for ModelHandle {
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        write(&self.trees)[tree].insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        let trees = read(&self.trees);
        Ok(trees[tree].get(key).map(|value| found(value)).is_some())
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        write(&self.trees)[tree].remove(key);
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Result<()> {
        let mut trees = write(&self.trees);
        for op in batch.iter() {
            match op {
                Op::Put(tree, key, value) => trees[tree].insert(key.to_vec(), value.to_vec()),
                Op::Delete(tree, key) => trees[tree].remove(key),
            };
        }
        Ok(())
    }

    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let trees = read(&self.trees);
        let range = trees[tree].range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
        let mut shown = 0;
        for (key, value) in range.take(usize::try_from(rows).unwrap_or(usize::MAX)) {
            shown += 1;
            if !row(key, value) {
                break;
            }
        }
        Ok(shown)
    }

    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let mut trees = write(&self.trees);
        let mut new = Vec::new();
        change(trees[tree].get(key).map(Vec::as_slice), &mut new);
        Ok(trees[tree].insert(key.to_vec(), new).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_there_again_after_a_close() {
        let dir = tempfile::tempdir().unwrap();
        let store = Model::open(dir.path(), &Setup::default(), &["a", "b"]).unwrap();
        let mut handle = store.handle().unwrap();
        let mut batch = Batch::new();
        batch.put(1, b"k\xff", b"v\0");
        batch.put(1, b"l", b"");
        batch.put(0, b"k", b"old");
        batch.delete(0, b"k");
        handle.write(&batch).unwrap();
        store.close().unwrap();

        let store = Model::open(dir.path(), &Setup::default(), &["b", "c"]).unwrap();
        let mut handle = store.handle().unwrap();
        let mut rows = Vec::new();
        let mut see = |key: &[u8], value: &[u8]| {
            rows.push((key.to_vec(), value.to_vec()));
            true
        };
        assert_eq!(handle.scan(0, b"", 10, &mut see).unwrap(), 2);
        assert_eq!(handle.scan(0, b"", 1, &mut see).unwrap(), 1);
        assert_eq!(handle.scan(1, b"", 10, &mut see).unwrap(), 0);
        assert_eq!(rows[0], (b"k\xff".to_vec(), b"v\0".to_vec()));
        assert!(!handle.get(0, b"k", &mut |_| ()).unwrap());
    }
}
