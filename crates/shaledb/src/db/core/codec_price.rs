//! What time and bytes are worth for choosing codecs, by what the database has done lately.

use crate::base::activity::Activity;
use crate::base::rank;
use crate::base::stats::{Counter, Totals};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::compaction::policy::auto::{EVERY_NANOS, Price, SECONDS, Window};

/// To look at tables that are there may take one part in so many of the time.
const LOOKS_SHARE: u64 = 5;
/// After so many looks at rest nothing changes.
const RESTS: u8 = 8;

/// When codecs were chosen last, and by what.
#[derive(Default)]
pub(crate) struct CodecPrice {
    /// When it was looked at last whether they are to be chosen; 0 before the first time.
    at: AtomicU64,
    /// Up to when what was done has been counted: while it is at rest nobody counts.
    counted: AtomicU64,
    /// Whether they are to be chosen at the next look, however soon it comes.
    wanted: AtomicBool,
    /// Whether it was at rest then, and before.
    rests: AtomicU8,
    /// Before that no table that is there is looked at.
    look_after: AtomicU64,
    /// Blocks that were read in all by the last look at rest.
    misses: AtomicU64,
    state: Mutex<Seen, { rank::CODECS }>,
}

#[derive(Default)]
struct Seen {
    sums: Sums,
    window: Option<Window>,
    price: Price,
}

/// What counters say, in seconds and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    busy: f64,
    cpu: f64,
    slowed: f64,
    users_cpu: f64,
    write: Storage,
    read: Storage,
    block_read: Storage,
}

#[derive(Clone, Copy, Debug, Default)]
struct Storage {
    seconds: f64,
    cpu: f64,
    bytes: f64,
}

impl Storage {
    fn since(&self, before: &Storage) -> Storage {
        Storage {
            seconds: self.seconds - before.seconds,
            cpu: self.cpu - before.cpu,
            bytes: self.bytes - before.bytes,
        }
    }

    /// Nanoseconds for a byte, and of CPU; as before if there were next to none.
    fn nanos(&self, before: (f64, f64)) -> (f64, f64) {
        let each = |seconds: f64| seconds * 1e9 / self.bytes;
        if self.bytes < 4096.0 { before } else { (each(self.seconds), each(self.cpu)) }
    }
}

impl Sums {
    fn of(totals: &Totals) -> Sums {
        let count = |counter| totals.get(counter) as f64;
        let seconds = |counter| count(counter) / 1e9;
        let calls = Activity::ALL.into_iter().filter(|activity| activity.is_call());
        let users: f64 = calls.map(|activity| totals.cpu(activity).nanos()).sum();
        let decompressing = totals.cpu(Activity::ReadDecompress).nanos();
        Sums {
            busy: seconds(Counter::BackgroundNanos),
            cpu: seconds(Counter::BackgroundCpuNanos),
            slowed: seconds(Counter::StallMemtableNanos)
                + seconds(Counter::StallLevel0Nanos)
                + seconds(Counter::StallDebtNanos),
            users_cpu: (users - decompressing).max(0.0) / 1e9,
            write: Storage {
                seconds: seconds(Counter::TableWriteNanos),
                cpu: seconds(Counter::TableWriteCpuNanos),
                bytes: count(Counter::TableWriteBytes),
            },
            read: Storage {
                seconds: seconds(Counter::TableReadNanos),
                cpu: seconds(Counter::TableReadCpuNanos),
                bytes: count(Counter::TableReadBytes),
            },
            block_read: Storage {
                seconds: seconds(Counter::BlockReadNanos),
                cpu: 0.0,
                bytes: count(Counter::BlockReadBytes),
            },
        }
    }

    /// What was done in the `seconds` from `before` to now. What cannot be told is as in `last`.
    fn window(&self, before: &Sums, (seconds, at_rest): (f64, bool), last: &Window) -> Window {
        let (write, read) = (self.write.since(&before.write), self.read.since(&before.read));
        let busy = self.busy - before.busy;
        let cpu = self.cpu - before.cpu;
        let working = busy - write.seconds - read.seconds;
        let working_cpu = cpu - write.cpu - read.cpu;
        // What is written is read once.
        let both = Storage {
            seconds: write.seconds + read.seconds,
            cpu: write.cpu + read.cpu,
            bytes: write.bytes.max(read.bytes),
        };
        let storage = both.nanos((last.storage_nanos, last.storage_cpu_nanos));
        let user_read = self.block_read.since(&before.block_read);
        let tells = working_cpu > 0.001 && working > 0.0;
        Window {
            cores: last.cores,
            threads: last.threads,
            busy: busy / seconds,
            waiting: (both.seconds - both.cpu).max(0.0) / seconds,
            background_cpu: cpu / seconds,
            users_cpu: (self.users_cpu - before.users_cpu).max(0.0) / seconds,
            dilation: if tells { (working / working_cpu).max(1.0) } else { last.dilation },
            storage_nanos: storage.0,
            storage_cpu_nanos: storage.1,
            user_read_nanos: user_read.nanos((last.user_read_nanos, 0.0)).0,
            slowed: (self.slowed - before.slowed) / seconds,
            at_rest,
        }
    }
}

