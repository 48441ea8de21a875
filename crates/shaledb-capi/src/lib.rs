//! The C interface of Shale: `include/shale.h`, which is made from this crate.
//!
//! Bytes, numbers and opaque handles cross the border, nothing else. `guard` holds what calls
//! share: arguments are checked, panics end here, and errors become objects; `quiet` is for calls
//! that return no error. The conventions that the callers keep (which pointers are valid for how
//! long, and who frees what) are at the top of the header; each `unsafe` block relies on them.

// The header states what callers owe, once for all functions.
#![allow(clippy::missing_safety_doc)]
// The names are those of C.
#![allow(non_camel_case_types)]

/// Not for the calls of C of the program, nor of the codecs: those have names without a prefix.
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// As of `shale`: what is freed goes back at once, and a block takes no page more than its bytes.
#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_SETTINGS: &[u8] = b"dirty_decay_ms:0,muzzy_decay_ms:0,cache_oblivious:false\0";

mod guard;
mod quiet;

// In the order of the header.

pub mod error;

pub mod config;

pub mod db;

pub mod commit;

pub mod maintenance;

pub mod snapshot;

pub mod tree;

pub mod write;

pub mod bytes;

pub mod read;

pub mod batch;

pub mod scan;

pub mod ingest;

pub mod build;
pub mod changes;

pub mod txn;
pub mod txn_scan;

pub mod locking;

pub mod prepared;

pub mod interrupt;

pub mod report;

pub mod entries;
