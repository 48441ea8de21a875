//! The vocabulary that every other module speaks. Uses nothing.

pub mod activity;
pub mod coding;
pub mod key;
pub mod lock_error;
pub mod error;
pub mod config;
pub mod cursor;
pub mod rank;
pub mod prefetch;
pub mod ranges;
pub mod shards;
pub mod stats;
pub mod sync;
