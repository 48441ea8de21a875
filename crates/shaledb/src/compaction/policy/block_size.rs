//! Choosing the size of the blocks of each level.
//!
//! A look-up that misses the cache reads and decodes one block for one row, so small blocks are
//! good for it. Scans, flushes and merges go through all blocks, each of which costs something by
//! itself, and a codec finds more that repeats in a large one. What each size costs and saves is
//! measured on blocks of the level, cut to each size; how many blocks were decoded one by one, and
//! how many bytes in a row, is counted. The size that costs the least for what is done with the
//! level wins.
//!
//! The last level holds nearly all data, so its size is held to what the largest blocks give, with
//! little more. While nothing is known of its reads the codec decides, unless something is short:
//! where to decode a large block takes long, it gets the smallest that cost nearly no space, and
//! large ones where a block takes longer by itself. Other levels have large blocks until reads show
//! that small ones are better.

use super::auto::{LevelLoad, Price, Short, storage_nanos};
use super::candidates::{Cost, USUAL, index_of};
use super::levels::LAST;
use super::sizes::{BlockWhy, ChosenSizes, LARGEST, SIZES, SizeChoice, full_bytes};
use crate::base::config::{Codec, LEVELS};
use crate::fs::Clock;
use crate::table::compress::{Compressor, Dictionary, decompress_with};
use crate::table::write::cut;

/// How many times as large as with the largest blocks the last level may be: while nobody reads
/// it, and where its reads want small blocks.
const UNREAD_RATIO: f64 = 1.03;
const READ_RATIO: f64 = 1.05;
/// The same for the size that reads have chosen, so that chance does not decide.
const STAYS_RATIO: f64 = 1.07;
/// How much better another size must be than the one in use.
const BETTER: f64 = 0.9;
/// What a block costs by itself, in nanoseconds of CPU, beside what the codec takes: to write it
/// and read it for a merge, and to read it for a user, where it stands for those that the cache
/// has as well (decision 0028).
const WRITE_NANOS: f64 = 700.0;
const READ_NANOS: f64 = 3_500.0;
/// The most that a byte more of the same block takes to read, in nanoseconds: what it takes beyond
/// that is for the call, or for the device's way there, and the same for a small block.
const READ_BYTE_NANOS: f64 = 0.1;
/// How many times as long as a block takes by itself the codec must take for a large one, so that
/// small ones are chosen while nothing is known of reads, and so that they stay.
const DECODED_LONG: f64 = 1.0;
const DECODED_STILL_LONG: f64 = 0.7;
/// What a block takes in a file beside its rows and the key in the index: its frame and its place.
const BLOCK_BYTES: usize = 24;
/// What a merge takes for a byte beside the codec and its blocks, in nanoseconds.
const MERGE_NANOS: f64 = 1.5;
/// A dictionary must leave no more than this of what blocks take without it: large ones, and those
/// that can be small by it ([`crate::table::write::Least`]).
const SAVES: f64 = 0.95;
const SAVES_OF_SMALL: f64 = 0.97;
/// What one that the tree has may leave more.
const SAVES_KEPT: f64 = 0.01;
/// The last level is rewritten for another size only if reads give back within so many seconds what
/// that costs.
const PAYS_WITHIN: f64 = 600.0;
/// How often what takes less than so many nanoseconds is measured.
const MEASURED_TIMES: usize = 3;
const MEASURED_NANOS: u64 = 1_000_000;
/// Fewer bytes of blocks tell nothing.
const SAMPLE_BYTES_MIN: usize = 24 << 10;

/// What a way to compress does to the data of a level in blocks of each size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeCosts(pub [Cost; SIZES.len()]);

