//! Background work under way.

use crate::content::Content;
use crate::rates::Job;
use crate::tree::Merged;

/// A flush or a merge that runs.
#[derive(Debug)]
pub struct Running {
    /// `None` for the flush.
    pub merge: Option<Merged>,
    /// How many tables level 0 had when it began.
    pub level0_tables: usize,
    /// What it takes.
    pub job: Job,
    /// CPU seconds in codecs.
    pub codec: f64,
    /// Bytes read.
    pub read: f64,
    /// Bytes written.
    pub written: f64,
    /// Bytes before compression that are compressed.
    pub raw: f64,
    /// The level that it writes to.
    pub level: usize,
    /// How much of it is left, from 1 to 0.
    pub left: f64,
    /// When it began.
    pub began: f64,
}

/// The flush that runs: what it will make, and of how many of the sealed memtables.
#[derive(Debug)]
pub struct Flush {
    /// The work.
    pub running: Running,
    /// What the table will hold.
    pub content: Content,
    /// How many memtables it is made of.
    pub memtables: usize,
}
