//! A run of tables that do not overlap, as one cursor. A table is opened when the cursor gets there
//! and closed when it leaves, so a run of thousands costs a seek no more than a single table.

use super::source::Source;
use crate::base::activity::Activity;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::base::sync::Arc;
use crate::table::{BulkScan, CursorOptions, Table, TableCursor};
use crate::version::Level;
use std::ops::Range;

/// A cursor that can be opened on a table.
pub trait OpenTable: Cursor + Sized {
    /// How to open it.
    type Options;
    /// A cursor on `table`, not valid until a seek.
    fn open(table: &Arc<Table>, options: &Self::Options) -> Self;
    /// The same, where a scan goes forward to it from the end of the table before.
    fn open_after(_before: &Self, table: &Arc<Table>, options: &Self::Options) -> Self {
        Self::open(table, options)
    }
}

impl OpenTable for TableCursor {
    type Options = CursorOptions;
    fn open(table: &Arc<Table>, options: &CursorOptions) -> TableCursor {
        table.cursor(*options)
    }

    fn open_after(before: &Self, table: &Arc<Table>, options: &CursorOptions) -> TableCursor {
        TableCursor::after(before, table, *options)
    }
}

/// Which part of each table a compaction reads.
#[derive(Clone, Debug)]
pub struct ScanPart {
    /// The first key.
    pub start: Option<Vec<u8>>,
    /// The first key that is no longer part of it.
    pub end: Option<Vec<u8>>,
    /// How many bytes are read at once.
    pub read_bytes: u64,
}

impl ScanPart {
    /// All of it.
    pub fn all(read_bytes: u64) -> ScanPart {
        ScanPart { start: None, end: None, read_bytes }
    }
}

impl OpenTable for BulkScan {
    type Options = ScanPart;
    fn open(table: &Arc<Table>, part: &ScanPart) -> BulkScan {
        table
            .scan(part.start.as_deref(), part.end.as_deref())
            .counted_as(Activity::CompactionDecompress)
            .reading(part.read_bytes)
    }
}

/// Tables in key order that do not overlap.
#[derive(Clone, Debug)]
pub enum Run {
    /// Some of a level.
    Level {
        /// The level, not 0.
        level: Arc<Level>,
        /// Which of its tables.
        range: Range<usize>,
    },
    /// These.
    Tables(Vec<Arc<Table>>),
}

impl Run {
    /// The tables.
    #[inline]
    pub fn tables(&self) -> &[Arc<Table>] {
        match self {
            Run::Level { level, range } => &level.tables()[range.clone()],
            Run::Tables(tables) => tables,
        }
    }

    /// The first table that does not lie before `key`.
    fn position(&self, key: &[u8]) -> usize {
        let at = match self {
            // As searches of short ranges mostly have.
            Run::Level { level, range } if range.len() == 1 => {
                usize::from(level.tables()[range.start].meta.is_before(key))
            }
            Run::Level { level, range } => {
                level.position(key).clamp(range.start, range.end) - range.start
            }
            Run::Tables(tables) => tables.partition_point(|table| table.meta.is_before(key)),
        };
        debug_assert!(self.tables()[..at].last().is_none_or(|table| table.meta.is_before(key)));
        debug_assert!(self.tables().get(at).is_none_or(|table| !table.meta.is_before(key)));
        at
    }

    /// How many tables begin at or before `key`.
    fn beginning_up_to(&self, key: &[u8]) -> usize {
        let begins = |table: &Arc<Table>| table.meta.smallest.as_slice() <= key;
        let count = match self {
            Run::Level { level, range } if range.len() == 1 => {
                usize::from(begins(&level.tables()[range.start]))
            }
            Run::Level { level, range } => {
                level.beginning_up_to(key).clamp(range.start, range.end) - range.start
            }
            Run::Tables(tables) => tables.partition_point(begins),
        };
        debug_assert!(self.tables()[..count].last().is_none_or(begins));
        debug_assert!(!self.tables().get(count).is_some_and(begins));
        count
    }

    /// No entry is newer.
    fn max_seq(&self) -> SeqNo {
        match self {
            // Those of its other tables may be.
            Run::Level { level, .. } => level.max_seq(),
            Run::Tables(tables) => tables.iter().map(|table| table.meta.max_seq).max().unwrap_or(0),
        }
    }
}

/// The entries of a run. See the module.
pub struct Concat<C: OpenTable> {
    run: Run,
    options: C::Options,
    /// The table that the cursor is on.
    at: usize,
    /// The cursor there; `None` if this cursor is not valid.
    cursor: Option<C>,
}

impl<C: OpenTable> Concat<C> {
    /// A cursor over `run`, not valid until a seek.
    pub fn new(run: Run, options: C::Options) -> Concat<C> {
        let tables = run.tables();
        debug_assert!(tables.windows(2).all(|pair| pair[0].meta.is_before(&pair[1].meta.smallest)));
        Concat { run, options, at: 0, cursor: None }
    }

    /// The tables.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// From now on it is of those tables of its level that meet a range. Not valid until a seek. If
    /// the open table is one of them it stays open.
    pub fn restrict(&mut self, lower: &[u8], upper: Option<&[u8]>) {
        let Run::Level { level, range } = &mut self.run else { return };
        let open = range.start + self.at;
        *range = level.meeting(lower, upper);
        if range.contains(&open) {
            self.at = open - range.start;
        } else {
            (self.at, self.cursor) = (0, None);
        }
    }

    /// The cursor on the open table, if one is open.
    pub fn open_cursor(&mut self) -> Option<&mut C> {
        self.cursor.as_mut()
    }

    /// How tables are opened from now on.
    pub fn options_mut(&mut self) -> &mut C::Options {
        &mut self.options
    }

