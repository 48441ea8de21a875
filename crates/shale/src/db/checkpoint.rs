//! Checkpoints: a second database of the present state, by hard links.
//!
//! Tables and blobs never change, so links to them do; the log files that are complete are linked
//! too, and the one being written is copied up to where it is. Under the locks of the leader and of
//! the manifest only the lists are taken, so writers wait for no copying.

use super::core::Core;
use crate::base::error::{Error, Result};
use crate::base::sync::Arc;
use crate::fs::ReadFile;
use crate::state::TreeState;
use crate::table::format::FileKind;
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
}

impl Core {
    pub fn checkpoint(&self, to: &Path) -> Result<()> {
        self.check_writable()?;
        let fs = &*self.env.fs;
        if fs.exists(to)? && !fs.list(to)?.is_empty() {
            return Err(Error::InvalidArgument(format!(
                "the checkpoint's directory {} is not empty; name a new one",
                to.display()
            )));
        }
        // With memtables flushed there is little log to copy and to replay.
        self.flush(None)?;
        fs.create_dir_all(to)?;
        if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs.sync_dir(parent)?;
        }
        let cut = self.cut_for_checkpoint(to)?;
        self.link_data(&cut, to)?;
        if let Some((id, from, bytes)) = &cut.last {
            self.copy_log(&**from, *bytes, &to.join(file(FileKind::Wal, *id)))?;
        }
        // CURRENT comes last: before it there is no database.
        let id = self.new_file();
        let mut snapshot = cut.snapshot;
        snapshot.next_file = Some(id + 1);
        drop(Manifest::create(&self.env.fs, to, id, &snapshot)?);
        fs.sync_dir(to)
    }

    fn cut_for_checkpoint(&self, to: &Path) -> Result<Cut> {
        let mut leader = self.leader.lock();
        let through = leader.next_seq - 1;
        self.sync_log(&mut leader, through)?;
        let manifest = self.manifest.lock();
        let Some(manifest) = manifest.as_ref() else { return Err(Error::Closed) };
        let trees = self.trees.load();
        let states = trees.by_id.values().map(|tree| tree.state.load_full()).collect();
        for wal in self.wals.lock().iter().filter(|wal| wal.last_seq.is_some()) {
            let name = file(FileKind::Wal, wal.id);
            self.env.fs.link(&self.dir.join(&name), &to.join(&name))?;
        }
        let last = match leader.wal.as_ref() {
            Some(wal) => Some((wal.id(), self.env.fs.open(wal.path())?, wal.bytes())),
            None => None,
        };
        Ok(Cut { states, snapshot: manifest.catalog().snapshot(), last })
    }

    fn link_data(&self, cut: &Cut, to: &Path) -> Result<()> {
        let mut names = BTreeSet::new();
        for state in &cut.states {
            for (_, table) in state.version.tables() {
                let meta = &table.meta;
                names.insert(file(FileKind::Table, meta.id));
                names.extend(meta.blobs.iter().map(|id| file(FileKind::Blob, *id)));
            }
            for memtable in state.sealed.iter().chain([&state.active]) {
                let blobs = memtable.attached::<crate::table::Blob>();
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
