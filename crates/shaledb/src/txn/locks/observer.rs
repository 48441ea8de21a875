//! Being told who waits for whom.

use super::lock::TxnId;
use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};

/// What is called with a transaction that waits, and those that are in its way; with none when the
/// wait has ended.
pub type WaitObserver = Box<dyn Fn(TxnId, &[TxnId]) + Send + Sync>;

/// The place for one observer, which stays once it is there.
#[derive(Default)]
pub struct Observed {
    observer: OnceLock<WaitObserver>,
    /// Whether it is told no more. Shared while it is being told.
    ended: RwLock<bool>,
}

impl Observed {
    /// False if there is one already.
    pub fn set(&self, observer: WaitObserver) -> bool {
        self.observer.set(observer).is_ok()
    }

    /// Tells it, if there is one, which of `holders` are in the way of `waiter`.
    pub fn tell(&self, waiter: TxnId, holders: impl FnOnce() -> Vec<TxnId>) {
        if self.observer.get().is_none() {
            return;
        }
        let holders = holders();
        if !holders.is_empty() {
            self.call(waiter, &holders);
        }
    }

    /// Tells it, if there is one, that `waiter` waits no more.
    pub fn tell_end(&self, waiter: TxnId) {
        self.call(waiter, &[]);
    }

    fn call(&self, waiter: TxnId, holders: &[TxnId]) {
        let Some(observer) = self.observer.get() else { return };
        let ended = self.ended.read().unwrap_or_else(PoisonError::into_inner);
        if !*ended {
            observer(waiter, holders);
        }
    }

    /// It is told nothing from now on, nor being told.
    pub fn end(&self) {
        *self.ended.write().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.observer.get().is_some()).finish()
    }
}
