//! Who gets how much of cores and device: pure.

use crate::scenario::{Machine, Scenario};

/// Bytes of framing in the log for each write, about.
const LOG_ENTRY_BYTES: f64 = 12.0;
/// However busy the device is with logs and reads, background work gets this share of it.
const SHARE_MIN: f64 = 0.1;
/// The share of what the log leaves of the device that users' reads may take.
const READ_SHARE: f64 = 0.9;
/// The share of the device that the log may take.
const LOG_SHARE: f64 = 0.9;

/// One piece of background work.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// CPU seconds of all of it.
    pub cpu: f64,
    /// Bytes read and written by all of it.
    pub bytes: f64,
    /// How many threads work on it.
    pub threads: f64,
}

/// What is wanted at a moment.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Writes a second that are to be done; infinity for as many as go.
    pub writes: f64,
    /// The most of them that back-pressure lets through.
    pub writes_max: f64,
    /// Reads a second.
    pub reads: f64,
    /// The share of them that are not in memory, and the bytes that each of these reads.
    pub missed: f64,
    /// See `missed`.
    pub block_bytes: f64,
    /// CPU seconds of a read.
    pub read_cpu: f64,
    /// Background work.
    pub jobs: Vec<Job>,
    /// What the device can do: a share of what it could when it was new.
    pub device: f64,
}

/// What is done at a moment.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Writes a second.
    pub writes: f64,
    /// Reads a second.
    pub reads: f64,
    /// Bytes of the log a second.
    pub log: f64,
    /// Of each job, the share that is done in a second.
    pub jobs: Vec<f64>,
    /// Cores that users' calls use.
    pub users: f64,
    /// How many times its CPU time work takes.
    pub dilation: f64,
    /// Threads that wait for the device.
    pub waiting: f64,
    /// For which share of the time each of those who write does so, as opposed to being slowed:
    /// its CPU, and its waits for the device to take the log.
    pub writing: f64,
    /// Bytes a second to and from the device, and the share of what it can do.
    pub device: f64,
    /// See `device`.
    pub device_share: f64,
    /// The share of the cores that work.
    pub cores_share: f64,
}

/// Shares cores and device.
pub fn share(scenario: &Scenario, wanted: &Wanted) -> Rates {
    let Machine { cores, device, work, .. } = &scenario.machine;
    let capacity = device.bytes_per_second * wanted.device;
    let log_bytes = scenario.write_bytes() + LOG_ENTRY_BYTES;
    let put = work.put / 1e9;
    let is_endless = scenario.load.bytes_per_second[0].is_infinite();
    // A load with a rate has as many as it needs.
    let clients =
        if is_endless { scenario.load.clients.min(cores.max(1.0)) } else { cores.max(1.0) };
    let most = wanted.writes_max.min(LOG_SHARE * capacity / log_bytes);
    let runs = (wanted.writes.min(most) * put).min(clients);
    let threads: f64 = wanted.jobs.iter().map(|job| job.threads).sum();
    let runnable = runs + wanted.reads * wanted.read_cpu + threads;
    let given = (cores / runnable).min(1.0);
    let writes = wanted.writes.min(most).min(clients * given / put);
    let put_seconds = writes * put / given;
    let log = writes * log_bytes;
    // Reads are limited by cores, by reads of the device, and by its bytes.
    let per_read = (wanted.missed * wanted.block_bytes).max(1e-9);
    let reads = wanted
        .reads
        .min(cores * given / wanted.read_cpu)
        .min(device.reads_per_second * wanted.device / wanted.missed.max(1e-12))
        .min(READ_SHARE * (capacity - log).max(0.0) / per_read);
    let users = writes * put + reads * wanted.read_cpu;
    let user_reads = reads * per_read;
    let left = (capacity - log - user_reads).max(SHARE_MIN * capacity);
    // What users leave of the cores, and in any case a little.
    let free = (cores - users).max(SHARE_MIN * cores);
    let given = (free / threads.max(1e-9)).min(1.0);
    let speed = |job: &Job| job.threads * given / job.cpu.max(1e-9);
    let asked: f64 = wanted.jobs.iter().map(|job| speed(job) * job.bytes).sum();
    let scale = if asked > left { left / asked } else { 1.0 };
    let jobs: Vec<f64> = wanted
        .jobs
        .iter()
        .map(|job| speed(job) * if job.bytes > 0.0 { scale } else { 1.0 })
        .collect();
    let moved: f64 = wanted.jobs.iter().zip(&jobs).map(|(job, speed)| speed * job.bytes).sum();
    let working: f64 = wanted.jobs.iter().zip(&jobs).map(|(job, speed)| speed * job.cpu).sum();
    let device_bytes = log + user_reads + moved;
    let by_reads = reads * wanted.missed / (device.reads_per_second * wanted.device);
    // Whoever comes to a busy device waits for those before it.
    let waiting = threads * (1.0 - scale);
    let log_seconds = log / capacity * (device_bytes / capacity).min(1.0) * (1.0 + waiting);
    Rates {
        writes,
        reads,
        log,
        users,
        dilation: 1.0 / given,
        waiting,
        writing: ((put_seconds + log_seconds) / clients).min(1.0),
        device: device_bytes,
        device_share: (device_bytes / capacity).max(by_reads),
        cores_share: ((users + working) / cores).min(1.0),
        jobs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::sample;

    /// Whatever is wanted: no more than there is of cores, device and its reads.
    #[test]
    fn no_more_is_given_than_there_is() {
        let scenario = sample();
        for threads in [1.0, 4.0, 30.0] {
            for (writes, reads) in [(1e3, 0.0), (1e6, 0.0), (1e4, 1e3), (1e5, 1e7), (1e9, 1e9)] {
                for bytes in [0.0, 1e8, 1e12] {
                    let job = Job { cpu: 1.0, bytes, threads };
                    let wanted = Wanted {
                        writes,
                        writes_max: f64::INFINITY,
                        reads,
                        missed: 0.5,
                        block_bytes: 8e3,
                        read_cpu: 3e-6,
                        jobs: vec![job],
                        device: 1.0,
                    };
                    let rates = share(&scenario, &wanted);
                    let used = rates.users + rates.jobs[0] * job.cpu;
                    // Background work has a little in any case.
                    assert!(used <= 1.1 * 4.0 + 1e-9, "{used} cores: {wanted:?} {rates:?}");
                    assert!(rates.device <= 1.1 * 1e9, "{wanted:?} {rates:?}");
                    assert!(rates.reads * 0.5 <= 1e4 + 1e-6 && rates.reads <= reads);
                    assert!(rates.writes <= writes && rates.jobs[0] > 0.0);
                }
            }
        }
    }
}
