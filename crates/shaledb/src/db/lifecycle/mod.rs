//! The life of a database: opening and following it, creating and dropping trees, copies, checks,
//! closing.

mod files;
mod unfinished;
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
pub(crate) use unfinished::{make as make_whole, refuse as refuse_unfinished};
pub use verify::{VerifyProgress, VerifyReport};
