//! What a client of the query steps does next: which operation, on which nodes and links.
//!
//! How popular a node is for reads and writes of links is drawn from two orders: one in which the
//! node with the most links is the most popular (*correlated*), and one that has nothing to do
//! with it. Popular for reads of nodes is a third order.

use super::distributions::{Degrees, Geometric, Shuffle, Zipf};
use super::graph::{LINK_TYPE, LINK_TYPES};
use super::options::LinkbenchOptions;
use crate::generate::Random;

/// The operations, in the order of [`PERCENT`]; an index into them is the kind of an operation.
pub const KINDS: [&str; 10] = [
    "addlink",
    "deletelink",
    "updatelink",
    "countlink",
    "getlink",
    "getlinklist",
    "addnode",
    "updatenode",
    "deletenode",
    "getnode",
];

/// How many percent of all operations each is.
pub const PERCENT: [f64; 10] = [
    8.9886601, 2.9907664, 8.0122125, 4.8863567, 0.5261142, 50.7119145, 2.5732789, 7.366437,
    1.0115914, 12.9326683,
];

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// Adds a link that is probably new.
    AddLink,
    /// Hides a link that probably exists.
    DeleteLink,
    /// Changes a link that probably exists.
    UpdateLink,
    /// Reads how many links a node has.
    CountLinks,
    /// Reads some links of a node.
    GetLinks,
    /// Reads the links of a node, newest first.
    GetLinkList,
    /// Adds a node.
    AddNode,
    /// Changes a node.
    UpdateNode,
    /// Deletes a node.
    DeleteNode,
    /// Reads a node.
    GetNode,
}

const ALL: [Kind; 10] = [
    Kind::AddLink,
    Kind::DeleteLink,
    Kind::UpdateLink,
    Kind::CountLinks,
    Kind::GetLinks,
    Kind::GetLinkList,
    Kind::AddNode,
    Kind::UpdateNode,
    Kind::DeleteNode,
    Kind::GetNode,
];

/// Draws operations in the proportions of [`PERCENT`].
#[derive(Clone, Debug)]
pub struct Mix {
    up_to: [f64; 10],
}

impl Default for Mix {
    fn default() -> Mix {
        let total: f64 = PERCENT.iter().sum();
        let mut sum = 0.0;
        let up_to = PERCENT.map(|percent| {
            sum += percent;
            sum / total
        });
        Mix { up_to }
    }
}

impl Mix {
    /// The next operation.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> Kind {
        let at = random.unit();
        ALL[self.up_to.partition_point(|&up_to| up_to <= at).min(ALL.len() - 1)]
    }
}

/// How many loaded links an operation should find, as the chance that the one it asks for exists.
pub mod exists {
    /// For a multi-get.
    pub const GET: f64 = 0.5;
    /// For an update.
    pub const UPDATE: f64 = 0.9;
    /// For a delete.
    pub const DELETE: f64 = 0.9;
    /// For an add.
    pub const ADD: f64 = 0.05;
}

/// The links that were loaded, known without a look at the store: node `id1` has its links of each
/// type to `id1`, `id1 + 1` and so on.
#[derive(Clone, Debug)]
pub struct Loaded {
    nodes: u64,
    degrees: Degrees,
    by_degree: Shuffle,
}

impl Loaded {
    /// A graph of so many nodes.
    pub fn new(seed: u64, nodes: u64) -> Loaded {
        let by_degree = Shuffle::new(seed, "linkbench links", nodes);
        Loaded { nodes, degrees: Degrees::new(nodes), by_degree }
    }

    /// How many links a node has of all types.
    #[inline]
    pub fn links(&self, id1: u64) -> u64 {
        self.degrees.of(self.by_degree.from(id1 - 1))
    }

    /// How many links of a type a node has: the types share its links evenly.
    #[inline]
    pub fn links_of(&self, id1: u64, link_type: u64) -> u64 {
        let all = self.links(id1);
        all / LINK_TYPES + u64::from(link_type - LINK_TYPE < all % LINK_TYPES)
    }

    /// How many nodes there are; their ids begin at 1.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// So many ids, beginning with the node's own, that one of them exists with this chance.
    fn range(&self, id1: u64, link_type: u64, exists: f64) -> u64 {
        let links = self.links_of(id1, link_type);
        ((links as f64 / exists).ceil() as u64).max(1)
    }

