//! Scans.

use rocksdb::{DBAccess, DBRawIteratorWithThreadMode};
use shaledb_lab::stores::engine::Result;

/// Shows up to `rows` pairs, from the first key that is not less than `from`.
#[inline]
pub(crate) fn show<D: DBAccess>(
    mut cursor: DBRawIteratorWithThreadMode<'_, D>,
    from: &[u8],
    rows: u64,
    row: &mut impl FnMut(&[u8], &[u8]) -> bool,
) -> Result<u64> {
    if from.is_empty() {
        cursor.seek_to_first();
    } else {
        cursor.seek(from);
    }
    let mut done = 0;
    while done < rows {
        let Some((key, value)) = cursor.item() else {
            cursor.status()?;
            break;
        };
        done += 1;
        if !row(key, value) || done == rows {
            break;
        }
        cursor.next();
    }
    Ok(done)
}
