//! A scan that a program keeps open, beside the entries that it should give.

use crate::data::{self, Value};
use crate::ops::Move;
use crate::outcome::Outcome;
use shaledb::Scan;

/// A scan kept open, what it should give, and where it is.
pub(crate) struct OpenScan {
    pub(crate) scan: Scan,
    pub(crate) entries: Vec<(Vec<u8>, Value)>,
    pub(crate) at: Option<usize>,
}

impl OpenScan {
    /// Moves the scan, and where it should be.
    pub(crate) fn go(&mut self, movement: Move) -> Outcome<()> {
        let entries = &self.entries;
        self.at = match movement {
            Move::First => {
                self.scan.seek_first()?;
                (!entries.is_empty()).then_some(0)
            }
            Move::Last => {
                self.scan.seek_last()?;
                entries.len().checked_sub(1)
            }
            Move::Seek(key) => {
                let key = data::key(key);
                self.scan.seek(&key)?;
                let index = entries.partition_point(|(k, _)| *k < key);
                (index < entries.len()).then_some(index)
            }
            Move::SeekBack(key) => {
                let key = data::key(key);
                self.scan.seek_back(&key)?;
                entries.partition_point(|(k, _)| *k <= key).checked_sub(1)
            }
            Move::Next(_) => {
                self.scan.next()?;
                self.at.map(|index| index + 1).filter(|&index| index < entries.len())
            }
            Move::Prev(_) => {
                self.scan.prev()?;
                self.at.and_then(|index| index.checked_sub(1))
            }
        };
        Ok(())
    }
}
