//! Sales that nobody keeps: what a run on them costs is what the client costs. They have a million
//! rows and all indexes, as they say.

use super::purchase::Purchase;
use super::store::{Hit, Sales, SalesSession, Start};
use crate::stores::engine::Result;
use crate::stores::null::Null;
use std::hint::black_box;
use std::ops::{Range, RangeInclusive};

impl Sales for Null {
    type Session<'s> = NullSession;

    fn create(&self, _: u32, _: bool, _: usize) -> Result<()> {
        Ok(())
    }

    fn session(&self, _: u32) -> Result<NullSession> {
        Ok(NullSession { data: vec![b'x'; 16] })
    }

    fn create_indexes(&self, _: u32) -> Result<u64> {
        Ok(0)
    }

    fn is_indexed(&self, _: u32) -> Result<bool> {
        Ok(true)
    }

    fn ids(&self, _: u32) -> Result<Option<RangeInclusive<u64>>> {
        Ok(Some(1..=1_000_000))
    }
}

/// See [`Null`].
pub struct NullSession {
    data: Vec<u8>,
}

impl SalesSession for NullSession {
    #[inline(never)]
    fn insert(&mut self, row: &Purchase<'_>) -> Result<()> {
        black_box(row);
        Ok(())
    }

    #[inline(never)]
    fn delete(&mut self, ids: Range<u64>) -> Result<u64> {
        Ok(black_box(ids.end - ids.start))
    }

    #[inline(never)]
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline(never)]
    fn range(&mut self, start: Start, limit: u64, row: &mut impl FnMut(&Hit)) -> Result<u64> {
        black_box(start);
        (0..limit).for_each(|_| row(black_box(&Hit::default())));
        Ok(limit)
    }

    #[inline(never)]
    fn point(&mut self, id: u64, row: &mut impl FnMut(&Purchase<'_>)) -> Result<bool> {
        row(black_box(&Purchase { id, data: &self.data, ..Purchase::default() }));
        Ok(true)
    }
}
