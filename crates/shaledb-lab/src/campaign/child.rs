//! A driver as the campaign sees it: a process that gets a job and reports what happens.

use crate::driver::{Event, Job};
use crate::measure::Bound;
use crate::run::row::Row;
use crate::run::work::Progress;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a stop is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Of what a driver says about its troubles, so many lines are kept from the beginning, where a
/// panic is, and from the end.
const LINES: usize = 10;

/// Why there is no row.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The user stopped the campaign.
    Stopped,
    /// The step failed.
    Failed(String),
}

/// What comes of a step.
pub(super) type Tried<T> = Result<T, Trouble>;

/// What the campaign wants to hear and to say while a driver works.
pub(super) struct Attention<'a> {
    /// Seconds without a sign of life after which the driver is ended.
    pub(super) patience: f64,
    /// Whether the user wants to stop.
    pub(super) stopped: &'a dyn Fn() -> bool,
    /// Hears what is being done, and how far it is.
    pub(super) hear: &'a mut dyn FnMut(&str, Option<&Progress>),
}

/// A process and all that it started: they are ended together.
struct Family {
    child: Child,
    /// Set once it was waited for: from then on its number may be somebody else's.
    gone: Option<ExitStatus>,
}

impl Family {
    /// Waits for the process if `patiently`, then ends what it left behind.
    fn end(&mut self, patiently: bool) -> Option<ExitStatus> {
        if self.gone.is_some() {
            return self.gone;
        }
        let id = self.child.id();
        if patiently {
            // SAFETY: all-zero bytes are a valid siginfo.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: `info` is valid for writing for the length of the call, which leaves the
            // process to be waited for below.
            unsafe { libc::waitid(libc::P_PID, id, &mut info, libc::WEXITED | libc::WNOWAIT) };
        }
        // SAFETY: the call takes and gives numbers. The group is the child's own; the child has not
        // been waited for, so that its number cannot be somebody else's.
        unsafe { libc::kill(-(id as i32), libc::SIGKILL) };
        self.gone = self.child.wait().ok();
        self.gone
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// Runs a job by a driver and gives its row.
pub(super) fn run(
    mut command: Command,
    job: &Job,
    bound: Option<&Bound>,
    attention: &mut Attention<'_>,
) -> Tried<Row> {
    let failed = |what: String| Trouble::Failed(what);
    let program = command.get_program().to_string_lossy().into_owned();
    // A group of its own: a Ctrl-C reaches the campaign alone, which decides.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child =
        command.spawn().map_err(|error| failed(format!("could not start {program}: {error}")))?;
    let mut family = Family { child, gone: None };
    if let Some(bound) = bound {
        // It waits for its job, so that nothing of the step is outside of the bound.
        bound.add(family.child.id()).map_err(failed)?;
    }
    let (Some(mut input), Some(output), Some(errors)) =
        (family.child.stdin.take(), family.child.stdout.take(), family.child.stderr.take())
    else {
        return Err(failed(format!("could not open the pipes of {program}")));
    };
    let text = serde_json::to_string(job).map_err(|error| failed(error.to_string()))?;
    let sent = writeln!(input, "{text}").and_then(|()| input.flush());
    let (sender, events) = channel::<Event>();
    let outcome = std::thread::scope(|scope| {
        let last_words = scope.spawn(|| words(errors));
        scope.spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                // What an engine prints by itself is not for us.
                let Ok(event) = serde_json::from_str(&line) else { continue };
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        let mut outcome = Err(Trouble::Failed(String::new()));
        let mut watch = Watch::new(attention.patience);
        loop {
            match events.recv_timeout(LOOK) {
                Ok(Event::Doing(what)) => {
                    watch.alive();
                    (attention.hear)(&what, None);
                }
                Ok(Event::Progress(progress)) => {
                    watch.progress(&progress);
                    (attention.hear)(&job.step, Some(&progress));
                }
                Ok(Event::Row(row)) => outcome = Ok(*row),
                Ok(Event::Failed(why)) => outcome = Err(Trouble::Failed(why)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if (attention.stopped)() {
                outcome = Err(Trouble::Stopped);
                break;
            }
            if let Some(seconds) = watch.idle_too_long() {
                outcome = Err(Trouble::Failed(format!(
                    "it did nothing for {seconds:.0} s and was stopped. Allow longer with \
                     --patience"
                )));
                break;
            }
        }
        let ended = matches!(outcome, Err(Trouble::Stopped)) || watch.idle_too_long().is_some();
        let status = family.end(!ended).filter(|_| !ended);
        let last_words = last_words.join().unwrap_or_default();
        explained(outcome, status, &last_words, bound)
    });
    drop(input);
    match (&outcome, sent) {
        (Err(Trouble::Failed(why)), Err(error)) if why.is_empty() => {
            Err(failed(format!("could not send {program} its job: {error}")))
        }
        _ => outcome,
    }
}

fn words(errors: impl Read) -> String {
    let (mut first, mut last, mut left_out) = (Vec::new(), VecDeque::new(), 0);
    for line in BufReader::new(errors).lines().map_while(Result::ok) {
        if first.len() < LINES {
            first.push(line);
            continue;
        }
        last.push_back(line);
        if last.len() > LINES {
            last.pop_front();
            left_out += 1;
        }
    }
    if left_out > 0 {
        first.push(format!("... ({left_out} lines)"));
    }
    first.extend(last);
    first.join("\n")
}

/// The outcome with what else is known of its reason.
fn explained(
    outcome: Tried<Row>,
    status: Option<ExitStatus>,
    last_words: &str,
    bound: Option<&Bound>,
) -> Tried<Row> {
    let why = match outcome {
        Err(Trouble::Failed(why)) => why,
        Ok(row) if status.is_some_and(|status| status.success()) => return Ok(row),
        Ok(_) => "it reported its row and then failed".to_owned(),
        stopped => return stopped,
    };
    let mut text = why;
    if let Some(signal) = status.and_then(|status| status.signal()) {
        text.push_str(&format!(" ended by signal {signal}"));
    } else if let (true, Some(status)) = (text.is_empty(), status) {
        text.push_str(&format!("no result ({status})"));
    }
    if bound.is_some_and(|bound| bound.kills() > 0) {
        text.push_str(": it needed more memory than --memory-bound allows");
    }
    if !last_words.is_empty() {
        text.push_str(&format!("\n{last_words}"));
    }
    Err(Trouble::Failed(text.trim().to_owned()))
}

/// Notices that a driver does nothing: no operation is done, no CPU used, no byte read or written.
struct Watch {
    patience: f64,
    last: Instant,
    seen: (u64, u64, u64),
}

impl Watch {
    fn new(patience: f64) -> Watch {
        Watch { patience, last: Instant::now(), seen: (0, 0, 0) }
    }

    fn alive(&mut self) {
        self.last = Instant::now();
    }

    fn progress(&mut self, progress: &Progress) {
        // The look itself costs less than a millisecond of CPU a second: tenths of a second of CPU
        // are work.
        let cpu = (progress.cpu_seconds * 10.0) as u64;
        let seen = (progress.ops, cpu, progress.io_bytes >> 20);
        if seen != self.seen {
            self.seen = seen;
            self.alive();
        }
    }

    fn idle_too_long(&self) -> Option<f64> {
        let seconds = self.last.elapsed().as_secs_f64();
        (seconds > self.patience).then_some(seconds)
    }
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
