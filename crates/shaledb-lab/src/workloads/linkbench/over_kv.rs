//! LinkBench over a key-value engine: a tree for each table and one for the secondary index.
//!
//! ```text
//! linktable   link_type, id1, id2 -> visibility, time, version, data
//! id1_type    id1, link_type, visibility, time (falling), id2 -> version, data
//! counttable  id, link_type -> count, time, version
//! nodetable   id -> type, version, time, data
//! ```
//!
//! Ids, types of links and times of links and counts are u64, as are the versions of counts and
//! nodes; visibility is u8, the rest u32. Time falls in the index, because every range query wants
//! the newest links first. The links of one type of a node, their index entries and their count
//! change under one latch and by one batch.

use super::graph::{Count, Graph, GraphSession, Link, LinkRange, LinkRows, Node, NodeRows};
use crate::stores::engine::{Batch, Engine, Handle, Result, TreeId};
use crate::stores::kv::KvStore;
use crate::stores::tables::damaged::damaged;
use crate::stores::tables::key::{Decoder, Encoder};
use crate::stores::tables::latches::Latches;
use std::cmp::Reverse;
use std::sync::MutexGuard;

/// The trees to open the engine with.
pub const TREES: [&str; 4] = ["linktable", "id1_type", "counttable", "nodetable"];

const LINKS: TreeId = 0;
const INDEX: TreeId = 1;
const COUNTS: TreeId = 2;
const NODES: TreeId = 3;

impl<E: Engine> Graph for KvStore<E> {
    type Session<'a>
        = KvGraph<'a, E>
    where
        E: 'a;

    fn create_tables(&self, _: u32) -> Result<()> {
        Ok(())
    }

    fn session(&self) -> Result<KvGraph<'_, E>> {
        Ok(KvGraph {
            store: self,
            latches: &self.latches,
            handle: self.engine.handle()?,
            batch: Batch::new(),
            key: Encoder::new(),
            value: Encoder::new(),
            data: Vec::new(),
            order: Vec::new(),
        })
    }

    fn drop_tables(&self) -> Result<()> {
        for tree in 0..TREES.len() {
            self.engine.clear_tree(tree)?;
            self.sequences[tree].forget();
        }
        Ok(())
    }
}

/// One client's view of a graph in a key-value engine.
pub struct KvGraph<'a, E: Engine> {
    store: &'a KvStore<E>,
    latches: &'a Latches,
    handle: E::Handle,
    batch: Batch,
    key: Encoder,
    value: Encoder,
    /// The data of a row that is changed.
    data: Vec<u8>,
    order: Vec<u32>,
}

/// A link's columns but its data and its key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    visible: bool,
    time: u64,
    version: u32,
}

fn link_key(key: &mut Encoder, id1: u64, link_type: u64, id2: u64) -> &[u8] {
    key.start().u64(link_type).u64(id1).u64(id2).bytes()
}

fn link_value<'k>(value: &'k mut Encoder, state: State, data: &[u8]) -> &'k [u8] {
    value.start().u8(u8::from(state.visible)).u64(state.time).u32(state.version).rest(data).bytes()
}

fn read_link(value: &[u8]) -> Option<(State, &[u8])> {
    let mut value = Decoder::new(value);
    let visible = value.u8()? == 1;
    let state = State { visible, time: value.u64()?, version: value.u32()? };
    Some((state, value.rest()))
}

fn index_key<'k>(key: &'k mut Encoder, link: &Link<'_>) -> &'k [u8] {
    key.start().u64(link.id1).u64(link.link_type).u8(u8::from(link.visible));
    key.u64_descending(link.time).u64(link.id2).bytes()
}

fn index_value<'k>(value: &'k mut Encoder, link: &Link<'_>) -> &'k [u8] {
    value.start().u32(link.version).rest(link.data).bytes()
}

fn read_index<'r>(key: &[u8], value: &'r [u8]) -> Option<Link<'r>> {
    let (mut key, mut value) = (Decoder::new(key), Decoder::new(value));
    let (id1, link_type, visible) = (key.u64()?, key.u64()?, key.u8()? == 1);
    let (time, id2) = (key.u64_descending()?, key.u64()?);
    let version = value.u32()?;
    Some(Link { id1, link_type, id2, visible, time, version, data: value.rest() })
}

fn count_key(key: &mut Encoder, id: u64, link_type: u64) -> &[u8] {
    key.start().u64(id).u64(link_type).bytes()
}

