//! What a store must do for a user's rows.

use super::options::RowsOptions;
use crate::stores::engine::Result;
use crate::stores::store::Store;

/// An open store with one table of keys and values.
pub trait Pairs: Store {
    /// What one client works with.
    type Session<'s>: PairsSession
    where
        Self: 's;

    /// Makes the table, empty, in place of one that is there. No session is open.
    fn create(&self, rows: &RowsOptions) -> Result<()>;

    /// A session.
    fn session(&self, rows: &RowsOptions) -> Result<Self::Session<'_>>;
}

/// One client's view of the table.
pub trait PairsSession: Send {
    /// Adds a row to the next commit. It replaces the row of the same key if keys may come again.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Writes what was added, all of it or nothing.
    fn commit(&mut self) -> Result<()>;

    /// Looks a key up and shows its value; whether it is there.
    fn get(&mut self, key: &[u8], see: &mut impl FnMut(&[u8])) -> Result<bool>;
}
