//! What a store must do for the insert benchmark.

use super::purchase::Purchase;
use crate::stores::engine::Result;
use crate::stores::store::Store;
use std::ops::{Range, RangeInclusive};

/// An index of a table of purchases. A secondary index has the columns named, then the primary key;
/// a query needs no other columns, so the index covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Index {
    /// (transactionid).
    Primary,
    /// (price, customerid).
    Price,
    /// (cashregisterid, price, customerid).
    Register,
    /// (price, dateandtime, customerid).
    Date,
}

impl Index {
    /// All of them; the secondary ones come last.
    pub const ALL: [Index; 4] = [Index::Primary, Index::Price, Index::Register, Index::Date];
}

/// What a range query shows of a row: the primary key and what the index has; the rest is zero. The
/// primary key's query shows transactionid, price and customerid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// `transactionid`.
    pub id: u64,
    /// `dateandtime`, in seconds since 1970.
    pub time: u64,
    /// `cashregisterid`.
    pub register: u32,
    /// `customerid`.
    pub customer: u32,
    /// `price`, in hundredths.
    pub price: u32,
}

impl Hit {
    /// What an index shows of a row.
    pub fn of(index: Index, row: &Purchase<'_>) -> Hit {
        Hit {
            id: row.id,
            time: if index == Index::Date { row.time } else { 0 },
            register: if index == Index::Register { row.register } else { 0 },
            customer: row.customer,
            price: row.price,
        }
    }
}

/// Where a range query begins: at the first row whose first two columns of the index are not less
/// than these, in the order of the index. The primary key has but one. In SQL: `where (a = ? and
/// b >= ?) or a > ? order by a, b, ... limit ?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// In this index.
    pub index: Index,
    /// The index's first column.
    pub first: u64,
    /// Its second column.
    pub second: u64,
}

/// An open store with tables of purchases, numbered from 0.
///
/// `purchases(transactionid, dateandtime, cashregisterid, customerid, productid, price, data)`; the
/// client gives transactionid, so that all engines have the same rows; `data` is bytes of any
/// value.
pub trait Sales: Store {
    /// What one client works with.
    type Session<'s>: SalesSession
    where
        Self: 's;

    /// Makes so many empty tables, in place of any that are there, for rows whose data has at most
    /// `data_bytes`; `indexed` is with the three secondary indexes. No session is open.
    fn create(&self, tables: u32, indexed: bool, data_bytes: usize) -> Result<()>;

    /// A session on a table.
    fn session(&self, table: u32) -> Result<Self::Session<'_>>;

    /// Creates the three secondary indexes of a table and fills them from its rows; how many rows
    /// there are. Nobody writes to this table meanwhile; the sessions on it were opened later.
    fn create_indexes(&self, table: u32) -> Result<u64>;

    /// Whether a table has its secondary indexes.
    fn is_indexed(&self, table: u32) -> Result<bool>;

    /// The least and the greatest transactionid of a table, if it has rows.
    fn ids(&self, table: u32) -> Result<Option<RangeInclusive<u64>>>;
}

/// One client's view of one table.
pub trait SalesSession: Send {
    /// Adds a row to the open transaction, beginning one if none is open.
    fn insert(&mut self, row: &Purchase<'_>) -> Result<()>;

    /// Deletes the rows with these ids that are there, in the open transaction, beginning one if
    /// none is open; how many there were. Rows of the open transaction are not among them.
    fn delete(&mut self, ids: Range<u64>) -> Result<u64>;

    /// Commits the open transaction: its rows and their index entries are there all or not at all.
    fn commit(&mut self) -> Result<()>;

    /// Shows up to `limit` committed rows from `start`, in the order of the index; how many.
    fn range(&mut self, start: Start, limit: u64, row: &mut impl FnMut(&Hit)) -> Result<u64>;

    /// Shows the row with this id; whether it is there.
    fn point(&mut self, id: u64, row: &mut impl FnMut(&Purchase<'_>)) -> Result<bool>;
}
