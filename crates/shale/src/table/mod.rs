//! One immutable sorted file.

pub mod meta;
