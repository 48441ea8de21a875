//! Reading a table: point reads, cursors, scans, samples; and verifying it.

mod sections;
mod scratch;
mod spare;
mod reader;
mod point;
mod missed;
mod ahead;
mod cursor;
mod bulk_scan;
mod sample;
mod verify;

pub use bulk_scan::BulkScan;
pub use cursor::{CursorOptions, TableCursor};
pub use missed::{Missed, Misses};
pub use point::{Look, Miss, TableEntry};
pub use reader::Table;
pub use sample::TableSample;
pub(super) use sections::{read_dictionary, read_footer, read_section};
pub use verify::VerifyCounts;
