//! How large each level should be, how far it is from that, and what it would cost to get there.
//!
//! Sizes follow from the last level, which holds about nine tenths of the data: the level above it
//! may hold a tenth of that, and so on up to the base level, the first one in use below level 0.
//! So at most about a tenth of the space is spent on entries that newer ones hide.
//!
//! A level costs about 1 + r/2 bytes written for each byte that passes it, where r is the factor
//! to the level below. Growth by a factor e so costs (1 + r/2) / ln r, which is least for factors
//! of 3 to 8; a tier of level 0, four tables merged into one, costs 1. So level 0 gathers
//! [`LEVEL0_MEMTABLES`] memtables before they are merged with the base level, which in a large tree
//! is as large as that, and in tiers as far as it would else have more than [`LEVEL0_TABLES_MAX`]
//! tables; the levels between the base and the second to last have equal factors, and one more
//! level is used when the factor would exceed [`RATIO_UPPER`].

use super::plan::{Busy, Settings, Shape};
use super::policy::LAST;
use super::range::bytes_of;
use crate::base::config::LEVELS;

/// The factor between the last level and the one above it.
pub const RATIO: u64 = 10;

/// The largest factor between levels above the last.
pub const RATIO_UPPER: u64 = 8;

/// How many tables of about one size in level 0 are merged into one, if they have not gone down.
pub const LEVEL0_TIER: usize = 4;

/// How many tables in level 0 start a compaction, however small they are.
pub const LEVEL0_TABLES_MAX: usize = 12;

/// How many tables in level 0, beside those that go down, are merged with each other meanwhile.
pub const LEVEL0_CROWDED: usize = 20;

/// How many tables of one memtable each level 0 of a small tree gathers. Of compressed ones there
/// are so many in [`LEVEL0_TIER`] memtables' bytes anyway; without compression level 0 would go
/// down with four, and the last level would be written that much more often.
pub const LEVEL0_GATHERED: u64 = 7;

/// But not more than one part in so many of the largest level, which may be compressed where level
/// 0 is not: space-amp grows by this share.
pub const LEVEL0_SHARE: u64 = 4;

/// How many memtables' bytes level 0 gathers in a large tree.
pub const LEVEL0_MEMTABLES: u64 = 16;

/// The bytes of each level.
pub fn level_bytes(shape: &Shape) -> [u64; LEVELS] {
    let mut bytes = [0; LEVELS];
    for (sum, tables) in bytes.iter_mut().zip(&shape.levels) {
        *sum = bytes_of(tables);
    }
    bytes
}

/// The sizes that a tree's levels should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    /// The first level below 0 in use: where level 0 is merged to.
    pub base: usize,
    /// The target of each level in bytes; 0 for levels that should be empty.
    pub bytes: [u64; LEVELS],
    /// The bytes that level 0 gathers before it is merged with the base level: at least four
    /// memtables', seven of its tables in a tree of some size, else a tenth of the tree, and not
    /// more than sixteen memtables'.
    pub level0: u64,
}

impl Targets {
    /// The level to which data of `level` goes down: those above the base are passed.
    pub fn below(&self, level: usize) -> usize {
        (level + 1).max(self.base).min(LAST)
    }

    /// The targets of a tree of this shape.
    pub fn of(shape: &Shape, settings: &Settings) -> Targets {
        let stored = level_bytes(shape);
        let largest = stored[1..].iter().copied().max().unwrap_or(0);
        let memtable = settings.memtable_bytes.max(1);
        let mut targets = Targets::for_bytes(&stored, largest, memtable);
        let flushed = shape.levels[0].iter().map(|table| table.file_bytes.min(memtable)).max();
        let tables = flushed.unwrap_or(0).saturating_mul(LEVEL0_GATHERED);
        targets.level0 = targets.level0.max(tables.min(largest / LEVEL0_SHARE));
        assert!((1..=LAST).contains(&targets.base), "level 0 is merged into a level below it");
        assert!(
            targets.bytes[targets.base..].iter().all(|&bytes| bytes > 0),
            "levels have targets"
        );
        targets
    }

    /// The targets when the last level has (or should have) `last` bytes.
    fn for_bytes(stored: &[u64; LEVELS], last: u64, memtable: u64) -> Targets {
        let least = memtable.saturating_mul(LEVEL0_TIER as u64);
        let batch = memtable.saturating_mul(LEVEL0_MEMTABLES);
        let mut targets = Targets { base: LAST, bytes: [0; LEVELS], level0: least };
        targets.bytes[LAST] = last.max(least);
        let second = last / RATIO;
        targets.level0 = second.clamp(least, batch);
        // A level that has been in use stays so while the data shrinks to half of what started it.
        if second < if stored[LAST - 1] > 0 { least / 2 } else { least } {
            return targets;
        }
        let mut above = 0;
        let mut reach = batch.saturating_mul(RATIO_UPPER / 2);
        while second > reach && LAST - 1 - above > 1 {
            above += 1;
            reach = batch.saturating_mul(RATIO_UPPER.saturating_pow(above as u32));
        }
        targets.base = LAST - 1 - above;
        let ratio = root(second / batch, above);
        let mut bytes = second;
        for level in (targets.base..LAST).rev() {
            targets.bytes[level] = bytes.max(1);
            bytes = bytes.saturating_mul(16) / ratio;
        }
        targets
    }
}

