//! Background work under way.

use crate::content::Content;
use crate::rates::Job;
use crate::tree::Merged;
use std::collections::VecDeque;

/// A part of which so little is left has ended.
const NOTHING: f64 = 1e-9;

/// A flush or a merge that runs.
#[derive(Debug)]
pub struct Running {
    /// `None` for the flush.
    pub merge: Option<Merged>,
    /// How many tables level 0 had when it began.
    pub level0_tables: usize,
    /// What it takes.
    pub job: Job,
    /// CPU seconds in codecs.
    pub codec: f64,
    /// Bytes read.
    pub read: f64,
    /// Bytes written.
    pub written: f64,
    /// Bytes before compression that are compressed.
    pub raw: f64,
    /// The level that it writes to.
    pub level: usize,
    /// Its parts, each with the share of all of it that is left: those that threads are at.
    pub active: Vec<f64>,
    /// See `active`: those that wait for threads.
    pub waiting: VecDeque<f64>,
    /// When it began.
    pub began: f64,
}

impl Running {
    /// How much of it is left, from 1 to 0.
    pub fn left(&self) -> f64 {
        self.active.iter().chain(&self.waiting).sum()
    }

    /// Whether all of it is done.
    pub fn has_ended(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }

    /// How many threads are at it.
    pub fn threads(&self) -> f64 {
        self.active.len() as f64
    }

    /// In how many seconds the next of its parts ends, if so large a share of it is done in each.
    pub fn seconds_to_end_of_part(&self, share: f64) -> f64 {
        let least = self.active.iter().copied().fold(f64::INFINITY, f64::min);
        least * self.threads() / share.max(1e-12)
    }

    /// Does so large a share of it, alike in the parts that threads are at; answers how much it
    /// was.
    pub fn advance(&mut self, share: f64) -> f64 {
        let each = share / self.threads().max(1.0);
        let mut done = 0.0;
        self.active.retain_mut(|left| {
            let part = if *left - each < NOTHING { *left } else { each };
            done += part;
            *left -= part;
            *left > 0.0
        });
        done
    }
}

/// The flush that runs: what it will make, and of how many of the sealed memtables.
#[derive(Debug)]
pub struct Flush {
    /// The work.
    pub running: Running,
    /// What the table will hold.
    pub content: Content,
    /// How many memtables it is made of.
    pub memtables: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_one_by_one_and_those_that_wait_follow() {
        let mut running = Running {
            merge: None,
            level0_tables: 0,
            job: Job { cpu: 1.0, bytes: 0.0, threads: 0.0 },
            codec: 0.0,
            read: 0.0,
            written: 0.0,
            raw: 0.0,
            level: 6,
            active: vec![0.3, 0.5],
            waiting: VecDeque::from([0.2]),
            began: 0.0,
        };
        // Two threads do half of all in a second: the first part ends after 1.2.
        assert!((running.seconds_to_end_of_part(0.5) - 1.2).abs() < 1e-9);
        assert!((running.advance(0.6) - 0.6).abs() < 1e-9);
        assert_eq!((running.threads(), running.has_ended()), (1.0, false));
        assert!((running.left() - 0.4).abs() < 1e-9);
        running.active.extend(running.waiting.pop_front());
        assert!((running.advance(0.4) - 0.4).abs() < 1e-9);
        assert!(running.has_ended() && running.left() == 0.0);
    }
}
