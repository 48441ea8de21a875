//! How an edit is installed: it becomes durable in the manifest, then the tree's state is
//! replaced, then files that nobody needs any more are let go.

use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::compaction::drop::dropped_blobs;
use crate::db::core::{Core, FlushedOf, PreparedCore, TreeCore};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::table::format::FileKind;
use crate::table::meta::FileId;
use crate::table::{Blob, Table};
use crate::version::edit::{Edit, LogStart, TreeEdit};
use crate::version::{TreeId, Version};
use std::collections::BTreeSet;

/// A change of one tree: an edit, and the memtables whose content is in it.
pub(crate) struct Change<'a> {
    pub tree: &'a TreeCore,
    pub edit: TreeEdit,
    pub flushed: &'a [Arc<Memtable>],
}

/// What comes to its end with an edit.
#[derive(Default)]
struct Ends<'a> {
    /// A prepared transaction that is committed.
    decided: Option<&'a [u8]>,
    /// Trees that are complete.
    builds: Vec<TreeId>,
}

/// What a tree is to be, and what it no longer needs then.
struct Next {
    version: Arc<Version>,
    removed: Vec<Arc<Table>>,
    kept_blobs: BTreeSet<FileId>,
    lost_blobs: Vec<FileId>,
}

fn without(sealed: &[Arc<Memtable>], flushed: &[Arc<Memtable>]) -> Vec<Arc<Memtable>> {
    let left = |memtable: &&Arc<Memtable>| !flushed.iter().any(|done| Arc::ptr_eq(done, memtable));
    sealed.iter().filter(left).cloned().collect()
}

