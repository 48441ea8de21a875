//! The path of a write: back-pressure, the log, the memtables, and making it visible.
//!
//! One leader at a time runs [`Core::lead`], under the `leader` lock: it gives the group its
//! sequence numbers, appends all records with one call, syncs if any commit asks, applies the
//! operations, and publishes. A group that fails before it is published has no effect: the log was
//! cut back (full disk), or the database is poisoned (anything else).

use super::core::{Core, FlushedOf, Leader, LiveWal, TreeCore, Trees};
use crate::base::activity::Activity;
use crate::base::config::SyncPolicy;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::stats::{Counter, Timed};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::table::format::FileKind;
use crate::table::meta::FileId;
use crate::version::TreeId;
use crate::wal::{Op, OpIter, WalWriter, payload};
use crate::write::ops::Ops;
use crate::write::queue::Group;

/// The most bytes that a batch may take in the log.
const BATCH_BYTES_MAX: usize = 1 << 29;

/// A log that a flush leaves with no more than this goes on: reading it costs less than a new file.
const LOG_BYTES_WORTH: u64 = 64 << 10;

impl Core {
    /// Commits `ops`: atomic, in one place of the commit order, and durable on return if `sync`.
    pub fn commit(&self, ops: &Ops, sync: bool) -> Result<()> {
        self.check_commit(ops)?;
        let started = self.tables.meter.begin(Activity::Write);
        if !ops.is_empty() {
            self.wait_for_room(ops.bytes().len() as u64)?;
        }
        let sync = sync || self.settings.sync == SyncPolicy::Always;
        self.queue.commit(ops, sync, |group| self.lead(group))?;
        self.count_commit(ops);
        self.tables.meter.end(Activity::Write, started);
        Ok(())
    }

