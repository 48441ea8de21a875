//! The campaign: steps x engines x repeats, each a driver process of its own, in turns.
//!
//! A run has a folder with `plan.json` (what is to be done), `rows.jsonl` (a line for each step
//! that is done), `failed.jsonl` (a line for each that failed) and `state.json` (what the stores
//! are left by). A run that was interrupted, even by a loss of power, is resumed from it: what is
//! done is not done again, and a store that a step was working on is put back first, from a saved
//! copy or by doing the steps before it once more, whose rows are then thrown away.
//!
//! - `programs`: where the drivers are. `options`, `plan`: what is to be done.
//! - `folder`: the files of a run. `stores`: the stores, and the step each was left by. `room`:
//!   whether there is room for them.
//! - `busy`: threads that burn CPU beside a step. `child`: a driver's process. `screen`: what the
//!   user sees. `sitting`: the turns.
//! - `start`: begins, or goes on.

mod programs;
mod plan;
mod options;
mod folder;
mod room;
mod stores;
mod screen;
mod busy;
mod child;
mod sitting;
mod start;

pub use folder::read_plan;
pub use options::CampaignOptions;
pub use plan::{Group, Plan, SCHEMA, Subject, Turn};
pub use programs::{ENGINES, driver, is_server, peers_folder};
pub use sitting::Outcome;
pub use start::{resume, run};

#[cfg(test)]
#[path = "campaign_tests.rs"]
mod tests;
