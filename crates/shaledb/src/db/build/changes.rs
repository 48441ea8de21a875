//! Which keys of a tree writers change while someone copies it, in whatever form.
//!
//! Writers put the key of each row that they change into a tree of *changes*. A copy begins with
//! what the source has at one snapshot. Then come rounds: a round has the keys that were changed
//! since the snapshot before, and a snapshot of its own. Whoever copies looks at these rows at
//! both, so it needs to know nothing of what writers did, and they know nothing of the copy's form.
//! What a round has taken leaves the tree of changes.

use super::writers::wait_for_writers;
use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::db::api::{Snapshot, Tree};
use crate::db::core::Core;
use crate::db::ingest::Held;
use crate::read::Changes;
use crate::state::TreeState;
use crate::version::TreeId;
use crate::version::edit::TreeEdit;
use std::time::Duration;

/// A tree of changes, and how many of them have been taken.
pub(super) struct Rounds {
    pub tree: Tree,
    /// Those up to this one.
    after: SeqNo,
}

impl Rounds {
    pub fn new(tree: Tree, after: SeqNo) -> Rounds {
        Rounds { tree, after }
    }

    fn core(&self) -> &Arc<Core> {
        &self.tree.handle.core
    }

    /// What was committed since the last round. With a `flush` the next round reads none of it
    /// again.
    pub fn begin(&self, flush: bool) -> Result<ChangeRound> {
        let (core, inner) = (self.core(), &self.tree.inner);
        let _held = core.hold_compactions(inner)?;
        if flush {
            core.flush(Some(inner))?;
        }
        let snapshot = Snapshot::take(core);
        let state = inner.state.load_full();
        // A tree that was dropped has no changes any more.
        self.tree.check()?;
        let has_ranges = |memtable: &Arc<_>| crate::memtable::Memtable::has_range_deletes(memtable);
        if state.version.has_range_deletes() || state.memtables().any(has_ranges) {
            let name = self.tree.name();
            let what = format!("a range of tree `{name}` was deleted; delete entry by entry there");
            return Err(Error::InvalidArgument(what));
        }
        let (core, tree, after) = (core.clone(), inner.id, self.after);
        Ok(ChangeRound { core, tree, state, after, snapshot, _held })
    }

    /// Takes the changes of a round: those that are in tables leave the tree. It must be the next
    /// one: else changes that no round has would leave with them.
    pub fn end(&mut self, round: ChangeRound) -> Result<()> {
        let inner = &self.tree.inner;
        let is_ours = Arc::ptr_eq(&round.core, self.core()) && round.tree == inner.id;
        if !is_ours || round.after != self.after {
            let why = match is_ours {
                true => "another round has ended since it began",
                false => "it is of another tracker",
            };
            return Err(Error::InvalidArgument(format!(
                "the round cannot end for tree `{}`: {why}; nothing was changed; begin a new \
                 round, and copy what that has",
                self.tree.name()
            )));
        }
        self.after = round.snapshot.seq();
        // Until here it needs its state, and from here the hold.
        let ChangeRound { state, _held, .. } = round;
        drop(state);
        let version = inner.state.load().version.clone();
        let taken = version.tables().filter(|(_, table)| table.meta.max_seq <= self.after);
        let removed: Vec<_> = taken.map(|(level, table)| (level, table.meta.id)).collect();
        if !removed.is_empty() {
            let edit = TreeEdit { tree: inner.id, removed, ..TreeEdit::default() };
            self.core().install(inner, edit, &[])?;
        }
        Ok(())
    }
}

/// The keys that were changed between two snapshots, by [`ChangeTracker::begin_round`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let people = db.tree_or_create("people")?;
/// let tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
/// tracker.tree().put(b"1", b"")?;
/// let round = tracker.begin_round(false)?;
/// assert_eq!(round.keys().collect::<Result<Vec<_>, _>>()?, [b"1"]);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct ChangeRound {
    core: Arc<Core>,
    /// The tree of changes.
    tree: TreeId,
    state: Arc<TreeState>,
    after: SeqNo,
    snapshot: Snapshot,
    _held: Held,
}

impl std::fmt::Debug for ChangeRound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeRound").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

