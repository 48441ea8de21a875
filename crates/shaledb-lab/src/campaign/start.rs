//! Begins a campaign, or continues one.

use super::folder::read_plan;
use super::options::CampaignOptions;
use super::plan::Group;
use super::programs::driver;
use super::room::{Room, room};
use super::sitting::{Campaign, Outcome};
use crate::stores::engine::Result;
use std::fs::File;
use std::io::Write;
use std::path::Path;

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
            "{} has a run already. Continue it with `shale bench resume {}`, or name another \
             folder with --run",
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
        return Err(format!(
            "{text}. Name another folder with --db, or begin anyway with --ignore-space"
        )
        .into());
    }
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("could not create {}: {error}", folder.display()))?;
    let text = serde_json::to_vec_pretty(&plan)?;
    File::create_new(&file)
        .and_then(|mut plan| plan.write_all(&text))
        .map_err(|error| format!("could not write {}: {error}", file.display()))?;
    let json_to = options.json_to.as_deref();
    let mut campaign = Campaign::open(folder.clone(), plan, json_to, &driver, stopped)
        .inspect_err(|_| {
            // Nothing was begun, so the name is free again.
            let _ = std::fs::remove_file(&file);
            let _ = std::fs::remove_dir(&folder);
        })?;
    if options.quiet {
        campaign.be_quiet();
    }
    campaign.say(room.text());
    campaign.all()
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
    Campaign::open(folder.to_owned(), plan, json_to, &driver, stopped)?.all()
}
