//! Write amplification: bytes of tables written for each byte of keys and values that is written.
//! The log does not count.
//!
//! Of a load it is the size, times how often each stored byte was written. Of updates at a rate it
//! is foreseen by the engine's own decisions on a model of files (`shaledb_forecast`). A load as
//! fast as it goes is not foreseen so: how far merges lag behind it depends on the machine, and the
//! model wrote half as much again as the engine (docs/decisions/appendix/0021-advise.md).

use super::choice::Choice;
use crate::exit::{Failure, Outcome};
use shaledb::Config;
use shaledb::compaction::policy::candidates::index_of;
use shaledb_forecast::{
    Device, Effort, Load, Machine, Scenario, USUAL_WORK, costs_of_ratio, foresee,
};

/// How much is run: a tenth of what `shale simulate` does, since each choice is foreseen.
const EFFORT: Effort = Effort { flushes: 3000.0, tables: 300.0, samples: 2 };

/// Of the data so much is written anew where updates are foreseen, and at least what fills the
/// database's memory: so there are flushes and merges, however little there is.
const UPDATED: f64 = 0.6;

/// The spans that the model runs.
const DAYS_MIN: f64 = 1e-6;
const DAYS_MAX: f64 = 36_500.0;

const SECONDS_OF_DAY: f64 = 86_400.0;

/// What the write amplification of a load depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Whether each byte is written once: to tables directly, or at the only flush.
    pub(super) once: bool,
    /// Keys and values of all rows that are written.
    pub(super) bytes: f64,
    /// Tables and blobs in the end.
    pub(super) stored: f64,
    /// How often each stored byte was written in a load of the sample into a tree of the same
    /// shape; `None` if that could not be made.
    pub(super) times: Option<f64>,
}

/// The rows of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) choice: Choice,
    /// Of a row, on average.
    pub(super) key_bytes: f64,
    pub(super) value_bytes: f64,
    /// Keys and values of different keys.
    pub(super) bytes: f64,
    /// Bytes stored for each byte of these.
    pub(super) ratio: f64,
    /// What the engine may take.
    pub(super) memory_bytes: u64,
}

/// Of a load; `None` if it cannot be told.
pub(super) fn write_amp(shape: &Shape) -> Option<f64> {
    let times = if shape.once { Some(1.0) } else { shape.times };
    times.map(|times| times * shape.stored / shape.bytes.max(1.0))
}

impl Data {
    /// Of updates of rows by chance, so many bytes a second, once levels are as they stay; `None`
    /// if the model does not know the codec, or nothing comes to be flushed at such a rate.
    pub(super) fn at_rate(&self, bytes_per_second: f64) -> Outcome<Option<f64>> {
        let Some(number) = index_of(self.choice.codec, self.choice.dictionary) else {
            return Ok(None);
        };
        let updated = (self.bytes * UPDATED).max(self.memory_bytes as f64);
        let days = updated / bytes_per_second / SECONDS_OF_DAY;
        let mut costs = costs_of_ratio(1.0 / self.ratio.clamp(0.001, 1.0));
        costs.0[number].ratio = self.ratio.clamp(0.001, 1.0);
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        // A device that is never short: what is asked is not how fast it goes.
        let device = Device {
            bytes_per_second: 2e9,
            reads_per_second: 1e6,
            life_bytes: f64::INFINITY,
            slower_each_year: 0.0,
        };
        let load = Load::updates(bytes_per_second);
        let scenario = Scenario {
            key_bytes: self.key_bytes.max(1.0),
            value_bytes: self.value_bytes,
            start_bytes: self.bytes,
            compacted: false,
            existing: None,
            load,
            days: days.clamp(DAYS_MIN, DAYS_MAX),
            machine: Machine {
                cores,
                memory_bytes: self.memory_bytes.saturating_mul(4),
                device,
                work: USUAL_WORK,
            },
            config: Config {
                memory_bytes: self.memory_bytes,
                tree: self.choice.config(),
                ..Config::default()
            },
            costs,
        };
        let forecast = foresee(&scenario, &EFFORT, |_| {})
            .map_err(|what| Failure::usage(format!("--rate: {what}")))?;
        Ok((forecast.totals.flushed > 0.0).then(|| forecast.totals.write_amp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaledb::Codec;

    #[test]
    fn no_rate_is_out_of_range() {
        let choice = Choice { codec: Codec::Zstd(3), block_bytes: 16 << 10, dictionary: false };
        let (key_bytes, value_bytes, memory_bytes) = (0.0, 100.0, 1 << 30);
        let at = |bytes: f64, rate: f64| {
            let data = Data { choice, key_bytes, value_bytes, bytes, ratio: 0.5, memory_bytes };
            data.at_rate(rate).unwrap().unwrap()
        };
        // A span of days, one of seconds, and less data than a memtable.
        for (bytes, rate) in [(1e9, 1e3), (1e8, 1e8), (1e6, 1e6)] {
            let amp = at(bytes, rate);
            assert!(amp > 0.0 && amp < 50.0, "{bytes} at {rate}: {amp}");
        }
        let choice = Choice { codec: Codec::Zstd(22), ..choice };
        let data = Data { choice, key_bytes, value_bytes, bytes: 1e8, ratio: 0.5, memory_bytes };
        assert_eq!(data.at_rate(1e6).unwrap(), None);
    }
}
