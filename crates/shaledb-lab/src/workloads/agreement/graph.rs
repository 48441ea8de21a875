//! LinkBench's graph: loads, the ten operations.

use super::bytes::bytes;
use super::same::same;
use crate::generate::Random;
use crate::stores::engine::{Failure, Result};
use crate::workloads::linkbench::graph::{
    Count, Graph, GraphSession, LINK_TYPE, LINK_TYPES, Link, LinkRange, LinkRows, NODE_TYPE, Node,
    NodeRows,
};

/// Nodes that are loaded; links are among the first few, so that they meet again.
const NODES: u64 = 50;
const IDS: u64 = 12;

/// Times of links are all different, so that their order is one, and do not rise with the steps.
const TIMES: u64 = 1_000_003;

#[derive(Clone, Debug)]
struct OwnedNode {
    id: u64,
    node_type: u32,
    version: u64,
    time: u32,
    data: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, PartialOrd, Eq, Ord)]
struct OwnedLink {
    id2: u64,
    id1: u64,
    link_type: u64,
    visible: bool,
    time: u64,
    version: u32,
    data: Vec<u8>,
}

impl OwnedLink {
    fn of(link: &Link<'_>) -> OwnedLink {
        let Link { id1, link_type, id2, visible, time, version, data } = *link;
        OwnedLink { id2, id1, link_type, visible, time, version, data: data.to_vec() }
    }

    fn link(&self) -> Link<'_> {
        let &OwnedLink { id2, id1, link_type, visible, time, version, ref data } = self;
        Link { id1, link_type, id2, visible, time, version, data }
    }
}

#[derive(Clone, Debug)]
enum Op {
    AddNode(OwnedNode),
    UpdateNode(OwnedNode),
    DeleteNode(u32, u64),
    GetNode(u32, u64),
    AddLink(OwnedLink),
    DeleteLink(u64, u64, u64),
    GetLinks(u64, u64, Vec<u64>),
    List(LinkRange),
    Count(u64, u64),
}

#[derive(Debug, PartialEq)]
enum Answer {
    Number(Option<u64>),
    Node(Option<(u64, u64, u32, Vec<u8>)>),
    Links(Vec<OwnedLink>),
}

fn apply<S: GraphSession>(session: &mut S, op: &Op) -> Result<Answer> {
    let yes = |yes: bool| Answer::Number(Some(u64::from(yes)));
    Ok(match op {
        Op::AddNode(node) => Answer::Number(Some(session.add_node(&node_of(node))?)),
        Op::UpdateNode(node) => yes(session.update_node(&node_of(node))?),
        Op::DeleteNode(node_type, id) => yes(session.delete_node(*node_type, *id)?),
        Op::GetNode(node_type, id) => {
            let mut seen = None;
            let found = session.get_node(*node_type, *id, &mut |node| {
                seen = Some((node.id, node.version, node.time, node.data.to_vec()));
            })?;
            same(op, found, seen.is_some())?;
            Answer::Node(seen)
        }
        Op::AddLink(link) => yes(session.add_link(&link.link())?),
        Op::DeleteLink(id1, link_type, id2) => yes(session.delete_link(*id1, *link_type, *id2)?),
        Op::GetLinks(id1, link_type, id2s) => {
            let mut links = Vec::new();
            let see = &mut |link: &Link<'_>| links.push(OwnedLink::of(link));
            let count = session.get_links(*id1, *link_type, id2s, see)?;
            same(op, count, links.len() as u64)?;
            // They may come in any order.
            links.sort();
            Answer::Links(links)
        }
        Op::List(range) => {
            let mut links = Vec::new();
            let see = &mut |link: &Link<'_>| links.push(OwnedLink::of(link));
            let count = session.get_link_list(range, see)?;
            same(op, count, links.len() as u64)?;
            Answer::Links(links)
        }
        Op::Count(id1, link_type) => Answer::Number(session.count_links(*id1, *link_type)?),
    })
}

fn node_of(node: &OwnedNode) -> Node<'_> {
    let &OwnedNode { id, node_type, version, time, ref data } = node;
    Node { id, node_type, version, time, data }
}

fn node_type(random: &mut Random) -> u32 {
    if random.below(8) == 0 { NODE_TYPE + 1 } else { NODE_TYPE }
}

