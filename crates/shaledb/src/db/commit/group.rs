//! A group of commits: its records in the log, its operations in memtables, and making it visible.
//!
//! One leader at a time runs [`Core::lead`], under the `leader` lock: it gives the group its
//! sequence numbers, appends all records with one call, syncs if any commit asks, applies the
//! operations, and publishes. A group that fails before it is published has no effect: the log was
//! cut back (full disk), or the database is poisoned (anything else).

use crate::base::activity::Activity;
use crate::base::config::SyncPolicy;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::core::{Core, Leader, TreeCore, Trees, Written};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::wal::{Op, OpIter, payload};
use crate::write::ops::Ops;
use crate::write::queue::{Group, Turn};
use arc_swap::Guard;

/// The most bytes that a batch may take in the log.
const BATCH_BYTES_MAX: usize = 1 << 29;

impl Core {
    /// Commits `ops`: atomic, at one position of the commit order, and durable on return if `sync`.
    pub fn commit(&self, ops: &Ops, sync: bool) -> Result<()> {
        let started = self.tables.meter.begin(Activity::Write);
        self.commit_as(ops, sync || self.settings.sync == SyncPolicy::Always)?;
        self.tables.meter.end(Activity::Write, started);
        Ok(())
    }

    /// Commits `ops`, which others see on return. They are not durable, whatever is always done:
    /// the caller goes on with [`Core::sync_if`].
    pub fn commit_unsynced(&self, ops: &Ops) -> Result<()> {
        self.commit_as(ops, false)
    }

    fn commit_as(&self, ops: &Ops, sync: bool) -> Result<()> {
        assert!(!ops.is_empty(), "a sync alone is no commit");
        self.check_commit(ops)?;
        let _room = self.wait_for_room(ops)?;
        self.commit_in_group(ops, sync)?;
        self.count_commit(ops.into());
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

    /// Counts a commit that has been made, in one phase or two.
    pub fn count_commit(&self, written: Written) {
        self.recorder.add_all([
            (Counter::Commits, 1),
            (Counter::WriteOps, written.ops),
            (Counter::UserBytes, written.user_bytes),
        ]);
    }

    /// Commits `ops` as a group of its own, without a sync, under the lock that the caller holds.
    pub fn commit_locked(&self, leader: &mut Leader, ops: &Ops) -> Result<()> {
        let unfinished = PoisonOnPanic(self);
        let result = self.write_group(leader, &Group::of_one(ops));
        std::mem::forget(unfinished);
        if result.is_ok() {
            self.count_commit(ops.into());
        }
        result
    }

    /// As [`Core::sync_commits`] for what the caller has committed, if that is asked for or always
    /// done.
    pub fn sync_if(&self, sync: bool) -> Result<()> {
        if !sync && self.settings.sync != SyncPolicy::Always {
            return Ok(());
        }
        match self.sync_commits() {
            // It is in the log, which whoever closes makes durable.
            Err(Error::Closed) => self.sync_alone(),
            other => other,
        }
    }

    /// Makes all that was committed durable, while commits go on. Who asks during a sync shares the
    /// next one with others.
    pub fn sync_commits(&self) -> Result<()> {
        self.check_writable()?;
        let visible = self.visible.load(Ordering::Acquire);
        if self.durable.load(Ordering::Acquire) >= visible {
            return Ok(());
        }
        let reached = self.sync_beside_commits()?.ok_or(Error::Closed)?;
        assert!(reached >= visible, "what is visible has been in the log");
        Ok(())
    }

    /// Makes all that was committed durable, in a database that may be closed by now.
    fn sync_alone(&self) -> Result<()> {
        let mut leader = self.leader.lock();
        self.guard.check()?;
        if leader.wal.is_some() {
            let through = leader.next_seq - 1;
            return self.sync_log(&mut leader, through);
        }
        let (durable, visible) = (&self.durable, &self.visible);
        match durable.load(Ordering::Acquire) >= visible.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(Error::Closed),
        }
    }

    /// Joins the open group; writes it, or waits for the thread that does.
    fn commit_in_group(&self, ops: &Ops, sync: bool) -> Result<()> {
        match self.queue.join(ops, sync) {
            Turn::Written(result) => result,
            Turn::Lead(lead) => {
                let result = self.lead(lead.group());
                lead.finish(result)
            }
        }
    }

    fn lead(&self, group: &Group) -> Result<()> {
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
        debug_assert!(!group.ops.is_empty(), "a group has operations");
        let first = leader.next_seq;
        debug_assert!(first > self.visible.load(Ordering::Relaxed), "new numbers are not seen yet");
        self.append_records(leader, group, first)?;
        let next = first + SeqNo::from(group.ops.count());
        if group.sync {
            self.sync_log(leader, next - 1)?;
            debug_assert!(self.durable.load(Ordering::Relaxed) >= next - 1, "a sync covers all");
        }
        let trees = self.trees.load();
        let mut filled = self.apply(&trees, OpIter::new(group.ops.bytes(), first), None);
        filled.bytes = filled.bytes.saturating_add(group.ops.bytes().len() as u64);
        leader.next_seq = next;
        self.publish(next - 1);
        self.after_apply(leader, &trees, filled);
        Ok(())
    }

    fn after_apply(&self, leader: &mut Leader, trees: &Trees, filled: Filled) {
        self.sched.note_write();
        self.seal_due(leader, trees, filled);
    }

