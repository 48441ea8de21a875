//! A key-value engine as a store. The workloads implement their traits for [`KvStore`], each in its
//! own module.

use super::tables::latches::Latches;
use super::tables::sequence::Sequence;
use super::tables::sort::Sorter;
use crate::setup::Setup;
use crate::stores::engine::{DeviceBound, Engine, Handle, Metrics, Result};
use crate::stores::store::Store;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Memory for sorting the entries of one index.
const SORT_BYTES: usize = 16 << 20;

/// An open engine and what its sessions share.
pub struct KvStore<E> {
    /// The engine.
    pub engine: E,
    /// Taken by whoever reads a row to write it. They are made for the first session that has to.
    pub latches: LazyLock<Latches>,
    /// For each tree, the numbers of a table whose primary key counts up.
    pub sequences: Box<[Sequence]>,
    folder: PathBuf,
    setup: Setup,
}

/// Refuses a bound that the engine would not hold.
fn can_be_bounded<E: Engine>(setup: &Setup) -> Result<()> {
    match (setup.device_bound, E::DEVICE_BOUND) {
        (Some(_), DeviceBound::Refused) => Err(format!(
            "{} cannot be held to --device-bound; shale and rocksdb can. Leave that flag out, or \
             {0} out of --engines",
            E::NAME
        )
        .into()),
        _ => Ok(()),
    }
}

impl<E: Engine> KvStore<E> {
    /// Opens the engine in `folder` with a workload's trees, or makes it there; see
    /// [`Engine::open`].
    ///
    /// # Errors
    ///
    /// The engine cannot open or create the store.
    pub fn open(folder: &Path, setup: &Setup, trees: &[&str]) -> Result<KvStore<E>> {
        can_be_bounded::<E>(setup)?;
        Ok(KvStore::of(E::open(folder, setup, trees)?, folder, setup, trees))
    }

    /// As [`KvStore::open`], for updates as well: see [`Engine::open_for_updates`].
    ///
    /// # Errors
    ///
    /// The engine has no transactions for it, or cannot open or create the store.
    pub fn open_for_updates(folder: &Path, setup: &Setup, trees: &[&str]) -> Result<KvStore<E>> {
        can_be_bounded::<E>(setup)?;
        Ok(KvStore::of(E::open_for_updates(folder, setup, trees)?, folder, setup, trees))
    }

    fn of(engine: E, folder: &Path, setup: &Setup, trees: &[&str]) -> KvStore<E> {
        KvStore {
            engine,
            latches: LazyLock::new(Latches::new),
            sequences: trees.iter().map(|_| Sequence::default()).collect(),
            folder: folder.to_owned(),
            setup: setup.clone(),
        }
    }

    /// Sorts the entries of an index that is created. Its files are beside the engine's folder,
    /// which is measured, and on the same device.
    pub fn sorter<const N: usize>(&self) -> Sorter<N> {
        Sorter::new(self.folder.parent().unwrap_or(&self.folder), SORT_BYTES)
    }

    /// Clears all trees that have something in them; their numbers begin anew. No handle is in use
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// The engine fails.
    pub fn clear(&self) -> Result<()> {
        for tree in 0..self.sequences.len() {
            let is_full = self.engine.handle()?.scan(tree, b"", 1, &mut |_, _| true)? > 0;
            if is_full {
                self.engine.clear_tree(tree)?;
                self.sequences[tree].forget();
            }
        }
        Ok(())
    }
}

impl<E: Engine> Store for KvStore<E> {
    fn name(&self) -> String {
        E::NAME.to_owned()
    }

    fn version(&self) -> String {
        E::version()
    }

    fn configuration(&self) -> Vec<(String, String)> {
        E::configuration(&self.setup)
    }

    fn folder(&self) -> Option<PathBuf> {
        Some(self.folder.clone())
    }

    fn notes(&self) -> Vec<String> {
        match (self.setup.device_bound, E::DEVICE_BOUND) {
            (Some(_), DeviceBound::Partly(note)) => vec![note.to_owned()],
            _ => Vec::new(),
        }
    }

    fn wait_idle(&self) -> Result<()> {
        self.engine.wait_idle()
    }

    fn metrics(&self) -> Result<Metrics> {
        self.engine.metrics()
    }

    fn close(self) -> Result<()> {
        self.engine.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::model::Model;
    use crate::stores::null::Null;

    #[test]
    fn an_engine_that_cannot_be_bounded_refuses_and_says_so() {
        let setup = Setup { device_bound: Some(1 << 20), ..Setup::default() };
        let dir = tempfile::tempdir().unwrap();
        let why = KvStore::<Model>::open(dir.path(), &setup, &["a"]).err().unwrap().to_string();
        assert!(why.contains("model cannot be held to --device-bound"), "{why}");
        KvStore::<Model>::open(dir.path(), &Setup::default(), &["a"]).unwrap();
        assert!(KvStore::<Null>::open(dir.path(), &setup, &["a"]).unwrap().notes().is_empty());
    }
}
