//! The limit on space: when a database is opened, and when it is set anew.
//!
//! A crash may bring back names of files that were removed. So an open that finds more than the
//! limit first removes what the manifest is known not to need, and looks again when all is cleared
//! away.

use crate::base::config::check_space_limit;
use crate::base::error::{Error, Result};
use crate::db::core::Core;
use crate::fs::Fs;
use crate::fs::guard::GuardedFs;
use crate::table::format::{FileKind, Files, file_name, parse_file_name};
use crate::table::meta::FileId;
use crate::version::manifest::{self, CURRENT, Recovered};
use crate::write::space;
use std::collections::BTreeSet;
use std::path::Path;

/// Counts the database's files that are there.
pub(super) fn count_files(door: &GuardedFs, dir: &Path) -> Result<()> {
    let beside = Path::new(CURRENT).with_extension("tmp");
    for entry in door.list(dir)?.iter().filter(|entry| !entry.is_dir) {
        if parse_file_name(&entry.name).is_some() || Path::new(&entry.name) == beside {
            door.ledger().found(&dir.join(&entry.name), entry.bytes);
        }
    }
    Ok(())
}

/// Sets the limit before anything is written, if it can be kept then. What it removes leaves
/// `files`.
pub(super) fn begin(
    core: &Core,
    bytes: u64,
    recovered: &Recovered,
    files: &mut Files,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    check_space_limit(bytes, core.settings.memtable_bytes)?;
    if core.try_space_limit(bytes, false).is_err() {
        remove_known_orphans(core, recovered, files)?;
        // If that does not suffice, what only the log tells may: see `end`.
        let _ = core.try_space_limit(bytes, false);
    }
    Ok(())
}

/// Sets the limit once all is cleared away, or refuses the database.
pub(super) fn end(core: &Core, bytes: u64) -> Result<()> {
    if bytes == 0 || core.space().is_limited() {
        return Ok(());
    }
    core.try_space_limit(bytes, false)
}

/// As it is, but that what an open cannot write for lack of room names the setting.
pub(super) fn refused(error: Error) -> Error {
    match error {
        Error::SpaceLimit { limit, used, .. } => too_large(limit, used),
        other => other,
    }
}

fn too_large(limit: u64, used: u64) -> Error {
    let what = format!(
        "the database takes {used} bytes, and more while it is open, so {limit} cannot be kept; \
         set at least a tenth more than it takes, or open it without a limit, delete rows or drop \
         trees, compact it, and set the limit then"
    );
    Error::Config { setting: "space_limit", what }
}

/// Removes files that the manifest, as it is now, does not need: outputs of jobs that did not end,
/// what compactions replaced, old logs and manifests. Not blobs: the log may need them.
fn remove_known_orphans(core: &Core, recovered: &Recovered, files: &mut Files) -> Result<()> {
    let fs = &*core.env.fs;
    let current = manifest::current(fs, &core.dir)?;
    // What a killed process has left in the page cache was read back, but may not be durable yet.
    fs.append(&core.path(FileKind::Manifest, current))?.sync()?;
    fs.sync_dir(&core.dir)?;
    let of_trees = recovered.trees.values().flat_map(|tree| tree.levels.iter().flatten());
    let prepared = recovered.prepared.values().flatten().flat_map(|(_, tables)| tables);
    let needed: BTreeSet<FileId> = of_trees.chain(prepared).map(|meta| meta.id).collect();
    let is_orphan = |kind: FileKind, id: FileId| match kind {
        FileKind::Table | FileKind::Run => !needed.contains(&id),
        FileKind::Manifest => id != current,
        FileKind::Wal => id < recovered.log.file,
        _ => false,
    };
    for ((kind, id), _) in files.extract_if(.., |(kind, id), _| is_orphan(*kind, *id)) {
        tracing::info!(name = file_name(kind, id), "removed, to keep the limit on space");
        fs.remove(&core.path(kind, id))?;
    }
    Ok(())
}

impl Core {
    /// Sets the limit on space, if it can be kept: with what is in memory, if that `counts`.
    fn try_space_limit(&self, bytes: u64, counts: bool) -> Result<()> {
        let settings = &self.settings;
        let limit = space::limit(bytes, settings.memtable_bytes, settings.table_bytes);
        self.space().set_limit(limit, counts).map_err(|used| too_large(bytes, used))?;
        // Merges plan with the room that they have made.
        self.tables.hurry_removals(|| self.space().is_limited());
        Ok(())
    }

    /// Sets the limit on space anew; 0 is none.
    pub fn set_space_limit(&self, bytes: u64) -> Result<()> {
        self.check_writable()?;
        check_space_limit(bytes, self.settings.memtable_bytes)?;
        self.count_memtables();
        self.tables.remove_gone();
        self.try_space_limit(bytes, true)?;
        self.update_pressure();
        self.sched.want_looks(self.trees.load().by_id.keys().copied());
        self.sched.wake_all();
        Ok(())
    }
}
