//! Rows that others write where a scan goes that locks no gaps.
//!
//! At [`Isolation::ReadCommitted`] nothing keeps others from adding rows beside those that a scan
//! has locked. What is committed when it comes to the place it shows; for what is not committed it
//! waits, as it waits for rows that it sees. So it asks the lock table at its beginning, and again
//! after each wait, where the next key is that another has locked to write, and asks for the lock
//! of that key only when it comes there.

use super::state::LockingScan;
use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::transaction::options::Isolation;
use crate::db::transaction::txn::Transaction;
use crate::read::conflict::{self, Scope};
use crate::txn::{Span, Writers};

impl LockingScan {
    /// Waits for one who writes a row that the scan does not see, between where it is and the row
    /// that it has found; answers whether it has done so. Then the rows are to be looked at anew.
    pub(super) fn await_writer(
        &mut self,
        transaction: &mut Transaction,
        (from, end): (&[u8], Option<&[u8]>),
        found: Option<&[u8]>,
        backward: bool,
    ) -> Result<bool> {
        let locks_gaps = transaction.options.isolation != Isolation::ReadCommitted;
        if locks_gaps || self.passes_locked(transaction) || transaction.is_optimistic() {
            return Ok(false);
        }
        let is_here = |key: &Vec<u8>| from <= key.as_slice() && end.is_none_or(|end| **key < *end);
        let again = self.ahead.asked.take().filter(is_here);
        let writer = again.or_else(|| self.writer_in(transaction, from, end, backward));
        // The row that is found is asked for in any case.
        let Some(key) = writer.filter(|key| found != Some(key)) else { return Ok(false) };
        debug_assert!(is_here(&key), "it waits for what is in the piece");
        if let Err(error) = transaction.lock_span(&self.tree, Span::Key(&key), self.lock_mode()) {
            self.ahead.asked = Some(key);
            return Err(error);
        }
        self.rows = None;
        self.ahead.writers = None;
        self.ahead.awaited = Some(key);
        Ok(true)
    }

    /// Whether it has waited since. Then it goes on from the row that it has waited for, as a
    /// cursor that stands there, and does not come to what is new behind it. (One that locks gaps
    /// has locked what is behind.)
    pub(super) fn has_waited(&self, transaction: &Transaction, since: u64) -> bool {
        let locks_gaps = transaction.options.isolation != Isolation::ReadCommitted;
        !locks_gaps && transaction.owner.waits() != since
    }

    /// The row that it has waited for and does not see yet.
    pub(super) fn awaited(&self, transaction: &Transaction, since: u64) -> Option<&[u8]> {
        self.ahead.awaited.as_deref().filter(|_| self.has_waited(transaction, since))
    }

    /// Whether the row that is found is the one that was waited for: then it is locked, and as it
    /// is now. Of another place the lock is given up.
    pub(super) fn has_awaited(
        &mut self,
        transaction: &mut Transaction,
        found: Option<&[u8]>,
    ) -> Result<bool> {
        let Some(key) = self.ahead.awaited.take() else { return Ok(false) };
        let is_it = found == Some(&key);
        if !is_it {
            transaction.unlock(&self.tree, &key)?;
        }
        Ok(is_it)
    }

    /// The row that it has locked is not as it was found, or not there any more.
    pub(super) fn looks_again_at(&mut self, transaction: &Transaction, row: Option<&[u8]>) {
        if transaction.options.isolation == Isolation::ReadCommitted {
            self.ahead.awaited = row.map(<[u8]>::to_vec);
        }
    }

    /// The nearest key from `from` to before `end` that another has locked to write.
    fn writer_in(
        &mut self,
        transaction: &Transaction,
        from: &[u8],
        end: Option<&[u8]>,
        backward: bool,
    ) -> Option<Vec<u8>> {
        let waits = transaction.owner.waits();
        if (self.ahead.waits, self.ahead.backward) != (waits, backward) {
            (self.ahead.waits, self.ahead.backward) = (waits, backward);
            self.ahead.writers = None;
        }
        if backward {
            if self.ahead.writers.is_none() {
                self.ahead.writers = Some(self.ask(transaction, &self.lower, end, true));
            }
            let mut end = end.map(<[u8]>::to_vec);
            while self.ahead.writers != Some(Writers::Nowhere) {
                match self.ask(transaction, from, end.as_deref(), true) {
                    Writers::Nowhere => return None,
                    Writers::At(key) => return Some(key),
                    Writers::UpTo(key) => end = Some(key),
                }
            }
            return None;
        }
        loop {
            let start = match &self.ahead.writers {
                Some(Writers::Nowhere) => return None,
                Some(Writers::At(key) | Writers::UpTo(key))
                    if end.is_some_and(|end| end <= key) =>
                {
                    return None;
                }
                Some(Writers::At(key)) if from <= key.as_slice() => return Some(key.clone()),
                Some(Writers::UpTo(key)) if from < key.as_slice() => key.as_slice(),
                _ => from,
            };
            self.ahead.writers = Some(self.ask(transaction, start, self.upper.as_deref(), false));
        }
    }

    fn ask(
        &self,
        transaction: &Transaction,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
    ) -> Writers {
        let (tree, span) = (self.tree.id(), (lower, upper));
        transaction.core().locks.writers(&transaction.owner, tree, span, backward)
    }

    /// Whether the rows of a piece are still as they were found. If not, they are to be looked at
    /// anew.
    pub(super) fn is_current(&mut self, from: &[u8], end: Option<&[u8]>) -> Result<bool> {
        let Some(rows) = &self.rows else { return Ok(false) };
        if self.has_one_view {
            return Ok(true);
        }
        let since = rows.snapshot.seq();
        // What is on its way into memtables a new look would not show either.
        if self.tree.core().visible.load(Ordering::Acquire) <= since {
            return Ok(true);
        }
        let state = self.tree.inner.state.load();
        let same = Arc::ptr_eq(&rows.state, &state);
        // The tables of the same state are older than the snapshot, but for those of a commit that
        // had put them into the tree and had not yet told its number.
        let is_older = same && state.version.max_seq() <= since;
        let scope = if is_older { Scope::Memtables } else { Scope::All };
        let changed = conflict::changed_after(&state, from, end, since, scope)?.is_some();
        if changed {
            self.rows = None;
        }
        // Newer tables cost a look into each with every step.
        self.renews = !is_older;
        Ok(!changed)
    }
}
