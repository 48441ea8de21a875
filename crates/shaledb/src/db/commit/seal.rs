//! Sealing memtables: which, when, and that they get flushed.

use super::group::Filled;
use crate::base::error::Result;
use crate::base::key::SeqNo;
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::db::core::{Core, Leader, Settings, TreeCore, Trees};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::version::TreeId;
use crate::write::dead::{self, Passed, Verdict};
use crate::write::{level0, space};

/// A log that a flush leaves with no more than this goes on: reading it costs less than a new file.
const LOG_BYTES_WORTH: u64 = 64 << 10;

/// After so many memtables' bytes the log goes on in a new file, whatever is sealed.
const LOG_MEMTABLES: u64 = 2;

/// A memtable is full when the large values in it take as much as so many memtables, in files that
/// stay until its flush, however many of them newer ones hide.
const LARGE_MEMTABLES: u64 = 16;

/// But not with less than so many values, or so many bytes of them: where all are new, a flush is
/// for nothing.
const LARGE_VALUES_MIN: u64 = 256;
const LARGE_BYTES_MIN: u64 = 256 << 20;

impl Core {
    #[inline]
    pub fn is_full(&self, tree: &TreeCore, memtable: &Memtable) -> bool {
        let Settings { memtable_bytes, memtable_full_bytes, .. } = self.settings;
        let outside = memtable.outside_bytes();
        memtable.is_full(memtable_full_bytes, memtable_bytes)
            || outside > 0 && outside >= self.outside_bytes_max(tree)
    }

    /// From how many bytes of large values on a memtable is full.
    fn outside_bytes_max(&self, tree: &TreeCore) -> u64 {
        let values = u64::from(tree.config.blob_bytes).saturating_mul(LARGE_VALUES_MIN);
        let usual =
            (LARGE_MEMTABLES * self.settings.memtable_bytes).max(values.min(LARGE_BYTES_MIN));
        space::large_bytes(self.space().limit(), usual)
    }

    /// What so many bytes of large values in a memtable of a tree count as: when they make it full,
    /// as all that it may take.
    pub fn weight_outside(&self, tree: &TreeCore, bytes: u64) -> u64 {
        let most = self.outside_bytes_max(tree).max(1);
        let weight =
            u128::from(bytes) * u128::from(self.settings.memtable_bytes) / u128::from(most);
        u64::try_from(weight).unwrap_or(u64::MAX)
    }

    /// What a memtable counts as towards what all of them may take: its bytes, or its large values,
    /// which are as much as makes it full, however large one is.
    pub fn weight(&self, tree: &TreeCore, memtable: &Memtable) -> u64 {
        let bytes = memtable.bytes() as u64;
        match memtable.outside_bytes() {
            0 => bytes,
            outside => {
                let most = self.settings.memtable_bytes;
                bytes.max(self.weight_outside(tree, outside).min(most))
            }
        }
    }

    /// Notes that a scan has passed so many dead entries of a memtable. The next commit looks
    /// whether it is to be sealed; if none comes, all are sealed anyway.
    pub fn note_dead(&self, memtable: &Memtable, count: u64) {
        let before = memtable.dead_passed().fetch_add(count, SeqCst);
        let worth = dead::worth(memtable.count()).max(memtable.dead_waited_for().load(SeqCst));
        if before < worth && worth <= before.saturating_add(count) {
            self.dead_passed.store(true, Relaxed);
        }
    }

