//! The processor's own counters, where the machine has them and lets this user see them.

/// Counters that run over all threads of some processes, those included that they start later.
pub struct Counters {
    #[cfg(target_os = "linux")]
    threads: Vec<[perf_event::Counter; 3]>,
    with_system: bool,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Instructions.
    pub instructions: f64,
    /// Cycles.
    pub cycles: f64,
    /// Misses of the last cache level.
    pub cache_misses: f64,
}

impl Counters {
    /// Whether the work that the system does for the processes is counted too.
    pub fn with_system(&self) -> bool {
        self.with_system
    }
}

#[cfg(not(target_os = "linux"))]
impl Counters {
    /// Other systems have no interface to them that this code knows.
    pub fn start(_: &[u32]) -> Option<Counters> {
        None
    }

    /// What was counted so far.
    pub fn counts(&mut self) -> Option<Counts> {
        None
    }
}

#[cfg(target_os = "linux")]
impl Counters {
    /// Begins to count; `None` where the machine has no such counters (many virtual ones have not)
    /// or keeps them from this user.
    pub fn start(pids: &[u32]) -> Option<Counters> {
        use perf_event::events::Hardware;
        let events =
            [Hardware::INSTRUCTIONS, Hardware::CPU_CYCLES, Hardware::CACHE_MISSES].map(Into::into);
        Counters::start_events(pids, events)
    }

    fn start_events(pids: &[u32], events: [linux::Kind; 3]) -> Option<Counters> {
        let start = |with_system| linux::start(pids, &events, with_system);
        let (threads, with_system) = match start(true) {
            Some(threads) => (threads, true),
            None => (start(false)?, false),
        };
        (!threads.is_empty()).then_some(Counters { threads, with_system })
    }

    /// What was counted so far. Where the machine counts fewer events at once than were asked for,
    /// each is scaled up from the share of the time in which it was counted.
    pub fn counts(&mut self) -> Option<Counts> {
        let mut sums = [0.0; 3];
        for counter in &mut self.threads {
            for (sum, counter) in sums.iter_mut().zip(counter) {
                *sum += linux::scaled(counter)?;
            }
        }
        let [instructions, cycles, cache_misses] = sums;
        Some(Counts { instructions, cycles, cache_misses })
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use perf_event::events::{Hardware, Software};
    use perf_event::{Builder, Counter};

    /// A kind of event that can be counted.
    #[derive(Clone, Copy)]
    pub(super) enum Kind {
        Hardware(Hardware),
        /// Counted by the system: what a test uses where the machine has no counters.
        #[cfg_attr(not(test), allow(dead_code))]
        Software(Software),
    }

    impl From<Hardware> for Kind {
        fn from(event: Hardware) -> Kind {
            Kind::Hardware(event)
        }
    }

    /// Counters of all threads of these processes.
    pub(super) fn start(
        pids: &[u32],
        events: &[Kind; 3],
        with_system: bool,
    ) -> Option<Vec<[Counter; 3]>> {
        let mut threads = Vec::new();
        for pid in pids {
            for entry in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
                let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok())
                else {
                    continue;
                };
                let [a, b, c] = events.map(|event| one(event, thread, with_system));
                match (a, b, c) {
                    (Ok(a), Ok(b), Ok(c)) => threads.push([a, b, c]),
                    // A thread may end between the listing and the look at it.
                    (Err(error), ..) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    _ => return None,
                }
            }
        }
        Some(threads)
    }

    fn one(event: Kind, thread: i32, with_system: bool) -> std::io::Result<Counter> {
        let mut builder = match event {
            Kind::Hardware(event) => Builder::new(event),
            Kind::Software(event) => Builder::new(event),
        };
        builder.observe_pid(thread).any_cpu().inherit(true).exclude_kernel(!with_system);
        let mut counter = builder.build()?;
        counter.enable()?;
        Ok(counter)
    }

    pub(super) fn scaled(counter: &mut Counter) -> Option<f64> {
        let read = counter.read_count_and_time().ok()?;
        match read.time_running {
            // It never ran: a thread that slept all the time.
            0 => Some(0.0),
            running => Some(read.count as f64 * read.time_enabled as f64 / running as f64),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "hardware_tests.rs"]
mod tests;
