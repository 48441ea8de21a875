//! Transactions in two phases whose writes fit their memory.
//!
//! The writes of such a prepared transaction are in its record of the log and in memory; nobody
//! sees them, and their keys stay locked. The commit record names them, and the log is kept from
//! the prepare record on until they are in tables: see [`Memtable::needs_log_from`].
//!
//! [`Memtable::needs_log_from`]: crate::memtable::Memtable::needs_log_from

use super::names::not_prepared;
use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo};
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::db::core::{Core, Leader, PreparedCore, PreparedWrites, Written};
use crate::fs::Clock;
use crate::table::Blob;
use crate::txn::{Lock, Mode, Owner, Span, Wait};
use crate::version::TreeId;
use crate::wal::payload;
use crate::wal::{OpIter, Undecided};
use crate::write::ops::Ops;

impl Core {
    /// Appends the prepare of these operations and notes it, and with it the locks of `owner`.
    pub fn prepare_locked(
        &self,
        leader: &mut Leader,
        xid: &[u8],
        ops: &Ops,
        owner: &mut Owner,
    ) -> Result<()> {
        self.check_xid(xid)?;
        let (written, ops) = (Written::from(ops), ops.bytes());
        let seq = self.append_one(leader, |out| payload::put_prepare(out, xid, ops))?;
        assert!(seq < leader.next_seq, "a prepare has a number of its own");
        // The log may become long by what is never committed.
        leader.bytes_since_check += ops.len() as u64;
        let owner = std::mem::replace(owner, self.locks.owner());
        let blobs = self.blobs_of(ops);
        let writes = PreparedWrites::Logged { seq, ops: ops.to_vec() };
        let prepared = PreparedCore { writes, written, mark: None, owner, blobs };
        let before = self.prepared.lock().insert(xid.to_vec(), prepared);
        assert!(before.is_none(), "a name is prepared once until it is decided");
        // After it has been noted, so that whoever sees the number finds what needs the log.
        self.publish(seq);
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
        let written = Written::of_ops(&ops);
        let writes = PreparedWrites::Logged { seq, ops };
        let prepared = PreparedCore { writes, written, mark: None, owner, blobs };
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

    /// Appends the decision and does what it says.
    pub fn decide_locked(
        &self,
        leader: &mut Leader,
        xid: &[u8],
        commit: bool,
    ) -> Result<PreparedCore> {
        let logged = |p: &PreparedCore| p.logged().map(|(seq, ops)| (seq, ops.to_vec()));
        let ops = self.prepared.lock().get(xid).and_then(logged);
        let (from, ops) = ops.ok_or_else(|| not_prepared(xid))?;
        let seq = self.append_one(leader, |out| payload::put_decision(out, xid, commit))?;
        assert!(from < seq, "a decision comes after its prepare");
        let ops = if commit { &ops[..] } else { &[] };
        let applied = self.apply_decided(ops, seq, from);
        // After its memtables say from where on they need the log, and it is noted that this must
        // be durable, which it told of so far; and before the log may be rotated, which logs again
        // what is here.
        let ended = self.prepared.lock().remove(xid);
        assert!(ended.is_some(), "what is prepared is decided once");
        applied.publish(leader);
        let ended = ended.ok_or_else(|| not_prepared(xid))?;
        if commit {
            self.recorder.add(Counter::CommitGroups, 1);
            self.count_commit(ended.written);
        }
        Ok(ended)
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
            self.publish(seq);
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
                assert!(*of < seq, "it is logged again after it was");
                *of = seq;
            }
        }
        Ok(())
    }
}
