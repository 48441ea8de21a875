//! What of the command takes bytes from outside: rows of text files, and bytes as text.
//!
//! A library, so that fuzzers and tests run it without a process. It is the command's own: what is
//! public here may change with any version.

pub mod text;
pub mod rows;
#[cfg(feature = "fuzz")]
pub mod fuzz;
