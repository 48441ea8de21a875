//! Choosing codecs: what a byte is worth now, and for each level of a tree the codec that costs the
//! least at that price.
//!
//! Writing a byte into a level costs the time to compress it, to write what is left of it, and to
//! read and decompress that for the next merge; reads by users cost time likewise. That alone
//! decides while the background work is hard pressed: the least time wins, and of what is as good
//! the fewest bytes. Where storage is short, the time is what the storage is seen to take for a
//! byte; where CPU is, it is CPU time. While it is not pressed a byte is worth more, up to
//! [`WORTH_MAX`], as long as [`SPARE_CORES`] of the cores and [`BUSY_ENOUGH`] of the background
//! threads suffice.
//!
//! The last level holds nearly all data. It is held to the size that the
//! [yardstick](super::candidates::YARDSTICK) gives, unless CPU is short for writes. What was
//! written lighter then is rewritten when there is time
//! ([`wants_rewrite`](super::levels::wants_rewrite)).

use super::candidates::{ALL, CANDIDATES, Cost, Costs, Way, YARDSTICK, YARDSTICK_WITH, index_of};
use super::chosen::{Choice, Chosen};
use crate::base::config::LEVELS;
use crate::table::meta::Why;

/// How often codecs are chosen anew at most.
pub const EVERY_NANOS: u64 = 250_000_000;
/// Over how many seconds what the database does is averaged.
pub const SECONDS: f64 = 0.5;
/// Over how many seconds what is done with a level is averaged.
pub const LEVEL_SECONDS: f64 = 5.0;

/// The most that one byte not written is worth, in nanoseconds of CPU.
const WORTH_MAX: f64 = 512.0;
/// What a byte is worth where nothing is being written.
const WORTH_AT_REST: f64 = 128.0;
/// The share of all cores that codecs may use where nothing is pressed.
const SPARE_CORES: f64 = 0.25;
/// The share of the background threads' time up to which more compressing is chosen. Well below
/// [`PRESSED_BUSY`], so that the choice does not bring about what undoes it.
const BUSY_ENOUGH: f64 = 0.6;
/// The background work is pressed from this share of its threads' time on, and no more below
/// [`BUSY_ENOUGH`].
const PRESSED_BUSY: f64 = 0.8;
/// Writers that wait for more than this share of the time are slowed.
const PRESSED_SLOWED: f64 = 0.01;
/// The storage is what is short if background threads wait for it for this share of their time.
const WAITING: f64 = 0.45;
/// Threads that take so many times their CPU time, without waiting for storage, share their core.
const CONTENDED: f64 = 1.25;
/// The share of the cores from which on CPU counts where it is contended.
const CONTENDED_CORES: f64 = 0.3;
/// A choice costs as little as another if it costs at most this share more of all that is done.
const AS_GOOD: f64 = 0.02;
/// How much better another codec must be than the one in use.
const BETTER: f64 = 0.95;
/// How many times its time a user's read counts: someone waits for it.
const READ_WEIGHT: f64 = 4.0;
/// What leaves more of the data than this is not worth a try.
const SAVES_LITTLE: f64 = 0.98;
/// The last level may be so many times as large as with the yardstick.
const LAST_SIZE: f64 = 1.03;

/// What the database has done lately: averages of some seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Cores of the machine.
    pub cores: f64,
    /// Threads for background work.
    pub threads: f64,
    /// How many background threads were at work.
    pub busy: f64,
    /// How many of these waited for storage.
    pub waiting: f64,
    /// How many cores background work used.
    pub background_cpu: f64,
    /// How many cores the calls of users used.
    pub users_cpu: f64,
    /// How many times their CPU time background threads took, without waiting for storage; 1 or
    /// more.
    pub dilation: f64,
    /// Nanoseconds that background work took to write a byte, and to read one.
    pub storage_nanos: f64,
    /// Nanoseconds of CPU in that.
    pub storage_cpu_nanos: f64,
    /// Nanoseconds that users' reads took to read a byte.
    pub user_read_nanos: f64,
    /// For which share of the time writers were slowed.
    pub slowed: f64,
    /// Whether nothing was written of late. Then nobody waits for background work.
    pub at_rest: bool,
}

impl Window {
    /// Part of the way from this window to a new one.
    pub fn blend(&self, new: &Window, share: f64) -> Window {
        let mean = |of: fn(&Window) -> f64| of(self) + share * (of(new) - of(self));
        Window {
            cores: new.cores,
            threads: new.threads,
            busy: mean(|w| w.busy),
            waiting: mean(|w| w.waiting),
            background_cpu: mean(|w| w.background_cpu),
            users_cpu: mean(|w| w.users_cpu),
            dilation: mean(|w| w.dilation),
            storage_nanos: mean(|w| w.storage_nanos),
            storage_cpu_nanos: mean(|w| w.storage_cpu_nanos),
            user_read_nanos: mean(|w| w.user_read_nanos),
            slowed: mean(|w| w.slowed),
            at_rest: new.at_rest,
        }
    }
}

