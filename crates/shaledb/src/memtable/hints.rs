//! Where an insert may begin its search: the taller nodes of the list with their heads, packed.
//!
//! A search from the top of a large list waits for memory at nearly each node that it comes to.
//! Here a node is eight bytes of head among its neighbours, so that the node to begin at is found
//! in few cache lines. What is left are a few steps on the lowest levels.
//!
//! These are hints: a node may be missing, and whoever follows a hint sees by the list itself
//! whether it was good. They belong to whoever holds the finger of the list.

use super::node::Node;
use crate::base::prefetch;

/// The nodes that are in the hints have at least so many links: one in eight.
pub(super) const HINT_HEIGHT: usize = 4;

/// How many hints a leaf has at most.
const LEAF: usize = 16;
/// So many leaves are enough: to find the place of a new one takes longer, the more there are.
const LEAVES_MAX: usize = 1 << 15;
/// After a hint that was far from the target: how many inserts go without.
const PAUSE: u32 = 256;

struct Leaf {
    used: usize,
    heads: [u64; LEAF],
    nodes: [*mut Node; LEAF],
}

impl Leaf {
    fn of(head: u64, node: *mut Node) -> Leaf {
        let mut leaf = Leaf { used: 0, heads: [0; LEAF], nodes: [std::ptr::null_mut(); LEAF] };
        leaf.insert(0, head, node);
        leaf
    }

    fn insert(&mut self, at: usize, head: u64, node: *mut Node) {
        assert!(at <= self.used && self.used < LEAF, "a leaf has room");
        self.heads.copy_within(at..self.used, at + 1);
        self.nodes.copy_within(at..self.used, at + 1);
        (self.heads[at], self.nodes[at]) = (head, node);
        self.used += 1;
    }

    /// The upper half of a full leaf, which loses it.
    fn split(&mut self) -> Leaf {
        let mut upper = Leaf { used: LEAF - LEAF / 2, ..Leaf::of(0, std::ptr::null_mut()) };
        self.used = LEAF / 2;
        upper.heads[..LEAF - LEAF / 2].copy_from_slice(&self.heads[LEAF / 2..]);
        upper.nodes[..LEAF - LEAF / 2].copy_from_slice(&self.nodes[LEAF / 2..]);
        upper
    }
}

/// Nodes by the heads of their keys, one for each head.
#[derive(Default)]
pub(super) struct Hints {
    /// The first head of each leaf, in order, and which leaf it is.
    firsts: Vec<u64>,
    order: Vec<u32>,
    leaves: Vec<Leaf>,
    /// How many more inserts go without hints.
    pause: u32,
}

impl Hints {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// The bytes of memory taken.
    pub(super) fn bytes(&self) -> usize {
        let places = size_of::<u64>() * self.firsts.capacity();
        let order = size_of::<u32>() * self.order.capacity();
        places + order + size_of::<Leaf>() * self.leaves.capacity()
    }

    /// A node with a head less than this one: of those that are known the last.
    #[inline]
    pub(super) fn before(&mut self, head: u64) -> Option<*mut Node> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let place = self.firsts.partition_point(|&first| first < head).checked_sub(1)?;
        let leaf = &self.leaves[self.order[place] as usize];
        // All cache lines that the search may come to, at once.
        prefetch::line(&raw const leaf.heads[LEAF / 2]);
        prefetch::line(&raw const leaf.nodes[0]);
        prefetch::line(&raw const leaf.nodes[LEAF / 2]);
        let at = leaf.heads[..leaf.used].partition_point(|&other| other < head);
        Some(leaf.nodes[at - 1])
    }

    /// Notes that the last hint was far from the target, such as where many keys share a head.
    #[cold]
    pub(super) fn was_far(&mut self) {
        self.pause = PAUSE;
    }

    /// Adds a node whose search with a target of at least this head leads to; not the second one of
    /// a head.
    pub(super) fn add(&mut self, head: u64, node: *mut Node) {
        let Some(place) = self.firsts.partition_point(|&first| first <= head).checked_sub(1) else {
            match self.order.first() {
                Some(&first) if self.leaves[first as usize].used < LEAF => {
                    self.leaves[first as usize].insert(0, head, node);
                    self.firsts[0] = head;
                }
                _ => self.add_leaf(0, Leaf::of(head, node)),
            }
            return;
        };
        let has_room = self.leaves.len() < LEAVES_MAX;
        let leaf = &mut self.leaves[self.order[place] as usize];
        let at = leaf.heads[..leaf.used].partition_point(|&other| other < head);
        if leaf.heads[..leaf.used].get(at) == Some(&head) {
            return;
        }
        if leaf.used < LEAF {
            leaf.insert(at, head, node);
        } else if at == LEAF {
            // In ascending order leaves stay full.
            self.add_leaf(place + 1, Leaf::of(head, node));
        } else if has_room {
            let mut upper = leaf.split();
            match at.checked_sub(LEAF / 2) {
                Some(at) if at > 0 => upper.insert(at, head, node),
                _ => leaf.insert(at, head, node),
            }
            self.add_leaf(place + 1, upper);
        }
    }

    fn add_leaf(&mut self, place: usize, leaf: Leaf) {
        if self.leaves.len() < LEAVES_MAX {
            self.firsts.insert(place, leaf.heads[0]);
            self.order.insert(place, self.leaves.len() as u32);
            self.leaves.push(leaf);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "hints_tests.rs"]
mod tests;
