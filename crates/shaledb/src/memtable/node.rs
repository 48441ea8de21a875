//! The nodes of the list: their bytes, the unsafe reads of them, and what is looked for among them.
//!
//! A node is one piece of arena memory: `[upper links][level-0 link][tag][sizes][key][value]`.
//! A node's address is that of its level-0 link; the link of level `i` lies `i` links before it.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::ptr;

use crate::base::key::{self, KEY_BYTES_MAX, Kind, SEQ_MAX, SeqNo, VALUE_BYTES_MAX};
use crate::base::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The most links of a node: with half of the nodes on each next level, enough for 2^24 nodes
/// before searches get longer. Half, since with heads in links only a step forward costs a cache
/// miss, and a search takes fewest of those so; a quarter was measured to be a fifth slower.
pub(super) const HEIGHT_MAX: usize = 24;

/// In `Node::sizes`: the key's length below this bit, the height from it on.
pub(super) const HEIGHT_SHIFT: u32 = 20;
/// In `Node::sizes`: the value's length from this bit on.
pub(super) const VALUE_SHIFT: u32 = 25;

const _: () = assert!(KEY_BYTES_MAX < 1 << HEIGHT_SHIFT);
const _: () = assert!(HEIGHT_MAX < 1 << (VALUE_SHIFT - HEIGHT_SHIFT));
const _: () = assert!(VALUE_BYTES_MAX < 1 << (64 - VALUE_SHIFT));

/// The way from a node to the next one on a level.
#[repr(C)]
pub(super) struct Link {
    pub(super) next: AtomicPtr<Node>,
    /// At least the head of `next`'s key; all ones if there is no next node.
    pub(super) head: AtomicU64,
}

impl Link {
    /// A link without a next node.
    #[inline]
    pub(super) fn nowhere() -> Link {
        Link { next: AtomicPtr::new(ptr::null_mut()), head: AtomicU64::new(u64::MAX) }
    }
}

/// A node from its level-0 link on; key and value follow.
#[repr(C)]
pub(super) struct Node {
    pub(super) link: Link,
    /// The sequence number above the kind's eight bits.
    pub(super) tag: u64,
    pub(super) sizes: u64,
}

/// An entry of a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemEntry<'a> {
    /// Its position in the commit order.
    pub seq: SeqNo,
    /// What it says of its key.
    pub kind: Kind,
    /// Its value; empty for a delete.
    pub value: &'a [u8],
}

/// One of some entries of a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its position in the commit order.
    pub seq: SeqNo,
    /// What it says of its key.
    pub kind: Kind,
}

/// The key of a node.
///
/// # Safety
/// `node` is a node of a list (not its head) that lives for `'a`.
#[inline]
pub(super) unsafe fn node_key<'a>(node: *const Node) -> &'a [u8] {
    // SAFETY: the key follows the node in the same piece of memory, and is never changed.
    unsafe {
        let bytes = ((*node).sizes & ((1 << HEIGHT_SHIFT) - 1)) as usize;
        std::slice::from_raw_parts(node.add(1).cast::<u8>(), bytes)
    }
}

/// The entry of a node.
///
/// # Safety
/// As for [`node_key`].
#[inline]
pub(super) unsafe fn node_entry<'a>(node: *const Node) -> MemEntry<'a> {
    // SAFETY: the value follows the key in the same piece of memory, and is never changed.
    unsafe {
        let (tag, sizes) = ((*node).tag, (*node).sizes);
        let key_bytes = (sizes & ((1 << HEIGHT_SHIFT) - 1)) as usize;
        let start = node.add(1).cast::<u8>().add(key_bytes);
        let value = std::slice::from_raw_parts(start, (sizes >> VALUE_SHIFT) as usize);
        MemEntry { seq: tag >> 8, kind: kind_of(tag), value }
    }
}

/// What a search looks for: the first entry whose key is greater, or equal with a tag not greater.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) key: &'a [u8],
    pub(super) head: u64,
    pub(super) tag: u64,
}

impl<'a> Target<'a> {
    /// The first entry at or after (key, seq), whatever its kind.
    #[inline]
    pub(super) fn at(key: &'a [u8], seq: SeqNo) -> Target<'a> {
        Target { key, head: key::head(key), tag: seq.min(SEQ_MAX) << 8 | 0xff }
    }

    /// Whether `node` sorts before the target.
    ///
    /// # Safety
    /// `node` is a node of a list (not its head).
    #[inline]
    pub(super) unsafe fn is_after(&self, node: *const Node) -> bool {
        // SAFETY: by the caller.
        let (key, tag) = unsafe { (node_key(node), (*node).tag) };
        match key.cmp(self.key) {
            Less => true,
            Equal => tag > self.tag,
            Greater => false,
        }
    }
}

#[inline]
pub(super) fn kind_of(tag: u64) -> Kind {
    Kind::from_u8(tag as u8).expect("an insert wrote a kind")
}

/// The link of `node` on `level`.
///
/// # Safety
/// `node` is a node of a list, or its head, that lives for `'a` and has a link on that level.
#[inline]
pub(super) unsafe fn link<'a>(node: *const Node, level: usize) -> &'a Link {
    // SAFETY: the links of a node lie before it in the same piece of memory.
    unsafe { &*node.cast::<Link>().sub(level) }
}

/// The next node on a level, if that is before the target too. `stop`, which is known not to be
/// before it, may become a nearer one.
///
/// # Safety
/// `at` is a node of a list, or its head, that is before the target and has a link on the level; so
/// is what is answered.
#[inline]
pub(super) unsafe fn next_before(
    at: *const Node,
    level: usize,
    target: &Target<'_>,
    stop: &mut *const Node,
) -> Option<*const Node> {
    // SAFETY: by the caller; what is not null is a node.
    unsafe {
        let way = link(at, level);
        let head = way.head.load(Ordering::Acquire);
        let next = way.next.load(Ordering::Acquire).cast_const();
        if head < target.head {
            return Some(next);
        }
        if head == target.head {
            if next != *stop && !next.is_null() && target.is_after(next) {
                return Some(next);
            }
            *stop = next;
        }
        None
    }
}

/// The height of the `index`-th node: on each level half as many nodes as on the one below.
#[inline]
pub(super) fn height_of(index: u64) -> usize {
    // The finalizer of splitmix64, which leaves a zero as it is.
    let mut mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (1 + mixed.trailing_zeros() as usize).min(HEIGHT_MAX)
}
