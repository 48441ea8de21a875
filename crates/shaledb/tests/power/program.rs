//! What the recorded process does, step by step, and what must be there after each.

use crate::disk::Chance;
use shaledb::{
    Batch, Config, Db, Result, ScanOptions, Transaction, TransactionOptions, Tree, TreeConfig,
    WriteOptions,
};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    Put(String, Vec<u8>, Arc<Vec<u8>>),
    Delete(String, Vec<u8>),
    DeleteRange(String, Vec<u8>, Vec<u8>),
}

/// One step. Where there is a truth, it is whether a sync is asked for.
#[derive(Clone, Debug)]
pub enum Step {
    CreateTree(String),
    DropTree(String),
    Batch(Vec<Write>, bool),
    /// A transaction, whose writes fit its memory or (the second truth) do not.
    Transaction(Vec<Write>, bool, bool),
    Prepare(Vec<u8>, Vec<Write>, bool),
    Decide(Vec<u8>, bool),
    /// A bulk load.
    Load(String, Vec<(Vec<u8>, Arc<Vec<u8>>)>),
    Flush,
    Compact,
    Checkpoint(String),
    Reopen,
}

impl Step {
    /// Whether it, and all before it, is durable once it is done.
    pub fn is_durable(&self) -> bool {
        match self {
            Step::Batch(_, sync) | Step::Transaction(_, sync, false) => *sync,
            Step::Flush | Step::Compact | Step::Checkpoint(_) => false,
            _ => true,
        }
    }
}

/// What a database holds.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub trees: BTreeMap<String, BTreeMap<Vec<u8>, Arc<Vec<u8>>>>,
    /// What is prepared and not decided.
    pub prepared: BTreeMap<Vec<u8>, Vec<Write>>,
}

/// What is prepared is told by its name; its writes are not seen.
impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.trees == other.trees && self.prepared.keys().eq(other.prepared.keys())
    }
}

impl State {
    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::CreateTree(name) => drop(self.trees.insert(name.clone(), BTreeMap::new())),
            Step::DropTree(name) => drop(self.trees.remove(name)),
            Step::Batch(writes, _) | Step::Transaction(writes, ..) => self.write(writes),
            Step::Prepare(xid, writes, _) => {
                self.prepared.insert(xid.clone(), writes.clone());
            }
            Step::Decide(xid, commit) => {
                let writes = self.prepared.remove(xid).unwrap();
                if *commit {
                    self.write(&writes);
                }
            }
            Step::Load(tree, rows) => {
                self.trees.get_mut(tree).unwrap().extend(rows.iter().cloned());
            }
            Step::Flush | Step::Compact | Step::Checkpoint(_) | Step::Reopen => {}
        }
    }

    fn write(&mut self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Put(tree, key, value) => {
                    self.trees.get_mut(tree).unwrap().insert(key.clone(), value.clone());
                }
                Write::Delete(tree, key) => {
                    self.trees.get_mut(tree).unwrap().remove(key);
                }
                Write::DeleteRange(tree, start, end) => {
                    let rows = self.trees.get_mut(tree).unwrap();
                    rows.retain(|key, _| key < start || key >= end);
                }
            }
        }
    }

    pub fn of(db: &Db) -> Result<State> {
        let mut state = State::default();
        for name in db.tree_names() {
            let mut scan = db.tree(&name)?.scan_with(ScanOptions::default())?;
            let mut rows = BTreeMap::new();
            scan.seek_first()?;
            while scan.valid() {
                rows.insert(scan.key().to_vec(), Arc::new(scan.value()?.to_vec()));
                scan.next()?;
            }
            state.trees.insert(name, rows);
        }
        for prepared in db.prepared()? {
            state.prepared.insert(prepared.xid().to_vec(), Vec::new());
        }
        Ok(state)
    }

    /// What is otherwise than in another state, in a few words.
    pub fn against(&self, other: &State) -> String {
        let names = |state: &State| state.trees.keys().cloned().collect::<Vec<_>>();
        if names(self) != names(other) {
            return format!("trees {:?}, not {:?}", names(self), names(other));
        }
        for (name, rows) in &self.trees {
            let wanted = &other.trees[name];
            let differs = |key: &&Vec<u8>| rows.get(*key) != wanted.get(*key);
            if let Some(key) = rows.keys().chain(wanted.keys()).find(differs) {
                let length = |value: Option<&Arc<Vec<u8>>>| value.map(|value| value.len());
                let (found, wanted) = (length(rows.get(key)), length(wanted.get(key)));
                let key = key.escape_ascii();
                return format!("tree {name}, key {key}: {found:?} bytes, not {wanted:?}");
            }
        }
        format!("prepared {:?}, not {:?}", self.prepared.keys(), other.prepared.keys())
    }
}

