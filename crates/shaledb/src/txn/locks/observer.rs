//! Being told who waits for whom.

use super::lock::TxnId;
use std::fmt;
use std::sync::OnceLock;

/// What is called with a transaction that waits, and those that are in its way; with none when the
/// wait has ended.
pub type WaitObserver = Box<dyn Fn(TxnId, &[TxnId]) + Send + Sync>;

/// The place for one observer, which stays once it is there.
#[derive(Default)]
pub struct Observed(OnceLock<WaitObserver>);

impl Observed {
    /// False if there is one already.
    pub fn set(&self, observer: WaitObserver) -> bool {
        self.0.set(observer).is_ok()
    }

    /// Tells it, if there is one, which of `holders` are in the way of `waiter`.
    pub fn tell(&self, waiter: TxnId, holders: impl FnOnce() -> Vec<TxnId>) {
        let Some(observer) = self.0.get() else { return };
        let holders = holders();
        if !holders.is_empty() {
            observer(waiter, &holders);
        }
    }

    /// Tells it, if there is one, that `waiter` waits no more.
    pub fn tell_end(&self, waiter: TxnId) {
        if let Some(observer) = self.0.get() {
            observer(waiter, &[]);
        }
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.0.get().is_some()).finish()
    }
}