    /// The table whose entry is the current one. Only while valid.
    pub fn table(&self) -> &Arc<Table> {
        &self.run.tables()[self.at]
    }

    /// The cursor on the current table. Only while valid.
    #[inline]
    pub fn current(&self) -> &C {
        self.cursor.as_ref().expect("only while valid")
    }

    /// Moves the cursor on the current table by `step`, which must move it forward. Only while
    /// valid.
    pub fn advance_current(&mut self, step: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
        let moved = self.cursor.as_mut().map_or(Ok(()), step);
        self.check(moved)?;
        self.leave_forward()
    }

    /// Opens table `at`, or keeps it open; `None` past either end.
    fn open(&mut self, at: usize) -> Option<&mut C> {
        if at != self.at || self.cursor.is_none() {
            self.cursor = None;
            let table = self.run.tables().get(at)?;
            self.at = at;
            self.cursor = Some(C::open(table, &self.options));
        }
        self.cursor.as_mut()
    }

    /// If the open table has ended, goes to the first entry of the next one that has any.
    #[cold]
    fn leave_forward(&mut self) -> Result<()> {
        while let Some(before) = self.cursor.as_ref().filter(|cursor| !cursor.valid()) {
            let after = self.at + 1;
            let table = self.run.tables().get(after);
            self.cursor = table.map(|table| C::open_after(before, table, &self.options));
            if let Some(cursor) = self.cursor.as_mut() {
                self.at = after;
                let moved = cursor.seek_first();
                self.check(moved)?;
            }
        }
        Ok(())
    }

    /// If the open table has ended, goes to the last entry of the table before that has any.
    #[cold]
    fn leave_backward(&mut self) -> Result<()> {
        while self.cursor.as_ref().is_some_and(|cursor| !cursor.valid()) {
            if let Some(cursor) = self.open(self.at.wrapping_sub(1)) {
                let moved = cursor.seek_last();
                self.check(moved)?;
            }
        }
        Ok(())
    }

    /// No cursor is kept after an error.
    #[inline]
    fn check(&mut self, moved: Result<()>) -> Result<()> {
        if moved.is_err() {
            self.cursor = None;
        }
        moved
    }
}

impl<C: OpenTable> Cursor for Concat<C> {
    #[inline]
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.valid())
    }

    fn seek_first(&mut self) -> Result<()> {
        if let Some(cursor) = self.open(0) {
            let moved = cursor.seek_first();
            self.check(moved)?;
        }
        self.leave_forward()
    }

    fn seek_last(&mut self) -> Result<()> {
        if let Some(cursor) = self.open(self.run.tables().len().wrapping_sub(1)) {
            let moved = cursor.seek_last();
            self.check(moved)?;
        }
        self.leave_backward()
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if let Some(cursor) = self.open(self.run.position(key)) {
            let moved = cursor.seek(key, seq);
            self.check(moved)?;
        }
        self.leave_forward()
    }

    fn seek_back(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        if let Some(cursor) = self.open(self.run.beginning_up_to(key).wrapping_sub(1)) {
            let moved = cursor.seek_back(key, seq);
            self.check(moved)?;
        }
        self.leave_backward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let moved = cursor.next();
        if moved.is_ok() && cursor.valid() {
            return Ok(());
        }
        self.check(moved)?;
        self.leave_forward()
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        let moved = cursor.prev();
        if moved.is_ok() && cursor.valid() {
            return Ok(());
        }
        self.check(moved)?;
        self.leave_backward()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current().key()
    }

    #[inline]
    fn seq(&self) -> SeqNo {
        self.current().seq()
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.current().kind()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current().value()
    }
}

impl<C: OpenTable> Source for Concat<C> {
    fn max_seq(&self) -> SeqNo {
        self.run.max_seq()
    }

    /// Judges table by table, and does not open those that are passed over.
    fn skip_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        let tables = self.run.tables();
        let old = |table: &Arc<Table>| table.meta.max_seq < below;
        if self.cursor.is_none() || !old(&tables[self.at]) {
            return Ok(false);
        }
        let passed = |table: &&Arc<Table>| old(table) && table.meta.is_before(key);
        let to = self.at + tables[self.at..].iter().take_while(passed).count();
        let inside = tables.get(to).is_some_and(old);
        debug_assert!(to >= self.at && tables[self.at..to].iter().all(old), "only the old is left");
        if let Some(cursor) = self.open(to) {
            let moved = if inside { cursor.seek(key, SEQ_MAX) } else { cursor.seek_first() };
            self.check(moved)?;
        }
        self.leave_forward()?;
        Ok(true)
    }

    /// As [`Concat::skip_to`], backward.
    fn skip_back_to(&mut self, key: &[u8], below: SeqNo) -> Result<bool> {
        let tables = self.run.tables();
        let old = |table: &Arc<Table>| table.meta.max_seq < below;
        if self.cursor.is_none() || !old(&tables[self.at]) {
            return Ok(false);
        }
        let passed = |table: &&Arc<Table>| old(table) && table.meta.smallest.as_slice() >= key;
        let count = tables[..=self.at].iter().rev().take_while(passed).count();
        let to = self.at.wrapping_sub(count);
        let inside = tables.get(to).is_some_and(old);
        debug_assert!(
            count <= self.at + 1 && tables[self.at + 1 - count..=self.at].iter().all(old)
        );
        if let Some(cursor) = self.open(to) {
            let moved = if inside { cursor.seek_back(key, SEQ_MAX) } else { cursor.seek_last() };
            self.check(moved)?;
        }
        self.leave_backward()?;
        Ok(true)
    }
}

#[cfg(test)]
#[path = "concat_tests.rs"]
mod tests;
