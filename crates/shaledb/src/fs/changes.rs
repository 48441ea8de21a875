//! Who changes which files a database has, so that its end can wait for them. After that its
//! directory is another's: the next one to open it gives out the same numbers of files.

use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Condvar, Mutex};

/// The calls under way that make, name or remove files of one directory.
#[derive(Debug, Default)]
pub(super) struct Changes {
    under_way: Mutex<u64, { rank::CHANGES }>,
    all_done: Condvar,
    /// Set under the mutex.
    ended: AtomicBool,
}

/// One of these calls, until it is dropped.
#[derive(Debug)]
pub(super) struct Change<'a>(&'a Changes);

impl Changes {
    /// Begins one; refused once they have ended.
    pub(super) fn begin(&self) -> Result<Change<'_>> {
        let mut under_way = self.under_way.lock();
        self.check()?;
        *under_way += 1;
        Ok(Change(self))
    }

    /// Lets none begin any more, and waits for those under way.
    pub(super) fn end(&self) {
        let mut under_way = self.under_way.lock();
        self.ended.store(true, Ordering::Release);
        while *under_way > 0 {
            under_way = self.all_done.wait(under_way);
        }
    }

    /// Refuses once they have ended.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        if self.ended.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let mut under_way = self.0.under_way.lock();
        debug_assert!(*under_way > 0, "what ends has begun");
        *under_way -= 1;
        if *under_way == 0 {
            self.0.all_done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_for_what_is_under_way() {
        let changes = Changes::default();
        let change = changes.begin().unwrap();
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                changes.end();
                has_ended.store(true, Ordering::Release);
            });
            while changes.check().is_ok() {
                std::thread::yield_now();
            }
            for _ in 0..1000 {
                std::thread::yield_now();
                assert!(!has_ended.load(Ordering::Acquire), "one is under way");
            }
            assert!(matches!(changes.begin(), Err(Error::Closed)));
            drop(change);
        });
        assert!(has_ended.load(Ordering::Acquire));
        assert!(matches!(changes.begin(), Err(Error::Closed)));
    }
}
