//! Writers of a source with a unique tree, each change with its entries; and what must be there.

use shaledb::{Batch, BuildOptions, Db, Error, OnlineBuild, Tree, TreeConfig};
use shaledb::{UniqueRow, WriteOptions, entry_of_row};
use std::collections::BTreeMap;
use std::time::Duration;

pub const ROWS: u32 = 300;
pub const INDEX: &str = "by_name";
pub const CHANGES: &str = "by_name.changes";

/// Names that rows may have; each of them is of one row at a time, but for moments.
const NAMES: u32 = 500;

/// A row: its name, if it has one, and something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub name: Option<u32>,
    pub other: Vec<u8>,
}

impl Row {
    pub fn encode(&self) -> Vec<u8> {
        [&self.name.unwrap_or(u32::MAX).to_be_bytes()[..], &self.other].concat()
    }

    pub fn decode(bytes: &[u8]) -> Row {
        let (name, other) = bytes.split_first_chunk().unwrap();
        let name = u32::from_be_bytes(*name);
        Row { name: (name != u32::MAX).then_some(name), other: other.to_vec() }
    }

    /// The key of its entry, the row that the entry is of besides, and its value. A row without a
    /// name is in nobody's way: its own key is in that of the entry.
    pub fn entry(&self, key: u32) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let own = key.to_be_bytes();
        match self.name {
            Some(name) => {
                let value = [&[4][..], &own, &self.other].concat();
                (format!("name\0{}", name % NAMES).into_bytes(), own.to_vec(), value)
            }
            None => ([b"\0", &own[..]].concat(), Vec::new(), [b"\0", &self.other[..]].concat()),
        }
    }
}

/// Changes rows and their entries at random, each change one batch, or one transaction.
pub struct Writer {
    pub state: u64,
    pub db: Db,
    pub source: Tree,
    pub changes: Option<Tree>,
    pub rows: BTreeMap<u32, Row>,
    /// A row whose name another has taken, and which is to lose it.
    late: Option<u32>,
}

/// Changes of rows that are one commit: what each is to be.
pub type Change = Vec<(u32, Option<Row>)>;

impl Writer {
    fn random(&mut self, below: u32) -> u32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.state >> 33) as u32 % below
    }

    /// A name that no row has.
    fn free_name(&mut self) -> u32 {
        loop {
            let name = self.random(NAMES);
            if self.rows.values().all(|row| row.name != Some(name)) {
                return name;
            }
        }
    }

    fn fresh(&mut self) -> Row {
        let other = vec![b'x'; 10 + self.random(60) as usize];
        Row { name: (self.random(10) > 0).then(|| self.free_name()), other }
    }

    /// A change that leaves each name with one row.
    fn change(&mut self) -> Change {
        let (key, other) = (self.random(ROWS), self.random(ROWS));
        match self.random(8) {
            0 => vec![(key, None)],
            // Only what is not unique in the entry.
            1 => match self.rows.get(&key).cloned() {
                Some(row) => vec![(key, Some(Row { other: self.fresh().other, ..row }))],
                None => Vec::new(),
            },
            // Two rows change their names.
            2 => match (self.rows.get(&key).cloned(), self.rows.get(&other).cloned()) {
                (Some(a), Some(b)) if key != other => {
                    let (of_a, of_b) = (a.name, b.name);
                    vec![
                        (key, Some(Row { name: of_b, ..a })),
                        (other, Some(Row { name: of_a, ..b })),
                    ]
                }
                _ => Vec::new(),
            },
            _ => vec![(key, Some(self.fresh()))],
        }
    }

    /// Another row takes a row's name; that one loses it with the next change.
    fn take_name(&mut self) -> shaledb::Result<()> {
        let (key, from) = (self.random(ROWS), self.random(ROWS));
        let name = self.rows.get(&from).and_then(|row| row.name);
        if key != from && name.is_some() {
            self.late = Some(from);
            let row = Row { name, other: b"taken".to_vec() };
            self.commit(&vec![(key, Some(row))], false)?;
        }
        Ok(())
    }

    pub fn end_move(&mut self) -> shaledb::Result<()> {
        let Some(key) = self.late.take() else { return Ok(()) };
        let row = self.fresh();
        self.commit(&vec![(key, Some(row))], true)
    }

    fn write(&mut self) -> shaledb::Result<()> {
        self.end_move()?;
        if self.random(6) == 0 && self.changes.is_some() {
            return self.take_name();
        }
        let change = self.change();
        match self.random(3) {
            0 => {
                // A duplicate that is rolled back is none.
                let taken = self.rows.values().next().cloned();
                let mut txn = self.db.begin(Default::default())?;
                self.put_in(&mut txn, &vec![(ROWS + 1, taken)])?;
                txn.rollback();
                self.commit(&change, true)
            }
            1 => self.commit(&change, true),
            _ => self.commit(&change, false),
        }
    }

    pub fn put_in(&self, txn: &mut shaledb::Transaction, change: &Change) -> shaledb::Result<()> {
        for (key, row) in change {
            match row {
                Some(row) => txn.put(&self.source, &key.to_be_bytes(), &row.encode())?,
                None => txn.delete(&self.source, &key.to_be_bytes())?,
            }
            let Some(changes) = &self.changes else { continue };
            if let Some((entry, of, _)) = self.rows.get(key).map(|old| old.entry(*key)) {
                txn.delete(changes, &entry_of_row(&entry, &of))?;
            }
            if let Some((entry, of, value)) = row.as_ref().map(|row| row.entry(*key)) {
                txn.put(changes, &entry_of_row(&entry, &of), &value)?;
            }
        }
        Ok(())
    }

    pub fn commit(&mut self, change: &Change, in_transaction: bool) -> shaledb::Result<()> {
        let sync = self.random(10) == 0;
        if in_transaction {
            let mut txn = self.db.begin(Default::default())?;
            self.put_in(&mut txn, change)?;
            txn.commit(WriteOptions { sync })?;
        } else {
            self.db.write(&self.batch(change), WriteOptions { sync })?;
        }
        for (key, row) in change {
            match row {
                Some(row) => drop(self.rows.insert(*key, row.clone())),
                None => drop(self.rows.remove(key)),
            }
        }
        Ok(())
    }

    fn batch(&self, change: &Change) -> Batch {
        let mut batch = Batch::new();
        for (key, row) in change {
            match row {
                Some(row) => batch.put(&self.source, &key.to_be_bytes(), &row.encode()),
                None => batch.delete(&self.source, &key.to_be_bytes()),
            }
            let Some(changes) = &self.changes else { continue };
            if let Some((entry, of, _)) = self.rows.get(key).map(|old| old.entry(*key)) {
                batch.delete(changes, &entry_of_row(&entry, &of));
            }
            if let Some((entry, of, value)) = row.as_ref().map(|row| row.entry(*key)) {
                batch.put(changes, &entry_of_row(&entry, &of), &value);
            }
        }
        batch
    }

    pub fn writes(&mut self, count: u32) -> shaledb::Result<()> {
        (0..count).try_for_each(|_| self.write())
    }
}