fn count_value<'k>(value: &'k mut Encoder, count: &Count) -> &'k [u8] {
    value.start().u32(count.count).u64(count.time).u64(count.version).bytes()
}

fn read_count(value: &[u8]) -> Option<(u32, u64, u64)> {
    let mut value = Decoder::new(value);
    Some((value.u32()?, value.u64()?, value.u64()?))
}

fn node_value<'k>(value: &'k mut Encoder, node: &Node<'_>) -> &'k [u8] {
    value.start().u32(node.node_type).u64(node.version).u32(node.time).rest(node.data).bytes()
}

fn read_node(id: u64, value: &[u8]) -> Option<Node<'_>> {
    let mut value = Decoder::new(value);
    let (node_type, version, time) = (value.u32()?, value.u64()?, value.u32()?);
    Some(Node { id, node_type, version, time, data: value.rest() })
}

impl<'a, E: Engine> KvGraph<'a, E> {
    /// Waits for the right to change a node's links of one type.
    fn latch_links(&self, id1: u64, link_type: u64) -> Result<MutexGuard<'a, ()>> {
        self.latches.one(self.latches.of(link_type as u32, id1))
    }

    fn latch_node(&self, id: u64) -> Result<MutexGuard<'a, ()>> {
        self.latches.one(self.latches.of(0, id))
    }

    /// What is there of a link; its data goes to `self.data`.
    fn link_now(&mut self, id1: u64, link_type: u64, id2: u64) -> Result<Option<State>> {
        let mut state = None;
        let data = &mut self.data;
        let key = link_key(&mut self.key, id1, link_type, id2);
        let found = self.handle.get(LINKS, key, &mut |value| {
            state = read_link(value).map(|(state, bytes)| {
                data.clear();
                data.extend_from_slice(bytes);
                state
            });
        })?;
        if found && state.is_none() { Err(damaged(TREES[LINKS])) } else { Ok(state) }
    }

    /// Adds to the batch what makes `now` of `link` what it says, and its count.
    fn change(&mut self, before: Option<State>, link: &Link<'_>) -> Result<()> {
        let state = State { visible: link.visible, time: link.time, version: link.version };
        if let Some(before) = before
            && (before.visible, before.time) != (state.visible, state.time)
        {
            let old = Link { visible: before.visible, time: before.time, ..*link };
            self.batch.delete(INDEX, index_key(&mut self.key, &old));
        }
        let key = link_key(&mut self.key, link.id1, link.link_type, link.id2);
        self.batch.put(LINKS, key, link_value(&mut self.value, state, link.data));
        let key = index_key(&mut self.key, link);
        self.batch.put(INDEX, key, index_value(&mut self.value, link));
        let was_visible = before.is_some_and(|before| before.visible);
        if was_visible != state.visible { self.change_count(link) } else { Ok(()) }
    }

    /// Counts a link that comes to be seen, or is seen no more.
    fn change_count(&mut self, link: &Link<'_>) -> Result<()> {
        let mut now = None;
        let key = count_key(&mut self.key, link.id1, link.link_type);
        let found = self.handle.get(COUNTS, key, &mut |value| now = read_count(value))?;
        if found && now.is_none() {
            return Err(damaged(TREES[COUNTS]));
        }
        let count = match now {
            Some((count, ..)) if link.visible => count + 1,
            Some((count, ..)) => count.saturating_sub(1),
            None => u32::from(link.visible),
        };
        let version = now.map_or(0, |(.., version)| version + 1);
        let (id, link_type) = (link.id1, link.link_type);
        let count = Count { id, link_type, count, time: link.time, version };
        self.batch.put(COUNTS, key, count_value(&mut self.value, &count));
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.handle.write(&self.batch)
    }
}

