//! The write set of a transaction, as a source of its scans.

use crate::iter::WriteSetView;
use crate::iter::concat::{Concat, Run};
use crate::memtable::Memtable;
use crate::table::{CursorOptions, TableCursor};
use crate::version::Level;
use std::sync::Arc;

/// The writes of the reader's own transaction: where they are, and which he sees.
#[derive(Clone, Debug)]
pub struct WriteSetSources {
    /// The newest.
    pub memtable: Arc<Memtable>,
    /// What did not fit memory.
    pub runs: Vec<Arc<Level>>,
    /// Which are seen.
    pub writes: WriteSetView,
}

impl WriteSetSources {
    /// A cursor over each run.
    pub fn run_cursors(&self, options: CursorOptions) -> impl Iterator<Item = Concat<TableCursor>> {
        self.runs.iter().map(move |level| {
            let run = Run::Level { level: level.clone(), range: 0..level.len() };
            Concat::new(run, options)
        })
    }
}
