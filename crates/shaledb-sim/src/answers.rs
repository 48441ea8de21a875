//! Reads of a [`World`]: every answer of the engine is compared with the model's, and noted in the
//! history of the run.

use crate::data::{self, Value};
use crate::model::{Moment, tree_name};
use crate::ops::Move;
use crate::outcome::{Outcome, wrong};
use crate::scan::OpenScan;
use crate::world::World;
use shaledb::base::coding;
use shaledb::{Scan, ScanOptions, Snapshot};

/// Through all entries forward and back.
const BOTH_WAYS: [Move; 4] = [Move::First, Move::Next(u32::MAX), Move::Last, Move::Prev(u32::MAX)];

impl World {
    fn moment(&self, slot: Option<u8>) -> (Option<&Snapshot>, Moment) {
        match slot.and_then(|slot| self.snapshots.get(&slot)) {
            Some((snapshot, moment)) => (Some(snapshot), *moment),
            None => (None, self.model.now()),
        }
    }

    fn note(&mut self, answer: &[u8]) {
        self.history = (self.history ^ coding::hash(answer)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn compare(&mut self, what: &str, found: Option<&[u8]>, right: Option<Value>) -> Outcome<()> {
        self.note(found.unwrap_or(b"none"));
        if found.map(<[u8]>::to_vec) == right.map(Value::fill) {
            return Ok(());
        }
        let found = found.map_or("nothing".to_owned(), |found| {
            let start = found[..found.len().min(24)].escape_ascii();
            format!("{} bytes that begin with `{start}`", found.len())
        });
        let right = right.map_or("nothing".to_owned(), |value| format!("value {value}"));
        wrong(format!("{what}: found {found}, right is {right}"))
    }

    pub(crate) fn get(&mut self, tree: u8, key: u32, slot: Option<u8>) -> Outcome<()> {
        let bytes = data::key(key);
        let (snapshot, moment) = self.moment(slot);
        let found = match snapshot {
            Some(snapshot) => self.trees[&tree].get_at(&bytes, snapshot)?,
            None => self.trees[&tree].get(&bytes)?,
        };
        let right = self.model.get(tree, &bytes, moment);
        let what = format!("key {key} of tree {tree} at moment {moment}");
        self.compare(&what, found.as_deref(), right)
    }

    pub(crate) fn multi_get(&mut self, tree: u8, keys: &[u32]) -> Outcome<()> {
        let bytes: Vec<Vec<u8>> = keys.iter().map(|&key| data::key(key)).collect();
        let borrowed: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let found = self.trees[&tree].multi_get(&borrowed)?;
        if found.len() != keys.len() {
            return wrong(format!("{} answers to {} keys", found.len(), keys.len()));
        }
        for (index, found) in found.iter().enumerate() {
            let right = self.model.get(tree, &bytes[index], self.model.now());
            let what = format!("key {} of tree {tree} by multi-get", keys[index]);
            self.compare(&what, found.as_deref(), right)?;
        }
        Ok(())
    }

    pub(crate) fn prefix(&mut self, tree: u8, key: u32) -> Outcome<()> {
        let mut prefix = data::key(key);
        prefix.truncate(3);
        let options = ScanOptions { prefix: Some(prefix.clone()), ..ScanOptions::default() };
        let mut entries = self.model.entries(tree, self.model.now());
        entries.retain(|(key, _)| key.starts_with(&prefix));
        let scan = self.trees[&tree].scan_with(options)?;
        self.walk(&mut OpenScan { scan, entries, at: None }, &BOTH_WAYS)
    }

    pub(crate) fn scan(
        &mut self,
        tree: u8,
        from: Option<u32>,
        to: Option<u32>,
        slot: Option<u8>,
        moves: &[Move],
    ) -> Outcome<()> {
        let mut scan = self.begin(tree, from, to, slot)?;
        self.walk(&mut scan, moves)
    }

    fn begin(
        &mut self,
        tree: u8,
        from: Option<u32>,
        to: Option<u32>,
        slot: Option<u8>,
    ) -> Outcome<OpenScan> {
        let (lower, upper) = (from.map(data::key), to.map(data::key));
        let (snapshot, moment) = self.moment(slot);
        let mut entries = self.model.snapshot_entries(tree, moment);
        entries.retain(|(key, _)| {
            lower.as_ref().is_none_or(|lower| key >= lower)
                && upper.as_ref().is_none_or(|upper| key < upper)
        });
        let options = ScanOptions { lower, upper, snapshot, ..ScanOptions::default() };
        let scan = self.trees[&tree].scan_with(options)?;
        Ok(OpenScan { scan, entries, at: None })
    }

    pub(crate) fn open_scan(
        &mut self,
        slot: u8,
        tree: u8,
        from: Option<u32>,
        to: Option<u32>,
    ) -> Outcome<()> {
        let scan = self.begin(tree, from, to, None)?;
        self.scans.insert(slot, scan);
        Ok(())
    }

    pub(crate) fn move_scan(&mut self, slot: u8, moves: &[Move]) -> Outcome<()> {
        let Some(mut scan) = self.scans.remove(&slot) else { return Ok(()) };
        self.walk(&mut scan, moves)?;
        self.scans.insert(slot, scan);
        Ok(())
    }

    /// Moves a scan about and compares where it is with the entries it should give.
    fn walk(&mut self, open: &mut OpenScan, moves: &[Move]) -> Outcome<()> {
        for &movement in moves {
            let count = match movement {
                Move::Next(count) | Move::Prev(count) => count,
                _ => 1,
            };
            for _ in 0..count {
                if open.at.is_none() && matches!(movement, Move::Next(_) | Move::Prev(_)) {
                    break;
                }
                open.go(movement)?;
                self.here(&open.scan, open.at.map(|index| &open.entries[index]), movement)?;
            }
        }
        Ok(())
    }

    fn here(&mut self, scan: &Scan, right: Option<&(Vec<u8>, Value)>, after: Move) -> Outcome<()> {
        let found = scan.valid().then(|| scan.key().to_vec());
        if found.as_ref() != right.map(|(key, _)| key) {
            let text = |key: Option<&Vec<u8>>| key.map(|key| key.escape_ascii().to_string());
            let right = right.map(|(key, _)| key);
            return wrong(format!(
                "a scan after `{after}` is at {:?}, right is {:?}",
                text(found.as_ref()),
                text(right)
            ));
        }
        match right {
            Some((key, value)) => {
                let found = scan.value()?.to_vec();
                let what = format!("a scan after `{after}` at `{}`", key.escape_ascii());
                self.note(key);
                self.compare(&what, Some(&found), Some(*value))
            }
            None => Ok(()),
        }
    }

    /// Compares all trees with the model: names, scans both ways, every key, every snapshot.
    pub fn check(&mut self) -> Outcome<()> {
        let now = self.model.now();
        let right: Vec<String> = self.model.trees(now).into_iter().map(tree_name).collect();
        let mut names = self.db()?.tree_names();
        names.sort();
        if names != right {
            return wrong(format!("the trees are {names:?}, right is {right:?}"));
        }
        for tree in self.model.trees(now) {
            let mut slots: Vec<Option<u8>> = self.snapshots.keys().copied().map(Some).collect();
            slots.push(None);
            for slot in slots {
                self.scan(tree, None, None, slot, &BOTH_WAYS)?;
                for key in (0..data::KEYS).step_by(3) {
                    self.get(tree, key, slot)?;
                }
            }
        }
        Ok(())
    }
}
