//! Runs a program's operations on a [`World`]: on its database and on the model beside it.

use crate::data::{self, Value};
use crate::model::{Change, tree_name};
use crate::ops::{Op, ingested};
use crate::outcome::{Failure, Outcome, wrong};
use crate::world::{CrashPoint, World, open_db, state_hash};
use shaledb::{Batch, SyncPolicy, Transaction, TransactionOptions, WriteOptions};
use std::path::Path;

/// The name of a transaction in two phases: there is one at a time.
const XID: &[u8] = b"program";

impl World {
    /// Runs a program.
    pub fn run(&mut self, program: &[Op]) -> Outcome<()> {
        for (index, op) in program.iter().enumerate() {
            self.step(op).map_err(|failure| at(failure, index, op))?;
        }
        Ok(())
    }

    /// Runs a program of which operations may be refused for want of room, and change nothing then;
    /// answers how many were.
    pub fn run_in_room(&mut self, program: &[Op]) -> Outcome<u64> {
        let mut refused = 0;
        for (index, op) in program.iter().enumerate() {
            match self.step(op) {
                Err(Failure::Engine(error)) if error.is_space_limit() && self.is_open() => {
                    self.doubt = None;
                    refused += 1;
                }
                other => other.map_err(|failure| at(failure, index, op))?,
            }
        }
        Ok(refused)
    }

    /// Runs one operation and compares its answers. What a program takes for granted and is not
    /// there (after a fault or a crash) makes the operation do nothing.
    pub fn step(&mut self, op: &Op) -> Outcome<()> {
        if !self.possible(op) {
            return Ok(());
        }
        if self.trace {
            println!("{} {op}", self.fs.changes());
        }
        let low = self.model.durable();
        let result = self.execute(op);
        if let Some(commit) = op.commit() {
            match &result {
                Ok(()) => self.model.commit(&commit),
                Err(_) => self.doubt = Some(commit),
            }
        }
        if result.is_ok() && self.makes_durable(op) {
            self.model.synced();
        }
        self.keeps_limit()?;
        let high = self.model.now();
        let images = self.fs.take_images();
        self.crash_points.extend(images.into_iter().map(|image| CrashPoint { image, low, high }));
        result
    }

    fn possible(&self, op: &Op) -> bool {
        let has = |tree: &u8| self.trees.contains_key(tree);
        match op {
            Op::Write(changes, _) | Op::Transaction(changes, ..) => {
                changes.iter().all(|change| match change {
                    Change::Put(tree, ..) | Change::Delete(tree, _) => has(tree),
                    Change::DeleteRange(tree, ..) => has(tree),
                })
            }
            Op::Create(tree) => !has(tree),
            Op::PutReader(tree, ..)
            | Op::Ingest(tree, ..)
            | Op::Get(tree, ..)
            | Op::MultiGet(tree, _)
            | Op::Scan(tree, ..)
            | Op::OpenScan(_, tree, ..)
            | Op::Prefix(tree, _)
            | Op::Drop(tree)
            | Op::Renew(tree)
            | Op::Flush(Some(tree))
            | Op::Compact(Some(tree))
            | Op::CompactRange(tree, ..) => has(tree),
            _ => true,
        }
    }

    fn makes_durable(&self, op: &Op) -> bool {
        match op {
            Op::Write(_, sync) => *sync || self.config.sync == SyncPolicy::Always,
            // What was spilled is in tables.
            Op::Transaction(_, _, sync) => {
                *sync || self.spilled || self.config.sync == SyncPolicy::Always
            }
            Op::PutReader(..) => self.config.sync == SyncPolicy::Always,
            Op::Ingest(..) | Op::Create(_) | Op::Drop(_) | Op::Renew(_) => true,
            Op::Flush(None) | Op::Sync | Op::Reopen => true,
            _ => false,
        }
    }

