//! Write amplification of a load, as far as it can be told without one.

/// What the write amplification depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Whether rows go to tables directly.
    pub(super) direct: bool,
    /// Keys and values of all rows.
    pub(super) bytes: f64,
    /// Tables and blobs in the end.
    pub(super) stored: f64,
    /// What a load of the sample showed, with memtables and tables as much smaller as the sample
    /// is; `None` if they could not be made so small.
    pub(super) of_scale_model: Option<f64>,
}

/// Bytes written to storage for each byte of keys and values.
pub(super) fn write_amp(shape: &Shape) -> Option<f64> {
    match shape.direct {
        true => Some(shape.stored / shape.bytes.max(1.0)),
        false => shape.of_scale_model,
    }
}
