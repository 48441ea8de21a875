//! How the tables of a tree are written and opened, and how files go that no edit names.

use crate::base::sync::Arc;
use crate::compaction::plan::{self, Space};
use crate::compaction::policy;
use crate::compaction::score::Targets;
use crate::db::core::{Core, TreeCore};
use crate::table::format::FileKind;
use crate::table::meta::{FileId, TableMeta};
use crate::table::{Table, TableOptions};

impl Core {
    /// What the picker is given of this tree's settings.
    pub fn pick_settings(&self, tree: &TreeCore, space: Space) -> plan::Settings {
        plan::Settings {
            memtable_bytes: self.settings.memtable_bytes,
            table_bytes: self.settings.table_bytes,
            codecs: tree.codecs_in(space),
            filter_bits: tree.config.filter_bits,
            building: tree.is_building(),
        }
    }

    /// How tables of a level of this tree are written.
    pub fn table_options(&self, tree: &TreeCore, level: usize) -> TableOptions {
        let settings = self.pick_settings(tree, self.pick_space());
        let shape = tree.state.load().version.shape();
        let base = Targets::of(&shape, &settings).base;
        let choice = settings.codecs.of(level, base);
        TableOptions {
            codec: choice.codec,
            why: choice.why,
            dictionary: self.table_dictionary(tree, choice),
            block_bytes: settings.codecs.blocks.of(level).0 as usize,
            filter_bits: policy::filter_bits(tree.config.filter_bits, level),
            tree: tree.id,
        }
    }

    /// A table of this database; nothing is read yet.
    pub fn open_table(&self, meta: TableMeta) -> Arc<Table> {
        let path = self.path(FileKind::Table, meta.id);
        let blobs = meta.blobs.iter().map(|id| self.blob(*id)).collect();
        let table = Table::new(meta, path, &self.tables);
        table.hold_blobs(blobs);
        table
    }

    /// Removes files that no edit names. After a failure that leaves open whether an edit became
    /// durable they stay: the next open knows whether they are needed.
    pub fn discard(&self, ids: &[FileId]) {
        if !self.is_poisoned() {
            self.discard_files(FileKind::Table, ids.iter().copied());
        }
    }

    /// Removes files that no edit can name.
    pub fn discard_files(&self, kind: FileKind, ids: impl IntoIterator<Item = FileId>) {
        for id in ids {
            let path = self.path(kind, id);
            if let Err(error) = self.env.fs.remove(&path) {
                tracing::debug!(%error, "an unfinished table is left for the next open to remove");
            }
        }
    }
}
