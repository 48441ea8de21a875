//! Scans that lock what they return, and the gaps between.
//!
//! Each step locks from where the scan is to the next row, that row included, and then looks
//! whether anything was committed there since the row was found. If so it looks again: what is
//! locked by now stays as it is.
//!
//! A row and the gap before it are asked for together, so that a scan that waits holds neither: who
//! holds the row may still write it, and add rows before it.
//!
//! A range is in every shard of the lock table, so a scan that goes on forwards locks the gaps of
//! many rows at once, some of them ahead: an eighth of what it has passed, and where nobody is in
//! the way. What is ahead it gives up when it has to wait.

use super::state::{Ahead, LockingScan, Position, Rows};
use crate::base::error::{Error, Result};
use crate::db::api::{ScanOptions, Snapshot, Tree};
use crate::db::transaction::options::{Isolation, LockMode};
use crate::db::transaction::read::refuse_snapshot;
use crate::db::transaction::txn::Transaction;
use crate::read::Scan;
use crate::txn::{Lock, Mode, Span, Wait};

/// How many rows ahead gaps are locked at most.
const AHEAD_MAX: u64 = 64;

impl Transaction {
    /// A scan that locks the rows that it comes to and the gaps between. That of an optimistic
    /// transaction locks nothing; its commit fails if any of that has changed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the options name a snapshot: it shows the newest.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a1", b"")?;
    /// use shaledb::{LockMode, ScanOptions, TransactionOptions};
    ///
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// let options = ScanOptions { prefix: Some(b"a".to_vec()), ..ScanOptions::default() };
    /// let mut scan = txn.scan_locking(&tree, options, LockMode::Shared)?;
    /// let mut rows = 0;
    /// while scan.next(&mut txn)? {
    ///     rows += 1;
    /// }
    /// assert_eq!(rows, 1); // and it stays 1 until the transaction ends
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn scan_locking(
        &mut self,
        tree: &Tree,
        options: ScanOptions<'_>,
        mode: LockMode,
    ) -> Result<LockingScan> {
        self.check(tree)?;
        refuse_snapshot(&options)?;
        let fill_cache = options.fill_cache;
        let (lower, upper) = options.into_bounds();
        Ok(LockingScan {
            transaction: self.id(),
            tree: tree.clone(),
            lower,
            upper,
            fill_cache,
            mode,
            has_one_view: self.has_one_view(),
            skips: false,
            peeks: false,
            unlocked: false,
            write_set: self.writes.of_tree(tree.id()),
            position: Position::Start,
            value: Vec::new(),
            passed: 0,
            gaps_to: Vec::new(),
            claim: 0,
            rows: None,
            renews: false,
            ahead: Ahead::default(),
        })
    }
}

