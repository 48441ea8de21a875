//! Transactions in two phases: prepared durably, decided later, also after a crash. The writes of
//! one that fits its memory are in the log, see `logged`; those of a larger one are in tables.

mod names;
mod logged;
mod tables;
mod decide;
