//! The vocabulary that every other module speaks. Uses nothing.

pub mod coding;
pub mod config;
pub mod cursor;
pub mod error;
pub mod key;
pub mod pages;
pub mod ranges;
pub mod stats;
pub mod sync;
