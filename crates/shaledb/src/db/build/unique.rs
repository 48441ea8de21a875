//! A unique tree that is built while writers go on: who has which key.
//!
//! Writers put and delete entries of (key, row) in a tree of *changes*, without any look for
//! duplicates. The tree that is built has the keys alone. First come the rows of the scan: two of
//! one key are a duplicate. Then the changes, in rounds: a round takes what was committed since the
//! one before, key by key, and makes the built tree what the source says at the round's end. So who
//! had a key before is asked of that tree, and what a round has taken leaves the tree of changes.
//!
//! A key that several rows have at the end of a round is a *doubt*: it may be on its way from one
//! row to another. A later round decides it. What is in doubt when the build ends is a duplicate.

use super::changes::Rounds;
use super::entry::{UniqueRow, split_entry};
use super::sorter::Sorter;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::db::api::{Batch, Ingest, Tree};
use crate::db::options::WriteOptions;
use crate::read::Value;
use std::collections::BTreeMap;

/// The most rows of keys in doubt: more are no rows on their way.
const DOUBTED_ROWS_MAX: usize = 10_000;

/// How many operations a batch of a round has: writers wait while it is applied.
const BATCH_OPS: usize = 200;

/// The rows that have a key, with the values of their entries.
type Owners = BTreeMap<Vec<u8>, Vec<u8>>;

/// The part of a build that a unique tree needs besides.
pub(super) struct Unique {
    /// Where writers put and delete entries of (key, row).
    pub changes: Rounds,
    row: UniqueRow,
    /// Whether the rows of the scan are in the tree.
    has_rows: bool,
    doubts: BTreeMap<Vec<u8>, Owners>,
}

/// A key that a round looks at: its entry in the tree, and who has it by what is known so far.
struct Touched {
    key: Vec<u8>,
    there: Option<Value>,
    owners: Owners,
}

impl Unique {
    pub fn new(changes: Tree, row: UniqueRow, seq: SeqNo) -> Unique {
        let changes = Rounds::new(changes, seq);
        Unique { changes, row, has_rows: false, doubts: BTreeMap::new() }
    }