    fn execute(&mut self, op: &Op) -> Outcome<()> {
        match op {
            Op::Write(changes, sync) => self.write(changes, *sync),
            Op::Transaction(changes, memory_bytes, sync) => {
                self.transaction(changes, *memory_bytes, *sync)
            }
            Op::PutReader(tree, key, value) => {
                let mut bytes = &value.fill()[..];
                let options = WriteOptions { sync: false };
                Ok(self.trees[tree].put_reader(&data::key(*key), &mut bytes, options)?)
            }
            Op::Ingest(tree, keys, first) => self.ingest(*tree, keys, *first),
            Op::Get(tree, key, slot) => self.get(*tree, *key, *slot),
            Op::MultiGet(tree, keys) => self.multi_get(*tree, keys),
            Op::Scan(tree, from, to, slot, moves) => self.scan(*tree, *from, *to, *slot, moves),
            Op::OpenScan(slot, tree, from, to) => self.open_scan(*slot, *tree, *from, *to),
            Op::MoveScan(slot, moves) => self.move_scan(*slot, moves),
            Op::Prefix(tree, key) => self.prefix(*tree, *key),
            Op::Check => self.check(),
            Op::Snapshot(slot) => {
                let snapshot = self.db()?.snapshot();
                self.snapshots.insert(*slot, (snapshot, self.model.now()));
                Ok(())
            }
            Op::Release(slot) => {
                self.snapshots.remove(slot);
                Ok(())
            }
            Op::Create(tree) => {
                let name = tree_name(*tree);
                let handle = self.db()?.create_tree(&name, self.config.tree.clone())?;
                self.trees.insert(*tree, handle);
                Ok(())
            }
            Op::Drop(tree) => {
                self.db()?.drop_tree(&tree_name(*tree))?;
                self.trees.remove(tree);
                Ok(())
            }
            Op::Renew(tree) => {
                let name = tree_name(*tree);
                let create = [(&*name, self.config.tree.clone())];
                self.trees.extend(
                    self.db()?.change_trees(&create, &[&name])?.pop().map(|handle| (*tree, handle)),
                );
                Ok(())
            }
            Op::Flush(None) => Ok(self.db()?.flush()?),
            Op::Flush(Some(tree)) => Ok(self.trees[tree].flush()?),
            Op::Compact(None) => Ok(self.db()?.compact()?),
            Op::Compact(Some(tree)) => Ok(self.trees[tree].compact()?),
            Op::CompactRange(tree, from, to) => {
                Ok(self.trees[tree].compact_range(&data::key(*from), Some(&data::key(*to)))?)
            }
            Op::Sync => Ok(self.db()?.sync()?),
            Op::Step(count) => {
                for _ in 0..*count {
                    self.db()?.step()?;
                }
                Ok(())
            }
            Op::Idle => self.idle(),
            Op::Reopen => self.reopen(),
            Op::Checkpoint => self.checkpoint(),
            Op::Verify => self.verify(),
        }
    }

    fn write(&mut self, changes: &[Change], sync: bool) -> Outcome<()> {
        let mut batch = Batch::new();
        for change in changes {
            match change {
                Change::Put(tree, key, value) => {
                    batch.put(&self.trees[tree], &data::key(*key), &value.fill());
                }
                Change::Delete(tree, key) => batch.delete(&self.trees[tree], &data::key(*key)),
                Change::DeleteRange(tree, from, to) => {
                    batch.delete_range(&self.trees[tree], &data::key(*from), &data::key(*to));
                }
            }
        }
        Ok(self.db()?.write(&batch, WriteOptions { sync })?)
    }

