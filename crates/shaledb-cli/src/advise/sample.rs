//! What was read of the user's data: stretches of rows, and how they lie in the order of keys.

use super::layers::Layers;
pub(super) use super::stretch::{Row, Seen, Stretch};
use serde::Serialize;
use std::collections::HashSet;

/// The most and the fewest stretches of a sample, and the fewest bytes of one.
const STRETCHES: u64 = 64;
const STRETCHES_MIN: u64 = 4;
pub(super) const STRETCH_BYTES_MIN: u64 = 32 << 10;

/// The smallest sample that has so many stretches. A source larger than it has room for them, so
/// they never overlap.
pub(super) const SAMPLE_BYTES_MIN: u64 = STRETCHES_MIN * STRETCH_BYTES_MIN;

/// How many stretches a sample of so many bytes has.
pub(super) fn stretches_of(sample_bytes: u64) -> u64 {
    (sample_bytes / STRETCH_BYTES_MIN).clamp(STRETCHES_MIN, STRETCHES)
}

/// How the source's order is related to that of the keys, as far as the sample shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// Ascending keys, each once: tables can be written directly.
    Ascending,
    /// Stretches have key ranges of their own: what is together in the source is together in the
    /// tree.
    Clustered,
    /// Rows of all stretches lie between each other.
    Mixed,
}

/// Of neighbours in the order of keys, so many stretches may overlap in clustered data.
const OVERLAPS: f64 = 0.1;

/// What was read, and what is known of the rest.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) stretches: Vec<Stretch>,
    /// Of the whole source.
    pub(super) total_units: f64,
    /// By what part that may be wrong: more than 0 where it is somebody's estimate.
    pub(super) total_bound: f64,
    /// Whether that is not known, and figures are for 1 GB of it.
    pub(super) is_endless: bool,
    pub(super) seen: Seen,
    pub(super) order: Order,
    pub(super) rows: u64,
    /// Keys and values.
    pub(super) bytes: u64,
    /// Of different keys.
    pub(super) distinct: u64,
    /// The sum over stretches of the different keys in each.
    pub(super) distinct_within: u64,
    /// Sorted runs above each other, in which the same keys may be.
    pub(super) layers: Option<Layers>,
    /// What the user should know of how it was read.
    pub(super) notes: Vec<String>,
}

impl Sample {
    /// Looks at what was read. `total_units` is `None` if the source's length is not known.
    pub(super) fn new(
        stretches: Vec<Stretch>,
        total_units: Option<u64>,
        seen: Seen,
        notes: Vec<String>,
    ) -> Sample {
        let mut sample = Sample {
            order: Order::Mixed,
            total_units: total_units.map_or(1e9, |units| units as f64),
            total_bound: 0.0,
            is_endless: total_units.is_none(),
            seen,
            rows: 0,
            bytes: 0,
            distinct: 0,
            distinct_within: 0,
            layers: None,
            notes,
            stretches,
        };
        let mut all = HashSet::new();
        for stretch in &sample.stretches {
            let mut within = HashSet::new();
            for (key, value) in &stretch.rows {
                sample.bytes += (key.len() + value.len()) as u64;
                within.insert(key.as_slice());
                all.insert(key.as_slice());
            }
            sample.rows += stretch.rows.len() as u64;
            sample.distinct_within += within.len() as u64;
        }
        sample.distinct = all.len() as u64;
        sample.order = order(&sample.stretches);
        sample.layers = Layers::of(&sample.stretches, seen, 1);
        sample
    }

    /// Of so many files, of some of which the beginnings were read.
    pub(super) fn of_files(mut self, files: usize) -> Sample {
        self.layers = Layers::of(&self.stretches, self.seen, files);
        self
    }

    /// The share of the places in which no row begins: they are within rows that are longer than a
    /// stretch, and so may be as much of the source.
    pub(super) fn share_without_rows(&self) -> f64 {
        let empty = self.stretches.iter().filter(|stretch| stretch.rows.is_empty()).count();
        if self.seen == Seen::All { 0.0 } else { empty as f64 / self.stretches.len().max(1) as f64 }
    }