impl SizeCosts {
    /// Measures it for a codec, with a dictionary or without, on pieces of a level's data, which
    /// are cut to each size. On average a row has `row_bytes`, of which its key has `key_bytes`.
    /// `None` if there is too little to tell.
    pub fn measure(
        pieces: &[&[u8]],
        codec: Codec,
        dictionary: Option<&Dictionary>,
        (row_bytes, key_bytes): (f64, f64),
        clock: &dyn Clock,
    ) -> Option<SizeCosts> {
        let raw: usize = pieces.iter().map(|piece| piece.len()).sum();
        if raw < SAMPLE_BYTES_MIN || pieces.iter().all(|piece| piece.len() <= SIZES[0] as usize) {
            return None;
        }
        let usual = index_of(codec, false).map_or(USUAL.0[4], |at| USUAL.0[at]);
        let mut costs = [usual; SIZES.len()];
        let mut compressor = Compressor::new(codec);
        let with = dictionary.filter(|own| compressor.use_dictionary(own));
        let (mut back, mut tells) = (Vec::new(), true);
        compressor.compress(pieces.first()?, &mut back);
        for (cost, size) in costs.iter_mut().zip(SIZES) {
            // A block has a row at least.
            let size = (size as usize).max(row_bytes as usize);
            let blocks: Vec<&[u8]> = pieces.iter().flat_map(|piece| cut(piece, size)).collect();
            let mut images: Vec<(u8, Vec<u8>)> =
                blocks.iter().map(|block| (0, Vec::with_capacity(block.len()))).collect();
            let compressing = least_nanos(clock, || {
                for (block, (used, image)) in blocks.iter().zip(&mut images) {
                    image.clear();
                    *used = compressor.compress(block, image);
                }
            });
            let decompressing = least_nanos(clock, || {
                for (block, (used, image)) in blocks.iter().zip(&images) {
                    let whole = decompress_with(with, *used, image, block.len(), &mut back);
                    debug_assert!(whole.is_ok() && back == *block, "what is compressed comes back");
                }
            });
            let stored: usize = images.iter().map(|(_, image)| image.len()).sum();
            let beside = blocks.len() as f64 * (BLOCK_BYTES as f64 + key_bytes);
            cost.ratio = (stored as f64 + beside) / raw as f64;
            cost.compress = compressing as f64 / raw as f64;
            cost.decompress = decompressing as f64 / raw as f64;
            tells &= compressing > 0 && decompressing > 0;
        }
        if !tells {
            // A simulated clock does not tell CPU time.
            for cost in &mut costs {
                (cost.compress, cost.decompress) = (usual.compress, usual.decompress);
            }
        }
        Some(SizeCosts(costs))
    }

    /// Whether a dictionary pays in blocks of a size, by what they are without it and with it.
    fn pays(&self, with: &SizeCosts, at: usize, is_used: bool) -> bool {
        let saves = if at == LARGEST { SAVES } else { SAVES_OF_SMALL };
        let saves = if is_used { saves + SAVES_KEPT } else { saves };
        with.0[at].ratio <= saves * self.0[at].ratio
    }

    /// What blocks of each size are with a dictionary where it pays, and without it else. `is_used`
    /// says for which sizes it is to be kept, as the tree has it.
    pub fn or(&self, with: &SizeCosts, is_used: [bool; SIZES.len()]) -> SizeCosts {
        let better =
            |at: usize| if self.pays(with, at, is_used[at]) { with.0[at] } else { self.0[at] };
        SizeCosts(std::array::from_fn(better))
    }

    /// The same where each byte before compression takes so much more in the file.
    pub fn plus(self, ratio: f64) -> SizeCosts {
        SizeCosts(self.0.map(|cost| Cost { ratio: cost.ratio + ratio, ..cost }))
    }

    /// What a dictionary saves of what is chosen for the last level, in percent, by what blocks of
    /// each size are without it and with it; `None` if it does not pay there.
    pub fn saves(&self, with: &SizeCosts, chosen: &ChosenSizes) -> Option<f64> {
        let at = chosen.levels[LAST]?.at;
        let saves = 100.0 - 100.0 * with.0[at].ratio / self.0[at].ratio;
        self.pays(with, at, false).then_some(saves)
    }
}

/// The least CPU time that something takes of a few times, as what else the machine does at the
/// moment makes it longer; of one where it takes long.
fn least_nanos(clock: &dyn Clock, mut work: impl FnMut()) -> u64 {
    let mut once = || {
        let started = clock.thread_cpu_nanos();
        work();
        clock.thread_cpu_nanos() - started
    };
    let first = once();
    let times = if first < MEASURED_NANOS { MEASURED_TIMES - 1 } else { 0 };
    (0..times).map(|_| once()).fold(first, u64::min)
}

