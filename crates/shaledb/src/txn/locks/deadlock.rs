//! Who waits for whom: finding a circle, and choosing who has to give way. Pure.
//!
//! A circle can only be closed by somebody who begins to wait, so it is looked for then, from
//! there: whoever acquires something while others wait is not waiting himself, and a request goes
//! to the end of the queue. See docs/decisions/0006-transactions.md.

use super::lock::{Lock, Mode, OwnedSpan, TxnId};
use crate::version::TreeId;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// What a transaction waits for, and what it would cost to undo it.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The tree.
    pub tree: TreeId,
    /// The keys.
    pub span: OwnedSpan,
    /// The lock asked for.
    pub mode: Mode,
    /// How many writes the transaction has made.
    pub writes: u64,
    /// How many locks it has, counted by the hundred: see [`super::Owner`].
    pub locks: u64,
}

impl Waiting {
    /// Of a request.
    pub fn new(lock: Lock<'_>, writes: u64, locks: u64) -> Waiting {
        Waiting { tree: lock.tree, span: OwnedSpan::new(lock.span), mode: lock.mode, writes, locks }
    }

    /// What undoing the transaction costs, and doing it again.
    fn weight(&self) -> u64 {
        self.writes + self.locks
    }
}

/// One of the transactions of a circle.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The transaction that waits.
    pub waiter: TxnId,
    /// What it waits for.
    pub waiting: Waiting,
    /// The transaction that it waits for: the next of the circle.
    pub holder: TxnId,
}

/// A circle of transactions each of which waits for the next, and the last for the first.
#[derive(Clone, Debug)]
pub struct Report {
    /// The circle.
    pub edges: Vec<Edge>,
    /// The transaction that has to give way.
    pub victim: TxnId,
}

/// One who is in the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The transaction.
    pub id: TxnId,
    /// Whether it holds what the request conflicts with; else it has asked for it before.
    pub holds: bool,
}

/// Those who are in the way of somebody, each once, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Blockers {
    all: Vec<Blocker>,
    at: BTreeMap<TxnId, usize>,
}

impl Blockers {
    /// One more, if it is not there.
    pub fn add(&mut self, new: Blocker) {
        match self.at.entry(new.id) {
            Entry::Occupied(at) => self.all[*at.get()].holds |= new.holds,
            Entry::Vacant(at) => {
                at.insert(self.all.len());
                self.all.push(new);
            }
        }
    }

    /// All of them.
    pub fn into_all(self) -> Vec<Blocker> {
        self.all
    }

    /// Their numbers.
    pub fn ids(self) -> Vec<TxnId> {
        self.all.into_iter().map(|blocker| blocker.id).collect()
    }
}

/// One of a circle that waits for the next of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The one that waits.
    pub waiter: TxnId,
    /// Whether the next one holds what it waits for.
    pub holds: bool,
}

/// A circle through `start`, from there on, if there is one; no other is shorter. `blockers` says
/// whom one waits for. It may leave out, but for `start`, whom it has told of before, whoever
/// asked.
pub fn find_circle(
    start: TxnId,
    mut blockers: impl FnMut(TxnId) -> Vec<Blocker>,
) -> Option<Vec<Link>> {
    // By whom each was come to.
    let mut links: BTreeMap<TxnId, Link> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(waiter) = open.pop_front() {
        // Of several circles that by who was told last.
        for Blocker { id, holds } in blockers(waiter).into_iter().rev() {
            let link = Link { waiter, holds };
            if id == start {
                let before = |link: &Link| links.get(&link.waiter).copied();
                let mut circle: Vec<Link> = std::iter::successors(Some(link), before).collect();
                circle.reverse();
                return Some(circle);
            }
            if let Entry::Vacant(new) = links.entry(id) {
                new.insert(link);
                open.push_back(id);
            }
        }
    }
    None
}

/// The one of a circle that weighs least: in writes and in locks. Of those that weigh the same it
/// is the one that the circle begins with, which has closed it, or else the youngest.
pub fn victim(edges: &[Edge]) -> Option<TxnId> {
    let closer = edges.first()?.waiter;
    let cost = |edge: &&Edge| {
        (edge.waiting.weight(), edge.waiter != closer, std::cmp::Reverse(edge.waiter))
    };
    edges.iter().min_by_key(cost).map(|edge| edge.waiter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::Span;

    fn circle(edges: &[(TxnId, TxnId)], start: TxnId) -> Option<Vec<TxnId>> {
        let found = find_circle(start, |from| {
            let edges = edges.iter().filter(|edge| edge.0 == from);
            edges.map(|edge| Blocker { id: edge.1, holds: edge.1 % 2 == 0 }).collect()
        })?;
        for (at, link) in found.iter().enumerate() {
            let next = found[(at + 1) % found.len()].waiter;
            assert!(edges.contains(&(link.waiter, next)) && link.holds == (next % 2 == 0));
        }
        Some(found.into_iter().map(|link| link.waiter).collect())
    }

    #[test]
    fn circles_are_found_through_the_start_only() {
        assert_eq!(circle(&[(1, 2), (2, 3)], 1), None);
        assert_eq!(circle(&[(1, 2), (2, 1)], 2), Some(vec![2, 1]));
        assert_eq!(circle(&[(1, 2), (1, 5), (2, 3), (3, 4), (4, 1)], 1), Some(vec![1, 2, 3, 4]));
        // One that 1 merely waits for is for those in it to find.
        assert_eq!(circle(&[(1, 2), (2, 3), (3, 2)], 1), None);
        assert_eq!(circle(&[(1, 1)], 1), Some(vec![1]));
        // The shortest.
        assert_eq!(circle(&[(1, 3), (1, 2), (2, 4), (4, 1), (3, 1)], 1), Some(vec![1, 3]));
        assert_eq!(circle(&[(1, 2), (1, 3), (2, 1), (3, 1)], 1), Some(vec![1, 3]));
    }

    #[test]
    fn each_blocker_is_there_once() {
        let mut blockers = Blockers::default();
        for (id, holds) in [(3, false), (3, true), (1, true), (2, false), (1, false)] {
            blockers.add(Blocker { id, holds });
        }
        let all = blockers.into_all();
        assert_eq!(
            all.iter().map(|b| (b.id, b.holds)).collect::<Vec<_>>(),
            [(3, true), (1, true), (2, false)]
        );
    }

    #[test]
    fn the_lightest_gives_way_and_then_who_closed_the_circle() {
        let edge = |waiter, writes, locks| {
            let lock = Lock { tree: 1, span: Span::Key(b"k"), mode: Mode::Write };
            Edge { waiter, waiting: Waiting::new(lock, writes, locks), holder: 0 }
        };
        assert_eq!(victim(&[edge(1, 5, 1), edge(2, 3, 1), edge(3, 9, 1)]), Some(2));
        assert_eq!(victim(&[edge(1, 2, 3), edge(2, 3, 1), edge(3, 3, 3)]), Some(2));
        assert_eq!(victim(&[edge(4, 3, 1), edge(7, 3, 1), edge(1, 3, 1)]), Some(4));
        assert_eq!(victim(&[edge(4, 9, 1), edge(7, 3, 1), edge(1, 3, 1)]), Some(7));
        assert_eq!(victim(&[]), None);
    }
}
