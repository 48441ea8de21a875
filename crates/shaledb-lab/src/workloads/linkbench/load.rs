//! The load step. Nodes are cut into chunks of 2048 ids; client k of n loads every n-th chunk from
//! the k-th: first its nodes, then its links by type, then its counts, each in the order of the
//! primary key and so many rows to a batch. Which rows there are depends on the seed, on the
//! number of nodes and on the number of clients, not on time.

use super::choice::Loaded;
use super::graph::{
    Count, GraphSession, LINK_TYPE, LINK_TYPES, Link, LinkRows, NODE_TYPE, Node, NodeRows,
};
use super::motif::{LINK_LOOK, Motif, NODE_LOOK};
use super::options::LinkbenchOptions;
use crate::generate::Random;
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::Result;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a batch of rows is of: the kinds of operation of the step. An operation is one row; a
/// response time is that of a batch.
pub const KINDS: [&str; 3] = ["nodes", "links", "counts"];

const NODES: usize = 0;
const LINKS: usize = 1;
const COUNTS: usize = 2;

const CHUNK: u64 = 2048;

/// All loaded links are older than this, by up to 50 days: milliseconds, of November 2023, so that
/// what the query steps write is newer.
pub(super) const LOADED_BEFORE: u64 = 1_700_000_000_000;

/// How many rows were loaded, by [`KINDS`], by all clients.
#[derive(Debug, Default)]
pub struct Rows([AtomicU64; KINDS.len()]);

impl Rows {
    /// Names and numbers.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        KINDS.into_iter().zip(self.0.iter().map(|rows| rows.load(Ordering::Relaxed)))
    }
}

/// A client of the load step.
pub struct LoadClient<'a, S> {
    session: S,
    rows: &'a Rows,
    loaded: &'a Loaded,
    random: Random,
    node_data: Motif,
    link_data: Motif,
    chunk: u64,
    stride: u64,
    most: usize,
    nodes: NodeRows,
    links: LinkRows,
    counts: Vec<Count>,
}

impl<'a, S: GraphSession> LoadClient<'a, S> {
    /// Client `client` of those that load.
    pub fn new(
        session: S,
        rows: &'a Rows,
        loaded: &'a Loaded,
        options: &LinkbenchOptions,
        seed: u64,
        client: u64,
    ) -> LoadClient<'a, S> {
        let mut random = Random::named(seed, "linkbench load", client);
        LoadClient {
            session,
            rows,
            loaded,
            node_data: Motif::new(NODE_LOOK, &mut random),
            link_data: Motif::new(LINK_LOOK, &mut random),
            random,
            chunk: client,
            stride: u64::from(options.load_clients),
            most: options.load_batch as usize,
            nodes: NodeRows::default(),
            links: LinkRows::default(),
            counts: Vec::new(),
        }
    }

    fn end(&self, pace: &mut Pace<'_>, kind: usize, rows: usize, did: Did) {
        pace.end_group(kind, rows as u64, did);
        self.rows.0[kind].fetch_add(rows as u64, Ordering::Relaxed);
    }

    fn load_nodes(&mut self, ids: Range<u64>, pace: &mut Pace<'_>) -> Result<bool> {
        let last = ids.end - 1;
        for id in ids {
            let time = (LOADED_BEFORE / 1000) as u32;
            let node = Node { id, node_type: NODE_TYPE, version: 1, time, data: &[] };
            self.nodes.push(node, |to| self.node_data.append(&mut self.random, to));
            if self.nodes.len() == self.most || id == last {
                if !pace.begin() {
                    return Ok(false);
                }
                self.session.load_nodes(&self.nodes)?;
                let did = Did::added(self.nodes.iter().map(|node| node.bytes()).sum());
                self.end(pace, NODES, self.nodes.len(), did);
                self.nodes.clear();
            }
        }
        Ok(true)
    }

    fn load_links(&mut self, ids: Range<u64>, pace: &mut Pace<'_>) -> Result<bool> {
        self.counts.clear();
        for link_type in LINK_TYPE..LINK_TYPE + LINK_TYPES {
            for id1 in ids.clone() {
                let links = self.loaded.links_of(id1, link_type);
                let mut newest = 0;
                for id2 in id1..id1 + links {
                    // Time has nothing to do with the order of ids.
                    let time = LOADED_BEFORE - self.random.below(1 << 32);
                    newest = newest.max(time);
                    let visible = true;
                    let link = Link { id1, link_type, id2, visible, time, version: 0, data: &[] };
                    self.links.push(link, |to| self.link_data.append(&mut self.random, to));
                    if self.links.len() == self.most && !self.flush_links(pace)? {
                        return Ok(false);
                    }
                }
                if links > 0 {
                    let (id, count) = (id1, links as u32);
                    self.counts.push(Count { id, link_type, count, time: newest, version: 0 });
                }
            }
        }
        self.flush_links(pace)
    }

    fn flush_links(&mut self, pace: &mut Pace<'_>) -> Result<bool> {
        if self.links.is_empty() {
            return Ok(true);
        }
        if !pace.begin() {
            return Ok(false);
        }
        self.session.load_links(&self.links)?;
        let did = Did::added(self.links.iter().map(|link| link.stored_bytes()).sum());
        self.end(pace, LINKS, self.links.len(), did);
        self.links.clear();
        Ok(true)
    }

    fn load_counts(&mut self, pace: &mut Pace<'_>) -> Result<bool> {
        self.counts.sort_unstable_by_key(|count| (count.id, count.link_type));
        for start in (0..self.counts.len()).step_by(self.most) {
            let counts = &self.counts[start..self.counts.len().min(start + self.most)];
            if !pace.begin() {
                return Ok(false);
            }
            self.session.load_counts(counts)?;
            let did = Did::added(counts.len() as u64 * Count::BYTES);
            self.end(pace, COUNTS, counts.len(), did);
        }
        Ok(true)
    }
}

impl<S: GraphSession> Client for LoadClient<'_, S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        let nodes = self.loaded.nodes();
        while self.chunk * CHUNK < nodes {
            let start = self.chunk * CHUNK + 1;
            let ids = start..(start + CHUNK).min(nodes + 1);
            let more = self.load_nodes(ids.clone(), pace)?
                && self.load_links(ids, pace)?
                && self.load_counts(pace)?;
            if !more {
                return Ok(());
            }
            self.chunk += self.stride;
        }
        Ok(())
    }
}
