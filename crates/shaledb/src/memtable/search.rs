//! Searches of a list, from a landmark near the target or from the top: none takes a lock.

use std::ptr;

use super::hints::HINT_HEIGHT;
use super::landmarks::{Extent, Landmarks, MARKED_FROM, NEAR};
use super::node::{MemEntry, Node, Target, link, next_before, node_entry, node_key};
use super::skiplist::SkipList;
use crate::base::key::SeqNo;
use crate::base::sync::atomic::Ordering;

impl SkipList {
    /// A node before the target with [`HINT_HEIGHT`] links, a few steps from it; or the head. And
    /// on how many levels a search has to go on from there.
    #[inline]
    pub(super) fn begin(&self, target: &Target<'_>) -> (*const Node, usize) {
        let height = self.height();
        let near = if height < MARKED_FROM { None } else { self.landmark(target) };
        near.map_or((self.head().cast_const(), height), |near| (near, HINT_HEIGHT))
    }

    /// The last node before the target on the level of landmarks, if one is near.
    #[inline]
    pub(super) fn landmark(&self, target: &Target<'_>) -> Option<*const Node> {
        let landmarks = self.landmarks.get_or_init(Landmarks::new);
        if landmarks.are_due() {
            let extent =
                || Extent { head: self.head(), last: self.find_last(), entries: self.count() };
            // SAFETY: they are of this list.
            unsafe { landmarks.build_more(extent) };
        }
        // SAFETY: they are of this list.
        let mut at = unsafe { landmarks.before(target, self.head()) }?;
        let mut stop = ptr::null();
        for _ in 0..=NEAR {
            // SAFETY: the head has all links; a landmark is a node before the target with a link on
            // this level.
            match unsafe { next_before(at, HINT_HEIGHT - 1, target, &mut stop) } {
                Some(next) => at = next,
                None => return Some(at),
            }
        }
        landmarks.was_far(self.count());
        None
    }

    /// The newest entry of `key` with a sequence number not greater than `seq`.
    #[inline]
    pub(super) fn get(&self, key: &[u8], seq: SeqNo) -> Option<MemEntry<'_>> {
        let target = Target::at(key, seq);
        let (mut at, mut level) = self.begin(&target);
        // The nearest node not before the target that has the target's head.
        let mut found: *const Node = ptr::null();
        // SAFETY: as in `SkipList::find_splice`.
        unsafe {
            while level > 0 {
                let link = link(at, level - 1);
                let head = link.head.load(Ordering::Acquire);
                if head < target.head {
                    at = link.next.load(Ordering::Acquire);
                    continue;
                }
                if head == target.head {
                    let next = link.next.load(Ordering::Acquire);
                    if next.cast_const() != found && !next.is_null() {
                        if target.is_after(next) {
                            at = next;
                            continue;
                        }
                        found = next;
                    }
                }
                level -= 1;
            }
            if found.is_null() || node_key(found) != key {
                return None;
            }
            debug_assert!(node_entry(found).seq <= seq);
            Some(node_entry(found))
        }
    }

    /// The last node before `target`, or the head.
    pub(super) fn find_before(&self, target: &Target<'_>) -> *const Node {
        let (from, top) = self.begin(target);
        // SAFETY: a search may begin there.
        unsafe { self.find_before_from(from, top, target, |_, _| {}) }
    }

    /// As [`SkipList::find_before`], from a node before the target on. Tells `passed` of each level
    /// below `top`, and the last node before the target there.
    ///
    /// # Safety
    /// `from` is a node of this list that is before the target, or its head, and has links on all
    /// levels below `top`.
    #[inline]
    pub(super) unsafe fn find_before_from(
        &self,
        from: *const Node,
        top: usize,
        target: &Target<'_>,
        mut passed: impl FnMut(usize, *const Node),
    ) -> *const Node {
        let mut at = from;
        let mut level = top;
        // The nearest node known not to be before the target.
        let mut stop: *const Node = ptr::null();
        // SAFETY: as in `SkipList::find_splice`.
        unsafe {
            while level > 0 {
                let link = link(at, level - 1);
                let head = link.head.load(Ordering::Acquire);
                if head <= target.head {
                    let next = link.next.load(Ordering::Acquire).cast_const();
                    if head < target.head
                        || (!next.is_null() && next != stop && target.is_after(next))
                    {
                        at = next;
                        continue;
                    }
                    stop = next;
                }
                level -= 1;
                passed(level, at);
            }
        }
        at
    }

    /// The first node not before `target`, or null.
    pub(super) fn find_at(&self, target: &Target<'_>) -> *const Node {
        let mut at = self.find_before(target);
        // SAFETY: `at` is the head or a node of the list.
        unsafe {
            loop {
                let next = link(at, 0).next.load(Ordering::Acquire);
                if next.is_null() || !target.is_after(next) {
                    return next;
                }
                at = next;
            }
        }
    }

    /// The last node, or the head.
    pub(super) fn find_last(&self) -> *const Node {
        let mut at: *const Node = self.head();
        // SAFETY: as in `SkipList::find_splice`; a next node has a link on the level of its link.
        unsafe {
            for level in (0..self.height()).rev() {
                loop {
                    let next = link(at, level).next.load(Ordering::Acquire);
                    if next.is_null() {
                        break;
                    }
                    at = next;
                }
            }
        }
        at
    }
}