    /// Refuses what cannot be committed.
    pub fn check_commit(&self, ops: &Ops) -> Result<()> {
        self.check_writable()?;
        if ops.bytes().len() > BATCH_BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "a batch of {} bytes is larger than {BATCH_BYTES_MAX}; split it, or bulk load",
                ops.bytes().len()
            )));
        }
        Ok(())
    }

    fn count_commit(&self, ops: &Ops) {
        self.recorder.add_all([
            (Counter::Commits, 1),
            (Counter::WriteOps, ops.count().into()),
            (Counter::UserBytes, ops.user_bytes()),
        ]);
    }

    /// Commits `ops` as a group of its own, without a sync, under the lock that the caller holds.
    pub fn lead_one(&self, leader: &mut Leader, ops: &Ops) -> Result<()> {
        let unfinished = PoisonOnPanic(self);
        let result = self.write_group(leader, &Group::of_one(ops));
        std::mem::forget(unfinished);
        if result.is_ok() {
            self.count_commit(ops);
        }
        result
    }

    /// As [`Core::sync_commits`], if that is asked for or always done.
    pub fn sync_if(&self, sync: bool) -> Result<()> {
        if sync || self.settings.sync == SyncPolicy::Always {
            return self.sync_commits();
        }
        Ok(())
    }

    /// Makes all that was committed durable, with one sync for all who ask at the same time.
    pub fn sync_commits(&self) -> Result<()> {
        self.queue.commit(&Ops::new(), true, |group| self.lead(group))
    }

    fn lead(&self, group: &mut Group) -> Result<()> {
        let mut leader = self.leader.lock();
        self.check_writable()?;
        // Records in the log whose numbers were given to later ones as well would be lost with all
        // that follows.
        let unfinished = PoisonOnPanic(self);
        let result = self.write_group(&mut leader, group);
        std::mem::forget(unfinished);
        result
    }

    fn write_group(&self, leader: &mut Leader, group: &Group) -> Result<()> {
        if group.ops.is_empty() {
            return if group.sync {
                let through = leader.next_seq - 1;
                self.sync_log(leader, through)
            } else {
                Ok(())
            };
        }
        let first = leader.next_seq;
        self.append_records(leader, group, first)?;
        let next = first + SeqNo::from(group.ops.count());
        if group.sync {
            self.sync_log(leader, next - 1)?;
        }
        let trees = self.trees.load();
        let full = self.apply(&trees, OpIter::new(group.ops.bytes(), first), None);
        leader.next_seq = next;
        self.visible.store(next - 1, Ordering::Release);
        self.after_apply(leader, &trees, group.ops.bytes().len(), full);
        Ok(())
    }

    fn after_apply(&self, leader: &mut Leader, trees: &Trees, bytes: usize, full: bool) {
        self.sched.note_write();
        leader.bytes_since_check += bytes as u64;
        if full || leader.bytes_since_check >= self.settings.memtable_bytes / 4 {
            leader.bytes_since_check = 0;
            self.seal_full(leader, trees);
        }
    }

    /// Puts the operations of a prepared transaction, which is committed by the record `seq`, into
    /// memtables. `noted` runs when these know that they need the log from `from` on.
    pub fn apply_decided<T>(
        &self,
        leader: &mut Leader,
        ops: &[u8],
        seq: SeqNo,
        from: SeqNo,
        noted: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let unfinished = PoisonOnPanic(self);
        let trees = self.trees.load();
        let full = self.apply(&trees, payload::prepared_ops(ops, seq), Some(from));
        let result = noted();
        if !ops.is_empty() {
            self.decided.store(seq, Ordering::Release);
        }
        self.visible.store(seq, Ordering::Release);
        self.after_apply(leader, &trees, ops.len(), full);
        std::mem::forget(unfinished);
        result
    }

    fn append_records(&self, leader: &mut Leader, group: &Group, first: SeqNo) -> Result<()> {
        let durable = self.durable.load(Ordering::Acquire);
        let mut buffer = std::mem::take(&mut leader.buffer);
        buffer.clear();
        let Some(wal) = leader.wal.as_mut() else { return Err(Error::Closed) };
        let framer = wal.framer();
        let mut seq = first;
        for (ops, count) in group.commits() {
            framer.frame(&mut buffer, |out| {
                payload::begin(out, seq, durable);
                out.extend_from_slice(ops);
            });
            seq += SeqNo::from(count);
        }
        let result = wal.append(&buffer);
        let bytes = buffer.len() as u64;
        if buffer.capacity() <= 4 << 20 {
            leader.buffer = buffer;
        }
        match result {
            Ok(()) => {
                leader.dirty = true;
                self.recorder.add_all([(Counter::WalBytes, bytes), (Counter::CommitGroups, 1)]);
                Ok(())
            }
            Err(error) if error.is_disk_full() => Err(error),
            Err(error) => Err(self.poison(error)),
        }
    }

    /// Makes the log durable up to `through`, the last operation of what is to be flushed, if there
    /// are operations in it that no table will hold then, or that are prepared: a table made
    /// durable before them would break the promise that what survives a crash is a prefix of the
    /// commit order (and newer ones may be of the same batch as the last one of the table). Newer
    /// ones of the same tree do not matter if it is flushed alone: memtables are sealed between
    /// batches. Commits go on meanwhile.
    pub fn sync_before_flush(&self, flushed: &FlushedOf<'_>, through: SeqNo) -> Result<()> {
        if self.durable.load(Ordering::Acquire) >= through {
            return Ok(());
        }
        let trees = self.trees.load();
        let alone = |tree: &TreeCore| flushed.len() == 1 && flushed.contains_key(&tree.id);
        let mut others = trees.by_id.values().filter(|tree| !alone(tree));
        // The commit of a prepared transaction must not be lost while its writes stay: it would be
        // found prepared again.
        let decided = self.decided.load(Ordering::Acquire) > self.durable.load(Ordering::Acquire);
        // The log goes on being read from a prepare on, so it must have all numbers that tables
        // have: else a recovery would give those out again, and take new operations for old ones.
        let prepared = self.prepared.lock().values().any(|one| one.log_seq().is_some());
        let waits = others.any(|tree| tree.first_unflushed_but(flushed).is_some());
        if !decided && !prepared && !waits {
            return Ok(());
        }
        let (syncers, reached) = {
            let leader = self.leader.lock();
            let Some(wal) = leader.wal.as_ref() else { return Ok(()) };
            let mut syncers = leader.unsynced.clone();
            syncers.push(Arc::new(wal.syncer()?));
            (syncers, leader.next_seq - 1)
        };
        let started = self.env.clock.now_nanos();
        for syncer in &syncers {
            syncer.sync().map_err(|error| self.poison(error))?;
        }
        self.note_sync(started);
        let mut leader = self.leader.lock();
        leader.unsynced.retain(|kept| !syncers.iter().any(|done| Arc::ptr_eq(done, kept)));
        self.durable.fetch_max(reached, Ordering::AcqRel);
        Ok(())
    }

    /// Takes the next sequence number for something that is not in the log.
    pub fn append_nothing(&self, leader: &mut Leader) -> Result<()> {
        self.append_one(leader, payload::put_nothing).map(drop)
    }

    /// Appends a record of one operation; answers with its sequence number. Whoever calls makes it
    /// visible.
    pub fn append_one(&self, leader: &mut Leader, put: impl FnOnce(&mut Vec<u8>)) -> Result<SeqNo> {
        let seq = leader.next_seq;
        let durable = self.durable.load(Ordering::Acquire);
        let Some(wal) = leader.wal.as_mut() else { return Err(Error::Closed) };
        let mut record = Vec::new();
        wal.framer().frame(&mut record, |out| {
            payload::begin(out, seq, durable);
            put(out);
        });
        match wal.append(&record) {
            Ok(()) => {
                leader.dirty = true;
                leader.next_seq = seq + 1;
                Ok(seq)
            }
            Err(error) if error.is_disk_full() => Err(error),
            Err(error) => Err(self.poison(error)),
        }
    }

    /// Puts the operations into the memtables; answers whether any of them is now full. With `from`
    /// the memtables need the log from there on.
    fn apply<'a>(
        &self,
        trees: &Trees,
        ops: impl Iterator<Item = Op<'a>>,
        from: Option<SeqNo>,
    ) -> bool {
        let mut current: Option<(&Arc<TreeCore>, Arc<Memtable>)> = None;
        let mut full = false;
        for op in ops {
            let seq = op.seq;
            if current.as_ref().is_none_or(|(tree, _)| tree.id != op.tree) {
                full |= current.is_some_and(|(_, memtable)| self.is_full(&memtable));
                // A tree that was dropped after the batch was made: its operations vanish with it.
                current =
                    trees.by_id.get(&op.tree).map(|tree| (tree, tree.state.load().active.clone()));
            }
            let Some((_, memtable)) = &current else { continue };
            if let Some(from) = from {
                memtable.needs_log_from(from);
            }
            match op.kind {
                Kind::RangeDelete => memtable.delete_range(op.key, op.value, seq),
                Kind::Blob => {
                    if let Some(blob) = self.blob_of_ref(op.value) {
                        memtable.attach(blob);
                    }
                    memtable.insert(op.key, seq, op.kind, op.value);
                }
                _ => memtable.insert(op.key, seq, op.kind, op.value),
            }
        }
        full | current.is_some_and(|(_, memtable)| self.is_full(&memtable))
    }

    fn is_full(&self, memtable: &Memtable) -> bool {
        memtable.bytes() as u64 >= self.settings.memtable_bytes
    }

    /// Seals the memtables that are full, the largest one while all active ones together take more
    /// than half of what memtables may, and those that hold back the removal of old logs.
    fn seal_full(&self, leader: &mut Leader, trees: &Trees) {
        let mut active: Vec<(u64, &TreeCore)> = Vec::new();
        let mut full: Vec<&TreeCore> = Vec::new();
        for tree in trees.by_id.values() {
            let memtable = tree.state.load().active.clone();
            if self.is_full(&memtable) {
                full.push(tree);
            } else if !memtable.is_empty() {
                active.push((memtable.bytes() as u64, tree));
            }
        }
        active.sort_by_key(|(bytes, tree)| (*bytes, tree.id));
        let mut total: u64 = active.iter().map(|(bytes, _)| bytes).sum();
        while total > self.settings.memtables_bytes_max / 2
            && let Some((bytes, tree)) = active.pop()
        {
            full.push(tree);
            total -= bytes;
        }
        if let Some(oldest) = self.oldest_log_to_free() {
            let old = |tree: &&TreeCore| tree.first_unflushed().is_some_and(|seq| seq <= oldest);
            full.extend(active.into_iter().map(|(_, tree)| tree).filter(old));
        }
        self.seal(leader, full);
        self.update_pressure();
    }

    /// When the old logs take more than eight memtables: the last sequence number of the oldest.
    fn oldest_log_to_free(&self) -> Option<SeqNo> {
        let wals = self.wals.lock();
        let bytes: u64 = wals.iter().map(|wal| wal.bytes).sum();
        let oldest = wals.first().and_then(|wal| wal.last_seq)?;
        (bytes > 8 * self.settings.memtable_bytes).then_some(oldest)
    }

    /// Seals the active memtables of trees, so that they get flushed. The caller updates the
    /// pressure.
    pub fn seal<'a>(&self, leader: &mut Leader, trees: impl IntoIterator<Item = &'a TreeCore>) {
        let trees = trees.into_iter().filter(|tree| !tree.state.load().active.is_empty());
        // All of them are wanted at once, so that they are flushed together.
        let sealed: Vec<TreeId> =
            trees.inspect(|tree| self.seal_one(leader, tree)).map(|tree| tree.id).collect();
        if !sealed.is_empty() {
            self.sched.want_flushes(sealed);
        }
    }

    /// The log goes on in a new file once the present one is worth a memtable.
    fn seal_one(&self, leader: &mut Leader, tree: &TreeCore) {
        self.swap_state(tree, |state| {
            let mut sealed = Vec::with_capacity(state.sealed.len() + 1);
            sealed.push(state.active.clone());
            sealed.extend(state.sealed.iter().cloned());
            TreeState { active: Arc::new(Memtable::new()), sealed, version: state.version.clone() }
        });
        if leader.wal.as_ref().is_some_and(|wal| wal.bytes() >= self.settings.memtable_bytes / 2) {
            self.rotate_log(leader);
        }
    }

    /// Goes on in a new log file. If none can be made (a full disk), the present one is kept.
    fn rotate_log(&self, leader: &mut Leader) {
        let Some(old) = leader.wal.as_ref() else { return };
        let opened = old.syncer().and_then(|syncer| Ok((syncer, self.next_log(old.id())?)));
        let (syncer, wal) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(%error, "no new log file could be made; the present one grows on");
                return;
            }
        };
        let old_bytes = old.bytes();
        if leader.dirty {
            leader.unsynced.push(Arc::new(syncer));
        }
        {
            let mut wals = self.wals.lock();
            if let Some(last) = wals.last_mut() {
                last.last_seq = Some(leader.next_seq - 1);
                last.bytes = old_bytes;
            }
            wals.push(LiveWal { id: wal.id(), last_seq: None, bytes: 0 });
        }
        leader.wal = Some(wal);
        leader.dirty = false;
        if let Some(oldest) = self.oldest_log_to_free()
            && let Err(error) = self.prepare_again(leader, oldest)
        {
            tracing::warn!(%error, "old logs are kept for a prepared transaction");
        }
    }

    /// A new log file: the one made in advance, if it is there.
    fn next_log(&self, after: FileId) -> Result<WalWriter> {
        let spare = self.spare_log.lock().take();
        self.sched.want_log();
        match spare {
            // Logs are replayed in the order of their numbers.
            Some(spare) if spare.id() > after => Ok(spare),
            _ => self.create_log(),
        }
    }

    fn create_log(&self) -> Result<WalWriter> {
        let id = self.new_file();
        WalWriter::create(&*self.env.fs, &self.path(FileKind::Wal, id), id, &self.guard)
    }

    /// Makes the next log file in advance: that syncs the directory, which no writer should wait
    /// for.
    pub fn prepare_log(&self) -> Result<()> {
        if self.spare_log.lock().is_some() {
            return Ok(());
        }
        let log = self.create_log()?;
        let old = self.spare_log.lock().replace(log);
        if let Some(old) = old {
            self.env.fs.remove(old.path())?;
        }
        Ok(())
    }

    /// Makes every record appended so far, which end at `through`, durable. A failure poisons:
    /// what the kernel did with the pages is unknown, and a second sync would answer for others.
    pub fn sync_log(&self, leader: &mut Leader, through: SeqNo) -> Result<()> {
        if !leader.dirty && leader.unsynced.is_empty() {
            return Ok(());
        }
        let started = self.env.clock.now_nanos();
        let mut run = || -> Result<()> {
            for syncer in leader.unsynced.drain(..) {
                syncer.sync()?;
            }
            if let Some(wal) = leader.wal.as_mut() {
                wal.sync()?;
            }
            Ok(())
        };
        run().map_err(|error| self.poison(error))?;
        leader.dirty = false;
        self.durable.fetch_max(through, Ordering::AcqRel);
        self.note_sync(started);
        Ok(())
    }

    fn note_sync(&self, started: u64) {
        let nanos = self.env.clock.now_nanos() - started;
        self.recorder.add_all([(Counter::WalSyncs, 1), (Counter::WalSyncNanos, nanos)]);
        self.recorder.time(Timed::Sync, nanos);
    }

    /// Seals every memtable that holds anything and goes on in a new log; `only` narrows it to one
    /// tree, and then the log stays.
    pub fn seal_all(&self, only: Option<&TreeCore>) -> Result<()> {
        let mut leader = self.leader.lock();
        self.check_writable()?;
        match only {
            Some(tree) => self.seal(&mut leader, [tree]),
            None => {
                self.seal(&mut leader, self.trees.load().by_id.values().map(|tree| &**tree));
                // Once all is flushed, the next open has nothing of this file to replay.
                if leader.wal.as_ref().is_some_and(|wal| wal.bytes() >= LOG_BYTES_WORTH) {
                    self.rotate_log(&mut leader);
                }
            }
        }
        self.update_pressure();
        Ok(())
    }
}

/// Poisons the database unless it is forgotten.
struct PoisonOnPanic<'a>(&'a Core);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        drop(self.0.poison_after_panic());
    }
}
