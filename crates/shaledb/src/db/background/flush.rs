//! Running flushes: the sealed memtables of one tree or of many become a table of level 0 each,
//! installed by one edit. `next_job` chooses them.
//!
//! A flush of many trees syncs each table, but the directory and the manifest once for all of them:
//! trees with a little each would else cost three syncs apiece.

use super::codecs::WrittenTable;
use super::install::Change;
use super::outcome::Work;
use crate::base::activity::Activity;
use crate::base::error::Result;
use crate::base::stats::Counter;
use crate::base::sync::Arc;
use crate::compaction::older::Older;
use crate::db::core::{Core, FlushedOf, TreeCore};
use crate::fs::WriteFile;
use crate::memtable::{Memtable, chunk};
use crate::table::TableWriter;
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::version::TreeId;
use crate::version::edit::TreeEdit;
use crate::write::flush;
use std::collections::BTreeSet;

/// One tree's part of a flush.
struct Part<'a> {
    tree: &'a TreeCore,
    /// What is flushed, newest first; not empty.
    memtables: Vec<Arc<Memtable>>,
    id: FileId,
    /// The table, and its file until it is durable.
    table: Option<(TableMeta, Box<dyn WriteFile>)>,
    nanos: u64,
    cpu_nanos: u64,
}

impl Core {
    /// Runs a flush that was chosen, takes back its marks and notes how it went.
    pub fn run_flush_job(&self, trees: &[Arc<TreeCore>]) -> Result<()> {
        let result = self.run_flush(&trees.iter().map(|tree| &**tree).collect::<Vec<_>>());
        let mut state = self.sched.lock();
        for tree in trees {
            assert!(state.flushing.remove(&tree.id), "a flush that ran was marked as running");
            if !tree.is_dropped() && !tree.state.load().sealed.is_empty() {
                state.flush.insert(tree.id);
            }
        }
        let is_quiet = state.quiet_handled;
        drop(state);
        if is_quiet {
            chunk::release();
        }
        let result = self.note_outcome(Work::Flush, result);
        self.announce_progress();
        result
    }

    /// Writes the sealed memtables of each tree to one table of level 0. Nobody else may flush
    /// these trees meanwhile. Trees that are dropped meanwhile are passed over.
    pub fn run_flush(&self, trees: &[&TreeCore]) -> Result<()> {
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(trees.len());
        for &tree in trees {
            let memtables = tree.state.load().sealed.clone();
            assert!(
                memtables.is_sorted_by(|newer, older| newer.last_seq() > older.last_seq()),
                "sealed memtables are in order"
            );
            if !memtables.is_empty() {
                let id = self.new_file();
                parts.push(Part { tree, memtables, id, table: None, nanos: 0, cpu_nanos: 0 });
            }
        }
        if parts.is_empty() {
            return Ok(());
        }
        self.renew_codecs();
        let started = self.env.clock.now_nanos();
        let outcome = self.write_tables(&mut parts).and_then(|()| self.install_flush(&parts));
        let installed = match outcome {
            Ok(installed) => installed,
            Err(error) => {
                self.discard(&parts.iter().map(|part| part.id).collect::<Vec<_>>());
                let dropped = parts.iter().all(|part| part.tree.is_dropped());
                return if dropped { Ok(()) } else { Err(error) };
            }
        };
        let nanos = self.env.clock.now_nanos() - started;
        let mut bytes = 0;
        // What the parts share is shared out evenly.
        let own: u64 = parts.iter().map(|part| part.nanos).sum();
        let shared = nanos.saturating_sub(own) / parts.len() as u64;
        for part in &parts {
            if !installed.contains(&part.tree.id) {
                self.discard(&[part.id]);
                continue;
            }
            let written = part.table.as_ref().map_or(0, |(meta, _)| meta.file_bytes);
            part.tree.levels.lock().flushed(written, part.nanos + shared, part.cpu_nanos);
            bytes += part.memtables.iter().map(|memtable| memtable.bytes() as u64).sum::<u64>();
        }
        self.throttle.note_flush(bytes, nanos);
        Ok(())
    }