    /// Units that were read.
    pub(super) fn units(&self) -> f64 {
        self.stretches.iter().map(|stretch| stretch.units as f64).sum()
    }

    /// The share of the source that was read, at most 1.
    pub(super) fn share(&self) -> f64 {
        if self.seen == Seen::All { 1.0 } else { (self.units() / self.total_units).min(1.0) }
    }

    /// Rows of the whole source.
    pub(super) fn total_rows(&self) -> f64 {
        self.rows as f64 * self.scale()
    }

    /// Bytes of keys and values of the whole source.
    pub(super) fn total_bytes(&self) -> f64 {
        self.bytes as f64 * self.scale()
    }

    fn scale(&self) -> f64 {
        if self.seen == Seen::All { 1.0 } else { self.total_units / self.units().max(1.0) }
    }

    /// Different keys of the whole source: how often stretches share keys tells from how many the
    /// rows are drawn, if each is as likely as any other. Of clusters, in which a key may come
    /// again for longer than a stretch, how many begin inside of stretches tells it too.
    pub(super) fn total_distinct(&self) -> f64 {
        let within = self.distinct_within as f64;
        let seen = self.distinct as f64;
        let all = self.total_rows() * within / (self.rows as f64).max(1.0);
        if self.seen == Seen::All {
            return seen;
        }
        if let Some(layers) = &self.layers {
            return (all * layers.distinct).max(seen);
        }
        let drawn = self.drawn(within, all).max(seen);
        match self.order {
            Order::Clustered => {
                // A row that is not the first of its stretch shows whether it has another key.
                let pairs = (self.rows as f64 - self.stretches_with_rows()).max(1.0);
                let begun = self.total_rows() * self.beginnings() / pairs;
                drawn.min(begun).max(seen)
            }
            Order::Ascending | Order::Mixed => drawn,
        }
    }

    /// How many keys have their first row inside of a stretch, behind another key's.
    pub(super) fn beginnings(&self) -> f64 {
        self.distinct_within as f64 - self.stretches_with_rows()
    }

    fn stretches_with_rows(&self) -> f64 {
        self.stretches.iter().filter(|stretch| !stretch.rows.is_empty()).count() as f64
    }

    /// Different keys among `all` draws, if so many in stretches have met as few as were seen.
    fn drawn(&self, within: f64, all: f64) -> f64 {
        let shared = within - self.distinct as f64;
        if shared < 1.0 {
            return all;
        }
        // of = keys * (1 - exp(-within / keys)), which grows with `keys`.
        let of = |keys: f64, drawn: f64| -keys * (-drawn / keys).exp_m1();
        let (mut low, mut high) = (self.distinct as f64, within * within / shared * 2.0 + 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if of(middle, within) < self.distinct as f64 { low = middle } else { high = middle }
        }
        of(low, all)
    }

    /// All rows in the order of keys, of each key the last one.
    pub(super) fn sorted<'a>(stretches: impl Iterator<Item = &'a Stretch>) -> Vec<&'a Row> {
        let mut rows: Vec<&Row> = stretches.flat_map(|stretch| &stretch.rows).collect();
        // Stable: of one key the last one stands last.
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        let mut kept: Vec<&Row> = Vec::with_capacity(rows.len());
        for row in rows {
            match kept.last_mut() {
                Some(last) if last.0 == row.0 => *last = row,
                _ => kept.push(row),
            }
        }
        kept
    }
}

