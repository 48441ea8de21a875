//! How long at least one writer waited. The time that all of them waited together says how much
//! they lost; it may be more than has gone by.

use crate::base::rank;
use crate::base::sync::Mutex;

/// See the module. Times are those of one clock, in nanoseconds.
#[derive(Debug, Default)]
pub struct Stalled(Mutex<Waits, { rank::STALLED }>);

#[derive(Debug, Default)]
struct Waits {
    /// How many wait now.
    writers: u32,
    /// Since when some do.
    since: u64,
    /// How long some did before.
    nanos: u64,
}

impl Stalled {
    /// A writer begins to wait.
    pub fn begin(&self, now: u64) {
        let mut waits = self.0.lock();
        if waits.writers == 0 {
            waits.since = now;
        }
        waits.writers += 1;
    }

    /// A writer that waited goes on.
    pub fn end(&self, now: u64) {
        let mut waits = self.0.lock();
        waits.writers -= 1;
        if waits.writers == 0 {
            waits.nanos += now.saturating_sub(waits.since);
        }
    }

    /// How long some have waited until now.
    pub fn nanos(&self, now: u64) -> u64 {
        let waits = self.0.lock();
        let present = if waits.writers > 0 { now.saturating_sub(waits.since) } else { 0 };
        waits.nanos + present
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn writers_that_wait_together_count_once() {
        let stalled = Stalled::default();
        stalled.begin(100);
        stalled.begin(110);
        stalled.end(120);
        assert_eq!(stalled.nanos(125), 25);
        stalled.end(140);
        assert_eq!(stalled.nanos(200), 40);
        stalled.begin(300);
        stalled.end(301);
        assert_eq!(stalled.nanos(400), 41);
    }
}
