//! What a store must do to be measured: a narrow interface, used by static dispatch only.
//!
//! One [`Engine`] per run, one [`Handle`] per thread. Values are shown to a closure where they lie,
//! because that is the cheapest way of every engine worth measuring.

use crate::options::BenchOptions;
use std::path::Path;

/// Any engine's error.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The result of every call on an engine.
pub type Result<T> = std::result::Result<T, Failure>;

/// Totals since the engine was opened, as the engine itself counts them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Keys and values that the user wrote.
    pub user_bytes: u64,
    /// Written to write-ahead logs.
    pub wal_bytes: u64,
    /// Written by flushes.
    pub flush_bytes: u64,
    /// Written by compactions, flushes not included.
    pub compaction_bytes: u64,
    /// Time that writers were delayed or stopped by the engine.
    pub stall_seconds: f64,
    /// CPU seconds of flush and compaction, where the engine knows.
    pub background_cpu_seconds: Option<f64>,
    /// The engine's own table of its levels, as text.
    pub compaction_table: String,
}

impl Metrics {
    /// What happened since `earlier`; the table is the later one.
    pub fn since(&self, earlier: &Metrics) -> Metrics {
        let less = |a: Option<f64>, b: Option<f64>| Some(a? - b.unwrap_or(0.0));
        Metrics {
            user_bytes: self.user_bytes.saturating_sub(earlier.user_bytes),
            wal_bytes: self.wal_bytes.saturating_sub(earlier.wal_bytes),
            flush_bytes: self.flush_bytes.saturating_sub(earlier.flush_bytes),
            compaction_bytes: self.compaction_bytes.saturating_sub(earlier.compaction_bytes),
            stall_seconds: (self.stall_seconds - earlier.stall_seconds).max(0.0),
            background_cpu_seconds: less(
                self.background_cpu_seconds,
                earlier.background_cpu_seconds,
            ),
            compaction_table: self.compaction_table.clone(),
        }
    }
}

/// A store that can be measured.
pub trait Engine: Send + Sync + Sized {
    /// What one thread works with.
    type Handle: Handle;

    /// The name in reports, also the name of its folder.
    const NAME: &'static str;

    /// The version in reports.
    fn version() -> String;

    /// Opens or creates the store in `dir` with the settings of a run.
    fn open(dir: &Path, options: &BenchOptions) -> Result<Self>;

    /// A handle for one thread.
    fn handle(&self) -> Result<Self::Handle>;

    /// Flushes everything and waits until no compaction is due.
    fn settle(&self) -> Result<()>;

    /// What the engine counted so far.
    fn metrics(&self) -> Result<Metrics>;

    /// Closes the store; everything that was written is there at the next open.
    fn close(self) -> Result<()>;
}

/// One thread's view of a store.
pub trait Handle: Send {
    /// Writes one pair.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Looks a key up and shows its value; whether it was there.
    fn get(&mut self, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool>;

    /// Deletes one key.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Shows up to `rows` pairs from the first key that is not less than `from`, in order, until
    /// `row` answers false; how many were shown.
    fn scan(
        &mut self,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64>;
}

/// An engine that does nothing: what a run on it costs is what the client costs.
pub struct Null;

impl Engine for Null {
    type Handle = NullHandle;
    const NAME: &'static str = "null";

    fn version() -> String {
        String::new()
    }

    fn open(_: &Path, _: &BenchOptions) -> Result<Null> {
        Ok(Null)
    }

    fn handle(&self) -> Result<NullHandle> {
        Ok(NullHandle { value: vec![b'x'; 256] })
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// See [`Null`].
pub struct NullHandle {
    value: Vec<u8>,
}

impl Handle for NullHandle {
    #[inline(never)]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        std::hint::black_box((key, value));
        Ok(())
    }

    #[inline(never)]
    fn get(&mut self, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        std::hint::black_box(key);
        found(&self.value);
        Ok(true)
    }

    #[inline(never)]
    fn delete(&mut self, key: &[u8]) -> Result<()> {
        std::hint::black_box(key);
        Ok(())
    }

    #[inline(never)]
    fn scan(
        &mut self,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let rows = rows.min(200_000);
        for done in 1..=rows {
            if !row(std::hint::black_box(from), std::hint::black_box(&self.value)) {
                return Ok(done);
            }
        }
        Ok(rows)
    }
}
