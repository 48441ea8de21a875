//! A user's rows in one tree of a key-value engine.

use super::options::RowsOptions;
use super::store::{Pairs, PairsSession};
use crate::stores::engine::{Batch, Engine, Handle, Result};
use crate::stores::kv::KvStore;

/// The tree.
pub const TREES: [&str; 1] = ["rows"];
const TREE: usize = 0;

impl<E: Engine> Pairs for KvStore<E> {
    type Session<'s>
        = KvPairs<E::Handle>
    where
        Self: 's;

    fn create(&self, _: &RowsOptions) -> Result<()> {
        self.clear()
    }

    fn session(&self, _: &RowsOptions) -> Result<KvPairs<E::Handle>> {
        Ok(KvPairs { handle: self.engine.handle()?, batch: Batch::new() })
    }
}

/// One client's view of the tree.
pub struct KvPairs<H> {
    handle: H,
    batch: Batch,
}

impl<H: Handle> PairsSession for KvPairs<H> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(TREE, key, value);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.handle.write(&self.batch)?;
        self.batch.clear();
        Ok(())
    }

    fn get(&mut self, key: &[u8], see: &mut impl FnMut(&[u8])) -> Result<bool> {
        self.handle.get(TREE, key, &mut |value| see(value))
    }
}
