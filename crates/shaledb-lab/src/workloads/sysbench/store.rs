//! What a store must do for the sysbench pattern.

use super::rows::Sbtest;
use crate::stores::engine::Result;
use crate::stores::store::Store;
use std::fmt;
use std::ops::RangeInclusive;

/// A transaction was rolled back because of another one (a deadlock, a lock that was waited for too
/// long, a write since the snapshot): the client counts it and goes on. Stores answer it as their
/// error.
#[derive(Clone, Copy, Debug)]
pub struct Conflict;

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the transaction was rolled back because of another one")
    }
}

impl std::error::Error for Conflict {}

/// A column of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// `c`.
    C,
    /// `pad`.
    Pad,
}

/// An open store with tables `sbtest`, numbered from 0.
pub trait Oltp: Store {
    /// What one client works with.
    type Session<'s>: OltpSession
    where
        Self: 's;

    /// Makes so many empty tables without an index on `k`, in place of any that are there. No
    /// session is open.
    fn create(&self, tables: u32) -> Result<()>;

    /// Creates the index on `k` of a table that was loaded; how many rows there are.
    fn create_index(&self, table: u32) -> Result<u64>;

    /// A session.
    fn session(&self) -> Result<Self::Session<'_>>;

    /// The greatest id of a table, 0 if it is empty.
    fn last_id(&self, table: u32) -> Result<u64>;
}

/// One client's view of the tables. A statement outside of [`begin`](OltpSession::begin) and
/// [`commit`](OltpSession::commit) is a transaction of its own; one that writes is followed by
/// `commit` all the same, which tells how many rows it changed. In a transaction, reads come before
/// writes.
pub trait OltpSession: Send {
    /// Begins a transaction of several statements.
    fn begin(&mut self) -> Result<()>;

    /// Ends the transaction; how many rows it has changed.
    fn commit(&mut self) -> Result<u64>;

    /// Undoes the transaction.
    fn rollback(&mut self) -> Result<()>;

    /// Adds a row while the tables are loaded, before their index is created.
    fn load(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()>;

    /// Shows a column of a row; whether the row is there.
    fn point(
        &mut self,
        table: u32,
        id: u64,
        column: Column,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<bool>;

    /// Shows `c` of rows in the order of id; how many.
    fn range(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64>;

    /// The sum of `k` of rows, and how many there are.
    fn sum(&mut self, table: u32, ids: RangeInclusive<u64>) -> Result<(u64, u64)>;

    /// Shows `c` of rows in the order of `c`, equal ones once if `distinct`; how many were shown.
    fn ordered(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        distinct: bool,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64>;

    /// Adds one to `k` of a row.
    fn update_index(&mut self, table: u32, id: u64) -> Result<()>;

    /// Sets `c` of a row.
    fn update_nonindex(&mut self, table: u32, id: u64, c: &[u8]) -> Result<()>;

    /// Deletes a row.
    fn delete(&mut self, table: u32, id: u64) -> Result<()>;

    /// Inserts a row whose id is not there; if it is, it is an error here or at the commit.
    fn insert(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()>;
}