pub fn options() -> BuildOptions {
    let unique = Some(UniqueRow::Counted);
    BuildOptions { memory_bytes: 8 << 10, writers_wait: Duration::from_millis(5), unique }
}

pub fn writer(db: &Db, seed: u64) -> shaledb::Result<Writer> {
    let source = db.tree_or_create("source")?;
    let rows = source.scan::<&[u8]>(..)?.map(|row| {
        let (key, value) = row?;
        Ok((u32::from_be_bytes(key.try_into().unwrap()), Row::decode(&value)))
    });
    let rows = rows.collect::<shaledb::Result<_>>()?;
    Ok(Writer { state: seed * 2 + 1, db: db.clone(), source, changes: None, rows, late: None })
}

/// Rows that are there before the build.
pub fn start(db: &Db, seed: u64) -> shaledb::Result<Writer> {
    let mut writer = writer(db, seed)?;
    writer.writes(500)?;
    db.flush()?;
    writer.writes(100)?;
    db.sync()?;
    Ok(writer)
}

pub fn begin(writer: &mut Writer) -> shaledb::Result<OnlineBuild> {
    let build = writer.source.build_online(INDEX, TreeConfig::default(), options())?;
    writer.changes = Some(build.tree().clone());
    Ok(build)
}

pub fn fill(build: &mut OnlineBuild, meanwhile: &mut dyn FnMut(u32)) -> shaledb::Result<()> {
    let mut count = 0;
    build.fill(|key, value, entries| {
        count += 1;
        meanwhile(count);
        let (key, _, value) = Row::decode(value).entry(u32::from_be_bytes(key.try_into().unwrap()));
        entries.add(&key, &value)
    })
}

pub fn rows(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap()).collect()
}

/// Compares the tree with the source; answers whether there is one. There is none of changes.
pub fn check(db: &Db, label: &str) -> bool {
    assert!(matches!(db.tree(CHANGES), Err(Error::NoSuchTree(_))), "{label}: changes are left");
    let index = match db.tree(INDEX) {
        Ok(index) => index,
        Err(Error::NoSuchTree(_)) => return false,
        Err(error) => panic!("{label}: {error}"),
    };
    let source = rows(&db.tree("source").unwrap());
    let entry = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let key = u32::from_be_bytes(key[..].try_into().unwrap());
        let (key, _, value) = Row::decode(value).entry(key);
        (key, value)
    };
    let wanted: BTreeMap<Vec<u8>, Vec<u8>> = source.iter().map(entry).collect();
    assert_eq!(wanted.len(), source.len(), "{label}: the source has duplicates");
    let found = rows(&index);
    assert_eq!(found.len(), wanted.len(), "{label}: entries");
    assert!(found == wanted.into_iter().collect::<Vec<_>>(), "{label}: other entries");
    for (key, value) in found.iter().step_by(7) {
        assert_eq!(index.get(key).unwrap().unwrap(), *value, "{label}: a get finds the same");
    }
    let damage = db.verify(&mut |_| {}).unwrap().damage;
    assert!(damage.is_empty(), "{label}: {damage:?}");
    true
}
