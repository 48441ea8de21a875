//! Scans that lock what they return, and the gaps between: see `scan`.

mod state;
mod awaiting;
mod peeking;
mod scan;

pub use state::LockingScan;
