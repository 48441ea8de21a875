//! The life of a database: opening and following it, creating and dropping trees, copies, checks,
//! closing.

mod files;
mod checkpoint;
mod replay;
mod space;
mod following;
mod follow;
mod open;
mod trees;
mod verify;
mod close;

pub(crate) use follow::{Follower, open_follower};
pub(crate) use open::open;
pub use verify::{VerifyProgress, VerifyReport};
