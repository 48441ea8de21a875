//! Group commit: who leads, who waits, and who learns what.
//!
//! A commit joins the open group. If no group is being written, its thread leads: it takes the
//! open group, writes it (log, sync, memtables), and tells the others. Commits that arrive
//! meanwhile gather in the next group, so one sync serves many. A thread that is alone takes two
//! uncontended locks and no wait. What "write the group" means is the caller's: the queue knows no
//! log and no memtable, which lets a test explore its interleavings.

use super::ops::Ops;
use crate::base::error::{Error, Result};
use crate::base::rank;
use crate::base::sync::{Condvar, Mutex};

/// Commits that go to the log together.
#[derive(Debug, Default)]
pub struct Group {
    /// The operations of all commits, one after the other.
    pub ops: Ops,
    /// Where each commit ends: (bytes of operations, count of operations).
    pub ends: Vec<(usize, u32)>,
    /// Whether any of them asks for a sync.
    pub sync: bool,
    id: u64,
    /// How many threads wait for this group's result or lead it.
    members: usize,
}

impl Group {
    /// The encoded operations of each commit and their count, in order.
    pub fn commits(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let mut from = (0, 0);
        self.ends.iter().map(move |&(bytes, count)| {
            let commit = (&self.ops.bytes()[from.0..bytes], count - from.1);
            from = (bytes, count);
            commit
        })
    }

    /// A group of a single commit that asks for no sync.
    pub fn of_one(ops: &Ops) -> Group {
        let mut group = Group::default();
        group.join(ops, false);
        group
    }

    fn join(&mut self, ops: &Ops, sync: bool) {
        if !ops.is_empty() {
            self.ops.append(ops);
            self.ends.push((self.ops.bytes().len(), self.ops.count()));
        }
        self.sync |= sync;
        self.members += 1;
    }

    fn reset(&mut self, id: u64) {
        self.ops.clear();
        self.ends.clear();
        self.sync = false;
        self.members = 0;
        self.id = id;
    }
}

#[derive(Debug)]
struct State {
    open: Group,
    /// A group whose memory is free for reuse.
    spare: Option<Group>,
    leading: bool,
    /// Every group up to this one has been written or has failed.
    done: u64,
    /// Groups that failed and how many of their commits have yet to learn it.
    failed: Vec<(u64, Error, usize)>,
    /// How many threads wait, by the parity of their group: whether a wake-up is worth its cost.
    waiting: [usize; 2],
}

/// The queue of commits.
#[derive(Debug)]
pub struct CommitQueue {
    state: Mutex<State, { rank::QUEUE }>,
    /// One for each parity of the group number, so that finishing a group wakes just its members.
    wake: [Condvar; 2],
}

impl Default for CommitQueue {
    fn default() -> CommitQueue {
        CommitQueue::new()
    }
}

impl CommitQueue {
    /// An empty queue.
    pub fn new() -> CommitQueue {
        CommitQueue {
            state: Mutex::new(State {
                open: Group { id: 1, ..Group::default() },
                spare: Some(Group::default()),
                leading: false,
                done: 0,
                failed: Vec::new(),
                waiting: [0; 2],
            }),
            wake: [Condvar::new(), Condvar::new()],
        }
    }

    /// Commits `ops`, together with whatever else waits: `lead` is called by one thread at a time,
    /// with the group to write. Its result goes to every commit of the group.
    pub fn commit(
        &self,
        ops: &Ops,
        sync: bool,
        lead: impl FnOnce(&mut Group) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        let id = state.open.id;
        let parity = (id & 1) as usize;
        state.open.join(ops, sync);
        while state.leading && state.done < id {
            state.waiting[parity] += 1;
            state = self.wake[parity].wait(state);
            state.waiting[parity] -= 1;
        }
        if state.done >= id {
            return take_result(&mut state.failed, id);
        }
        state.leading = true;
        let mut next = state.spare.take().unwrap_or_default();
        next.reset(id + 1);
        let mut group = std::mem::replace(&mut state.open, next);
        drop(state);

        // If `lead` panics, waiters must not hang: the guard fails the group.
        let others = group.members - 1;
        let mut guard = Finish { queue: self, id, others, result: Err(Error::Closed) };
        let result = lead(&mut group);
        guard.result = result.clone();
        drop(guard);
        let mut state = self.state.lock();
        if state.spare.is_none() {
            state.spare = Some(group);
        }
        result
    }

    fn finish(&self, id: u64, others: usize, result: Result<()>) {
        let parity = (id & 1) as usize;
        let mut state = self.state.lock();
        state.leading = false;
        state.done = id;
        if let Err(error) = result
            && others > 0
        {
            state.failed.push((id, error, others));
        }
        let next = state.waiting[1 - parity];
        drop(state);
        if others > 0 {
            self.wake[parity].notify_all();
        }
        if next > 0 {
            self.wake[1 - parity].notify_one();
        }
    }
}

fn take_result(failed: &mut Vec<(u64, Error, usize)>, id: u64) -> Result<()> {
    let Some(at) = failed.iter().position(|entry| entry.0 == id) else { return Ok(()) };
    let error = failed[at].1.clone();
    failed[at].2 -= 1;
    if failed[at].2 == 0 {
        failed.swap_remove(at);
    }
    Err(error)
}

struct Finish<'a> {
    queue: &'a CommitQueue,
    id: u64,
    others: usize,
    result: Result<()>,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, Ok(()));
        self.queue.finish(self.id, self.others, result);
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
