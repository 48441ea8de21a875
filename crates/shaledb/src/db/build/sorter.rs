//! Sorts the entries of a build in bounded memory: what does not fit goes to sorted runs in files,
//! as the writes of a transaction do, and one merge gives them back in order.

use crate::base::error::Result;
use crate::base::key::Kind;
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;
use crate::db::core::{Core, TreeCore};
use crate::db::ingest::RunWriter;
use crate::table::TableDictionary;
use crate::txn::runs::SpilledRun;
use crate::txn::write_set::{EachEntry, WriteSet, write_bytes};

/// What is told of an entry: the key and the value.
type EachSorted<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// The entries of a tree on their way into order.
pub(super) struct Sorter {
    core: Arc<Core>,
    tree: Arc<TreeCore>,
    entries: WriteSet,
    memory_bytes: u64,
    spilled_bytes: u64,
}

impl Sorter {
    pub fn new(core: &Arc<Core>, tree: &Arc<TreeCore>, memory_bytes: u64) -> Sorter {
        Sorter {
            core: core.clone(),
            tree: tree.clone(),
            entries: WriteSet::default(),
            memory_bytes,
            spilled_bytes: 0,
        }
    }

    /// How many bytes have been written to files, those of runs that were merged included.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes
    }

    /// What is in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.entries.memory_bytes()
    }

    /// Adds an entry. Of equal keys the one that was added last counts.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let held = self.entries.memory_bytes();
        if held > 0 && held + write_bytes(key, value) > self.memory_bytes {
            self.spill()?;
        }
        self.entries.add(self.tree.id, Kind::Put, key, value);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let id = self.tree.id;
        let run = self.write_run(0, |entries, each| entries.each_in_memory(id, each))?;
        self.entries.spilled(run.map(|run| (id, run)).into_iter().collect());
        while let Some((id, first)) = self.entries.due_merge() {
            let tier = self.entries.next_tier(id, first);
            let merged =
                self.write_run(tier, |entries, each| entries.each_in_runs(id, first, each))?;
            self.entries.merged(id, first, merged);
        }
        Ok(())
    }

    fn write_run(
        &mut self,
        tier: u32,
        walk: impl FnOnce(&WriteSet, &mut EachEntry<'_>) -> Result<()>,
    ) -> Result<Option<SpilledRun>> {
        let core = &self.core;
        let mut options = core.table_options(&self.tree, 0);
        options.dictionary = TableDictionary::None;
        let mut writer = RunWriter::new(core, false, options, RangeDeletes::default());
        walk(&self.entries, &mut |key, seq, kind, value| writer.add(key, seq, kind, value))?;
        let tables = writer.finish()?;
        self.spilled_bytes += tables.iter().map(|meta| meta.file_bytes).sum::<u64>();
        SpilledRun::new(tables.into_iter().map(|meta| core.open_run(meta)).collect(), tier)
    }

    /// Tells `each` of all entries in the order of their keys, of equal ones the last.
    pub fn drain(self, each: &mut EachSorted<'_>) -> Result<()> {
        self.entries.each_newest(self.tree.id, &mut |_, key, value| each(key, value))
    }
}
