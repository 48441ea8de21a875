//! What is to be foreseen: the data, the load, the machine, the engine's settings.

use crate::existing::Existing;
use crate::keys::{Skew, ZIPF_MAX};
use serde::Serialize;
use shaledb::Config;
use shaledb::compaction::policy::candidates::{Costs, USUAL, YARDSTICK};

/// Hours of a day.
pub const HOURS: usize = 24;

/// Where new rows go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Anywhere among the others.
    #[default]
    Random,
    /// Behind all others: keys begin with a time or a counter.
    Ascending,
}

/// What is written and read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Bytes of keys and values written each second, by the hour of the day; infinity for as many
    /// as the database takes.
    pub bytes_per_second: [f64; HOURS],
    /// How many threads write, where no rate is given.
    pub clients: f64,
    /// The share of the writes that are new rows, 0 to 1.
    pub inserts: f64,
    /// The share of the writes that are deletes, 0 to 1. The rest are updates of rows.
    pub deletes: f64,
    /// Where new rows go.
    pub order: Order,
    /// How updates spread over the rows.
    pub skew: Skew,
    /// Point reads each second, which spread as updates do.
    pub reads_per_second: f64,
    /// With ascending new rows: how many days they stay, until a range delete drops them.
    pub retention_days: Option<f64>,
    /// Of rows that are not there yet so many may come by updates: what a load that draws from all
    /// keys does to an empty database. 0 for a load that updates what is there.
    pub universe_bytes: f64,
}

impl Load {
    /// Uniform updates of what is there, so many bytes a second at any hour, and nothing else.
    pub fn updates(bytes_per_second: f64) -> Load {
        Load {
            bytes_per_second: [bytes_per_second; HOURS],
            clients: 1.0,
            inserts: 0.0,
            deletes: 0.0,
            order: Order::Random,
            skew: Skew::Uniform,
            reads_per_second: 0.0,
            retention_days: None,
            universe_bytes: 0.0,
        }
    }
}

/// The device below.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Device {
    /// Bytes a second, read and written together.
    pub bytes_per_second: f64,
    /// Reads of a block a second.
    pub reads_per_second: f64,
    /// How many bytes may be written in its life; infinity where that is not known.
    pub life_bytes: f64,
    /// By which share it becomes slower each year, 0 to 1.
    pub slower_each_year: f64,
}

/// What the machine takes for the engine's work, in nanoseconds of CPU, without codecs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Work {
    /// A write by a user: log and memtable.
    pub put: f64,
    /// A row that is flushed.
    pub flush_row: f64,
    /// A row that a merge reads.
    pub merge_row: f64,
    /// A byte that background work reads or writes.
    pub byte: f64,
    /// A read of a row whose block is in memory.
    pub get: f64,
}

/// On the machine of docs/decisions/0020-forecast.md, rows of 270 bytes.
pub const USUAL_WORK: Work =
    Work { put: 2900.0, flush_row: 330.0, merge_row: 260.0, byte: 0.35, get: 1500.0 };

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Cores.
    pub cores: f64,
    /// Memory in bytes, of which the engine takes a quarter unless its settings say otherwise.
    pub memory_bytes: u64,
    /// The device.
    pub device: Device,
    /// What work costs.
    pub work: Work,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Bytes of a key.
    pub key_bytes: f64,
    /// Bytes of a value.
    pub value_bytes: f64,
    /// Bytes of keys and values that are there at the start.
    pub start_bytes: f64,
    /// Whether these have just been loaded in order or compacted, so that all lie in the last
    /// level.
    pub compacted: bool,
    /// The tables with which it begins, if they are known; with them the tree begins as it is.
    pub existing: Option<Existing>,
    /// What is written and read.
    pub load: Load,
    /// How many days.
    pub days: f64,
    /// The machine.
    pub machine: Machine,
    /// The engine's settings.
    pub config: Config,
    /// What each codec does to the data.
    pub costs: Costs,
}

impl Scenario {
    /// Bytes of a row.
    pub fn row_bytes(&self) -> f64 {
        self.key_bytes + self.value_bytes
    }

    /// Bytes of a write of the mix.
    pub fn write_bytes(&self) -> f64 {
        self.key_bytes + self.value_bytes * (1.0 - self.load.deletes)
    }

    /// Bytes that are written each second at the hour in which `day` lies.
    pub fn demand(&self, day: f64) -> f64 {
        let hour = (day.rem_euclid(1.0) * HOURS as f64 + 1e-9) as usize;
        self.load.bytes_per_second[hour.min(HOURS - 1)]
    }

    /// Whether the demand changes by the hour.
    pub fn varies(&self) -> bool {
        let rates = &self.load.bytes_per_second;
        rates.iter().any(|rate| *rate != rates[0])
    }

    /// The mean of the demand over a day.
    pub fn mean_demand(&self) -> f64 {
        let rates = &self.load.bytes_per_second;
        // A sum of 24 of them is rounded.
        if self.varies() { rates.iter().sum::<f64>() / HOURS as f64 } else { rates[0] }
    }

