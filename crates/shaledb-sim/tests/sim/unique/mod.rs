//! Online builds of unique trees while writers go on: a tree is complete or not there, has what the
//! source says, and no key of two rows.

mod writer;
mod random;
mod cases;
mod views;
