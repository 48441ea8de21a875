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
        let whole = (self.ops.bytes().len(), self.ops.count());
        debug_assert_eq!(self.ends.last().copied().unwrap_or_default(), whole, "all are in it");
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

    /// Joins the open group with `ops`. Either the caller is to write that group, or the result is
    /// that of the thread which has written it.
    pub fn join(&self, ops: &Ops, sync: bool) -> Turn<'_> {
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
            return Turn::Written(take_result(&mut state.failed, id));
        }
        // Its members wait for as long as nobody has led it.
        debug_assert!(state.done + 1 == id, "groups are written in order");
        debug_assert!(!state.leading, "one thread leads");
        state.leading = true;
        let mut next = state.spare.take().unwrap_or_default();
        next.reset(id + 1);
        let group = std::mem::replace(&mut state.open, next);
        Turn::Lead(Lead { queue: self, group, finished: false })
    }

    /// Notes how a group has been written, and wakes who waits for that. Its memory is used again
    /// for a later one.
    fn finish(&self, group: Group, result: Result<()>) {
        let (id, others) = (group.id, group.members - 1);
        let parity = (id & 1) as usize;
        let mut state = self.state.lock();
        debug_assert!(state.leading && state.done + 1 == id, "the group that is led has ended");
        state.leading = false;
        state.done = id;
        if let Err(error) = result
            && others > 0
        {
            state.failed.push((id, error, others));
        }
        state.spare.get_or_insert(group);
        let next = state.waiting[1 - parity];
        drop(state);
        // First who leads next: the queue waits for it, and to wake many takes a while.
        if next > 0 {
            self.wake[1 - parity].notify_one();
        }
        if others > 0 {
            self.wake[parity].notify_all();
        }
    }
}

fn take_result(failed: &mut Vec<(u64, Error, usize)>, id: u64) -> Result<()> {
    let Some(at) = failed.iter().position(|entry| entry.0 == id) else { return Ok(()) };
    let error = failed[at].1.clone();
    debug_assert!(failed[at].2 > 0, "each commit learns its result once");
    failed[at].2 -= 1;
    if failed[at].2 == 0 {
        failed.swap_remove(at);
    }
    Err(error)
}

/// What a commit that has joined a group is to do.
#[derive(Debug)]
pub enum Turn<'a> {
    /// Write the group, its own operations among it.
    Lead(Lead<'a>),
    /// Nothing: another thread has written the group, with this result.
    Written(Result<()>),
}

/// The right to write a group, of one thread at a time. If a panic drops it unfinished, the group
/// has failed: those who wait must not hang.
#[derive(Debug)]
#[must_use]
pub struct Lead<'a> {
    queue: &'a CommitQueue,
    group: Group,
    finished: bool,
}

impl Lead<'_> {
    /// The group to write.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Gives the result to every commit of the group, and returns it.
    pub fn finish(mut self, result: Result<()>) -> Result<()> {
        self.finished = true;
        self.queue.finish(std::mem::take(&mut self.group), result.clone());
        result
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.queue.finish(std::mem::take(&mut self.group), Err(Error::Closed));
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
