//! The query steps: ten operations in LinkBench's proportions.
//!
//! Nodes are asked for among those that were loaded. One that was deleted is asked for again and
//! not found, and one that was added gets the next id and is not asked for, as in LinkBench: the
//! share of operations that find something falls with the number of loops.

use super::choice::{Choice, Kind, Mix, exists};
use super::graph::{GraphSession, Link, LinkRange, NODE_TYPE, Node};
use super::motif::{LINK_LOOK, Motif, NODE_LOOK};
use super::options::LinkbenchOptions;
use crate::generate::Random;
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::Result;
use std::hint::black_box;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many lists that were cut at the limit a client remembers.
const TAILS: usize = 2048;

/// Where a list of links was cut at the limit: older links may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tail {
    id1: u64,
    link_type: u64,
    time: u64,
}

/// A client of a query step.
pub struct QueryClient<'a, S> {
    session: S,
    choice: &'a Choice,
    mix: Mix,
    random: Random,
    added_links: Motif,
    updated_links: Motif,
    added_nodes: Motif,
    updated_nodes: Motif,
    data: Vec<u8>,
    id2s: Vec<u64>,
    tails: Vec<Tail>,
    /// Bytes of the node that was made last.
    last_node_bytes: u64,
    limit: u64,
    history: f64,
}

