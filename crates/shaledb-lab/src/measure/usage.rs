//! CPU, I/O and memory of a set of processes.

use super::field::field;

/// The processes whose cost is the engine's.
#[derive(Clone, Debug)]
pub struct Processes {
    /// `None` for this process.
    pids: Option<Vec<u32>>,
}

impl Processes {
    /// This process itself.
    pub fn own() -> Processes {
        Processes { pids: None }
    }

    /// Others. None of them is nothing to measure: all figures are zero.
    pub fn new(pids: Vec<u32>) -> Processes {
        Processes { pids: Some(pids) }
    }

    /// Whether this process is the one measured, the client's code included.
    pub fn is_own(&self) -> bool {
        self.pids.is_none()
    }

    /// Their ids.
    pub fn pids(&self) -> Vec<u32> {
        self.pids.clone().unwrap_or_else(|| vec![std::process::id()])
    }

    /// What they have used so far, threads that have ended included. A process that has gone away
    /// takes what it used with it.
    pub fn usage(&self) -> Usage {
        let Some(pids) = &self.pids else { return Usage::now() };
        let mut sum = Usage::default();
        for usage in pids.iter().filter_map(|&pid| Usage::of(pid)) {
            sum.user_seconds += usage.user_seconds;
            sum.system_seconds += usage.system_seconds;
            sum.written_bytes += usage.written_bytes;
            sum.read_bytes += usage.read_bytes;
        }
        sum
    }

    /// Their memory. The sum counts memory that they share as often as they share it.
    pub fn resident(&self) -> Resident {
        let mut sum = Resident::default();
        for pid in self.pids() {
            let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
            let kib = |name| field(&text, name).unwrap_or(0) * 1024;
            sum.bytes += kib("VmRSS:");
            sum.peak_bytes += kib("VmHWM:");
        }
        sum
    }

    /// Lets the peak of their memory begin anew; whether the system allowed it.
    pub fn reset_peak(&self) -> bool {
        let refuses = |pid: &u32| std::fs::write(format!("/proc/{pid}/clear_refs"), "5").is_err();
        self.pids().iter().filter(|pid| refuses(pid)).count() == 0
    }
}

/// Resident memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident {
    /// Now.
    pub bytes: u64,
    /// At its peak since [`Processes::reset_peak`].
    pub peak_bytes: u64,
}

/// What processes have used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU seconds outside the system.
    pub user_seconds: f64,
    /// CPU seconds inside the system.
    pub system_seconds: f64,
    /// Bytes that went to storage, or will when the page cache is written back.
    pub written_bytes: u64,
    /// Bytes that came from storage.
    pub read_bytes: u64,
}

impl Usage {
    /// Of this process, as of now, to the microsecond.
    pub fn now() -> Usage {
        let Some(usage) = rusage(libc::RUSAGE_SELF) else { return Usage::default() };
        let (read_bytes, written_bytes) = io_bytes(std::process::id())
            .unwrap_or((usage.ru_inblock as u64 * 512, usage.ru_oublock as u64 * 512));
        Usage {
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            written_bytes,
            read_bytes,
        }
    }

    /// Of the processes that this one started and has waited for, as of now: all that they used
    /// while they ran.
    pub fn of_children() -> Usage {
        let Some(usage) = rusage(libc::RUSAGE_CHILDREN) else { return Usage::default() };
        Usage {
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            written_bytes: usage.ru_oublock as u64 * 512,
            read_bytes: usage.ru_inblock as u64 * 512,
        }
    }

    /// Of another process, all its CPU to the nanosecond, and what of it was inside the system to
    /// the system's tick (10 ms as a rule). `None` if it is not there. I/O that this user may not
    /// see is zero.
    pub fn of(pid: u32) -> Option<Usage> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (user, system) = ticks(&text)?;
        // SAFETY: the call takes a number and gives one.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
        let (user, system) = (user as f64 / per_second, system as f64 / per_second);
        // Asked after the ticks, so that it is no less than they are.
        let all = process_cpu_seconds(pid).unwrap_or(user + system);
        let (read_bytes, written_bytes) = io_bytes(pid).unwrap_or_default();
        Some(Usage {
            user_seconds: user,
            system_seconds: (all - user).max(0.0),
            written_bytes,
            read_bytes,
        })
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_seconds: (self.user_seconds - earlier.user_seconds).max(0.0),
            system_seconds: (self.system_seconds - earlier.system_seconds).max(0.0),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
        }
    }

    /// All CPU seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

/// CPU seconds of the calling thread so far, to the nanosecond.
pub fn thread_cpu_seconds() -> f64 {
    clock_seconds(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0.0)
}

/// CPU seconds of a process so far, to the nanosecond, its threads that have ended included.
fn process_cpu_seconds(pid: u32) -> Option<f64> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid for writing for the length of the call.
    let answer = unsafe { libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, &mut clock) };
    if answer == 0 { clock_seconds(clock) } else { None }
}