impl ChangeRound {
    /// Its changes are those up to this snapshot.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # let tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
    /// people.put(b"1", b"ada")?;
    /// let round = tracker.begin_round(false)?;
    /// assert_eq!(people.get_at(b"1", tracker.copied())?, None);
    /// assert_eq!(people.get_at(b"1", round.snapshot())?.unwrap(), b"ada");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The keys, ascending. They may be read several times.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # let tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
    /// let round = tracker.begin_round(false)?;
    /// assert_eq!(round.keys().count(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn keys(&self) -> ChangedKeys {
        ChangedKeys(Some(self.changes()))
    }

    pub(super) fn changes(&self) -> Changes {
        Changes::new(&self.state, self.after, self.snapshot.seq(), self.core.clone())
    }
}

/// The keys of a [`ChangeRound`]: an iterator, which gives up with the first error.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let people = db.tree_or_create("people")?;
/// # let tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
/// for key in tracker.begin_round(true)?.keys() {
///     println!("{:?}", key?);
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct ChangedKeys(Option<Changes>);

impl std::fmt::Debug for ChangedKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangedKeys").finish_non_exhaustive()
    }
}

impl Iterator for ChangedKeys {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Result<Vec<u8>>> {
        let changes = self.0.as_mut()?;
        let step = changes.step();
        if let Ok(true) = step {
            return Some(Ok(changes.key().to_vec()));
        }
        self.0 = None;
        step.err().map(Err)
    }
}

/// Tells which rows of a tree have been changed since they were copied; see
/// [`Tree::track_changes`]. Dropping it drops the tree of changes, and so does an open after a
/// crash.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let people = db.tree_or_create("people")?;
/// use shaledb::ChangeTracker;
/// let tracker: ChangeTracker = people.track_changes("changed", std::time::Duration::ZERO)?;
/// drop(tracker);
/// assert!(db.tree("changed").is_err());
/// # Ok::<(), shaledb::Error>(())
/// ```
pub struct ChangeTracker {
    source: Tree,
    rounds: Rounds,
    copied: Snapshot,
}

impl std::fmt::Debug for ChangeTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeTracker").field("tree", &self.rounds.tree).finish_non_exhaustive()
    }
}

impl Tree {
    /// Begins to keep which rows of this tree are changed, so that it can be copied in another form
    /// while writers go on.
    ///
    /// Whoever changes a row from now on puts its key into [`ChangeTracker::tree`] too, in the same
    /// batch or transaction, whatever the change is; the value is not used. The row's own lock is
    /// enough: [`Transaction::put_unlocked`](crate::Transaction::put_unlocked).
    ///
    /// # The caller's part
    /// As of [`Tree::build_online`]: while this call runs nobody may be changing the tree who does
    /// not do that. Transactions that have written to it are waited for, `writers_wait` at most.
    /// The tracker is dropped under the same lock: who then writes to its tree gets
    /// [`Error::NoSuchTree`].
    ///
    /// # Errors [`Error::TreeExists`] if there is a tree `name`; [`Error::LockTimeout`] if a
    /// transaction does not end in time.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// use shaledb::{Batch, ScanOptions, Snapshot, WriteOptions};
    /// let (people, ages) = (db.tree_or_create("people")?, db.tree_or_create("ages")?);
    /// people.put(b"ada", b"36")?;
    ///
    /// let mut tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
    /// let begin = ScanOptions { snapshot: Some(tracker.copied()), ..ScanOptions::default() };
    /// for row in people.scan_with(begin)? {
    ///     let (name, age) = row?;
    ///     ages.put(&[&age[..], &name[..]].concat(), b"")?;
    /// }
    ///
    /// // A writer, meanwhile.
    /// let mut batch = Batch::new();
    /// batch.put(&people, b"ada", b"37");
    /// batch.put(tracker.tree(), b"ada", b"");
    /// db.write(&batch, WriteOptions::default())?;
    ///
    /// // Once more when nobody writes.
    /// let round = tracker.begin_round(false)?;
    /// let entry = |name: &[u8], at: &Snapshot| -> Result<Option<Vec<u8>>, shaledb::Error> {
    ///     Ok(people.get_at(name, at)?.map(|age| [&age[..], name].concat()))
    /// };
    /// for name in round.keys() {
    ///     let name = name?;
    ///     if let Some(was) = entry(&name, tracker.copied())? {
    ///         ages.delete(&was)?;
    ///     }
    ///     if let Some(is) = entry(&name, round.snapshot())? {
    ///         ages.put(&is, b"")?;
    ///     }
    /// }
    /// tracker.end_round(round)?;
    /// assert!(ages.get(b"36ada")?.is_none() && ages.get(b"37ada")?.is_some());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn track_changes(&self, name: &str, writers_wait: Duration) -> Result<ChangeTracker> {
        self.check()?;
        let created = [(name, TreeConfig::default())];
        let (mut trees, seq) = self.handle.core.begin_build(&created)?;
        let inner = trees.pop().ok_or_else(|| Error::NoSuchTree(name.to_owned()))?;
        let tree = Tree { handle: self.handle.clone(), inner };
        let rounds = Rounds::new(tree, seq);
        let copied = Snapshot::take(&self.handle.core);
        let mut tracker = ChangeTracker { source: self.clone(), rounds, copied };
        tracker.wait_for_writers(writers_wait)?;
        tracker.copied = Snapshot::take(&self.handle.core);
        Ok(tracker)
    }
}

