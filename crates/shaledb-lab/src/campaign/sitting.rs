//! A campaign at work: the turns of its plan that are not done, one after another.

use super::busy::Busy;
use super::child::{self, Attention, Tried, Trouble};
use super::folder::{Failure, Key, append, key_of, lock, read_rows};
use super::plan::{Plan, Turn, is_wanted_later};
use super::screen::{Screen, brief};
use super::stores::{Left, Stores};
use crate::driver::Job;
use crate::measure::{Bound, drop_page_cache};
use crate::run::row::Row;
use crate::say;
use crate::stores::engine::Result;
use crate::workloads::planned::{PlannedStep, Start};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a campaign ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The run's folder.
    pub folder: PathBuf,
    /// All rows of the run, those of earlier sittings included.
    pub rows: Vec<Row>,
    /// Steps that failed, as text.
    pub failed: Vec<String>,
    /// Whether the user stopped it.
    pub stopped: bool,
    /// Where its stores are, if they are still there.
    pub stores: Option<PathBuf>,
}

/// Which driver an engine has.
pub(super) type Drivers<'a> = &'a dyn Fn(&str) -> Result<Command>;

/// A campaign at work.
pub(super) struct Campaign<'a> {
    folder: PathBuf,
    plan: Plan,
    stores: Stores,
    screen: Screen,
    rows: Vec<Row>,
    done: BTreeSet<Key>,
    failed: Vec<String>,
    /// Of stores, the bytes of live data that the last step left.
    live: BTreeMap<String, Option<u64>>,
    /// Stores whose state is lost until a step begins anew: of them, the repeat.
    broken: BTreeMap<String, u32>,
    json_to: Option<PathBuf>,
    drivers: Drivers<'a>,
    stopped: &'a dyn Fn() -> bool,
    /// The run's folder is locked as long as this is open.
    _lock: File,
}

