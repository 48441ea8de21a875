//! What a step cost: CPU, bytes, memory and size as the system counts them; latencies and rates as
//! the client sees them.
//!
//! A library lives in this process, a server in others: what is measured is a set of processes
//! ([`Processes`]). Linux only counts some of this; elsewhere those measures are zero or absent.

mod field;
mod usage;
mod bound;
mod device;
mod hardware;
mod latency;
mod machine;
mod size;

pub use bound::{Bound, drop_page_cache};
pub use device::{BlockDevice, Device};
pub use hardware::{Counters, Counts};
pub use latency::{Counter, Latencies, LatencySummary, RateSummary};
pub use machine::machine;
pub use size::{disk_bytes, free_bytes};
pub use usage::{Processes, Resident, Usage, thread_cpu_seconds};
