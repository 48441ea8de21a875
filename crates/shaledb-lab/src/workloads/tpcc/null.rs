//! Warehouses that nobody keeps: what a run on them costs is what the client costs.

use super::input::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use super::rows::Rows;
use super::store::{Done, Tpcc, TpccSession};
use crate::stores::engine::Result;
use crate::stores::null::Null;
use std::hint::black_box;

impl Tpcc for Null {
    type Session<'s> = NullSession;

    fn create_warehouses(&self, _: bool) -> Result<()> {
        Ok(())
    }

    fn warehouse_session(&self) -> Result<NullSession> {
        Ok(NullSession)
    }

    fn check_warehouses(&self) -> Result<u64> {
        Ok(0)
    }
}

/// See [`Null`].
pub struct NullSession;

impl TpccSession for NullSession {
    #[inline(never)]
    fn load(&mut self, rows: &Rows) -> Result<()> {
        black_box(rows);
        Ok(())
    }

    #[inline(never)]
    fn new_order(&mut self, order: &NewOrder) -> Result<Done> {
        Ok(Done { count: black_box(order).lines.len() as u64, read: 0 })
    }

    #[inline(never)]
    fn payment(&mut self, payment: &Payment) -> Result<Done> {
        black_box(payment);
        Ok(Done { count: 1, read: 0 })
    }

    #[inline(never)]
    fn order_status(&mut self, asked: &OrderStatus) -> Result<Done> {
        black_box(asked);
        Ok(Done { count: 10, read: 0 })
    }

    #[inline(never)]
    fn delivery(&mut self, delivery: &Delivery) -> Result<Done> {
        black_box(delivery);
        Ok(Done { count: 10, read: 0 })
    }

    #[inline(never)]
    fn stock_level(&mut self, asked: &StockLevel) -> Result<Done> {
        black_box(asked);
        Ok(Done { count: 1, read: 0 })
    }
}