fn any_node(random: &mut Random) -> OwnedNode {
    let data = match random.below(20) {
        0 => bytes(random, 70_000),
        // A few that are the same as before: an update that changes nothing finds its row.
        1..6 => b"again".to_vec(),
        _ => bytes(random, 300),
    };
    let id = 1 + random.below(NODES + 10);
    let (version, time) = (random.below(2), random.below(2) as u32);
    OwnedNode { id, node_type: node_type(random), version, time, data }
}

fn any_link(random: &mut Random, time: u64) -> OwnedLink {
    OwnedLink {
        id1: 1 + random.below(4),
        link_type: LINK_TYPE + random.below(LINK_TYPES),
        id2: 1 + random.below(IDS),
        visible: random.below(8) > 0,
        time,
        version: random.below(3) as u32,
        data: bytes(random, 200),
    }
}

fn any(random: &mut Random, time: u64) -> Op {
    let (id1, link_type) = (1 + random.below(5), LINK_TYPE + random.below(LINK_TYPES));
    let id2 = 1 + random.below(IDS);
    match random.below(100) {
        0..8 => Op::AddNode(any_node(random)),
        8..16 => Op::UpdateNode(any_node(random)),
        16..20 => Op::DeleteNode(node_type(random), 1 + random.below(NODES + 10)),
        20..32 => Op::GetNode(node_type(random), 1 + random.below(NODES + 30)),
        32..52 => Op::AddLink(any_link(random, time)),
        52..62 => Op::DeleteLink(id1, link_type, id2),
        62..72 => {
            let count = 1 + random.below(IDS);
            let first = 1 + random.below(4);
            Op::GetLinks(id1, link_type, (first..first + count).rev().collect())
        }
        72..90 => Op::List(LinkRange {
            id1,
            link_type,
            newest: [u64::MAX, TIMES / 2, 0][random.below(3) as usize],
            skip: random.below(3),
            limit: [1, 3, 100][random.below(3) as usize],
        }),
        _ => Op::Count(id1, link_type),
    }
}

/// The rows of a load: nodes, links of two of them, and their counts.
fn load<S: GraphSession>(session: &mut S, seed: u64) -> Result<()> {
    let mut random = Random::named(seed, "agreement load", 0);
    let mut nodes = NodeRows::default();
    for id in 1..=NODES {
        let node = Node { id, node_type: NODE_TYPE, version: 1, time: 7, data: &[] };
        nodes.push(node, |to| to.extend(bytes(&mut random, 300)));
    }
    session.load_nodes(&nodes)?;
    let (mut links, mut counts) = (LinkRows::default(), Vec::new());
    for link_type in LINK_TYPE..LINK_TYPE + LINK_TYPES {
        for id1 in 1..=2 {
            for id2 in 1..=IDS {
                // Beyond the times of all other links.
                let time = TIMES + 1000 * link_type + 100 * id1 + id2;
                let visible = id2 % 3 > 0;
                let link = Link { id1, link_type, id2, visible, time, version: 0, data: &[] };
                links.push(link, |to| to.extend(bytes(&mut random, 200)));
            }
            let count = (IDS - IDS / 3) as u32;
            counts.push(Count { id: id1, link_type, count, time: 1, version: 0 });
        }
    }
    session.load_links(&links)?;
    counts.sort_by_key(|count| (count.id, count.link_type));
    session.load_counts(&counts)
}

/// Does `steps` random operations on both and compares the answers. If `fresh` has a number of
/// partitions, tables are made and rows loaded first. The error names the first that differs.
///
/// # Errors
///
/// A store fails, or answers otherwise than the other.
pub fn graph<A: Graph, B: Graph>(
    tested: &A,
    model: &B,
    seed: u64,
    steps: u32,
    fresh: Option<u32>,
) -> Result<()> {
    if let Some(partitions) = fresh {
        tested.create_tables(partitions)?;
        model.create_tables(partitions)?;
    }
    let (mut one, mut other) = (tested.session()?, model.session()?);
    if fresh.is_some() {
        load(&mut one, seed)?;
        load(&mut other, seed)?;
    }
    let mut random = Random::named(seed, "agreement graph", 0);
    for step in 0..steps {
        let op = any(&mut random, (u64::from(step) * 7919 + seed) % TIMES);
        let outcome =
            apply(&mut one, &op).and_then(|answer| same(&op, answer, apply(&mut other, &op)?));
        outcome.map_err(|error| {
            Failure::from(format!("{}, seed {seed}, step {step}: {error}", tested.name()))
        })?;
    }
    Ok(())
}
