//! Opening: the lock, the manifest, the log, and clearing away what a crash left behind.
//!
//! 1. Take the lock; read CURRENT and the manifest it names; check that every table is there.
//! 2. Write a new manifest with the same content (so that the old one's torn end is of no account).
//! 3. Replay the log into memtables, skipping what is in tables; flush those that grow too large.
//! 4. Start a new log file; cut off what was never durable; remove files that nothing names.
//!
//! A crash at any point of this leaves a state from which the next open does the same. Opening for
//! reading only does 1 and 3 and changes nothing.

use super::files::log_files;
use super::replay::Replay;
use super::space;
use crate::base::config::Config;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::db::background::cores;
use crate::db::core::{Core, LiveWal, Settings, TreeCore, Trees};
use crate::db::options::{Background, OpenOptions};
use crate::fs::guard::{Guard, GuardedFs};
use crate::fs::{Env, Fs, os};
use crate::table::format::{FileKind, Files, LOCK, list_files};
use crate::table::meta::{FileId, TableMeta};
use crate::version::edit::{Edit, LogStart};
use crate::version::manifest::{self, CURRENT, Manifest, Recovered, RecoveredTree};
use crate::version::{TreeId, Version};
use crate::wal::replay::{self, ReplayEnd, ReplayStart};
use crate::wal::{LogWriter, PreparedLog};
use std::collections::BTreeSet;
use std::path::Path;

/// Opens the database in `dir`.
pub(crate) fn open(dir: &Path, config: &Config, options: OpenOptions) -> Result<Arc<Core>> {
    config.validate()?;
    open_valid(dir, config, options).map_err(space::refused)
}

fn open_valid(given: &Path, config: &Config, options: OpenOptions) -> Result<Arc<Core>> {
    let OpenOptions { env, background, read_only } = options;
    // A process that changes its directory would read, truncate and remove another's files.
    let dir = &env.fs.absolute(given)?;
    let guard = Arc::new(Guard::new(given));
    let door = GuardedFs::new(env.fs, dir, guard.clone());
    let fs: Arc<dyn Fs> = Arc::new(door.clone());
    let env = Env { fs: fs.clone(), ..env };
    if !fs.exists(&dir.join(CURRENT))? {
        if read_only || !config.create {
            return Err(Error::NoDatabase(given.to_owned()));
        }
        crate::fs::create_dirs(&*fs, given)?;
    }
    let lock = match read_only {
        false => fs.lock(&dir.join(LOCK))?,
        true => match fs.lock_shared(&dir.join(LOCK)) {
            // No lock file, no right to open it, or a file system without locks. A writer may come
            // at any time, so its files are held.
            Err(error @ Error::Io { .. }) => {
                tracing::warn!(%error, "the database is read without its lock");
                return super::follow::open_without_lock(given, config, env);
            }
            other => other?,
        },
    };
    let mut files = list_files(&*env.fs, dir)?;
    let limit = if read_only { 0 } else { config.space_limit };
    if !read_only {
        space::count_files(&door, dir)?;
    }
    // Asked under the lock: another may have made it since.
    if !fs.exists(&dir.join(CURRENT))? && !read_only && config.create {
        create(&env, dir, &files)?;
    }
    let recovered = manifest::recover(&*fs, dir)?;
    check_tables(dir, &recovered, &files)?;
    check_log_end(dir, &recovered, &files)?;

    let settings = Settings::resolve(config, os::memory_bytes(), cores());
    let mut core = Core::new((env, door), dir.clone(), given, settings, &recovered, guard);
    core.read_only = read_only;
    core.stepped = background == Background::Stepped;
    if !core.stepped {
        // What a simulation does is the same on any machine.
        core.locks.fit(core.settings.cores);
    }
    core.lock = Mutex::new(Some(lock));
    let newest = files.keys().map(|(_, id)| *id).max().unwrap_or(0);
    core.next_file = AtomicU64::new(recovered.next_file.max(newest + 1));
    space::begin(&core, limit, &recovered, &mut files)?;
    add_trees(&core, &recovered)?;
    if !read_only {
        let id = core.new_file();
        let mut snapshot = recovered.snapshot.clone();
        snapshot.next_file = Some(id + 1);
        *core.manifest.lock() = Some(Manifest::create(&core.env.fs, dir, id, &snapshot)?);
        // Now, since what follows may fail at each of many tries, which would leave one each.
        for ((_, old), _) in files.iter().filter(|((kind, _), _)| *kind == FileKind::Manifest) {
            core.env.fs.remove(&core.path(FileKind::Manifest, *old))?;
        }
    }
    let core = Arc::new(core);
    core.watch_snapshots();
    if !read_only {
        // What a killed process left in the page cache is read back but may not be durable yet.
        for (_, path) in log_files(&core, recovered.log.file, &files) {
            core.env.fs.append(&path)?.sync()?;
        }
    }
    let end = replay_log(&core, &recovered, &files)?;
    if !read_only {
        finish(&core, &recovered, &files, &end)?;
        space::end(&core, limit)?;
    }
    Ok(core)
}

