//! Asking for locks: of what nobody disputes, in one shard after the other.

use super::ask::{Ask, Wait};
use super::escalate::FEW;
use super::lock::{Lock, Mode, Span};
use super::owner::{Claim, HeldKey, Owner};
use super::refusal::Refusal;
use super::shard::Decision;
use super::table::LockTable;
use crate::fs::Clock;
use crate::version::TreeId;

impl LockTable {
    /// Gets a lock for `owner`, or says why not. What is granted stays until
    /// [`LockTable::release`].
    pub fn acquire(
        &self,
        owner: &mut Owner,
        lock: Lock<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        self.acquire_ask(owner, Ask { first: lock, row: None }, wait, clock)
    }

    /// Gets the lock of a row together with that of a range that leads to it, of the same tree: as
    /// long as one of the two has to wait, neither is held.
    pub fn acquire_row(
        &self,
        owner: &mut Owner,
        range: Lock<'_>,
        row: Lock<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        debug_assert!(matches!((range.span, row.span), (Span::Range(..), Span::Key(_))));
        self.acquire_ask(owner, Ask { first: range, row: Some(row) }, wait, clock)
    }

    /// Locks the gaps of a range, if nobody is in the way, of which the owner is going to make use
    /// from its beginning on, by the number that this answers with ([`Owner::use_claim`]). It is
    /// given up beyond what is in use as soon as the owner waits for anything: nobody is to wait
    /// for one who has not come to the place and cannot. So it is when the owner asks for another
    /// range of the tree, with which it would become one.
    pub fn claim(
        &self,
        owner: &mut Owner,
        tree: TreeId,
        (lower, upper): (&[u8], &[u8]),
        clock: &dyn Clock,
    ) -> Result<u64, Refusal> {
        let lock = Lock { tree, span: Span::Range(lower, Some(upper)), mode: Mode::Gap };
        owner.range_is_new = false;
        self.acquire(owner, lock, Wait::Never, clock)?;
        owner.claims_made += 1;
        let number = owner.claims_made;
        // What it had before is not to be given up: it stays locked, whatever becomes of this.
        if owner.range_is_new {
            let (lower, upper) = (lower.to_vec(), upper.to_vec());
            debug_assert!(owner.claims.iter().all(|claim| claim.tree != tree));
            owner.claims.push(Claim { number, tree, used: lower.clone(), lower, upper });
        }
        Ok(number)
    }

    fn acquire_ask(
        &self,
        owner: &mut Owner,
        ask: Ask<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        if owner.pending.is_some() && self.resume_pending(owner, ask)? {
            return Ok(());
        }
        let before = owner.keys.len();
        let mut result = self.acquire_all(owner, ask, wait, clock);
        if matches!(result, Err(Refusal::Full { .. }))
            && self.may_escalate(owner)
            && self.escalate(owner, FEW)
        {
            result = self.acquire_all(owner, ask, wait, clock);
        }
        if owner.keys.len() > before && self.is_crowded(owner) {
            self.escalate(owner, FEW);
        }
        result
    }

    #[inline]
    fn acquire_all(
        &self,
        owner: &mut Owner,
        ask: Ask<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        let lock = ask.first;
        let Span::Key(key) = lock.span else {
            return self.acquire_range(owner, ask, wait, clock);
        };
        match self.request(owner, self.shard_of(lock.tree, key), lock) {
            Some(result) => result,
            None => self.wait(owner, ask, wait, clock),
        }
    }

    fn acquire_range(
        &self,
        owner: &mut Owner,
        ask: Ask<'_>,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<(), Refusal> {
        let range = ask.first;
        if self.has_many_gaps(owner) {
            self.merge_gaps(owner);
        }
        // Noted before, so that what is granted in part is let go of at the end.
        if !owner.ranges.contains(&range.tree) {
            owner.ranges.push(range.tree);
        }
        self.give_up_claim(owner, range.tree);
        let (mut new, mut bounds) = (0, None);
        let mut refused = None;
        for (shard, cell) in self.cells.iter().enumerate() {
            let mut cell = cell.lock();
            match cell.shard.request_range(owner.id, range, &mut bounds, self.shard_bytes_max) {
                Decision::Held => {}
                Decision::Granted(_) => new |= 1 << shard,
                other => {
                    refused = Some(self.note(owner, shard, range.tree, other));
                    break;
                }
            }
        }
        if let (None, Some(row)) = (&refused, ask.row)
            && let Span::Key(key) = row.span
        {
            refused = Some(self.request(owner, self.shard_of(row.tree, key), row));
        }
        match refused {
            None | Some(Some(Ok(()))) => {
                owner.range_is_new = new != 0;
                owner.gaps_new += usize::from(new != 0 && range.mode == Mode::Gap);
                return Ok(());
            }
            _ => self.take_back(owner, range.tree, new),
        }
        match refused {
            Some(Some(result)) => result,
            _ => self.wait(owner, ask, wait, clock),
        }
    }

    /// Lets go of the range granted last, in the shards of a set.
    #[cold]
    fn take_back(&self, owner: &Owner, tree: TreeId, shards: u32) {
        let mut parts = Vec::new();
        for (shard, cell) in self.cells.iter().enumerate() {
            if shards & (1 << shard) != 0 {
                let mut cell = cell.lock();
                cell.shard.take_back(owner.id, tree);
                parts.append(&mut cell.promote(tree));
            }
        }
        self.grant_parts(parts);
    }

    #[inline]
    fn request(
        &self,
        owner: &mut Owner,
        shard: usize,
        lock: Lock<'_>,
    ) -> Option<Result<(), Refusal>> {
        let decision = self.cells[shard].lock().shard.request(owner.id, lock, self.shard_bytes_max);
        self.note(owner, shard, lock.tree, decision)
    }

    /// Notes what was granted; `None` if others are in the way.
    fn note(
        &self,
        owner: &mut Owner,
        shard: usize,
        tree: TreeId,
        decision: Decision,
    ) -> Option<Result<(), Refusal>> {
        match decision {
            Decision::Busy => None,
            Decision::Full => {
                let bytes_max = self.bytes_max() as u64;
                Some(Err(Refusal::Full { bytes_max }))
            }
            Decision::Held | Decision::Granted(None) => Some(Ok(())),
            Decision::Granted(Some(key)) => {
                debug_assert_eq!(self.shard_of(tree, &key), shard, "a key has one shard");
                owner.hold(HeldKey { tree, shard: shard as u8, key });
                Some(Ok(()))
            }
        }
    }
}