/// A level, as far as choosing the size of its blocks goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelBlocks {
    /// What each size does to its data, if that is known.
    pub costs: Option<SizeCosts>,
    /// Nanoseconds that it takes to decode a byte by the codec that is in use now, which may be
    /// another than the one that `costs` are of.
    pub decode_nanos: f64,
    /// What is done with it each second.
    pub load: LevelLoad,
    /// How many blocks are decoded each second for reads that go on with none beside it.
    pub apart: f64,
    /// Bytes of its tables whose blocks are of each size, before compression.
    pub tables: [u64; SIZES.len()],
    /// Bytes of those whose blocks are of any other.
    pub others: [u64; SIZES.len()],
    /// Bytes of a block on average.
    pub block_bytes: f64,
    /// Bytes of a row on average.
    pub row_bytes: f64,
    /// Bytes of tables that are still to be rewritten by what was decided before.
    pub pending: u64,
    /// Bytes of tables that rewriting for each size has left with blocks of another, since their
    /// rows are as they are.
    pub left: [u64; SIZES.len()],
}

impl LevelBlocks {
    /// Nanoseconds a second that reads and writes take with blocks of a size.
    fn time(&self, at: usize, costs: &SizeCosts, price: &Price) -> (f64, f64) {
        let (cost, window) = (&costs.0[at], &price.window);
        let size = full_bytes(at, self.row_bytes);
        let storage = storage_nanos(window, price.short);
        let codec = (cost.compress + cost.decompress + WRITE_NANOS / size) * window.dilation;
        let write = codec + cost.ratio * (storage + price.worth);
        let now = self.block_bytes;
        let nearest = SIZES.iter().position(|size| now <= f64::from(*size)).unwrap_or(LARGEST);
        // What it takes to read a stored byte, and to get to the block that it is in.
        let stored = match window.user_read_nanos {
            0.0 => READ_BYTE_NANOS,
            known => known.min(READ_BYTE_NANOS),
        };
        let way = (window.user_read_nanos - stored).max(0.0) * now * costs.0[nearest].ratio;
        let byte = cost.decompress * window.dilation + cost.ratio * stored;
        let block = READ_NANOS * window.dilation;
        let scanned = (self.load.read - self.apart * now).max(0.0);
        let read = self.apart * (block + way + size * byte) + scanned * (byte + block / size);
        (read, self.load.written * write)
    }

    fn total(&self, at: usize, costs: &SizeCosts, price: &Price) -> f64 {
        let (read, written) = self.time(at, costs, price);
        price.read_weight() * read + written
    }

    fn choose(&self, level: usize, used: Option<SizeChoice>, price: &Price) -> Option<SizeChoice> {
        let Some(costs) = &self.costs else { return used };
        let is_small = |at: usize, times: f64| {
            level < LAST || costs.0[at].ratio <= times * costs.0[LARGEST].ratio
        };
        let small = |choice: &SizeChoice| is_small(choice.at, STAYS_RATIO);
        if self.load.read <= 0.0 {
            // What was chosen by reads stays until others come, if it is small. What was chosen
            // without any, or may have been, gives way while CPU is short for writes.
            let used = used.filter(small);
            match (used.map_or(BlockWhy::Unread, |used| used.why), price.short) {
                (BlockWhy::Unread | BlockWhy::Found, Short::CpuForWrites) => return None,
                (BlockWhy::Unread, Short::Nothing) if level == LAST => {}
                _ => return used,
            }
            let is_used = used.is_some_and(|used| used.at < LARGEST);
            let long = if is_used { DECODED_STILL_LONG } else { DECODED_LONG } * READ_NANOS;
            let decoded = self.decode_nanos * f64::from(SIZES[LARGEST]);
            let smallest = || {
                let ratio = |at: usize| {
                    let is_used = used.is_some_and(|used| used.at == at);
                    if is_used { READ_RATIO } else { UNREAD_RATIO }
                };
                (0..SIZES.len()).find(|at| is_small(*at, ratio(*at)))
            };
            let at = if decoded < long { LARGEST } else { smallest().unwrap_or(LARGEST) };
            return Some(SizeChoice { at, why: BlockWhy::Unread });
        }
        let now = used.map_or(LARGEST, |used| used.at);
        let total = |at: usize| self.total(at, costs, price);
        let best = (0..SIZES.len())
            // Of those that are as good, as for rows that fill a block, the largest.
            .rev()
            .filter(|at| is_small(*at, if *at == now { STAYS_RATIO } else { READ_RATIO }))
            .min_by(|a, b| total(*a).total_cmp(&total(*b)))
            .unwrap_or(LARGEST);
        let keeps = is_small(now, STAYS_RATIO) && total(best) >= BETTER * total(now);
        // What reads agree with is theirs from then on.
        let keeps_reason = |used: &SizeChoice| {
            best != used.at || !matches!(used.why, BlockWhy::Unread | BlockWhy::Found)
        };
        if keeps && used.is_some_and(|used| keeps_reason(&used)) {
            return used;
        }
        let at = if keeps { now } else { best };
        let why = if at == LARGEST { BlockWhy::Scanned } else { BlockWhy::LookedUp };
        Some(SizeChoice { at, why })
    }

