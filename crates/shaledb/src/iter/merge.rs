//! Several sorted cursors as one: a loser tree.
//!
//! Every child's current key is present in the tree by its *head*: eight bytes of it as a number
//! (those after a prefix that most keys share, if one was told).
//! Most comparisons are decided by two heads and touch no key. A child that has ended has the head
//! that loses, so that an ended child costs nothing special either.
//!
//! A step advances the winner and replays its path to the root: log2(children) comparisons. When
//! one child wins again and again (sorted or clustered data, the usual case in compaction), the
//! best of the others (the *runner*) is remembered, and a step costs one comparison.
//!
//! The order is that of [`crate::base::key`]. Where two children have the very same entry, the
//! child given first comes first. The error of a child ends the merge with that error; a seek
//! starts it anew.

use super::source::Source;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{self, Kind, SeqNo};
use std::cmp::Ordering;

/// After how many wins in a row the runner is worth finding.
const STREAK: u32 = 2;

/// A child in the tree.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The head of its current key; if it has ended, the head that loses in this direction.
    head: u64,
    /// Its index.
    child: u32,
    /// Whether it is at an entry.
    live: bool,
}

const NOBODY: Slot = Slot { head: 0, child: 0, live: false };

/// The entries of several cursors in one order.
#[derive(Debug)]
pub struct Merge<C> {
    children: Vec<C>,
    /// The losers of the inner nodes 1..n; the leaf of child i is node n + i, and the parent of
    /// node i is i / 2. While the tree is built, 2n places hold the winners of all nodes.
    tree: Vec<Slot>,
    /// The child whose entry is the current one.
    winner: Slot,
    /// The best of all others, if `streak` says that it is known.
    runner: Slot,
    /// How often in a row the winner has won; over [`STREAK`]: the runner is known.
    streak: u32,
    /// Whether the children stand for going backward: each at its last entry before the current
    /// one instead of its first after it.
    reverse: bool,
    /// What most keys begin with; their heads begin after it.
    prefix: Vec<u8>,
    /// The current key while the children are being turned around.
    turn: Vec<u8>,
}

impl<C: Cursor> Merge<C> {
    /// A merge of `children`; not valid until a seek.
    pub fn new(children: Vec<C>) -> Merge<C> {
        assert!(u32::try_from(children.len()).is_ok(), "a slot has a number for each child");
        let tree = vec![NOBODY; 2 * children.len()];
        Merge {
            children,
            tree,
            winner: NOBODY,
            runner: NOBODY,
            streak: 0,
            reverse: false,
            prefix: Vec::new(),
            turn: Vec::new(),
        }
    }

    /// Tells what most keys begin with (such as the common prefix of the smallest and the largest
    /// of them), so that heads tell more. Keys that do not begin with it are right, but slower.
    pub fn with_prefix(mut self, prefix: &[u8]) -> Merge<C> {
        self.prefix = prefix.to_vec();
        self
    }

    /// What [`Merge::with_prefix`] was told.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Gives out the children to be changed. Not valid until a seek of keys of which most begin
    /// with `prefix`.
    pub fn change(&mut self, prefix: &[u8]) -> &mut [C] {
        self.winner.live = false;
        self.streak = 0;
        prefix.clone_into(&mut self.prefix);
        &mut self.children
    }

    /// The child whose entry is the current one. Only while valid.
    #[inline]
    pub fn current(&self) -> &C {
        &self.children[self.winner.child as usize]
    }

    /// The child whose entry comes next of all but the current child's. Only while valid.
    pub fn rival(&self) -> Option<&C> {
        if self.children.len() < 2 {
            return None;
        }
        let winner = self.winner.child;
        let rival = if self.reverse {
            self.find_runner::<true>(winner)
        } else {
            self.find_runner::<false>(winner)
        };
        rival.live.then(|| &self.children[rival.child as usize])
    }