impl LockingScan {
    /// From now on rows that others have locked are passed over, without a wait, as if they were
    /// not there; what is passed is not protected from additions. For queues, from which many take.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b"] { tree.put(key, b"1")?; }
    /// # use shaledb::{LockMode, ScanOptions, TransactionOptions};
    /// let mut other = db.begin(TransactionOptions::default())?;
    /// other.delete(&tree, b"a")?;
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive)?;
    /// scan.skip_locked();
    /// assert!(scan.next(&mut txn)?);
    /// assert_eq!(scan.key(), b"b");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn skip_locked(&mut self) {
        self.skips = true;
    }

    pub(in crate::db::transaction) fn lock_mode(&self) -> Mode {
        self.mode.as_mode()
    }

    fn peeks_in(&self, transaction: &Transaction) -> bool {
        self.peeks && transaction.options.isolation == Isolation::ReadCommitted
    }

    /// Whether it does not wait for what others have locked.
    pub(in crate::db::transaction) fn passes_locked(&self, transaction: &Transaction) -> bool {
        self.skips || self.peeks_in(transaction)
    }

    /// Goes to the next row (the first, if it has not begun) and locks it; false after the last.
    ///
    /// # Errors
    /// Those of locks, after which the scan is where it was; [`Error::Conflict`] if it locks to
    /// update and the row was changed since the transaction's snapshot (see
    /// [`OnConflict`](crate::OnConflict)).
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// # use shaledb::{LockMode, ScanOptions, TransactionOptions};
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared)?;
    /// assert!(scan.next(&mut txn)?);
    /// assert_eq!(scan.key(), b"a");
    /// assert!(!scan.next(&mut txn)?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn next(&mut self, transaction: &mut Transaction) -> Result<bool> {
        let mut from = match &self.position {
            Position::Start | Position::BeforeFirst => self.lower.clone(),
            Position::Row(key) => [key, &[0][..]].concat(),
            Position::AfterLast => return Ok(false),
        };
        if self.upper.as_ref().is_some_and(|upper| *upper <= from) {
            self.position = Position::AfterLast;
            return Ok(false);
        }
        self.check(transaction)?;
        self.renew(transaction);
        loop {
            let rows = self.rows(transaction)?;
            // Where it goes on from the row that it is at, a step is enough.
            if rows.valid() && from.strip_suffix(&[0]) == Some(rows.key()) {
                rows.next()?;
            } else {
                rows.seek(&from)?;
            }
            let found = rows.valid().then(|| rows.key().to_vec());
            let end = found.as_ref().map(|key| [key, &[0][..]].concat()).or(self.upper.clone());
            if self.has_awaited(transaction, found.as_deref())? {
                self.passed += 1;
                return self.arrive(found, Position::AfterLast);
            }
            let piece = (&*from, end.as_deref());
            let waits = transaction.owner.waits();
            if self.await_writer(transaction, piece, found.as_deref(), false)? {
                if let Some(row) = self.awaited(transaction, waits) {
                    from = row.to_vec();
                }
                continue;
            }
            match self.lock_found(transaction, &from, end.as_deref(), found.as_deref()) {
                Ok(true) => {
                    self.passed += 1;
                    return self.arrive(found, Position::AfterLast);
                }
                Ok(false) => {
                    self.looks_again_at(transaction, found.as_deref());
                    if let Some(row) = self.awaited(transaction, waits) {
                        from = row.to_vec();
                    }
                }
                Err(Error::LockTimeout { .. }) if self.passes_locked(transaction) => {
                    if !self.is_current(&from, end.as_deref())? {
                        continue;
                    }
                    if self.peek(transaction, found)? {
                        return Ok(true);
                    }
                    from = end.unwrap_or_default();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes to the previous row (the last, if it has not begun) and locks it; false before the
    /// first.
    ///
    /// # Errors
    /// As [`LockingScan::next`].
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # for key in [b"a", b"b"] { tree.put(key, b"1")?; }
    /// # use shaledb::{LockMode, ScanOptions, TransactionOptions};
    /// let mut txn = db.begin(TransactionOptions::default())?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared)?;
    /// assert!(scan.prev(&mut txn)?);
    /// assert_eq!(scan.key(), b"b"); // and nothing can be added after it
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn prev(&mut self, transaction: &mut Transaction) -> Result<bool> {
        let mut end = match &self.position {
            Position::Start | Position::AfterLast => self.upper.clone(),
            Position::Row(key) => Some(key.clone()),
            Position::BeforeFirst => return Ok(false),
        };
        if end.as_ref().is_some_and(|end| *end <= self.lower) {
            self.position = Position::BeforeFirst;
            return Ok(false);
        }
        self.check(transaction)?;
        (self.passed, self.gaps_to) = (0, Vec::new());
        self.renew(transaction);
        loop {
            let rows = self.rows(transaction)?;
            match &end {
                None => rows.seek_last()?,
                Some(end) => {
                    // Where it goes on from the row that it is at, a step is enough.
                    if !rows.valid() || rows.key() != end {
                        rows.seek_back(end)?;
                    }
                    if rows.valid() && rows.key() == end {
                        rows.prev()?;
                    }
                }
            }
            let found = rows.valid().then(|| rows.key().to_vec());
            let from = found.clone().unwrap_or_else(|| self.lower.clone());
            if self.has_awaited(transaction, found.as_deref())? {
                return self.arrive(found, Position::BeforeFirst);
            }
            let piece = (&*from, end.as_deref());
            let waits = transaction.owner.waits();
            if self.await_writer(transaction, piece, found.as_deref(), true)? {
                if let Some(row) = self.awaited(transaction, waits) {
                    end = Some([row, &[0]].concat());
                }
                continue;
            }
            match self.lock_found(transaction, &from, end.as_deref(), found.as_deref()) {
                Ok(true) => return self.arrive(found, Position::BeforeFirst),
                Ok(false) => {
                    self.looks_again_at(transaction, found.as_deref());
                    if let Some(row) = self.awaited(transaction, waits) {
                        end = Some([row, &[0]].concat());
                    }
                }
                Err(Error::LockTimeout { .. }) if self.passes_locked(transaction) => {
                    if !self.is_current(&from, end.as_deref())? {
                        continue;
                    }
                    if self.peek(transaction, found)? {
                        return Ok(true);
                    }
                    end = Some(from);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The key of the row that it is at; empty if it is at none.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// # use shaledb::{LockMode, ScanOptions, TransactionOptions};
    /// # let mut txn = db.begin(TransactionOptions::default())?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared)?;
    /// scan.next(&mut txn)?;
    /// assert_eq!(scan.key(), b"a");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn key(&self) -> &[u8] {
        match &self.position {
            Position::Row(key) => key,
            _ => &[],
        }
    }

    /// The value of the row that it is at; empty if it is at none.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// # use shaledb::{LockMode, ScanOptions, TransactionOptions};
    /// # let mut txn = db.begin(TransactionOptions::default())?;
    /// let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared)?;
    /// scan.next(&mut txn)?;
    /// assert_eq!(scan.value(), b"1");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn value(&self) -> &[u8] {
        match self.position {
            Position::Row(_) => &self.value,
            _ => &[],
        }
    }

    pub(in crate::db::transaction) fn check(&self, transaction: &Transaction) -> Result<()> {
        transaction.check(&self.tree)?;
        if transaction.id() == self.transaction {
            return Ok(());
        }
        Err(Error::InvalidArgument(format!(
            "the scan is of transaction {}, and was used with transaction {}",
            self.transaction,
            transaction.id()
        )))
    }

    /// The rows as they are now, or were not long ago.
    fn rows(&mut self, transaction: &Transaction) -> Result<&mut Scan> {
        if self.rows.is_none() {
            let state = self.tree.inner.state.load_full();
            let own_view = transaction.locked_view().cloned();
            let snapshot = own_view.unwrap_or_else(|| Snapshot::take(transaction.core()));
            let options = ScanOptions {
                lower: Some(self.lower.clone()),
                upper: self.upper.clone(),
                prefix: None,
                snapshot: Some(&snapshot),
                fill_cache: self.fill_cache,
            };
            let scan = self.tree.scan_as(options, self.write_set.clone())?;
            self.rows = Some(Rows { scan, snapshot, state });
        }
        match &mut self.rows {
            Some(rows) => Ok(&mut rows.scan),
            None => Err(Error::Closed),
        }
    }

    /// Before a step.
    fn renew(&mut self, transaction: &Transaction) {
        if std::mem::take(&mut self.renews) && !transaction.has_one_view() {
            self.rows = None;
        }
    }

    /// Locks a row and the gap from `from` to `end`; answers whether the rows are still as they
    /// were found. If not, they are looked at anew.
    fn lock_found(
        &mut self,
        transaction: &mut Transaction,
        from: &[u8],
        end: Option<&[u8]>,
        row: Option<&[u8]>,
    ) -> Result<bool> {
        let mode = self.lock_mode();
        let gaps = transaction.options.isolation != Isolation::ReadCommitted && !self.skips;
        let waits = transaction.owner.waits();
        if gaps {
            self.lock_with_gap(transaction, from, end, row)?;
        } else if let Some(row) = row {
            if !self.passes_locked(transaction) || transaction.is_optimistic() {
                transaction.protect(&self.tree, Span::Key(row), mode)?;
            } else {
                transaction.lock_with(self.tree.id(), Span::Key(row), mode, Wait::Never)?;
            }
        }
        if transaction.is_optimistic() {
            return Ok(true);
        }
        let current = match row.filter(|_| self.has_waited(transaction, waits)) {
            Some(row) => self.is_current(row, Some(&[row, &[0]].concat()))?,
            None => self.is_current(from, end)?,
        };
        if !current {
            return Ok(false);
        }
        if let Some(row) = row
            && mode == Mode::Exclusive
        {
            transaction.check_unchanged(&self.tree, Span::Key(row))?;
        }
        Ok(true)
    }

    /// Locks a row and the gap from `from` to `end` that it is in, and some gaps ahead. The rows
    /// are at that before `end`.
    fn lock_with_gap(
        &mut self,
        transaction: &mut Transaction,
        from: &[u8],
        end: Option<&[u8]>,
        row: Option<&[u8]>,
    ) -> Result<()> {
        let (tree, mode, gap) = (self.tree.id(), self.lock_mode(), Span::Range(from, end));
        let Some(row) = row else { return transaction.protect(&self.tree, gap, Mode::Gap) };
        if let Some(end) = end
            && self.claims(transaction, from, end)?
        {
            match transaction.lock_with(tree, Span::Key(row), mode, Wait::Never) {
                Err(Error::LockTimeout { .. }) => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    if transaction.owner.use_claim(self.claim, end) {
                        return Ok(());
                    }
                }
            }
            // It is not to hold what is ahead while it waits.
            transaction.give_up_claim(tree);
            (self.passed, self.gaps_to) = (0, Vec::new());
        }
        transaction.protect_row(&self.tree, gap, row, mode)
    }

    /// Whether the gaps up to `end` are locked with others ahead, now or before.
    fn claims(&mut self, transaction: &mut Transaction, from: &[u8], end: &[u8]) -> Result<bool> {
        if end <= self.gaps_to.as_slice() {
            return Ok(true);
        }
        let ahead = (self.passed / 8).min(AHEAD_MAX);
        if ahead == 0 || transaction.is_optimistic() {
            return Ok(false);
        }
        let Some(to) = self.end_of_rows(ahead)? else { return Ok(false) };
        if self.is_free(transaction, Span::Range(from, Some(&to))) {
            match transaction.claim(&self.tree, from, &to) {
                Ok(number) => {
                    (self.gaps_to, self.claim) = (to, number);
                    return Ok(true);
                }
                Err(Error::LockTimeout { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // It is not to wait for what it has not come to, and may never come to.
        self.passed = 0;
        Ok(false)
    }

    /// Whether nobody is in the way of a gap. Looked at first, so that nobody sees what one shard
    /// of the lock table grants before another refuses.
    fn is_free(&self, transaction: &Transaction, span: Span<'_>) -> bool {
        let lock = Lock { tree: self.tree.id(), span, mode: Mode::Gap };
        transaction.core().locks.is_free(&transaction.owner, lock)
    }

    /// The least key above the next `count` rows after that at which the rows are, where they are
    /// then again; `None` if there is none.
    fn end_of_rows(&mut self, count: u64) -> Result<Option<Vec<u8>>> {
        let Some(Rows { scan: rows, .. }) = &mut self.rows else { return Ok(None) };
        if !rows.valid() {
            return Ok(None);
        }
        let at = rows.key().to_vec();
        let mut last = at.clone();
        for _ in 0..count {
            rows.next()?;
            if !rows.valid() {
                break;
            }
            last.clear();
            last.extend_from_slice(rows.key());
        }
        rows.seek(&at)?;
        debug_assert!(rows.valid() && rows.key() == at, "a scan shows one moment");
        debug_assert!(at <= last, "rows ascend");
        last.push(0);
        Ok(Some(last))
    }

    /// Whether a key is in the range that is scanned.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        Span::Range(&self.lower, self.upper.as_deref()).has(key)
    }

    fn arrive(&mut self, found: Option<Vec<u8>>, otherwise: Position) -> Result<bool> {
        if let (Some(_), Some(rows)) = (&found, &self.rows) {
            self.value.clear();
            self.value.extend_from_slice(rows.scan.value()?);
        }
        self.unlocked = false;
        debug_assert!(found.as_ref().is_none_or(|key| self.has(key)), "a row is within bounds");
        self.position = found.map_or(otherwise, Position::Row);
        Ok(matches!(self.position, Position::Row(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::transaction::options::TransactionOptions;
    use crate::{Config, Db, Env, OpenOptions};

    /// A commit of tables puts them into the tree before it tells its number. A scan that begins
    /// between the two has a snapshot that is older than tables of its state.
    #[test]
    fn tables_that_are_newer_than_the_snapshot_are_seen() {
        let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
        let db = Db::open_in("/db", Config::default(), options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        for key in [b"a", b"b", b"c"] {
            tree.put(key, b"old").unwrap();
        }
        let mut txn = db.begin(TransactionOptions::default()).unwrap();
        let mut scan =
            txn.scan_locking(&tree, ScanOptions::default(), LockMode::Exclusive).unwrap();
        scan.rows(&txn).unwrap();
        let mut ingest = tree.ingest().unwrap();
        for key in [b"a", b"b", b"d"] {
            ingest.add(key, b"new").unwrap();
        }
        ingest.finish().unwrap();
        scan.rows.as_mut().unwrap().state = tree.inner.state.load_full();
        let mut seen = Vec::new();
        while scan.next(&mut txn).unwrap() {
            seen.push((scan.key().to_vec(), scan.value().to_vec()));
        }
        let wanted = [("a", "new"), ("b", "new"), ("c", "old"), ("d", "new")];
        let wanted = wanted.map(|(key, value)| (key.as_bytes().to_vec(), value.into()));
        assert_eq!(seen, wanted);
    }
}
