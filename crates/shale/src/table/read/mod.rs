//! Reading a table: point reads, cursors, scans, samples; and verifying it.

mod sections;
mod reader;
mod cursor;
mod scan;
mod sample;
mod verify;

pub use cursor::{CursorOptions, TableCursor};
pub use reader::{Table, TableEntry};
pub use sample::TableSample;
pub use scan::TableScan;
pub(super) use sections::{read_dictionary, read_footer, read_section};
pub use verify::VerifyCounts;