/// The seed of the program with a long log.
pub const LONG_LOG: u64 = 1_000;

/// The program of a seed.
pub fn program(seed: u64) -> Vec<Step> {
    if seed == LONG_LOG {
        return long_log();
    }
    let mut chance = Chance(seed);
    let mut steps = vec![Step::CreateTree("a".into()), Step::CreateTree("b".into())];
    let mut prepared: Vec<Vec<u8>> = Vec::new();
    for number in 0..150u32 {
        let sync = chance.below(3) > 0;
        let step = match number % 15 {
            0 => Step::Load(["a", "b"][chance.below(2) as usize].into(), rows(number, &mut chance)),
            1 | 6 => {
                let xid = format!("x{number}").into_bytes();
                prepared.push(xid.clone());
                // Keys of its own: nobody else waits for its locks.
                let key = format!("prepared {number}").into_bytes();
                let large = number % 2 == 0;
                let count = if large { 40 } else { 2 };
                let write = |n: u8| {
                    let key = [&key[..], &[n]].concat();
                    Write::Put(["a", "b"][n as usize % 2].into(), key, value(number, 300))
                };
                Step::Prepare(xid, (0..count).map(write).collect(), large)
            }
            3 | 10 if !prepared.is_empty() => {
                let xid = prepared.remove(chance.below(prepared.len() as u64) as usize);
                Step::Decide(xid, chance.below(3) > 0)
            }
            4 => Step::Transaction(writes(number, 60, &mut chance), true, true),
            5 => Step::Flush,
            7 => Step::Transaction(writes(number, 4, &mut chance), sync, false),
            9 if number % 30 == 9 => Step::Compact,
            11 if number % 45 == 11 => Step::Checkpoint(format!("copy {number}")),
            12 if number % 30 == 12 => Step::Reopen,
            13 if number % 60 == 13 => Step::CreateTree(format!("tree {number}")),
            13 if number % 60 == 43 => Step::DropTree(format!("tree {}", number - 30)),
            14 => {
                let (tree, bytes) = (["a", "b"][number as usize % 2], 5_000 + number as usize * 50);
                let key = format!("large {}", chance.below(5)).into_bytes();
                Step::Batch(vec![Write::Put(tree.into(), key, value(number, bytes))], sync)
            }
            _ => {
                let count = 1 + chance.below(8);
                Step::Batch(writes(number, count, &mut chance), sync)
            }
        };
        steps.push(step);
    }
    steps
}

/// A program that writes much from one sync to the next.
fn long_log() -> Vec<Step> {
    let mut chance = Chance(LONG_LOG);
    let mut steps = vec![Step::CreateTree("a".into())];
    for number in 0..200u32 {
        let write = |_| {
            let at = chance.below(300);
            Write::Put("a".into(), key(at), value(number, 3_000 + number as usize))
        };
        let writes = (0..12).map(write).collect();
        steps.push(Step::Batch(writes, matches!(number, 80 | 150 | 190)));
    }
    steps
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:04}").into_bytes()
}

/// Bytes that say who wrote them, and do not compress much.
fn value(number: u32, length: usize) -> Arc<Vec<u8>> {
    let mut chance = Chance(number.into());
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize_with(length.max(4), || chance.below(256) as u8);
    Arc::new(bytes)
}