/// What is done with the data of a level each second, in bytes before compression.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelLoad {
    /// Compressed and written into it.
    pub written: f64,
    /// Decompressed for users' reads.
    pub read: f64,
}

/// A tree, as far as choosing goes.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeLoad {
    /// What codecs do to the data of each level, as far as it is known.
    pub costs: [Option<Costs>; LEVELS],
    /// What is done with it.
    pub levels: [LevelLoad; LEVELS],
    /// What was chosen last.
    pub chosen: Chosen,
}

/// What is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Short {
    /// Nothing: there is time to save bytes.
    #[default]
    Nothing,
    /// CPU, for writes.
    CpuForWrites,
    /// CPU, while the background work could do more.
    Cpu,
    /// Storage.
    Storage,
}

/// What time and bytes are worth now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// What is short.
    pub short: Short,
    /// Nanoseconds that a byte not written is worth, beside the time that it takes to write.
    pub worth: f64,
    /// The times of storage, and how much longer than its CPU work takes.
    pub window: Window,
}

impl Price {
    /// How many times its time a user's read counts.
    pub(super) fn read_weight(&self) -> f64 {
        if self.short == Short::Nothing { READ_WEIGHT } else { 1.0 }
    }
}

/// What a byte that is written and read takes, in nanoseconds. A background thread that waits for
/// storage leaves its core to others, so only where storage is short such waits count.
pub(super) fn storage_nanos(window: &Window, short: Short) -> f64 {
    match short {
        Short::Storage => window.storage_nanos,
        _ => window.storage_cpu_nanos * window.dilation,
    }
}

impl TreeLoad {
    /// The costs of a level, or of the nearest one of which they are known.
    fn costs_of(&self, level: usize) -> Option<&Costs> {
        let known = (0..LEVELS).filter(|&other| self.costs[other].is_some());
        let nearest = known.min_by_key(|&other| other.abs_diff(level))?;
        self.costs[nearest].as_ref()
    }
}

/// The time that a codec takes for what is done with a level, in nanoseconds a second: of
/// background threads, and of users' reads.
fn time(cost: &Cost, load: &LevelLoad, window: &Window, short: Short) -> (f64, f64) {
    let storage = cost.ratio * storage_nanos(window, short);
    let codec = (cost.compress + cost.decompress) * window.dilation;
    let read = cost.decompress * window.dilation + cost.ratio * window.user_read_nanos;
    (load.written * (codec + storage), load.read * read)
}

/// What is done with a level; of one with which nothing is, as if a byte were written each second.
fn load_of(tree: &TreeLoad, level: usize) -> LevelLoad {
    let load = tree.levels[level];
    if load.written + load.read > 0.0 { load } else { LevelLoad { written: 1.0, read: 0.0 } }
}

/// Whether the last level may have this codec.
fn suits_last(costs: &Costs, candidate: usize, short: Short) -> bool {
    let plain = costs.0[YARDSTICK].ratio;
    // Without the tree's dictionary it is to be about as small as with it: blocks may be small
    // since there is one.
    let with = if ALL[candidate].dictionary { plain } else { costs.0[YARDSTICK_WITH].ratio };
    short == Short::CpuForWrites || costs.0[candidate].ratio <= LAST_SIZE * plain.min(with)
}

/// Whether a level may have this codec.
fn is_allowed(costs: &Costs, candidate: usize, level: usize, short: Short) -> bool {
    costs.has(candidate)
        && (candidate == 0 || costs.0[candidate].ratio < SAVES_LITTLE)
        && (level < LEVELS - 1 || suits_last(costs, candidate, short))
}

/// What a codec costs at a price, for what is done with a level.
fn total(cost: &Cost, load: &LevelLoad, price: &Price) -> f64 {
    let (background, reads) = time(cost, load, &price.window, price.short);
    background + price.read_weight() * reads + price.worth * cost.ratio * load.written
}

/// The cheapest candidate for a level at a price.
fn cheapest(costs: &Costs, load: &LevelLoad, level: usize, price: &Price) -> usize {
    let total = |candidate: &usize| total(&costs.0[*candidate], load, price);
    (0..CANDIDATES)
        .filter(|candidate| is_allowed(costs, *candidate, level, price.short))
        .min_by(|a, b| total(a).total_cmp(&total(b)))
        .unwrap_or(YARDSTICK)
}

/// All that a choice takes: threads' time of background work and of reads, and CPU of codecs, each
/// in seconds a second.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    background: f64,
    reads: f64,
    codecs: f64,
}

/// What it takes if `pick` chooses for each level of each tree.
fn taken(
    trees: &[TreeLoad],
    (window, short): (&Window, Short),
    pick: impl Fn(&TreeLoad, usize, &Costs) -> usize,
) -> Taken {
    let mut taken = Taken::default();
    for tree in trees {
        for level in 0..LEVELS {
            let Some(costs) = tree.costs_of(level) else { continue };
            let load = tree.levels[level];
            let cost = &costs.0[pick(tree, level, costs)];
            let (background, reads) = time(cost, &load, window, short);
            taken.background += background / 1e9;
            taken.reads += reads / 1e9;
            let codec = load.written * (cost.compress + cost.decompress);
            taken.codecs += (codec + load.read * cost.decompress) / 1e9;
        }
    }
    taken
}