    /// Puts the operations of a prepared transaction, which is committed by the record `seq`, into
    /// memtables, which need the log from `from` on, and notes it. Reads see them once that is
    /// published.
    pub fn apply_decided(&self, ops: &[u8], seq: SeqNo, from: SeqNo) -> Applied<'_> {
        let unfinished = PoisonOnPanic(self);
        let trees = self.trees.load_full();
        let mut filled = self.apply(&trees, payload::prepared_ops(ops, seq), Some(from));
        filled.bytes = filled.bytes.saturating_add(ops.len() as u64);
        if !ops.is_empty() {
            self.decided.store(seq, Ordering::Release);
        }
        Applied { unfinished, trees, seq, filled }
    }

    /// Puts the operations into the memtables; answers whether any of them is now full, and with
    /// what their large values count as. With `from` the memtables need the log from there on.
    fn apply<'a>(
        &self,
        trees: &Trees,
        ops: impl Iterator<Item = Op<'a>>,
        from: Option<SeqNo>,
    ) -> Filled {
        let mut current: Option<Filling<'_>> = None;
        let mut filled = Filled::default();
        for op in ops {
            debug_assert!(
                op.seq > self.visible.load(Ordering::Relaxed),
                "no read sees half a group"
            );
            if current.as_ref().is_none_or(|filling| filling.tree.id != op.tree) {
                self.count_filling(current.as_ref(), &mut filled);
                // A tree that was dropped after the batch was made: its operations vanish with it.
                current = trees.by_id.get(&op.tree).map(|tree| Filling::of(tree));
            }
            let Some(filling) = &current else {
                self.forget_blob(&op);
                continue;
            };
            let memtable = filling.memtable();
            if let Some(from) = from {
                memtable.needs_log_from(from);
            }
            self.apply_op(memtable, &op);
        }
        self.count_filling(current.as_ref(), &mut filled);
        filled
    }

    #[inline]
    fn count_filling(&self, filling: Option<&Filling<'_>>, filled: &mut Filled) {
        let Some(filling) = filling else { return };
        let memtable = filling.memtable();
        memtable.begin_wanted_filter(self.settings.memtable_full_bytes);
        filled.full |= self.is_full(filling.tree, memtable);
        let more = memtable.outside_bytes() - filling.outside;
        if more > 0 {
            let weight = self.weight_outside(filling.tree, more);
            filled.bytes = filled.bytes.saturating_add(weight);
        }
    }

    /// Lets memtables of a tree begin filters that readers would be glad of, if no group is being
    /// written now. Where writes go on, one of them does it.
    #[inline]
    pub fn begin_filters(&self, state: &TreeState) {
        if state.memtables().any(|memtable| memtable.wants_filter()) {
            self.begin_wanted_filters(state);
        }
    }

    #[cold]
    fn begin_wanted_filters(&self, state: &TreeState) {
        // Who follows another database inserts without the lock, and begins filters himself.
        let no_insert = if self.followed.is_none() { self.leader.try_lock() } else { None };
        if no_insert.is_some() {
            for memtable in state.memtables() {
                memtable.begin_wanted_filter(self.settings.memtable_full_bytes);
            }
        }
    }

    /// Has the blob removed of an operation that vanishes.
    #[cold]
    fn forget_blob(&self, op: &Op<'_>) {
        if op.kind == Kind::Blob
            && let Some(blob) = self.blob_of_ref(op.value)
        {
            blob.mark_obsolete();
        }
    }

    /// Puts one operation into a memtable.
    // As a call it costs 67 instructions more for each put, 3 % of its commit (callgrind).
    #[inline(always)]
    pub fn apply_op(&self, memtable: &Memtable, op: &Op<'_>) {
        match op.kind {
            Kind::RangeDelete => {
                memtable.delete_range(op.key, op.value, op.seq, self.first_unseen());
            }
            Kind::Blob => {
                self.attach_blob(memtable, op.value);
                memtable.insert(op.key, op.seq, op.kind, op.value);
            }
            _ => memtable.insert(op.key, op.seq, op.kind, op.value),
        }
    }
}

/// What was put into memtables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    /// About how many bytes, large values with what they count as.
    pub bytes: u64,
    /// Whether any memtable is full now.
    pub full: bool,
}

/// A memtable that operations are put into.
struct Filling<'a> {
    tree: &'a TreeCore,
    /// Cheaper than a share of its memtable, which is counted where all threads look.
    state: Guard<Arc<TreeState>>,
    /// What it kept outside before.
    outside: u64,
}

impl Filling<'_> {
    fn of(tree: &TreeCore) -> Filling<'_> {
        let state = tree.state.load();
        let outside = state.active.outside_bytes();
        Filling { tree, state, outside }
    }

    #[inline]
    fn memtable(&self) -> &Memtable {
        &self.state.active
    }
}

/// Poisons the database unless it is forgotten.
struct PoisonOnPanic<'a>(&'a Core);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        drop(self.0.poison_after_panic());
    }
}

/// Operations of a prepared transaction that are in memtables and that no read sees yet. Dropping
/// it unpublished poisons the database.
#[must_use]
pub(crate) struct Applied<'a> {
    unfinished: PoisonOnPanic<'a>,
    trees: Arc<Trees>,
    seq: SeqNo,
    filled: Filled,
}

impl Applied<'_> {
    /// Makes them visible.
    pub fn publish(self, leader: &mut Leader) {
        let Applied { unfinished, trees, seq, filled } = self;
        let core = unfinished.0;
        assert!(seq < leader.next_seq, "the record that decides is in the log");
        core.publish(seq);
        core.after_apply(leader, &trees, filled);
        std::mem::forget(unfinished);
    }
}
