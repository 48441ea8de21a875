//! How much writers are slowed, worked out anew after flushes, compactions and seals.

use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::compaction::{room, score};
use crate::db::core::{Core, State, TreeCore, TreeDebt};
use crate::memtable::chunk;
use crate::version::Version;
use crate::write::level0::Level0;
use crate::write::space;
use crate::write::throttle::{self, Pressure, Verdict};

/// What all memtables take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memtables {
    /// Bytes of memory.
    pub bytes: u64,
    /// The same, but for those that count as more, since large values are in them.
    pub weight: u64,
    /// How many are sealed.
    pub sealed: usize,
}

impl Core {
    /// Works out a tree's debt after its tables have changed.
    pub fn note_debt(&self, tree: &TreeCore) {
        let settings = self.pick_settings(tree, self.pick_space());
        loop {
            let version = tree.state.load().version.clone();
            let shape = version.shape();
            let debt = score::debt(&shape, &settings, self.copied_of_level0(tree, &version));
            let (soft, hard) = score::debt_limits(&shape, &settings);
            let debt = TreeDebt {
                level0_tables: debt.level0_tables,
                level0_bytes: debt.level0_bytes,
                flushed_bytes: tree.levels.lock().flush_bytes,
                bytes: debt.bytes,
                soft,
                hard,
                merge_needs: room::of_largest(&shape, &settings),
            };
            let mut state = self.sched.lock();
            // A tree is dropped before it is forgotten, which takes this lock: what is put in after
            // that nobody would take out, and writers would be slowed by it until the next open.
            if tree.is_dropped() {
                state.debts.remove(&tree.id);
                return;
            }
            // Who changed the tables meanwhile may have noted it already.
            if Arc::ptr_eq(&version, &tree.state.load().version) {
                state.debts.insert(tree.id, debt);
                return;
            }
        }
    }

    /// How much of level 0 is in the base level as well: inputs of a merge stay until it ends,
    /// however much of it is installed.
    pub(super) fn copied_of_level0(&self, tree: &TreeCore, version: &Version) -> u64 {
        let Some(job) = self.sched.lock().level0_merges.get(&tree.id).cloned() else { return 0 };
        let copied = job.progress.lock().read_counted;
        let Some((0, ids)) = job.plan.inputs.first() else { return 0 };
        let inputs = version.levels[0].metas().filter(|meta| ids.contains(&meta.id));
        let bytes: u64 = inputs.map(|meta| meta.file_bytes).sum();
        (bytes as f64 * copied as f64 / job.plan.input_bytes.max(1) as f64) as u64
    }

    /// What all memtables take.
    pub fn memtables(&self) -> Memtables {
        let trees = self.trees.load();
        let mut all = Memtables::default();
        for tree in trees.by_id.values() {
            let state = tree.state.load();
            for memtable in state.memtables() {
                all.bytes += memtable.bytes() as u64;
                all.weight = all.weight.saturating_add(self.weight(tree, memtable));
            }
            all.sealed += state.sealed.len();
        }
        all
    }

    /// Counts what is in memory and has to go to tables, and what the merges need that need the
    /// most, if space has a limit.
    pub fn count_memtables(&self) {
        self.count_memtables_in(&self.sched.lock());
    }

    fn count_memtables_in(&self, state: &State) {
        if !self.space().is_limited() {
            return;
        }
        let trees = self.trees.load();
        let used = |tree: &Arc<TreeCore>| -> u64 {
            tree.state.load().memtables().map(|memtable| memtable.used_bytes() as u64).sum()
        };
        let (mut sum, mut largest) = (0, 0);
        for bytes in trees.by_id.values().map(used) {
            sum += bytes;
            largest = bytes.max(largest);
        }
        let tables = state.debts.values().map(|debt| debt.merge_needs).max();
        let needs = space::merge_needs(largest, tables.unwrap_or(0), self.settings.table_bytes);
        self.space().set_needs(sum, needs.min(space::merges_most(self.space().limit())));
    }

