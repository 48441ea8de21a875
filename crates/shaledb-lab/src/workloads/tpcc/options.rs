//! The parameters of the TPC-C pattern.

use super::rows::Table;
use super::scale::{DISTRICTS, Scale};
use super::step::Step;
use crate::options::texts;
use crate::workloads::planned::{PlannedStep, of_clients, planned};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Switch {
    /// It is
    On,
    /// It is not
    Off,
}

/// The parameters of the TPC-C pattern.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TpccOptions {
    /// The steps, in this order
    #[arg(long, value_delimiter = ',', default_value = "load,run,check")]
    #[serde(with = "texts")]
    pub steps: Vec<Step>,

    /// Warehouses; each has about 80 MB of columns and index entries
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub warehouses: u32,

    /// Numbers of clients; the step run is repeated for each of them
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,4",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub clients: Vec<u32>,

    /// Clients that load, each whole warehouses
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub load_clients: u32,

    /// Seconds of the step run, for one number of clients
    #[arg(long, default_value_t = 20.0, value_parser = crate::options::positive)]
    pub seconds: f64,

    /// Seconds that the step run takes before anything is measured
    #[arg(long, default_value_t = 0, value_parser = crate::options::seconds)]
    pub warm_up: u64,

    /// Foreign keys between the tables
    #[arg(long, value_enum, default_value = "on")]
    pub foreign_keys: Switch,

    /// A divisor of the items and of each district's customers and orders; 1 is the standard's
    /// scale
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub shrink: u32,
}

impl TpccOptions {
    /// How many rows there are.
    pub fn scale(&self) -> Scale {
        Scale::new(self.warehouses, self.shrink)
    }

    /// The steps as they are run, each with its number of clients.
    fn plan(&self) -> Vec<(Step, u32)> {
        let mut plan = Vec::new();
        for &step in &self.steps {
            match step {
                Step::Load => plan.push((step, self.load_clients.min(self.warehouses))),
                Step::Run => plan.extend(self.clients.iter().map(|&clients| (step, clients))),
                Step::Check | Step::WaitIdle => plan.push((step, 1)),
            }
        }
        plan
    }

    /// The steps as a plan has them: `run.c4` is that of four clients.
    pub fn planned(&self) -> Vec<PlannedStep> {
        let name = |(step, clients): (Step, u32)| match step {
            Step::Run => (format!("{step}.c{clients}"), false),
            _ => (step.to_string(), step == Step::Load),
        };
        planned(self.plan().into_iter().map(name))
    }

    /// The step of a plan's name, and its number of clients.
    ///
    /// # Errors
    ///
    /// There is no such step.
    pub fn step(&self, name: &str) -> Result<(Step, u32), String> {
        of_clients(&self.plan(), name, "TPC-C")
    }

    /// The bytes of what the load leaves and the transactions may add, before compression.
    pub fn data_bytes(&self) -> u64 {
        let scale = self.scale();
        let (items, customers) = (u64::from(scale.items), u64::from(scale.customers));
        // A customer has a row of history, an order and its ten lines.
        let of_customer = Table::Customer.stored_bytes()
            + Table::History.stored_bytes()
            + Table::Orders.stored_bytes()
            + 10 * Table::OrderLine.stored_bytes();
        let warehouse =
            items * Table::Stock.stored_bytes() + u64::from(DISTRICTS) * customers * of_customer;
        let loaded = items * Table::Item.stored_bytes() + u64::from(self.warehouses) * warehouse;
        // How much the transactions add is not known; half of what is there is a lot.
        loaded * 3 / 2
    }

    /// Checks that the parameters fit together.
    ///
    /// # Errors
    ///
    /// The first step is no load.
    pub fn check(&self) -> Result<(), String> {
        if !matches!(self.steps.first(), None | Some(Step::Load)) {
            return Err(
                "--steps: the first step must create the tables. Begin with load".to_owned()
            );
        }
        Ok(())
    }
}
