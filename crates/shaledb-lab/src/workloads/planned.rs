//! What a workload hands to a plan: its steps, and what each begins with.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

/// What a step finds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// An empty store.
    Fresh,
    /// The store as the step before left it; of the first step, the store that is there.
    Continue,
    /// The store as this earlier step left it, whatever was done to it since.
    After(String),
}

/// One step of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Its name, of which there is only one in a workload.
    pub name: String,
    /// What it finds.
    pub start: Start,
}

/// Steps by name and whether they begin with an empty store; the second of a name is called
/// `name (2)`.
pub fn planned(steps: impl Iterator<Item = (String, bool)>) -> Vec<PlannedStep> {
    let mut planned = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (name, fresh) in steps {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name} ({count})") };
        planned
            .push(PlannedStep { name, start: if fresh { Start::Fresh } else { Start::Continue } });
    }
    planned
}

/// The step that the plan of a pattern calls `name`, and its number of clients: that of the name
/// (`run.c4`), else of the plan.
pub(super) fn of_clients<S: FromStr<Err = String> + Copy + PartialEq>(
    plan: &[(S, u32)],
    name: &str,
    pattern: &str,
) -> Result<(S, u32), String> {
    let name = name.split(' ').next().unwrap_or(name);
    let (step, clients) = name.rsplit_once(".c").unwrap_or((name, ""));
    let step: S = step.parse()?;
    let of = |&(planned, clients): &(S, u32)| (planned == step).then_some(clients);
    let clients = clients.parse().ok().or_else(|| plan.iter().find_map(of));
    let clients =
        clients.ok_or_else(|| format!("the plan has no step `{name}` of the {pattern} pattern"))?;
    Ok((step, clients))
}

/// The step that a table of names calls `name`.
pub(super) fn named<S: Copy>(names: &[(&'static str, S)], name: &str) -> Option<S> {
    names.iter().find(|(other, _)| *other == name).map(|&(_, step)| step)
}

/// The name of a step in such a table, which has it.
pub(super) fn name_of<S: PartialEq>(names: &[(&'static str, S)], step: &S) -> &'static str {
    let found = names.iter().find(|(_, other)| other == step);
    debug_assert!(found.is_some(), "a step without a name");
    found.map_or("", |(name, _)| name)
}
