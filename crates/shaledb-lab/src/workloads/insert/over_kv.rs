//! The insert benchmark over a key-value engine.
//!
//! A tree each for the primary key and for each secondary index, with the tables of all clients in
//! it, told apart by their number:
//!
//! ```text
//! purchases                table u32, id u64 -> time u64, register, customer, product,
//!                          price u32, data
//! price_customer           table u32, price u32, customer u32, id u64 -> nothing
//! register_price_customer  table u32, register u32, price u32, customer u32, id u64 -> nothing
//! price_time_customer      table u32, price u32, time u64, customer u32, id u64 -> nothing
//! indexed                  table u32 -> nothing: the table has its secondary indexes
//! ```

use super::purchase::Purchase;
use super::store::{Hit, Index, Sales, SalesSession, Start};
use crate::stores::engine::{Batch, Engine, Handle, Result, TreeId};
use crate::stores::kv::KvStore;
use crate::stores::tables::damaged::damaged;
use crate::stores::tables::ids::ids;
use crate::stores::tables::key::{Decoder, Encoder};
use std::ops::{Range, RangeInclusive};

/// The trees to open the engine with.
pub const TREES: [&str; 5] =
    ["purchases", "price_customer", "register_price_customer", "price_time_customer", "indexed"];

const PURCHASES: TreeId = 0;
const PRICE: TreeId = 1;
const REGISTER: TreeId = 2;
const TIME: TreeId = 3;
const INDEXED: TreeId = 4;

/// Bytes of an entry of each secondary index.
const PRICE_BYTES: usize = 20;
const REGISTER_BYTES: usize = 24;
const TIME_BYTES: usize = 28;

/// Bytes of all secondary index entries of a row.
pub const INDEX_BYTES: u64 = (PRICE_BYTES + REGISTER_BYTES + TIME_BYTES) as u64;

fn tree_of(index: Index) -> TreeId {
    match index {
        Index::Primary => PURCHASES,
        Index::Price => PRICE,
        Index::Register => REGISTER,
        Index::Date => TIME,
    }
}

#[inline]
fn encode_row(value: &mut Encoder, row: &Purchase<'_>) {
    value.start().u64(row.time).u32(row.register).u32(row.customer).u32(row.product);
    value.u32(row.price).rest(row.data);
}

#[inline]
fn decode_row<'a>(key: &'a [u8], value: &'a [u8]) -> Option<(u32, Purchase<'a>)> {
    let (mut key, mut value) = (Decoder::new(key), Decoder::new(value));
    let (table, id) = (key.u32()?, key.u64()?);
    let (time, register) = (value.u64()?, value.u32()?);
    let (customer, product, price) = (value.u32()?, value.u32()?, value.u32()?);
    Some((table, Purchase { id, time, register, customer, product, price, data: value.rest() }))
}

#[inline]
fn encode_entry(key: &mut Encoder, index: Index, table: u32, row: &Purchase<'_>) {
    key.start().u32(table);
    match index {
        Index::Primary => key.u64(row.id),
        Index::Price => key.u32(row.price).u32(row.customer).u64(row.id),
        Index::Register => key.u32(row.register).u32(row.price).u32(row.customer).u64(row.id),
        Index::Date => key.u32(row.price).u64(row.time).u32(row.customer).u64(row.id),
    };
}

#[inline]
fn decode_entry(index: Index, entry: &[u8], value: &[u8]) -> Option<(u32, Hit)> {
    if index == Index::Primary {
        let (table, row) = decode_row(entry, value)?;
        return Some((table, Hit::of(index, &row)));
    }
    let mut key = Decoder::new(entry);
    let table = key.u32()?;
    let mut hit = Hit::default();
    if index == Index::Register {
        hit.register = key.u32()?;
    }
    hit.price = key.u32()?;
    if index == Index::Date {
        hit.time = key.u64()?;
    }
    hit.customer = key.u32()?;
    hit.id = key.u64()?;
    Some((table, hit))
}

impl<E: Engine> Sales for KvStore<E> {
    type Session<'s>
        = KvSales<E::Handle>
    where
        Self: 's;

    fn create(&self, tables: u32, indexed: bool, _: usize) -> Result<()> {
        self.clear()?;
        if indexed {
            let mut handle = self.engine.handle()?;
            for table in 0..tables {
                handle.put(INDEXED, &table.to_be_bytes(), b"")?;
            }
        }
        Ok(())
    }

    fn session(&self, table: u32) -> Result<KvSales<E::Handle>> {
        Ok(KvSales {
            handle: self.engine.handle()?,
            table,
            indexed: self.is_indexed(table)?,
            batch: Batch::new(),
            key: Encoder::new(),
            value: Encoder::new(),
        })
    }

