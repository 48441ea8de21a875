//! Who waits for whom, as a search for a circle walks through it.
//!
//! Of a thousand who wait for one key each waits for all that came before: half a million pairs. A
//! search needs none of those by which it comes to whom it knows. So each request is told of once,
//! and so is who holds what several ask for; and who is told looks only at those who ask for what
//! overlaps.

use super::deadlock::{Blocker, Blockers, Link, find_circle};
use super::lock::{Mode, Span, TxnId};
use super::shard::Shard;
use super::tree_locks::{Asks, TreeLocks};
use super::waiter::Waits;
use crate::version::TreeId;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// All who wait, at one moment.
pub(super) struct Chains<'a> {
    shards: Vec<&'a Shard>,
    waits: &'a Waits,
}

impl<'a> Chains<'a> {
    pub(super) fn new(shards: Vec<&'a Shard>, waits: &'a Waits) -> Chains<'a> {
        Chains { shards, waits }
    }

    /// A circle through `start`; with `held`, one all of which is held.
    pub(super) fn circle(&self, start: TxnId, held: bool) -> Option<Vec<Link>> {
        let mut queues: BTreeMap<(usize, TreeId), Queue<'a>> = BTreeMap::new();
        find_circle(start, |id| {
            let mut found = Blockers::default();
            let Some(waiter) = self.waits.get(&id) else { return Vec::new() };
            let tree = waiter.waiting.tree;
            for shard in waiter.shards.clone() {
                let Some(locks) = self.shards[shard].trees.get(&tree) else { continue };
                let queue = queues.entry((shard, tree)).or_insert_with(|| Queue::new(locks));
                queue.tell(id, start, held, &mut found);
            }
            found.into_all()
        })
    }
}

/// Positions by what is asked for. Keys come before ranges.
type Left<'a> = BTreeMap<(Span<'a>, Mode), Vec<usize>>;

/// The least of ranges.
const RANGES: (Span<'_>, Mode) = (Span::Range(&[], None), Mode::Gap);

/// What is left to be told of those who wait in one tree and shard.
struct Queue<'a> {
    locks: &'a TreeLocks,
    /// Where each waits, in the order of their numbers.
    positions: Vec<(TxnId, usize)>,
    /// The positions of those that nobody was told of, in order, by what they ask for.
    left: Left<'a>,
    /// What was asked for by those who were told of its holders.
    asked: BTreeSet<(Span<'a>, Mode)>,
}

impl<'a> Queue<'a> {
    fn new(locks: &'a TreeLocks) -> Queue<'a> {
        let requests = locks.queue.iter().enumerate();
        let mut positions: Vec<_> = requests.map(|(at, request)| (request.owner, at)).collect();
        positions.sort_unstable();
        let mut left = Left::new();
        for (at, request) in locks.queue.iter().enumerate() {
            left.entry((request.span.get(), request.mode)).or_default().push(at);
        }
        Queue { locks, positions, left, asked: BTreeSet::new() }
    }

    fn tell(&mut self, id: TxnId, start: TxnId, held: bool, found: &mut Blockers) {
        let from = self.positions.partition_point(|(owner, _)| *owner < id);
        let own = self.positions[from..].iter().take_while(|(owner, _)| *owner == id);
        for &(_, position) in own {
            let request = &self.locks.queue[position];
            let asked = (request.span.get(), request.mode);
            // The start may hold a part of what it asks for itself: the next who asks for the same
            // is told of that.
            if id == start || self.asked.insert(asked) {
                self.locks.conflicts(id, asked.0, asked.1, &mut |id| {
                    found.add(Blocker { id, holds: true });
                    true
                });
            }
            if held {
                continue;
            }
            let mut asks = Asks::of(self.locks, request);
            let lower = match asked.0 {
                Span::Key(key) | Span::Range(key, _) => Span::Key(key),
            };
            let keys = self.left.range((lower, Mode::Gap)..RANGES);
            let keys = keys.take_while(|((span, _), _)| span.overlaps(asked.0));
            let all = keys.chain(self.left.range(RANGES..)).map(|(of, _)| *of);
            let mut told = Vec::new();
            for of in all.collect::<Vec<_>>() {
                let Entry::Occupied(mut same) = self.left.entry(of) else { continue };
                let earlier = same.get().partition_point(|left| *left < position);
                // Those who ask for the same are all in the way, but for a few, or none of them is.
                if earlier == 0 || !asks.is_behind_those(of.0, of.1) {
                    continue;
                }
                let gone = same.get_mut().extract_if(..earlier, |left| {
                    let earlier = &self.locks.queue[*left];
                    let behind = asks.is_behind(earlier);
                    if behind {
                        told.push(*left);
                    }
                    behind && earlier.owner != start
                });
                gone.for_each(drop);
                if same.get().is_empty() {
                    same.remove();
                }
            }
            // In the order in which they came.
            told.sort_unstable();
            for position in told {
                found.add(Blocker { id: self.locks.queue[position].owner, holds: false });
            }
        }
    }
}
