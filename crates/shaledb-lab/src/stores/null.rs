//! A store and an engine that do nothing: what a run on them costs is what the client costs. The
//! workloads implement their traits for [`Null`], each in its own module.

use crate::setup::Setup;
use crate::stores::engine::{Batch, DeviceBound, Engine, Handle, Metrics, Result, TreeId};
use crate::stores::store::Store;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Store for Null {
    fn name(&self) -> String {
        Null::NAME.to_owned()
    }

    fn version(&self) -> String {
        String::new()
    }

    fn configuration(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn folder(&self) -> Option<PathBuf> {
        None
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

impl Engine for Null {
    type Handle = NullHandle;
    const NAME: &'static str = "null";
    const DEVICE_BOUND: DeviceBound = DeviceBound::Whole;

    fn version() -> String {
        String::new()
    }

    fn open(_: &Path, _: &Setup, _: &[&str]) -> Result<Null> {
        Ok(Null)
    }

    fn open_for_updates(_: &Path, _: &Setup, _: &[&str]) -> Result<Null> {
        Ok(Null)
    }

    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }

    fn handle(&self) -> Result<NullHandle> {
        Ok(NullHandle { value: vec![b'x'; 256], new: Vec::new() })
    }

    fn clear_tree(&self, _: TreeId) -> Result<()> {
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// See [`Null`].
pub struct NullHandle {
    value: Vec<u8>,
    new: Vec<u8>,
}

/// The rows of a range, which is not looked at: about those of a prefix in the workload `kv`.
const RANGE_ROWS: u64 = 128;

impl Handle for NullHandle {
    #[inline(never)]
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        std::hint::black_box((tree, key, value));
        Ok(())
    }

    #[inline(never)]
    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        std::hint::black_box((tree, key));
        found(&self.value);
        Ok(true)
    }

    #[inline(never)]
    fn multi_get(
        &mut self,
        tree: TreeId,
        keys: &[impl AsRef<[u8]>],
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<u64> {
        std::hint::black_box(tree);
        for (at, key) in keys.iter().enumerate() {
            std::hint::black_box(key.as_ref());
            found(at, std::hint::black_box(&self.value));
        }
        Ok(keys.len() as u64)
    }

    #[inline(never)]
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        std::hint::black_box((tree, key));
        Ok(())
    }

    #[inline(never)]
    fn write(&mut self, batch: &Batch) -> Result<()> {
        std::hint::black_box(batch);
        Ok(())
    }

    #[inline(never)]
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        std::hint::black_box(tree);
        let rows = rows.min(200_000);
        for done in 1..=rows {
            if !row(std::hint::black_box(from), std::hint::black_box(&self.value)) {
                return Ok(done);
            }
        }
        Ok(rows)
    }

    #[inline(never)]
    fn scan_range(
        &mut self,
        tree: TreeId,
        from: &[u8],
        to: &[u8],
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        std::hint::black_box(to);
        self.scan(tree, from, RANGE_ROWS, row)
    }

    #[inline(never)]
    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        std::hint::black_box((tree, key));
        self.new.clear();
        change(Some(&self.value), &mut self.new);
        std::hint::black_box(&self.new);
        Ok(true)
    }
}
