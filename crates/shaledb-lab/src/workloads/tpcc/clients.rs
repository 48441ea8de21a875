//! The clients of the steps after the load: those that do transactions, and the one that checks.

use super::input::{Inputs, NewOrder};
use super::rows::Table;
use super::store::{Done, Tpcc, TpccSession};
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::Result;

/// The transactions, by kind of operation.
pub const KINDS: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// The percentage of each.
pub const MIX: [u32; KINDS.len()] = [45, 43, 4, 4, 4];

/// Does transactions, as fast as it can.
pub struct Terminal<T> {
    session: T,
    inputs: Inputs,
    order: NewOrder,
}

impl<T: TpccSession> Terminal<T> {
    /// A client.
    pub fn new(session: T, inputs: Inputs) -> Terminal<T> {
        Terminal { session, inputs, order: NewOrder::default() }
    }

    fn transaction(&mut self, kind: usize) -> Result<Did> {
        let (inputs, session) = (&mut self.inputs, &mut self.session);
        match kind {
            0 => {
                inputs.new_order(&mut self.order);
                let done = session.new_order(&self.order)?;
                Ok(ordered(done))
            }
            1 => {
                let done = session.payment(&inputs.payment())?;
                let added = Table::History.stored_bytes();
                let changed = [Table::Warehouse, Table::District, Table::Customer];
                let changed: u64 = changed.map(Table::row_bytes).iter().sum();
                let grown = added as i64;
                Ok(Did { written: added + changed, read: done.read, found: true, grown })
            }
            2 => {
                let done = session.order_status(&inputs.order_status())?;
                Ok(Did { read: done.read, found: done.count > 0, ..Did::default() })
            }
            3 => {
                let done = session.delivery(&inputs.delivery())?;
                Ok(delivered(done))
            }
            _ => {
                let done = session.stock_level(&inputs.stock_level())?;
                Ok(Did { read: done.read, found: true, ..Did::default() })
            }
        }
    }
}

/// An order was placed, or rolled back.
fn ordered(done: Done) -> Did {
    if done.count == 0 {
        return Did { read: done.read, ..Did::default() };
    }
    let added = Table::Orders.stored_bytes()
        + Table::NewOrder.stored_bytes()
        + done.count * Table::OrderLine.stored_bytes();
    let changed = Table::District.row_bytes() + done.count * Table::Stock.row_bytes();
    Did { written: added + changed, read: done.read, found: true, grown: added as i64 }
}

/// Orders were delivered. An order has ten lines in the mean.
fn delivered(done: Done) -> Did {
    let deleted = Table::NewOrder.stored_bytes();
    let changed =
        Table::Orders.row_bytes() + 10 * Table::OrderLine.row_bytes() + Table::Customer.row_bytes();
    Did {
        written: done.count * (deleted + changed),
        read: done.read,
        found: done.count > 0,
        grown: -((done.count * deleted) as i64),
    }
}

impl<T: TpccSession> Client for Terminal<T> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        while pace.begin() {
            let mut left = self.inputs.percent();
            let mut kind = 0;
            while left >= MIX[kind] {
                left -= MIX[kind];
                kind += 1;
            }
            let did = self.transaction(kind)?;
            pace.end(kind, did);
        }
        Ok(())
    }
}

/// Looks whether the conditions of consistency hold: one operation.
pub struct Checker<'s, S>(pub &'s S);

impl<S: Tpcc> Client for Checker<'_, S> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        if pace.begin() {
            self.0.check_warehouses()?;
            pace.end(0, Did { found: true, ..Did::default() });
        }
        Ok(())
    }
}
