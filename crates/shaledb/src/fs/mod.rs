//! The only door to disk and clock: what a database asks of the world that it lives in.
//!
//! [`Env::os`] is the real machine, [`Env::memory`] a disk in memory. An [`Fs`] or a [`Clock`] of
//! one's own goes into an [`Env`] likewise, for another kind of storage or for tests.
//!
//! What a caller may rely on, and no more: appended bytes are durable after [`WriteFile::sync`];
//! a created, renamed, linked or removed name is durable after [`Fs::sync_dir`] of its directory.
//! All paths are absolute or relative to the process (see [`Fs::absolute`]); every error names the
//! path.

mod file;
mod system;
mod clock;
mod files;
#[cfg_attr(doc, doc(hidden))]
pub mod process;
mod cgroup;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod log_file;
#[cfg_attr(doc, doc(hidden))]
pub mod os;
#[cfg_attr(doc, doc(hidden))]
pub mod mem;
mod env;
#[cfg_attr(doc, doc(hidden))]
pub mod balance;
#[cfg_attr(doc, doc(hidden))]
pub mod ledger;
#[cfg_attr(doc, doc(hidden))]
pub mod account;
mod changes;
mod counted;
mod handles;
#[cfg_attr(doc, doc(hidden))]
pub mod guard;
#[cfg_attr(doc, doc(hidden))]
pub mod meter;

pub use clock::Clock;
pub use env::Env;
pub use file::{Preparer, ReadFile, Syncer, WriteFile};
pub use files::{create_dirs, read_all, remove_dirs, replace};
pub use system::{DirEntry, Fs, Lock};