impl<'a, S: GraphSession> QueryClient<'a, S> {
    /// Client `client` of the step of that name.
    pub fn new(
        session: S,
        choice: &'a Choice,
        options: &LinkbenchOptions,
        seed: u64,
        step: &str,
        client: u64,
    ) -> QueryClient<'a, S> {
        let mut random = Random::named(seed, &format!("linkbench {step}"), client);
        QueryClient {
            session,
            choice,
            mix: Mix::default(),
            added_links: Motif::new(LINK_LOOK, &mut random),
            updated_links: Motif::new(LINK_LOOK, &mut random),
            added_nodes: Motif::new(NODE_LOOK, &mut random),
            updated_nodes: Motif::new(NODE_LOOK, &mut random),
            random,
            data: Vec::new(),
            id2s: Vec::new(),
            tails: Vec::new(),
            last_node_bytes: 0,
            limit: options.range_limit,
            history: f64::from(options.history_percent) / 100.0,
        }
    }

    #[inline]
    fn operate(&mut self, kind: Kind) -> Result<Did> {
        match kind {
            Kind::AddLink => self.write_link(exists::ADD, true),
            Kind::UpdateLink => self.write_link(exists::UPDATE, false),
            Kind::DeleteLink => self.delete_link(),
            Kind::CountLinks => self.count_links(),
            Kind::GetLinks => self.get_links(),
            Kind::GetLinkList => self.get_link_list(),
            Kind::AddNode => self.add_node(),
            Kind::UpdateNode => self.update_node(),
            Kind::DeleteNode => self.delete_node(),
            Kind::GetNode => self.get_node(),
        }
    }

    /// LinkBench updates a link by adding it again.
    fn write_link(&mut self, exists: f64, new: bool) -> Result<Did> {
        let random = &mut self.random;
        let id1 = self.choice.write_links(random);
        let link_type = self.choice.link_type(random);
        let id2 = self.choice.loaded.id2(random, id1, link_type, exists);
        self.data.clear();
        let data = if new { &mut self.added_links } else { &mut self.updated_links };
        data.append(random, &mut self.data);
        let (visible, time) = (true, milliseconds());
        let link = Link { id1, link_type, id2, visible, time, version: 0, data: &self.data };
        let added = self.session.add_link(&link)?;
        let (written, found) = (link.stored_bytes(), added == new);
        let grown = if added { written as i64 } else { 0 };
        Ok(Did { written, found, grown, ..Did::default() })
    }

    fn delete_link(&mut self) -> Result<Did> {
        let random = &mut self.random;
        let id1 = self.choice.write_links(random);
        let link_type = self.choice.link_type(random);
        let id2 = self.choice.loaded.id2(random, id1, link_type, exists::DELETE);
        let found = self.session.delete_link(id1, link_type, id2)?;
        Ok(Did { found, ..Did::default() })
    }

    fn count_links(&mut self) -> Result<Did> {
        let id1 = self.choice.read_links(&mut self.random);
        let link_type = self.choice.link_type(&mut self.random);
        let count = self.session.count_links(id1, link_type)?;
        black_box(count);
        Ok(Did { read: 4, found: count.is_some(), ..Did::default() })
    }

    fn get_links(&mut self) -> Result<Did> {
        let random = &mut self.random;
        let id1 = self.choice.read_links(random);
        let link_type = self.choice.link_type(random);
        let count = self.choice.links_at_once(random);
        let node = (id1, link_type);
        self.choice.loaded.id2s(random, node, count, exists::GET, &mut self.id2s);
        let mut read = 0;
        let found =
            self.session.get_links(id1, link_type, &self.id2s, &mut |link| read += see(link))?;
        Ok(Did { read, found: found > 0, ..Did::default() })
    }

    fn get_link_list(&mut self) -> Result<Did> {
        if self.random.unit() < self.history && !self.tails.is_empty() {
            return self.get_link_history();
        }
        let id1 = self.choice.read_links(&mut self.random);
        let link_type = self.choice.link_type(&mut self.random);
        let (newest, limit) = (u64::MAX, self.limit);
        let range = LinkRange { id1, link_type, newest, skip: 0, limit };
        let (did, count, oldest) = self.list(&range)?;
        let tail = Tail { id1, link_type, time: oldest };
        let known = |other: &Tail| (other.id1, other.link_type) == (id1, link_type);
        if count >= limit && !self.tails.iter().any(known) {
            if self.tails.len() < TAILS {
                self.tails.push(tail);
            } else {
                let at = self.random.below(TAILS as u64) as usize;
                self.tails[at] = tail;
            }
        }
        Ok(did)
    }

    /// Goes on with a list that was cut.
    fn get_link_history(&mut self) -> Result<Did> {
        let at = self.random.below(self.tails.len() as u64) as usize;
        let Tail { id1, link_type, time: newest } = self.tails[at];
        // The last link of the part before is the first of this one.
        let range = LinkRange { id1, link_type, newest, skip: 1, limit: self.limit };
        let (did, count, oldest) = self.list(&range)?;
        if count >= self.limit {
            self.tails[at].time = oldest;
        } else {
            self.tails.swap_remove(at);
        }
        Ok(did)
    }

    /// What was done, how many links there were, and the time of the last one.
    fn list(&mut self, range: &LinkRange) -> Result<(Did, u64, u64)> {
        let (mut read, mut oldest) = (0, 0);
        let count = self.session.get_link_list(range, &mut |link| {
            read += see(link);
            oldest = link.time;
        })?;
        Ok((Did { read, found: count > 0, ..Did::default() }, count, oldest))
    }

    fn add_node(&mut self) -> Result<Did> {
        self.data.clear();
        self.added_nodes.append(&mut self.random, &mut self.data);
        let time = (milliseconds() / 1000) as u32;
        let node = Node { id: 0, node_type: NODE_TYPE, version: 1, time, data: &self.data };
        black_box(self.session.add_node(&node)?);
        let written = node.bytes();
        self.last_node_bytes = written;
        Ok(Did::added(written))
    }

    fn update_node(&mut self) -> Result<Did> {
        let id = self.choice.update_node(&mut self.random);
        self.data.clear();
        self.updated_nodes.append(&mut self.random, &mut self.data);
        let time = (milliseconds() / 1000) as u32;
        let node = Node { id, node_type: NODE_TYPE, version: 2, time, data: &self.data };
        let found = self.session.update_node(&node)?;
        let bytes = node.bytes();
        self.last_node_bytes = bytes;
        Ok(Did { written: if found { bytes } else { 0 }, found, ..Did::default() })
    }

    fn delete_node(&mut self) -> Result<Did> {
        let id = self.choice.delete_node(&mut self.random);
        let found = self.session.delete_node(NODE_TYPE, id)?;
        // Nobody said how large it was: as large as any other node.
        let grown = if found { -(self.last_node_bytes as i64) } else { 0 };
        Ok(Did { found, grown, ..Did::default() })
    }

    fn get_node(&mut self) -> Result<Did> {
        let id = self.choice.read_node(&mut self.random);
        let mut read = 0;
        let found =
            self.session.get_node(NODE_TYPE, id, &mut |node| read += black_box(node).bytes())?;
        Ok(Did { read, found, ..Did::default() })
    }
}

impl<S: GraphSession> Client for QueryClient<'_, S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let kind = self.mix.draw(&mut self.random);
            let did = self.operate(kind)?;
            pace.end(kind as usize, did);
        }
        Ok(())
    }
}

/// Looks at a link as a client would; its bytes.
#[inline]
fn see(link: &Link<'_>) -> u64 {
    black_box(link).bytes()
}

fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}