impl<E: Engine> GraphSession for KvGraph<'_, E> {
    fn load_nodes(&mut self, nodes: &NodeRows) -> Result<()> {
        self.batch.clear();
        let mut last = 0;
        for node in nodes.iter() {
            last = last.max(node.id);
            let key = self.key.start().u64(node.id).bytes();
            self.batch.put(NODES, key, node_value(&mut self.value, &node));
        }
        self.store.sequences[NODES].raise(&mut self.handle, NODES, last)?;
        self.write()
    }

    fn load_links(&mut self, links: &LinkRows) -> Result<()> {
        self.batch.clear();
        for link in links.iter() {
            let state = State { visible: link.visible, time: link.time, version: link.version };
            let key = link_key(&mut self.key, link.id1, link.link_type, link.id2);
            self.batch.put(LINKS, key, link_value(&mut self.value, state, link.data));
        }
        // The index has an order of its own.
        self.order.clear();
        self.order.extend(0..links.len() as u32);
        self.order.sort_unstable_by_key(|&at| {
            let link = links.get(at as usize);
            (link.id1, link.link_type, link.visible, Reverse(link.time), link.id2)
        });
        for &at in &self.order {
            let link = links.get(at as usize);
            let key = index_key(&mut self.key, &link);
            self.batch.put(INDEX, key, index_value(&mut self.value, &link));
        }
        self.write()
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<()> {
        self.batch.clear();
        for count in counts {
            let key = count_key(&mut self.key, count.id, count.link_type);
            self.batch.put(COUNTS, key, count_value(&mut self.value, count));
        }
        self.write()
    }

    fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        let id = self.store.sequences[NODES].next(&mut self.handle, NODES)?;
        let key = self.key.start().u64(id).bytes();
        self.handle.put(NODES, key, node_value(&mut self.value, node))?;
        Ok(id)
    }

    fn update_node(&mut self, node: &Node<'_>) -> Result<bool> {
        let _latch = self.latch_node(node.id)?;
        if !self.get_node(node.node_type, node.id, &mut |_| ())? {
            return Ok(false);
        }
        let key = self.key.start().u64(node.id).bytes();
        self.handle.put(NODES, key, node_value(&mut self.value, node))?;
        Ok(true)
    }

    fn delete_node(&mut self, node_type: u32, id: u64) -> Result<bool> {
        let _latch = self.latch_node(id)?;
        let found = self.get_node(node_type, id, &mut |_| ())?;
        if found {
            self.handle.delete(NODES, self.key.start().u64(id).bytes())?;
        }
        Ok(found)
    }

    fn get_node(
        &mut self,
        node_type: u32,
        id: u64,
        found: &mut impl FnMut(&Node<'_>),
    ) -> Result<bool> {
        let (mut whole, mut of_type) = (true, false);
        let key = self.key.start().u64(id).bytes();
        self.handle.get(NODES, key, &mut |value| {
            let node = read_node(id, value);
            whole = node.is_some();
            if let Some(node) = node.filter(|node| node.node_type == node_type) {
                of_type = true;
                found(&node);
            }
        })?;
        if whole { Ok(of_type) } else { Err(damaged(TREES[NODES])) }
    }

    fn add_link(&mut self, link: &Link<'_>) -> Result<bool> {
        let _latch = self.latch_links(link.id1, link.link_type)?;
        let before = self.link_now(link.id1, link.link_type, link.id2)?;
        self.batch.clear();
        self.change(before, link)?;
        self.write()?;
        Ok(before.is_none())
    }

    fn delete_link(&mut self, id1: u64, link_type: u64, id2: u64) -> Result<bool> {
        let _latch = self.latch_links(id1, link_type)?;
        let before = self.link_now(id1, link_type, id2)?;
        let Some(State { visible: true, time, version }) = before else { return Ok(false) };
        self.batch.clear();
        let data = std::mem::take(&mut self.data);
        let hidden = Link { id1, link_type, id2, visible: false, time, version, data: &data };
        self.change(before, &hidden)?;
        self.data = data;
        self.write()?;
        Ok(true)
    }

    fn get_links(
        &mut self,
        id1: u64,
        link_type: u64,
        id2s: &[u64],
        row: &mut impl FnMut(&Link<'_>),
    ) -> Result<u64> {
        let mut count = 0;
        for &id2 in id2s {
            let mut whole = true;
            let key = link_key(&mut self.key, id1, link_type, id2);
            let found = self.handle.get(LINKS, key, &mut |value| match read_link(value) {
                Some((State { visible, time, version }, data)) => {
                    row(&Link { id1, link_type, id2, visible, time, version, data });
                }
                None => whole = false,
            })?;
            if !whole {
                return Err(damaged(TREES[LINKS]));
            }
            count += u64::from(found);
        }
        Ok(count)
    }

    fn get_link_list(&mut self, range: &LinkRange, row: &mut impl FnMut(&Link<'_>)) -> Result<u64> {
        let from = self.key.start().u64(range.id1).u64(range.link_type).u8(1);
        let from = from.u64_descending(range.newest).u64(0).bytes();
        // Node, type and visibility: the first bytes of all keys of the range.
        let prefix = &from[..17];
        let (mut seen, mut shown, mut whole) = (0, 0, true);
        self.handle.scan(
            INDEX,
            from,
            range.skip.saturating_add(range.limit),
            &mut |key, value| {
                if !key.starts_with(prefix) {
                    return false;
                }
                seen += 1;
                if seen > range.skip {
                    match read_index(key, value) {
                        Some(link) => row(&link),
                        None => whole = false,
                    }
                    shown += 1;
                }
                whole
            },
        )?;
        if whole { Ok(shown) } else { Err(damaged(TREES[INDEX])) }
    }

    fn count_links(&mut self, id1: u64, link_type: u64) -> Result<Option<u64>> {
        let mut now = None;
        let key = count_key(&mut self.key, id1, link_type);
        let found = self.handle.get(COUNTS, key, &mut |value| now = read_count(value))?;
        match now {
            None if found => Err(damaged(TREES[COUNTS])),
            _ => Ok(now.map(|(count, ..)| u64::from(count))),
        }
    }
}

/// What [`check`] found, all of it right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Rows of `nodetable`.
    pub nodes: u64,
    /// Rows of `linktable`; `id1_type` has as many entries.
    pub links: u64,
    /// Those that can be seen; the counts are as many.
    pub visible: u64,
}

/// Reads the whole graph: each link has its entry in the index with the same columns, the index has
/// no others, and each count is the number of links that can be seen. No client is at work.
///
/// # Errors
///
/// The engine fails, or the first row that is not so.
pub fn check<E: Engine>(store: &KvStore<E>) -> Result<Checked> {
    let mut handle = store.engine.handle()?;
    let mut point = store.engine.handle()?;
    let mut checked = Checked::default();
    let mut wrong: Option<String> = None;
    let (mut encoder, mut expected) = (Encoder::new(), Encoder::new());
    handle.scan(LINKS, b"", u64::MAX, &mut |key, value| {
        let Some(link) = whole_link(key, value) else {
            wrong = Some(damaged(TREES[LINKS]).to_string());
            return false;
        };
        checked.links += 1;
        checked.visible += u64::from(link.visible);
        let entry = index_value(&mut expected, &link);
        let mut same = false;
        let key = index_key(&mut encoder, &link);
        match point.get(INDEX, key, &mut |value| same = value == entry) {
            Ok(true) if same => {}
            Ok(_) => wrong = Some(format!("{link:?} has no entry in the index that is like it")),
            Err(error) => wrong = Some(error.to_string()),
        }
        wrong.is_none()
    })?;
    // All links have different entries, so there is one too many if there are more.
    let entries = handle.scan(INDEX, b"", u64::MAX, &mut |_, _| true)?;
    if wrong.is_none() && entries != checked.links {
        wrong = Some(format!("{} links have {entries} entries in the index", checked.links));
    }
    match wrong {
        Some(wrong) => Err(wrong.into()),
        None => check_counts(&mut handle, &mut point, checked),
    }
}

fn whole_link<'r>(key: &[u8], value: &'r [u8]) -> Option<Link<'r>> {
    let mut key = Decoder::new(key);
    let (link_type, id1, id2) = (key.u64()?, key.u64()?, key.u64()?);
    let (State { visible, time, version }, data) = read_link(value)?;
    Some(Link { id1, link_type, id2, visible, time, version, data })
}

