//! The intervals of a step: of one second, or, once they are many, of ten.

use crate::run::row::Interval;

/// So many intervals of a second are kept; then they are joined by tens.
const MANY: usize = 600;

/// How many seconds a joined interval has.
const JOINED: usize = 10;

/// In so many intervals the levels are kept.
const WITH_LEVELS: usize = 100;

/// See the module.
pub(super) struct Series {
    done: Vec<Interval>,
    /// Seconds that are to be joined, if they are.
    pending: Vec<Interval>,
    long: bool,
}

impl Series {
    /// Of ten seconds from the start if the step is `long`.
    pub(super) fn new(long: bool) -> Series {
        Series { done: Vec::new(), pending: Vec::new(), long }
    }

    /// Adds a second.
    pub(super) fn push(&mut self, second: Interval) {
        if !self.long {
            self.done.push(second);
            if self.done.len() == MANY {
                self.long = true;
                let mut start = 0.0;
                let join_from = |parts: &[Interval]| {
                    let joined = join(parts, start);
                    start = joined.at;
                    joined
                };
                self.done = self.done.chunks(JOINED).map(join_from).collect();
            }
            return;
        }
        self.pending.push(second);
        if self.pending.len() == JOINED {
            let start = self.done.last().map_or(0.0, |before| before.at);
            self.done.push(join(&self.pending, start));
            self.pending.clear();
        }
    }

    /// All intervals. Seconds that do not make a whole interval are left out: their rate would not
    /// compare.
    pub(super) fn finish(mut self) -> Vec<Interval> {
        let with_levels = self.done.iter().filter(|interval| !interval.levels.is_empty()).count();
        let step = with_levels.div_ceil(WITH_LEVELS).max(1);
        // Counted from the end: the last levels are what the step left.
        for (at, interval) in self.done.iter_mut().rev().enumerate() {
            if !at.is_multiple_of(step) {
                interval.levels = Vec::new();
            }
        }
        self.done
    }
}

/// Several intervals as one, the first of which begins at `start`. A look that came late makes one
/// longer: each counts as much as it lasted.
fn join(parts: &[Interval], start: f64) -> Interval {
    let mut joined = parts.last().cloned().unwrap_or_default();
    let all = (joined.at - start).max(1e-9);
    let mean = |of: fn(&Interval) -> f64| {
        let mut last = start;
        let weighted = |part: &Interval| {
            let length = part.at - std::mem::replace(&mut last, part.at);
            of(part) * length
        };
        parts.iter().map(weighted).sum::<f64>() / all
    };
    joined.rate = mean(|part| part.rate);
    joined.writer_rate = mean(|part| part.writer_rate);
    joined.cpu = mean(|part| part.cpu);
    joined.max_us = parts.iter().map(|part| part.max_us).fold(0.0, f64::max);
    joined.size_bytes = parts.iter().map(|part| part.size_bytes).max().unwrap_or(0);
    joined.stall_seconds = parts.iter().map(|part| part.stall_seconds).sum();
    joined.read_bytes = parts.iter().map(|part| part.read_bytes).sum();
    joined.written_bytes = parts.iter().map(|part| part.written_bytes).sum();
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::engine::Level;

    fn second(at: usize) -> Interval {
        Interval {
            at: at as f64,
            rate: at as f64,
            writer_rate: 2.0 * at as f64,
            max_us: (at % 7) as f64,
            written_bytes: 1,
            size_bytes: at as u64,
            levels: vec![Level::default()],
            ..Interval::default()
        }
    }

    #[test]
    fn short_steps_keep_their_seconds() {
        let mut series = Series::new(false);
        (1..=250).for_each(|at| series.push(second(at)));
        let all = series.finish();
        assert_eq!(all.len(), 250);
        let with_levels: Vec<f64> =
            all.iter().filter(|one| !one.levels.is_empty()).map(|one| one.at).collect();
        assert_eq!((with_levels.len(), with_levels.last()), (84, Some(&250.0)));
    }

    #[test]
    fn a_longer_second_counts_for_more() {
        let part = |at, rate| Interval { at, rate, cpu: rate, ..Interval::default() };
        let joined = join(&[part(101.0, 10.0), part(104.0, 2.0)], 100.0);
        assert_eq!((joined.at, joined.rate, joined.cpu), (104.0, 4.0, 4.0));
    }

    #[test]
    fn long_steps_have_tens_of_seconds() {
        for long in [false, true] {
            let mut series = Series::new(long);
            (1..=1005).for_each(|at| series.push(second(at)));
            let all = series.finish();
            assert_eq!(all.len(), 100);
            assert_eq!((all[1].at, all[1].rate, all[1].max_us), (20.0, 15.5, 6.0));
            assert_eq!(all[1].writer_rate, 31.0);
            assert_eq!((all[99].written_bytes, all[99].size_bytes), (10, 1000));
        }
    }
}