    /// Writes the tables and makes them and their names durable.
    fn write_tables(&self, parts: &mut [Part<'_>]) -> Result<()> {
        let clock = &*self.env.clock;
        for part in &mut *parts {
            let (started, cpu) = (clock.now_nanos(), clock.thread_cpu_nanos());
            part.table = self.write_table(part)?;
            part.nanos = clock.now_nanos() - started;
            part.cpu_nanos = clock.thread_cpu_nanos() - cpu;
            self.recorder.spent_exactly(Activity::Flush, part.cpu_nanos);
            self.recorder.add_all([
                (Counter::BackgroundNanos, part.nanos),
                (Counter::BackgroundCpuNanos, part.cpu_nanos),
            ]);
        }
        // After all have been written: the first sync lets a journal commit what all of them need.
        for (_, file) in parts.iter_mut().filter_map(|part| part.table.as_mut()) {
            self.counted(|| {
                let started = self.tables.meter.storage();
                let result = file.sync();
                started.wrote(0);
                result
            })?;
        }
        self.env.fs.sync_dir(&self.dir)
    }

    fn write_table(&self, part: &Part<'_>) -> Result<Option<(TableMeta, Box<dyn WriteFile>)>> {
        // What is kept for them goes with the merges that come anyway.
        let snapshots = self.reader_seqs();
        let path = self.path(FileKind::Table, part.id);
        let file = self.env.fs.create(&path)?;
        let options = self.table_options(part.tree, 0);
        let (codec, dictionary) = (options.codec, options.dictionary.clone());
        let mut writer = TableWriter::new(file, part.id, options)
            .lent_by(&self.tables.memory)
            .counted_as(Activity::FlushCompress, &self.tables.meter);
        let probe = part.tree.probe(codec);
        if let Some(probe) = &probe {
            writer = writer.probed_by(probe);
        }
        // To a tree that is being built older rows than all of these may still come.
        let bytes = part.memtables.iter().map(|memtable| memtable.used_bytes() as u64).sum();
        let bits = part.tree.config.filter_bits;
        let asks = !part.tree.is_building();
        let older = asks.then(|| Older::all(&part.tree.state, bytes, bits));
        let table = flush::flush(&part.memtables, &snapshots, older, writer)?;
        if let Some((meta, _)) = &table {
            let written = WrittenTable { meta, codec, reused: 0, dictionary: &dictionary };
            self.learn(part.tree, 0, &written, probe.as_ref());
        }
        match &table {
            Some((meta, _)) => {
                let entries: u64 = part.memtables.iter().map(|memtable| memtable.count()).sum();
                assert_eq!(meta.id, part.id, "a table has the number of its file");
                assert!(meta.entries <= entries, "a flush makes no entries");
                assert!(meta.max_seq <= part.memtables[0].last_seq(), "nor newer ones");
            }
            None => self.env.fs.remove(&path)?,
        }
        Ok(table)
    }

    /// Installs the tables; answers with the trees that were still there.
    fn install_flush(&self, parts: &[Part<'_>]) -> Result<BTreeSet<TreeId>> {
        let flushed: FlushedOf<'_> =
            parts.iter().map(|part| (part.tree.id, &part.memtables[..])).collect();
        let through = parts.iter().map(|part| part.memtables[0].last_seq()).max().unwrap_or(0);
        self.sync_before_flush(&flushed, through)?;
        let mut changes = Vec::with_capacity(parts.len());
        for part in parts {
            if let Some((meta, _)) = &part.table {
                let version = &part.tree.state.load().version;
                let mut older = version.levels[0].metas().map(|older| older.max_seq);
                assert!(
                    older.all(|seq| seq < meta.min_seq),
                    "a flush is newer than all of level 0"
                );
            }
            let added = part.table.iter().map(|(meta, _)| (0, meta.clone())).collect();
            let flushed_seq = Some(part.memtables[0].last_seq());
            let edit = TreeEdit { tree: part.tree.id, added, removed: Vec::new(), flushed_seq };
            changes.push(Change { tree: part.tree, edit, flushed: &part.memtables });
        }
        self.install_all(changes, None, None)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
#[path = "flush_tests.rs"]
mod tests;
