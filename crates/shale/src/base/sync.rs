//! Locks, condition variables and atomics: the standard ones, or shuttle's when the crate is built
//! with `--cfg shuttle` so that a test can explore the interleavings of threads.
//!
//! A panic while a lock is held is a bug of ours; the lock is not poisoned by it for others, since
//! every structure under these locks is changed only after all that may fail has succeeded.

#[cfg(shuttle)]
use shuttle::sync as imp;
#[cfg(not(shuttle))]
use std::sync as imp;

pub use imp::atomic;
pub use imp::{Arc, Weak};
pub use imp::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    /// A new, unlocked lock around `value`.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A lock that many readers or one writer hold.
#[derive(Debug, Default)]
pub struct RwLock<T>(imp::RwLock<T>);

impl<T> RwLock<T> {
    /// A new, unlocked lock around `value`.
    pub fn new(value: T) -> RwLock<T> {
        RwLock(imp::RwLock::new(value))
    }

    /// Waits for a shared hold.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for the exclusive hold.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(imp::Condvar);

impl Condvar {
    /// A new condition variable.
    pub fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    /// Releases the guard, waits for a notification, and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// As [`Condvar::wait`], but for no longer than `limit`.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        match self.0.wait_timeout(guard, limit) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
