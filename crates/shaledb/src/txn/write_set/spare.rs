//! Memtables that transactions are done with, for the next ones of the same thread: making one and
//! freeing it costs more than the few writes of a small transaction.

use crate::memtable::Memtable;
use std::cell::RefCell;
use std::sync::Arc;

/// How many a thread keeps: for the trees of a small transaction. Each takes less than 6 KiB.
pub(super) const SPARE: usize = 4;

thread_local! {
    /// Empty ones, that nobody else has any of.
    static SPARES: RefCell<Vec<Arc<Memtable>>> = const { RefCell::new(Vec::new()) };
}

/// An empty memtable.
pub(super) fn take() -> Arc<Memtable> {
    // A thread that ends has none any more.
    let spare = SPARES.try_with(|spares| spares.borrow_mut().pop()).ok().flatten();
    debug_assert!(spare.as_ref().is_none_or(|spare| spare.is_empty()), "nothing is left in it");
    spare.unwrap_or_default()
}

/// Keeps a memtable for another transaction, unless it is large, or a scan still looks at it.
pub(super) fn give(mut memtable: Arc<Memtable>) {
    // What is made in one of shuttle's runs is of no use in the next.
    if cfg!(feature = "shuttle") || !Arc::get_mut(&mut memtable).is_some_and(Memtable::reset) {
        return;
    }
    let _ = SPARES.try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < SPARE {
            spares.push(memtable);
        }
    });
}

/// How many this thread has.
#[cfg(all(test, not(feature = "shuttle")))]
pub(super) fn count() -> usize {
    SPARES.with_borrow(Vec::len)
}
