use super::threads::{ROWS, wrong_scan};
use super::*;
use crate::setup::Setup;
use crate::stores::engine::{Batch, Engine, Handle, Metrics, Op, Result, TreeId};
use crate::stores::model::Model;
use std::collections::BTreeSet;
use std::path::Path;

/// Forgets every fifth delete of a handle and the end of long batches.
const FORGETS: u8 = 0;
/// Shows a key once that is asked for twice.
const ONCE: u8 = 1;
/// Shows the end of a range as well.
const BEYOND: u8 = 2;
/// Lets others between the reading and the writing of an update.
const LOSES: u8 = 3;
/// Updates as if the key were not there.
const BLIND: u8 = 4;

/// An engine that is wrong in one way.
struct Wrong<const HOW: u8>(Model);

struct WrongHandle<const HOW: u8>(<Model as Engine>::Handle, u32);

impl<const HOW: u8> Engine for Wrong<HOW> {
    type Handle = WrongHandle<HOW>;
    const NAME: &'static str = "wrong";

    fn version() -> String {
        String::new()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Wrong<HOW>> {
        Model::open(dir, setup, trees).map(Wrong)
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Wrong<HOW>> {
        Model::open_for_updates(dir, setup, trees).map(Wrong)
    }

    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }

    fn handle(&self) -> Result<WrongHandle<HOW>> {
        Ok(WrongHandle(self.0.handle()?, 0))
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.0.clear_tree(tree)
    }

    fn wait_idle(&self) -> Result<()> {
        self.0.wait_idle()
    }

    fn metrics(&self) -> Result<Metrics> {
        self.0.metrics()
    }

    fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl<const HOW: u8> Handle for WrongHandle<HOW> {
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(tree, key, value)
    }

    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        self.0.get(tree, key, found)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.1 += 1;
        if HOW == FORGETS && self.1.is_multiple_of(5) { Ok(()) } else { self.0.delete(tree, key) }
    }

    fn write(&mut self, batch: &Batch) -> Result<()> {
        let mut part = Batch::new();
        for op in batch.iter().take(if HOW == FORGETS { 100 } else { usize::MAX }) {
            match op {
                Op::Put(tree, key, value) => part.put(tree, key, value),
                Op::Delete(tree, key) => part.delete(tree, key),
            }
        }
        self.0.write(&part)
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

    fn multi_get(
        &mut self,
        tree: TreeId,
        keys: &[impl AsRef<[u8]>],
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<u64> {
        if HOW != ONCE {
            return self.0.multi_get(tree, keys, found);
        }
        let mut there = 0;
        let mut seen = BTreeSet::new();
        for (at, key) in keys.iter().enumerate() {
            if seen.insert(key.as_ref()) {
                there += u64::from(self.0.get(tree, key.as_ref(), &mut |value| found(at, value))?);
            }
        }
        Ok(there)
    }

    fn scan_range(
        &mut self,
        tree: TreeId,
        from: &[u8],
        to: &[u8],
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let end = if HOW == BEYOND { [to, b"\0"].concat() } else { to.to_vec() };
        self.0.scan_range(tree, from, &end, row)
    }

    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        match HOW {
            LOSES => {
                let mut old = None;
                let found = self.0.get(tree, key, &mut |value| old = Some(value.to_vec()))?;
                std::thread::sleep(std::time::Duration::from_millis(1));
                let mut new = Vec::new();
                change(old.as_deref(), &mut new);
                self.0.put(tree, key, &new)?;
                Ok(found)
            }
            BLIND => self.0.update(tree, key, &mut |_, new| change(None, new)),
            _ => self.0.update(tree, key, change),
        }
    }
}

/// The error of a check of an engine that is wrong.
fn found(check: impl Fn(&Path, &Setup, u64, u32) -> Result<()>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let wrong = check(dir.path(), &setup(), 1, 4000).unwrap_err().to_string();
    assert!(wrong.starts_with("wrong, seed 1, step "), "{wrong}");
    // The model writes its file when it is closed: that is not what is to be found here.
    assert!(!wrong.contains("copy"), "{wrong}");
    wrong
}

#[test]
fn an_engine_that_forgets_or_tears_is_found() {
    found(check::<Wrong<FORGETS>>);
    for scans in [Scans::OfOneMoment, Scans::RowByRow] {
        let dir = tempfile::tempdir().unwrap();
        let torn = check_threads::<Wrong<FORGETS>>(dir.path(), &setup(), 10, scans).unwrap_err();
        assert!(torn.to_string().contains("of 200 rows"), "{torn}");
        check_threads::<Model>(dir.path(), &setup(), 20, scans).unwrap();
    }
}

#[test]
fn wrong_answers_for_several_keys_ranges_and_updates_are_found() {
    let wrong = found(check::<Wrong<ONCE>>);
    assert!(wrong.contains("multi-get of"), "{wrong}");
    let wrong = found(check::<Wrong<BEYOND>>);
    assert!(wrong.contains("scan of tree") && wrong.contains(" to "), "{wrong}");
    let wrong = found(check_updates::<Wrong<BLIND>>);
    assert!(wrong.contains("update of"), "{wrong}");
}

#[test]
fn lost_updates_are_found() {
    let dir = tempfile::tempdir().unwrap();
    check_counters::<Model>(dir.path(), &setup(), 50).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let wrong = check_counters::<Wrong<LOSES>>(dir.path(), &setup(), 50).unwrap_err().to_string();
    assert!(wrong.contains("updates were lost"), "{wrong}");
}

#[test]
fn scans_are_judged() {
    let wrong = |values: &[u64], scans| wrong_scan(values, [3, 5], scans);
    // Round 6 of writer 1, of which half was done, over round 3 of writer 0.
    let torn: Vec<u64> = (0..ROWS).map(|row| if row < 100 { 13 } else { 6 }).collect();
    let old: Vec<u64> = (0..ROWS).map(|row| if row < 199 { 13 } else { 4 }).collect();
    assert_eq!(wrong(&[13; ROWS as usize], Scans::OfOneMoment), None);
    assert_eq!(wrong(&torn, Scans::RowByRow), None);
    let why = wrong(&torn, Scans::OfOneMoment).unwrap();
    assert!(why.contains("parts of 2 batches"), "{why}");
    for scans in [Scans::OfOneMoment, Scans::RowByRow] {
        assert!(wrong(&old, scans).unwrap().contains("row 199"));
        assert!(wrong(&torn[1..], scans).unwrap().contains("199 of 200"));
    }
}

#[cfg(feature = "shale")]
#[test]
fn shale_does_what_it_must() {
    let dir = tempfile::tempdir().unwrap();
    check::<crate::stores::shale::Shale>(dir.path(), &setup(), 1, 4000).unwrap();
    check_threads::<crate::stores::shale::Shale>(dir.path(), &setup(), 50, Scans::OfOneMoment)
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    check_updates::<crate::stores::shale::Shale>(dir.path(), &setup(), 2, 4000).unwrap();
    check_counters::<crate::stores::shale::Shale>(dir.path(), &setup(), 200).unwrap();
}
