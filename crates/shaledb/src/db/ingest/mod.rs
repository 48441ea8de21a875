//! Tables written from sorted rows, and their way into trees: bulk loads, large transactions.

mod run_writer;
mod install;
mod beneath;

pub(crate) use beneath::Held;
pub(crate) use install::IngestPart;
pub(crate) use run_writer::RunWriter;