/// The candidate that is in use at a level, if one was chosen.
fn in_use(tree: &TreeLoad, level: usize) -> Option<usize> {
    let chosen = tree.chosen.0[level]?;
    index_of(chosen.codec, chosen.dictionary)
}

/// What is short, by what has been done lately, and by what was short before.
fn shortage(window: &Window, before: Short) -> Short {
    if window.at_rest {
        return Short::Nothing;
    }
    let was_pressed = before != Short::Nothing;
    let limits = if was_pressed { (BUSY_ENOUGH, 0.5) } else { (PRESSED_BUSY, 1.0) };
    let threads = window.threads.max(1.0);
    let behind = window.busy > limits.0 * threads || window.slowed > limits.1 * PRESSED_SLOWED;
    let used = window.users_cpu + window.background_cpu;
    let contended = window.dilation > CONTENDED
        && used > CONTENDED_CORES * window.cores * if was_pressed { 0.7 } else { 1.0 };
    let waits = if before == Short::Storage { WAITING / 1.5 } else { WAITING };
    match (behind, contended) {
        (true, _) if window.waiting > waits * window.busy => Short::Storage,
        (true, _) => Short::CpuForWrites,
        // Most of what is done is writing.
        (false, true) if window.background_cpu > window.users_cpu / 2.0 => Short::CpuForWrites,
        (false, true) => Short::Cpu,
        (false, false) => Short::Nothing,
    }
}

/// What a byte is worth now. The trees are those with which something has been done.
pub fn price(window: &Window, before: &Price, trees: &[TreeLoad]) -> Price {
    let short = shortage(window, before.short);
    let now = taken(trees, (window, short), |tree, level, _| {
        // Of a level without a choice, one that costs nothing.
        in_use(tree, level).unwrap_or(0)
    });
    let at = |worth: f64| {
        let price = Price { short, worth, window: *window };
        let pick = |tree: &TreeLoad, level: usize, costs: &Costs| {
            cheapest(costs, &load_of(tree, level), level, &price)
        };
        (price, taken(trees, (window, short), pick))
    };
    if window.at_rest {
        return at(WORTH_AT_REST).0;
    }
    // The rest of what is done, which no codec changes.
    let rest = (window.busy - now.background).max(0.0) + window.users_cpu;
    let all = |taken: &Taken| taken.background + taken.reads + rest;
    let worths = std::iter::once(0.0).chain((0..).map(|step| f64::from(1 << step) / 2.0));
    let worths: Vec<f64> = worths.take_while(|worth| *worth <= WORTH_MAX).collect();
    let (least, least_taken) = at(0.0);
    let fits = |taken: &Taken| match short {
        Short::Nothing => {
            let busy = (window.busy - now.background).max(0.0) + taken.background;
            let threads = window.threads.min(window.cores).max(1.0);
            taken.codecs <= SPARE_CORES * window.cores && busy <= BUSY_ENOUGH * threads
        }
        _ => all(taken) <= (1.0 + AS_GOOD) * all(&least_taken),
    };
    let dearest = worths.iter().rev().map(|worth| at(*worth)).find(|(_, taken)| fits(taken));
    dearest.map_or(least, |(price, _)| price)
}

/// What is chosen for the levels of a tree at a price. What is in use stays unless another codec
/// is better by more than chance.
pub fn choose(price: &Price, tree: &TreeLoad) -> Chosen {
    Chosen(std::array::from_fn(|level| {
        // What was chosen before stays until something is known.
        let Some(costs) = tree.costs_of(level) else { return tree.chosen.0[level] };
        let load = load_of(tree, level);
        let best = cheapest(costs, &load, level, price);
        let at = |candidate: usize| total(&costs.0[candidate], &load, price);
        let used = in_use(tree, level)
            .filter(|used| is_allowed(costs, *used, level, price.short))
            .filter(|used| at(best) >= BETTER * at(*used));
        let candidate = used.unwrap_or(best);
        let Way { codec, dictionary } = ALL[candidate];
        Some(Choice { codec, dictionary, why: why(price, costs, &load, level, candidate) })
    }))
}

/// Why a level has this candidate.
fn why(price: &Price, costs: &Costs, load: &LevelLoad, level: usize, candidate: usize) -> Why {
    let smallest = costs.0.iter().fold(1.0, |least: f64, cost| least.min(cost.ratio));
    if candidate == 0 && smallest >= SAVES_LITTLE {
        return Why::Plain;
    }
    match price.short {
        Short::Storage => Why::StorageShort,
        Short::Cpu | Short::CpuForWrites => Why::CpuShort,
        Short::Nothing => {
            let unread = LevelLoad { read: 0.0, written: load.written.max(1.0) };
            let other = cheapest(costs, &unread, level, price);
            let decompress = |candidate: usize| costs.0[candidate].decompress;
            if decompress(candidate) < decompress(other) { Why::Read } else { Why::CpuFree }
        }
    }
}

#[cfg(test)]
#[path = "auto_tests.rs"]
mod tests;
