//! Being told who waits for whom.

use super::lock::TxnId;
use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What is called with a transaction that waits, and those that are in its way; with none when the
/// wait has ended.
pub type WaitObserver = Box<dyn Fn(TxnId, &[TxnId]) + Send + Sync>;

/// The place for one observer, which stays once it is there.
#[derive(Default)]
pub struct Observed {
    observer: OnceLock<WaitObserver>,
    ended: AtomicBool,
    /// How many calls of it run.
    calls: AtomicUsize,
}

thread_local! {
    /// How many of the calls, of any observer, are this thread's.
    static OWN: Cell<usize> = const { Cell::new(0) };
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
        let _call = Call::begin(&self.calls);
        if !self.ended.load(Ordering::SeqCst) {
            observer(waiter, holders);
        }
    }

    /// It is told nothing from now on, nor being told, but by this very thread.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let own = OWN.with(Cell::get);
        while self.calls.load(Ordering::SeqCst) > own {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

struct Call<'a>(&'a AtomicUsize);

impl Call<'_> {
    fn begin(calls: &AtomicUsize) -> Call<'_> {
        OWN.with(|own| own.set(own.get() + 1));
        calls.fetch_add(1, Ordering::SeqCst);
        Call(calls)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        OWN.with(|own| own.set(own.get() - 1));
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.observer.get().is_some()).finish()
    }
}
