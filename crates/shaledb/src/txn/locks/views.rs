//! What others may see of the lock table: who is there, what they hold, how much it takes.

use super::cell::LockedCell;
use super::live::Live;
use super::lock::{Lock, Mode, Span, TxnId};
use super::owner::Owner;
use super::table::LockTable;
use super::writers::{Search, Writers};
use crate::version::TreeId;
use std::collections::BTreeSet;

impl LockTable {
    /// The transactions that have begun and not ended, oldest first.
    pub fn live(&self) -> Vec<Live> {
        let mut all = self.live.all();
        let waits = self.waits.lock();
        for live in &mut all {
            if let Some(waiter) = waits.get(&live.id) {
                live.blockers = self.blockers(&waits, live.id);
                live.waiting = Some(waiter.waiting.clone());
            }
        }
        all
    }

    /// The shards, in an order in which no lock is missed that is held all the while: keys may
    /// become a range meanwhile (`escalate`), and no range becomes keys. A range is in all shards
    /// and is looked for in the first one, which therefore comes last.
    fn first_last(&self) -> impl Iterator<Item = (usize, &LockedCell)> {
        self.cells.iter().enumerate().rev()
    }

    /// Tells `found` of the locks that are held (false) and waited for (true), in no order and not
    /// all as of one moment, until it answers false. What is held all the while is among them.
    pub fn each(&self, found: &mut dyn FnMut(TxnId, Lock<'_>, bool) -> bool) {
        let mut continues = true;
        for (index, cell) in self.first_last() {
            cell.lock().shard.each(&mut |owner, lock, waits| {
                // A range is in all shards, and so are requests for it.
                if index == 0 || matches!(lock.span, Span::Key(_)) {
                    continues = found(owner, lock, waits);
                }
                continues
            });
            if !continues {
                return;
            }
        }
    }

    /// Whether nobody is in the way of a range, in any shard. Others may come before it is asked
    /// for.
    pub fn is_free(&self, owner: &Owner, lock: Lock<'_>) -> bool {
        self.cells.iter().all(|cell| cell.lock().shard.is_free(owner.id, lock))
    }

    /// Whether anybody holds a lock in a tree, or waits for one, that excludes a shared one.
    pub fn is_locked(&self, tree: TreeId) -> bool {
        // What is in the way of one who asks for all of it, and is nobody.
        let lock = Lock { tree, span: Span::Range(b"", None), mode: Mode::Shared };
        !self.cells.iter().all(|cell| cell.lock().shard.is_free(0, lock))
    }

    /// Whether the owner holds a key, or a range that it is in, in this mode or a stronger one.
    pub fn holds(&self, owner: &Owner, tree: TreeId, key: &[u8], mode: Mode) -> bool {
        self.cells[self.shard_of(tree, key)].lock().shard.holds(owner.id, tree, key, mode)
    }

    /// Where the first place of a range is, from its lower end or `backward` from its upper one, at
    /// which another holds a lock to write. One who locks no gaps asks so what is written there
    /// that he does not see, and then for the lock of that key. Others may come while he looks.
    pub fn writers(
        &self,
        owner: &Owner,
        tree: TreeId,
        (lower, upper): (&[u8], Option<&[u8]>),
        backward: bool,
    ) -> Writers {
        if upper.is_some_and(|upper| upper <= lower) {
            return Writers::Nowhere;
        }
        let mut search = Search::new(owner.id, (lower, upper), backward);
        for (index, cell) in self.first_last() {
            if cell.bytes() == 0 {
                continue;
            }
            cell.lock().shard.look_for_writers(tree, &mut search, index == 0);
        }
        search.end()
    }

    /// How many keys and ranges are held, and how many requests wait. A range counts once.
    pub fn counts(&self) -> (usize, usize, usize) {
        let mut waiting = BTreeSet::new();
        let mut sums = (0, 0);
        for (index, cell) in self.cells.iter().enumerate() {
            let (keys, ranges) = cell.lock().shard.counts(&mut waiting);
            sums.0 += keys;
            sums.1 += if index == 0 { ranges } else { 0 };
        }
        (sums.0, sums.1, waiting.len())
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.cells.iter().map(LockedCell::bytes).sum()
    }
}
