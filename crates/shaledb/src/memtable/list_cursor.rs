//! A cursor over a list: a position in it, forward and backward; and a walk from its beginning.

use std::ptr;

use super::node::{HEIGHT_SHIFT, MemEntry, Node, Target, kind_of, link, node_entry, node_key};
use super::skiplist::SkipList;
use crate::base::key::{self, Kind, SeqNo};
use crate::base::prefetch;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;

/// How many of a node's links a walk looks ahead through.
const AHEAD_LEVELS: usize = 4;

/// On how many levels a cursor keeps the way back, but for the first steps after a landmark. One
/// node in so many, to this power of two, is on more: a step back from it begins at the top.
const BACK_LEVELS: usize = 7;

/// A position in a list that it keeps alive. Entries inserted meanwhile may or may not be seen.
pub(super) struct ListCursor {
    list: Arc<SkipList>,
    /// A node of `list`; null or the list's head if the cursor is not valid.
    node: *const Node,
    /// How the last search backward came to its node.
    path: Path,
}

/// The last nodes before what a search has looked for, on the lowest levels. Nothing is linked in
/// between that must be seen, and no node goes away: a search for something before `nodes[level]`
/// may begin at the nearest one that is before that.
struct Path {
    /// On the levels below this one; none is known if it is 0.
    height: usize,
    nodes: [*const Node; BACK_LEVELS],
}

// SAFETY: the pointer is to a node of the list that the cursor owns a share of, and a `SkipList`
// may be used from any thread.
unsafe impl Send for ListCursor {}
// SAFETY: as above; a shared cursor is only read.
unsafe impl Sync for ListCursor {}

impl Path {
    /// Of no search.
    const NONE: Path = Path { height: 0, nodes: [ptr::null(); BACK_LEVELS] };

    /// The last node before the target, or the head. Keeps what is passed on the way there.
    ///
    /// # Safety
    /// As for [`SkipList::find_before_from`].
    unsafe fn search(
        &mut self,
        list: &SkipList,
        from: *const Node,
        top: usize,
        target: &Target<'_>,
    ) -> *const Node {
        self.height = self.height.max(top.min(BACK_LEVELS));
        let nodes = &mut self.nodes;
        let passed = |level, node| {
            if let Some(place) = nodes.get_mut(level) {
                *place = node;
            }
        };
        // SAFETY: by the caller.
        unsafe { list.find_before_from(from, top, target, passed) }
    }
}

/// The node after this one, or null.
///
/// # Safety
/// `node` is a node of a list, or its head.
#[inline]
unsafe fn node_after(node: *const Node) -> *const Node {
    // SAFETY: by the caller; the head and each node have a link on level 0, a node has `height`.
    unsafe {
        let next = link(node, 0).next.load(Ordering::Acquire).cast_const();
        if !next.is_null() {
            // Walking is a chain of cache misses; the upper links let some of them overlap.
            let height = ((*next).sizes >> HEIGHT_SHIFT) as usize % (1 << 5);
            for level in 0..height.min(AHEAD_LEVELS) {
                prefetch::line(link(next, level).next.load(Ordering::Relaxed));
            }
        }
        next
    }
}

impl SkipList {
    /// All keys and their entries, in order. Those inserted meanwhile may or may not be among them.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], MemEntry<'_>)> {
        // SAFETY: it is the head.
        let mut next = unsafe { node_after(self.head()) };
        std::iter::from_fn(move || {
            let node = next;
            if node.is_null() {
                return None;
            }
            // SAFETY: a node of this list, which is borrowed.
            unsafe {
                next = node_after(node);
                Some((node_key(node), node_entry(node)))
            }
        })
    }
}

impl ListCursor {
    /// A cursor that is not valid yet.
    pub(super) fn new(list: Arc<SkipList>) -> ListCursor {
        ListCursor { list, node: ptr::null(), path: Path::NONE }
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        !self.node.is_null()
    }

    pub(super) fn seek_first(&mut self) {
        // SAFETY: the head has a link on level 0.
        self.node = unsafe { link(self.list.head(), 0) }.next.load(Ordering::Acquire);
    }

    pub(super) fn seek_last(&mut self) {
        self.node = self.unless_head(self.list.find_last());
    }

    pub(super) fn seek(&mut self, key: &[u8], seq: SeqNo) {
        self.node = self.list.find_at(&Target::at(key, seq));
    }

    pub(super) fn seek_back(&mut self, key: &[u8], seq: SeqNo) {
        self.node = self.search_back(&Target::at(key, seq));
    }

    #[inline]
    pub(super) fn next(&mut self) {
        assert!(self.valid());
        // SAFETY: a valid cursor is at a node of its list.
        self.node = unsafe { node_after(self.node) };
    }

    /// The nodes before this one on higher levels are mostly known from the step before: the search
    /// begins at the lowest of them that is before this node.
    pub(super) fn prev(&mut self) {
        assert!(self.valid());
        // SAFETY: as in `next`.
        let (key, tag) = unsafe { (node_key(self.node), (*self.node).tag) };
        let target = Target { key, head: key::head(key), tag };
        let known = &self.path.nodes[..self.path.height];
        // None is behind the one on level 0.
        let is_of_node = known.first() == Some(&self.node);
        let level = known.iter().position(|&node| node != self.node).filter(|_| is_of_node);
        self.node = match level {
            Some(level) => {
                let from = known[level];
                // SAFETY: what the search before has passed on a level is a node there, or the
                // head; it is not behind this node, and another.
                let before = unsafe { self.path.search(&self.list, from, level + 1, &target) };
                self.unless_head(before)
            }
            // From the top, so that more levels are known than from a landmark.
            None if is_of_node => {
                self.search_back_from(self.list.head(), self.list.height(), &target)
            }
            None => self.search_back(&target),
        };
    }

    /// The last node before the target, or null.
    fn search_back(&mut self, target: &Target<'_>) -> *const Node {
        let (from, top) = self.list.begin(target);
        self.search_back_from(from, top, target)
    }

    /// From where a search for the target may begin.
    fn search_back_from(
        &mut self,
        from: *const Node,
        top: usize,
        target: &Target<'_>,
    ) -> *const Node {
        self.path.height = 0;
        // SAFETY: by the caller, who has it from `SkipList::begin`, or begins at the head.
        let before = unsafe { self.path.search(&self.list, from, top, target) };
        self.unless_head(before)
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        assert!(self.valid());
        // SAFETY: as in `next`; the list lives as long as the cursor.
        unsafe { node_key(self.node) }
    }

    #[inline]
    pub(super) fn tag(&self) -> (SeqNo, Kind) {
        assert!(self.valid());
        // SAFETY: as in `next`.
        let tag = unsafe { (*self.node).tag };
        (tag >> 8, kind_of(tag))
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        assert!(self.valid());
        // SAFETY: as in `key`.
        unsafe { node_entry(self.node) }.value
    }

    #[inline]
    fn unless_head(&self, node: *const Node) -> *const Node {
        if node == self.list.head().cast_const() { ptr::null() } else { node }
    }
}
