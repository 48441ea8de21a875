//! What one reader sees of a merge: for each key the newest entry at or before its sequence number,
//! unless that entry is a delete or a range delete between the two covers it.
//!
//! Going forward, the merge stands at the entry shown; nothing is copied but the key, once a row,
//! to recognize its older versions. Going backward, the versions of a key come oldest first, so
//! the newest visible one is known only after all have been passed: key and value are kept in
//! buffers that are used again, and the merge stands before all versions of the key shown.
//!
//! Hidden entries must be cheap, however many there are: a run of deletes is a loop without
//! allocation; after [`STEPS`] hidden versions of one key the rest is jumped over by a seek; a run
//! covered by a range delete is jumped over in every source that holds nothing newer than it.

use super::covers::Covers;
use super::merge::Merge;
use super::source::Source;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo, WRITE_SET_FIRST};
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;

/// How many hidden entries are stepped over before a seek is tried.
const STEPS: u32 = 16;

/// How many covered entries of a range are stepped over before a jump is tried.
const COVERED_STEPS: u32 = 4;

/// Spans of numbers, first and last, of writes that were undone; ascending, none overlaps.
#[derive(Clone, Debug, Default)]
pub struct Undone(Option<Arc<Vec<(SeqNo, SeqNo)>>>);

impl Undone {
    /// These spans.
    pub fn new(spans: Vec<(SeqNo, SeqNo)>) -> Undone {
        debug_assert!(spans.iter().all(|span| span.0 <= span.1));
        debug_assert!(spans.is_sorted_by(|a, b| a.1 < b.0), "spans ascend and are disjoint");
        Undone((!spans.is_empty()).then(|| Arc::new(spans)))
    }

    /// All of them.
    pub fn spans(&self) -> &[(SeqNo, SeqNo)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Takes in the numbers from `first` to `last`, the newest there are. Spans that begin later
    /// are of what `first` undoes too. It copies the list only while somebody else has it: a
    /// statement may undo each of its rows.
    pub fn undo(&mut self, first: SeqNo, last: SeqNo) {
        assert!(first <= last, "something is undone");
        let spans = Arc::make_mut(self.0.get_or_insert_default());
        while spans.pop_if(|span| span.0 >= first).is_some() {}
        match spans.last_mut() {
            // Beyond `first` if this went back to it before.
            Some(span) if span.1 + 1 >= first => span.1 = last,
            _ => spans.push((first, last)),
        }
    }

    /// Whether this number is in one of them.
    pub fn has(&self, seq: SeqNo) -> bool {
        let spans = self.spans();
        let after = spans.partition_point(|span| span.0 <= seq);
        after > 0 && seq <= spans[after - 1].1
    }
}

/// The writes of the reader's own transaction, which are not committed: what he sees of them. Their
/// entries are in sources of their own, with numbers from [`WRITE_SET_FIRST`] on.
#[derive(Clone, Debug, Default)]
pub struct WriteSetView {
    /// The last number seen.
    pub last: SeqNo,
    /// What was undone of them.
    pub undone: Undone,
    /// Range deletes, without those undone, in one set or in several: of each place the newest.
    pub deletes: Vec<Arc<RangeDeletes>>,
}

impl WriteSetView {
    /// Whether the write with this number is seen.
    pub fn sees(&self, seq: SeqNo) -> bool {
        seq <= self.last && !self.undone.has(seq)
    }
}

/// Counts entries that are passed and dead: a newer committed one that the reader sees hides them.
/// (What an own write hides is so for its transaction only.)
#[derive(Debug)]
struct Dead {
    /// The first and the last number of those that are counted.
    first: SeqNo,
    last: SeqNo,
    count: u64,
}

impl Dead {
    #[inline]
    fn has(&self, seq: SeqNo) -> bool {
        self.first <= seq && seq <= self.last
    }

