//! The least and the greatest primary key of a table, where keys are a table's number (u32), then
//! the row's (u64).

use super::key::{Decoder, Encoder};
use crate::engine::{Handle, Result, TreeId};
use std::ops::RangeInclusive;

/// The first row of `table` whose number is at least `from`.
fn first<H: Handle>(handle: &mut H, tree: TreeId, table: u32, from: u64) -> Result<Option<u64>> {
    let mut key = Encoder::new();
    let mut found = None;
    handle.scan(tree, key.u32(table).u64(from).bytes(), 1, &mut |key, _| {
        let mut key = Decoder::new(key);
        if key.u32() == Some(table) {
            found = key.u64();
        }
        true
    })?;
    Ok(found)
}

/// The numbers of a table's rows, if it has any. A scan goes upwards only, so the last one is found
/// by halves: about 64 scans.
pub fn ids<H: Handle>(
    handle: &mut H,
    tree: TreeId,
    table: u32,
) -> Result<Option<RangeInclusive<u64>>> {
    let Some(least) = first(handle, tree, table, 0)? else { return Ok(None) };
    // There is a row at or after `low`, and none at or after `high`, unless it is the last number.
    let (mut low, mut high) = (least, u64::MAX);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match first(handle, tree, table, middle)? {
            Some(found) => low = found,
            None => high = middle - 1,
        }
    }
    Ok(Some(least..=low))
}
