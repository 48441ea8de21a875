use super::*;
use crate::base::config::Config;
use crate::base::rank;
use crate::compaction::plan::Action;
use crate::compaction::range::KeyRange;
use crate::db::background::next_job::Job;
use crate::db::{Background, Db, OpenOptions, Tree};
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{DirEntry, Env, Fs, Lock, ReadFile, WriteFile};
use std::path::Path;

/// A disk in memory that does something once, when the next table file is made.
struct Hooked {
    fs: MemFs,
    hook: Mutex<Option<Box<dyn FnOnce() + Send>>, { rank::CALLER }>,
}

impl Fs for Hooked {
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let is_table = path.extension().is_some_and(|extension| extension == "table");
        let hook = if is_table { self.hook.lock().take() } else { None };
        if let Some(hook) = hook {
            hook();
        }
        self.fs.create(path)
    }
    fn append(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.fs.append(path)
    }
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.fs.open(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.fs.remove_dir(path)
    }
    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.link(from, to)
    }
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.fs.list(dir)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.fs.exists(path)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.fs.create_dir_all(path)
    }
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.fs.sync_dir(dir)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.fs.lock(path)
    }
    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.fs.free_bytes(dir)
    }
    fn allocated_bytes(&self, path: &Path) -> Result<u64> {
        self.fs.allocated_bytes(path)
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// A database of two tables that overlap and that a merge takes several looks for.
fn world() -> (Arc<Hooked>, Db, Tree) {
    let disk = Arc::new(Hooked { fs: MemFs::new(), hook: Mutex::new(None) });
    let env = Env { fs: disk.clone(), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for round in 0..2u8 {
        for number in 0..20_000 {
            tree.put(&key(number), &[round; 8]).unwrap();
        }
        db.flush().unwrap();
    }
    (disk, db, tree)
}

/// Merges; the hook runs while it does.
fn merge(disk: &Hooked, db: &Db, tree: &TreeCore, hook: impl FnOnce() + Send + 'static) {
    *disk.hook.lock() = Some(Box::new(hook));
    db.core().sched.lock().idle_wanted += 1;
    db.core().sched.lock().look.insert(tree.id);
    // A log file in advance, then the merge.
    while disk.hook.lock().is_some() && db.step().unwrap() {}
    assert!(disk.hook.lock().is_none(), "no table was made: there was no merge");
    db.core().sched.lock().idle_wanted -= 1;
}

#[test]
fn a_memtable_that_is_sealed_while_a_merge_runs_does_not_wait_for_its_end() {
    let (disk, db, tree) = world();
    let core = db.core().clone();
    let trees = core.trees.load_full();
    let tree_core = trees.by_id.values().next().unwrap();
    let other = tree.clone();
    merge(&disk, &db, tree_core, move || {
        other.put(&key(1_000_000), b"new").unwrap();
        core.seal_all(None).unwrap();
    });
    let state = tree_core.state.load_full();
    assert!(state.sealed.is_empty(), "the memtable waited for the merge to end");
    assert_eq!(state.version.shape().levels[0].len(), 1);
    assert_eq!(tree.get(&key(1_000_000)).unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(tree.get(&key(7)).unwrap().as_deref(), Some(&[1u8; 8][..]));
}

#[test]
fn a_merge_of_level_0_sets_the_pace_until_its_own_end() {
    let (disk, db, tree) = world();
    let core = db.core().clone();
    let trees = core.trees.load_full();
    let tree_core = trees.by_id.values().next().unwrap();
    let (inner, moved, other) = (core.clone(), tree_core.clone(), tree.clone());
    merge(&disk, &db, tree_core, move || {
        // A table of other keys comes, and is moved down meanwhile.
        other.put(&key(1_000_000), b"new").unwrap();
        inner.seal_all(None).unwrap();
        let job = inner.next_job().unwrap();
        assert!(matches!(job, Job::Flush(_)));
        inner.run_job(job).unwrap();
        let merge = inner.sched.lock().level0_merges[&moved.id].clone();
        let levels = moved.state.load().version.shape().levels;
        let taken = &merge.plan.inputs[0].1;
        let came = levels[0].iter().find(|table| !taken.contains(&table.id)).unwrap();
        let at = key(1_000_000).to_vec();
        let range = KeyRange { smallest: at.clone(), largest: at, largest_exclusive: false };
        let inputs = vec![(0, vec![came.id])];
        let plan = Plan { action: Action::Move, inputs, range, ..merge.plan.clone() };
        let mut state = inner.sched.lock();
        state.busy.get_mut(&moved.id).unwrap().start(&plan);
        state.running_compactions += 1;
        drop(state);
        inner.run_edit_only(&moved, &plan).unwrap();
        assert_eq!(moved.state.load().version.shape().levels[0].len(), 2);
        assert!(inner.sched.lock().level0_merges.contains_key(&moved.id), "it still runs");
    });
    assert!(core.sched.lock().level0_merges.is_empty());
    assert_eq!(tree.get(&key(1_000_000)).unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn what_a_merge_of_level_0_has_installed_is_owed_once() {
    let (disk, db, tree) = world();
    let core = db.core().clone();
    let trees = core.trees.load_full();
    let tree_core = trees.by_id.values().next().unwrap();
    let (inner, merged) = (core.clone(), tree_core.clone());
    merge(&disk, &db, tree_core, move || {
        let job = inner.sched.lock().level0_merges[&merged.id].clone();
        let version = merged.state.load().version.clone();
        assert_eq!(inner.copied_of_level0(&merged, &version), 0);
        job.progress.lock().read_counted = job.plan.input_bytes / 2;
        let level0: u64 = version.levels[0].metas().map(|meta| meta.file_bytes).sum();
        let copied = inner.copied_of_level0(&merged, &version);
        assert!(copied.abs_diff(level0 / 2) < 2, "{copied} of {level0}");
        job.progress.lock().read_counted = 0;
    });
    let version = tree_core.state.load().version.clone();
    assert_eq!(core.copied_of_level0(tree_core, &version), 0);
    assert_eq!(tree.get(&key(7)).unwrap().as_deref(), Some(&[1u8; 8][..]));
}