/// Makes an empty database. A crash before its end leaves a directory that counts as empty.
fn create(env: &Env, dir: &Path, files: &Files) -> Result<()> {
    let data = |kind| !matches!(kind, FileKind::Manifest | FileKind::Current | FileKind::Lock);
    if let Some(((kind, id), _)) = files.iter().find(|((kind, _), _)| data(*kind)) {
        let name = crate::table::format::file_name(*kind, *id);
        return Err(Error::corruption(
            &dir.join(CURRENT),
            0,
            format!("it is missing, but the directory has data files such as {name}"),
        ));
    }
    Manifest::create(&env.fs, dir, 1, &Edit::default())?;
    Ok(())
}

/// Every table that the manifest names must be there, as long as it was written.
fn check_tables(dir: &Path, recovered: &Recovered, files: &Files) -> Result<()> {
    let of_trees = recovered.trees.values().flat_map(|tree| tree.levels.iter().flatten());
    let prepared = recovered.prepared.values().flatten().flat_map(|(_, tables)| tables);
    // A commit that was not made may have called it a table.
    let kind_of = |meta: &TableMeta| match files.contains_key(&(FileKind::Table, meta.id)) {
        true => FileKind::Table,
        false => FileKind::Run,
    };
    let prepared = prepared.map(|meta| (kind_of(meta), meta));
    for (kind, meta) in of_trees.map(|meta| (FileKind::Table, meta)).chain(prepared) {
        let path = dir.join(crate::table::format::file_name(kind, meta.id));
        match files.get(&(kind, meta.id)) {
            None => {
                return Err(Error::corruption(
                    &path,
                    0,
                    "the manifest names it, but it is missing",
                ));
            }
            Some(&bytes) if bytes != meta.file_bytes => {
                let what = format!("it has {bytes} bytes, but {} were written", meta.file_bytes);
                return Err(Error::corruption(&path, bytes.min(meta.file_bytes), what));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The log's last file must be there, as long as it was when the database was closed. (That it is
/// sound is found out when it is read.) Before anything is written, so that it is not forgotten.
fn check_log_end(dir: &Path, recovered: &Recovered, files: &Files) -> Result<()> {
    let Some((id, bytes)) = recovered.log_end else { return Ok(()) };
    let found = files.get(&(FileKind::Wal, id)).copied();
    let what = match found {
        Some(found) if found >= bytes => return Ok(()),
        Some(found) => {
            format!("the log had {bytes} bytes when the database was closed, and has {found} now")
        }
        None => {
            format!("the log had {bytes} bytes when the database was closed, and is missing now")
        }
    };
    let path = dir.join(crate::table::format::file_name(FileKind::Wal, id));
    Err(Error::corruption(&path, found.unwrap_or(0), what))
}

fn add_trees(core: &Core, recovered: &Recovered) -> Result<()> {
    let mut trees = Trees::default();
    for (&id, tree) in &recovered.trees {
        trees.insert(tree_core(core, id, tree)?);
    }
    core.trees.store(Arc::new(trees));
    Ok(())
}

fn tree_core(core: &Core, id: TreeId, tree: &RecoveredTree) -> Result<Arc<TreeCore>> {
    let open = |meta: &TableMeta| core.open_table(meta.clone());
    let levels = tree.levels.iter().map(|level| level.iter().map(open).collect()).collect();
    let version = Version::from_levels(levels)?;
    Ok(TreeCore::new(id, tree.name.clone(), tree.config.clone(), version))
}

/// Puts what is in the log and not in tables into memtables.
fn replay_log(core: &Core, recovered: &Recovered, files: &Files) -> Result<ReplayEnd> {
    let start = ReplayStart {
        flushed_to: recovered.log.seq,
        durable: recovered.last_seq,
        end: recovered.log_end,
    };
    let wals = log_files(core, recovered.log.file, files);
    let first = recovered.log.file;
    if first != 0 && wals.first().is_none_or(|(id, _)| *id != first) {
        let what = "the manifest says that the log starts with it, but it is missing";
        return Err(Error::corruption(&core.path(FileKind::Wal, first), 0, what));
    }
    let mut replay = Replay::new(core, recovered);
    let mut prepared = PreparedLog::default();
    let end = replay::replay(&*core.env.fs, &core.dir, &wals, start, &mut |batch| {
        prepared.read(&batch, &mut |op, from| replay.apply(op, from))
    })?;
    replay.make_room()?;
    // Where numbers are missing the decision may have been. Elsewhere it was lost with all that was
    // committed after it, or is still to come.
    prepared.forget_decided(end.whole_from);
    for (xid, undecided) in prepared.undecided {
        core.adopt_prepared(xid, undecided, &*core.env.clock);
    }
    for (xid, trees) in &recovered.prepared {
        core.adopt_prepared_tables(xid.clone(), trees.clone())?;
    }
    core.update_pressure();
    let mut leader = core.leader.lock();
    debug_assert!(leader.next_seq <= end.last_seq + 1, "sequence numbers never go back");
    leader.next_seq = end.last_seq + 1;
    drop(leader);
    core.publish(end.last_seq);
    core.durable.store(end.durable_seq, Ordering::Release);
    Ok(end)
}

/// Makes what was recovered durable, clears away the rest, and starts a new log file.
fn finish(core: &Core, recovered: &Recovered, files: &Files, end: &ReplayEnd) -> Result<()> {
    let fs = &*core.env.fs;
    let id = core.new_file();
    let wal = LogWriter::create(fs, &core.path(FileKind::Wal, id), id, &core.guard, 0)?;
    let wals = log_files(core, recovered.log.file, files);
    assert!(wals.iter().all(|(old, _)| *old < id), "numbers of files never go back");
    let kept = wals.iter().map(|(id, _)| *id).filter(|id| *id <= end.end_file);
    let kept: Vec<FileId> = kept.chain([id]).collect();
    name_first_log(core, recovered, kept[0])?;
    replay::cut(fs, &core.dir, &wals, end)?;
    core.durable.store(end.last_seq, Ordering::Release);
    // Listed anew, without what the cut has removed.
    remove_orphans(core, &kept, &list_files(fs, &core.dir)?)?;

    core.begin_log(&mut core.leader.lock(), wal);
    for kept in kept {
        let bytes = files.get(&(FileKind::Wal, kept)).copied().unwrap_or(0);
        let last_seq = (kept != id).then_some(end.last_seq);
        core.wals.lock().push(LiveWal { id: kept, last_seq, bytes });
    }
    // A crash that took a rollback, and a commit before it, leaves prepared what the manifest says
    // needs no log any more: it gets a record that does.
    match core.prepare_again(&mut core.leader.lock(), recovered.log.seq) {
        // Whoever makes room, or decides the transaction, needs an open database for it.
        Err(error) if error.is_without_room() => {
            tracing::warn!(%error, "a prepared transaction may be lost by the next crash");
        }
        done => done?,
    }
    forget_old_logs(core, id, end.last_seq)?;
    core.sched.want_spare_log();
    let trees = core.trees.load_full();
    let sealed = trees.by_id.values().filter(|tree| !tree.state.load().sealed.is_empty());
    core.sched.want_flushes(sealed.map(|tree| tree.id));
    core.note_shapes(trees.by_id.values().map(|tree| &**tree));
    Ok(())
}

/// Tells the manifest which log file is the first one now, before others are removed: a file that
/// it names and that is not there counts as lost.
fn name_first_log(core: &Core, recovered: &Recovered, first: FileId) -> Result<()> {
    core.log_file.store(first, Ordering::Release);
    if first == recovered.log.file {
        return Ok(());
    }
    let edit = Edit {
        log: Some(LogStart { file: first, seq: recovered.log.seq }),
        next_file: Some(core.next_file.load(Ordering::Relaxed)),
        ..Edit::default()
    };
    core.append_edit(&mut core.manifest.lock(), &edit)
}

/// If all that was committed is in tables and nothing is prepared, the log starts with the new
/// file.
fn forget_old_logs(core: &Core, new: FileId, seq: SeqNo) -> Result<()> {
    if core.prepared.lock().values().any(|prepared| prepared.log_seq().is_some()) {
        return Ok(());
    }
    let trees = core.trees.load();
    if trees.by_id.values().any(|tree| tree.first_unflushed().is_some()) {
        return Ok(());
    }
    let log = Some(LogStart { file: new, seq });
    core.append_edit(&mut core.manifest.lock(), &Edit { log, ..Edit::default() })?;
    core.flushed_to.store(seq, Ordering::Release);
    core.log_file.store(new, Ordering::Release);
    core.remove_old_logs();
    Ok(())
}

/// Removes files that nothing names: outputs of jobs that did not end, tables that compactions
/// replaced, blobs of commits that were never made, old logs and manifests.
fn remove_orphans(core: &Core, wals: &[FileId], files: &Files) -> Result<()> {
    let mut needed: BTreeSet<(FileKind, FileId)> = BTreeSet::new();
    needed.extend(wals.iter().map(|id| (FileKind::Wal, *id)));
    if let Some(manifest) = core.manifest.lock().as_ref() {
        needed.insert((FileKind::Manifest, manifest.id()));
    }
    for tree in core.trees.load().by_id.values() {
        let state = tree.state.load();
        for (_, table) in state.version.tables() {
            let meta = &table.meta;
            needed.insert((FileKind::Table, meta.id));
            needed.extend(meta.blobs.iter().map(|id| (FileKind::Blob, *id)));
        }
        for memtable in state.sealed.iter().chain([&state.active]) {
            let blobs = memtable.attached::<crate::table::Blob>();
            needed.extend(blobs.iter().map(|blob| (FileKind::Blob, blob.id())));
        }
    }
    for prepared in core.prepared.lock().values() {
        needed.extend(prepared.blobs.iter().map(|blob| (FileKind::Blob, blob.id())));
        needed.extend(prepared.tables().map(|meta| (FileKind::Run, meta.id)));
        needed.extend(prepared.mark.map(|id| (FileKind::Prepared, id)));
    }
    let is_table = |needed: &&(FileKind, FileId)| needed.0 == FileKind::Table;
    debug_assert!(
        needed.iter().filter(is_table).all(|table| files.contains_key(table)),
        "each table that is named is there"
    );
    for &(kind, id) in files.keys() {
        let numbered = !matches!(kind, FileKind::Current | FileKind::Lock);
        if numbered && !needed.contains(&(kind, id)) {
            tracing::info!(?kind, id, "a file that nothing needs is removed");
            core.env.fs.remove(&core.path(kind, id))?;
        }
    }
    Ok(())
}