    /// The end of a link that exists with about this chance.
    #[inline]
    pub fn id2(&self, random: &mut Random, id1: u64, link_type: u64, exists: f64) -> u64 {
        id1 + random.below(self.range(id1, link_type, exists))
    }

    /// Different ends of links, each of which exists with about this chance.
    pub fn id2s(
        &self,
        random: &mut Random,
        (id1, link_type): (u64, u64),
        count: u64,
        exists: f64,
        to: &mut Vec<u64>,
    ) {
        to.clear();
        let range = self.range(id1, link_type, exists);
        if range <= count {
            to.extend(id1..id1 + count);
            return;
        }
        while (to.len() as u64) < count {
            // Of a range hardly larger than the count, a free one may take long to find by chance.
            let mut id2 = id1 + random.below(range);
            while to.contains(&id2) {
                id2 = if id2 + 1 < id1 + range { id2 + 1 } else { id1 };
            }
            to.push(id2);
        }
    }
}

/// Chooses the nodes and links of operations.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The links that were loaded.
    pub loaded: Loaded,
    uncorrelated: Shuffle,
    nodes: Shuffle,
    reads: Zipf,
    writes: Zipf,
    uncorrelated_writes: Zipf,
    node_reads: Zipf,
    node_updates: Zipf,
    multi_get: Geometric,
}

/// The share of reads of links in the uncorrelated order.
const READS_UNCORRELATED: f64 = 0.995;
/// The share of writes of links in the uncorrelated order.
const WRITES_UNCORRELATED: f64 = 0.95;

impl Choice {
    /// The choices of all clients of a run are made in the same orders.
    pub fn new(seed: u64, options: &LinkbenchOptions) -> Choice {
        let nodes = options.maxid1;
        Choice {
            loaded: Loaded::new(seed, nodes),
            uncorrelated: Shuffle::new(seed, "linkbench uncorrelated", nodes),
            nodes: Shuffle::new(seed, "linkbench nodes", nodes),
            reads: Zipf::new(nodes, 0.8),
            writes: Zipf::new(nodes, 0.741),
            uncorrelated_writes: Zipf::new(nodes, options.write_uncorrelated_shape),
            node_reads: Zipf::new(nodes, 0.625),
            node_updates: Zipf::new(nodes, 0.606),
            multi_get: Geometric::new(0.382, 128),
        }
    }

    /// The node whose links are read.
    #[inline]
    pub fn read_links(&self, random: &mut Random) -> u64 {
        let uncorrelated = random.unit() < READS_UNCORRELATED;
        let rank = self.reads.draw(random);
        1 + self.link_order(uncorrelated).to(rank)
    }

    /// The node whose links are written.
    #[inline]
    pub fn write_links(&self, random: &mut Random) -> u64 {
        let uncorrelated = random.unit() < WRITES_UNCORRELATED;
        let zipf = if uncorrelated { &self.uncorrelated_writes } else { &self.writes };
        1 + self.link_order(uncorrelated).to(zipf.draw(random))
    }

    fn link_order(&self, uncorrelated: bool) -> &Shuffle {
        if uncorrelated { &self.uncorrelated } else { &self.loaded.by_degree }
    }

    /// The node that is read.
    #[inline]
    pub fn read_node(&self, random: &mut Random) -> u64 {
        1 + self.nodes.to(self.node_reads.draw(random))
    }

    /// The node that is changed.
    #[inline]
    pub fn update_node(&self, random: &mut Random) -> u64 {
        1 + self.nodes.to(self.node_updates.draw(random))
    }

    /// The node that is deleted.
    #[inline]
    pub fn delete_node(&self, random: &mut Random) -> u64 {
        1 + random.below(self.loaded.nodes)
    }

    /// The type of a link.
    #[inline]
    pub fn link_type(&self, random: &mut Random) -> u64 {
        LINK_TYPE + random.below(LINK_TYPES)
    }

    /// How many links a multi-get asks for.
    #[inline]
    pub fn links_at_once(&self, random: &mut Random) -> u64 {
        self.multi_get.draw(random)
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