    /// An entry that is hidden by what was written at `by`.
    #[inline]
    fn note(&mut self, seq: SeqNo, by: SeqNo) {
        self.count += u64::from(self.first <= seq && by <= self.last);
    }
}

/// Where a [`Visible`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// At no row.
    Nowhere,
    /// At the merge's current entry.
    Forward,
    /// At the row in the buffers; the merge stands at the last entry before all of its versions.
    Backward,
    /// At the merge's current entry, which goes backward: the key has no other version.
    BackwardPlain,
}

/// The rows that a reader at one sequence number sees, in both directions.
#[derive(Debug)]
pub struct Visible<C> {
    merge: Merge<C>,
    seq: SeqNo,
    write_set: Option<WriteSetView>,
    covers: Covers,
    dead: Dead,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    position: Position,
    /// At the merge's current entry: so many entries after it (going backward: before it) are rows,
    /// and come next in the merge.
    plain: usize,
    /// Going backward: the row's key. Going forward: the key whose older versions are skipped.
    key: Vec<u8>,
    /// Going backward: the row's value and kind.
    value: Vec<u8>,
    kind: Kind,
}

impl<C: Source> Visible<C> {
    /// The rows of `merge` at or after `lower` and before `upper` that a reader at `seq` sees.
    /// `deletes` are the range deletes of all sources, in one set or in several.
    pub fn new(
        merge: Merge<C>,
        seq: SeqNo,
        deletes: Vec<Arc<RangeDeletes>>,
        lower: Vec<u8>,
        upper: Option<Vec<u8>>,
    ) -> Visible<C> {
        let covers = Covers::new(deletes, seq);
        Visible {
            merge,
            seq,
            write_set: None,
            covers,
            dead: Dead { first: SEQ_MAX, last: seq, count: 0 },
            lower,
            upper,
            position: Position::Nowhere,
            plain: 0,
            key: Vec::new(),
            value: Vec::new(),
            kind: Kind::Delete,
        }
    }

    /// Shows the reader's own writes as well, which are among the merge's sources.
    pub fn with_write_set(mut self, write_set: WriteSetView) -> Visible<C> {
        assert!(self.seq < WRITE_SET_FIRST, "a snapshot is of what is committed");
        self.covers.0.extend(Covers::new(write_set.deletes.clone(), SEQ_MAX).0);
        self.write_set = Some(write_set);
        self
    }

    /// Counts the dead entries that it passes from now on, of those written at `first` or later.
    pub fn count_dead(mut self, first: SeqNo) -> Visible<C> {
        self.dead.first = first;
        self
    }

    /// How many dead entries were passed that are to be counted. May be set back to 0.
    #[inline]
    pub fn dead(&mut self) -> &mut u64 {
        &mut self.dead.count
    }

    /// The number of the reader, and what he sees of his own writes.
    pub fn reader(&self) -> (SeqNo, Option<&WriteSetView>) {
        (self.seq, self.write_set.as_ref())
    }

    /// What most keys of the merge begin with.
    pub fn prefix(&self) -> &[u8] {
        self.merge.prefix()
    }

    /// Makes them the rows of another range, and of what the reader sees of his own writes by now:
    /// no range deletes, before and after. The merge's sources are given out to be bound to the
    /// range; most of their keys there begin with `prefix`.
    pub fn rebind(
        &mut self,
        (lower, upper): (&[u8], Option<&[u8]>),
        write_set: Option<WriteSetView>,
        prefix: &[u8],
    ) -> &mut [C] {
        debug_assert!(self.write_set.is_some() == write_set.is_some(), "sources are the same");
        debug_assert!(
            [&self.write_set, &write_set].into_iter().flatten().all(|own| own.deletes.is_empty())
        );
        self.leave();
        self.write_set = write_set;
        lower.clone_into(&mut self.lower);
        match (&mut self.upper, upper) {
            (Some(to), Some(upper)) => upper.clone_into(to),
            (to, upper) => *to = upper.map(<[u8]>::to_vec),
        }
        self.merge.change(prefix)
    }

