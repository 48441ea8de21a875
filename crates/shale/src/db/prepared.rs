//! Transactions in two phases: prepared durably, decided later, also after a crash.
//!
//! The writes of a prepared transaction are in its record of the log and in memory; nobody sees
//! them, and their keys stay locked. The commit record names them, and the log is kept from the
//! prepare record on until they are in tables: see [`Memtable::needs_log_from`]. Those of a large
//! one are in tables from the prepare on: see `prepared_tables`.
//!
//! [`Memtable::needs_log_from`]: crate::memtable::Memtable::needs_log_from

use super::core::{Core, Leader};
use super::options::WriteOptions;
use super::{Db, Handle};
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SeqNo};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::fs::Clock;
use crate::table::Blob;
use crate::table::meta::{FileId, TableMeta};
use crate::txn::{Lock, Mode, Owner, Span, Wait};
use crate::version::TreeId;
use crate::wal::payload::{self, XID_BYTES_MAX};
use crate::wal::{OpIter, Undecided};

/// The tables of a large transaction by tree.
pub(crate) type TablesOf = Vec<(TreeId, Vec<TableMeta>)>;

/// Where the writes of a prepared transaction are.
pub(crate) enum PreparedWrites {
    /// In the log: the number of the prepare record, and the operations as in it.
    Logged { seq: SeqNo, ops: Vec<u8> },
    /// In tables that the manifest names and that are in no tree; the files are called runs.
    Tables(TablesOf),
}

/// A prepared transaction that is not decided.
pub(crate) struct PreparedCore {
    pub writes: PreparedWrites,
    /// The file that tells of it if the manifest does not; see [`mark`].
    ///
    /// [`mark`]: crate::version::mark
    pub mark: Option<FileId>,
    /// Its locks.
    pub owner: Owner,
    /// The blob files that it refers to.
    pub blobs: Vec<Arc<Blob>>,
}

impl PreparedCore {
    /// From where on it needs the log, if it does.
    pub fn log_seq(&self) -> Option<SeqNo> {
        match &self.writes {
            PreparedWrites::Logged { seq, .. } => Some(*seq),
            PreparedWrites::Tables(_) => None,
        }
    }

    fn logged(&self) -> Option<(SeqNo, &[u8])> {
        match &self.writes {
            PreparedWrites::Logged { seq, ops } => Some((*seq, ops)),
            PreparedWrites::Tables(_) => None,
        }
    }

    /// What its writes take: in memory, or of tables on disk.
    pub fn bytes(&self) -> u64 {
        match &self.writes {
            PreparedWrites::Logged { ops, .. } => ops.len() as u64,
            PreparedWrites::Tables(_) => self.tables().map(|meta| meta.file_bytes).sum(),
        }
    }

    /// The tables that it needs.
    pub fn tables(&self) -> impl Iterator<Item = &TableMeta> {
        let trees = match &self.writes {
            PreparedWrites::Logged { .. } => &[][..],
            PreparedWrites::Tables(trees) => trees,
        };
        trees.iter().flat_map(|(_, tables)| tables)
    }
}

/// A transaction that was prepared and is to be committed or rolled back, by
/// [`Transaction::prepare`](crate::Transaction::prepare) or, after the database was opened anew, by
/// [`Db::prepared`]. Its writes are durable, nobody sees them, and their keys are locked until it
/// is decided. Dropping this decides nothing. Of its clones one can decide.
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shale::{Prepared, TransactionOptions, WriteOptions};
///
/// let mut txn = db.begin(TransactionOptions::default())?;
/// txn.put(&tree, b"a", b"1")?;
/// let prepared: Prepared = txn.prepare(b"order 17")?;
/// assert!(tree.get(b"a")?.is_none());
/// // When all who take part have prepared:
/// prepared.commit(WriteOptions::SYNC)?;
/// assert!(tree.get(b"a")?.is_some());
/// # Ok::<(), shale::Error>(())
/// ```
#[derive(Clone)]
pub struct Prepared {
    handle: Arc<Handle>,
    xid: Vec<u8>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prepared(\"{}\")", self.xid.escape_ascii())
    }
}

impl Prepared {
    pub(super) fn new(handle: Arc<Handle>, xid: &[u8]) -> Prepared {
        Prepared { handle, xid: xid.to_vec() }
    }

