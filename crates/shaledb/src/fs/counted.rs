//! A file whose growth is counted: see `ledger`.

use super::account::Account;
use super::changes::Changes;
use super::ledger::Payer;
use super::{Preparer, Syncer, WriteFile};
use crate::base::error::Result;
use crate::base::sync::Arc;
use std::path::Path;

/// A file open for appending, whose growth someone pays for.
pub(super) struct Counted {
    /// Let go before the account, whose last user finds the file as it stays.
    inner: Box<dyn WriteFile>,
    account: Arc<Account>,
    payer: Payer,
    /// Once they have ended nobody needs what would be appended.
    changes: Arc<Changes>,
}

impl Counted {
    pub(super) fn new(
        inner: Box<dyn WriteFile>,
        account: Account,
        payer: Payer,
        changes: Arc<Changes>,
    ) -> Counted {
        Counted { inner, account: Arc::new(account), payer, changes }
    }
}

impl WriteFile for Counted {
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.changes.check()?;
        let end = self.inner.len() + bytes.len() as u64;
        self.account.allow(end, &self.payer)?;
        // Before, since after a failure some of it may be there, until it is cut off.
        self.account.wrote(end);
        self.inner.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        self.inner.sync()
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>> {
        self.inner.syncer()
    }

    fn flush_hint(&mut self) {
        self.inner.flush_hint();
    }

    fn truncate(&mut self, bytes: u64) -> Result<()> {
        self.inner.truncate(bytes)?;
        self.account.cut(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn preparer(&self) -> Option<Arc<dyn Preparer>> {
        let inner = self.inner.preparer()?;
        Some(Arc::new(CountedPreparer { inner, account: self.account.clone() }))
    }

    fn pace(&self) -> u64 {
        self.inner.pace()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

struct CountedPreparer {
    inner: Arc<dyn Preparer>,
    account: Arc<Account>,
}

impl Preparer for CountedPreparer {
    #[inline]
    fn takes_wish(&self) -> bool {
        self.inner.takes_wish()
    }

    fn prepare(&self) -> bool {
        self.inner.prepare_within(&|bytes| self.account.allow_ahead(bytes))
    }

    fn clear(&self) -> bool {
        self.inner.clear()
    }
}