    /// Whether the rows of the scan have been put into the tree, so that it is too late for more.
    pub fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// The row that an entry is of.
    pub fn row_of<'a>(&self, value: &'a [u8]) -> Result<&'a [u8]> {
        self.row.of(value).ok_or_else(|| {
            let what = "the value of an entry of a unique tree does not begin with the key of its \
                        row and that key's length; see UniqueRow::Counted";
            Error::InvalidArgument(what.to_owned())
        })
    }

    /// Puts the rows of the scan beneath what the tree has, once.
    pub fn put_rows(&mut self, tree: &Tree, sorter: Option<Sorter>, seq: SeqNo) -> Result<()> {
        if std::mem::replace(&mut self.has_rows, true) {
            return Ok(());
        }
        let mut run = Ingest::new(tree.clone())?;
        let mut key = Vec::new();
        let mut last: Option<(Vec<u8>, Vec<u8>)> = None;
        if let Some(sorter) = sorter {
            sorter.drain(&mut |entry, value| {
                let row = split_entry(entry, &mut key).ok_or_else(|| self.no_entry(entry))?;
                match &mut last {
                    Some((before, owner)) if *before == key => {
                        return Err(duplicate(tree, &key, [owner, row]));
                    }
                    Some((before, owner)) => {
                        before.clone_from(&key);
                        row.clone_into(owner);
                    }
                    None => last = Some((key.clone(), row.to_vec())),
                }
                run.add(&key, value)
            })?;
        }
        run.finish_beneath(seq, false).map(drop)
    }

    fn no_entry(&self, entry: &[u8]) -> Error {
        Error::InvalidArgument(format!(
            "`{}` in tree `{}` is no entry of (key, row), or its value is of another row: put and \
             delete there under keys that entry_of_row makes",
            entry.escape_ascii(),
            self.changes.tree.name()
        ))
    }

    /// Brings the tree to what was committed by now; answers how many entries have changed. With a
    /// `flush` of the changes the next round reads none of them again.
    pub fn round(&mut self, tree: &Tree, flush: bool) -> Result<u64> {
        let round = self.changes.begin(flush)?;
        let mut changes = round.changes();
        let (mut batch, mut key, mut count) = (Batch::new(), Vec::new(), 0);
        let mut touched: Option<Touched> = None;
        while changes.step()? {
            count += 1;
            let row = split_entry(changes.key(), &mut key);
            let row = row.ok_or_else(|| self.no_entry(changes.key()))?;
            if touched.as_ref().is_none_or(|touched| touched.key != key) {
                if let Some(before) = touched.take() {
                    self.decide(tree, before, &mut batch)?;
                }
                if batch.len() >= BATCH_OPS {
                    batch.write(&tree.handle, WriteOptions::default())?;
                    batch.clear();
                }
            }
            let touched = match &mut touched {
                Some(touched) => touched,
                None => touched.insert(self.touch(tree, &key)?),
            };
            match changes.value()? {
                None => drop(touched.owners.remove(row)),
                Some(value) => {
                    if self.row_of(&value)? != row {
                        return Err(self.no_entry(changes.key()));
                    }
                    touched.owners.insert(row.to_vec(), value);
                }
            }
            if touched.owners.len() > DOUBTED_ROWS_MAX {
                return Err(duplicate_of(tree, &touched.key, &touched.owners));
            }
        }
        if let Some(last) = touched {
            self.decide(tree, last, &mut batch)?;
        }
        batch.write(&tree.handle, WriteOptions::default())?;
        drop(changes);
        self.changes.end(round)?;
        Ok(count)
    }

    /// Who had a key at the end of the round before.
    fn touch(&mut self, tree: &Tree, key: &[u8]) -> Result<Touched> {
        let there = tree.get(key)?;
        let owners = match (self.doubts.remove(key), &there) {
            (Some(doubted), _) => doubted,
            (None, Some(value)) => {
                let row = self.row_of(value)?.to_vec();
                Owners::from([(row, value.to_vec())])
            }
            (None, None) => Owners::new(),
        };
        Ok(Touched { key: key.to_vec(), there, owners })
    }

    /// Writes what the tree is to say of a key, unless it does.
    fn decide(&mut self, tree: &Tree, touched: Touched, batch: &mut Batch) -> Result<()> {
        let Touched { key, there, owners } = touched;
        let mut values = owners.values();
        match (values.next(), values.next()) {
            (None, _) if there.is_some() => batch.delete(tree, &key),
            (None, _) => {}
            (Some(value), None) if there.as_ref().is_some_and(|there| **there == **value) => {}
            (Some(value), None) => batch.put(tree, &key, value),
            (Some(_), Some(_)) => {
                let doubted: usize = self.doubts.values().map(Owners::len).sum();
                if doubted + owners.len() > DOUBTED_ROWS_MAX {
                    return Err(duplicate_of(tree, &key, &owners));
                }
                self.doubts.insert(key, owners);
            }
        }
        Ok(())
    }

    /// Whether each key has one row now.
    pub fn check(&self, tree: &Tree) -> Result<()> {
        match self.doubts.first_key_value() {
            None => Ok(()),
            Some((key, owners)) => Err(duplicate_of(tree, key, owners)),
        }
    }
}

fn duplicate(tree: &Tree, key: &[u8], rows: [&[u8]; 2]) -> Error {
    let rows = rows.map(<[u8]>::to_vec);
    Error::Duplicate { tree: tree.name().to_owned(), key: key.to_vec(), rows }
}

fn duplicate_of(tree: &Tree, key: &[u8], owners: &Owners) -> Error {
    let mut rows = owners.keys().map(Vec::as_slice);
    duplicate(tree, key, [rows.next().unwrap_or_default(), rows.next().unwrap_or_default()])
}