fn is_same(some: &[Arc<Memtable>], others: &[Arc<Memtable>]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// What a tree is written to after a change. Tables that are published come with a memtable of
/// their own: who still reads the state before them must not find there what is committed later.
fn active_after(before: &TreeState, publish: Option<SeqNo>) -> Arc<Memtable> {
    if publish.is_none() {
        return before.active.clone();
    }
    assert!(before.active.is_empty(), "nothing is written between a seal and what is published");
    Arc::new(Memtable::new())
}

impl Core {
    /// Makes `edit` durable and visible. `flushed` are the memtables whose content is in it.
    /// After an error nothing has changed; the caller removes the tables it had written.
    pub fn install(
        &self,
        tree: &TreeCore,
        edit: TreeEdit,
        flushed: &[Arc<Memtable>],
    ) -> Result<()> {
        self.install_all(vec![Change { tree, edit, flushed }], None, None).map(drop)
    }

    /// As [`Core::install`], and the tree's build is complete with that.
    pub fn install_built(&self, tree: &TreeCore, edit: TreeEdit) -> Result<()> {
        let change = Change { tree, edit, flushed: &[] };
        let ends = Ends { builds: vec![tree.id], ..Ends::default() };
        self.install_ending(vec![change], ends, None).map(drop)
    }

    /// Makes changes of several trees durable together, and visible tree by tree; right after,
    /// reads see up to `publish`, if there is such a number. Trees that have been dropped are left
    /// out; an error if all have. Answers with those that were there. `decided` is a prepared
    /// transaction whose tables these are. Who publishes holds the leader's lock, and has flushed
    /// what the trees had in memory.
    pub fn install_all(
        &self,
        changes: Vec<Change<'_>>,
        decided: Option<&[u8]>,
        publish: Option<SeqNo>,
    ) -> Result<BTreeSet<TreeId>> {
        self.install_ending(changes, Ends { decided, builds: Vec::new() }, publish)
    }

    fn install_ending(
        &self,
        mut changes: Vec<Change<'_>>,
        ends: Ends<'_>,
        publish: Option<SeqNo>,
    ) -> Result<BTreeSet<TreeId>> {
        let mut manifest = self.manifest.lock();
        let first = changes.first().map(|change| change.tree.name.clone()).unwrap_or_default();
        changes.retain(|change| !change.tree.is_dropped());
        if changes.is_empty() && ends.decided.is_none() {
            return Err(Error::NoSuchTree(first));
        }
        for change in changes.iter().filter(|change| !change.flushed.is_empty()) {
            let newest = change.flushed.first().map(|memtable| memtable.last_seq());
            assert_eq!(change.edit.flushed_seq, newest, "an edit says what it has flushed");
        }
        let next: Vec<Next> = changes.iter().map(|c| self.next(c)).collect::<Result<_>>()?;
        let flushed: FlushedOf<'_> = changes
            .iter()
            .filter(|change| !change.flushed.is_empty())
            .map(|change| (change.tree.id, change.flushed))
            .collect();
        let log = if flushed.is_empty() { None } else { self.log_start(&flushed) };
        let whole = Edit {
            trees: changes.iter_mut().map(|change| std::mem::take(&mut change.edit)).collect(),
            next_file: Some(self.next_file.load(Ordering::Relaxed)),
            log,
            decided: ends.decided.map(<[u8]>::to_vec).into_iter().collect(),
            builds_ended: ends.builds,
            ..Edit::default()
        };
        self.append_edit(&mut manifest, &whole)?;
        if let Some(log) = log {
            self.note_log_start(log);
        }
        for (change, next) in changes.iter().zip(&next) {
            change.tree.swap_state(|state| {
                let sealed = without(&state.sealed, change.flushed);
                let flushed = &state.sealed[sealed.len()..];
                assert!(is_same(flushed, change.flushed), "the oldest memtables are flushed first");
                TreeState {
                    active: active_after(state, publish),
                    sealed,
                    version: next.version.clone(),
                }
            });
        }
        if let Some(seq) = publish {
            self.publish(seq);
        }
        drop(manifest);

        for (change, next) in changes.iter().zip(&next) {
            self.mark_obsolete(change, next);
        }
        // Whoever learns of the end finds the files gone or about to go, if no reader holds them.
        drop(next);
        if !flushed.is_empty() {
            self.remove_old_logs();
        }
        self.note_shapes(changes.iter().map(|change| change.tree));
        Ok(changes.iter().map(|change| change.tree.id).collect())
    }

    /// What a change makes of its tree.
    fn next(&self, change: &Change<'_>) -> Result<Next> {
        let edit = &change.edit;
        let before = change.tree.state.load_full().version.clone();
        let after = before.apply(edit, &|meta| self.open_table(meta))?;
        let moves = |id: FileId| edit.added.iter().any(|(_, meta)| meta.id == id);
        let gone = || edit.removed.iter().filter(|(_, id)| !moves(*id));
        let removed: Vec<Arc<Table>> =
            gone().filter_map(|(level, id)| before.table(*level, *id).cloned()).collect();
        assert_eq!(removed.len(), gone().count(), "what is removed was there");
        debug_assert!(after.levels.iter().skip(1).all(|level| {
            level.tables().is_sorted_by(|a, b| a.meta.is_before(&b.meta.smallest))
        }));
        debug_assert!(
            after.levels[0].tables().is_sorted_by(|a, b| a.meta.max_seq >= b.meta.max_seq)
        );
        // Not if a table that stays refers to it: stages of a merge leave copies of references.
        let lost_blobs = dropped_blobs(
            removed.iter().map(|table| &*table.meta),
            after.tables().map(|(_, table)| &*table.meta),
        );
        Ok(Next {
            version: Arc::new(after),
            kept_blobs: edit.added.iter().flat_map(|(_, meta)| meta.blobs.clone()).collect(),
            lost_blobs,
            removed,
        })
    }

    /// Marks the files that a change has made obsolete: they go with their last reader.
    fn mark_obsolete(&self, change: &Change<'_>, next: &Next) {
        for table in &next.removed {
            table.mark_obsolete();
        }
        for blob in change.flushed.iter().flat_map(|memtable| memtable.attached::<Blob>()) {
            if !next.kept_blobs.contains(&blob.id()) {
                blob.mark_obsolete();
            }
        }
        for id in &next.lost_blobs {
            self.blob(*id).mark_obsolete();
        }
    }

    /// Appends an edit to the manifest. A full disk is reported and nothing has changed; any
    /// other failure leaves the manifest unknown, so no write is accepted any more.
    pub fn append_edit(
        &self,
        manifest: &mut Option<crate::version::manifest::Manifest>,
        edit: &Edit,
    ) -> Result<()> {
        let Some(log) = manifest.as_mut() else {
            return Err(if self.read_only { Error::ReadOnly } else { Error::Closed });
        };
        // What the edit relies on may be lost.
        self.guard.check()?;
        match log.append(edit) {
            Ok(()) => {
                if log.rewrite_due(self.space().manifest_room())
                    && let Err(error) = log.rewrite(self.new_file())
                {
                    // If it is unknown which one is installed, the next append is refused.
                    tracing::warn!(%error, "the manifest could not be rewritten and grows on");
                }
                Ok(())
            }
            Err(error) if error.is_without_room() && log.check().is_ok() => Err(error),
            Err(error) => Err(self.poison(error)),
        }
    }

    /// Notes where the log starts by an edit that is durable, under the manifest's lock.
    pub fn note_log_start(&self, log: LogStart) {
        let flushed_to = self.flushed_to.fetch_max(log.seq, Ordering::AcqRel);
        let first = self.log_file.fetch_max(log.file, Ordering::AcqRel);
        assert!(flushed_to <= log.seq && first <= log.file, "the log's start moves on only");
    }

    /// Lets old logs go that nothing needs and no flush has taken with it: what they have is of
    /// trees that were dropped, or was rolled back.
    pub fn free_old_logs(&self) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let first = self.log_file.load(Ordering::Acquire);
        let Some(log) = self.log_start(&FlushedOf::new()).filter(|log| log.file > first) else {
            return Ok(());
        };
        self.append_edit(&mut manifest, &Edit { log: Some(log), ..Edit::default() })?;
        self.note_log_start(log);
        drop(manifest);
        self.remove_old_logs();
        Ok(())
    }

    /// Where the log will start once `flushed` are in tables: everything before is in tables
    /// everywhere. `None` while the log is being replayed.
    pub fn log_start(&self, flushed: &FlushedOf<'_>) -> Option<LogStart> {
        // The visible number first: what is at or before it is in memtables or tables by now.
        let visible = self.visible.load(Ordering::Acquire);
        // What is prepared next: once decided, memtables need the log from the same record on.
        let prepared = self.prepared.lock().values().filter_map(PreparedCore::log_seq).min();
        let trees = self.trees.load();
        let unflushed = trees.by_id.values().filter_map(|tree| tree.first_unflushed_but(flushed));
        let flushed_to =
            unflushed.chain(prepared).min().map_or(visible, |seq| visible.min(seq - 1));
        let seq = flushed_to.max(self.flushed_to.load(Ordering::Acquire));
        let wals = self.wals.lock();
        let first = wals.iter().find(|wal| wal.last_seq.is_none_or(|last| last > seq))?;
        assert!(seq <= visible, "what is in tables is visible");
        Some(LogStart { file: first.id, seq })
    }

    /// Removes log files that the manifest says are obsolete. One that cannot be removed now is
    /// removed by the next open.
    pub fn remove_old_logs(&self) {
        let first = self.log_file.load(Ordering::Acquire);
        // Not under the lock, which the leader takes: removing a large file takes milliseconds.
        let old: Vec<FileId> = {
            let mut wals = self.wals.lock();
            let count = wals.iter().take_while(|wal| wal.id < first).count();
            wals.drain(..count).map(|wal| wal.id).collect()
        };
        for id in old {
            if let Err(error) = self.env.fs.remove(&self.path(FileKind::Wal, id)) {
                tracing::warn!(%error, "an old log could not be removed");
            }
        }
    }

    /// Tells scheduler and back-pressure what the tables of trees are now.
    pub fn note_shapes<'a>(&self, trees: impl Iterator<Item = &'a TreeCore> + Clone) {
        for tree in trees.clone() {
            // Read now, so that the scheduler need not read them under its lock. Damage is reported
            // by whoever reads the table.
            let _ = tree.state.load().version.range_deletes();
            self.note_debt(tree);
        }
        self.update_pressure();
        self.sched.want_looks(trees.map(|tree| tree.id));
        self.sched.wake_all();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "install_tests.rs"]
mod tests;
