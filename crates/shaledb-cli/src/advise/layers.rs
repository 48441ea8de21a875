//! Sorted runs whose ranges of keys cover each other: dumps behind each other, or one in each file.
//! They may have the same keys or others. Stretches seldom meet at the same keys, so that none of
//! them has a key of another says little; where some do meet, they tell.

use super::stretch::{Row, Seen, Stretch};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Runs with fewer stretches within a file are what clusters in an order of chance look like: these
/// have two at the mean.
const RUN_MIN: usize = 3;
/// Of fewer stretches in all, clusters are not told from runs.
const STRETCHES_MIN: usize = 16;
/// So many of the stretches must be of runs.
const OF_RUNS: f64 = 0.9;
/// Fewer runs at a key than this, at the mean, are none above each other.
const DEPTH_MIN: f64 = 1.2;
/// So many pairs of stretches must meet, with so many keys, to tell how many both have.
const PAIRS_MIN: usize = 2;
const KEYS_MIN: usize = 50;

/// Runs above each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Layers {
    /// How many of them there are at a key, at the mean.
    pub(super) depth: f64,
    /// The share of the keys of one that another has too, if the sample tells.
    pub(super) shared: Option<f64>,
    /// Different keys, as a part of all rows.
    pub(super) distinct: f64,
    /// By what part that may be off.
    pub(super) bound: f64,
}

fn least(stretch: &Stretch) -> &[u8] {
    stretch.rows.first().map_or(&[], |(key, _)| key)
}

fn greatest(stretch: &Stretch) -> &[u8] {
    stretch.rows.last().map_or(&[], |(key, _)| key)
}

fn ascends(rows: &[Row]) -> bool {
    !rows.is_empty() && rows.windows(2).all(|two| two[0].0 < two[1].0)
}

/// Different keys of so many runs of one length, as a part of their rows, if each has this share of
/// the keys of another.
fn distinct(depth: f64, shared: f64) -> f64 {
    if shared < 1e-6 { 1.0 } else { (1.0 - (1.0 - shared).powf(depth)) / (shared * depth) }
}

impl Layers {
    /// Of a sample's stretches, in the order of the source. `files` are all that there are.
    pub(super) fn of(stretches: &[Stretch], seen: Seen, files: usize) -> Option<Layers> {
        let with_rows = stretches.iter().filter(|stretch| !stretch.rows.is_empty()).count();
        let runs = runs(stretches, seen);
        let of_runs: usize = runs.iter().map(Vec::len).sum();
        if seen == Seen::All || (of_runs as f64) < OF_RUNS * with_rows as f64 {
            return None;
        }
        let ranges: Vec<_> = runs.iter().map(|run| range(run)).collect();
        let at = |key: &[u8]| ranges.iter().filter(|(from, to)| *from <= key && key <= *to).count();
        let sum: usize = runs.iter().flatten().map(|stretch| at(least(stretch))).sum();
        let mut depth = sum as f64 / of_runs.max(1) as f64;
        if depth < DEPTH_MIN {
            return None;
        }
        // Beginnings have the same keys or others: what comes behind them need not be so.
        let shared = if seen == Seen::Head { None } else { shared(&runs) };
        if seen == Seen::Head {
            depth *= (files as f64 / runs.len() as f64).max(1.0);
        }
        let is_one = stretches.iter().all(|stretch| stretch.file == stretches[0].file);
        let is_doubtful = is_one && runs.iter().any(|run| run.len() < RUN_MIN);
        if seen == Seen::Spread {
            // Runs reach half a part of the source further than their first and last stretches.
            let length = of_runs as f64 / runs.len() as f64;
            let further = length / (length - 1.0).max(0.5);
            depth = (1.0 + (depth - 1.0) * further).min(runs.len() as f64);
        }
        let (least, share, most) = match shared {
            Some((shared, error)) => (
                distinct(depth, (shared + error).min(1.0)),
                distinct(depth, shared),
                distinct(depth, (shared - error).max(0.0)),
            ),
            // What is as well in clusters has each key once.
            None if is_doubtful => (1.0 / depth, 1.0, 1.0),
            None => (1.0 / depth, f64::midpoint(1.0 / depth, 1.0), 1.0),
        };
        let bound = (most - share).max(share - least) / share;
        Some(Layers { depth, shared: shared.map(|shared| shared.0), distinct: share, bound })
    }
}

/// Stretches of ascending keys, each run in the order of the source. A file's beginning begins one.
fn runs(stretches: &[Stretch], seen: Seen) -> Vec<Vec<&Stretch>> {
    let mut files: BTreeMap<usize, Vec<Vec<&Stretch>>> = BTreeMap::new();
    for stretch in stretches.iter().filter(|stretch| ascends(&stretch.rows)) {
        let runs = files.entry(stretch.file).or_default();
        match runs.last_mut().filter(|run| greatest(run[run.len() - 1]) < least(stretch)) {
            Some(run) => run.push(stretch),
            None => runs.push(vec![stretch]),
        }
    }
    // A file that is one run is one, however few stretches it has. Of one file's beginning nothing
    // is told of how many come behind it.
    let is_one = files.len() < 2;
    let is_run = |of_file: usize, length: usize| {
        let is_long = length >= RUN_MIN || stretches.len() < STRETCHES_MIN;
        is_long && seen != Seen::Head || of_file == 1 && !is_one
    };
    let all = files.into_values().flat_map(|runs| {
        let of_file = runs.len();
        runs.into_iter().filter(move |run| is_run(of_file, run.len()))
    });
    all.collect()
}

