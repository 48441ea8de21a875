//! A graph that does nothing: what a run on it costs is what the client costs.

use super::graph::{
    Count, Graph, GraphSession, LINK_TYPE, Link, LinkRange, LinkRows, NODE_TYPE, Node, NodeRows,
};
use crate::stores::engine::Result;
use crate::stores::null::Null;
use std::hint::black_box;

impl Graph for Null {
    type Session<'a> = NullSession;

    fn create_tables(&self, _: u32) -> Result<()> {
        Ok(())
    }

    fn session(&self) -> Result<NullSession> {
        Ok(NullSession { data: vec![b'x'; 128] })
    }

    fn drop_tables(&self) -> Result<()> {
        Ok(())
    }
}

/// See [`Null`]. A read of a list gives four links, about as many as a node has.
pub struct NullSession {
    data: Vec<u8>,
}

const LISTED: u64 = 4;

impl NullSession {
    fn link(&self, id1: u64, link_type: u64, id2: u64) -> Link<'_> {
        let data = &self.data[..8];
        Link { id1, link_type, id2, visible: true, time: id2, version: 0, data }
    }
}

impl GraphSession for NullSession {
    #[inline(never)]
    fn load_nodes(&mut self, nodes: &NodeRows) -> Result<()> {
        black_box(nodes);
        Ok(())
    }

    #[inline(never)]
    fn load_links(&mut self, links: &LinkRows) -> Result<()> {
        black_box(links);
        Ok(())
    }

    #[inline(never)]
    fn load_counts(&mut self, counts: &[Count]) -> Result<()> {
        black_box(counts);
        Ok(())
    }

    #[inline(never)]
    fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        Ok(black_box(node).id)
    }

    #[inline(never)]
    fn update_node(&mut self, node: &Node<'_>) -> Result<bool> {
        black_box(node);
        Ok(true)
    }

    #[inline(never)]
    fn delete_node(&mut self, node_type: u32, id: u64) -> Result<bool> {
        black_box((node_type, id));
        Ok(true)
    }

    #[inline(never)]
    fn get_node(
        &mut self,
        node_type: u32,
        id: u64,
        found: &mut impl FnMut(&Node<'_>),
    ) -> Result<bool> {
        black_box(node_type);
        found(&Node { id, node_type: NODE_TYPE, version: 1, time: 0, data: &self.data });
        Ok(true)
    }

    #[inline(never)]
    fn add_link(&mut self, link: &Link<'_>) -> Result<bool> {
        black_box(link);
        Ok(true)
    }

    #[inline(never)]
    fn delete_link(&mut self, id1: u64, link_type: u64, id2: u64) -> Result<bool> {
        black_box((id1, link_type, id2));
        Ok(true)
    }

    #[inline(never)]
    fn get_links(
        &mut self,
        id1: u64,
        link_type: u64,
        id2s: &[u64],
        row: &mut impl FnMut(&Link<'_>),
    ) -> Result<u64> {
        black_box((id1, link_type));
        id2s.iter().for_each(|&id2| row(&self.link(id1, link_type, id2)));
        Ok(id2s.len() as u64)
    }

    #[inline(never)]
    fn get_link_list(&mut self, range: &LinkRange, row: &mut impl FnMut(&Link<'_>)) -> Result<u64> {
        let count = LISTED.min(range.limit);
        (0..count).for_each(|at| row(&self.link(range.id1, range.link_type, at)));
        Ok(count)
    }

    #[inline(never)]
    fn count_links(&mut self, id1: u64, link_type: u64) -> Result<Option<u64>> {
        black_box(id1);
        Ok(Some(link_type - LINK_TYPE))
    }
}
