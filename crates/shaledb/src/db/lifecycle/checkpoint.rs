//! Checkpoints: a second database of the present state, by hard links.
//!
//! Tables and blobs never change, so links to them do; the log files that are complete are linked
//! too, and the one being written is copied up to where it is. Under the locks of the leader and of
//! the manifest only the lists are taken, so writers wait for no copying.
//!
//! Under its name a checkpoint is complete or not there: see `unfinished`.

use super::unfinished;
use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::db::core::Core;
use crate::fs::ReadFile;
use crate::state::TreeState;
use crate::table::Blob;
use crate::table::format::{FileKind, LOCK};
use crate::table::meta::FileId;
use crate::version::edit::Edit;
use crate::version::manifest::Manifest;
use std::collections::BTreeSet;
use std::path::Path;

const COPY_BYTES: usize = 1 << 20;

/// What a checkpoint is made of, as of one moment. Holding the states keeps the files there.
struct Cut {
    states: Vec<Arc<TreeState>>,
    snapshot: Edit,
    last: Option<(FileId, Arc<dyn ReadFile>, u64)>,
    /// Those of prepared transactions.
    blobs: Vec<Arc<Blob>>,
}

impl Core {
    pub fn checkpoint(&self, to: &Path) -> Result<()> {
        self.check_writable()?;
        let fs = &*self.env.fs;
        unfinished::make(fs, to, "checkpoint", |dir| {
            // Nobody else makes a checkpoint of this name now.
            let _lock = fs.lock(&dir.join(LOCK))?;
            // With memtables flushed there is little log to copy and to replay.
            self.flush(None)?;
            self.fill_checkpoint(dir)
        })
    }

    fn fill_checkpoint(&self, dir: &Path) -> Result<()> {
        let fs = &*self.env.fs;
        let cut = self.cut_for_checkpoint(dir)?;
        self.link_data(&cut, dir)?;
        if let Some((id, from, bytes)) = &cut.last {
            self.copy_log(&**from, *bytes, &dir.join(file(FileKind::Wal, *id)))?;
        }
        let id = self.new_file();
        assert!(cut.last.as_ref().is_none_or(|(log, ..)| *log < id), "numbers of files ascend");
        let mut snapshot = cut.snapshot;
        snapshot.next_file = Some(id + 1);
        drop(Manifest::create(&self.env.fs, dir, id, &snapshot)?);
        fs.sync_dir(dir)
    }

    fn cut_for_checkpoint(&self, to: &Path) -> Result<Cut> {
        let mut leader = self.leader.lock();
        let through = leader.next_seq - 1;
        self.sync_log(&mut leader, through)?;
        self.guard.check()?;
        let manifest = self.manifest.lock();
        let Some(manifest) = manifest.as_ref() else { return Err(Error::Closed) };
        assert!(self.visible.load(Ordering::Acquire) <= through, "what is visible is in the cut");
        let mut catalog = manifest.catalog().clone();
        let unfinished = catalog.take_unfinished();
        let trees = self.trees.load();
        let there = trees.by_id.values().filter(|tree| !unfinished.contains_key(&tree.id));
        let states = there.map(|tree| tree.state.load_full()).collect();
        for wal in self.wals.lock().iter().filter(|wal| wal.last_seq.is_some()) {
            let name = file(FileKind::Wal, wal.id);
            self.env.fs.link(&self.dir.join(&name), &to.join(&name))?;
        }
        let last = match leader.wal.as_ref() {
            Some(wal) => Some((wal.id(), self.env.fs.open(wal.path())?, wal.bytes())),
            None => None,
        };
        let prepared = self.prepared.lock();
        // Now, since a decision may take them away.
        for one in prepared.values() {
            let tables = one.tables().map(|meta| file(self.kind_of_run(meta.id), meta.id));
            for name in tables.chain(one.mark.map(|id| file(FileKind::Prepared, id))) {
                self.env.fs.link(&self.dir.join(&name), &to.join(&name))?;
            }
        }
        let blobs = prepared.values().flat_map(|prepared| prepared.blobs.clone()).collect();
        // An empty one is not promised: a log before it may end in zeros, and what follows those
        // counts only if it has a record. `last_seq` says what must be there.
        let has_records = leader.wal.as_ref().is_some_and(|wal| !wal.is_empty());
        let log_end = last.as_ref().filter(|_| has_records).map(|(id, _, bytes)| (*id, *bytes));
        let snapshot = Edit { last_seq: Some(through), log_end, ..catalog.snapshot() };
        Ok(Cut { states, snapshot, last, blobs })
    }

    fn link_data(&self, cut: &Cut, to: &Path) -> Result<()> {
        let prepared = cut.blobs.iter().map(|blob| file(FileKind::Blob, blob.id()));
        let mut names: BTreeSet<String> = prepared.collect();
        for state in &cut.states {
            for (_, table) in state.version.tables() {
                let meta = &table.meta;
                names.insert(file(FileKind::Table, meta.id));
                names.extend(meta.blobs.iter().map(|id| file(FileKind::Blob, *id)));
            }
            for memtable in state.sealed.iter().chain([&state.active]) {
                let blobs = memtable.attached::<Blob>();
                names.extend(blobs.iter().map(|blob| file(FileKind::Blob, blob.id())));
            }
        }
        for name in names {
            self.env.fs.link(&self.dir.join(&name), &to.join(&name))?;
        }
        Ok(())
    }

    fn copy_log(&self, from: &dyn ReadFile, bytes: u64, to: &Path) -> Result<()> {
        let mut file = self.env.fs.create(to)?;
        let mut part = vec![0; COPY_BYTES];
        let mut at = 0;
        while at < bytes {
            let count = (bytes - at).min(COPY_BYTES as u64) as usize;
            from.read_at(at, &mut part[..count])?;
            file.append(&part[..count])?;
            at += count as u64;
        }
        file.sync()
    }
}

fn file(kind: FileKind, id: FileId) -> String {
    crate::table::format::file_name(kind, id)
}
