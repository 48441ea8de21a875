//! One immutable sorted file.

pub mod compress;
pub mod filter;
pub mod meta;
