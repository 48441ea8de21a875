//! A file that is open for writing, as the ledger counts it.

use super::ledger::{Growth, Ledger, Payer};
use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use std::path::Path;

/// One part in so many of a limit is to be free where a log grows ahead of its writer.
const AHEAD_ROOM: u64 = 16;

/// Without a limit a file is allowed at most so many bytes at once.
const FREE_BYTES: u64 = 1 << 20;

/// A file that is open for writing: shared by its writer and who works ahead of it.
#[derive(Debug)]
pub struct Account {
    ledger: Arc<Ledger>,
    number: u64,
    growth: Arc<Growth>,
}

impl Account {
    /// A file was made for a writer.
    pub fn created(ledger: &Arc<Ledger>, path: &Path) -> Account {
        let mut sums = ledger.sums.lock();
        let number = sums.name_new(path, 0);
        Account { ledger: ledger.clone(), number, growth: sums.open(number) }
    }

    /// A file of so many bytes was opened for a writer.
    pub fn reopened(ledger: &Arc<Ledger>, path: &Path, bytes: u64) -> Account {
        let mut sums = ledger.sums.lock();
        let number = match sums.named(path) {
            Some(number) => number,
            None => sums.name_new(path, bytes),
        };
        Account { ledger: ledger.clone(), number, growth: sums.open(number) }
    }

    /// Allows the file to be so long.
    #[inline]
    pub fn allow(&self, to: u64, payer: &Payer) -> Result<()> {
        if to <= self.growth.allowed.load(Ordering::Relaxed) {
            Ok(())
        } else {
            self.grow(to, payer)
        }
    }

    fn grow(&self, to: u64, payer: &Payer) -> Result<()> {
        let growth = &self.growth;
        if !self.ledger.is_limited() {
            growth.allowed.store(to + (to / 8).min(FREE_BYTES), Ordering::SeqCst);
            // Either this is counted by who sets a limit, or the limit is seen here.
            if !self.ledger.is_limited_now() {
                return Ok(());
            }
        }
        let mut sums = self.ledger.sums.lock();
        if sums.balance.limit.bytes == 0 {
            return Ok(());
        }
        let grown = sums.grow(self.number, to, payer);
        growth.allowed.store(sums.bytes_of(self.number), Ordering::SeqCst);
        grown
    }

    /// Allows the file to be made so long ahead of its writer: only where users have much room.
    pub fn allow_ahead(&self, to: u64) -> bool {
        let mut sums = self.ledger.sums.lock();
        let limit = sums.balance.limit.bytes;
        if limit > 0 {
            let allowed = self.growth.allowed.load(Ordering::Relaxed);
            let room = sums.balance.for_users().saturating_sub(limit / AHEAD_ROOM);
            if to.saturating_sub(allowed) > room || !sums.grow_to(self.number, to, &Payer::User) {
                return false;
            }
        }
        self.growth.allowed.fetch_max(to, Ordering::SeqCst);
        self.growth.ahead.fetch_max(to, Ordering::Relaxed);
        true
    }

    /// Notes what is appended, before it is; the rest of what counts is ahead of that.
    #[inline]
    pub fn wrote(&self, bytes: u64) {
        self.growth.written.store(bytes, Ordering::Relaxed);
    }

    /// The file was cut.
    pub fn cut(&self, bytes: u64) {
        let mut sums = self.ledger.sums.lock();
        self.growth.written.store(bytes, Ordering::Relaxed);
        // Who works ahead may have made it longer again.
        let counts = bytes.max(self.growth.ahead.load(Ordering::Relaxed));
        self.growth.allowed.store(counts, Ordering::Relaxed);
        sums.set(self.number, counts);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.ledger.sums.lock().close(self.number);
    }
}
