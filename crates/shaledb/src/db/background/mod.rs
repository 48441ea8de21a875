//! Background work: what is to be done next, flushes, compactions, the threads that run them, and
//! who waits for them.

mod pressure;
mod install;
mod flush;
mod compact;
mod merge;
mod next_job;
mod threads;
mod wait;

pub(crate) use install::Change;
pub(crate) use threads::{Threads, cores};
