//! Transactions that are prepared and not decided.

use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::table::Blob;
use crate::table::meta::{FileId, TableMeta};
use crate::txn::Owner;
use crate::version::TreeId;
use crate::wal::OpIter;
use crate::write::ops::{Ops, user_bytes};

/// The tables of a large transaction by tree.
pub(crate) type TablesOf = Vec<(TreeId, Vec<TableMeta>)>;

/// Where the writes of a prepared transaction are.
pub(crate) enum PreparedWrites {
    /// In the log: the number of the prepare record, and the operations as in it.
    Logged { seq: SeqNo, ops: Vec<u8> },
    /// In tables that the manifest names and that are in no tree; the files are called runs.
    Tables(TablesOf),
}

/// How much a commit writes, as statistics count it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub ops: u64,
    /// Bytes of keys and values.
    pub user_bytes: u64,
}

impl Written {
    /// What a recovery finds in a log.
    pub fn of_ops(ops: &[u8]) -> Written {
        OpIter::new(ops, 1).fold(Written::default(), |sum, op| Written {
            ops: sum.ops + 1,
            user_bytes: sum.user_bytes + user_bytes(op.kind, op.key, op.value),
        })
    }

    /// What a recovery finds in tables: there each key is once, and a large value is a reference.
    pub fn of_tables(trees: &TablesOf) -> Written {
        let tables = trees.iter().flat_map(|(_, tables)| tables);
        tables.fold(Written::default(), |sum, meta| Written {
            ops: sum.ops + meta.entries + meta.range_deletes,
            user_bytes: sum.user_bytes + meta.key_bytes + meta.value_bytes,
        })
    }
}

impl From<&Ops> for Written {
    fn from(ops: &Ops) -> Written {
        Written { ops: ops.count().into(), user_bytes: ops.user_bytes() }
    }
}

/// A prepared transaction that is not decided.
pub(crate) struct PreparedCore {
    pub writes: PreparedWrites,
    pub written: Written,
    /// The file that tells of it if the manifest does not; see [`mark`].
    ///
    /// [`mark`]: crate::version::mark
    pub mark: Option<FileId>,
    /// Its locks.
    pub owner: Owner,
    /// The blob files that it refers to.
    pub blobs: Vec<Arc<Blob>>,
}

impl PreparedCore {
    /// From where on it needs the log, if it does.
    pub fn log_seq(&self) -> Option<SeqNo> {
        match &self.writes {
            PreparedWrites::Logged { seq, .. } => Some(*seq),
            PreparedWrites::Tables(_) => None,
        }
    }

    /// The number of its prepare record and its operations, if they are in the log.
    pub fn logged(&self) -> Option<(SeqNo, &[u8])> {
        match &self.writes {
            PreparedWrites::Logged { seq, ops } => Some((*seq, ops)),
            PreparedWrites::Tables(_) => None,
        }
    }

    /// What its writes take: in memory, or of tables on disk.
    pub fn bytes(&self) -> u64 {
        match &self.writes {
            PreparedWrites::Logged { ops, .. } => ops.len() as u64,
            PreparedWrites::Tables(_) => self.tables().map(|meta| meta.file_bytes).sum(),
        }
    }

    /// The tables that it needs.
    pub fn tables(&self) -> impl Iterator<Item = &TableMeta> {
        let trees = match &self.writes {
            PreparedWrites::Logged { .. } => &[][..],
            PreparedWrites::Tables(trees) => trees,
        };
        trees.iter().flat_map(|(_, tables)| tables)
    }
}
