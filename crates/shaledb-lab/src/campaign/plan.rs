//! What a campaign is going to do, and in which order.

use crate::run::row::VARIANT;
use crate::setup::Setup;
use crate::workloads::planned::{PlannedStep, Start};
use crate::workloads::workload::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the files of a run's folder.
pub const SCHEMA: u32 = 1;

/// An engine with its settings: what is compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The engine's name.
    pub engine: String,
    /// What tells apart subjects of one engine, such as the codecs; may be empty.
    pub setting: String,
    /// Memory, durability, codecs.
    pub setup: Setup,
}

/// A workload and those who do it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    /// The workload and its parameters.
    pub workload: Workload,
    /// Who takes turns at each step.
    pub subjects: Vec<Subject>,
}

/// A whole campaign: `plan.json` of a run's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the program that made it.
    pub made_by: String,
    /// The machine.
    pub machine: String,
    /// The command line that it comes from.
    pub command: Vec<String>,
    /// Workloads, one after another.
    pub groups: Vec<Group>,
    /// How often each is done.
    pub repeats: u32,
    /// Where chance begins.
    pub seed: u64,
    /// The engine that others are compared with.
    pub base: Option<String>,
    /// Where the stores are.
    pub stores: std::path::PathBuf,
    /// Whether the stores are left there at the end.
    pub keep: bool,
    /// The bound on the memory of an engine's processes, page cache included.
    pub memory_bound: Option<u64>,
    /// Whether the page cache of a store is emptied before each step.
    pub cold: bool,
    /// Seconds without any sign of life after which a step is ended.
    pub patience: f64,
}

/// One step of one subject in one repeat, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// The group.
    pub group: usize,
    /// The repeat.
    pub repeat: u32,
    /// The step.
    pub step: usize,
    /// The subject.
    pub subject: usize,
}

impl Group {
    /// The name of a subject's folder.
    pub fn folder(&self, subject: usize) -> String {
        let subject = &self.subjects[subject];
        let mut name = subject.engine.clone();
        for part in [self.workload.name(), subject.setting.as_str()] {
            // The db_bench pattern without settings keeps the engine's bare name, so that a
            // store can be filled by one command and read by another.
            if part.is_empty() || part == "kv" {
                continue;
            }
            name.push('-');
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
            name.extend(part.chars().map(plain));
        }
        name
    }
}

/// Of the steps, whether a later one, but not just the next, begins with what `step` leaves.
pub fn is_wanted_later(steps: &[PlannedStep], step: usize) -> bool {
    let wants = |later: &PlannedStep| later.start == Start::After(steps[step].name.clone());
    steps.iter().skip(step + 2).any(wants)
}

impl Plan {
    /// All turns in the order in which they come: the subjects take turns at each step, and who is
    /// first at it goes round as well, so that a change of the machine's mood meets all of them.
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (group_at, group) in self.groups.iter().enumerate() {
            let subjects = group.subjects.len();
            for repeat in 0..self.repeats {
                for step in 0..group.workload.steps().len() {
                    for offset in 0..subjects {
                        let subject = (offset + step + repeat as usize) % subjects;
                        turns.push(Turn { group: group_at, repeat, step, subject });
                    }
                }
            }
        }
        turns
    }

    /// Whether an engine does the same work with several settings: then those are to be compared.
    pub fn has_alternatives(&self) -> bool {
        self.groups.iter().any(|group| {
            let engines: BTreeSet<&str> =
                group.subjects.iter().map(|subject| subject.engine.as_str()).collect();
            engines.len() < group.subjects.len()
        })
    }

    /// Checks that the plan fits together.
    ///
    /// # Errors
    ///
    /// A workload has no steps, a group has no engine, a step needs the store of a step that is not
    /// before it, an engine is named twice with the same settings, or settings do not fit together.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for group in &self.groups {
            let steps = group.workload.steps();
            if steps.is_empty() {
                return Err(format!(
                    "the workload {} has no steps. Name one",
                    group.workload.name()
                ));
            }
            if group.subjects.is_empty() {
                return Err("there is no engine to measure. Name one with --engines".to_owned());
            }
            for (at, step) in steps.iter().enumerate() {
                if let Start::After(name) = &step.start
                    && !steps[..at].iter().any(|earlier| earlier.name == *name)
                {
                    return Err(format!(
                        "step {} needs the store of step {name}. Put that step before it",
                        step.name
                    ));
                }
            }
            for (at, subject) in group.subjects.iter().enumerate() {
                subject.setup.check()?;
                if !seen.insert((group.workload.name(), group.folder(at))) {
                    return Err(format!(
                        "{} {} is named twice with the same settings. Name it once",
                        subject.engine, subject.setting
                    ));
                }
            }
        }
        self.check_base()
    }

    /// The base is an engine of the plan, or one of them with its setting.
    fn check_base(&self) -> Result<(), String> {
        let Some(base) = &self.base else { return Ok(()) };
        let subjects = || self.groups.iter().flat_map(|group| &group.subjects);
        let is = |subject: &Subject| {
            let setting = subject.setting.split(VARIANT).next().unwrap_or_default();
            subject.engine == *base || format!("{}.{setting}", subject.engine) == *base
        };
        if subjects().any(is) {
            return Ok(());
        }
        let engines: BTreeSet<&str> = subjects().map(|subject| subject.engine.as_str()).collect();
        let engines: Vec<&str> = engines.into_iter().collect();
        Err(format!("--base: `{base}` is not measured. Name one of {}", engines.join(", ")))
    }

    /// Bytes that all stores take at most at one time: what the largest group has uncompressed, and
    /// as much again as compactions and saved copies want. Stores of one group are there together.
    pub fn disk_bytes(&self) -> u64 {
        let of = |group: &Group| {
            let steps = group.workload.steps();
            let copies = (0..steps.len()).filter(|&at| is_wanted_later(&steps, at)).count() as u64;
            group.workload.data_bytes() * group.subjects.len() as u64 * (2 + copies)
        };
        self.groups.iter().map(of).max().unwrap_or(0)
    }
}