fn clock_seconds(clock: libc::clockid_t) -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing for the length of the call.
    let answer = unsafe { libc::clock_gettime(clock, &mut time) };
    (answer == 0).then(|| time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

fn rusage(who: libc::c_int) -> Option<libc::rusage> {
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing for the length of the call.
    let answer = unsafe { libc::getrusage(who, &mut usage) };
    (answer == 0).then_some(usage)
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

/// The fields utime and stime. The name of the program, which is before them, may have spaces and
/// brackets in it.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace().skip(11);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn io_bytes(pid: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    // Pages that were dirtied and thrown away before they reached storage are counted: whether they
    // were early enough is chance. The device's own counts tell what arrived.
    Some((field(&text, "read_bytes:")?, field(&text, "write_bytes:")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    fn burn(seconds: f64) {
        let before = thread_cpu_seconds();
        let mut at = 0u64;
        while thread_cpu_seconds() - before < seconds {
            at = std::hint::black_box(at + 1);
        }
    }

    #[test]
    fn cpu_that_was_burnt_is_counted() {
        let own = Processes::own();
        let (before, of_before) = (own.usage(), Usage::of(std::process::id()).unwrap());
        burn(0.1);
        let used = own.usage().since(&before).cpu_seconds();
        assert!(used >= 0.099, "{used}");
        // The two ways to ask agree, up to the tick of the second one; other tests burn CPU too.
        let of = Usage::of(std::process::id()).unwrap().since(&of_before).cpu_seconds();
        assert!(of >= 0.08, "{of}");
    }

    #[test]
    fn bytes_that_were_written_are_counted() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let own = Processes::own();
        let before = own.usage();
        let mut file = std::fs::File::create(dir.path().join("a")).unwrap();
        file.write_all(&vec![7u8; 8 << 20]).unwrap();
        file.sync_all().unwrap();
        let written = own.usage().since(&before).written_bytes;
        assert!(written >= 8 << 20, "{written}");
    }

    /// A shell that does what it is told, line by line.
    struct Shell(Child, BufReader<std::process::ChildStdout>);

    impl Shell {
        fn new() -> Shell {
            let mut child = Command::new("sh")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("there is a shell");
            let out = BufReader::new(child.stdout.take().unwrap());
            Shell(child, out)
        }

        fn tell(&mut self, line: &str) {
            writeln!(self.0.stdin.as_mut().unwrap(), "{line}; echo done").unwrap();
            let mut answer = String::new();
            self.1.read_line(&mut answer).unwrap();
            assert_eq!(answer, "done\n");
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn other_processes_are_measured_alone() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut shell = Shell::new();
        let processes = Processes::new(vec![shell.0.id()]);
        shell.tell(":");
        assert!(!processes.is_own() && processes.resident().bytes > 0);
        let before = processes.usage();
        burn(0.05);
        // Nothing of what this process does is theirs: the shell goes back to sleep, no more.
        let used = processes.usage().since(&before).cpu_seconds();
        assert!(used < 0.025, "{used}");

        // `echo` is the shell's own command: the shell itself writes 1000 blocks of 4 KiB.
        let file = dir.path().join("lines");
        let block = "x".repeat(4095);
        shell.tell(&format!(
            "b={block}; i=0; while [ $i -lt 1000 ]; do echo $b; i=$((i+1)); done >{}",
            file.display()
        ));
        let used = processes.usage().since(&before);
        assert!((4_096_000..4_400_000).contains(&used.written_bytes), "{used:?}");
        while processes.usage().since(&before).cpu_seconds() < 0.1 {
            shell.tell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
        }
    }

    #[test]
    fn what_another_process_does_within_a_tick_is_counted() {
        let mut shell = Shell::new();
        let processes = Processes::new(vec![shell.0.id()]);
        for _ in 0..5 {
            let before = processes.usage();
            shell.tell("i=0; while [ $i -lt 100 ]; do i=$((i+1)); done");
            assert!(processes.usage().since(&before).cpu_seconds() > 0.0);
        }
    }

    #[test]
    fn a_process_that_is_gone_used_nothing() {
        let pid = Shell::new().0.id();
        assert_eq!(Processes::new(vec![pid]).usage().cpu_seconds(), 0.0);
        assert!(Usage::of(pid).is_none());
    }

    #[test]
    fn nothing_is_measured_of_no_process() {
        let none = Processes::new(Vec::new());
        burn(0.02);
        assert!(!none.is_own() && none.pids().is_empty() && none.reset_peak());
        assert_eq!((none.usage().cpu_seconds(), none.resident().bytes), (0.0, 0));
    }

    #[test]
    fn what_children_used_is_known_when_they_are_gone() {
        let before = Usage::of_children();
        let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", work]).status().unwrap().success());
        assert!(Usage::of_children().since(&before).cpu_seconds() > 0.01);
    }

    #[test]
    fn a_thread_sees_its_own_time_at_once() {
        let before = thread_cpu_seconds();
        let mut rounds = 0u64;
        // Far less than the system takes to look at a thread again.
        while thread_cpu_seconds() - before < 50e-6 {
            rounds = std::hint::black_box(rounds + 1);
        }
        assert!(rounds > 0);
    }

    #[test]
    fn names_with_brackets_are_read() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194560 1 2 3 4 77 88 0 0 20 0 1 0 5";
        assert_eq!(ticks(stat), Some((77, 88)));
        assert_eq!(ticks("12 (a"), None);
    }
}