fn check_counts<H: Handle>(handle: &mut H, point: &mut H, mut checked: Checked) -> Result<Checked> {
    let mut wrong: Option<String> = None;
    let mut counted = 0;
    let mut from = Encoder::new();
    handle.scan(COUNTS, b"", u64::MAX, &mut |key, value| {
        let Some((count, ..)) = read_count(value) else {
            wrong = Some(damaged(TREES[COUNTS]).to_string());
            return false;
        };
        counted += u64::from(count);
        let prefix = from.start().rest(key).u8(1).bytes();
        let mut visible = 0;
        let end = point.scan(INDEX, prefix, u64::MAX, &mut |key, _| {
            let inside = key.starts_with(prefix);
            visible += u32::from(inside);
            inside
        });
        if let Err(error) = end {
            wrong = Some(error.to_string());
        } else if visible != count {
            wrong = Some(format!("the count of {key:?} is {count}, its links are {visible}"));
        }
        wrong.is_none()
    })?;
    if wrong.is_none() && counted != checked.visible {
        wrong = Some(format!("{} links can be seen, {counted} are counted", checked.visible));
    }
    if let Some(wrong) = wrong {
        return Err(wrong.into());
    }
    checked.nodes = handle.scan(NODES, b"", u64::MAX, &mut |_, _| true)?;
    Ok(checked)
}

#[cfg(test)]
#[path = "over_kv_tests.rs"]
mod tests;