    /// Nanoseconds a second that reads lose now since not all blocks are of each size; less than
    /// nothing where they would lose by it.
    pub fn losses(&self, price: &Price) -> [f64; SIZES.len()] {
        let Some(costs) = &self.costs else { return [0.0; SIZES.len()] };
        let read = [0, 1, 2].map(|at| self.time(at, costs, price).0);
        let all: u64 = self.tables.iter().sum();
        let part = |at: usize| self.tables[at] as f64 / all.max(1) as f64;
        let now: f64 = (0..SIZES.len()).map(|at| part(at) * read[at]).sum();
        read.map(|with| if all == 0 { 0.0 } else { now - with })
    }

    /// Nanoseconds that it takes to rewrite all tables that have another size than this.
    fn rewriting(&self, at: usize, price: &Price) -> f64 {
        let Some(costs) = &self.costs else { return 0.0 };
        let (cost, window) = (&costs.0[at], &price.window);
        let storage = window.storage_nanos.max(window.storage_cpu_nanos * window.dilation);
        let rows = MERGE_NANOS + WRITE_NANOS / f64::from(SIZES[at]);
        let cpu = (cost.compress + cost.decompress + rows) * window.dilation;
        self.others[at] as f64 * (cpu + cost.ratio * storage)
    }
}

/// What is chosen for the levels of a tree at a price. What is in use stays unless another size is
/// better by more than chance. And whether the last level is to be rewritten by a new decision.
///
/// `lost` is what reads have lost so far since not all blocks of the last level are of each size.
/// It is rewritten for the size chosen once they have lost as much as that costs: so it costs no
/// more than what not to do it has cost, however reads change.
pub fn choose(
    price: &Price,
    levels: &[LevelBlocks; LEVELS],
    before: &ChosenSizes,
    lost: &[f64; SIZES.len()],
) -> (ChosenSizes, bool) {
    let chosen =
        std::array::from_fn(|level| levels[level].choose(level, before.levels[level], price));
    let last = &levels[LAST];
    let pays = |choice: SizeChoice| {
        let cost = last.rewriting(choice.at, price);
        let gain = last.losses(price)[choice.at];
        let is_enough = lost[choice.at] >= cost && gain * PAYS_WITHIN > cost;
        // What one decision has left is no reason for the next.
        let is_new = last.others[choice.at] > 2 * last.left[choice.at];
        cost > 0.0 && is_enough && is_new && price.short == Short::Nothing
    };
    let choice: Option<SizeChoice> = chosen[LAST];
    let goes_on = last.pending > 0 && choice.map(|c| SIZES[c.at]) == before.rewrites();
    let begins = !goes_on && choice.is_some_and(pays);
    (ChosenSizes { levels: chosen, rewrites_last: goes_on || begins }, begins)
}

#[cfg(test)]
#[path = "block_size_tests.rs"]
mod tests;
