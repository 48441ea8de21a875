//! What the engine spends CPU on, and which calls of it are measured.
//!
//! Reading the CPU clock of a thread is a call of the system and costs as much as many a read of a
//! cached key, so a random sample of calls is measured and scaled up. Random, not every n-th: the
//! distance from one sampled call to the next is drawn anew each time from the geometric
//! distribution, so that each call is sampled with the same probability whatever the calls around
//! it are (a program that alternates gets and puts, or whose every 64th batch is large, gets the
//! same answer as any other).
//!
//! Of the sampled calls ([`Activity::every`]) most are timed by the wall clock, which is cheap, and
//! one in [`Activity::every_of_those`] by the CPU clock. A call that is over before any other
//! thread can have run used the CPU for as long as it took: such short calls are told by the wall
//! clock alone, since the look at the other one leaves caches cold and would show them too dear.
//! Longer calls, which may have waited, are told by the CPU clock. Each of the two sums is scaled
//! by how rarely calls of its kind are measured; together they are an estimate that is not biased,
//! and [`Spent::error_nanos`] says how far off chance may have taken it.

/// Something that the engine spends CPU on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Activity {
    /// Commits: back-pressure, log, memtables. Those in two phases are two calls.
    Write,
    /// Point reads of one key.
    Get,
    /// Point reads of several keys.
    MultiGet,
    /// Making scans.
    ScanOpen,
    /// Seeks of scans.
    Seek,
    /// Steps of scans from row to row.
    ScanStep,
    /// Flushes.
    Flush,
    /// Compactions.
    Compaction,
    /// Decompressing blocks for reads; part of those.
    ReadDecompress,
    /// Compressing blocks in flushes; part of those.
    FlushCompress,
    /// Compressing blocks in compactions; part of those.
    CompactionCompress,
    /// Decompressing blocks in compactions; part of those.
    CompactionDecompress,
}

/// How many activities there are.
pub(super) const ACTIVITIES: usize = Activity::ALL.len();

// What is kept of each is found by its number.
const _: () = {
    let mut at = 0;
    while at < ACTIVITIES {
        assert!(Activity::ALL[at] as usize == at);
        at += 1;
    }
};

impl Activity {
    /// All of them, in order.
    pub const ALL: [Activity; 12] = [
        Activity::Write,
        Activity::Get,
        Activity::MultiGet,
        Activity::ScanOpen,
        Activity::Seek,
        Activity::ScanStep,
        Activity::Flush,
        Activity::Compaction,
        Activity::ReadDecompress,
        Activity::FlushCompress,
        Activity::CompactionCompress,
        Activity::CompactionDecompress,
    ];

    /// The name used in texts and JSON.
    pub fn name(self) -> &'static str {
        [
            "write",
            "get",
            "multi_get",
            "scan_open",
            "seek",
            "scan_step",
            "flush",
            "compaction",
            "read_decompress",
            "flush_compress",
            "compaction_compress",
            "compaction_decompress",
        ][self as usize]
    }

    /// Whether it is the work of a user's call, and not of background threads or of a codec.
    pub fn is_call(self) -> bool {
        !self.is_codec() && !matches!(self, Activity::Flush | Activity::Compaction)
    }

    /// Whether it is the work of a codec, which is part of another activity.
    pub fn is_codec(self) -> bool {
        self as usize >= Activity::ReadDecompress as usize
    }

    /// One call in this many is sampled; a power of two.
    pub fn every(self) -> u32 {
        match self {
            Activity::Flush | Activity::Compaction => 1,
            // A step within a block costs no more than one look at the wall clock.
            Activity::ScanStep => 1024,
            _ => 64,
        }
    }

    /// Of those, one in this many is measured by the CPU clock; a power of two.
    pub fn every_of_those(self) -> u32 {
        match self {
            Activity::Flush | Activity::Compaction => 1,
            Activity::ScanStep => 8,
            activity if activity.is_codec() => 1,
            _ => 4,
        }
    }
}

/// Calls that were measured by the same clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub samples: u64,
    pub nanos: u64,
    /// The sum of the squares of the calls' nanoseconds.
    pub squares: f64,
}

/// The CPU of an activity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    pub(super) short: Measured,
    pub(super) long: Measured,
    every: u32,
    every_of_those: u32,
}

impl Spent {
    pub(super) fn none(activity: Activity) -> Spent {
        let (every, every_of_those) = (activity.every(), activity.every_of_those());
        Spent { every, every_of_those, ..Spent::default() }
    }

    /// What was measured, each kind of calls with how many a measured one stands for.
    fn kinds(&self) -> [(Measured, f64); 2] {
        let (every, of_those) = (f64::from(self.every), f64::from(self.every_of_those));
        let unlooked = if of_those > 1.0 { of_those / (of_those - 1.0) } else { 1.0 };
        [(self.short, every * unlooked), (self.long, every * of_those)]
    }

    /// How many calls were measured.
    pub fn samples(&self) -> u64 {
        self.short.samples + self.long.samples
    }

    /// The estimate for all calls, in nanoseconds.
    pub fn nanos(&self) -> f64 {
        self.kinds().iter().map(|(kind, weight)| kind.nanos as f64 * weight).sum()
    }

    /// The estimate for one call, in nanoseconds.
    pub fn nanos_per_call(&self) -> f64 {
        let calls: f64 =
            self.kinds().iter().map(|(kind, weight)| kind.samples as f64 * weight).sum();
        if calls > 0.0 { self.nanos() / calls } else { 0.0 }
    }

    /// The standard error of [`Spent::nanos`], in nanoseconds: in two cases of three the truth is
    /// not farther away. 0 where every call is measured.
    pub fn error_nanos(&self) -> f64 {
        let of = |(kind, weight): &(Measured, f64)| kind.squares * weight * (weight - 1.0);
        self.kinds().iter().map(of).sum::<f64>().sqrt()
    }
}

/// Draws what is measured: xorshift64*, one for each thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// The sequence of numbers for a seed; different for each.
    pub fn new(seed: u64) -> Dice {
        // splitmix64, so that neighboring seeds have nothing in common.
        let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Dice((state ^ (state >> 31)).max(1))
    }

    /// As it was when [`Dice::state`] was asked for.
    pub fn resume(state: u64) -> Dice {
        Dice(state)
    }

    /// What it takes to go on later.
    pub fn state(self) -> u64 {
        self.0
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// How many calls from one measured call to the next, at least 1, if one in `every` is.
    pub fn gap(&mut self, every: u32) -> u32 {
        if every <= 1 {
            return 1;
        }
        // In (0, 1]: 53 random bits.
        let chance = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        // 1 / ln(1 - 1 / every), to within every^-3.
        let every = f64::from(every);
        let gap = -chance.ln() * (every - 0.5 - 1.0 / (12.0 * every));
        1 + gap as u32
    }

    /// True once in `every` calls, a power of two.
    pub fn one_in(&mut self, every: u32) -> bool {
        debug_assert!(every.is_power_of_two(), "what is left over is a mask");
        (self.next() >> 40) & u64::from(every - 1) == 0
    }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