    /// Whether scans pass so many dead entries of the active memtable that a flush is worth it.
    fn is_full_of_dead(&self, tree: &TreeCore, memtable: &Memtable) -> bool {
        let waited_for = memtable.dead_waited_for();
        let worth = tree.patience.worth(memtable.count()).max(waited_for.load(Relaxed));
        waited_for.store(worth, SeqCst);
        // After that: who passes more from now on compares with it, and tells.
        let dead = memtable.dead_passed().load(SeqCst);
        if dead < worth {
            return false;
        }
        let debt = self.sched.lock().debts.get(&tree.id).copied().unwrap_or_default();
        let verdict = dead::decide(&Passed {
            dead,
            worth,
            first_seq: memtable.first_seq().unwrap_or(0),
            last_seq: memtable.last_seq(),
            oldest_reader: self.reader_seqs()[0],
            is_behind: !tree.state.load().sealed.is_empty()
                || debt.level0_tables >= level0::SOFT
                || debt.bytes > debt.soft,
        });
        match verdict {
            Verdict::GoesOn => {}
            Verdict::Sealed => {
                tree.patience.note_sealed(self.env.clock.now_nanos());
                self.recorder.add(Counter::SealedForScans, 1);
            }
            Verdict::CountedAnew => {
                waited_for.store(worth.saturating_mul(2), Relaxed);
                memtable.dead_passed().store(0, Relaxed);
            }
        }
        verdict == Verdict::Sealed
    }

    /// After something was written: seals the memtables that are full, those in which scans pass
    /// much that is dead, the largest one while all active ones together take more than half of
    /// what memtables may, and those that hold back the removal of old logs. Looks at all trees, so
    /// only if one is full, or perhaps of dead entries, or once for each quarter of a memtable that
    /// is written. A log that has become long by what fills no memtable (trees that were dropped
    /// soon, transactions that were prepared and rolled back) is ended.
    pub fn seal_due(&self, leader: &mut Leader, trees: &Trees, filled: Filled) {
        leader.bytes_since_check = leader.bytes_since_check.saturating_add(filled.bytes);
        let passed = self.dead_passed.load(Relaxed) && self.dead_passed.swap(false, Relaxed);
        let due = filled.full || leader.bytes_since_check >= self.settings.memtable_bytes / 4;
        if !due && !passed {
            return;
        }
        let mut active: Vec<(u64, &TreeCore)> = Vec::new();
        let mut full: Vec<&TreeCore> = Vec::new();
        for tree in trees.by_id.values() {
            let memtable = tree.state.load().active.clone();
            let is_full = self.is_full(tree, &memtable);
            if is_full || passed && self.is_full_of_dead(tree, &memtable) {
                full.push(tree);
            } else if !memtable.is_empty() {
                active.push((self.weight(tree, &memtable), tree));
            }
        }
        if !due && full.is_empty() {
            return;
        }
        leader.bytes_since_check = 0;
        active.sort_by_key(|(weight, tree)| (*weight, tree.id));
        let mut total: u64 = active.iter().map(|(weight, _)| weight).sum();
        // A chunk that has just begun is no reason.
        let most = self.settings.memtables_bytes_max / 2
            + Memtable::chunk_bytes(self.settings.memtable_bytes);
        while total > most
            && let Some((weight, tree)) = active.pop()
        {
            full.push(tree);
            total -= weight;
        }
        if let Some(oldest) = self.oldest_log_to_free() {
            let old = |tree: &&TreeCore| tree.first_unflushed().is_some_and(|seq| seq <= oldest);
            full.extend(active.into_iter().map(|(_, tree)| tree).filter(old));
        }
        self.seal(leader, full);
        let long = LOG_MEMTABLES * self.settings.memtable_bytes;
        if leader.wal.as_ref().is_some_and(|wal| wal.bytes() >= long) {
            self.rotate_log(leader);
        }
        self.update_pressure();
    }

    /// When the old logs take more than eight memtables, or much of the space that there may be:
    /// the last sequence number of the oldest.
    pub fn oldest_log_to_free(&self) -> Option<SeqNo> {
        let wals = self.wals.lock();
        let bytes: u64 = wals.iter().map(|wal| wal.bytes).sum();
        let oldest = wals.first().and_then(|wal| wal.last_seq)?;
        let most = space::old_log_bytes(self.space().limit(), self.settings.memtable_bytes);
        (bytes > most).then_some(oldest)
    }

