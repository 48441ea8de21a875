//! The campaign: steps x engines x repeats, each a driver process of its own, in turns.
//!
//! A run has a folder with `plan.json` (what is to be done), `rows.jsonl` (a line for each step
//! that is done), `failed.jsonl` (a line for each that failed) and `state.json` (what the stores
//! are left by). A run that was interrupted, even by a loss of power, is resumed from it: what is
//! done is not done again, and a store that a step was working on is put back first, from a saved
//! copy or by doing the steps before it once more, whose rows are then thrown away.

mod child;
mod plan;
mod programs;
mod screen;
mod stores;

pub use plan::{Group, Plan, SCHEMA, Subject, Turn};
pub use programs::{ENGINES, driver, peers_folder};

use crate::driver::Job;
use crate::measure::{Bound, drop_page_cache, free_bytes};
use crate::options::positive;
use crate::run::row::Row;
use crate::setup::Setup;
use crate::stores::engine::Result;
use crate::units::{bytes, parse_bytes};
use crate::workloads::planned::{PlannedStep, Start};
use crate::workloads::workload::Workload;
use child::{Attention, Tried, Trouble};
use clap::Args;
use screen::{Screen, brief};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use stores::{Left, Stores};

/// The flags that all workloads share.
#[derive(Args, Clone, Debug)]
pub struct CampaignOptions {
    /// Which engines, separated by commas; they take turns at each step
    #[arg(long, value_delimiter = ',', default_value = "shale")]
    pub engines: Vec<String>,

    /// How often everything is done
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,

    /// Where chance begins; the same seed does the same work
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The engine that others are compared with [default: shale, or the first]
    #[arg(long, value_name = "ENGINE")]
    pub base: Option<String>,

    /// The folder for the results [default: a new one, shale-bench/WORKLOAD-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub run: Option<PathBuf>,

    /// The folder for the stores, made if it is missing [default: a new one under /var/tmp]
    #[arg(long, value_name = "FOLDER")]
    pub db: Option<PathBuf>,

    /// Keep the stores at the end
    #[arg(long)]
    pub keep: bool,

    /// Also append one JSON line per step to this file; - prints JSON lines only
    #[arg(long, value_name = "FILE")]
    pub json_to: Option<PathBuf>,

    /// Bound the memory of an engine's processes, the client and the page cache included, by a
    /// control group
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory_bound: Option<u64>,

    /// Empty the page cache of a store before each step; --memory-bound does so too
    #[arg(long)]
    pub cold: bool,

    /// Seconds after which a step that does nothing at all is ended
    #[arg(long, default_value_t = 600.0, value_parser = positive)]
    pub patience: f64,

    /// Begin although the disk may be too small
    #[arg(long)]
    pub ignore_space: bool,
}

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
}

/// A line of `failed.jsonl`.
#[derive(Serialize, Deserialize)]
struct Failure {
    workload: String,
    step: String,
    engine: String,
    setting: String,
    repeat: u32,
    why: String,
}

impl CampaignOptions {
    /// One workload on each of the engines with the same settings.
    pub fn group(&self, workload: Workload, setup: &Setup) -> Group {
        let subject = |engine: &String| Subject {
            engine: engine.clone(),
            setting: String::new(),
            setup: setup.clone(),
        };
        Group { workload, subjects: self.engines.iter().map(subject).collect() }
    }

    fn plan(&self, groups: Vec<Group>) -> Plan {
        Plan {
            schema: SCHEMA,
            made_by: format!("shale {}", env!("CARGO_PKG_VERSION")),
            machine: crate::measure::machine(),
            command: std::env::args().collect(),
            groups,
            repeats: self.repeats,
            seed: self.seed,
            base: self.base.clone(),
            stores: self.db.clone().unwrap_or_else(scratch),
            keep: self.keep,
            memory_bound: self.memory_bound,
            cold: self.cold || self.memory_bound.is_some(),
            patience: self.patience,
        }
    }
}

/// A new name under /var/tmp, which is on a disk where /tmp may be memory.
fn scratch() -> PathBuf {
    let disk = Path::new("/var/tmp");
    let base = if disk.is_dir() { disk.to_owned() } else { std::env::temp_dir() };
    base.join(format!("shale-bench-{}", std::process::id()))
}

/// Runs a new campaign. `stopped` is asked whether the user wants it to stop.
///
/// # Errors
///
/// The plan does not fit together, a driver is missing, there is no room, or the run's folder
/// cannot be written. A step that fails is no error: it is in the outcome.
pub fn run(
    options: &CampaignOptions,
    groups: Vec<Group>,
    stopped: &dyn Fn() -> bool,
) -> Result<Outcome> {
    let plan = options.plan(groups);
    plan.check()?;
    let name = plan.groups[0].workload.name();
    let folder = options.run.clone().unwrap_or_else(|| {
        Path::new("shale-bench").join(format!("{name}-{}", crate::units::time_stamp()))
    });
    let file = folder.join("plan.json");
    if file.exists() {
        return Err(format!(
            "{} has a run already: resume it with `shale bench resume {}`, or name another folder",
            folder.display(),
            folder.display()
        )
        .into());
    }
    for subject in plan.groups.iter().flat_map(|group| &group.subjects) {
        driver(&subject.engine)?;
    }
    let room = room(&plan)?;
    if let Room::Short(text) = &room
        && !options.ignore_space
    {
        return Err(format!("{text}: name another folder with --db, or --ignore-space").into());
    }
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("could not make {}: {error}", folder.display()))?;
    std::fs::write(&file, serde_json::to_vec_pretty(&plan)?)
        .map_err(|error| format!("could not write {}: {error}", file.display()))?;
    let campaign = Campaign::open(folder, plan, options.json_to.as_deref(), &driver, stopped)?;
    campaign.screen.say(room.text());
    campaign.all()
}

