//! Begins a campaign, or continues one.

use super::folder::read_plan;
use super::options::CampaignOptions;
use super::plan::{Group, Plan};
use super::programs::driver;
use super::room::{Room, room};
use super::sitting::{Campaign, Outcome};
use crate::problem::{Kind, Problem};
use crate::report::read::PLAN;
use crate::stores::engine::{Failure, Result};
use std::fs::File;
use std::io::ErrorKind::AlreadyExists;
use std::io::Write;
use std::path::{Path, PathBuf};

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
    let usage = |text: String| Problem::new(Kind::Usage, text);
    plan.check().map_err(usage)?;
    if let Some(folder) = &options.run
        && folder.join(PLAN).exists()
    {
        return Err(usage(format!(
            "{0} has a run already. Continue it with `shale bench resume {0}`, or name another \
             folder with --run",
            folder.display()
        ))
        .into());
    }
    for subject in plan.groups.iter().flat_map(|group| &group.subjects) {
        driver(&subject.engine)?;
    }
    let room = room(&plan)?;
    if let Room::Short(text) = &room
        && !options.ignore_space
    {
        let text =
            format!("{text}. Name another folder with --db, or begin anyway with --ignore-space");
        return Err(Problem::new(Kind::DiskFull, text).into());
    }
    let folder = match &options.run {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .map_err(|error| Problem::file("create", folder, &error))?;
            folder.clone()
        }
        None => new_folder(Path::new("shale-bench"), plan.groups[0].workload.name())?,
    };
    let (file, text) = (folder.join(PLAN), serde_json::to_vec_pretty(&plan)?);
    File::create_new(&file)
        .and_then(|mut plan| plan.write_all(&text))
        .map_err(|error| Problem::file("write", &file, &error))?;
    let json_to = options.json_to.as_deref();
    let mut campaign = Campaign::open(folder.clone(), plan.clone(), json_to, &driver, stopped)
        .inspect_err(|_| {
            // Nothing was begun, so the name is free again.
            let _ = std::fs::remove_file(&file);
            let _ = std::fs::remove_dir(&folder);
        })?;
    if options.quiet {
        campaign.be_quiet();
    }
    campaign.say(room.text());
    campaign.all().map_err(|error| cut_off(error, &folder, &plan).into())
}

/// A new folder for a workload's run.
fn new_folder(base: &Path, workload: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(base).map_err(|error| Problem::file("create", base, &error))?;
    let name = format!("{workload}-{}", crate::units::time_stamp());
    // Another run may have begun in the same second.
    let mut folder = base.join(&name);
    for number in 2.. {
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == AlreadyExists => {
                folder = base.join(format!("{name}-{number}"));
            }
            Err(error) => return Err(Problem::file("create", &folder, &error).into()),
            Ok(()) => break,
        }
    }
    Ok(folder)
}

/// An error that ended a campaign, with what is left of it.
fn cut_off(error: Failure, folder: &Path, plan: &Plan) -> Problem {
    let kind = error.downcast_ref::<Problem>().map_or(Kind::Other, |problem| problem.kind);
    let mut text = format!(
        "{error}. The finished steps are kept. To continue: shale bench resume {}",
        folder.display()
    );
    if plan.stores.exists() {
        text.push_str(&format!(". The stores are in {} until then", plan.stores.display()));
    }
    Problem::new(kind, text)
}

/// Continues the campaign of a run's folder: runs the steps that are missing or failed.
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
    let campaign = Campaign::open(folder.to_owned(), plan.clone(), json_to, &driver, stopped)?;
    campaign.all().map_err(|error| cut_off(error, folder, &plan).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_second_have_folders_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let folders: std::collections::BTreeSet<PathBuf> =
            (0..5).map(|_| new_folder(&dir.path().join("runs"), "kv").unwrap()).collect();
        assert_eq!(folders.len(), 5);
        assert!(folders.iter().all(|folder| folder.is_dir()));
    }
}
