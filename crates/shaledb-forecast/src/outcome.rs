//! What was foreseen, as figures.

use serde::Serialize;
use shaledb::base::config::LEVELS;
use shaledb::write::throttle::Cause;
use std::collections::BTreeMap;

/// A stretch of time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Its end, in days from the start.
    pub day: f64,
    /// Bytes of keys and values that were to be written each second, and that were.
    pub wanted: f64,
    /// See `wanted`.
    pub written: f64,
    /// Bytes that wait to be written, at its end.
    pub waiting: f64,
    /// Bytes of all files at its end, and the most of them.
    pub space: f64,
    /// See `space`.
    pub space_peak: f64,
    /// Bytes of keys and values of all rows at its end.
    pub live: f64,
    /// Bytes of the tables of each level at its end.
    pub levels: [f64; LEVELS],
    /// Tables of level 0 at its end.
    pub level0_tables: usize,
    /// Bytes that are left to compact.
    pub debt: f64,
    /// Cores that work.
    pub cores: f64,
    /// Of these, for compressing and decompressing.
    pub codec_cores: f64,
    /// Bytes a second that go to and from the device, and the share of what it can do.
    pub device: f64,
    /// See `device`.
    pub device_share: f64,
    /// The share of the time in which writers were slowed or stopped.
    pub slowed: f64,
    /// The share of the time in which puts were refused for want of space.
    pub refused: f64,
    /// The codec of the last level at its end.
    pub codec: String,
}

/// All that was done in a span of time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// Seconds.
    pub seconds: f64,
    /// Bytes of keys and values that were to be written, and that were.
    pub wanted: f64,
    /// See `wanted`.
    pub written: f64,
    /// Bytes written to the log, by flushes and by compactions.
    pub logged: f64,
    /// See `logged`.
    pub flushed: f64,
    /// See `logged`.
    pub compacted: f64,
    /// Bytes read by compactions, and by users' reads that were not in memory.
    pub merge_read: f64,
    /// See `merge_read`.
    pub user_read: f64,
    /// Point reads that were to be done, and that were.
    pub reads_wanted: f64,
    /// See `reads_wanted`.
    pub reads: f64,
    /// CPU seconds: of users' calls, of flushes, of compactions, and of codecs (part of these).
    pub user_cpu: f64,
    /// See `user_cpu`.
    pub flush_cpu: f64,
    /// See `user_cpu`.
    pub merge_cpu: f64,
    /// See `user_cpu`.
    pub codec_cpu: f64,
    /// Seconds in which writers were slowed or stopped, by cause.
    pub slowed: BTreeMap<&'static str, f64>,
    /// The longest time without a break in which less was written than was to be, in seconds.
    pub longest: f64,
    /// Seconds in which puts were refused for want of space.
    pub refused: f64,
    /// Bytes that flushes and compactions wrote to each level.
    pub levels: [f64; LEVELS],
    /// Compactions, by reason.
    pub jobs: BTreeMap<&'static str, u64>,
    /// Seconds of all background threads together.
    pub busy: f64,
    /// Seconds for which the device was at its limit.
    pub device_full: f64,
    /// Seconds for which all cores were at work.
    pub cores_full: f64,
}

impl Totals {
    /// Bytes of flushes and compactions for each byte of users.
    pub fn write_amp(&self) -> f64 {
        (self.flushed + self.compacted) / self.written.max(1.0)
    }

    /// Bytes that the device was to write for each second.
    pub fn device_written(&self) -> f64 {
        (self.logged + self.flushed + self.compacted) / self.seconds.max(1e-9)
    }

    /// Cores that worked.
    pub fn cores(&self) -> f64 {
        (self.user_cpu + self.flush_cpu + self.merge_cpu) / self.seconds.max(1e-9)
    }

    /// The share of the time in which writers were slowed or stopped.
    pub fn slowed_share(&self) -> f64 {
        (self.slowed.values().sum::<f64>() / self.seconds.max(1e-9)).max(0.0)
    }

    /// Notes that writers were slowed.
    pub fn slow(&mut self, cause: Cause, seconds: f64) {
        *self.slowed.entry(cause.name()).or_default() += seconds;
    }

    /// Adds what was done in another span, as if that had gone on for `times` as long.
    pub fn add(&mut self, other: &Totals, times: f64) {
        let pairs = [
            (&mut self.seconds, other.seconds),
            (&mut self.wanted, other.wanted),
            (&mut self.written, other.written),
            (&mut self.logged, other.logged),
            (&mut self.flushed, other.flushed),
            (&mut self.compacted, other.compacted),
            (&mut self.merge_read, other.merge_read),
            (&mut self.user_read, other.user_read),
            (&mut self.reads_wanted, other.reads_wanted),
            (&mut self.reads, other.reads),
            (&mut self.user_cpu, other.user_cpu),
            (&mut self.flush_cpu, other.flush_cpu),
            (&mut self.merge_cpu, other.merge_cpu),
            (&mut self.codec_cpu, other.codec_cpu),
            (&mut self.refused, other.refused),
            (&mut self.busy, other.busy),
            (&mut self.device_full, other.device_full),
            (&mut self.cores_full, other.cores_full),
        ];
        for (sum, more) in pairs {
            *sum += more * times;
        }
        for (cause, seconds) in &other.slowed {
            *self.slowed.entry(cause).or_default() += seconds * times;
        }
        for (reason, jobs) in &other.jobs {
            *self.jobs.entry(reason).or_default() += (*jobs as f64 * times).round() as u64;
        }
        for (sum, more) in self.levels.iter_mut().zip(&other.levels) {
            *sum += more * times;
        }
        self.longest = self.longest.max(other.longest);
    }
}