    /// Writes by a transaction; after every few changes it writes as much that it undoes.
    fn transaction(&mut self, changes: &[Change], memory_bytes: u32, sync: bool) -> Outcome<()> {
        // What a failure has left prepared would keep its name and its locks.
        self.roll_back_prepared()?;
        let in_two_phases = memory_bytes % 2 == 1;
        let memory_bytes = memory_bytes.into();
        let options = TransactionOptions { memory_bytes, ..TransactionOptions::default() };
        let mut txn = self.db()?.begin(options)?;
        for part in changes.chunks(5) {
            for change in part {
                self.change(&mut txn, change)?;
            }
            let savepoint = txn.savepoint();
            for change in part.iter().rev() {
                let (Change::Put(tree, key, _)
                | Change::Delete(tree, key)
                | Change::DeleteRange(tree, key, _)) = change;
                match change {
                    Change::Put(..) => txn.delete(&self.trees[tree], &data::key(*key))?,
                    _ => txn.put(&self.trees[tree], &data::key(*key), b"undone")?,
                }
            }
            txn.rollback_to(savepoint)?;
        }
        self.spilled = txn.spilled_bytes() > 0;
        let options = WriteOptions { sync };
        if !in_two_phases {
            return Ok(txn.commit(options)?);
        }
        let prepared = txn.prepare_with(XID, options)?;
        let committed = prepared.commit(options);
        if committed.is_err() {
            // The same failure, mostly; then it is tried again later.
            let _ = self.roll_back_prepared();
        }
        Ok(committed?)
    }

    /// Ends what a failure or a crash has left prepared, and so not committed.
    pub(crate) fn roll_back_prepared(&mut self) -> Outcome<()> {
        for prepared in self.db()?.prepared()? {
            prepared.rollback(WriteOptions { sync: false })?;
        }
        Ok(())
    }

    fn change(&self, txn: &mut Transaction, change: &Change) -> Outcome<()> {
        let done = match change {
            Change::Put(tree, key, value) => {
                txn.put(&self.trees[tree], &data::key(*key), &value.fill())
            }
            Change::Delete(tree, key) => txn.delete(&self.trees[tree], &data::key(*key)),
            Change::DeleteRange(tree, from, to) => {
                txn.delete_range(&self.trees[tree], &data::key(*from), &data::key(*to))
            }
        };
        Ok(done?)
    }

    fn ingest(&mut self, tree: u8, keys: &[u32], first: Value) -> Outcome<()> {
        let mut ingest = self.trees[&tree].ingest()?;
        for (key, value) in ingested(keys, first) {
            ingest.add(&data::key(key), &value.fill())?;
        }
        let count = ingest.finish()?;
        if count != keys.len() as u64 {
            return wrong(format!("{count} entries ingested of {}", keys.len()));
        }
        Ok(())
    }

    fn verify(&mut self) -> Outcome<()> {
        match self.db()?.verify(&mut |_| {})?.damage.first() {
            Some(damage) => wrong(format!("verify found damage: {damage}")),
            None => Ok(()),
        }
    }

    fn checkpoint(&mut self) -> Outcome<()> {
        // A name that no crash or fault has left half a checkpoint under.
        let path = loop {
            self.checkpoints += 1;
            let path = format!("/checkpoint{}", self.checkpoints);
            if !shaledb::fs::Fs::exists(&self.fs, Path::new(&path))? {
                break path;
            }
        };
        self.db()?.checkpoint(Path::new(&path))?;
        // A checkpoint that was reported as made survives a crash, whatever else does.
        let disk = self.fs.crash_clone(0, shaledb::fs::mem::CrashMode::Lost);
        let copy = open_db(&disk, &path, &self.config)?;
        if state_hash(&copy)? != self.model.hash(self.model.now()) {
            return wrong("the checkpoint is not equal to the database");
        }
        drop(copy);
        for (file, _) in self.fs.files() {
            if file.starts_with(&path) {
                shaledb::fs::Fs::remove(&self.fs, &file)?;
            }
        }
        Ok(shaledb::fs::Fs::remove_dir(&self.fs, Path::new(&path))?)
    }
}

fn at(failure: Failure, index: usize, op: &Op) -> Failure {
    match failure {
        Failure::Wrong(what) => Failure::Wrong(format!("at operation {index} `{op}`: {what}")),
        engine => engine,
    }
}
