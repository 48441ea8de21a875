//! Flushes and merges: when they start, what they take, what they leave.

use super::Run;
use crate::memtable::Memtable;
use crate::rates::Job;
use crate::running::{Flush, Running};
use crate::tree::cost_of;
use shaledb::compaction::plan::{Action, Space};
use shaledb::compaction::room;
use shaledb::compaction::split::PART_BYTES_MIN;
use shaledb::fs::balance::Balance;
use shaledb::write::space::{self, SpaceState};
use shaledb::write::throttle::smoothed;
use std::collections::VecDeque;

impl Run<'_> {
    /// Bytes that merges have written and that are not yet in the place of others; and those that
    /// they may have written at most.
    pub(super) fn in_flight(&self) -> (f64, f64) {
        let of = |running: &Running| {
            let Some(merge) = &running.merge else { return (running.written, running.written) };
            let done = 1.0 - running.left();
            let there = merge.input_bytes - merge.above_bytes;
            let staged = if merge.plan.output_level > 0 { there * done } else { 0.0 };
            (merge.output_bytes * done - staged, merge.above_bytes.max(merge.output_bytes - there))
        };
        let all = self.merges.iter().map(of);
        all.fold((0.0, 0.0), |sum, more| (sum.0 + more.0.max(0.0), sum.1 + more.1.max(0.0)))
    }

    /// Which share of the tables the system keeps in memory beside the engine's own.
    fn page_cache_share(&self) -> f64 {
        let free = self.scenario.machine.memory_bytes.saturating_sub(self.sizes.memory_bytes);
        (0.8 * free as f64 / self.tree.bytes().max(1.0)).min(1.0)
    }

    /// What is left of the limit on space.
    pub(super) fn balance(&self) -> Balance {
        let limit = self.scenario.config.space_limit;
        let limit = space::limit(limit, self.sizes.memtable_bytes, self.sizes.table_bytes);
        let (drawn, promised) = self.in_flight();
        let memtables: f64 = self.sealed.iter().map(|memtable| memtable.bytes).sum();
        let settings = &self.tree.settings;
        let needs = if limit.bytes == 0 { 0 } else { room::of_largest(&self.tree.shape, settings) };
        Balance {
            limit,
            used: self.space() as u64,
            drawn: drawn as u64,
            promised: promised as u64,
            merge_needs: needs.min(space::merges_most(limit.bytes)),
            memtables: (memtables + self.active.bytes) as u64,
            pending: 0,
        }
    }

    fn pick_space(&self) -> Space {
        if self.scenario.config.space_limit == 0 {
            return Space::default();
        }
        let balance = self.balance();
        Space {
            room: balance.for_merges(),
            level0_merge: space::level0_merge_bytes(self.sizes.memtable_bytes),
            is_tight: space::is_tight(&balance),
            is_short: space::state(&balance) > SpaceState::Free,
            is_unpromised: balance.promised == 0,
        }
    }

    /// The bytes with which the active memtable is full. No two are quite alike, since a row and a
    /// commit more or less fit in; where a number of tables of one size decides, that counts.
    pub(super) fn full_bytes(&self) -> f64 {
        let some = (self.flushed as f64 * 0.618).fract();
        self.sizes.memtable_full_bytes as f64 * (1.0 - 0.01 * some)
    }

    pub(super) fn seal(&mut self) {
        let next = self.new_memtable();
        self.sealed.push(std::mem::replace(&mut self.active, next));
    }

    /// Starts what is due and what there are threads for.
    pub(super) fn start(&mut self, idle: bool) {
        let full = self.full_bytes() * 0.999_999;
        if self.active.bytes >= full || self.active.dropped_to > 0 && self.active.bytes > full / 8.0
        {
            self.seal();
        }
        if self.flush.is_none() && !self.sealed.is_empty() {
            self.start_flush();
        }
        loop {
            let Some(free) = self.free_threads() else { return };
            let Some(plan) = self.tree.pick(idle, self.pick_space()) else { return };
            *self.totals.jobs.entry(plan.reason.name()).or_default() += 1;
            let action = plan.action;
            let merge = self.tree.start(plan, &self.keys);
            if action != Action::Merge {
                self.tree.install(merge);
                continue;
            }
            let work = &self.scenario.machine.work;
            let codec = merge.compress_seconds + merge.decompress_seconds;
            let rows = merge.rows_in * (1.0 - merge.reused);
            let all = merge.input_bytes + merge.output_bytes;
            let cpu = (rows * work.merge_row + all * work.byte) / 1e9 + codec;
            let read = merge.input_bytes * (1.0 - self.page_cache_share());
            let bytes = read + merge.output_bytes;
            let at_once = self.is_coarse && merge.plan.output_level > 0;
            let mut waiting = VecDeque::from(match at_once {
                // They would be many, of which none ends long after the others.
                true => {
                    let parts = (merge.plan.input_bytes / PART_BYTES_MIN).max(1);
                    let parts = parts.min(self.sizes.background_threads as u64);
                    vec![1.0 / parts as f64; parts as usize]
                }
                false => self.tree.parts(&merge, free),
            });
            let begun = if at_once { waiting.len() } else { 1 };
            self.merges.push(Running {
                job: Job { cpu, bytes, threads: 0.0 },
                codec,
                read,
                written: merge.output_bytes,
                raw: merge.raw_out * (1.0 - merge.reused),
                level: merge.plan.output_level,
                active: waiting.drain(..begun).collect(),
                waiting,
                began: self.now,
                level0_tables: self.tree.shape.levels[0].len(),
                merge: Some(merge),
            });
        }
    }

    /// How many threads have nothing to do when the parts that wait have theirs; `None` if none.
    fn free_threads(&mut self) -> Option<usize> {
        let threads = self.sizes.background_threads;
        // Of larger tables than the engine's, merges take longer: none waits for the end of
        // another, as it would for that of a smaller one.
        let busy = match self.is_coarse {
            true => self.merges.len(),
            false => self.merges.iter().map(|running| running.active.len()).sum(),
        };
        let mut free = threads.saturating_sub(busy);
        for running in &mut self.merges {
            let taken = free.min(running.waiting.len());
            running.active.extend(running.waiting.drain(..taken));
            free -= taken;
        }
        (free > 0).then_some(free)
    }

    fn start_flush(&mut self) {
        let mut all = Memtable { from: u64::MAX, ..Memtable::default() };
        for memtable in &self.sealed {
            all.bytes += memtable.bytes;
            all.user_bytes += memtable.user_bytes;
            all.updates += memtable.updates;
            all.inserts += memtable.inserts;
            all.deletes += memtable.deletes;
            all.from = all.from.min(memtable.from);
            all.dropped_to = all.dropped_to.max(memtable.dropped_to);
        }
        let content = all.content(&self.ground, self.active.from);
        let choice = self.tree.choice(0);
        let cost = cost_of(&self.tree.costs, choice);
        let scenario = self.scenario;
        let (puts, deletes) = (content.puts(&self.keys), content.deletes());
        let raw = self.tree.raw_bytes(puts, deletes, 0);
        let written = self.tree.file_bytes(raw, puts + deletes, 0, choice);
        let entries = puts + deletes;
        let work = &scenario.machine.work;
        let codec = raw * cost.compress / 1e9;
        let cpu = (entries * work.flush_row + written * work.byte) / 1e9 + codec;
        let running = Running {
            merge: None,
            job: Job { cpu, bytes: written, threads: 1.0 },
            codec,
            read: 0.0,
            written,
            raw,
            level: 0,
            active: vec![1.0],
            waiting: VecDeque::new(),
            began: self.now,
            level0_tables: 0,
        };
        self.flush = Some(Flush { running, content, memtables: self.sealed.len() });
    }

    fn nanos_since(&self, began: f64) -> u64 {
        ((self.now - began) * 1e9) as u64
    }

    /// Installs what has ended.
    pub(super) fn finish(&mut self) {
        if let Some(flush) = self.flush.take_if(|flush| flush.running.has_ended()) {
            let bytes =
                self.sealed.drain(..flush.memtables).map(|memtable| memtable.bytes).sum::<f64>();
            self.flush_rate =
                smoothed(self.flush_rate, bytes as u64, self.nanos_since(flush.running.began));
            self.tree.flush(flush.content, &self.keys);
            self.flushed += 1;
        }
        while let Some(at) = self.merges.iter().position(|running| running.has_ended()) {
            let running = self.merges.remove(at);
            let Some(merge) = running.merge else { continue };
            self.merge_rate =
                smoothed(self.merge_rate, merge.plan.input_bytes, self.nanos_since(running.began));
            self.tree.install(merge);
        }
    }
}