    /// Moves the current child to its next entry, which is known to come before those of all
    /// others. Only while going forward.
    #[inline]
    pub fn next_of_current(&mut self) -> Result<()> {
        debug_assert!(!self.reverse && self.winner.live);
        match self.children[self.winner.child as usize].next() {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    /// As [`Merge::next_of_current`], to its previous entry. Only while going backward.
    #[inline]
    pub fn prev_of_current(&mut self) -> Result<()> {
        debug_assert!(self.reverse && self.winner.live);
        match self.children[self.winner.child as usize].prev() {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    /// Moves the current child by `step`, which must move it forward: past more than one entry if
    /// it likes, such as to the next block. Only while going forward.
    pub fn advance_current(&mut self, step: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
        debug_assert!(!self.reverse && self.winner.live);
        if let Err(error) = step(&mut self.children[self.winner.child as usize]) {
            return self.fail(error);
        }
        // Not by `rank_winner`, which would then no longer be inlined into `next`.
        let slot = self.slot::<false>(self.winner.child);
        self.replay::<false>(slot);
        Ok(())
    }

    /// The children, in the order given.
    pub fn children(&self) -> &[C] {
        &self.children
    }

    /// Goes forward to the first entry at or after (key, seq); stays if it is there or past it.
    /// Only children that are behind are moved.
    pub fn advance_to(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if self.reverse || !self.winner.live {
            return self.seek(key, seq);
        }
        while self.winner.live {
            let child = &mut self.children[self.winner.child as usize];
            if key::compare(child.key(), child.seq(), key, seq) != Ordering::Less {
                break;
            }
            let moved = child.seek(key, seq);
            self.rank_winner::<false>(moved)?;
        }
        Ok(())
    }

    /// Goes back to the last entry before (key, seq); stays if it is there or before it.
    /// Only children that are behind are moved.
    pub fn retreat_to(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if !self.reverse || !self.winner.live {
            return self.seek_back(key, seq);
        }
        while self.winner.live {
            let child = &mut self.children[self.winner.child as usize];
            if key::compare(child.key(), child.seq(), key, seq) == Ordering::Less {
                break;
            }
            let moved = child.seek_back(key, seq);
            self.rank_winner::<true>(moved)?;
        }
        Ok(())
    }

    /// The head of a key: for distinct heads, their order is the order of the keys.
    #[inline]
    fn head(&self, key: &[u8]) -> u64 {
        if self.prefix.is_empty() {
            // Not left to `strip_prefix`: comparing with an empty vector, whose pointer points
            // nowhere, costs a masked load that faults, some 40 ns.
            return key::head(key);
        }
        match key.strip_prefix(self.prefix.as_slice()) {
            Some(rest) => key::head(rest),
            None if key < self.prefix.as_slice() => 0,
            None => u64::MAX,
        }
    }

    /// The child as it stands in the tree.
    #[inline]
    fn slot<const REVERSE: bool>(&self, child: u32) -> Slot {
        let cursor = &self.children[child as usize];
        if cursor.valid() {
            Slot { head: self.head(cursor.key()), child, live: true }
        } else {
            Slot { head: if REVERSE { 0 } else { u64::MAX }, child, live: false }
        }
    }

    /// Whether `a` comes before `b` in this direction.
    #[inline]
    fn beats<const REVERSE: bool>(&self, a: Slot, b: Slot) -> bool {
        if a.head != b.head {
            return (a.head < b.head) != REVERSE;
        }
        self.beats_by_key::<REVERSE>(a, b)
    }

    /// [`Merge::beats`] where the heads are equal.
    #[inline(never)]
    fn beats_by_key<const REVERSE: bool>(&self, a: Slot, b: Slot) -> bool {
        if !a.live || !b.live {
            return a.live || (!b.live && a.child < b.child);
        }
        let (x, y) = (&self.children[a.child as usize], &self.children[b.child as usize]);
        let order = key::compare(x.key(), x.seq(), y.key(), y.seq());
        let order = order.then(a.child.cmp(&b.child));
        (order == Ordering::Less) != REVERSE
    }

    /// Plays the whole tree, after all children have moved.
    fn build<const REVERSE: bool>(&mut self) {
        self.reverse = REVERSE;
        self.streak = 0;
        let count = self.children.len();
        if count == 0 {
            self.winner = NOBODY;
            return;
        }
        for child in 0..count {
            self.tree[count + child] = self.slot::<REVERSE>(child as u32);
        }
        for node in (1..count).rev() {
            let (a, b) = (self.tree[2 * node], self.tree[2 * node + 1]);
            self.tree[node] = if self.beats::<REVERSE>(b, a) { b } else { a };
        }
        self.winner = self.tree[1];
        // From the root down, each node's winner gives way to the loser of the two below it.
        for node in 1..count {
            let (a, b) = (self.tree[2 * node], self.tree[2 * node + 1]);
            self.tree[node] = if self.tree[node].child == a.child { b } else { a };
        }
        debug_assert!(self.winner_leads::<REVERSE>());
    }

    /// Whether none of the others comes before the winner.
    fn winner_leads<const REVERSE: bool>(&self) -> bool {
        let others = (0..self.children.len() as u32).filter(|&child| child != self.winner.child);
        let mut slots = others.map(|child| self.slot::<REVERSE>(child));
        slots.all(|slot| !self.beats::<REVERSE>(slot, self.winner))
    }

    /// Puts the winner where it belongs after it has moved.
    #[inline]
    fn rank_winner<const REVERSE: bool>(&mut self, moved: Result<()>) -> Result<()> {
        if let Err(error) = moved {
            return self.fail(error);
        }
        if let [only] = self.children.as_slice() {
            // Nobody to compare with: no head is needed.
            self.winner.live = only.valid();
            return Ok(());
        }
        let slot = self.slot::<REVERSE>(self.winner.child);
        if self.streak > STREAK && self.beats::<REVERSE>(slot, self.runner) {
            debug_assert!(self.runner.child != slot.child, "the runner is one of the others");
            self.winner = slot;
        } else {
            self.replay::<REVERSE>(slot);
        }
        Ok(())
    }

    /// Plays the matches on the path from `slot` to the root.
    fn replay<const REVERSE: bool>(&mut self, slot: Slot) {
        let mut best = slot;
        let mut node = (self.children.len() + slot.child as usize) / 2;
        while node > 0 {
            let loser = self.tree[node];
            if self.beats::<REVERSE>(loser, best) {
                self.tree[node] = best;
                best = loser;
            }
            node /= 2;
        }
        self.winner = best;
        debug_assert!(
            self.children.len() < 2
                || !self.beats::<REVERSE>(self.find_runner::<REVERSE>(best.child), best),
            "who wins comes first"
        );
        if best.child != slot.child {
            self.streak = 0;
            return;
        }
        self.streak += 1;
        if self.streak > STREAK {
            self.runner = self.find_runner::<REVERSE>(slot.child);
        }
    }

    /// The best of all children but the winner: one of those that lost against it.
    fn find_runner<const REVERSE: bool>(&self, winner: u32) -> Slot {
        let mut node = (self.children.len() + winner as usize) / 2;
        let mut best = self.tree[node];
        node /= 2;
        while node > 0 {
            if self.beats::<REVERSE>(self.tree[node], best) {
                best = self.tree[node];
            }
            node /= 2;
        }
        best
    }

    /// Ends the merge.
    #[cold]
    fn fail<T>(&mut self, error: crate::base::error::Error) -> Result<T> {
        self.winner.live = false;
        self.streak = 0;
        Err(error)
    }

    /// Moves every child, then builds the tree.
    fn move_all<const REVERSE: bool>(
        &mut self,
        mut to: impl FnMut(usize, &mut C) -> Result<()>,
    ) -> Result<()> {
        self.winner.live = false;
        for (index, child) in self.children.iter_mut().enumerate() {
            to(index, child)?;
        }
        self.build::<REVERSE>();
        Ok(())
    }

    /// Turns all children around and makes one step in the new direction.
    #[cold]
    fn turn_around<const REVERSE: bool>(&mut self) -> Result<()> {
        let winner = self.winner.child as usize;
        let mut key = std::mem::take(&mut self.turn);
        key.clear();
        key.extend_from_slice(self.children[winner].key());
        let seq = self.children[winner].seq();
        debug_assert!(self.winner.live && self.reverse != REVERSE, "there is a way back");
        let turned = self.move_all::<REVERSE>(|index, child| match (index == winner, REVERSE) {
            (true, true) => child.prev(),
            (true, false) => child.next(),
            (false, true) => child.seek_back(&key, seq),
            (false, false) => child.seek(&key, seq),
        });
        self.turn = key;
        turned
    }
}

impl<C: Source> Merge<C> {
    /// Lets the current child go forward to `key`, or less far, if all that it passes over is older
    /// than `below`. Answers whether it moved; the others follow when their turn comes.
    /// Only while going forward.
    pub fn skip_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        debug_assert!(!self.reverse && self.winner.live);
        match self.children[self.winner.child as usize].skip_to(key, below) {
            Ok(false) => Ok(false),
            Ok(true) => self.rank_winner::<false>(Ok(())).map(|()| true),
            Err(error) => self.fail(error),
        }
    }

    /// As [`Merge::skip_to`], back to before `key`. Only while going backward.
    pub fn skip_back_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        debug_assert!(self.reverse && self.winner.live);
        match self.children[self.winner.child as usize].skip_back_to(key, below) {
            Ok(false) => Ok(false),
            Ok(true) => self.rank_winner::<true>(Ok(())).map(|()| true),
            Err(error) => self.fail(error),
        }
    }
}

impl<C: Cursor> Cursor for Merge<C> {
    #[inline]
    fn valid(&self) -> bool {
        self.winner.live
    }

    fn seek_first(&mut self) -> Result<()> {
        self.move_all::<false>(|_, child| child.seek_first())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.move_all::<true>(|_, child| child.seek_last())
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.move_all::<false>(|_, child| child.seek(key, seq))
    }

    fn seek_back(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        self.move_all::<true>(|_, child| child.seek_back(key, seq))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if !self.winner.live {
            return Ok(());
        }
        if self.reverse {
            return self.turn_around::<false>();
        }
        let moved = self.children[self.winner.child as usize].next();
        self.rank_winner::<false>(moved)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if !self.winner.live {
            return Ok(());
        }
        if !self.reverse {
            return self.turn_around::<true>();
        }
        let moved = self.children[self.winner.child as usize].prev();
        self.rank_winner::<true>(moved)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current().key()
    }

    #[inline]
    fn seq(&self) -> SeqNo {
        self.current().seq()
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.current().kind()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().value()
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