/// Goes on with the campaign of a run's folder: does what is not done and retries what failed.
///
/// # Errors
///
/// The folder has no run, or as [`run`].
pub fn resume(
    folder: &Path,
    json_to: Option<&Path>,
    stopped: &dyn Fn() -> bool,
) -> Result<Outcome> {
    let plan = read_plan(folder)?;
    Campaign::open(folder.to_owned(), plan, json_to, &driver, stopped)?.all()
}

/// The plan of a run's folder.
///
/// # Errors
///
/// There is none, it cannot be read, or a newer version wrote it.
pub fn read_plan(folder: &Path) -> Result<Plan> {
    let file = folder.join("plan.json");
    let text = std::fs::read(&file).map_err(|error| {
        format!("{} is not the folder of a run ({}: {error})", folder.display(), file.display())
    })?;
    let value: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    if value["schema"].as_u64().is_none_or(|schema| schema > u64::from(SCHEMA)) {
        return Err(format!(
            "{} has schema {}, this program reads {SCHEMA}: use the program that made it",
            file.display(),
            value["schema"]
        )
        .into());
    }
    serde_json::from_value(value)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()).into())
}

enum Room {
    Enough(String),
    Short(String),
}

impl Room {
    fn text(&self) -> &str {
        let (Room::Enough(text) | Room::Short(text)) = self;
        text
    }
}

/// Whether the stores find room, and how much they want.
fn room(plan: &Plan) -> Result<Room> {
    let wanted = plan.disk_bytes();
    // The folder itself is made later, by whom it is removed at the end.
    let there = plan.stores.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let text = format!("stores take up to {} in {}", bytes(wanted), plan.stores.display());
    Ok(match free_bytes(there) {
        Some(free) if free < wanted => Room::Short(format!("{text}, which has {}", bytes(free))),
        Some(free) => Room::Enough(format!("{text} ({} free)", bytes(free))),
        None => Room::Enough(text),
    })
}

/// Which driver an engine has.
type Drivers<'a> = &'a dyn Fn(&str) -> Result<Command>;

/// What identifies a row in a run: workload, setting, engine, step, repeat.
type Key = (String, String, String, String, u32);

fn key_of(row: &Row) -> Key {
    let text = |text: &String| text.clone();
    (text(&row.workload), text(&row.setting), text(&row.engine), text(&row.step), row.repeat)
}

/// A campaign at work.
struct Campaign<'a> {
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
}

impl<'a> Campaign<'a> {
    fn open(
        folder: PathBuf,
        plan: Plan,
        json_to: Option<&Path>,
        drivers: Drivers<'a>,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Campaign<'a>> {
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
        })
    }

    fn all(mut self) -> Result<Outcome> {
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
        Ok(Outcome { folder: self.folder, rows: self.rows, failed: self.failed, stopped })
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
                let folder = self.stores.folder(name);
                return if folder.exists() {
                    Ok(())
                } else {
                    Err(Trouble::Failed(format!(
                        "{} needs a store and there is none in {}: begin with a step that makes \
                         one, or name the folder of an earlier run (one with --keep) with --db",
                        steps[turn.step].name,
                        folder.display()
                    )))
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
        if plan::is_wanted_later(steps, step) { self.stores.save(name) } else { Ok(()) }
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
        let mut row = child::run(command, &job, bound.as_ref(), &mut attention)?;
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
            Some(path) if path == Path::new("-") => println!("{line}"),
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
            count => text.push_str(&format!("\nIts next {count} steps are left out.")),
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

/// A line at the end of a file, on disk when this returns.
fn append(path: &Path, line: &str) -> Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| {
            file.write_all(format!("{line}\n").as_bytes())?;
            // A pipe or a terminal cannot be synced.
            let _ = file.sync_data();
            Ok(())
        })
        .map_err(|error| format!("could not write {}: {error}", path.display()).into())
}

/// The rows of a file. A last line that is cut off, as by a loss of power, is cut off for good.
fn read_rows(path: &Path) -> Result<Vec<Row>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("could not read {}: {error}", path.display()).into()),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path);
        file.and_then(|file| file.set_len(whole as u64))
            .map_err(|error| format!("could not write {}: {error}", path.display()))?;
    }
    text[..whole]
        .lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                format!("{}, line {}, is no row: {error}", path.display(), at + 1).into()
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "campaign_tests.rs"]
mod tests;
