//! The size that a table of purchases without secondary indexes should have under leveled
//! compaction: 1.1 times what its rows compress to. What is one character again and again
//! compresses to nearly nothing, random bytes not at all.

use super::options::InsertOptions;
use super::purchase::COLUMN_BYTES;
use super::rows::prices;

/// Space amplification of leveled compaction.
pub const SPACE_AMP: f64 = 1.1;

/// What a compressed row costs beside the chance in it: the steps from one id, time and length to
/// the next, and telling the codec where the repetition begins and ends.
const FRAME_BYTES: f64 = 6.0;

/// Bytes on disk of so many rows; `compressed` is whether the last level has a codec.
pub fn predicted_bytes(options: &InsertOptions, rows: u64, compressed: bool) -> f64 {
    let data = (options.data_bytes.least + options.data_bytes.most) as f64 / 2.0;
    let row = if compressed {
        let choices = f64::from(options.cash_registers)
            * f64::from(options.customers)
            * f64::from(options.products)
            * prices(options) as f64;
        choices.log2() / 8.0 + FRAME_BYTES + data * f64::from(options.random_percent) / 100.0
    } else {
        COLUMN_BYTES as f64 + data
    };
    SPACE_AMP * rows as f64 * row
}
