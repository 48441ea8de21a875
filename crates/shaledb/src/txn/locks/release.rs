//! Letting go of locks: at the end, or of what the last calls have got.

use super::lock::{Lock, Mode, Span, TxnId};
use super::owner::{Claim, HeldKey, KeysMark, Owner};
use super::shard::Left;
use super::table::LockTable;
use crate::version::TreeId;

impl LockTable {
    /// Lets go of everything, and takes back what is waited for.
    pub fn release(&self, owner: &mut Owner) {
        if owner.pending.is_some() && !self.give_up(owner) {
            // Decided meanwhile: what was granted is let go of with the rest.
            let _ = self.end_wait(owner);
        }
        (owner.key_bytes, owner.keys_unmerged) = (0, 0);
        (owner.gaps_new, owner.gaps_left) = (0, 0);
        owner.claims.clear();
        let mut parts = Vec::new();
        for held in owner.keys.drain(..) {
            let mut cell = self.cells[usize::from(held.shard)].lock();
            let was_held = cell.shard.release(owner.id, held.tree, &held.key);
            debug_assert!(was_held, "a transaction lists only keys that it holds");
            add_new(&mut parts, cell.promote(held.tree));
            cell.shard.tidy();
        }
        owner.slot.seen.note_keys(0);
        if let Some(list_at) = owner.live_at.take() {
            self.live.remove(owner.id, list_at);
        }
        debug_assert!(owner.pending.is_none(), "who ends does not wait");
        self.release_ranges(owner, true, &mut parts);
        self.grant_parts(parts);
    }

    /// Lets go of all that is not to write.
    pub fn release_reads(&self, owner: &mut Owner) {
        debug_assert!(owner.pending.is_none(), "who waits goes on to lock");
        (owner.gaps_new, owner.gaps_left) = (0, 0);
        owner.claims.clear();
        owner.range_is_new = false;
        let mut parts = Vec::new();
        for held in std::mem::take(&mut owner.keys) {
            let mut cell = self.cells[usize::from(held.shard)].lock();
            if cell.shard.mode_of(owner.id, held.tree, &held.key) == Some(Mode::Write) {
                owner.keys.push(held);
                continue;
            }
            cell.shard.release(owner.id, held.tree, &held.key);
            add_new(&mut parts, cell.promote(held.tree));
        }
        // A mark of before is not one of these.
        owner.merges += 1;
        owner.key_bytes = owner.keys.iter().map(HeldKey::bytes).sum();
        owner.keys_unmerged = owner.keys_unmerged.min(owner.keys.len());
        owner.slot.seen.note_keys(owner.keys.len());
        self.release_ranges(owner, false, &mut parts);
        self.grant_parts(parts);
    }

    /// Lets go of ranges, with `written` also of those to write; adds whose parts are free.
    fn release_ranges(&self, owner: &mut Owner, written: bool, parts: &mut Vec<TxnId>) {
        let id = owner.id;
        owner.ranges.retain(|&tree| {
            let mut left = false;
            for cell in &self.cells {
                let mut cell = cell.lock();
                if cell.shard.release_ranges(id, tree, written) {
                    add_new(parts, cell.promote(tree));
                }
                if !written {
                    cell.shard.each_range(id, tree, &mut |_| left = true);
                }
                cell.shard.tidy();
            }
            left
        });
    }

    /// Gives up what the owner has claimed of a tree beyond what it uses: see
    /// [`LockTable::claim`].
    pub fn give_up_claim(&self, owner: &mut Owner, tree: TreeId) {
        if let Some(at) = owner.claims.iter().position(|claim| claim.tree == tree) {
            let claim = owner.claims.swap_remove(at);
            self.give_up_unused(owner.id, &claim);
        }
    }

    /// Gives up what the owner has claimed anywhere beyond what it uses.
    pub(super) fn give_up_claims(&self, owner: &mut Owner) {
        for claim in std::mem::take(&mut owner.claims) {
            self.give_up_unused(owner.id, &claim);
        }
    }

    fn give_up_unused(&self, owner: TxnId, claim: &Claim) {
        let Claim { tree, lower, upper, used, .. } = claim;
        if used == upper {
            return;
        }
        let used = Lock { tree: *tree, span: Span::Range(lower, Some(used)), mode: Mode::Gap };
        let mut parts = Vec::new();
        for cell in &self.cells {
            let mut cell = cell.lock();
            cell.shard.take_back(owner, *tree);
            if claim.lower < claim.used {
                cell.shard.cover(owner, used);
            }
            add_new(&mut parts, cell.promote(*tree));
        }
        self.grant_parts(parts);
    }

    /// Gives up what the last call has got of a key, unless it was to write: what the owner had of
    /// it before, it has again. Answers whether it has nothing now.
    pub fn give_up_last(&self, owner: &mut Owner, tree: TreeId, key: &[u8]) -> bool {
        let mut cell = self.cells[self.shard_of(tree, key)].lock();
        let left = cell.shard.give_up_last(owner.id, tree, key);
        let parts = if left == Left::All { Vec::new() } else { cell.promote(tree) };
        drop(cell);
        self.grant_parts(parts);
        let released = left == Left::Nothing;
        let is_it = |held: &HeldKey| held.tree == tree && *held.key == *key;
        if released && let Some(at) = owner.keys.iter().rposition(is_it) {
            // Mostly the last; the order stays, for marks.
            let held = owner.keys.remove(at);
            owner.key_bytes = owner.key_bytes.saturating_sub(held.bytes());
            owner.slot.seen.note_keys(owner.keys.len());
        }
        released
    }

    /// Lets go of the keys that were got to write since a mark and that no other call has asked
    /// for: what was written there has been undone.
    pub fn release_undone(&self, owner: &mut Owner, mark: KeysMark) {
        if owner.merges != mark.merges {
            return;
        }
        let mut parts = Vec::new();
        let since = owner.keys.split_off(mark.keys.min(owner.keys.len()));
        for held in since {
            let mut cell = self.cells[usize::from(held.shard)].lock();
            if cell.shard.release_undone(owner.id, held.tree, &held.key) {
                add_new(&mut parts, cell.promote(held.tree));
                owner.key_bytes = owner.key_bytes.saturating_sub(held.bytes());
            } else {
                owner.keys.push(held);
            }
        }
        owner.slot.seen.note_keys(owner.keys.len());
        self.grant_parts(parts);
    }

    /// Holds a key, which the last call has got to write, in a weaker mode to the end, or in that
    /// which the owner had it in before.
    pub fn keep_as(&self, owner: &Owner, tree: TreeId, key: &[u8], mode: Mode) {
        let mut cell = self.cells[self.shard_of(tree, key)].lock();
        let left = cell.shard.keep_as(owner.id, tree, key, mode);
        let parts = if left == Left::All { Vec::new() } else { cell.promote(tree) };
        drop(cell);
        self.grant_parts(parts);
    }
}

/// Adds those that are not there.
fn add_new(all: &mut Vec<TxnId>, more: Vec<TxnId>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}
