//! The write-ahead log: what makes a commit durable before it is anywhere else.
//!
//! [`record`] frames payloads with checksums (the manifest uses the same frames), [`payload`] is
//! what a WAL record says, [`prepared`] follows transactions in two phases through records,
//! [`writer`] appends and syncs, [`reader`] finds the records of one file,
//! [`follow`] reads a log that another process writes,
//! [`mod@replay`] turns the WALs of a database back into batches and decides where the log ends,
//! and [`inspect`] reads damaged files for people and for repair.

pub mod payload;
pub mod prepared;
pub mod record;
pub mod reader;
pub mod inspect;
pub mod replay;
pub mod follow;
#[cfg(test)]
mod testing;
pub mod writer;

pub use follow::{LogTail, TailEnd};
pub use payload::{Op, OpIter, WalBatch};
pub use prepared::{PreparedLog, Undecided};
pub use reader::{RecordReader, Step};
pub use record::Framer;
pub use replay::{ReplayEnd, ReplayStart, replay};
pub use writer::{LogSyncer, LogWriter};
