//! What the leader of a commit group works with.

use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::table::meta::FileId;
use crate::wal::{LogSyncer, LogWriter};

/// What only the leader of a commit group touches.
pub(crate) struct Leader {
    /// `None` in a database opened for reading only, and once closed.
    pub wal: Option<LogWriter>,
    pub next_seq: SeqNo,
    /// The framed records of a group; kept for its memory.
    pub buffer: Vec<u8>,
    /// Older logs with bytes that are not synced yet.
    pub unsynced: Vec<Arc<LogSyncer>>,
    /// Whether there are records that are not synced yet.
    pub dirty: bool,
    /// Bytes of operations since the memtables of all trees were last looked at.
    pub bytes_since_check: u64,
}

/// A log file that may still be needed for recovery.
#[derive(Clone, Debug)]
pub(crate) struct LiveWal {
    pub id: FileId,
    /// The last sequence number inside; `None` while it is the one being written.
    pub last_seq: Option<SeqNo>,
    pub bytes: u64,
}