fn range<'a>(run: &[&'a Stretch]) -> (&'a [u8], &'a [u8]) {
    (least(run[0]), greatest(run[run.len() - 1]))
}

/// Which share of the keys of a stretch those of another run have that meet it, and how far that
/// may be off.
fn shared(runs: &[Vec<&Stretch>]) -> Option<(f64, f64)> {
    let (mut pairs, mut keys, mut both) = (0, 0, 0);
    for (number, run) in runs.iter().enumerate() {
        for stretch in run {
            let others = runs.iter().skip(number + 1).flatten();
            for other in others.filter(|other| {
                least(other) <= greatest(stretch) && least(stretch) <= greatest(other)
            }) {
                let theirs: HashSet<&[u8]> =
                    other.rows.iter().map(|(key, _)| key.as_slice()).collect();
                let (from, to) = (least(other), greatest(other));
                let met = stretch.rows.iter().map(|(key, _)| key.as_slice());
                let met: Vec<&[u8]> = met.filter(|key| from <= *key && *key <= to).collect();
                pairs += usize::from(!met.is_empty());
                keys += met.len();
                both += met.iter().filter(|key| theirs.contains(**key)).count();
            }
        }
    }
    if pairs < PAIRS_MIN || keys < KEYS_MIN {
        return None;
    }
    let share = both as f64 / keys as f64;
    // Places differ from each other, not keys.
    let error = (2.0 * (share * (1.0 - share)).sqrt() + 0.1) / (pairs as f64).sqrt();
    Some((share, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(file: usize, keys: impl Iterator<Item = u32>) -> Stretch {
        let rows: Vec<Row> = keys.map(|key| (key.to_be_bytes().to_vec(), Vec::new())).collect();
        Stretch { file, units: rows.len() as u64, rows, ..Stretch::default() }
    }

    /// Runs over the same 100,000 keys of which each has one in `step`, read at `places` each.
    fn dumps(runs: u32, step: u32, places: u32, length: u32, per_file: bool) -> Vec<Stretch> {
        let of_run = |run: u32| {
            (0..places).map(move |place| {
                let from = 100_000 / places * place + 37 * run;
                let keys = (from..from + length).filter(move |key| key % step == run % step);
                stretch(if per_file { run as usize } else { 0 }, keys)
            })
        };
        (0..runs).flat_map(of_run).collect()
    }

    #[test]
    fn runs_that_meet_tell_what_they_share() {
        for (step, distinct) in [(1, 0.25), (4, 1.0)] {
            let sample = dumps(4, step, 8, 400, false);
            let layers = Layers::of(&sample, Seen::Spread, 1).unwrap();
            assert!((layers.depth - 4.0).abs() < 0.5, "{layers:?}");
            assert!((layers.distinct / distinct - 1.0).abs() < 0.15, "{layers:?}");
            assert!(layers.shared.is_some() && layers.bound < 0.2, "{layers:?}");
        }
    }

    #[test]
    fn of_runs_that_do_not_meet_nothing_is_known() {
        for per_file in [false, true] {
            let sample = dumps(4, 1, 8, 30, per_file);
            let layers = Layers::of(&sample, Seen::Spread, 4).unwrap();
            let (low, high) = (1.0 - layers.bound, 1.0 + layers.bound);
            assert_eq!(layers.shared, None);
            assert!(layers.distinct * low < 0.30 && layers.distinct * high > 0.99, "{layers:?}");
        }
        // Of beginnings not even where they meet, and of files that were not read neither.
        let sample = dumps(4, 1, 1, 400, true);
        let layers = Layers::of(&sample, Seen::Head, 8).unwrap();
        assert!(layers.shared.is_none() && layers.depth > 4.0, "{layers:?}");
        assert!(layers.distinct * (1.0 - layers.bound) < 0.2, "{layers:?}");
    }

    #[test]
    fn what_is_in_one_order_or_in_none_has_no_runs() {
        let ascending = dumps(1, 1, 16, 100, false);
        assert_eq!(Layers::of(&ascending, Seen::Spread, 1), None);
        // Of a few clusters that may be, but is not taken for granted.
        let few = dumps(4, 1, 2, 30, false);
        let layers = Layers::of(&few, Seen::Spread, 1).unwrap();
        assert!(layers.distinct == 1.0 && layers.bound > 0.5, "{layers:?}");
        // Clusters in an order of chance, and rows in one.
        let clusters: Vec<Stretch> = (0..64u32)
            .map(|at| stretch(0, (at * 29 % 64 * 1000..at * 29 % 64 * 1000 + 50).step_by(1)))
            .collect();
        assert_eq!(Layers::of(&clusters, Seen::Spread, 1), None);
        let rows: Vec<Stretch> = (0..64u32)
            .map(|at| stretch(0, (0..50).map(move |row| (row * 7919 + at) % 997)))
            .collect();
        assert_eq!(Layers::of(&rows, Seen::Spread, 1), None);
        // Files with ranges of their own.
        let files: Vec<Stretch> = [3, 1, 2, 0]
            .map(|at| stretch(at, (at as u32 * 100..at as u32 * 100 + 90).step_by(1)))
            .into();
        assert_eq!(Layers::of(&files, Seen::Spread, 4), None);
    }
}
