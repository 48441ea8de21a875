//! What a store must do for the TPC-C pattern.

use super::input::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use super::rows::Rows;
use crate::stores::engine::Result;
use crate::stores::store::Store;

/// A store with the nine tables.
pub trait Tpcc: Store {
    /// What one client works with.
    type Session<'s>: TpccSession
    where
        Self: 's;

    /// Makes the tables with their secondary indexes, empty, in place of any that are there. No
    /// session is open.
    fn create_warehouses(&self, foreign_keys: bool) -> Result<()>;

    /// A session.
    fn warehouse_session(&self) -> Result<Self::Session<'_>>;

    /// Whether the standard's conditions of consistency hold; how many were looked at. The error
    /// names all that do not.
    fn check_warehouses(&self) -> Result<u64>;
}

/// What a transaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// New order: the lines of the order, 0 if it was rolled back. Payment: 1. Order status: the
    /// lines of the order. Delivery: orders that were delivered. Stock level: the items that it
    /// counts.
    pub count: u64,
    /// Bytes of all columns that queries gave.
    pub read: u64,
}

/// One client's view of the warehouses. A transaction that is kept from its end by another one is
/// done again, which the store counts.
pub trait TpccSession: Send {
    /// Adds rows, in the order of their primary key; those that foreign keys name may come later.
    fn load(&mut self, rows: &Rows) -> Result<()>;

    /// A customer orders.
    fn new_order(&mut self, order: &NewOrder) -> Result<Done>;

    /// A customer pays.
    fn payment(&mut self, payment: &Payment) -> Result<Done>;

    /// A customer asks for the last order.
    fn order_status(&mut self, asked: &OrderStatus) -> Result<Done>;

    /// The oldest order of each district is delivered, where there is one.
    fn delivery(&mut self, delivery: &Delivery) -> Result<Done>;

    /// How many items of the last twenty orders are below a threshold.
    fn stock_level(&mut self, asked: &StockLevel) -> Result<Done>;
}
