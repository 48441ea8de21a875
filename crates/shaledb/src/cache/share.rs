//! Which share of the cache the compressed tier has: decided by what each share would have read and
//! decompressed, and by what either costs. Pure.

use super::simulation::{SHARES, Tally};

/// Another share must take this much less time than the one there is: reads are simulated from a
/// sample, and every change costs blocks.
const GAIN_MIN: f64 = 0.03;
/// With fewer reads than this (of the share that reads least) nothing is decided.
const READS_MIN: f64 = 32.0;
/// Where so few of the uses read anything at all, the data fits.
const READS_FIT: f64 = 0.002;

/// What a block costs, in nanoseconds, on average; 0 where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// To read it from storage, or from the system's page cache.
    pub read_nanos: f64,
    /// To decompress and check it.
    pub unpack_nanos: f64,
}

impl Costs {
    /// What the uses of this tally cost.
    pub fn of(&self, tally: &Tally) -> f64 {
        tally.read * (self.read_nanos + self.unpack_nanos) + tally.unpacked * self.unpack_nanos
    }
}

/// Why the share is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// Too little was read so far.
    #[default]
    Unmeasured,
    /// It was given.
    Set,
    /// What is used fits uncompressed.
    Fits,
    /// Compressed blocks would save reads, and decompressing them costs more.
    ReadsAreCheap,
    /// Compressed blocks would save no reads.
    SavesNothing,
    /// Compressed blocks save reads that cost more than decompressing them.
    SavesReads,
    /// A better share is reached step by step.
    OnTheWay,
}

impl Why {
    /// The reason in words, to come after "since".
    pub fn words(self) -> &'static str {
        match self {
            Why::Unmeasured => "too little was read to tell",
            Why::Set => "it was set",
            Why::Fits => "what is used fits uncompressed",
            Why::ReadsAreCheap => "a read costs less than what a smaller cache decompresses",
            Why::SavesNothing => "compressed blocks would save no reads",
            Why::OnTheWay => "it is on the way to a better share",
            Why::SavesReads => "it saves reads, which cost more than decompressing",
        }
    }
}

/// What was decided: a share by its number, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// So many parts of [`SHARES`].
    pub step: usize,
    /// Why.
    pub why: Why,
}

/// The next share, at most one step from the one there is, by what became of the same uses under
/// each share.
pub fn choose(now: Choice, tallies: &[Tally; SHARES], costs: Costs) -> Choice {
    let none = &tallies[0];
    let least_reads = tallies.iter().map(|tally| tally.read).fold(f64::INFINITY, f64::min);
    let measured = costs.read_nanos > 0.0 && costs.unpack_nanos > 0.0;
    if none.uses() > 0.0 && none.read <= READS_FIT * none.uses() {
        return Choice { step: now.step.saturating_sub(1), why: Why::Fits };
    }
    if !measured || least_reads < READS_MIN {
        return now;
    }
    let time = |step: usize| costs.of(&tallies[step]);
    let mut best = 0;
    for step in 1..SHARES {
        if time(step) < time(best) {
            best = step;
        }
    }
    let better = time(best) < (1.0 - GAIN_MIN) * time(now.step);
    let step = match best.cmp(&now.step) {
        std::cmp::Ordering::Less if better => now.step - 1,
        std::cmp::Ordering::Greater if better => now.step + 1,
        _ => now.step,
    };
    let saves = |step: usize| tallies[step].read < (1.0 - GAIN_MIN) * none.read;
    let why = match step {
        _ if step != now.step && step != best => Why::OnTheWay,
        0 if (1..SHARES).any(saves) => Why::ReadsAreCheap,
        0 => Why::SavesNothing,
        _ => Why::SavesReads,
    };
    Choice { step, why }
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
