//! In which steps a cache is resized, so that it forgets nothing by that. Pure.
//!
//! quick_cache remembers the keys of values that have left of late, as many for each byte of its
//! capacity as at its beginning: what comes back soon is kept. A resize multiplies their number by
//! the ratio of the capacities, and cuts off what is behind the point. Thousands of resizes would
//! bring it to 0, from which it never comes back; then a working set that changes is hardly let in.
//! The share of values that were used more than once is computed likewise. So a shard's capacity is
//! always a whole number of units, a unit is what there is one remembered key for, and a resize
//! goes only to where nothing is cut off.

/// The most shards. Fixed in number, so that what is evicted does not depend on the machine.
const SHARDS_MAX: u64 = 64;
/// What an entry is taken to weigh when the tables of the cache are sized: a key is remembered for
/// each. A block of 16 KiB; of a multiple of 100 bytes the hot share, 0.97, has whole bytes.
const UNIT_BYTES: u64 = 16_400;
/// A shard of less is made larger instead. It holds nothing that is heavier than itself, and a
/// block may have a MiB; and memtables may take half of the memory from the cache.
const SHARD_BYTES_MIN: u64 = 4 << 20;
/// The fewest units of a shard.
const SHARD_ENTRIES_MIN: u64 = 32;
const SHARD_ENTRIES_MAX: u64 = 1 << 18;
/// A bound for sums.
const UNITS_MAX: u64 = u32::MAX as u64;
/// How far it is looked for another way (three are enough for all of up to 4,000 units).
const LOOKS: u64 = 16;

/// How a cache is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// How many shards there are.
    pub shards: u64,
    /// Units of a shard at first; so many keys does it remember then.
    pub units: u64,
    /// Bytes of a unit.
    unit_bytes: u64,
}

impl Steps {
    /// For a cache of so many bytes.
    pub fn of(bytes: u64) -> Steps {
        let mut shards = SHARDS_MAX;
        while bytes / shards < SHARD_BYTES_MIN && shards > 1 {
            shards /= 2;
        }
        let shard = bytes / shards;
        let units = (shard / UNIT_BYTES).clamp(SHARD_ENTRIES_MIN, SHARD_ENTRIES_MAX);
        let unit_bytes = match shard / units {
            0 => 1,
            small @ 1..100 => small,
            large => large / 100 * 100,
        };
        Steps { shards, units, unit_bytes }
    }

    /// How many entries the cache is made for: as many as it remembers.
    pub fn entries(&self) -> u64 {
        self.units * self.shards
    }

    /// The capacity of so many units of each shard.
    pub fn bytes(&self, units: u64) -> u64 {
        units * self.unit_bytes * self.shards
    }

    /// The numbers of units, one after the other, by which a cache of `from` units comes to about
    /// so many bytes, and to one unit at least: mostly one; 0 is none.
    pub fn towards(&self, from: u64, bytes: u64) -> [u64; 2] {
        let step = self.bytes(1);
        // To the nearest, but not beyond the whole.
        let most = self.units.max(bytes / step).min(UNITS_MAX);
        let to = (bytes.saturating_add(step / 2) / step).clamp(1, most);
        if self.keeps(from, to) {
            return [to, 0];
        }
        // Of two numbers in 20, since the ratio is rounded: then by way of another one.
        let beside = |at: u64, by: u64| [at.saturating_sub(by), at + by];
        let ways = (1..LOOKS).flat_map(|by| beside(to, by).into_iter().chain(beside(from, by)));
        let keeps = |way: &u64| *way > 0 && self.keeps(from, *way) && self.keeps(*way, to);
        ways.into_iter().find(keeps).map_or([to, 0], |way| [way, to])
    }

    /// Whether a resize cuts nothing off, by quick_cache's own sums.
    fn keeps(&self, from: u64, to: u64) -> bool {
        let (old, new) = ((from * self.unit_bytes) as f64, (to * self.unit_bytes) as f64);
        (from as f64 * (new / old)) as u64 == to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_cache_is_divided_into_whole_units() {
        for bytes in [1600, MIB, 8 * MIB, 40 * MIB, 64 * MIB, 1000 * MIB, 4096 * MIB, 1 << 44] {
            let steps = Steps::of(bytes);
            assert!(steps.shards.is_power_of_two() && steps.units >= SHARD_ENTRIES_MIN);
            let whole = steps.bytes(steps.units);
            assert!(whole <= bytes && whole / 96 >= bytes / 100, "{bytes}: {steps:?}");
            assert_eq!(steps.towards(steps.units, whole), [steps.units, 0]);
            assert!(steps.bytes(steps.towards(steps.units, bytes)[0]) <= bytes);
            assert!(steps.towards(steps.units, 0).contains(&1));
        }
    }

    /// Whatever it is resized to and back: what a shard remembers goes with its capacity.
    #[test]
    fn nothing_is_lost_in_a_million_resizes() {
        for bytes in [8 * MIB, 64 * MIB, 300 * MIB, 4096 * MIB] {
            let steps = Steps::of(bytes);
            let (mut units, mut keys, mut hot) = (steps.units, steps.units, 0.97f64);
            let mut random = 7u64;
            for _ in 0..250_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let wanted = bytes / 16 + random % (bytes / 16 * 15);
                let off = |units: u64| wanted.abs_diff(steps.bytes(units));
                for next in steps.towards(units, wanted).into_iter().filter(|units| *units > 0) {
                    // As quick_cache does.
                    let (old, new) = (steps.bytes(units) as f64, steps.bytes(next) as f64);
                    keys = (keys as f64 * (new / old)) as u64;
                    hot = ((new * hot) as u64) as f64 / new;
                    units = next;
                }
                assert_eq!(keys, units);
                assert!(off(units) < steps.bytes(1), "{wanted} of {bytes}: {}", off(units));
                assert!(steps.bytes(units) <= bytes, "{wanted} of {bytes}");
            }
            assert!((0.96..=0.97).contains(&hot), "{hot}");
        }
    }
}