impl CodecPrice {
    /// Whether it is time to look whether to choose again; then the caller does.
    pub fn due(&self, now: u64) -> bool {
        let last = self.at.load(Acquire);
        if last == 0 {
            // From here on it is known how long what is counted took.
            self.counted.store(now.max(1), Relaxed);
            self.at.store(now.max(1), Release);
            return false;
        }
        let wanted = now > last && self.wanted.swap(false, Relaxed);
        (wanted || now.saturating_sub(last) >= EVERY_NANOS)
            && self.at.compare_exchange(last, now, Release, Relaxed).is_ok()
    }

    /// How many seconds what has been done since the last count took; to be called when it is
    /// counted, after [`CodecPrice::due`].
    pub fn count(&self, now: u64) -> f64 {
        let before = self.counted.swap(now, Relaxed);
        assert!(before > 0, "what is due has a beginning");
        // Another thread may have counted since this one has looked at the clock.
        now.saturating_sub(before).max(1) as f64 / 1e9
    }

    /// Whether tables that are there may be looked at: of thousands of trees that takes long.
    pub fn may_look(&self, now: u64) -> bool {
        now >= self.look_after.load(Relaxed)
    }

    /// One was looked at.
    pub fn has_looked(&self, from: u64, to: u64) {
        self.look_after.store(to + (LOOKS_SHARE - 1) * to.saturating_sub(from), Relaxed);
    }

    /// Has them chosen at the next look: the load has just ended.
    pub fn want(&self) {
        self.wanted.store(true, Relaxed);
    }

    /// Whether it has been at rest for long enough that nothing is to be chosen anew.
    pub fn stays_at_rest(&self, at_rest: bool) -> bool {
        let rests = if at_rest { self.rests.load(Relaxed).saturating_add(1) } else { 0 };
        self.rests.store(rests, Relaxed);
        rests > RESTS
    }

    /// Whether users have read blocks since it was asked last, of which there were so many in all.
    pub fn reads(&self, misses: u64) -> bool {
        self.misses.swap(misses, Relaxed) != misses
    }

    /// What is so now, by what was counted in the last `seconds`: `price` says it, of what the
    /// database has done and of what was so before. And whether another codec may be the best now
    /// for data with which nothing is done.
    pub fn renew(
        &self,
        totals: impl FnOnce() -> Totals,
        (seconds, at_rest): (f64, bool),
        (cores, threads): (f64, f64),
        price: impl FnOnce(&Window, &Price) -> Price,
    ) -> (Price, bool) {
        let mut seen = self.state.lock();
        let sums = Sums::of(&totals());
        let start = Window { cores, threads, dilation: 1.0, ..Window::default() };
        let last = seen.window.unwrap_or(start);
        let new = sums.window(&seen.sums, (seconds, at_rest), &last);
        let share = seconds / (seconds + SECONDS);
        let window = if seen.window.is_some() { last.blend(&new, share) } else { new };
        let price = price(&window, &seen.price);
        let changed = (price.short, price.worth) != (seen.price.short, seen.price.worth);
        let first = seen.window.is_none();
        *seen = Seen { sums, window: Some(window), price };
        (price, changed || first)
    }

    /// What was so last.
    pub fn last(&self) -> Price {
        self.state.lock().price
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::base::stats::Recorder;
    use crate::compaction::policy::auto;

    const SECOND: u64 = 1_000_000_000;

    /// A look, and the window by which codecs are chosen if they are.
    fn look(price: &CodecPrice, recorder: &Recorder, now: u64, at_rest: bool) -> Option<Window> {
        if !price.due(now) || price.stays_at_rest(at_rest) {
            return None;
        }
        let mut seen = None;
        let seconds = price.count(now);
        let totals = || recorder.totals();
        price.renew(totals, (seconds, at_rest), (2.0, 2.0), |window, before| {
            seen = Some(*window);
            auto::price(window, before, &[])
        });
        seen
    }

    #[test]
    fn what_was_done_in_a_rest_is_not_of_the_moment_after_it() {
        let (price, recorder) = (CodecPrice::default(), Recorder::new());
        let mut now = SECOND;
        let mut look = |nanos: u64, at_rest: bool, busy: f64| {
            now += nanos;
            recorder.add(Counter::BackgroundNanos, (nanos as f64 * busy) as u64);
            look(&price, &recorder, now, at_rest)
        };
        look(0, false, 0.0);
        for _ in 0..8 {
            assert!(
                look(EVERY_NANOS, false, 0.5).is_some_and(|seen| (seen.busy - 0.5).abs() < 0.01)
            );
        }
        // Helping readers counts as work.
        let chosen = (0..400).filter(|_| look(EVERY_NANOS, true, 0.5).is_some()).count();
        assert_eq!(chosen, usize::from(RESTS));
        let busy = look(EVERY_NANOS, false, 0.5).unwrap().busy;
        assert!((busy - 0.5).abs() < 0.01, "{busy} of 2 threads");
        // What comes then counts soon.
        let last = (0..8).filter_map(|_| look(EVERY_NANOS, false, 1.0)).last();
        assert!(last.is_some_and(|seen| seen.busy > 0.9), "{last:?}");
    }
}
