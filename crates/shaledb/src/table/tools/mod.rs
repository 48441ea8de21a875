//! Table files looked at without what a database knows of them: what is in them, and what can be
//! saved of damaged ones.

pub mod inspect;
mod locate;
pub mod salvage;
