//! Background work: what is to be done next, flushes, compactions, the threads that run them, and
//! who waits for them.

mod dictionaries;
mod small_blocks;
mod block_sizes;
mod codecs;
mod table_files;
mod pressure;
mod outcome;
mod install;
mod rest;
mod space;
mod next_job;
mod flush;
mod edit_only;
mod merge;
mod run_job;
mod threads;
mod on_request;

pub(crate) use install::Change;
pub(crate) use on_request::Awaited;
pub(crate) use threads::{Threads, cores};