    /// The name it was prepared under.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// let txn = db.begin(shale::TransactionOptions::default())?;
    /// assert_eq!(txn.prepare(b"order 17")?.xid(), b"order 17");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn xid(&self) -> &[u8] {
        &self.xid
    }

    /// Makes its writes visible, in one place of the commit order, and lets go of its locks.
    /// Without a sync a crash of the machine may leave it prepared, to be decided again.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it has been decided already; what a write may fail with: then
    /// it stays prepared.
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shale::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.prepare(b"order 17")?.commit(shale::WriteOptions::SYNC)?;
    /// assert_eq!(tree.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn commit(self, options: WriteOptions) -> Result<()> {
        self.handle.core.decide(&self.xid, true, options.sync)
    }

    /// Undoes it: nothing of it will ever be seen.
    ///
    /// # Errors
    /// As [`Prepared::commit`].
    ///
    /// ```
    /// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
    /// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(shale::TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// txn.prepare(b"order 17")?.rollback(shale::WriteOptions::default())?;
    /// assert!(tree.get(b"a")?.is_none());
    /// assert!(db.prepared()?.is_empty());
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn rollback(self, options: WriteOptions) -> Result<()> {
        self.handle.core.decide(&self.xid, false, options.sync)
    }
}

impl Db {
    /// The transactions that are prepared and not decided, by name: after a crash, those that
    /// whoever coordinates has to decide.
    ///
    /// ```
    /// # let env = shale::Env::memory();
    /// # let open = || {
    /// #     let options = shale::OpenOptions { env: env.clone(), ..Default::default() };
    /// #     shale::Db::open_in("/db", shale::Config::default(), options)
    /// # };
    /// use shale::{TransactionOptions, WriteOptions};
    ///
    /// let db = open()?;
    /// let tree = db.tree_or_create("t")?;
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// txn.put(&tree, b"a", b"1")?;
    /// drop(txn.prepare(b"order 17")?);
    /// drop((tree, db)); // or a crash
    ///
    /// let db = open()?;
    /// for prepared in db.prepared()? {
    ///     prepared.commit(WriteOptions::SYNC)?;
    /// }
    /// assert_eq!(db.tree("t")?.get(b"a")?.unwrap(), b"1");
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn prepared(&self) -> Result<Vec<Prepared>> {
        let core = self.core();
        core.check_open()?;
        let names: Vec<Vec<u8>> = core.prepared.lock().keys().cloned().collect();
        Ok(names.iter().map(|xid| Prepared::new(self.handle.clone(), xid)).collect())
    }
}

pub(super) fn not_prepared(xid: &[u8]) -> Error {
    Error::InvalidArgument(format!(
        "no transaction is prepared under the name `{}`: it has been decided already",
        xid.escape_ascii()
    ))
}

