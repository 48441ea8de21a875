//! How much a writer is slowed when it is ahead of flush and compaction.
//!
//! A pure function of pressure. Four pressures are measured, each from a soft limit (0) to a hard
//! one (1): memory of memtables, level 0 (`write/level0`), compaction debt, and space near its
//! limit while merges make room. At pressure `x` a writer waits `4 x^2` times as long for each byte
//! as the background work needs to take the byte away. So there is no wait at the soft limit and no
//! step anywhere; at the latest at half of the way to the hard limit writers are as slow as the
//! background work, and pressure rises no more. For memory the factor also grows without bound
//! towards the hard limit, where writers stop, so that the stop itself is met only by a burst.

use serde::Serialize;

/// The longest time that one write waits for its slowing, in nanoseconds.
pub const WAIT_NANOS_MAX: u64 = 50_000_000;

/// The rate that is assumed of background work not measured yet, in bytes per second.
const RATE_UNKNOWN: u64 = 64 << 20;

/// No measured rate is taken for less: a stalled moment must not freeze writers for longer.
const RATE_MIN: u64 = 1 << 20;

/// The most that the factor grows to.
const FACTOR_MAX: f64 = 64.0;

/// What the background work has yet to do, and how fast it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Bytes of all memtables, active and sealed; one full of large values counts as full.
    pub memtable_bytes: u64,
    /// The most bytes that all memtables may have; half of it is the soft limit.
    pub memtable_limit: u64,
    /// Sealed memtables that wait for their flush.
    pub sealed: usize,
    /// How long level 0 asks writers to wait for each byte, of the tree that asks for most, in
    /// nanoseconds: see `write/level0`.
    pub level0_nanos: f64,
    /// Compaction debt in bytes.
    pub debt_bytes: u64,
    /// The debt from which writers are slowed.
    pub debt_soft: u64,
    /// The debt at which slowing is at its full.
    pub debt_hard: u64,
    /// How far the files reach into the last part of what they may take, and how long that is; 0
    /// while nothing is under way that makes room.
    pub space_taken: u64,
    /// The length of that part.
    pub space_hard: u64,
    /// Bytes of memtables flushed per second of late; 0 if not known.
    pub flush_rate: u64,
    /// Bytes written by users that compaction can take away per second (the bytes it rewrites per
    /// second, divided by how often each is rewritten); 0 if not known.
    pub compaction_rate: u64,
}

/// What slows or stops writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Memtables are written faster than they are flushed.
    Memtables,
    /// Level 0 has many tables.
    Level0,
    /// Much is left to compact.
    Debt,
    /// The files take nearly as much as they may, and merges make room.
    Space,
}

impl Cause {
    /// All causes, in order.
    pub const ALL: [Cause; 4] = [Cause::Memtables, Cause::Level0, Cause::Debt, Cause::Space];

    /// The cause's name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Memtables => "memtables",
            Cause::Level0 => "level0",
            Cause::Debt => "debt",
            Cause::Space => "space",
        }
    }
}

/// What a writer has to do before it writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Go on.
    None,
    /// Wait this long for each byte.
    Slow {
        /// Nanoseconds for each byte.
        nanos_per_byte: f64,
        /// The pressure that asks for the longest wait.
        cause: Cause,
    },
    /// Wait until a flush has ended.
    Stop {
        /// Always memory: the one bound that holds whatever else happens.
        cause: Cause,
    },
}

/// How many bytes tell as much of a rate as all that was seen before.
const EQUAL_BYTES: u64 = 48 << 20;

/// A rate in bytes per second, after so many bytes more were seen to take so long; as it was if
/// they tell nothing. Much tells more than little: short jobs are slowed by their beginnings and
/// ends, and must not foretell how long a large one takes.
pub fn smoothed(rate: u64, bytes: u64, nanos: u64) -> u64 {
    if bytes < 1 << 16 || nanos == 0 {
        return rate;
    }
    let now = (u128::from(bytes) * 1_000_000_000 / u128::from(nanos)) as u64;
    if rate == 0 {
        return now;
    }
    let (old, new) = (u128::from(EQUAL_BYTES), u128::from(bytes));
    ((u128::from(rate) * old + u128::from(now) * new) / (old + new)) as u64
}

/// How much writers are slowed under this pressure.
pub fn delay(pressure: &Pressure) -> Verdict {
    let p = pressure;
    assert!(p.debt_soft <= p.debt_hard, "slowing begins before it is at its full");
    if p.memtable_limit > 0 && p.memtable_bytes >= p.memtable_limit {
        return Verdict::Stop { cause: Cause::Memtables };
    }
    // With nothing sealed there is no flush to wait for: the active memtable may fill up.
    let memory = if p.sealed == 0 {
        0.0
    } else {
        position(p.memtable_bytes, p.memtable_limit / 2, p.memtable_limit)
    };
    let debt = position(p.debt_bytes, p.debt_soft, p.debt_hard);
    let space = position(p.space_taken, 0, p.space_hard);
    let memory_factor = 4.0 * memory * memory / (1.0 - memory).max(1.0 / FACTOR_MAX);
    let asked = [
        (memory_factor.min(FACTOR_MAX) * nanos_at(p.flush_rate), Cause::Memtables),
        (p.level0_nanos, Cause::Level0),
        (4.0 * debt * debt * nanos_at(p.compaction_rate), Cause::Debt),
        (4.0 * space * space * nanos_at(p.compaction_rate), Cause::Space),
    ];
    let longest =
        asked.iter().fold(asked[0], |most, next| if next.0 > most.0 { *next } else { most });
    if longest.0 > 0.0 {
        Verdict::Slow { nanos_per_byte: longest.0, cause: longest.1 }
    } else {
        Verdict::None
    }
}

/// Where `value` is between the limits: 0 up to `soft`, 1 from `hard` on.
pub(super) fn position(value: u64, soft: u64, hard: u64) -> f64 {
    if hard <= soft || value <= soft {
        return 0.0;
    }
    let position = ((value - soft) as f64 / (hard - soft) as f64).min(1.0);
    debug_assert!((0.0..=1.0).contains(&position));
    position
}

/// The nanoseconds that one byte takes at `rate` bytes per second.
pub(super) fn nanos_at(rate: u64) -> f64 {
    let rate = if rate == 0 { RATE_UNKNOWN } else { rate.max(RATE_MIN) };
    1e9 / rate as f64
}

#[cfg(test)]
#[path = "throttle_tests.rs"]
mod tests;