    /// Seals the active memtables of trees, so that they get flushed. The caller updates the
    /// pressure.
    pub fn seal<'a>(&self, leader: &mut Leader, trees: impl IntoIterator<Item = &'a TreeCore>) {
        let trees = trees.into_iter().filter(|tree| !tree.state.load().active.is_empty());
        // All of them are wanted at once, so that they are flushed together.
        let sealed: Vec<TreeId> =
            trees.inspect(|tree| self.seal_one(leader, tree)).map(|tree| tree.id).collect();
        if !sealed.is_empty() {
            self.sched.want_flushes(sealed);
        }
    }

    /// The log goes on in a new file once the present one is worth a memtable, if the new one is
    /// there. Its making takes up to 150 ms, which no writer should wait for.
    fn seal_one(&self, leader: &mut Leader, tree: &TreeCore) {
        tree.swap_state(|state| {
            let last = state.active.last_seq();
            assert!(last > 0, "what is sealed has entries");
            let older = state.sealed.first().map_or(0, |newest| newest.last_seq());
            assert!(older < last, "memtables are sealed in the order of commits");
            // A replay gives no numbers out, and has no log to write.
            assert!(leader.wal.is_none() || last < leader.next_seq, "entries have given numbers");
            let mut sealed = Vec::with_capacity(state.sealed.len() + 1);
            sealed.push(state.active.clone());
            sealed.extend(state.sealed.iter().cloned());
            TreeState { active: Arc::new(Memtable::new()), sealed, version: state.version.clone() }
        });
        let worth = self.settings.memtable_bytes / 2;
        if leader.wal.as_ref().is_some_and(|wal| wal.bytes() >= worth)
            && self.sees_to_next_log(leader)
        {
            self.rotate_log(leader);
        }
    }

    /// Seals every memtable that holds anything and goes on in a new log; `only` narrows it to one
    /// tree, and then the log stays.
    pub fn seal_all(&self, only: Option<&TreeCore>) -> Result<()> {
        let mut leader = self.leader.lock();
        self.check_writable()?;
        match only {
            Some(tree) => self.seal(&mut leader, [tree]),
            None => {
                self.seal(&mut leader, self.trees.load().by_id.values().map(|tree| &**tree));
                // Once all is flushed, the next open has nothing of this file to replay.
                let worth = space::log_bytes_worth(self.space().limit(), LOG_BYTES_WORTH);
                if leader.wal.as_ref().is_some_and(|wal| wal.bytes() >= worth) {
                    self.rotate_log(&mut leader);
                }
                drop(leader);
                // Perhaps there is nothing to flush, with which they would go.
                self.sched.want_old_logs_freed();
            }
        }
        self.update_pressure();
        Ok(())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use crate::{Background, Config, Db, Env, OpenOptions, TreeConfig};
    use std::path::Path;

    /// In no order, so that the places that are remembered take memory, too.
    fn next(key: &mut u64) -> [u8; 8] {
        *key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        key.to_be_bytes()
    }

    fn opened(memory_bytes: u64, memtable_bytes: u64) -> Db {
        let config = Config { memory_bytes, memtable_bytes, ..Config::default() };
        let background = Background::Stepped;
        let options = OpenOptions { env: Env::memory(), background, read_only: false };
        Db::open_in("/db", config, options).unwrap()
    }

    #[test]
    fn a_memtable_is_sealed_when_it_has_no_room_not_before() {
        for (memory, bytes, trees) in [
            (64 << 20, 64 << 10, 1),
            (64 << 20, 200 << 10, 1),
            (64 << 20, 4 << 20, 1),
            (64 << 20, 6 << 20, 1),
            // The bound of all of them together is near.
            (16 << 20, 4 << 20, 1),
            (64 << 20, 4 << 20, 2),
        ] {
            let db = opened(memory, bytes);
            let names = ["a", "b"];
            let trees: Vec<_> =
                names[..trees].iter().map(|name| db.tree_or_create(name).unwrap()).collect();
            let sealed = |tree: &crate::Tree| tree.inner.state.load().sealed.first().cloned();
            let (mut key, mut written) = (1u64, 0);
            while trees.iter().all(|tree| sealed(tree).is_none()) {
                for tree in &trees {
                    tree.put(&next(&mut key), &[7; 250]).unwrap();
                }
                written += 258;
            }
            let taken = trees.iter().find_map(sealed).unwrap().used_bytes() as u64;
            assert!(taken <= bytes, "{taken} of {bytes}");
            // The rest is what a node takes beside its key and value.
            assert!(written > bytes / 4 * 3, "{written} of {bytes}");
        }
    }

    #[test]
    fn what_values_leave_over_of_chunks_counts_at_last() {
        let db = opened(256 << 20, 16 << 20);
        let tree = db.tree_or_create("t").unwrap();
        let mut key = 1u64;
        while tree.inner.state.load().sealed.is_empty() {
            tree.put(&next(&mut key), &vec![7; 500 << 10]).unwrap();
        }
        let sealed = tree.inner.state.load().sealed[0].clone();
        let (taken, used) = (sealed.bytes(), sealed.used_bytes());
        assert!(taken <= 20 << 20, "{taken}");
        assert!(used >= 12 << 20, "{used}");
    }

    /// With how much of large values a memtable is full here.
    const LARGE: u64 = 1 << 20;
    const VALUE: usize = 50_000;

    fn bytes_of_blobs(env: &Env) -> u64 {
        let files = env.fs.list(Path::new("/db")).unwrap();
        let blobs = files.iter().filter(|file| file.name.ends_with(".blob"));
        blobs.map(|file| file.bytes).sum()
    }

    /// The most that blob files take while one value of each tree is overwritten, so often.
    fn most_of_overwritten(trees: u32, times: u32) -> u64 {
        let env = Env::memory();
        let tree = TreeConfig { blob_bytes: 4096, ..TreeConfig::default() };
        let config =
            Config { memory_bytes: 8 << 20, memtable_bytes: 64 << 10, tree, ..Config::default() };
        let background = Background::Stepped;
        let options = OpenOptions { env: env.clone(), background, read_only: false };
        let db = Db::open_in("/db", config, options).unwrap();
        let open = |tree: u32| db.tree_or_create(&tree.to_string()).unwrap();
        let trees: Vec<_> = (0..trees).map(open).collect();
        let mut most = 0;
        for time in 0..times {
            for tree in &trees {
                tree.put(b"a", &vec![time as u8; VALUE]).unwrap();
                while db.step().unwrap() {}
                most = bytes_of_blobs(&env).max(most);
            }
        }
        for tree in &trees {
            assert_eq!(tree.get(b"a").unwrap().unwrap(), vec![(times - 1) as u8; VALUE]);
        }
        most
    }

    #[test]
    fn large_values_that_newer_ones_hide_go_before_they_are_many() {
        let most = most_of_overwritten(1, 200);
        assert!(most <= 2 * LARGE, "{most}");
    }

    /// No memtable is full, but all of them together are.
    #[test]
    fn large_values_of_many_trees_that_newer_ones_hide_go_too() {
        let most = most_of_overwritten(30, 20);
        assert!(most <= 9 * LARGE, "{most}");
    }

    /// No thread flushes: who writes has to wait for it.
    #[test]
    fn large_values_wait_for_the_flush_of_those_before() {
        let db = opened(8 << 20, 64 << 10);
        let config = TreeConfig { blob_bytes: 4096, ..TreeConfig::default() };
        let tree = db.create_tree("t", config).unwrap();
        let mut sealed = 0;
        for _ in 0..200 {
            tree.put(b"a", &[7; VALUE]).unwrap();
            sealed = tree.inner.state.load().sealed.len().max(sealed);
        }
        assert!((1..=4).contains(&sealed), "{sealed}");
    }

    #[test]
    fn handles_of_blobs_are_memory_of_memtables() {
        let db = opened(64 << 20, 64 << 10);
        let config = TreeConfig { blob_bytes: 4096, ..TreeConfig::default() };
        let tree = db.create_tree("t", config).unwrap();
        tree.put(b"a", b"").unwrap();
        let memtable = tree.inner.state.load().active.clone();
        let (bytes, used) = (memtable.bytes(), memtable.used_bytes());
        for _ in 0..20 {
            tree.put(b"a", &[7; 4096]).unwrap();
        }
        assert_eq!(memtable.outside_bytes(), 20 * (4096 + 40));
        assert!(memtable.bytes() >= bytes + 20 * 150, "{}", memtable.bytes() - bytes);
        assert!(memtable.used_bytes() < used + 20 * 100, "what a flush writes is less");
    }
}
