//! The rows of LinkBench and what a store must do with them.
//!
//! Tables: `nodetable(id, type, version, time, data)` with primary key (id), which counts up;
//! `linktable(id1, id2, link_type, visibility, data, time, version)` with primary key (link_type,
//! id1, id2) and the covering index `id1_type` (id1, link_type, visibility, time, id2, version,
//! data); `counttable(id, link_type, count, time, version)` with primary key (id, link_type).

use crate::stores::engine::Result;
use crate::stores::store::Store;

/// The only type of node.
pub const NODE_TYPE: u32 = 2048;
/// The first type of link; the others follow it.
pub const LINK_TYPE: u64 = 123_456_789;
/// How many types of link there are.
pub const LINK_TYPES: u64 = 2;

/// A row of `nodetable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// Its primary key.
    pub id: u64,
    /// [`NODE_TYPE`].
    pub node_type: u32,
    /// 1 when it is added, 2 when it is updated.
    pub version: u64,
    /// Seconds.
    pub time: u32,
    /// Its data.
    pub data: &'a [u8],
}

impl Node<'_> {
    /// The bytes of its columns.
    pub fn bytes(&self) -> u64 {
        24 + self.data.len() as u64
    }
}

/// A row of `linktable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// Where it begins.
    pub id1: u64,
    /// Its type.
    pub link_type: u64,
    /// Where it ends.
    pub id2: u64,
    /// Whether it can be seen: a deleted link is hidden.
    pub visible: bool,
    /// Milliseconds.
    pub time: u64,
    /// Its version.
    pub version: u32,
    /// Its data.
    pub data: &'a [u8],
}

impl Link<'_> {
    /// The bytes of its columns.
    pub fn bytes(&self) -> u64 {
        37 + self.data.len() as u64
    }

    /// The same with those of its entry in the covering index, which has all columns once more.
    pub fn stored_bytes(&self) -> u64 {
        2 * self.bytes()
    }
}

/// A row of `counttable`: how many links of a type that can be seen a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The node.
    pub id: u64,
    /// The links' type.
    pub link_type: u64,
    /// How many.
    pub count: u32,
    /// Milliseconds.
    pub time: u64,
    /// How often it changed.
    pub version: u64,
}

impl Count {
    /// The bytes of a row's columns.
    pub const BYTES: u64 = 36;
}

/// Which links a range query wants: those that can be seen, newest first.
#[derive(Clone, Copy, Debug)]
pub struct LinkRange {
    /// Where they begin.
    pub id1: u64,
    /// Their type.
    pub link_type: u64,
    /// Not newer than this.
    pub newest: u64,
    /// How many of the newest to leave out.
    pub skip: u64,
    /// At most so many.
    pub limit: u64,
}

/// A store that holds a graph.
pub trait Graph: Store {
    /// What one client works with.
    type Session<'a>: GraphSession
    where
        Self: 'a;

    /// Makes the tables that are to be loaded; no session is in use. Those of a database server
    /// replace any that are there, and `linktable` has so many partitions, by id1, or none if that
    /// is 0. The trees of other stores are there from the start, and have no partitions.
    fn create_tables(&self, partitions: u32) -> Result<()>;

    /// A session for one client.
    fn session(&self) -> Result<Self::Session<'_>>;

    /// Drops all tables, so that their space is free; no session is in use.
    fn drop_tables(&self) -> Result<()>;
}

/// One client's view of a graph. A link, its entry in the index and the count of its node change
/// together or not at all, in every operation that changes one of them.
pub trait GraphSession: Send {
    /// Loads nodes with ids of their own, in order of their primary key; no other session loads
    /// the same ones.
    fn load_nodes(&mut self, nodes: &NodeRows) -> Result<()>;

    /// Loads links with their entries in the index, but not their counts, in order of their
    /// primary key.
    fn load_links(&mut self, links: &LinkRows) -> Result<()>;

    /// Loads counts, in order of their primary key.
    fn load_counts(&mut self, counts: &[Count]) -> Result<()>;

    /// Adds a node under the next id, whatever its own; the id.
    fn add_node(&mut self, node: &Node<'_>) -> Result<u64>;

    /// Changes all of a node, if it is there with the same type; whether it was.
    fn update_node(&mut self, node: &Node<'_>) -> Result<bool>;

    /// Deletes a node of this type; whether it was there.
    fn delete_node(&mut self, node_type: u32, id: u64) -> Result<bool>;

    /// Shows a node of this type; whether it is there.
    fn get_node(
        &mut self,
        node_type: u32,
        id: u64,
        found: &mut impl FnMut(&Node<'_>),
    ) -> Result<bool>;

    /// Adds a link, or changes all of one that is there, be it hidden; whether it is new.
    fn add_link(&mut self, link: &Link<'_>) -> Result<bool>;

    /// Hides a link; whether it was there to be seen.
    fn delete_link(&mut self, id1: u64, link_type: u64, id2: u64) -> Result<bool>;

    /// Shows those of the links that are there, hidden ones too, in any order; how many. All of
    /// `id2s` are different.
    fn get_links(
        &mut self,
        id1: u64,
        link_type: u64,
        id2s: &[u64],
        row: &mut impl FnMut(&Link<'_>),
    ) -> Result<u64>;

    /// Shows the links of a range from its index, newest first; how many.
    fn get_link_list(&mut self, range: &LinkRange, row: &mut impl FnMut(&Link<'_>)) -> Result<u64>;

    /// How many links of a type that can be seen a node has, if it ever had one.
    fn count_links(&mut self, id1: u64, link_type: u64) -> Result<Option<u64>>;
}

/// Rows to be loaded at once, whose data lies in one piece of memory that is used again.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    rows: Vec<(T, usize)>,
    data: Vec<u8>,
}

/// Nodes to be loaded.
pub type NodeRows = Rows<Node<'static>>;
/// Links to be loaded.
pub type LinkRows = Rows<Link<'static>>;

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows { rows: Vec::new(), data: Vec::new() }
    }
}

impl<T: Copy> Rows<T> {
    /// Adds a row without its data, and its data as `append` adds it to what is there.
    pub fn push(&mut self, row: T, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.data);
        self.rows.push((row, self.data.len()));
    }

    /// Takes everything out and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.data.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row and its data.
    fn at(&self, index: usize) -> (T, &[u8]) {
        let start = if index == 0 { 0 } else { self.rows[index - 1].1 };
        let (row, end) = self.rows[index];
        (row, &self.data[start..end])
    }
}

impl NodeRows {
    /// A node.
    pub fn get(&self, index: usize) -> Node<'_> {
        let (node, data) = self.at(index);
        Node { data, ..node }
    }

    /// The nodes in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl LinkRows {
    /// A link.
    pub fn get(&self, index: usize) -> Link<'_> {
        let (link, data) = self.at(index);
        Link { data, ..link }
    }

    /// The links in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Link<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }
}