    /// Works out anew how much writers are slowed. Whoever has changed something calls it after
    /// that, and all of it is under one lock: so the verdict that stays is of what there is, and no
    /// full stop is left with nothing that would end it.
    pub fn update_pressure(&self) {
        let now = self.env.clock.now_nanos();
        let state = self.sched.lock();
        let Memtables { bytes, weight, sealed } = self.memtables();
        self.count_memtables_in(&state);
        let rate = self.throttle.compaction_rate.load(Relaxed);
        let mut pressure = Pressure {
            memtable_bytes: weight,
            memtable_limit: self.settings.memtables_bytes_max,
            sealed,
            flush_rate: self.throttle.flush_rate.load(Relaxed),
            compaction_rate: rate / 4,
            ..Pressure::default()
        };
        if self.space().is_limited() && !self.is_poisoned() && state.makes_room() {
            let missing = space::missing(&self.space().balance());
            (pressure.space_taken, pressure.space_hard) = missing;
        }
        let all: u64 = state.debts.values().map(|debt| debt.flushed_bytes).sum();
        // Of trees whose compactions are held waiting relieves nothing.
        for (id, debt) in state.debts.iter().filter(|(id, _)| !state.held.contains_key(id)) {
            let merge = state.level0_merges.get(id);
            let since = merge.map(|job| {
                let (tree, all_then) = job.flushed;
                (debt.flushed_bytes.saturating_sub(tree), all.saturating_sub(all_then))
            });
            // What was flushed since the merge began, if that tells anything.
            let (part, all) = since
                .filter(|(_, all)| *all >= self.settings.memtable_bytes)
                .unwrap_or((debt.flushed_bytes, all));
            let level0 = Level0 {
                tables: debt.level0_tables,
                bytes: debt.level0_bytes,
                memtable_bytes: self.settings.memtable_bytes / 8 * 7,
                share: if all == 0 { 1.0 } else { (part as f64 / all as f64).min(1.0) },
                merge: merge.map(|job| job.under_way(now, debt.level0_tables)),
            };
            pressure.level0_nanos = pressure.level0_nanos.max(level0.nanos_per_byte(rate));
            pressure.debt_bytes += debt.bytes;
            pressure.debt_soft = pressure.debt_soft.max(debt.soft);
            pressure.debt_hard = pressure.debt_hard.max(debt.hard);
        }
        let verdict = throttle::delay(&pressure);
        // With nothing to flush there is nothing to wait for.
        let verdict = match verdict {
            Verdict::Stop { .. } if sealed == 0 => Verdict::None,
            other => other,
        };
        self.throttle.set(verdict);
        drop(state);
        // Not under the lock, since the cache may have to make room.
        self.tables.memory.set_memtables(bytes + chunk::kept_bytes() as u64);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use crate::base::sync::atomic::Ordering::Relaxed;
    use crate::db::core::STOP;
    use crate::db::testing::Surprise;
    use crate::{Background, Batch, Config, Db, Env, OpenOptions, WriteOptions};
    use std::sync::Arc;

    #[test]
    fn a_verdict_of_before_a_flush_stops_nobody_after_it() {
        let clock = Arc::new(Surprise::default());
        let env = Env { clock: clock.clone(), ..Env::memory() };
        let config =
            Config { memory_bytes: 8 << 20, memtable_bytes: 64 << 10, ..Config::default() };
        let options = OpenOptions { env, background: Background::Stepped, read_only: false };
        let db = Db::open_in("/db", config, options).unwrap();
        let tree = db.tree_or_create("t").unwrap();
        let mut batch = Batch::new();
        for n in 0..8_000u32 {
            batch.put(&tree, &n.to_be_bytes(), &[7; 1000]);
        }
        db.write(&batch, WriteOptions::default()).unwrap();
        let price = |db: &Db| db.core().throttle.price.load(Relaxed);
        assert_eq!(price(&db), STOP, "more is in memory than may be");
        let flushing = db.clone();
        clock.arm(move || flushing.flush().is_ok());
        db.core().update_pressure();
        assert!(clock.has_come(), "it was flushed meanwhile");
        assert_ne!(price(&db), STOP);
    }

    #[test]
    fn a_tree_that_is_dropped_meanwhile_leaves_no_debt() {
        let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
        let db = Db::open_in("/db", Config::default(), options).unwrap();
        let tree = db.tree_or_create("t").unwrap().inner;
        let core = db.core();
        let has_debt = || core.sched.lock().debts.contains_key(&tree.id);
        core.note_debt(&tree);
        assert!(has_debt());
        db.drop_tree("t").unwrap();
        assert!(!has_debt());
        // By a flush or a merge that had ended before.
        core.note_debt(&tree);
        assert!(!has_debt());
    }
}