    /// Whether the reader sees what was written at `seq`.
    #[inline]
    fn sees(&self, seq: SeqNo) -> bool {
        seq <= self.seq || self.sees_write_set(seq)
    }

    #[inline]
    fn sees_write_set(&self, seq: SeqNo) -> bool {
        seq >= WRITE_SET_FIRST
            && self.write_set.as_ref().is_some_and(|write_set| write_set.sees(seq))
    }

    /// The number to seek the newest version of a key with that may be seen.
    #[inline]
    fn newest(&self) -> SeqNo {
        if self.write_set.is_some() { SEQ_MAX } else { self.seq }
    }

    /// Whether there is a current row.
    #[inline]
    pub fn valid(&self) -> bool {
        self.position != Position::Nowhere
    }

    /// The row's key. Only while valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.position {
            Position::Backward => &self.key,
            _ => self.merge.key(),
        }
    }

    /// The row's value: for [`Kind::Blob`] the reference to it. Only while valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.position {
            Position::Backward => &self.value,
            _ => self.merge.value(),
        }
    }

    /// The row's kind: never a delete. Only while valid.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self.position {
            Position::Backward => self.kind,
            _ => self.merge.kind(),
        }
    }

    /// Leaves the row: there is no current one.
    pub fn leave(&mut self) {
        self.position = Position::Nowhere;
        self.plain = 0;
    }

    /// Goes to the first row.
    pub fn seek_first(&mut self) -> Result<()> {
        self.leave();
        self.merge.seek(&self.lower, self.newest())?;
        self.find_forward(None)
    }

    /// Goes to the last row.
    pub fn seek_last(&mut self) -> Result<()> {
        self.leave();
        match &self.upper {
            Some(upper) => self.merge.seek_back(upper, SEQ_MAX)?,
            None => self.merge.seek_last()?,
        }
        self.find_backward()
    }

    /// Goes to the first row at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.leave();
        self.merge.seek(key.max(self.lower.as_slice()), self.newest())?;
        self.find_forward(None)
    }

    /// Goes to the last row at or before `key`.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<()> {
        self.leave();
        match &self.upper {
            Some(upper) if upper.as_slice() <= key => self.merge.seek_back(upper, SEQ_MAX)?,
            _ => {
                // All versions of `key` lie before the next possible key, which is `key` and a
                // zero.
                self.key.clear();
                self.key.extend_from_slice(key);
                self.key.push(0);
                self.merge.seek_back(&self.key, SEQ_MAX)?;
            }
        }
        self.find_backward()
    }

    /// Goes to the next row; nothing happens if there is no current one.
    #[expect(clippy::should_implement_trait, reason = "a cursor, as `Cursor::next` is")]
    #[inline]
    pub fn next(&mut self) -> Result<()> {
        if self.plain > 0 && self.position == Position::Forward {
            self.plain -= 1;
            let moved = self.merge.next_of_current();
            if moved.is_err() {
                self.position = Position::Nowhere;
            }
            debug_assert!(moved.is_err() || self.merge.current().valid(), "it was counted");
            debug_assert!(moved.is_err() || self.sees(self.merge.seq()), "plain rows are seen");
            return moved;
        }
        // Asked for only if it may be an own one.
        let mut shown = 0;
        match std::mem::replace(&mut self.position, Position::Nowhere) {
            Position::Forward => {
                if self.write_set.is_some() {
                    shown = self.merge.seq();
                }
                self.key.clear();
                self.key.extend_from_slice(self.merge.key());
                self.merge.next()?;
            }
            Position::Backward => self.merge.seek(&self.key, 0)?,
            Position::BackwardPlain => {
                self.plain = 0;
                self.key.clear();
                self.key.extend_from_slice(self.merge.key());
                self.merge.seek(&self.key, 0)?;
            }
            Position::Nowhere => return Ok(()),
        }
        debug_assert!(!self.merge.valid() || self.merge.key() >= &self.key, "keys ascend");
        self.find_forward(Some(shown))
    }

    /// Goes to the previous row; nothing happens if there is no current one.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        if self.plain > 0 && self.position == Position::BackwardPlain {
            self.plain -= 1;
            let moved = self.merge.prev_of_current();
            if moved.is_err() {
                self.leave();
            }
            debug_assert!(moved.is_err() || self.merge.current().valid(), "it was counted");
            debug_assert!(moved.is_err() || self.sees(self.merge.seq()), "plain rows are seen");
            return moved;
        }
        self.plain = 0;
        match std::mem::replace(&mut self.position, Position::Nowhere) {
            Position::Forward => {
                self.key.clear();
                self.key.extend_from_slice(self.merge.key());
                self.merge.seek_back(&self.key, SEQ_MAX)?;
                let before = !self.merge.valid() || self.merge.key() < &self.key;
                debug_assert!(before, "keys descend");
            }
            Position::Backward => {}
            Position::BackwardPlain => self.merge.prev()?,
            Position::Nowhere => return Ok(()),
        }
        self.find_backward()
    }

    /// From the merge's entry on, finds the first one to show. With `passed`, all versions of
    /// `self.key` are hidden, by what was written at that number.
    #[inline]
    fn find_forward(&mut self, mut passed: Option<SeqNo>) -> Result<()> {
        // Hidden entries since the last seek.
        let mut hidden = 0;
        let mut covered = 0;
        while self.merge.valid() {
            let key = self.merge.key();
            let seq = self.merge.seq();
            if let Some(by) = passed
                && same(key, &self.key)
            {
                self.dead.note(seq, by);
                hidden += 1;
                if hidden > STEPS {
                    hidden = 0;
                    self.merge.advance_to(&self.key, 0)?;
                } else {
                    self.merge.next()?;
                }
                continue;
            }
            if self.upper.as_ref().is_some_and(|upper| upper.as_slice() <= key) {
                return Ok(());
            }
            if seq > self.seq && !self.sees_write_set(seq) {
                hidden += 1;
                // Below an own write that was undone there may be one that was not.
                if hidden > STEPS && seq < WRITE_SET_FIRST {
                    hidden = 0;
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    passed = None;
                    self.merge.advance_to(&self.key, self.seq)?;
                } else {
                    self.merge.next()?;
                }
                continue;
            }
            if let Some(cover) = self.covers.newer_than(key, seq) {
                self.dead.note(seq, cover.newest);
                covered += 1;
                if covered <= COVERED_STEPS || !self.merge.skip_to(cover.end(), cover.newest)? {
                    self.merge.next()?;
                } else {
                    covered = 0;
                }
                continue;
            }
            if self.merge.kind() != Kind::Delete {
                debug_assert!(self.sees(seq) && key >= self.lower.as_slice(), "a row of the range");
                self.position = Position::Forward;
                self.plain = self.plain_ahead();
                return Ok(());
            }
            self.key.clear();
            self.key.extend_from_slice(key);
            passed = Some(seq);
            hidden = 0;
            self.merge.next()?;
        }
        Ok(())
    }

    /// How many entries after the merge's are rows and come next: those of the current source
    /// before the next entry of any other.
    #[inline]
    fn plain_ahead(&self) -> usize {
        if !self.covers.0.is_empty() {
            return 0;
        }
        self.merge.current().plain_ahead(self.seq, || {
            let upper = self.upper.as_deref();
            match (self.merge.rival().map(Cursor::key), upper) {
                (Some(rival), Some(upper)) => Some(rival.min(upper)),
                (rival, upper) => rival.or(upper),
            }
        })
    }

    /// Whether the merge's entry, going backward, is a row whose key has no other version; then how
    /// many entries before it are so too and come next.
    #[inline]
    fn plain_behind(&self) -> Option<usize> {
        if !self.covers.0.is_empty() {
            return None;
        }
        let rival = self.merge.rival().map(Cursor::key);
        self.merge.current().plain_behind(self.seq, &self.lower, rival)
    }

    /// From the merge's entry back, finds the first key to show and passes all of its versions.
    fn find_backward(&mut self) -> Result<()> {
        let mut covered = 0;
        // An empty bound is not compared with: see `Merge::head`.
        let bounded = !self.lower.is_empty();
        while self.merge.valid() && !(bounded && self.merge.key() < self.lower.as_slice()) {
            if let Some(cover) = self.covers.newer_than(self.merge.key(), self.merge.seq()) {
                // Hidden, and with it all older versions; newer ones come next.
                self.dead.note(self.merge.seq(), cover.newest);
                covered += 1;
                if covered <= COVERED_STEPS
                    || !self.merge.skip_back_to(cover.start(), cover.newest)?
                {
                    self.merge.prev()?;
                } else {
                    covered = 0;
                }
                continue;
            }
            if let Some(plain) = self.plain_behind() {
                debug_assert!(self.sees(self.merge.seq()) && self.merge.kind() != Kind::Delete);
                self.position = Position::BackwardPlain;
                self.plain = plain;
                return Ok(());
            }
            self.key.clear();
            self.key.extend_from_slice(self.merge.key());
            if self.pass_versions()? {
                debug_assert!(self.kind != Kind::Delete && self.key >= self.lower);
                debug_assert!(self.upper.as_ref().is_none_or(|upper| self.key < *upper));
                self.position = Position::Backward;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Passes all versions of `self.key`, the oldest of which that is not covered is the merge's
    /// entry; answers whether the key is to be shown, with its value in the buffer.
    fn pass_versions(&mut self) -> Result<bool> {
        let mut live = false;
        // Whether the version before is one to count once a newer one hides it.
        let mut counts = false;
        for _ in 0..STEPS {
            let seq = self.merge.seq();
            if self.sees(seq) {
                live = self.take_value(seq);
                if self.dead.has(seq) {
                    self.dead.count += u64::from(counts);
                    counts = true;
                }
            }
            self.merge.prev()?;
            if !self.merge.valid() || !same(self.merge.key(), &self.key) {
                return Ok(live);
            }
        }
        if self.merge.seq() <= self.seq || self.write_set.is_some() {
            // Many versions: go to the newest visible one directly.
            self.seek_newest()?;
            live = self.merge.valid()
                && same(self.merge.key(), &self.key)
                && self.take_value(self.merge.seq());
            self.merge.seek_back(&self.key, SEQ_MAX)?;
        } else {
            self.merge.retreat_to(&self.key, SEQ_MAX)?;
        }
        Ok(live)
    }

    /// Goes to the newest version of `self.key` that is seen, or behind all of them.
    fn seek_newest(&mut self) -> Result<()> {
        self.merge.seek(&self.key, self.newest())?;
        while self.merge.valid() && same(self.merge.key(), &self.key) {
            let seq = self.merge.seq();
            if self.sees(seq) {
                break;
            }
            if seq < WRITE_SET_FIRST {
                self.merge.seek(&self.key, self.seq)?;
            } else {
                self.merge.next()?;
            }
        }
        Ok(())
    }

    /// Keeps the value of the merge's entry; answers whether it is one to show.
    fn take_value(&mut self, seq: SeqNo) -> bool {
        self.kind = self.merge.kind();
        if self.kind == Kind::Delete || self.covers.newer_than(&self.key, seq).is_some() {
            return false;
        }
        self.value.clear();
        self.value.extend_from_slice(self.merge.value());
        true
    }
}

/// Whether two keys are the same. Neighbors mostly differ in their last byte, if not in length.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.last() == b.last() && a == b
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
