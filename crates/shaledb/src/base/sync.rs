//! Locks, condition variables and atomics: the standard ones, or shuttle's when the crate is built
//! with the feature `shuttle` so that a test can explore the interleavings of threads.
//!
//! A panic while a lock is held is a bug of ours; the lock is not poisoned by it for others, since
//! every structure under these locks is changed only after all that may fail has succeeded.

#[cfg(all(debug_assertions, not(feature = "shuttle")))]
use super::rank;
#[cfg(feature = "shuttle")]
use shuttle::sync as imp;
#[cfg(not(feature = "shuttle"))]
use std::sync as imp;

use taken::Taken;

pub use imp::atomic;
pub use imp::{Arc, Weak};

/// A mutual exclusion lock, with its place in the order in which locks are taken ([`rank`]).
#[derive(Debug, Default)]
pub struct Mutex<T, const RANK: u8>(imp::Mutex<T>);

/// A mutex that is held.
#[must_use = "the mutex is let go at once"]
pub struct MutexGuard<'a, T> {
    inner: imp::MutexGuard<'a, T>,
    taken: Taken,
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T, const RANK: u8> Mutex<T, RANK> {
    /// A new, unlocked lock around `value`.
    pub fn new(value: T) -> Mutex<T, RANK> {
        Mutex(imp::Mutex::new(value))
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let taken = Taken::new(RANK);
        let inner = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        MutexGuard { inner, taken }
    }

    /// Takes the lock if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let taken = Taken::new(RANK);
        match self.0.try_lock() {
            Ok(inner) => Some(MutexGuard { inner, taken }),
            Err(imp::TryLockError::Poisoned(poisoned)) => {
                Some(MutexGuard { inner: poisoned.into_inner(), taken })
            }
            Err(imp::TryLockError::WouldBlock) => None,
        }
    }
}

/// That a mutex of some rank is held by this thread, in builds that check.
#[cfg(all(debug_assertions, not(feature = "shuttle")))]
mod taken {
    use super::rank;
    use std::cell::RefCell;

    pub(super) struct Taken(u8);

    thread_local! {
        /// The ranks of the mutexes that this thread holds.
        static TAKEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    impl Taken {
        /// Before the mutex is asked for.
        pub(super) fn new(rank: u8) -> Taken {
            // A thread that ends has no list any more.
            let out_of_order = TAKEN.try_with(|taken| {
                let mut taken = taken.borrow_mut();
                let last = taken.iter().copied().max();
                let again = last == Some(rank) && rank::MANY.contains(&rank);
                if again || last.is_none_or(|last| last < rank) {
                    taken.push(rank);
                    return None;
                }
                Some(taken.clone())
            });
            if let Ok(Some(taken)) = out_of_order {
                panic!("a mutex of rank {rank} is taken by who holds {taken:?}: see base/rank.rs");
            }
            Taken(rank)
        }
    }

    impl Drop for Taken {
        fn drop(&mut self) {
            let _ = TAKEN.try_with(|taken| {
                let mut taken = taken.borrow_mut();
                let at = taken.iter().rposition(|rank| *rank == self.0);
                assert!(at.is_some(), "a mutex is let go by who has taken it");
                if let Some(at) = at {
                    taken.remove(at);
                }
            });
        }
    }
}

/// Nothing, in builds that do not check.
#[cfg(not(all(debug_assertions, not(feature = "shuttle"))))]
mod taken {
    pub(super) struct Taken;

    impl Taken {
        #[inline]
        pub(super) fn new(_rank: u8) -> Taken {
            Taken
        }
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
        let MutexGuard { inner, taken } = guard;
        let inner = self.0.wait(inner).unwrap_or_else(|poisoned| poisoned.into_inner());
        MutexGuard { inner, taken }
    }

    /// As [`Condvar::wait`], but for no longer than `limit`.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: std::time::Duration,
    ) -> MutexGuard<'a, T> {
        let MutexGuard { inner, taken } = guard;
        let inner = match self.0.wait_timeout(inner, limit) {
            Ok((inner, _)) => inner,
            Err(poisoned) => poisoned.into_inner().0,
        };
        MutexGuard { inner, taken }
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

#[cfg(all(test, debug_assertions, not(feature = "shuttle")))]
mod tests {
    use super::*;

    type First = Mutex<u32, { rank::LEADER }>;
    type Second = Mutex<u32, { rank::MANIFEST }>;

    #[test]
    fn mutexes_are_taken_in_their_order() {
        let (first, second) = (First::new(1), Second::new(2));
        let (one, two) = (first.lock(), second.lock());
        assert_eq!((*one, *two), (1, 2));
        // In whichever order they are let go.
        drop(one);
        drop(two);
        drop(second.lock());
        drop(first.lock());
    }

    #[test]
    #[should_panic(expected = "a mutex of rank 3 is taken by who holds [4]")]
    fn a_mutex_out_of_order_is_found() {
        let (first, second) = (First::new(1), Second::new(2));
        let _two = second.lock();
        let _one = first.lock();
    }

    #[test]
    #[should_panic(expected = "a mutex of rank 3 is taken by who holds [3]")]
    fn two_of_one_rank_are_found() {
        let (one, other) = (First::new(1), First::new(2));
        let _one = one.lock();
        let _other = other.lock();
    }
}
