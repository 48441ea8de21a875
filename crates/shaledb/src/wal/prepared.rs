//! Transactions in two phases, as a log tells of them: what is prepared, and what becomes of it.

use super::payload::{Entry, Op, WalBatch, prepared_ops};
use crate::base::error::Result;
use crate::base::key::SeqNo;
use std::collections::BTreeMap;

/// A prepared transaction that is not decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecided {
    /// The number of its prepare: the log is needed from there on.
    pub seq: SeqNo,
    /// Its operations; see [`prepared_ops`].
    pub ops: Vec<u8>,
}

/// What is prepared and not decided, at a place in a log.
#[derive(Clone, Debug, Default)]
pub struct PreparedLog {
    /// By name.
    pub undecided: BTreeMap<Vec<u8>, Undecided>,
}

impl PreparedLog {
    /// The bytes of memory that what is undecided takes, about.
    pub fn bytes(&self) -> u64 {
        self.undecided.values().map(|undecided| undecided.ops.len() as u64).sum()
    }

    /// Forgets what was prepared before the number `from`, where the decision on it may be missing.
    /// All before that is in tables, and what is undecided keeps its log: so it was decided.
    pub fn forget_decided(&mut self, from: SeqNo) {
        self.undecided.retain(|_, undecided| undecided.seq >= from);
    }

    /// Takes in a record, and tells `sink` of all operations that it makes, in order: its own, and
    /// those of transactions that it commits, with the number of their prepare.
    ///
    /// A decision on what is not known here tells nothing: the log was cut between the two, since
    /// all that was decided is in tables.
    pub fn read(
        &mut self,
        batch: &WalBatch<'_>,
        sink: &mut dyn FnMut(&Op<'_>, Option<SeqNo>) -> Result<()>,
    ) -> Result<()> {
        for entry in batch.entries() {
            match entry {
                Entry::Op(op) => sink(&op, None)?,
                // One that is there already was logged again, so that the log could be cut.
                Entry::Prepare { seq, xid, ops } => {
                    self.undecided.insert(xid.to_vec(), Undecided { seq, ops: ops.to_vec() });
                }
                Entry::Rollback { xid, .. } => {
                    self.undecided.remove(xid);
                }
                Entry::Commit { seq, xid } => {
                    if let Some(prepared) = self.undecided.remove(xid) {
                        for op in prepared_ops(&prepared.ops, seq) {
                            sink(&op, Some(prepared.seq))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
