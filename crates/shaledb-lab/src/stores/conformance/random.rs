//! Random work, compared with ordered maps.

use super::common::TREES;
use super::files::copy_still;
use crate::generate::Random;
use crate::setup::Setup;
use crate::stores::engine::{Batch, Engine, Failure, Handle, Result, TreeId};
use std::collections::BTreeMap;
use std::path::Path;

type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Does `steps` random operations on a store in `folder`, which is empty, and on ordered maps:
/// puts, gets of one and of several keys, deletes, batches over several trees, scans, cleared
/// trees, settling, closing and opening again, and opening a copy of the files as they are, which
/// is what the end of the process would leave. What is different is the error; it names the step
/// and the seed.
///
/// # Errors
///
/// The engine fails, or answers otherwise than the maps.
pub fn check<E: Engine>(folder: &Path, setup: &Setup, seed: u64, steps: u32) -> Result<()> {
    run(Check::<E>::new(folder, setup, seed, false)?, seed, steps)
}

/// As [`check`], with updates as well: the store is opened for them, sometimes, and at other times
/// without, as the steps of a run open it.
///
/// # Errors
///
/// As those of [`check`]; or the engine has no updates.
pub fn check_updates<E: Engine>(folder: &Path, setup: &Setup, seed: u64, steps: u32) -> Result<()> {
    run(Check::<E>::new(folder, setup, seed, true)?, seed, steps)
}

fn run<E: Engine>(mut check: Check<'_, E>, seed: u64, steps: u32) -> Result<()> {
    for step in 0..steps {
        check.step().map_err(|error| {
            Failure::from(format!("{}, seed {seed}, step {step}: {error}", E::NAME))
        })?;
    }
    check.reopen()?;
    check.compare_all()?;
    check.shut()
}

struct Check<'a, E: Engine> {
    folder: &'a Path,
    setup: &'a Setup,
    random: Random,
    /// A handle goes before its engine.
    handle: Option<E::Handle>,
    engine: Option<E>,
    trees: Vec<Tree>,
    copies: u32,
    /// Whether there are updates at all.
    updates: bool,
    /// Whether the store was opened for them.
    is_for_updates: bool,
}

