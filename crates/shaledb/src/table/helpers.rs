//! Readers' work that idle background threads may share: who has some offers it, and an idle thread
//! takes it up. Nobody has to: whoever offers goes on by himself.

use crate::base::rank;
use crate::base::sync::atomic::{AtomicUsize, Ordering};
use crate::base::sync::{Arc, Mutex, Weak};
use std::collections::VecDeque;
use std::fmt::Debug;

/// Work of which a thread can do a part.
pub trait Help: Debug + Send + Sync {
    /// Does a part of it, some 100 us long. Whether there may be more; if not, or if the helper
    /// has something else to do, it calls [`Help::leave`].
    fn help(&self) -> bool;

    /// The helper leaves: another may be asked.
    fn leave(&self);
}

/// Where work is offered.
#[derive(Debug, Default)]
pub struct Helpers {
    offers: Mutex<VecDeque<Weak<dyn Help>>, { rank::OFFERS }>,
    /// How many threads wait for something to do.
    idle: AtomicUsize,
}

impl Helpers {
    /// Offers work, if a thread is idle that has not been asked yet. After `true` the caller wakes
    /// one.
    pub fn offer(&self, work: &Arc<impl Help + 'static>) -> bool {
        let idle = self.idle.load(Ordering::Relaxed);
        if idle == 0 {
            return false;
        }
        let mut offers = self.offers.lock();
        offers.retain(|offer| offer.strong_count() > 0);
        if offers.len() >= idle {
            return false;
        }
        let work = Arc::downgrade(work);
        offers.push_back(work);
        true
    }

    /// The work that was offered first, if its owner still wants it done.
    pub fn take(&self) -> Option<Arc<dyn Help>> {
        let mut offers = self.offers.lock();
        while let Some(offer) = offers.pop_front() {
            if let Some(work) = offer.upgrade() {
                return Some(work);
            }
        }
        None
    }

    /// Runs `wait` as a thread that is idle meanwhile.
    pub fn idle_while<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.idle.fetch_add(1, Ordering::Relaxed);
        let woken = wait();
        let before = self.idle.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "who ends being idle has been");
        woken
    }
}