impl ChangeTracker {
    /// The tree that writers put the keys of rows into.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// let tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
    /// assert_eq!(tracker.tree().name(), "changed");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn tree(&self) -> &Tree {
        &self.rounds.tree
    }

    /// What the copy has: at first what it begins with, later what the last round has ended with.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// # people.put(b"1", b"ada")?;
    /// let tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
    /// people.put(b"1", b"grace")?;
    /// assert_eq!(people.get_at(b"1", tracker.copied())?.unwrap(), b"ada");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn copied(&self) -> &Snapshot {
        &self.copied
    }

    /// What was changed since [`ChangeTracker::copied`]. While rounds have many keys, begin them
    /// with a `flush` of the tree of changes, so that the next one reads none of them again. The
    /// last one is begun without, when nobody writes and
    /// [`ChangeTracker::wait_for_writers`] has ended: the copy has all then.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a range of the tree of changes was deleted;
    /// [`Error::NoSuchTree`] if it is gone; what the disk fails with.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// let mut tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
    /// tracker.tree().put(b"1", b"")?;
    /// let round = tracker.begin_round(true)?;
    /// tracker.end_round(round)?;
    /// assert_eq!(tracker.begin_round(true)?.keys().count(), 0);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn begin_round(&self, flush: bool) -> Result<ChangeRound> {
        self.rounds.begin(flush)
    }

    /// The copy has what the round has. (A round that is dropped instead comes again.)
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the round is of another tracker, or another one has ended
    /// since it began: then nothing is done. What the disk fails with: the copy is of no use then.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// let mut tracker = people.track_changes("changed", std::time::Duration::ZERO)?;
    /// let round = tracker.begin_round(true)?;
    /// let until = round.snapshot().seq();
    /// tracker.end_round(round)?;
    /// assert_eq!(tracker.copied().seq(), until);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn end_round(&mut self, round: ChangeRound) -> Result<()> {
        let snapshot = round.snapshot.clone();
        self.rounds.end(round)?;
        self.copied = snapshot;
        Ok(())
    }

    /// Waits for transactions, prepared ones too, that have written to the source or to the tree of
    /// changes, as by [`Tree::wait_for_writers`].
    ///
    /// # Errors
    /// [`Error::LockTimeout`] if one has not ended after `limit`.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let people = db.tree_or_create("people")?;
    /// let limit = std::time::Duration::from_secs(50);
    /// let tracker = people.track_changes("changed", limit)?;
    /// tracker.wait_for_writers(limit)?;
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn wait_for_writers(&self, limit: Duration) -> Result<()> {
        let trees = [&self.source, &self.rounds.tree];
        wait_for_writers(self.rounds.core(), &trees, limit, self.rounds.tree.name())
    }
}

impl Drop for ChangeTracker {
    fn drop(&mut self) {
        drop_unfinished(&[&self.rounds.tree]);
    }
}

/// Drops trees of a build that is given up. A failure leaves it to the next open.
pub(super) fn drop_unfinished(trees: &[&Tree]) {
    if trees.iter().any(|tree| tree.core().guard.is_foreign()) {
        return;
    }
    let is_unfinished = |tree: &&&Tree| tree.inner.is_building() && !tree.inner.is_dropped();
    let names: Vec<&str> = trees.iter().filter(is_unfinished).map(|tree| tree.name()).collect();
    let (Some(tree), false) = (trees.first(), names.is_empty()) else { return };
    if let Err(error) = tree.handle.core.change_trees(&[], &names) {
        tracing::warn!(%error, ?names, "trees of a build could not be dropped");
    }
}