    fn create_indexes(&self, table: u32) -> Result<u64> {
        let mut handle = self.engine.handle()?;
        let mut price = self.sorter::<PRICE_BYTES>();
        let mut register = self.sorter::<REGISTER_BYTES>();
        let mut time = self.sorter::<TIME_BYTES>();
        let mut rows = 0;
        let mut outcome = Ok(());
        let mut key = Encoder::new();
        let mut add = |row: &Purchase<'_>| -> Result<()> {
            encode_entry(&mut key, Index::Price, table, row);
            price.push(key.bytes().try_into()?)?;
            encode_entry(&mut key, Index::Register, table, row);
            register.push(key.bytes().try_into()?)?;
            encode_entry(&mut key, Index::Date, table, row);
            time.push(key.bytes().try_into()?)
        };
        handle.scan(PURCHASES, &table.to_be_bytes(), u64::MAX, &mut |key, value| {
            match decode_row(key, value) {
                Some((of, _)) if of != table => return false,
                Some((_, row)) => outcome = add(&row),
                None => outcome = Err(damaged(TREES[PURCHASES])),
            }
            rows += u64::from(outcome.is_ok());
            outcome.is_ok()
        })?;
        outcome?;
        price.write(&mut handle, PRICE)?;
        register.write(&mut handle, REGISTER)?;
        time.write(&mut handle, TIME)?;
        handle.put(INDEXED, &table.to_be_bytes(), b"")?;
        Ok(rows)
    }

    fn is_indexed(&self, table: u32) -> Result<bool> {
        self.engine.handle()?.get(INDEXED, &table.to_be_bytes(), &mut |_| {})
    }

    fn ids(&self, table: u32) -> Result<Option<RangeInclusive<u64>>> {
        ids(&mut self.engine.handle()?, PURCHASES, table)
    }
}

/// One client's view of one table.
pub struct KvSales<H> {
    handle: H,
    table: u32,
    indexed: bool,
    /// The open transaction.
    batch: Batch,
    key: Encoder,
    value: Encoder,
}

impl<H: Handle> SalesSession for KvSales<H> {
    #[inline]
    fn insert(&mut self, row: &Purchase<'_>) -> Result<()> {
        let (key, value) = (&mut self.key, &mut self.value);
        encode_row(value, row);
        encode_entry(key, Index::Primary, self.table, row);
        self.batch.put(PURCHASES, key.bytes(), value.bytes());
        if self.indexed {
            for index in &Index::ALL[1..] {
                encode_entry(key, *index, self.table, row);
                self.batch.put(tree_of(*index), key.bytes(), b"");
            }
        }
        Ok(())
    }

    /// Rows do not change and only one client deletes from a table, so the row that was read is
    /// the row that is deleted: no latch is needed.
    fn delete(&mut self, ids: Range<u64>) -> Result<u64> {
        let KvSales { handle, table, indexed, batch, key, .. } = self;
        let mut from = Encoder::new();
        from.u32(*table).u64(ids.start);
        let (mut rows, mut whole) = (0, true);
        handle.scan(PURCHASES, from.bytes(), ids.end - ids.start, &mut |found, value| {
            let Some((of, row)) = decode_row(found, value) else {
                whole = false;
                return false;
            };
            if of != *table || row.id >= ids.end {
                return false;
            }
            batch.delete(PURCHASES, found);
            if *indexed {
                for index in &Index::ALL[1..] {
                    encode_entry(key, *index, *table, &row);
                    batch.delete(tree_of(*index), key.bytes());
                }
            }
            rows += 1;
            true
        })?;
        if whole { Ok(rows) } else { Err(damaged(TREES[PURCHASES])) }
    }

    #[inline]
    fn commit(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.handle.write(&self.batch)?;
            self.batch.clear();
        }
        Ok(())
    }

    #[inline]
    fn range(&mut self, start: Start, limit: u64, row: &mut impl FnMut(&Hit)) -> Result<u64> {
        let from = self.key.start().u32(self.table);
        match start.index {
            Index::Primary => from.u64(start.first),
            Index::Price | Index::Register => from.u32(start.first as u32).u32(start.second as u32),
            Index::Date => from.u32(start.first as u32).u64(start.second),
        };
        let (table, tree) = (self.table, tree_of(start.index));
        let (mut rows, mut whole) = (0, true);
        self.handle.scan(tree, self.key.bytes(), limit, &mut |key, value| match decode_entry(
            start.index,
            key,
            value,
        ) {
            Some((of, hit)) if of == table => {
                rows += 1;
                row(&hit);
                true
            }
            other => {
                whole = other.is_some();
                false
            }
        })?;
        if whole { Ok(rows) } else { Err(damaged(TREES[tree])) }
    }

    #[inline]
    fn point(&mut self, id: u64, row: &mut impl FnMut(&Purchase<'_>)) -> Result<bool> {
        let key = self.key.start().u32(self.table).u64(id).bytes();
        let mut whole = true;
        let found = self.handle.get(PURCHASES, key, &mut |value| match decode_row(key, value) {
            Some((_, found)) => row(&found),
            None => whole = false,
        })?;
        if whole { Ok(found) } else { Err(damaged(TREES[PURCHASES])) }
    }
}