impl<'a, E: Engine> Check<'a, E> {
    fn new(folder: &'a Path, setup: &'a Setup, seed: u64, updates: bool) -> Result<Check<'a, E>> {
        let random = Random::named(seed, "conformance", 0);
        let trees = vec![Tree::new(); TREES.len()];
        let mut check = Check {
            folder,
            setup,
            random,
            handle: None,
            engine: None,
            trees,
            copies: 0,
            updates,
            is_for_updates: updates,
        };
        check.open()?;
        Ok(check)
    }

    fn open(&mut self) -> Result<()> {
        let open = if self.is_for_updates { E::open_for_updates } else { E::open };
        let engine = open(&self.folder.join("store"), self.setup, &TREES)?;
        self.handle = Some(engine.handle()?);
        self.engine = Some(engine);
        Ok(())
    }

    fn shut(&mut self) -> Result<()> {
        self.handle = None;
        self.engine.take().map_or(Ok(()), E::close)
    }

    fn reopen(&mut self) -> Result<()> {
        self.shut()?;
        self.is_for_updates = self.updates && self.random.below(4) > 0;
        self.open()
    }

    fn handle(&mut self) -> Result<&mut E::Handle> {
        self.handle.as_mut().ok_or_else(|| "there is no handle".into())
    }

    fn step(&mut self) -> Result<()> {
        let tree = self.random.below(TREES.len() as u64) as TreeId;
        match self.random.below(1000) {
            0..200 if self.is_for_updates => self.update(tree),
            0..300 => self.put(tree),
            300..450 => self.delete(tree),
            450..600 => self.batch(),
            600..700 => self.get(tree),
            700..800 => self.multi_get(tree),
            800..900 => self.scan(tree),
            900..985 => self.scan_range(tree),
            985..990 => self.clear(tree),
            990..993 => self.engine.as_ref().map_or(Ok(()), E::wait_idle),
            993..996 => self.reopen().and_then(|()| self.compare_all()),
            996..998 => self.compare_a_copy(),
            _ => self.compare_all(),
        }
    }

    /// Few keys, so that they meet again; some are a prefix of others, and their bytes are those
    /// that a wrong order shows on.
    fn key(&mut self) -> Vec<u8> {
        let bytes = 1 + self.random.below(5) as usize;
        let letters = [0, 1, b'a', 0x7f, 0x80, 0xff];
        let letter = |random: &mut Random| letters[random.below(letters.len() as u64) as usize];
        let mut key: Vec<u8> = (0..bytes).map(|_| letter(&mut self.random)).collect();
        if self.random.below(20) == 0 {
            key.resize(300, b'k');
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let bytes = match self.random.below(100) {
            0..5 => 0,
            5..97 => self.random.below(400),
            _ => self.random.below(20_000),
        };
        // Half of each value is easy to compress.
        (0..bytes).map(|at| if at % 2 == 0 { b'v' } else { self.random.bits() as u8 }).collect()
    }

    fn put(&mut self, tree: TreeId) -> Result<()> {
        let (key, value) = (self.key(), self.value());
        self.handle()?.put(tree, &key, &value)?;
        self.trees[tree].insert(key, value);
        Ok(())
    }

    fn delete(&mut self, tree: TreeId) -> Result<()> {
        let key = self.key();
        self.handle()?.delete(tree, &key)?;
        self.trees[tree].remove(&key);
        Ok(())
    }

    fn batch(&mut self) -> Result<()> {
        let mut batch = Batch::new();
        for _ in 0..self.random.below(12) {
            let tree = self.random.below(TREES.len() as u64) as TreeId;
            let key = self.key();
            if self.random.below(3) == 0 {
                batch.delete(tree, &key);
                self.trees[tree].remove(&key);
            } else {
                let value = self.value();
                batch.put(tree, &key, &value);
                self.trees[tree].insert(key, value);
            }
        }
        self.handle()?.write(&batch)
    }

    fn get(&mut self, tree: TreeId) -> Result<()> {
        let key = self.key();
        let mut shown = None;
        let found = self.handle()?.get(tree, &key, &mut |value| shown = Some(value.to_vec()))?;
        if found != shown.is_some() || shown.as_ref() != self.trees[tree].get(&key) {
            let right = self.trees[tree].get(&key).map(Vec::len);
            let shown = shown.map(|value| value.len());
            return Err(format!(
                "get of {key:?} in tree {tree}: {found}, {shown:?} bytes instead of {right:?}"
            )
            .into());
        }
        Ok(())
    }

    /// Some of the keys are not there, and some are asked for twice.
    fn multi_get(&mut self, tree: TreeId) -> Result<()> {
        let mut keys: Vec<Vec<u8>> = (0..self.random.below(40)).map(|_| self.key()).collect();
        for _ in 0..self.random.below(4) * u64::from(!keys.is_empty()) {
            keys.push(keys[self.random.below(keys.len() as u64) as usize].clone());
        }
        let mut shown = BTreeMap::new();
        let mut again = None;
        let there = self.handle()?.multi_get(tree, &keys, &mut |at, value| {
            if shown.insert(at, value.to_vec()).is_some() {
                again = Some(at);
            }
        })?;
        let of = |at: usize| self.trees[tree].get(&keys[at]);
        let wrong = (0..keys.len()).find(|&at| shown.get(&at) != of(at));
        if let Some(at) = wrong.or(again) {
            return Err(format!(
                "multi-get of {keys:?} in tree {tree}: key {at} has {:?} bytes instead of {:?}{}",
                shown.get(&at).map(Vec::len),
                of(at).map(Vec::len),
                if again.is_some() { ", and was shown twice" } else { "" }
            )
            .into());
        }
        if there != shown.len() as u64 {
            let shown = shown.len();
            return Err(
                format!("multi-get in tree {tree}: {there} are there, {shown} shown").into()
            );
        }
        Ok(())
    }

    /// The new value has the old one in it.
    fn update(&mut self, tree: TreeId) -> Result<()> {
        let (key, value) = (self.key(), self.value());
        let mut before = None;
        let found = self.handle()?.update(tree, &key, &mut |old, new| {
            before = old.map(<[u8]>::to_vec);
            new.extend_from_slice(&value);
            new.extend_from_slice(old.unwrap_or_default().get(..3).unwrap_or(b"short"));
        })?;
        let right = self.trees[tree].get(&key);
        if before.as_ref() != right || found != right.is_some() {
            let (before, right) = (before.map(|old| old.len()), right.map(Vec::len));
            return Err(format!(
                "update of {key:?} in tree {tree}: {found}, {before:?} bytes instead of {right:?}"
            )
            .into());
        }
        let old = before.unwrap_or_default();
        let new = [&value, old.get(..3).unwrap_or(b"short")].concat();
        self.trees[tree].insert(key, new);
        Ok(())
    }

    fn scan(&mut self, tree: TreeId) -> Result<()> {
        let from = if self.random.below(8) == 0 { Vec::new() } else { self.key() };
        let rows = self.random.below(30);
        let stop = if self.random.below(3) == 0 { self.random.below(10) } else { u64::MAX };
        let mut seen = Vec::new();
        let shown = self.handle()?.scan(tree, &from, rows, &mut |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            seen.len() as u64 <= stop
        })?;
        let most = rows.min(stop.saturating_add(1)) as usize;
        let right = self.trees[tree].range(from.clone()..).take(most);
        let what = format!("from {from:?}, {rows} rows, stopped after {stop}");
        same_rows(&format!("scan of tree {tree} {what}"), shown, &seen, right)
    }

    /// The bounds may be keys that are there, and the end may be before the beginning.
    fn scan_range(&mut self, tree: TreeId) -> Result<()> {
        let from = if self.random.below(8) == 0 { Vec::new() } else { self.key() };
        let to = self.key();
        let stop = if self.random.below(3) == 0 { self.random.below(10) } else { u64::MAX };
        let mut seen = Vec::new();
        let shown = self.handle()?.scan_range(tree, &from, &to, &mut |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            seen.len() as u64 <= stop
        })?;
        let most = usize::try_from(stop).unwrap_or(usize::MAX).saturating_add(1);
        let right = self.trees[tree].range(from.clone()..).take_while(|(key, _)| **key < to);
        let what = format!("from {from:?} to {to:?}, stopped after {stop}");
        same_rows(&format!("scan of tree {tree} {what}"), shown, &seen, right.take(most))
    }

    fn clear(&mut self, tree: TreeId) -> Result<()> {
        self.handle = None;
        let engine = self.engine.as_ref().ok_or("there is no engine")?;
        engine.clear_tree(tree)?;
        self.handle = Some(engine.handle()?);
        self.trees[tree].clear();
        self.compare_all()
    }

    fn compare_all(&mut self) -> Result<()> {
        let trees = std::mem::take(&mut self.trees);
        let same = compare(self.handle()?, &trees);
        self.trees = trees;
        same
    }

    /// What was answered is in the files, and the files are a store at any moment.
    fn compare_a_copy(&mut self) -> Result<()> {
        self.copies += 1;
        let copy = self.folder.join(format!("copy-{}", self.copies));
        copy_still(&self.folder.join("store"), &copy)?;
        let engine = E::open(&copy, self.setup, &TREES)?;
        let mut handle = engine.handle()?;
        compare(&mut handle, &self.trees)
            .map_err(|error| format!("in a copy of the files: {error}"))?;
        drop(handle);
        engine.close()?;
        Ok(std::fs::remove_dir_all(&copy)?)
    }
}

