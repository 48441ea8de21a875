//! Cursors made of cursors: [`mod@concat`] joins the tables of a run, [`merge`] orders several
//! cursors into one, [`visible`] shows what one reader may see of that.
//!
//! All of them are generic over their children, so that a step costs no virtual call.

mod source;
mod covers;
pub mod concat;
pub mod merge;
#[cfg(test)]
pub(crate) mod testing;
pub mod visible;

pub use concat::{Concat, Run};
pub use merge::Merge;
pub use source::Source;
pub use visible::{Undone, Visible, WriteSetView};
