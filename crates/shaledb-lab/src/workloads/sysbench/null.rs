//! Tables that nobody keeps: what a run on them costs is what the client costs. They have every
//! row, as they say.

use super::rows::{C_BYTES, Sbtest};
use super::store::{Column, Oltp, OltpSession};
use crate::stores::engine::Result;
use crate::stores::null::Null;
use std::hint::black_box;
use std::ops::RangeInclusive;

impl Oltp for Null {
    type Session<'s> = NullSession;

    fn create(&self, _: u32) -> Result<()> {
        Ok(())
    }

    fn create_index(&self, _: u32) -> Result<u64> {
        Ok(0)
    }

    fn session(&self) -> Result<NullSession> {
        Ok(NullSession { c: [b'7'; C_BYTES] })
    }

    fn last_id(&self, _: u32) -> Result<u64> {
        Ok(0)
    }
}

/// See [`Null`]. Rows of a range are shown one by one, since that is the client's part.
pub struct NullSession {
    c: [u8; C_BYTES],
}

impl NullSession {
    fn show(&self, ids: RangeInclusive<u64>, see: &mut impl FnMut(&[u8])) -> u64 {
        let rows = ids.end() - ids.start() + 1;
        (0..rows).for_each(|_| see(black_box(&self.c)));
        rows
    }
}

impl OltpSession for NullSession {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn commit(&mut self) -> Result<u64> {
        Ok(black_box(1))
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn load(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()> {
        black_box((table, row));
        Ok(())
    }

    #[inline(never)]
    fn point(
        &mut self,
        table: u32,
        id: u64,
        column: Column,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<bool> {
        black_box((table, id, column));
        see(&self.c);
        Ok(true)
    }

    #[inline(never)]
    fn range(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64> {
        black_box(table);
        Ok(self.show(ids, see))
    }

    #[inline(never)]
    fn sum(&mut self, table: u32, ids: RangeInclusive<u64>) -> Result<(u64, u64)> {
        black_box(table);
        Ok((0, ids.end() - ids.start() + 1))
    }

    #[inline(never)]
    fn ordered(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        distinct: bool,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64> {
        black_box((table, distinct));
        Ok(self.show(ids, see))
    }

    #[inline(never)]
    fn update_index(&mut self, table: u32, id: u64) -> Result<()> {
        black_box((table, id));
        Ok(())
    }

    #[inline(never)]
    fn update_nonindex(&mut self, table: u32, id: u64, c: &[u8]) -> Result<()> {
        black_box((table, id, c));
        Ok(())
    }

    #[inline(never)]
    fn delete(&mut self, table: u32, id: u64) -> Result<()> {
        black_box((table, id));
        Ok(())
    }

    #[inline(never)]
    fn insert(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()> {
        black_box((table, row));
        Ok(())
    }
}