fn writes(number: u32, count: u64, chance: &mut Chance) -> Vec<Write> {
    let mut one = |_| {
        let tree = ["a", "b"][chance.below(2) as usize].to_owned();
        let at = chance.below(400);
        match chance.below(12) {
            0 => Write::Delete(tree, key(at)),
            1 => Write::DeleteRange(tree, key(at), key(at + 10)),
            _ => Write::Put(tree, key(at), value(number, 50 + chance.below(400) as usize)),
        }
    };
    (0..count).map(&mut one).collect()
}

fn rows(number: u32, chance: &mut Chance) -> Vec<(Vec<u8>, Arc<Vec<u8>>)> {
    let first = chance.below(300);
    (first..first + 60).map(|at| (key(at), value(number, 200))).collect()
}

/// Tells the recorder where the process is.
pub struct Report(std::fs::File);

impl Report {
    pub fn new(path: &Path) -> Report {
        Report(std::fs::File::create(path).unwrap())
    }

    fn say(&mut self, what: &str, number: usize) {
        self.0.write_all(format!("{what} {number}\n").as_bytes()).unwrap();
    }
}

/// Carries a program out.
pub fn perform(root: &Path, config: &Config, steps: &[Step], report: &mut Report) {
    let open = || Db::open(root.join("db"), config.clone()).unwrap();
    let mut db = Some(open());
    for (step, number) in steps.iter().zip(1..) {
        report.say("begin", number);
        if matches!(step, Step::Reopen) {
            db.take().unwrap().close().unwrap();
            db = Some(open());
        } else {
            do_step(db.as_ref().unwrap(), root, step).unwrap();
        }
        report.say("done", number);
    }
    db.take().unwrap().close().unwrap();
}

fn do_step(db: &Db, root: &Path, step: &Step) -> Result<()> {
    let options = |sync: &bool| WriteOptions { sync: *sync };
    match step {
        Step::CreateTree(name) => {
            let config =
                TreeConfig { block_bytes: 1024, blob_bytes: 4096, ..TreeConfig::default() };
            db.create_tree(name, config).map(drop)
        }
        Step::DropTree(name) => db.drop_tree(name),
        Step::Batch(writes, sync) => {
            let mut batch = Batch::new();
            for write in writes {
                match write {
                    Write::Put(tree, key, value) => batch.put(&db.tree(tree)?, key, value),
                    Write::Delete(tree, key) => batch.delete(&db.tree(tree)?, key),
                    Write::DeleteRange(tree, start, end) => {
                        batch.delete_range(&db.tree(tree)?, start, end);
                    }
                }
            }
            db.write(&batch, options(sync))
        }
        Step::Transaction(writes, sync, large) => begin(db, writes, *large)?.commit(options(sync)),
        Step::Prepare(xid, writes, large) => begin(db, writes, *large)?.prepare(xid).map(drop),
        Step::Decide(xid, commit) => {
            let prepared = db.prepared()?.into_iter().find(|one| one.xid() == xid).unwrap();
            match commit {
                true => prepared.commit(WriteOptions::SYNC),
                false => prepared.rollback(WriteOptions::SYNC),
            }
        }
        Step::Load(tree, rows) => {
            let tree: Tree = db.tree(tree)?;
            let mut load = tree.ingest()?;
            rows.iter().try_for_each(|(key, value)| load.add(key, value))?;
            load.finish().map(drop)
        }
        Step::Flush => db.flush(),
        Step::Compact => db.compact(),
        Step::Checkpoint(name) => db.checkpoint(root.join(name)),
        Step::Reopen => unreachable!("done by the caller"),
    }
}

fn begin(db: &Db, writes: &[Write], large: bool) -> Result<Transaction> {
    let memory_bytes = if large { 4096 } else { 0 };
    let mut txn = db.begin(TransactionOptions { memory_bytes, ..TransactionOptions::default() })?;
    for write in writes {
        match write {
            Write::Put(tree, key, value) => txn.put(&db.tree(tree)?, key, value)?,
            Write::Delete(tree, key) => txn.delete(&db.tree(tree)?, key)?,
            Write::DeleteRange(tree, start, end) => {
                txn.delete_range(&db.tree(tree)?, start, end)?;
            }
        }
    }
    Ok(txn)
}
