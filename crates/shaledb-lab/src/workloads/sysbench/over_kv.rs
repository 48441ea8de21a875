//! The sysbench pattern over a key-value engine.
//!
//! A tree for the rows of all tables and one for their indexes, told apart by the table's number:
//!
//! ```text
//! sbtest  table u32, id u64 -> k u32, c 119 bytes, pad 59 bytes
//! k       table u32, k u32, id u64 -> nothing
//! ```
//!
//! A scan is a snapshot, a transaction's reads are not one together (read committed). Writes are
//! kept until the commit, which takes the latches of their rows, reads those rows, and writes what
//! becomes of them as one batch: clients that change the same row wait for each other, for the
//! engine's commit too. That is the same for every key-value engine.

use super::rows::{C_BYTES, PAD_BYTES, Sbtest};
use super::store::{Column, Oltp, OltpSession};
use crate::stores::engine::{Batch, Engine, Handle, Result, TreeId};
use crate::stores::kv::KvStore;
use crate::stores::tables::damaged::damaged;
use crate::stores::tables::ids::ids;
use crate::stores::tables::key::{Decoder, Encoder};
use crate::stores::tables::latches::Latches;
use std::ops::RangeInclusive;
use std::sync::MutexGuard;

/// The trees to open the engine with.
pub const TREES: [&str; 2] = ["sbtest", "k"];

const ROWS: TreeId = 0;
const INDEX: TreeId = 1;

/// Bytes of an entry of the index.
const ENTRY_BYTES: usize = 16;

/// The most statements of a transaction that write.
const WRITES: usize = 8;

/// A row's value.
type Value = [u8; 4 + C_BYTES + PAD_BYTES];

#[inline]
fn value_of(k: u32, c: &[u8; C_BYTES], pad: &[u8; PAD_BYTES]) -> Value {
    let mut value = [0; _];
    set_k(&mut value, k);
    value[4..4 + C_BYTES].copy_from_slice(c);
    value[4 + C_BYTES..].copy_from_slice(pad);
    value
}

#[inline]
fn k_of(value: &Value) -> u32 {
    u32::from_be_bytes([value[0], value[1], value[2], value[3]])
}

#[inline]
fn set_k(value: &mut Value, k: u32) {
    value[..4].copy_from_slice(&k.to_be_bytes());
}

#[inline]
fn column_of(value: &Value, column: Column) -> &[u8] {
    match column {
        Column::C => &value[4..4 + C_BYTES],
        Column::Pad => &value[4 + C_BYTES..],
    }
}

impl<E: Engine> Oltp for KvStore<E> {
    type Session<'s>
        = KvOltp<'s, E::Handle>
    where
        Self: 's;

    fn create(&self, _: u32) -> Result<()> {
        self.clear()
    }

    fn create_index(&self, table: u32) -> Result<u64> {
        let mut handle = self.engine.handle()?;
        let mut sorter = self.sorter::<ENTRY_BYTES>();
        let (mut rows, mut outcome) = (0, Ok(()));
        let mut entry = Encoder::new();
        let mut add = |id: u64, value: &[u8]| -> Result<()> {
            let value: &Value = value.try_into().map_err(|_| damaged(TREES[ROWS]))?;
            sorter.push(entry.start().u32(table).u32(k_of(value)).u64(id).bytes().try_into()?)
        };
        handle.scan(ROWS, &table.to_be_bytes(), u64::MAX, &mut |key, value| {
            let mut key = Decoder::new(key);
            match (key.u32(), key.u64()) {
                (Some(of), Some(_)) if of != table => return false,
                (Some(_), Some(id)) => outcome = add(id, value),
                _ => outcome = Err(damaged(TREES[ROWS])),
            }
            rows += u64::from(outcome.is_ok());
            outcome.is_ok()
        })?;
        outcome?;
        sorter.write(&mut handle, INDEX)?;
        Ok(rows)
    }