impl Core {
    /// Refuses a name that cannot be prepared under.
    pub fn check_xid(&self, xid: &[u8]) -> Result<()> {
        if xid.is_empty() || xid.len() > XID_BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "the name of a prepared transaction has 1 to {XID_BYTES_MAX} bytes, not {}",
                xid.len()
            )));
        }
        if self.prepared.lock().contains_key(xid) {
            return Err(Error::InvalidArgument(format!(
                "a transaction is prepared under the name `{}` already; decide it first",
                xid.escape_ascii()
            )));
        }
        Ok(())
    }

    /// Appends the prepare of these operations and notes it, and with it the locks of `owner`.
    pub fn lead_prepare(
        &self,
        leader: &mut Leader,
        xid: &[u8],
        ops: &[u8],
        owner: &mut Owner,
    ) -> Result<()> {
        self.check_xid(xid)?;
        let seq = self.append_one(leader, |out| payload::put_prepare(out, xid, ops))?;
        let owner = std::mem::replace(owner, self.locks.owner());
        let blobs = self.blobs_of(ops);
        let writes = PreparedWrites::Logged { seq, ops: ops.to_vec() };
        let prepared = PreparedCore { writes, mark: None, owner, blobs };
        self.prepared.lock().insert(xid.to_vec(), prepared);
        // After it has been noted, so that whoever sees the number finds what needs the log.
        self.visible.store(seq, Ordering::Release);
        Ok(())
    }

    fn blobs_of(&self, ops: &[u8]) -> Vec<Arc<Blob>> {
        let blobs = OpIter::new(ops, 1).filter(|op| op.kind == Kind::Blob);
        blobs.filter_map(|op| self.blob_of_ref(op.value)).collect()
    }

    /// Takes in what recovery found prepared, and locks its keys again.
    pub fn adopt_prepared(&self, xid: Vec<u8>, undecided: Undecided, clock: &dyn Clock) {
        let Undecided { seq, ops } = undecided;
        let mut owner = self.locks.owner();
        let mut writes = 0;
        for op in OpIter::new(&ops, 1) {
            let span = match op.kind {
                Kind::RangeDelete => Span::Range(op.key, Some(op.value)),
                _ => Span::Key(op.key),
            };
            if !self.lock_again(&mut owner, op.tree, span, clock) {
                break;
            }
            writes += 1;
        }
        owner.note_writes(writes, ops.len() as u64);
        let blobs = self.blobs_of(&ops);
        let writes = PreparedWrites::Logged { seq, ops };
        let prepared = PreparedCore { writes, mark: None, owner, blobs };
        self.prepared.lock().insert(xid, prepared);
    }

    /// Locks what is prepared as before a crash. All was held at once then. Only the bound on
    /// memory may be in the way, if it is lower now; then others may come first, which a lock
    /// would have held up.
    pub fn lock_again(
        &self,
        owner: &mut Owner,
        tree: TreeId,
        span: Span<'_>,
        clock: &dyn Clock,
    ) -> bool {
        let lock = Lock { tree, span, mode: Mode::Write };
        let refused = self.locks.acquire(owner, lock, Wait::Never, clock).err();
        if let Some(refusal) = &refused {
            tracing::warn!(?refusal, "a key of a prepared transaction is not locked again");
        }
        refused.is_none()
    }

    /// Commits what is prepared under this name, or rolls it back.
    fn decide(&self, xid: &[u8], commit: bool, sync: bool) -> Result<()> {
        self.check_writable()?;
        let logged = self.prepared.lock().get(xid).map(|p| p.logged().is_some());
        if !logged.ok_or_else(|| not_prepared(xid))? {
            return if commit { self.commit_tables(xid) } else { self.rollback_tables(xid) };
        }
        // It does not wait for room: the prepare has, when it could still be refused.
        let mut leader = self.leader.lock();
        self.check_writable()?;
        let mut prepared = self.lead_decision(&mut leader, xid, commit)?;
        drop(leader);
        self.locks.release(&mut prepared.owner);
        if commit || prepared.blobs.is_empty() {
            return self.sync_if(sync);
        }
        // If a crash took the rollback, it would be prepared again and need its blobs.
        self.sync_commits()?;
        prepared.blobs.iter().for_each(|blob| blob.mark_obsolete());
        Ok(())
    }

    /// Appends the decision and does what it says.
    fn lead_decision(&self, leader: &mut Leader, xid: &[u8], commit: bool) -> Result<PreparedCore> {
        let logged = |p: &PreparedCore| p.logged().map(|(seq, ops)| (seq, ops.to_vec()));
        let ops = self.prepared.lock().get(xid).and_then(logged);
        let (from, ops) = ops.ok_or_else(|| not_prepared(xid))?;
        let seq = self.append_one(leader, |out| payload::put_decision(out, xid, commit))?;
        let ops = if commit { &ops[..] } else { &[] };
        self.apply_decided(leader, ops, seq, from, || {
            // After its memtables say from where on they need the log, which this said so far; and
            // before the log may be rotated, which logs again what is here.
            self.prepared.lock().remove(xid).ok_or_else(|| not_prepared(xid))
        })
    }

    /// Logs again what was prepared in logs up to the one that ends with `oldest`, so that these
    /// can go.
    pub fn prepare_again(&self, leader: &mut Leader, oldest: SeqNo) -> Result<()> {
        let old: Vec<(Vec<u8>, Vec<u8>)> = {
            let prepared = self.prepared.lock();
            let logged = prepared.iter().filter_map(|(xid, p)| Some((xid, p.logged()?)));
            let old = logged.filter(|(_, (seq, _))| *seq <= oldest);
            old.map(|(xid, (_, ops))| (xid.clone(), ops.to_vec())).collect()
        };
        if old.is_empty() {
            return Ok(());
        }
        let mut again = Vec::with_capacity(old.len());
        for (xid, ops) in old {
            let seq = self.append_one(leader, |out| payload::put_prepare(out, &xid, &ops))?;
            self.visible.store(seq, Ordering::Release);
            again.push((xid, seq));
        }
        // The old logs may go as soon as the new numbers are noted.
        let through = leader.next_seq - 1;
        self.sync_log(leader, through)?;
        let mut prepared = self.prepared.lock();
        for (xid, seq) in again {
            if let Some(PreparedCore { writes: PreparedWrites::Logged { seq: of, .. }, .. }) =
                prepared.get_mut(&xid)
            {
                *of = seq;
            }
        }
        Ok(())
    }
}
