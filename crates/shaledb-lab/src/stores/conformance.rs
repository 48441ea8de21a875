//! What every engine of the lab must do, as checks that its own tests call: random work compared
//! with ordered maps, and batches and scans that are whole while others write. An engine that is
//! measured doing something else would be measured wrongly.

use crate::generate::Random;
use crate::setup::Setup;
use crate::stores::engine::{Batch, Engine, Failure, Handle, Result, TreeId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const TREES: [&str; 3] = ["first", "second", "third"];

type Tree = BTreeMap<Vec<u8>, Vec<u8>>;

/// Settings under which a store is small and yet flushes.
pub fn setup() -> Setup {
    Setup { memory: 64 << 20, memtable: 1 << 20, ..Setup::default() }
}

/// Does `steps` random operations on a store in `folder`, which is empty, and on ordered maps:
/// puts, gets, deletes, batches over several trees, scans, cleared trees, settling, closing and
/// opening again, and opening a copy of the files as they are, which is what the end of the process
/// would leave. What is different is the error; it names the step and the seed.
///
/// # Errors
///
/// The engine fails, or answers otherwise than the maps.
pub fn check<E: Engine>(folder: &Path, setup: &Setup, seed: u64, steps: u32) -> Result<()> {
    let mut check = Check::<E>::new(folder, setup, seed)?;
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
}

impl<'a, E: Engine> Check<'a, E> {
    fn new(folder: &'a Path, setup: &'a Setup, seed: u64) -> Result<Check<'a, E>> {
        let random = Random::named(seed, "conformance", 0);
        let trees = vec![Tree::new(); TREES.len()];
        let mut check =
            Check { folder, setup, random, handle: None, engine: None, trees, copies: 0 };
        check.open()?;
        Ok(check)
    }

    fn open(&mut self) -> Result<()> {
        let engine = E::open(&self.folder.join("store"), self.setup, &TREES)?;
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
        self.open()
    }

    fn handle(&mut self) -> Result<&mut E::Handle> {
        self.handle.as_mut().ok_or_else(|| "there is no handle".into())
    }

    fn step(&mut self) -> Result<()> {
        let tree = self.random.below(TREES.len() as u64) as TreeId;
        match self.random.below(1000) {
            0..300 => self.put(tree),
            300..450 => self.delete(tree),
            450..600 => self.batch(),
            600..800 => self.get(tree),
            800..985 => self.scan(tree),
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
        let right: Vec<_> = right.map(|(key, value)| (key.clone(), value.clone())).collect();
        if seen != right || shown != right.len() as u64 {
            let keys = |rows: &[(Vec<u8>, Vec<u8>)]| -> Vec<Vec<u8>> {
                rows.iter().map(|(key, _)| key.clone()).collect()
            };
            return Err(format!(
                "scan of tree {tree} from {from:?}, {rows} rows, stopped after {stop}: {shown} \
                 rows {:?} instead of {:?}",
                keys(&seen),
                keys(&right)
            )
            .into());
        }
        Ok(())
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

/// Copies a folder whose files may change under it: until one copy began and ended with the same
/// files, which the end of a process would have left as well.
fn copy_still(from: &Path, to: &Path) -> Result<()> {
    for _ in 0..200 {
        let before = stamps(from)?;
        if copy_folder(from, to).is_ok() && stamps(from)? == before {
            return Ok(());
        }
        std::fs::remove_dir_all(to)?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("the files in {} do not come to rest", from.display()).into())
}

type Stamps = BTreeMap<PathBuf, (u64, SystemTime)>;

/// Size and time of every file.
fn stamps(folder: &Path) -> std::io::Result<Stamps> {
    let mut all = Stamps::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(data) if data.is_dir() => all.extend(stamps(&entry.path())?),
            Ok(data) => {
                all.insert(entry.path(), (data.len(), data.modified()?));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// What an engine promises of a scan while others write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scans {
    /// What [`Handle::scan`] says: the rows are of one moment, and a batch is seen as a whole.
    OfOneMoment,
    /// Less: every row is whole and none is older than what was written when the scan began, but a
    /// batch may be seen in part. docs/peers.md says of which engine, and why.
    RowByRow,
}

const ROWS: u64 = 200;
const WRITERS: u64 = 2;

/// Writers that overwrite the same rows of two trees in batches, `rounds` each, beside readers: a
/// scan shows all rows, none that was overwritten before it began, and as much of one moment as
/// `scans` says.
///
/// # Errors
///
/// The engine fails, or a scan shows something else.
pub fn check_threads<E: Engine>(
    folder: &Path,
    setup: &Setup,
    rounds: u64,
    scans: Scans,
) -> Result<()> {
    let engine = E::open(&folder.join("threads"), setup, &TREES)?;
    // The last round that each writer is done with.
    let done = [const { AtomicU64::new(0) }; WRITERS as usize];
    let write = |writer: u64, rounds: std::ops::Range<u64>| -> Result<()> {
        let mut handle = engine.handle()?;
        let mut batch = Batch::new();
        for round in rounds {
            batch.clear();
            let value = (round * WRITERS + writer).to_be_bytes();
            for row in 0..ROWS {
                batch.put(0, &row.to_be_bytes(), &value);
                batch.put(1, &row.to_be_bytes(), &value);
            }
            handle.write(&batch)?;
            done[writer as usize].store(round, Ordering::Release);
        }
        Ok(())
    };
    write(0, 0..1)?;
    let read = |tree: TreeId| -> Result<()> {
        let mut handle = engine.handle()?;
        for _ in 0..rounds {
            let done = done.each_ref().map(|round| round.load(Ordering::Acquire));
            let (mut values, mut whole) = (Vec::new(), true);
            handle.scan(tree, b"", u64::MAX, &mut |_, value| {
                match value.try_into() {
                    Ok(value) => values.push(u64::from_be_bytes(value)),
                    Err(_) => whole = false,
                }
                whole
            })?;
            if !whole {
                return Err(format!("a scan of tree {tree} shows a value of another size").into());
            }
            if let Some(wrong) = wrong_scan(&values, done, scans) {
                return Err(format!("a scan of tree {tree} {wrong}").into());
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let (write, read) = (&write, &read);
        let writers = (0..WRITERS).map(|writer| scope.spawn(move || write(writer, 1..rounds)));
        let readers = (0..2).map(|tree| scope.spawn(move || read(tree)));
        let threads: Vec<_> = writers.collect::<Vec<_>>().into_iter().chain(readers).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))
        };
        threads.into_iter().map(join).collect::<Result<Vec<()>>>()
    })?;
    engine.close()
}

/// What is wrong with the values of a scan that began when the writers were done with these rounds.
/// A value is its round times [`WRITERS`] plus its writer.
fn wrong_scan(values: &[u64], done: [u64; WRITERS as usize], scans: Scans) -> Option<String> {
    if values.len() as u64 != ROWS {
        return Some(format!("shows {} of {ROWS} rows", values.len()));
    }
    let is_old = |&value: &u64| value / WRITERS < done[(value % WRITERS) as usize];
    if let Some(at) = values.iter().position(is_old) {
        return Some(format!("shows row {at} as it was before the scan began"));
    }
    let batches = values.iter().collect::<BTreeSet<_>>().len();
    let is_torn = scans == Scans::OfOneMoment && batches > 1;
    is_torn.then(|| format!("shows parts of {batches} batches"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::engine::{Metrics, Op};
    use crate::stores::model::Model;

    /// Forgets every fifth delete of a handle and the end of long batches.
    struct Wrong(Model);

    struct WrongHandle(<Model as Engine>::Handle, u32);

    impl Engine for Wrong {
        type Handle = WrongHandle;
        const NAME: &'static str = "wrong";

        fn version() -> String {
            String::new()
        }

        fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Wrong> {
            Model::open(dir, setup, trees).map(Wrong)
        }

        fn configuration(_: &Setup) -> Vec<(String, String)> {
            Vec::new()
        }

        fn handle(&self) -> Result<WrongHandle> {
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

    impl Handle for WrongHandle {
        fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
            self.0.put(tree, key, value)
        }

        fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
            self.0.get(tree, key, found)
        }

        fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
            self.1 += 1;
            if self.1.is_multiple_of(5) { Ok(()) } else { self.0.delete(tree, key) }
        }

        fn write(&mut self, batch: &Batch) -> Result<()> {
            let mut part = Batch::new();
            for op in batch.iter().take(100) {
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
    }

    #[test]
    fn an_engine_that_forgets_or_tears_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let wrong = check::<Wrong>(dir.path(), &setup(), 1, 4000).unwrap_err().to_string();
        assert!(wrong.starts_with("wrong, seed 1, step "), "{wrong}");
        // The model writes its file when it is closed: that is not what is to be found here.
        assert!(!wrong.contains("copy"), "{wrong}");
        for scans in [Scans::OfOneMoment, Scans::RowByRow] {
            let dir = tempfile::tempdir().unwrap();
            let torn = check_threads::<Wrong>(dir.path(), &setup(), 10, scans).unwrap_err();
            assert!(torn.to_string().contains("of 200 rows"), "{torn}");
            check_threads::<Model>(dir.path(), &setup(), 20, scans).unwrap();
        }
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
    }
}
