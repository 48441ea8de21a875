//! Compaction: which tables to merge, into what, and what may vanish on the way.
//!
//! Deciding is pure: [`picker`] looks at the shape of a tree and answers with a [`plan::Plan`];
//! [`policy`] says how a level's tables are written; [`mod@drop`] says which entries of a merge are
//! still needed, and asks [`older`] about some deletes; [`split`] says where to cut, both the work
//! and the output; [`stages`] in which steps the result becomes visible.

pub mod range;
pub mod policy;
pub mod plan;
pub mod score;
pub mod room;
pub mod choose;
pub mod deletes;
pub mod level0;
pub mod idle;
pub mod space;
pub mod picker;
pub mod manual;
pub mod older;
pub mod drop;
pub mod split;
pub mod stages;
pub mod job;

#[cfg(test)]
mod cases_tests;
#[cfg(test)]
mod check;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tiny_tests;
