//! What a run showed: tables and sentences for a terminal, JSON lines for programs, one page of
//! HTML, and the comparison of runs. docs/results.md documents the fields and the tests.
//!
//! - [`read`](mod@read): rows from files. [`figure`], [`fold`](mod@fold): what a row says, and
//!   repeats.
//! - [`cell`], [`cells`], [`cell_table`]: the matrix of conditions (`bench compress --matrix`).
//! - [`columns`](mod@columns), `around`, [`explain`](mod@explain), [`terminal`]: one run as text.
//! - [`stats`], [`compare`](mod@compare), [`changes`]: runs against each other.
//! - [`mod@page`]: the page of HTML. [`mod@lines`]: JSON lines. `write`: all of it.

pub mod read;
pub mod figure;
pub mod fold;
mod table;
pub mod cell;
pub mod cells;
pub mod cell_table;
pub mod columns;
mod around;
pub mod explain;
pub mod terminal;
pub mod stats;
pub mod compare;
pub mod changes;
pub mod page;
pub mod lines;
mod options;
mod write;

pub use options::ReportOptions;
pub use table::plain_table;
pub use write::{PAGE, finished, run};