    fn session(&self) -> Result<KvOltp<'_, E::Handle>> {
        Ok(KvOltp {
            handle: self.engine.handle()?,
            latches: &self.latches,
            begun: false,
            writes: Vec::new(),
            rows: Vec::new(),
            latched: Vec::new(),
            sorted: Vec::new(),
            batch: Batch::new(),
            key: Encoder::new(),
        })
    }

    fn last_id(&self, table: u32) -> Result<u64> {
        Ok(ids(&mut self.engine.handle()?, ROWS, table)?.map_or(0, |ids| *ids.end()))
    }
}

/// What a statement does to a row.
enum Write {
    AddToK,
    SetC([u8; C_BYTES]),
    Delete,
    Insert(Value),
}

/// A row that a transaction writes: as it was and as it will be.
struct Changed {
    table: u32,
    id: u64,
    before: Option<Value>,
    after: Option<Value>,
}

/// One client's view of the tables.
pub struct KvOltp<'s, H> {
    handle: H,
    latches: &'s Latches,
    begun: bool,
    writes: Vec<(u32, u64, Write)>,
    rows: Vec<Changed>,
    latched: Vec<usize>,
    sorted: Vec<[u8; C_BYTES]>,
    batch: Batch,
    key: Encoder,
}

impl<H: Handle> KvOltp<'_, H> {
    /// Shows the rows of a range.
    #[inline]
    fn rows(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        row: &mut impl FnMut(&Value),
    ) -> Result<u64> {
        let (from, to) = ids.into_inner();
        let limit = to.saturating_sub(from).saturating_add(1);
        let (mut rows, mut whole) = (0, true);
        let key = self.key.start().u32(table).u64(from).bytes();
        self.handle.scan(ROWS, key, limit, &mut |key, value| {
            let mut key = Decoder::new(key);
            let (of, id) = (key.u32(), key.u64());
            if of != Some(table) || id.is_none_or(|id| id > to) {
                return false;
            }
            match value.try_into() {
                Ok(value) => row(value),
                Err(_) => whole = false,
            }
            rows += 1;
            whole
        })?;
        if whole { Ok(rows) } else { Err(damaged(TREES[ROWS])) }
    }

    #[inline]
    fn write(&mut self, table: u32, id: u64, write: Write) -> Result<()> {
        if self.writes.len() == WRITES {
            return Err(format!("a transaction has more than {WRITES} writes").into());
        }
        self.writes.push((table, id, write));
        Ok(())
    }

    /// The row that a statement writes, read unless this transaction has it already.
    fn changed(&mut self, table: u32, id: u64) -> Result<&mut Changed> {
        let known = self.rows.iter().position(|row| (row.table, row.id) == (table, id));
        let at = match known {
            Some(at) => at,
            None => {
                let key = self.key.start().u32(table).u64(id).bytes();
                let (mut before, mut whole) = (None, true);
                self.handle.get(ROWS, key, &mut |value| match Value::try_from(value) {
                    Ok(value) => before = Some(value),
                    Err(_) => whole = false,
                })?;
                if !whole {
                    return Err(damaged(TREES[ROWS]));
                }
                self.rows.push(Changed { table, id, before, after: before });
                self.rows.len() - 1
            }
        };
        Ok(&mut self.rows[at])
    }

    /// Reads the rows and works out what becomes of them; how many statements changed one.
    fn apply(&mut self) -> Result<u64> {
        let mut changes = 0;
        let mut writes = std::mem::take(&mut self.writes);
        for (table, id, write) in writes.drain(..) {
            let row = self.changed(table, id)?;
            match (write, &mut row.after) {
                (Write::AddToK, Some(value)) => set_k(value, k_of(value).wrapping_add(1)),
                (Write::SetC(c), Some(value)) => value[4..4 + C_BYTES].copy_from_slice(&c),
                (Write::Delete, after @ Some(_)) => *after = None,
                (Write::Insert(value), after @ None) => *after = Some(value),
                (Write::Insert(_), Some(_)) => {
                    return Err(format!("table {table} has a row {id} already").into());
                }
                (_, None) => continue,
            }
            changes += 1;
        }
        self.writes = writes;
        Ok(changes)
    }

    /// Puts what becomes of the rows into the batch, each key once.
    fn collect(&mut self) {
        let KvOltp { rows, batch, key, .. } = self;
        for Changed { table, id, before, after } in rows.drain(..) {
            if before == after {
                continue;
            }
            let (old, new) = (before.as_ref().map(k_of), after.as_ref().map(k_of));
            key.start().u32(table).u64(id);
            match &after {
                Some(value) => batch.put(ROWS, key.bytes(), value),
                None => batch.delete(ROWS, key.bytes()),
            }
            if old != new {
                if let Some(old) = old {
                    batch.delete(INDEX, key.start().u32(table).u32(old).u64(id).bytes());
                }
                if let Some(new) = new {
                    batch.put(INDEX, key.start().u32(table).u32(new).u64(id).bytes(), b"");
                }
            }
        }
    }
}

