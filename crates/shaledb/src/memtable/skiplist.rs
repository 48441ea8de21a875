//! A sorted map in an arena: many threads insert at once, readers take no lock, nothing is removed.
//!
//! A link holds, beside the address of the next node on its level, that node's key head (the first
//! eight bytes of its key, see [`key::head`]). So a search that stops before a node, and one that
//! goes on to it, have not touched that node to decide: only nodes that are walked over, and nodes
//! whose head equals the target's, are read. A search of a large list is a chain of cache misses
//! and this halves it.
//!
//! Invariant of the heads: a link's head is never less than the head of the link's next node (no
//! next node counts as the largest head). An insert swings the address first and lowers the head
//! after, and on one link the keys of next nodes only ever fall. So "head < target's" proves that
//! the next node is before the target. "head > target's" proves nothing while an insert at
//! that link is under way; taking it as "the next node is after the target" may only miss
//! entries whose insert has not returned. Whoever needs the true order (an insert, a cursor) looks
//! at the node.
//!
//! Why nothing else is missed: the way of a search depends on the heads alone (and for equal heads
//! on true comparisons), heads only fall, and new nodes begin with true heads; so a later search,
//! or one for a greater target, gets at least as far on each level. An insert comes to its place by
//! such a search; where it has to go past a link whose head is still too high, it lowers that head
//! itself; and it lowers its own before it returns. The place that an insert remembers for the next
//! one carries the greatest head on the way there, and is used only for targets not below that.
//! The same holds of the nodes that an insert may begin at in place of the top (`hints`,
//! `landmarks`). A search may begin at any node before its target that is on the level.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use super::arena::Arena;
use super::finger::{Finger, Splice};
use super::hints::{HINT_HEIGHT, Hints};
use super::landmarks::{Landmarks, NEAR};
use super::node::{
    HEIGHT_MAX, HEIGHT_SHIFT, Link, Node, Target, VALUE_SHIFT, height_of, link, next_before,
    node_key,
};
use crate::base::key::{self, KEY_BYTES_MAX, Kind, SEQ_MAX, SeqNo, VALUE_BYTES_MAX};
use crate::base::prefetch;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A list of so many levels is worth hints (a smaller one is cached). Tests have hints early.
const HINTED_FROM: usize = if cfg!(test) { 3 } else { 12 };

/// The map. In this order what each insert writes (as the count of references, before the first
/// field) is not on a cache line with what each search reads. To align it for that would cost
/// memory: transactions have small ones.
#[repr(C)]
pub(super) struct SkipList {
    count: AtomicU64,
    /// Whether a thread holds `finger`.
    finger_held: AtomicBool,
    /// The memory of the hints.
    hint_bytes: AtomicUsize,
    /// A thread that finds it held goes without.
    finger: UnsafeCell<Finger>,
    arena: Arena,
    /// The head's links: the highest level first, so that the last one is where a node would begin.
    tower: NonNull<Link>,
    /// How many levels are in use.
    height: AtomicUsize,
    /// Made for the first search of a large list.
    pub(super) landmarks: OnceLock<Box<Landmarks>>,
}

// SAFETY: nodes are immutable but for their atomic links, live as long as the list, and are
// published with release and read with acquire; `finger` is used only under `finger_held`.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