impl<'a> Campaign<'a> {
    /// Of a run's folder, with what was done in earlier sittings.
    pub(super) fn open(
        folder: PathBuf,
        plan: Plan,
        json_to: Option<&Path>,
        drivers: Drivers<'a>,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Campaign<'a>> {
        let lock = lock(&folder, || {
            format!(
                "another `shale bench` works on the run in {}. Wait until it ends",
                folder.display()
            )
        })?;
        let stores = Stores::open(&plan.stores, &folder.join("state.json"))?;
        let rows = read_rows(&folder.join("rows.jsonl"))?;
        let done = rows.iter().map(key_of).collect();
        let json_only = json_to == Some(Path::new("-"));
        Ok(Campaign {
            folder,
            plan,
            stores,
            screen: Screen::new(json_only),
            rows,
            done,
            failed: Vec::new(),
            live: BTreeMap::new(),
            broken: BTreeMap::new(),
            json_to: json_to.map(Path::to_owned),
            drivers,
            stopped,
            _lock: lock,
        })
    }

    /// Does everything that is not done.
    pub(super) fn all(mut self) -> Result<Outcome> {
        let turns = self.plan.turns();
        let mut stopped = false;
        for (at, &turn) in turns.iter().enumerate() {
            if self.done.contains(&self.key(turn)) {
                continue;
            }
            let begin = format!("{}/{}", at + 1, turns.len());
            match self.turn(turn, &begin)? {
                Done::Well | Done::Badly => {}
                Done::Stopped => {
                    stopped = true;
                    break;
                }
            }
            let next = turns.get(at + 1);
            if next.is_none_or(|next| next.group != turn.group) {
                self.leave_group(turn.group)?;
            }
        }
        self.screen.finish();
        if !stopped && turns.last().is_some_and(|last| self.done.contains(&self.key(*last))) {
            // Nothing was left to do for the last group: its stores may still be there.
            self.leave_group(turns[turns.len() - 1].group)?;
        }
        if !stopped {
            self.stores.finish();
        }
        let stores = Some(self.plan.stores).filter(|stores| stores.exists());
        Ok(Outcome { folder: self.folder, rows: self.rows, failed: self.failed, stopped, stores })
    }

    fn leave_group(&mut self, group: usize) -> Result<()> {
        for subject in 0..self.plan.groups[group].subjects.len() {
            let name = self.plan.groups[group].folder(subject);
            self.stores.remove(&name, self.plan.keep)?;
        }
        Ok(())
    }

    fn key(&self, turn: Turn) -> Key {
        let group = &self.plan.groups[turn.group];
        let subject = &group.subjects[turn.subject];
        (
            group.workload.name().to_owned(),
            subject.setting.clone(),
            subject.engine.clone(),
            group.workload.steps()[turn.step].name.clone(),
            turn.repeat,
        )
    }

    /// Whether there are rows of a subject.
    fn has_measured(&self, turn: Turn) -> bool {
        let (workload, setting, engine, ..) = self.key(turn);
        let is =
            |row: &Row| row.workload == workload && row.setting == setting && row.engine == engine;
        self.rows.iter().any(is)
    }

    /// No line for each step from here on.
    pub(super) fn be_quiet(&mut self) {
        self.screen = Screen::new(true);
    }

    /// Shows the user a line.
    pub(super) fn say(&self, text: &str) {
        self.screen.say(text);
    }

    /// Does one step of one subject, after its store is in the state that the step begins with.
    fn turn(&mut self, turn: Turn, begin: &str) -> Result<Done> {
        let group = &self.plan.groups[turn.group];
        let (name, steps) = (group.folder(turn.subject), group.workload.steps());
        if steps[turn.step].start != Start::Fresh && self.broken.get(&name) == Some(&turn.repeat) {
            return Ok(Done::Badly);
        }
        let outcome = match self.prepare(turn, &name, &steps, begin) {
            Ok(()) => self.step(turn, &name, &steps, begin),
            Err(trouble) => Err(trouble),
        };
        match outcome {
            Ok(row) => {
                self.keep(row)?;
                self.save(turn, &name, &steps)?;
                Ok(Done::Well)
            }
            Err(Trouble::Stopped) => Ok(Done::Stopped),
            Err(Trouble::Failed(why)) => {
                self.note_failure(turn, &steps, &why)?;
                self.broken.insert(name, turn.repeat);
                Ok(Done::Badly)
            }
        }
    }

    /// Puts a store into the state that a step begins with.
    fn prepare(&mut self, turn: Turn, name: &str, steps: &[PlannedStep], begin: &str) -> Tried<()> {
        let failed = |error: crate::stores::engine::Failure| Trouble::Failed(error.to_string());
        let before = match &steps[turn.step].start {
            Start::Fresh => {
                self.live.insert(name.to_owned(), Some(0));
                return self.stores.clear(name).map_err(failed);
            }
            Start::Continue if turn.step == 0 => {
                let (folder, step) = (self.stores.folder(name), &steps[turn.step].name);
                return if !folder.exists() {
                    Err(Trouble::Failed(format!(
                        "{step} needs a store and there is none in {}: begin with a step that \
                         makes one, or name the folder of an earlier run (one with --keep) with \
                         --db",
                        folder.display()
                    )))
                } else if self.has_measured(turn) && !self.stores.is_own(name) {
                    Err(Trouble::Failed(format!(
                        "another run has changed the store in {}, of which this one has rows. \
                         Begin a new run",
                        folder.display()
                    )))
                } else {
                    Ok(())
                };
            }
            Start::Continue => turn.step - 1,
            Start::After(earlier) => {
                steps.iter().position(|step| step.name == *earlier).unwrap_or(0)
            }
        };
        let wanted = Left { group: turn.group, repeat: turn.repeat, step: before };
        let is_there = self.stores.left(name) == Some(wanted);
        if is_there && self.live.contains_key(name) {
            return Ok(());
        }
        if is_there || self.stores.restore(name, wanted).map_err(failed)? {
            let left_by = self.key(Turn { step: before, ..turn });
            let row = self.rows.iter().find(|row| key_of(row) == left_by);
            self.live.insert(name.to_owned(), row.and_then(|row| row.live_bytes));
            return Ok(());
        }
        // The state is lost: the steps that lead to it are done again, their rows thrown away.
        let earlier = Turn { step: before, ..turn };
        self.screen.say(&format!(
            "{:>18} {name:<12} again, for the store is not as it was left",
            steps[before].name
        ));
        self.prepare(earlier, name, steps, begin)?;
        self.step(earlier, name, steps, begin)?;
        self.save(earlier, name, steps).map_err(failed)
    }

    /// Saves a copy of what a step left if a later step needs it.
    fn save(&mut self, turn: Turn, name: &str, steps: &[PlannedStep]) -> Result<()> {
        let Turn { group, repeat, step, .. } = turn;
        self.stores.done(name, Left { group, repeat, step })?;
        if is_wanted_later(steps, step) { self.stores.save(name) } else { Ok(()) }
    }

    /// Runs a driver.
    fn step(&mut self, turn: Turn, name: &str, steps: &[PlannedStep], begin: &str) -> Tried<Row> {
        let failed = |error: crate::stores::engine::Failure| Trouble::Failed(error.to_string());
        let group = &self.plan.groups[turn.group];
        let subject = &group.subjects[turn.subject];
        let folder = self.stores.folder(name);
        let job = Job {
            engine: subject.engine.clone(),
            folder: folder.clone(),
            setup: subject.setup.clone(),
            workload: group.workload.clone(),
            step: steps[turn.step].name.clone(),
            setting: subject.setting.clone(),
            repeat: turn.repeat,
            seed: self.plan.seed,
            live_bytes: self.live.get(name).copied().flatten(),
        };
        self.screen.begin(&format!("{begin} {} {name}", job.step));
        let command = (self.drivers)(&subject.engine).map_err(failed)?;
        self.stores.begin(name).map_err(failed)?;
        let mut notes = quieten(&folder, self.plan.cold);
        let bound = match self.plan.memory_bound.map(Bound::new) {
            None => None,
            Some(Ok(bound)) => Some(bound),
            Some(Err(why)) => {
                notes.push(format!("memory was not bounded: {why}"));
                None
            }
        };
        let screen = &self.screen;
        let mut attention = Attention {
            patience: self.plan.patience,
            stopped: self.stopped,
            hear: &mut |what, progress| screen.hear(what, progress),
        };
        let busy = Busy::new(subject.setup.busy_threads);
        let row = child::run(command, &job, bound.as_ref(), &mut attention);
        drop(busy);
        let mut row = row?;
        row.notes.append(&mut notes);
        row.memory_bound = bound.is_some().then_some(self.plan.memory_bound).flatten();
        self.live.insert(name.to_owned(), row.live_bytes);
        Ok(row)
    }

    /// Keeps a row: in `rows.jsonl`, where the user wants it, and on the screen.
    fn keep(&mut self, row: Row) -> Result<()> {
        let line = serde_json::to_string(&row)?;
        append(&self.folder.join("rows.jsonl"), &line)?;
        match &self.json_to {
            Some(path) if path == Path::new("-") => say::tell(&line)?,
            Some(path) => append(path, &line)?,
            None => {}
        }
        self.screen.say(&brief(&row));
        self.done.insert(key_of(&row));
        self.rows.push(row);
        Ok(())
    }

    fn note_failure(&mut self, turn: Turn, steps: &[PlannedStep], why: &str) -> Result<()> {
        let (workload, setting, engine, step, repeat) = self.key(turn);
        let what = format!("{engine} {setting}").trim_end().to_owned();
        let later = steps[turn.step + 1..].iter().take_while(|later| later.start != Start::Fresh);
        let mut text = format!("{step} of {what} failed: {why}");
        match later.count() {
            0 => {}
            count => text.push_str(&format!("\nIts next {count} steps are skipped.")),
        }
        self.screen.warn(&text);
        self.failed.push(text);
        let line = Failure { workload, step, engine, setting, repeat, why: why.to_owned() };
        append(&self.folder.join("failed.jsonl"), &serde_json::to_string(&line)?)
    }
}

enum Done {
    Well,
    Badly,
    Stopped,
}

/// What the steps before left to be written is nobody's fault in this one. Notes what could not be
/// done.
fn quieten(folder: &Path, cold: bool) -> Vec<String> {
    // SAFETY: the call takes nothing and gives nothing.
    unsafe { libc::sync() };
    let kept = if cold && folder.exists() { drop_page_cache(folder) } else { 0 };
    match kept {
        0 => Vec::new(),
        _ => vec![format!("{kept} files of the store stayed in the page cache")],
    }
}
