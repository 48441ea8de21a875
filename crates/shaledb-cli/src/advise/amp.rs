//! Write amplification of a load, as far as it can be told without one.

/// What the write amplification depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Whether each byte is written once: to tables directly, or at the only flush.
    pub(super) once: bool,
    /// Keys and values of all rows.
    pub(super) bytes: f64,
    /// Tables and blobs in the end.
    pub(super) stored: f64,
    /// How often each stored byte was written in a load of the sample into a tree of the same
    /// shape; `None` if that could not be made.
    pub(super) times: Option<f64>,
}

/// Bytes written to tables and blobs for each byte of keys and values; the log does not count.
pub(super) fn write_amp(shape: &Shape) -> Option<f64> {
    let times = if shape.once { Some(1.0) } else { shape.times };
    times.map(|times| times * shape.stored / shape.bytes.max(1.0))
}