impl<H: Handle> OltpSession for KvOltp<'_, H> {
    fn begin(&mut self) -> Result<()> {
        self.rollback()?;
        self.begun = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<u64> {
        self.begun = false;
        let mut changes = 0;
        if !self.writes.is_empty() {
            self.latched.clear();
            let latches = self.latches;
            self.latched.extend(self.writes.iter().map(|(table, id, _)| latches.of(*table, *id)));
            // All of them at once and in order, so that there is no deadlock.
            self.latched.sort_unstable();
            self.latched.dedup();
            let mut held: [Option<MutexGuard<'_, ()>>; WRITES] = [const { None }; WRITES];
            for (slot, latch) in held.iter_mut().zip(&self.latched) {
                *slot = Some(latches.one(*latch)?);
            }
            changes = self.apply()?;
            self.collect();
            if !self.batch.is_empty() {
                self.handle.write(&self.batch)?;
            }
            drop(held);
        } else if !self.batch.is_empty() {
            changes = self.batch.len() as u64;
            self.handle.write(&self.batch)?;
        }
        self.batch.clear();
        Ok(changes)
    }

    fn rollback(&mut self) -> Result<()> {
        self.begun = false;
        self.writes.clear();
        self.rows.clear();
        self.batch.clear();
        Ok(())
    }

    #[inline]
    fn load(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()> {
        let key = self.key.start().u32(table).u64(row.id).bytes();
        self.batch.put(ROWS, key, &value_of(row.k, row.c, row.pad));
        Ok(())
    }

    #[inline]
    fn point(
        &mut self,
        table: u32,
        id: u64,
        column: Column,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<bool> {
        let key = self.key.start().u32(table).u64(id).bytes();
        let mut whole = true;
        let found = self.handle.get(ROWS, key, &mut |value| match value.try_into() {
            Ok(value) => see(column_of(value, column)),
            Err(_) => whole = false,
        })?;
        if whole { Ok(found) } else { Err(damaged(TREES[ROWS])) }
    }

    #[inline]
    fn range(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64> {
        self.rows(table, ids, &mut |value| see(column_of(value, Column::C)))
    }

    #[inline]
    fn sum(&mut self, table: u32, ids: RangeInclusive<u64>) -> Result<(u64, u64)> {
        let mut sum = 0;
        let rows = self.rows(table, ids, &mut |value| sum += u64::from(k_of(value)))?;
        Ok((sum, rows))
    }

    #[inline]
    fn ordered(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        distinct: bool,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64> {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        self.rows(table, ids, &mut |value| {
            let mut c = [0; C_BYTES];
            c.copy_from_slice(column_of(value, Column::C));
            sorted.push(c);
        })?;
        sorted.sort_unstable();
        if distinct {
            sorted.dedup();
        }
        sorted.iter().for_each(|c| see(c));
        let rows = sorted.len() as u64;
        self.sorted = sorted;
        Ok(rows)
    }

    fn update_index(&mut self, table: u32, id: u64) -> Result<()> {
        self.write(table, id, Write::AddToK)
    }

    fn update_nonindex(&mut self, table: u32, id: u64, c: &[u8]) -> Result<()> {
        self.write(table, id, Write::SetC(c.try_into()?))
    }

    fn delete(&mut self, table: u32, id: u64) -> Result<()> {
        self.write(table, id, Write::Delete)
    }

    fn insert(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()> {
        let value = value_of(row.k, row.c, row.pad);
        self.write(table, row.id, Write::Insert(value))
    }
}
