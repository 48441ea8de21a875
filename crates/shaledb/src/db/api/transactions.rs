//! What a database is busy with: which transactions are under way, what they have locked, for whom
//! they wait, and how the last deadlock came about.

use super::handle::Db;
use crate::base::error::Result;
use crate::base::lock_error::Deadlock;
use crate::db::core::Core;
use crate::txn::{Live, Lock, TxnId};
use crate::version::TreeId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A transaction that has begun and not ended, as of a moment ago; of [`Db::transactions`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let txn = db.begin(shaledb::TransactionOptions::default())?;
/// let all: Vec<shaledb::TransactionInfo> = db.transactions()?;
/// assert_eq!((all.len(), all[0].id), (1, txn.id()));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TransactionInfo {
    /// Its number; 0 for one that was found prepared when the database was opened.
    pub id: u64,
    /// How long ago it began, in seconds; 0 for one that was found prepared.
    pub age_seconds: f64,
    /// Its isolation level: `read committed`, `repeatable read` or `serializable`.
    pub isolation: String,
    /// Whether it takes no locks and is checked at commit.
    pub optimistic: bool,
    /// The name it is prepared under, what is not printable ASCII escaped.
    pub prepared: Option<String>,
    /// How many writes it has made and not undone.
    pub writes: u64,
    /// About how many bytes of memory these take.
    pub write_bytes: u64,
    /// How many keys it has locked.
    pub keys_locked: u64,
    /// The names of the trees in which it has locked anything.
    pub trees: Vec<String>,
    /// The lock that it waits for, in words.
    pub waits_for: Option<String>,
    /// The transactions that it waits for.
    pub blockers: Vec<u64>,
}

/// A lock that is held or waited for, as of a moment ago; of [`Db::locks`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
/// txn.get_for_share(&tree, b"k")?;
/// let lock: shaledb::LockInfo = db.locks(10)?.remove(0);
/// assert_eq!((lock.transaction, lock.waits), (txn.id(), false));
/// assert_eq!(lock.text, "a shared lock on key `k` of tree `t`");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockInfo {
    /// The number of the transaction.
    pub transaction: u64,
    /// The name of the tree.
    pub tree: String,
    /// Whether the lock is waited for; otherwise it is held.
    pub waits: bool,
    /// What it is on, and how.
    pub text: String,
}

/// A deadlock, and how long ago it was; of [`Db::last_deadlock`].
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// if let Some(shaledb::LastDeadlock { count, seconds_ago, deadlock }) = db.last_deadlock()? {
///     println!("{count} deadlocks, the last {seconds_ago:.0} s ago: {deadlock}");
/// }
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LastDeadlock {
    /// How many there were since the database was opened.
    pub count: u64,
    /// How long ago the last one was, in seconds.
    pub seconds_ago: f64,
    /// Who waited for whom, and who gave way.
    pub deadlock: Deadlock,
}

impl Db {
    /// The transactions that have begun and not ended, oldest first, with those that are prepared
    /// and not decided. Costs a walk through all locks.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// for txn in db.transactions()? {
    ///     println!("{} has made {} writes in {:.0} s", txn.id, txn.writes, txn.age_seconds);
    /// }
    /// txn.commit(shaledb::WriteOptions::default())?;
    /// assert!(db.transactions()?.is_empty());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn transactions(&self) -> Result<Vec<TransactionInfo>> {
        let core = self.core();
        core.check_open()?;
        core.guard.check_process()?;
        Ok(core.transactions())
    }

    /// Up to `count_max` of the locks that are held or waited for, in no order. Those of different
    /// keys may be of different moments.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shaledb::TransactionOptions::default())?;
    /// txn.delete_range(&tree, b"a", b"b")?;
    /// let locks = db.locks(1_000)?;
    /// assert_eq!(locks[0].text, "a lock to write on the keys from `a` to before `b` of tree `t`");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn locks(&self, count_max: usize) -> Result<Vec<LockInfo>> {
        let core = self.core();
        core.check_open()?;
        core.guard.check_process()?;
        let mut all = Vec::new();
        core.locks.each(&mut |transaction, lock, waits| {
            if all.len() < count_max {
                let (tree, text) = (core.tree_name(lock.tree), core.lock_text(lock));
                all.push(LockInfo { transaction, tree, waits, text });
            }
            all.len() < count_max
        });
        Ok(all)
    }

    /// The last deadlock since the database was opened, if there was one.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// assert!(db.last_deadlock()?.is_none());
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn last_deadlock(&self) -> Result<Option<LastDeadlock>> {
        let core = self.core();
        core.check_open()?;
        core.guard.check_process()?;
        let (count, last) = core.locks.deadlocks();
        let seconds_since = |at: u64| core.env.clock.now_nanos().saturating_sub(at) as f64 / 1e9;
        Ok(last.map(|(report, at)| LastDeadlock {
            count,
            seconds_ago: seconds_since(at),
            deadlock: core.deadlock(&report),
        }))
    }
}

impl Core {
    pub(in crate::db) fn tree_name(&self, id: TreeId) -> String {
        let trees = self.trees.load();
        trees.by_id.get(&id).map_or_else(|| format!("#{id}"), |tree| tree.name.clone())
    }

    fn transactions(&self) -> Vec<TransactionInfo> {
        let mut trees: BTreeMap<TxnId, BTreeSet<TreeId>> = BTreeMap::new();
        self.locks.each(&mut |owner, lock, waits| {
            if !waits {
                trees.entry(owner).or_default().insert(lock.tree);
            }
            true
        });
        let now = self.env.clock.now_nanos();
        let mut all: Vec<TransactionInfo> = self
            .locks
            .live()
            .into_iter()
            .map(|live| {
                let locked = trees.remove(&live.id);
                self.transaction_info(live, locked, now)
            })
            .collect();
        for (xid, prepared) in &*self.prepared.lock() {
            let name = Some(xid.escape_ascii().to_string());
            let id = prepared.owner.id();
            if let Some(known) = all.iter_mut().find(|info| info.id == id) {
                known.prepared = name;
                continue;
            }
            let locked = trees.remove(&id).unwrap_or_default();
            all.push(TransactionInfo {
                prepared: name,
                write_bytes: prepared.bytes(),
                keys_locked: prepared.owner.keys() as u64,
                trees: locked.into_iter().map(|id| self.tree_name(id)).collect(),
                ..TransactionInfo::default()
            });
        }
        all
    }

    fn transaction_info(
        &self,
        live: Live,
        trees: Option<BTreeSet<TreeId>>,
        now: u64,
    ) -> TransactionInfo {
        let wanted = live.waiting.map(|waiting| {
            let span = waiting.span.get();
            self.lock_text(Lock { tree: waiting.tree, span, mode: waiting.mode })
        });
        TransactionInfo {
            id: live.id,
            age_seconds: now.saturating_sub(live.about.began) as f64 / 1e9,
            isolation: live.about.isolation.to_owned(),
            optimistic: live.about.optimistic,
            prepared: None,
            writes: live.writes,
            write_bytes: live.bytes,
            keys_locked: live.keys,
            trees: trees.into_iter().flatten().map(|id| self.tree_name(id)).collect(),
            waits_for: wanted,
            blockers: live.blockers,
        }
    }
}
