//! Background work: what is to be done next, flushes, compactions, the threads that run them, and
//! who waits for them.

mod tables;
mod pressure;
mod outcome;
mod install;
mod next_job;
mod flush;
mod edit_only;
mod merge;
mod run_job;
mod threads;
mod wait;

pub(crate) use install::Change;
pub(crate) use threads::{Threads, cores};
