//! The least and the greatest primary key of a table, where keys are a table's number (u32), then
//! the row's (u64).

use super::key::{Decoder, Encoder};
use crate::stores::engine::{Handle, Result, TreeId};
use std::ops::RangeInclusive;

/// What counts up from 1 ends far before this.
const LAST: u64 = 1 << 62;

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
///
/// # Errors
///
/// The engine fails, or a key is not one of a table.
pub fn ids<H: Handle>(
    handle: &mut H,
    tree: TreeId,
    table: u32,
) -> Result<Option<RangeInclusive<u64>>> {
    let Some(least) = first(handle, tree, table, 0)? else { return Ok(None) };
    // There is a row at or after `low`, and none after `high`.
    let (mut low, mut high) = (least, LAST);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match first(handle, tree, table, middle)? {
            Some(found) => low = found,
            None => high = middle - 1,
        }
    }
    Ok(Some(least..=low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Setup;
    use crate::stores::engine::Engine;
    use crate::stores::model::Model;

    #[test]
    fn each_table_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let model = Model::open(dir.path(), &Setup::default(), &["rows"]).unwrap();
        let mut handle = model.handle().unwrap();
        assert_eq!(ids(&mut handle, 0, 0).unwrap(), None);
        for (table, id) in [(1, 7), (1, 8), (1, 1 << 40), (2, 1), (4, 0), (4, LAST)] {
            let mut key = Encoder::new();
            handle.put(0, key.u32(table).u64(id).bytes(), b"").unwrap();
        }
        let of = |table| ids(&mut model.handle().unwrap(), 0, table).unwrap();
        assert_eq!((of(0), of(1), of(2)), (None, Some(7..=1 << 40), Some(1..=1)));
        assert_eq!((of(3), of(4)), (None, Some(0..=LAST)));
    }
}