    /// Rows that come to be there each second at a demand, less those that go by deletes.
    pub fn growth(&self, demand: f64) -> f64 {
        demand / self.write_bytes() * (self.load.inserts - self.load.deletes)
    }

    /// Refuses what contradicts itself, by name.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let load = &self.load;
        let within = |name: &str, value: f64, low: f64, high: f64| {
            if value.is_finite() && (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name}: {value} is not from {low} to {high}"))
            }
        };
        within("the bytes of a key", self.key_bytes, 1.0, 65_535.0)?;
        within("the bytes of a value", self.value_bytes, 0.0, 1e9)?;
        within("the bytes at the start", self.start_bytes, 0.0, 1e18)?;
        within("the days", self.days, 1e-6, 36_500.0)?;
        within("the share of inserts", load.inserts, 0.0, 1.0)?;
        within("the share of deletes", load.deletes, 0.0, 1.0)?;
        within("inserts and deletes together", load.inserts + load.deletes, 0.0, 1.0)?;
        within("threads that write", load.clients, 1.0, 1e6)?;
        within("reads a second", load.reads_per_second, 0.0, 1e9)?;
        within("cores", self.machine.cores, 0.1, 4096.0)?;
        if load.bytes_per_second.iter().any(|rate| rate.is_nan() || *rate < 0.0) {
            return Err("the rate of writes is below 0 or no number".to_owned());
        }
        if let Skew::Zipf(exponent) = load.skew {
            within("the exponent of the skew", exponent, 0.0, ZIPF_MAX)?;
        }
        let has_rows = self.start_bytes >= self.row_bytes() || load.universe_bytes > 0.0;
        if !has_rows && load.inserts == 0.0 {
            return Err(
                "no rows are there and no write makes one: name a size of the data, or a share \
                        of inserts"
                    .to_owned(),
            );
        }
        let device = &self.machine.device;
        if !(device.bytes_per_second > 0.0 && device.reads_per_second > 0.0) {
            return Err("the device: its rates must be above 0".to_owned());
        }
        within("by how much the device becomes slower", device.slower_each_year, 0.0, 0.95)?;
        if let Some(days) = load.retention_days {
            within("the days of retention", days, 1e-3, 36_500.0)?;
            if load.order != Order::Ascending {
                return Err(
                    "retention: only rows that come in ascending order are dropped by range; \
                            name the deletes of others by their share"
                        .to_owned(),
                );
            }
        }
        self.config.validate().map_err(|error| error.to_string())
    }
}

/// What codecs do to data that zstd:3 makes so many times smaller (1 or more): the usual costs,
/// with what each saves changed alike.
pub fn costs_of_ratio(times: f64) -> Costs {
    let wanted = 1.0 / times.max(1.0);
    let usual = USUAL.0[YARDSTICK].ratio;
    let mut costs = USUAL;
    for cost in &mut costs.0[1..] {
        // Data that is hardly compressible keeps its size with all; what remains of the rest goes
        // with a power, so that no ratio passes 0.
        cost.ratio = cost.ratio.powf(wanted.ln() / usual.ln());
    }
    costs
}

#[cfg(test)]
/// A few million rows on a fast machine, for tests.
pub(crate) fn sample() -> Scenario {
    let device = Device {
        bytes_per_second: 1e9,
        reads_per_second: 1e4,
        life_bytes: f64::INFINITY,
        slower_each_year: 0.0,
    };
    Scenario {
        key_bytes: 20.0,
        value_bytes: 300.0,
        start_bytes: 1e9,
        compacted: false,
        existing: None,
        load: Load::updates(1e6),
        days: 1.0,
        machine: Machine { cores: 4.0, memory_bytes: 1 << 30, device, work: USUAL_WORK },
        config: shaledb::Config::default(),
        costs: costs_of_ratio(2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measured rate is no round number.
    #[test]
    fn a_rate_that_stays_does_not_change_by_the_hour() {
        for divisor in 1..1000 {
            let rate = 40e6 / (f64::from(divisor) + 0.7);
            let scenario = Scenario { load: Load::updates(rate), ..sample() };
            assert!(!scenario.varies() && scenario.mean_demand() == rate, "{rate}");
        }
        let mut scenario = sample();
        scenario.load.bytes_per_second[7] += 1.0;
        assert!(scenario.varies());
    }

    #[test]
    fn what_codecs_save_goes_with_the_ratio() {
        let costs = costs_of_ratio(5.0);
        assert!((costs.0[YARDSTICK].ratio - 0.2).abs() < 1e-9 && costs.0[0].ratio == 1.0);
        assert!(costs.0[1].ratio > costs.0[3].ratio && costs.0[1].ratio < 0.5);
        assert!(costs_of_ratio(1.0).0.iter().all(|cost| cost.ratio == 1.0));
    }
}
