//! Who waits for whom: finding a circle, and choosing who has to give way. Pure.
//!
//! A circle can only be closed by somebody who begins to wait, so it is looked for then, from
//! there: whoever acquires something while others wait is not waiting himself, and a request goes
//! to the end of the queue. See docs/decisions/0006-transactions.md.

use super::lock::{Lock, Mode, OwnedSpan, TxnId};
use crate::version::TreeId;
use std::collections::BTreeSet;

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

/// The transactions of a circle through `start`, in order, if there is one; `blockers` says whom
/// one waits for.
pub fn find_circle(
    start: TxnId,
    mut blockers: impl FnMut(TxnId) -> Vec<TxnId>,
) -> Option<Vec<TxnId>> {
    let mut seen = BTreeSet::from([start]);
    // The way here, and for each of it whom it waits for that has not been looked at.
    let mut way = vec![(start, blockers(start))];
    while let Some((_, open)) = way.last_mut() {
        match open.pop() {
            Some(next) if next == start => {
                return Some(way.into_iter().map(|step| step.0).collect());
            }
            Some(next) if seen.insert(next) => way.push((next, blockers(next))),
            Some(_) => {}
            None => {
                way.pop();
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
        find_circle(start, |from| edges.iter().filter(|e| e.0 == from).map(|e| e.1).collect())
    }

    #[test]
    fn circles_are_found_through_the_start_only() {
        assert_eq!(circle(&[(1, 2), (2, 3)], 1), None);
        assert_eq!(circle(&[(1, 2), (2, 1)], 2), Some(vec![2, 1]));
        assert_eq!(circle(&[(1, 2), (1, 5), (2, 3), (3, 4), (4, 1)], 1), Some(vec![1, 2, 3, 4]));
        // One that 1 merely waits for is for those in it to find.
        assert_eq!(circle(&[(1, 2), (2, 3), (3, 2)], 1), None);
        assert_eq!(circle(&[(1, 1)], 1), Some(vec![1]));
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
