//! Key-value engines agree with the model, and one that does not is found out.

use super::*;
use crate::setup::Setup;
use crate::stores::engine::{Batch, Engine, Handle, Metrics, Op, Result, TreeId};
use crate::stores::kv::KvStore;
use crate::stores::model::{Model, ModelHandle};
use crate::workloads::{insert, linkbench, rows, sysbench};
use std::path::Path;

const SEEDS: std::ops::Range<u64> = 0..4;

fn open<E: Engine>(dir: &Path, name: &str, trees: &[&str]) -> KvStore<E> {
    let setup = Setup { memory: 16 << 20, memtable: 1 << 20, ..Setup::default() };
    KvStore::open(&dir.join(name), &setup, trees).unwrap()
}

/// The three workloads with tables on a store and on the model.
fn compare<E: Engine>(seed: u64, steps: u32) -> [Result<()>; 3] {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let trees = &linkbench::over_kv::TREES;
    let (one, other) = (open::<E>(path, "g1", trees), open::<Model>(path, "g2", trees));
    let of_graph = graph(&one, &other, seed, steps, Some(16));
    let trees = &insert::over_kv::TREES;
    let (one, other) = (open::<E>(path, "s1", trees), open::<Model>(path, "s2", trees));
    let of_sales = sales(&one, &other, seed, steps);
    let trees = &sysbench::over_kv::TREES;
    let (one, other) = (open::<E>(path, "o1", trees), open::<Model>(path, "o2", trees));
    let of_oltp = oltp(&one, &other, seed, steps);
    [of_graph, of_sales, of_oltp]
}

/// A user's rows on a store and on the model.
fn compare_pairs<E: Engine>(seed: u64, steps: u32) -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let trees = &rows::over_kv::TREES;
    let (one, other) = (open::<E>(dir.path(), "1", trees), open::<Model>(dir.path(), "2", trees));
    pairs(&one, &other, seed, steps)
}

#[test]
fn the_model_agrees_with_itself() {
    for seed in SEEDS {
        compare::<Model>(seed, 600).into_iter().for_each(|outcome| outcome.unwrap());
        compare_pairs::<Model>(seed, 600).unwrap();
    }
}

#[cfg(feature = "shale")]
#[test]
fn shale_agrees_with_the_model() {
    for seed in SEEDS {
        let outcomes = compare::<crate::stores::shale::Shale>(seed, 1500);
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        compare_pairs::<crate::stores::shale::Shale>(seed, 1500).unwrap();
    }
}

/// A model that forgets each twentieth delete, or each twentieth put.
struct Forgetful<const PUTS: bool>(Model);
struct ForgetfulHandle<const PUTS: bool>(ModelHandle, u32);

impl<const PUTS: bool> Engine for Forgetful<PUTS> {
    type Handle = ForgetfulHandle<PUTS>;
    const NAME: &'static str = "forgetful";

    fn version() -> String {
        String::new()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Self> {
        Model::open(dir, setup, trees).map(Forgetful)
    }

    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }

    fn handle(&self) -> Result<ForgetfulHandle<PUTS>> {
        Ok(ForgetfulHandle(self.0.handle()?, 0))
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.0.clear_tree(tree)
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl<const PUTS: bool> ForgetfulHandle<PUTS> {
    fn forgets(&mut self) -> bool {
        self.1 += 1;
        self.1.is_multiple_of(20)
    }
}

impl<const PUTS: bool> Handle for ForgetfulHandle<PUTS> {
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(tree, key, value)
    }

    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        self.0.get(tree, key, found)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        if !PUTS && self.forgets() { Ok(()) } else { self.0.delete(tree, key) }
    }

    fn write(&mut self, batch: &Batch) -> Result<()> {
        let mut kept = Batch::new();
        for op in batch.iter() {
            match op {
                Op::Put(..) if PUTS && self.forgets() => {}
                Op::Put(tree, key, value) => kept.put(tree, key, value),
                Op::Delete(..) if !PUTS && self.forgets() => {}
                Op::Delete(tree, key) => kept.delete(tree, key),
            }
        }
        self.0.write(&kept)
    }

    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.0.scan(tree, from, rows, row)
    }
}

#[test]
fn a_store_that_forgets_is_found_out() {
    let of_puts = compare_pairs::<Forgetful<true>>(1, 3000);
    for outcome in compare::<Forgetful<false>>(1, 3000).into_iter().chain([of_puts]) {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("forgetful, seed 1") && error.contains("the model"), "{error}");
    }
}
