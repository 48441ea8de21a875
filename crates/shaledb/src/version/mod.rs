//! Which tables exist: a tree's tables as readers see them, and how they are kept on disk.
//!
//! [`version`] and [`level`] are in memory: an immutable [`Version`] of [`Level`]s. [`edit`] is a
//! change, [`catalog`] is what changes add up to, [`manifest`] keeps them; [`follow`] reads
//! one that another process keeps; [`mark`] keeps what is prepared once more.

mod tree_id;
pub mod prepared;
pub mod edit;
pub mod catalog;
pub mod level;
pub mod manifest;
pub mod follow;
pub mod mark;
#[allow(clippy::module_inception, reason = "a version is what the module is about")]
pub mod version;

pub use catalog::Catalog;
pub use edit::{Edit, LogStart, TreeEdit};
pub use follow::ManifestTail;
pub use level::Level;
pub use manifest::{Manifest, Recovered, RecoveredTree, recover};
pub use prepared::PreparedTables;
pub use tree_id::TreeId;
pub use version::{Shape, Version};