fn order(stretches: &[Stretch]) -> Order {
    let ascends = |rows: &[Row]| rows.windows(2).all(|two| two[0].0 < two[1].0);
    let mut last: Option<&[u8]> = None;
    let mut is_ascending = true;
    let mut ranges: Vec<(&[u8], &[u8])> = Vec::new();
    for stretch in stretches.iter().filter(|stretch| !stretch.rows.is_empty()) {
        let keys = || stretch.rows.iter().map(|(key, _)| key.as_slice());
        let (Some(least), Some(most)) = (keys().min(), keys().max()) else { continue };
        is_ascending &= ascends(&stretch.rows) && last.is_none_or(|last| last < least);
        last = Some(most);
        ranges.push((least, most));
    }
    if is_ascending {
        return Order::Ascending;
    }
    ranges.sort_unstable();
    let mut reach: &[u8] = &[];
    let mut overlaps = 0;
    for (number, (least, most)) in ranges.iter().enumerate() {
        // Where one ends with the key that another begins with, that key goes on.
        overlaps += usize::from(number > 0 && *least < reach);
        reach = reach.max(most);
    }
    // Of one stretch alone nothing can be told.
    match ranges.len() > 3 && (overlaps as f64) <= OVERLAPS * (ranges.len() - 1) as f64 {
        true => Order::Clustered,
        false => Order::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(keys: &[&[u32]], total: u64) -> Sample {
        let row = |key: &u32| (key.to_be_bytes().to_vec(), vec![0; 6]);
        let stretch = |keys: &&[u32]| Stretch {
            at: 0.0,
            units: keys.len() as u64,
            rows: keys.iter().map(row).collect(),
            ..Stretch::default()
        };
        let stretches = keys.iter().map(stretch).collect();
        Sample::new(stretches, Some(total), Seen::Spread, Vec::new())
    }

    #[test]
    fn orders_are_told_apart() {
        assert_eq!(sample(&[&[1, 2], &[5, 6], &[9]], 50).order, Order::Ascending);
        assert_eq!(sample(&[&[8, 9], &[5, 6], &[1, 2], &[3]], 50).order, Order::Clustered);
        assert_eq!(sample(&[&[1, 90], &[5, 60], &[9, 70], &[4, 99]], 50).order, Order::Mixed);
        // A key that comes twice is not ascending.
        assert_ne!(sample(&[&[1, 1], &[5, 6]], 50).order, Order::Ascending);
    }

    #[test]
    fn the_smallest_sample_has_room_for_its_stretches() {
        assert_eq!(stretches_of(SAMPLE_BYTES_MIN), 4);
        assert_eq!((stretches_of(1 << 20), stretches_of(16 << 20)), (32, 64));
        for bytes in [SAMPLE_BYTES_MIN, 1 << 20, 16 << 20] {
            assert!(bytes / stretches_of(bytes) >= STRETCH_BYTES_MIN);
        }
    }

    #[test]
    fn keys_that_come_again_are_counted() {
        let mut random = shaledb_lab::generate::Random::new(1);
        let of_keys = 5000;
        let mut drawn = || (0..100).map(|_| random.below(of_keys) as u32).collect::<Vec<u32>>();
        let stretches: Vec<Vec<u32>> = (0..20).map(|_| drawn()).collect();
        let stretches: Vec<&[u32]> = stretches.iter().map(Vec::as_slice).collect();
        let sample = sample(&stretches, 100_000);
        // 100,000 draws of 5000 keys have all of them.
        assert!((sample.total_distinct() - 5000.0).abs() < 500.0, "{}", sample.total_distinct());
        assert_eq!(sample.total_rows(), 100_000.0);
    }

    /// Devices one behind the other, each with 2,000 rows: of most no beginning is read.
    #[test]
    fn keys_that_come_again_for_longer_than_a_stretch_are_counted_by_their_beginnings() {
        let stretches: Vec<Vec<u32>> = (0..64u32)
            .map(|part| {
                (0..300).map(|row| (part * 3125 + part * 797 % 2825 + row) / 2000).collect()
            })
            .collect();
        let stretches: Vec<&[u32]> = stretches.iter().map(Vec::as_slice).collect();
        let sample = sample(&stretches, 200_000);
        assert_eq!(sample.order, Order::Clustered);
        let keys = sample.total_distinct();
        assert!((65.0..150.0).contains(&keys), "{keys} of 100");
        let longer: Vec<Vec<u32>> = (0..64u32)
            .map(|part| (0..300).map(|row| (part * 3125 + row) / 50_000).collect())
            .collect();
        let longer: Vec<&[u32]> = longer.iter().map(Vec::as_slice).collect();
        let longer = super::tests::sample(&longer, 200_000);
        assert_eq!((longer.order, longer.total_distinct()), (Order::Clustered, 4.0));
        assert!((5.0..20.0).contains(&sample.beginnings()), "{}", sample.beginnings());
    }
}
