//! Repair: what a damaged database still has is written to a new one.
//!
//! 1. Find out which trees and tables there are: from the manifest; from those of its edits that
//!    are sound if it is damaged; from the tables themselves, each of which names its tree, if
//!    there is none.
//! 2. Read every table and note what cannot be read.
//! 3. Read the log: the operations that are in no table, and those older ones that damaged parts
//!    of tables may have held.
//! 4. Tree by tree, merge all of that by key and sequence number, apply deletes, read the values
//!    that are blobs, and load the rows that are left into a tree of the same name and settings.
//!
//! The damaged database is not changed. The result has no history: a snapshot's worth of rows.
//! Sources are ordered by sequence numbers alone, so levels need not be known.
//!
//! # What may come back
//! Data that is lost can no longer hide what is older. Where a lost part held the newest version
//! of a key, an older one may show; where it held a delete, the row may be there again. If the
//! manifest is lost, tables that it no longer named, but that were not yet removed, are taken in,
//! and so are log files: rows deleted long ago may come back, dropped trees too. Equal sequence
//! numbers (0, for rows that a compaction found to be older than every reader) are then decided
//! by the number of the file; bulk-loaded rows, whose numbers only the manifest knew, count as 0.
//! So do those of transactions that did not fit their memory. What was not committed does not come
//! back: until then files are called `.run`, which are left out unless a `.prepared` file says that
//! they are of a prepared transaction. One that was being committed, or prepared, when the machine
//! stopped may be found committed, or prepared; of a bulk load, or a large commit that was not
//! prepared, that was just being finished, a part.
//!
//! A transaction comes back as prepared if no decision on it can be read, unless the manifest tells
//! that there was one. What is lost of a log may have had it: then the report names each.
//!
//! A tree whose build has not ended is left out, as by an open. If the manifest's part that would
//! tell is lost, what there is of it is taken, and the report says so; if all of the manifest is
//! lost, nothing tells such a tree from another.

mod report;
mod options;
mod work;
mod catalog;
mod rows;
mod prepared;
mod run;

pub use options::{RepairOptions, RepairProgress, RepairStep};
pub use report::{CatalogStanding, FileDamage, LostRange, RepairReport, RepairedTree};
pub use run::{examine, repair};

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
