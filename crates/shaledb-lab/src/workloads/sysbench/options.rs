//! The parameters of the sysbench pattern.

use super::ids::Distribution;
use super::rows::{ENTRY_BYTES, ROW_BYTES};
use super::step::Step;
use crate::options::texts;
use crate::units::parse_some;
use crate::workloads::planned::{PlannedStep, of_clients, planned};
use clap::Args;
use serde::{Deserialize, Serialize};

/// The parameters of the sysbench pattern.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SysbenchOptions {
    /// The steps, in this order
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "load,update-index,update-nonindex,read-write,read-only.10,read-only.100,\
                         read-only.1000,read-only.10000,point-query,select,insert"
    )]
    #[serde(with = "texts")]
    pub steps: Vec<Step>,

    /// Numbers of clients; each step but the load is repeated for each of them
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,4",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub clients: Vec<u32>,

    /// Tables
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tables: u32,

    /// Rows of each table (k, M, G: thousands)
    #[arg(long, default_value = "50k", value_parser = parse_some)]
    pub rows: u64,

    /// Seconds of each step, for one number of clients
    #[arg(long, default_value_t = 5.0, value_parser = crate::options::positive)]
    pub seconds: f64,

    /// How ids are chosen
    #[arg(long, value_enum, default_value = "uniform")]
    pub distribution: Distribution,
}

impl SysbenchOptions {
    /// The steps as they are run, each with its number of clients.
    pub fn plan(&self) -> Vec<(Step, u32)> {
        let most = self.clients.iter().copied().max().unwrap_or(1);
        let mut plan = Vec::new();
        for &step in &self.steps {
            match step {
                Step::Load => plan.push((step, most.min(self.tables))),
                Step::WaitIdle => plan.push((step, 1)),
                _ => plan.extend(self.clients.iter().map(|&clients| (step, clients))),
            }
        }
        plan
    }

    /// The steps as a plan has them: `update-index.c4` is that of four clients.
    pub fn planned(&self) -> Vec<PlannedStep> {
        let name = |(step, clients): (Step, u32)| match step.is_once() {
            true => (step.to_string(), step == Step::Load),
            false => (format!("{step}.c{clients}"), false),
        };
        planned(self.plan().into_iter().map(name))
    }

    /// The step of a plan's name, and its number of clients.
    ///
    /// # Errors
    ///
    /// There is no such step.
    pub fn step(&self, name: &str) -> Result<(Step, u32), String> {
        of_clients(&self.plan(), name, "sysbench")
    }

    /// The bytes of what the load leaves and the inserts may add, before compression.
    pub fn data_bytes(&self) -> u64 {
        let loaded = self.rows * u64::from(self.tables) * (ROW_BYTES + ENTRY_BYTES);
        // How many rows the inserts add is not known; as many as are there is a lot.
        if self.steps.contains(&Step::Insert) { 2 * loaded } else { loaded }
    }

    /// Checks that the parameters fit together.
    ///
    /// # Errors
    ///
    /// The first step is no load, or `rows` is not from 1 to 4294967295.
    pub fn check(&self) -> Result<(), String> {
        if !matches!(self.steps.first(), None | Some(Step::Load)) {
            return Err(
                "--steps: the first step must create the tables. Begin with load".to_owned()
            );
        }
        if self.rows == 0 || self.rows > u64::from(u32::MAX) {
            return Err(format!("--rows: {} is not from 1 to 4294967295", self.rows));
        }
        Ok(())
    }
}