impl SkipList {
    /// An empty list.
    pub(super) fn new() -> SkipList {
        let layout = tower_layout();
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(layout) }.cast::<Link>();
        let Some(tower) = NonNull::new(memory) else { handle_alloc_error(layout) };
        for level in 0..HEIGHT_MAX {
            // SAFETY: the tower has HEIGHT_MAX links.
            unsafe { tower.add(level).write(Link::nowhere()) };
        }
        SkipList {
            count: AtomicU64::new(0),
            finger_held: AtomicBool::new(false),
            hint_bytes: AtomicUsize::new(0),
            finger: UnsafeCell::new(Finger { hints: Hints::default(), splice: Splice::EMPTY }),
            arena: Arena::new(),
            tower,
            height: AtomicUsize::new(1),
            landmarks: OnceLock::new(),
        }
    }

    /// Makes it as new, with its memory, if that is little; else answers false and changes nothing.
    pub(super) fn reset(&mut self) -> bool {
        if !self.arena.reset() {
            return false;
        }
        for level in 0..self.height() {
            // SAFETY: the head's link on a level is so far from its last one, and was initialized;
            // nobody else has the list.
            unsafe { *self.tower.as_ptr().add(HEIGHT_MAX - 1 - level) = Link::nowhere() };
        }
        self.height = AtomicUsize::new(1);
        self.count = AtomicU64::new(0);
        self.finger_held = AtomicBool::new(false);
        // Its nodes are gone; none is looked at from the height of a splice on.
        let finger = self.finger.get_mut();
        (finger.splice.height, finger.hints) = (0, Hints::default());
        self.hint_bytes = AtomicUsize::new(0);
        self.landmarks = OnceLock::new();
        debug_assert!(self.find_last() == self.head().cast_const(), "no node is left");
        true
    }

    /// The bytes of memory taken from the allocator.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes() + self.hint_bytes.load(Ordering::Relaxed)
    }

    /// The bytes of that in use.
    #[inline]
    pub(super) fn used_bytes(&self) -> usize {
        self.arena.used_bytes() + self.hint_bytes.load(Ordering::Relaxed)
    }

    /// The memory that landmarks take beside.
    #[inline]
    pub(super) fn landmark_bytes(&self) -> usize {
        self.landmarks.get().map_or(0, |landmarks| landmarks.bytes())
    }

    /// How many entries there are (some perhaps still being linked).
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// How many levels are in use.
    #[inline]
    pub(super) fn height(&self) -> usize {
        self.height.load(Ordering::Relaxed)
    }

    /// The head as a node; only its links may be used.
    #[inline]
    pub(super) fn head(&self) -> *mut Node {
        // SAFETY: within the tower.
        unsafe { self.tower.as_ptr().add(HEIGHT_MAX - 1).cast() }
    }

    /// Adds an entry; (key, seq) must not be there yet.
    pub(super) fn insert(&self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) {
        assert!(key.len() <= KEY_BYTES_MAX && value.len() as u64 <= VALUE_BYTES_MAX);
        assert!(seq <= SEQ_MAX);
        let height = height_of(self.count.fetch_add(1, Ordering::Relaxed));
        debug_assert!((1..=HEIGHT_MAX).contains(&height));
        let target = Target { key, head: key::head(key), tag: seq << 8 | kind as u64 };
        if self.finger_held.swap(true, Ordering::Acquire) {
            let mut splice = Splice { ..Splice::EMPTY };
            // SAFETY: there are no nodes in an empty splice.
            unsafe { self.insert_at(&mut splice, &target, value, height) };
        } else {
            // SAFETY: this thread alone holds the finger until the store below, and all its nodes
            // are from earlier inserts into this list.
            unsafe { self.insert_by_finger(&mut *self.finger.get(), &target, value, height) };
            self.finger_held.store(false, Ordering::Release);
        }
    }

    /// # Safety
    /// The nodes of the finger are of this list; hints have at least [`HINT_HEIGHT`] links.
    #[inline]
    unsafe fn insert_by_finger(
        &self,
        finger: &mut Finger,
        target: &Target<'_>,
        value: &[u8],
        height: usize,
    ) {
        // SAFETY: by the caller.
        let node = unsafe {
            self.insert_by_hint(finger, target, value, height)
                .unwrap_or_else(|| self.insert_at(&mut finger.splice, target, value, height))
        };
        if height >= HINT_HEIGHT && self.height.load(Ordering::Relaxed) >= HINTED_FROM {
            if finger.hints.is_empty() {
                self.collect_hints(&mut finger.hints);
            }
            finger.hints.add(target.head, node);
            self.hint_bytes.store(finger.hints.bytes(), Ordering::Relaxed);
        }
    }

    /// Inserts from a hint on, or from a landmark where hints are of no use; `None` if there is
    /// none, it is not near, or it is not needed.
    ///
    /// # Safety
    /// As for [`SkipList::insert_by_finger`].
    #[inline]
    unsafe fn insert_by_hint(
        &self,
        finger: &mut Finger,
        target: &Target<'_>,
        value: &[u8],
        height: usize,
    ) -> Option<*mut Node> {
        let splice = &finger.splice;
        let levels = HINT_HEIGHT.min(splice.height);
        // SAFETY: by the caller, and the levels are below the splice's height.
        let is_near = |level| unsafe { self.brackets(splice, target, level) };
        if height > HINT_HEIGHT || finger.hints.is_empty() || (0..levels).any(is_near) {
            return None;
        }
        let mut places = [ptr::null_mut(); HINT_HEIGHT];
        let hint = finger.hints.before(target.head);
        let from = hint.or_else(|| self.landmark(target).map(<*const Node>::cast_mut))?;
        // SAFETY: the hint is a node with so many links whose head is less than the target's, a
        // landmark is one before the target, or the head; and else as in `find_splice`.
        let Some(next) = (unsafe { Self::find_places(from, target, &mut places) }) else {
            if hint.is_some() {
                finger.hints.was_far();
            }
            return None;
        };
        prefetch::line(next);
        let node = self.new_node(target, value, height);
        for (level, &place) in places[..height].iter().enumerate() {
            // SAFETY: a place is a node of this list before the target; `node` has `height` links.
            unsafe { Self::link_node(place, target, node, level) };
        }
        Some(node)
    }

    /// The last node before the target on each level of a hint, and the next one on level 0; `None`
    /// if that is too far.
    ///
    /// # Safety
    /// `at` is a node of the list that is before the target, with at least [`HINT_HEIGHT`] links.
    #[inline]
    unsafe fn find_places(
        mut at: *mut Node,
        target: &Target<'_>,
        places: &mut [*mut Node; HINT_HEIGHT],
    ) -> Option<*mut Node> {
        let (mut stop, mut steps) = (ptr::null(), 0);
        for level in (0..HINT_HEIGHT).rev() {
            // SAFETY: by the caller, and as in `find_splice`.
            while let Some(next) = unsafe { next_before(at, level, target, &mut stop) } {
                if level == HINT_HEIGHT - 1 {
                    steps += 1;
                    if steps > NEAR {
                        return None;
                    }
                }
                at = next.cast_mut();
            }
            places[level] = at;
        }
        // SAFETY: as above.
        Some(unsafe { link(at, 0) }.next.load(Ordering::Acquire))
    }

    /// Makes hints of all nodes that are tall enough.
    #[cold]
    fn collect_hints(&self, hints: &mut Hints) {
        let (mut at, mut at_head) = (self.head(), 0);
        loop {
            // SAFETY: as in `find_splice`; a next node on this level has a link on it.
            let link = unsafe { link(at, HINT_HEIGHT - 1) };
            // The head first: it is never less than that of the next node found after it.
            let head = link.head.load(Ordering::Acquire);
            let next = link.next.load(Ordering::Acquire);
            if next.is_null() {
                return;
            }
            at_head = head.max(at_head);
            hints.add(at_head, next);
            at = next;
        }
    }

    /// # Safety
    /// As for [`SkipList::find_splice`].
    unsafe fn insert_at(
        &self,
        splice: &mut Splice,
        target: &Target<'_>,
        value: &[u8],
        height: usize,
    ) -> *mut Node {
        // SAFETY: by the caller.
        unsafe { self.find_splice(splice, target, height) };
        prefetch::line(splice.next[0]);
        let node = self.new_node(target, value, height);
        for level in 0..height {
            // SAFETY: the splice's nodes are of this list; `node` has `height` links.
            (splice.next[level], splice.next_head[level]) =
                unsafe { Self::link_node(splice.prev[level], target, node, level) };
            splice.prev[level] = node;
            splice.prev_head[level] = target.head;
        }
        node
    }

    /// Brings `splice` to `target` on all levels in use and below `height`.
    ///
    /// # Safety
    /// Below its height, the nodes of `splice` are nodes of this list with a link on their level,
    /// or its head; a next node may be null.
    unsafe fn find_splice(&self, splice: &mut Splice, target: &Target<'_>, height: usize) {
        let mut top = self.height.load(Ordering::Relaxed);
        if height > top {
            self.height.fetch_max(height, Ordering::Relaxed);
            top = height;
        }
        for level in splice.height..top {
            splice.prev[level] = self.head();
            splice.prev_head[level] = 0;
            splice.next[level] = ptr::null_mut();
            splice.next_head[level] = u64::MAX;
        }
        // A fresh splice is of no use below its top.
        let known = if splice.height == 0 { top } else { 0 };
        splice.height = splice.height.max(top);
        let mut level = known;
        // SAFETY: by the caller, and the levels that were added begin at the head.
        while level < splice.height && !unsafe { self.brackets(splice, target, level) } {
            level += 1;
        }
        let (mut at, mut at_head) = match level < splice.height {
            true => (splice.prev[level], splice.prev_head[level]),
            false => (self.head(), 0),
        };
        // SAFETY: `at` is the head or a node before the target with a link on this level, and so is
        // every next node that a link's head shows to be before the target.
        unsafe {
            let mut stop = ptr::null_mut();
            while level > 0 {
                level -= 1;
                loop {
                    let link = link(at, level);
                    let head = link.head.load(Ordering::Acquire);
                    let next = link.next.load(Ordering::Acquire);
                    let forward = head < target.head
                        || (head == target.head && next != stop && target.is_after(next));
                    if !forward {
                        splice.prev[level] = at;
                        splice.prev_head[level] = at_head;
                        splice.next[level] = next;
                        splice.next_head[level] = head;
                        // Not before the target on this level, nor on the lower ones.
                        if head == target.head {
                            stop = next;
                        }
                        break;
                    }
                    (at, at_head) = (next, at_head.max(head));
                }
            }
        }
    }

    /// Whether the target lies between the splice's two nodes on `level`, still neighbours.
    ///
    /// # Safety
    /// As for [`SkipList::find_splice`], and `level` is below the splice's height.
    unsafe fn brackets(&self, splice: &Splice, target: &Target<'_>, level: usize) -> bool {
        let (prev, next) = (splice.prev[level], splice.next[level]);
        if target.head < splice.prev_head[level] || target.head > splice.next_head[level] {
            return false;
        }
        // SAFETY: by the caller.
        unsafe {
            if link(prev, level).next.load(Ordering::Acquire) != next {
                return false;
            }
            let after_prev = prev == self.head()
                || target.head > splice.prev_head[level]
                || target.is_after(prev);
            after_prev
                && (target.head < splice.next_head[level]
                    || next.is_null()
                    || !target.is_after(next))
        }
    }

    /// A node that nothing links to yet, and whose links lead nowhere. They are initialized all the
    /// same: a cursor that comes to the node on level 0 looks at the others while they are set.
    fn new_node(&self, target: &Target<'_>, value: &[u8], height: usize) -> *mut Node {
        let upper = (height - 1) * size_of::<Link>();
        let bytes = upper + size_of::<Node>() + target.key.len() + value.len();
        let memory = self.arena.allocate(bytes).as_ptr();
        // SAFETY: the memory is ours, aligned for a node, and has room for all that is written.
        unsafe {
            let node = memory.add(upper).cast::<Node>();
            for level in 0..height {
                node.cast::<Link>().sub(level).write(Link::nowhere());
            }
            (&raw mut (*node).tag).write(target.tag);
            let sizes = (value.len() as u64) << VALUE_SHIFT
                | (height as u64) << HEIGHT_SHIFT
                | target.key.len() as u64;
            (&raw mut (*node).sizes).write(sizes);
            let key = node.add(1).cast::<u8>();
            ptr::copy_nonoverlapping(target.key.as_ptr(), key, target.key.len());
            ptr::copy_nonoverlapping(value.as_ptr(), key.add(target.key.len()), value.len());
            node
        }
    }

    /// Links `node` in on `level`, behind `prev`, or where that place is by now. Answers with the
    /// node after it and that one's head.
    ///
    /// # Safety
    /// `node` is complete but for its links from `level` up, and `prev` is before the target and
    /// has a link on that level.
    #[inline]
    unsafe fn link_node(
        mut prev: *mut Node,
        target: &Target<'_>,
        node: *mut Node,
        level: usize,
    ) -> (*mut Node, u64) {
        // SAFETY: by the caller; a next node that is not null is a node of the list.
        unsafe {
            loop {
                let prev_link = link(prev, level);
                let next = prev_link.next.load(Ordering::Acquire);
                // The heads do not decide it while others insert here, so look at the node.
                let next_head = if next.is_null() {
                    u64::MAX
                } else {
                    let next_key = node_key(next);
                    let next_head = key::head(next_key);
                    if next_head < target.head
                        || (next_head == target.head && target.is_after(next))
                    {
                        // Whoever inserted it may not have lowered the head yet, and must not
                        // hide this node, whose insert may return first.
                        prev_link.head.fetch_min(next_head, Ordering::Release);
                        prev = next;
                        continue;
                    }
                    next_head
                };
                let own = link(node, level);
                own.next.store(next, Ordering::Relaxed);
                own.head.store(next_head, Ordering::Relaxed);
                let linked = prev_link.next.compare_exchange(
                    next,
                    node,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
                if linked.is_ok() {
                    prev_link.head.fetch_min(target.head, Ordering::Release);
                    return (next, next_head);
                }
            }
        }
    }
}

impl Drop for SkipList {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and each link initialized there.
        unsafe {
            ptr::slice_from_raw_parts_mut(self.tower.as_ptr(), HEIGHT_MAX).drop_in_place();
            dealloc(self.tower.as_ptr().cast(), tower_layout());
        }
    }
}

fn tower_layout() -> Layout {
    Layout::array::<Link>(HEIGHT_MAX).expect("a small array")
}
