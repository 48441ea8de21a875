//! The vocabulary that every other module speaks. Uses nothing.

pub mod activity;
pub mod coding;
pub mod config;
pub mod conflict;
pub mod cursor;
pub mod error;
pub mod key;
pub mod ranges;
pub mod shards;
pub mod stats;
pub mod sync;
