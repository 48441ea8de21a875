//! Several writes that are done as a whole, as those of a row and of its entries in indexes.

use super::options::LockMode;
use super::txn::Transaction;
use crate::base::error::Result;
use crate::db::api::Tree;
use crate::read::Value;

/// What an [`Operation`] does with its key.
///
/// ```
/// use shaledb::{Action, LockMode};
/// assert_ne!(Action::Put, Action::Insert(LockMode::Shared));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// As [`Transaction::put`].
    Put,
    /// As [`Transaction::insert`], or with [`LockMode::Shared`] as
    /// [`Transaction::insert_or_share`].
    Insert(LockMode),
    /// As [`Transaction::delete`]; the value is not used.
    Delete,
    /// As [`Transaction::put_unlocked`], but only if the call has found a change: see [`Watch`].
    PutIfChanged,
    /// As [`Transaction::put_unlocked`].
    PutUnlocked,
    /// As [`Transaction::delete_unlocked`]; the value is not used.
    DeleteUnlocked,
    /// Nothing, but the key must have a value. It is locked and looked at as by
    /// [`Transaction::get_for_share`], and own writes count. The value is not used.
    Require,
}

/// One operation of [`Transaction::apply`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Action, Operation};
/// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
/// let operation = Operation { tree: &tree, action: Action::Put, key: b"a", value: b"1" };
/// assert_eq!(txn.apply([operation], None)?, None);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// The tree that it writes to, or looks at.
    pub tree: &'a Tree,
    /// What it does.
    pub action: Action,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Asks [`Transaction::apply`] whether others have written the keys of one tree since the snapshot,
/// as by [`Transaction::changed_since_snapshot`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let (rows, by_name) = (db.tree_or_create("rows")?, db.tree_or_create("by name")?);
/// # let on_conflict = shaledb::OnConflict::Latest;
/// # let options = shaledb::TransactionOptions { on_conflict, ..Default::default() };
/// use shaledb::{Action, Operation, Watch};
/// let mut txn = db.begin(options)?;
/// txn.take_snapshot()?;
/// rows.put(b"7", b"ada 36")?;
/// let operations = [
///     Operation { tree: &rows, action: Action::Put, key: b"7", value: b"ada 37" },
///     Operation { tree: &by_name, action: Action::PutIfChanged, key: b"ada 7", value: b"" },
/// ];
/// let mut watch = Watch { tree: &rows, changed: false };
/// txn.apply(operations, Some(&mut watch))?;
/// assert!(watch.changed && txn.get(&by_name, b"ada 7")?.is_some());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Debug)]
pub struct Watch<'a> {
    /// The keys of operations on this tree are looked at, once they are written.
    pub tree: &'a Tree,
    /// Becomes true if one of them was changed. It stays true if an earlier call has found that.
    pub changed: bool,
}

impl Transaction {
    /// Does several operations, in this order, all or none: if one fails, what those before it have
    /// written is undone as by [`Transaction::rollback_to`], and the locks of it with it. `None`:
    /// all are done. Otherwise the place in the list is answered of an [`Action::Insert`], with the
    /// value that it has found, or of an [`Action::Require`] that has found none. Locks of keys
    /// that were required stay.
    ///
    /// # Errors
    /// Those of the operations.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let (rows, emails) = (db.tree_or_create("rows")?, db.tree_or_create("emails")?);
    /// # emails.put(b"ada@example.org", b"7")?;
    /// use shaledb::{Action, LockMode, Operation};
    /// let insert = Action::Insert(LockMode::Shared);
    /// let operations = [
    ///     Operation { tree: &rows, action: insert, key: b"8", value: b"ada" },
    ///     Operation { tree: &emails, action: insert, key: b"ada@example.org", value: b"8" },
    /// ];
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// let (place, found) = txn.apply(operations, None)?.unwrap();
    /// assert_eq!((place, &*found.unwrap()), (1, &b"7"[..]));
    /// assert!(txn.get(&rows, b"8")?.is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn apply<'a>(
        &mut self,
        operations: impl IntoIterator<Item = Operation<'a>>,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Option<(usize, Option<Value>)>> {
        let (writes, keys) = (self.writes.mark(), self.owner.mark());
        let done = self.apply_each(operations, watch);
        // After a deadlock all is undone.
        if !matches!(done, Ok(None)) && self.over.is_none() {
            self.undo_to(writes, keys);
        }
        done
    }

    fn apply_each<'a>(
        &mut self,
        operations: impl IntoIterator<Item = Operation<'a>>,
        mut watch: Option<&mut Watch<'_>>,
    ) -> Result<Option<(usize, Option<Value>)>> {
        for (place, operation) in operations.into_iter().enumerate() {
            let Operation { tree, action, key, value } = operation;
            let existing = match action {
                Action::Put => self.put(tree, key, value).map(|()| None)?,
                Action::Delete => self.delete(tree, key).map(|()| None)?,
                Action::Insert(LockMode::Exclusive) => self.insert(tree, key, value)?,
                Action::Insert(LockMode::Shared) => self.insert_or_share(tree, key, value)?,
                Action::PutUnlocked => {
                    self.put_unlocked(tree, key, value)?;
                    continue;
                }
                Action::DeleteUnlocked => {
                    self.delete_unlocked(tree, key)?;
                    continue;
                }
                Action::PutIfChanged => {
                    if watch.as_ref().is_some_and(|watch| watch.changed) {
                        self.put_unlocked(tree, key, value)?;
                    }
                    continue;
                }
                Action::Require if self.is_there_locked(tree, key)? => continue,
                Action::Require => return Ok(Some((place, None))),
            };
            if existing.is_some() {
                return Ok(Some((place, existing)));
            }
            if let Some(watch) = watch.as_deref_mut().filter(|watch| watch.tree.id() == tree.id()) {
                watch.changed |= self.changed_since_snapshot(tree, key)?;
            }
        }
        Ok(None)
    }
}