/// The smallest ratio, in sixteenths and at least 1, that multiplied `times` times reaches `value`.
fn root(value: u64, times: usize) -> u64 {
    let reaches = |ratio: u64| {
        let mut product = 16u128;
        for _ in 0..times {
            product = product * u128::from(ratio) / 16;
        }
        product >= u128::from(value) * 16
    };
    // Only the number of levels bounds the factor, in a tree too large for it.
    (16..=RATIO * 1600).find(|&ratio| reaches(ratio)).unwrap_or(RATIO * 1600)
}

/// How urgent the compaction of each level is: 1 and more means due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores(pub [f64; LEVELS]);

impl Scores {
    /// The scores of a tree of this shape. Tables that running jobs have taken do not count.
    pub fn of(shape: &Shape, targets: &Targets, busy: &Busy) -> Scores {
        let mut scores = [0.0; LEVELS];
        for (level, tables) in shape.levels.iter().enumerate().take(LAST) {
            let free = tables.iter().filter(|table| !busy.has(table));
            let (count, bytes) =
                free.fold((0usize, 0u64), |(n, sum), table| (n + 1, sum + table.file_bytes));
            scores[level] = if level == 0 {
                level0(count, bytes, targets)
            } else if targets.bytes[level] == 0 {
                // A level that should be empty is drained, before others that are a little over.
                if count > 0 { 1.5 } else { 0.0 }
            } else {
                bytes as f64 / targets.bytes[level] as f64
            };
        }
        Scores(scores)
    }
}

fn level0(count: usize, bytes: u64, targets: &Targets) -> f64 {
    let by_count = count as f64 / LEVEL0_TABLES_MAX as f64;
    by_count.max(bytes as f64 / targets.level0.max(1) as f64)
}

/// The work that lies ahead until every level has its target size.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Debt {
    /// Bytes to read and write again.
    pub bytes: u64,
    /// Tables in level 0.
    pub level0_tables: usize,
    /// Bytes in level 0.
    pub level0_bytes: u64,
    /// The first level below 0 in use.
    pub base: usize,
    /// The score of each level: 1 and more means due.
    pub scores: [f64; LEVELS],
}

/// What it would cost to bring the tree into its target shape. Of level 0 `copied` bytes are in the
/// base level already: a merge under way has installed a part.
pub fn debt(shape: &Shape, settings: &Settings, copied: u64) -> Debt {
    let targets = Targets::of(shape, settings);
    let stored = level_bytes(shape);
    let level0_tables = shape.levels.first().map_or(0, Vec::len);
    let mut bytes = 0u64;
    // What comes down to the level from those above it.
    let mut arriving = 0u64;
    if level0(level0_tables, stored[0], &targets) >= 1.0 {
        arriving = stored[0].saturating_sub(copied);
        bytes = arriving.saturating_add(stored[targets.base]);
    }
    for level in 1..LAST {
        let here = stored[level] + if level >= targets.base { arriving } else { 0 };
        let excess = here.saturating_sub(targets.bytes[level]);
        if excess == 0 {
            if level >= targets.base {
                arriving = 0;
            }
            continue;
        }
        let next = if level < targets.base { targets.base } else { level + 1 };
        let factor = stored[next] as f64 / here.max(1) as f64;
        bytes = bytes.saturating_add((excess as f64 * (1.0 + factor)) as u64);
        arriving = excess + if level < targets.base { arriving } else { 0 };
    }
    Debt {
        bytes,
        level0_tables,
        level0_bytes: stored[0],
        base: targets.base,
        scores: Scores::of(shape, &targets, &Busy::new()).0,
    }
}

/// The debts at which writers begin to be slowed, and at which they are slowed most, in bytes.
///
/// The limits grow with the tree, whose normal unevenness does too: a twentieth of it, and at
/// least sixty-four memtables, begin to count; four times as much is the most there should be.
pub fn debt_limits(shape: &Shape, settings: &Settings) -> (u64, u64) {
    let total: u64 = level_bytes(shape).iter().sum();
    let soft = (64 * settings.memtable_bytes).max(total / 20);
    (soft, soft.saturating_mul(4))
}