/// Whether a scan has shown what it should.
fn same_rows<'t>(
    what: &str,
    shown: u64,
    seen: &Rows,
    right: impl Iterator<Item = (&'t Vec<u8>, &'t Vec<u8>)>,
) -> Result<()> {
    let right: Rows = right.map(|(key, value)| (key.clone(), value.clone())).collect();
    if *seen == right && shown == right.len() as u64 {
        return Ok(());
    }
    let keys = |rows: &Rows| rows.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    Err(format!("{what}: {shown} rows {:?} instead of {:?}", keys(seen), keys(&right)).into())
}

fn compare(handle: &mut impl Handle, trees: &[Tree]) -> Result<()> {
    for (tree, right) in trees.iter().enumerate() {
        let mut rows = right.iter();
        let mut wrong = None;
        let shown = handle.scan(tree, b"", u64::MAX, &mut |key, value| {
            let expected = rows.next();
            if expected.is_none_or(|(k, v)| k.as_slice() != key || v.as_slice() != value) {
                wrong = Some((key.to_vec(), expected.map(|(key, _)| key.clone())));
            }
            wrong.is_none()
        })?;
        if let Some((key, expected)) = wrong {
            return Err(format!("tree {tree} has {key:?} instead of {expected:?}").into());
        }
        if shown != right.len() as u64 {
            return Err(format!("tree {tree} has {shown} rows instead of {}", right.len()).into());
        }
    }
    Ok(())
}
