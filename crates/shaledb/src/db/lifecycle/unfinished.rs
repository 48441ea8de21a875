//! Directories in which a whole database is made: complete under its name, or not there.
//!
//! It is made beside the wanted one, in `NAME.unfinished`, and renamed when all of it is durable.
//! What a crash leaves there is never opened, and the next try replaces it.

use crate::base::error::{Error, Result};
use crate::fs::{self, Fs};
use crate::table::format::{LOCK, parse_file_name};
use crate::version::manifest::CURRENT;
use std::path::Path;

/// What the name of a database that is being made ends in.
const UNFINISHED: &str = ".unfinished";

/// Refuses to open a directory that a database is, or was, being made in.
pub fn refuse(dir: &Path) -> Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(UNFINISHED) {
        None => Ok(()),
        Some(wanted) => Err(Error::InvalidArgument(format!(
            "{} is a checkpoint or a repaired database that was not completed, and may lack files; \
             make `{wanted}` again, which replaces it, or remove it (a database cannot have a name \
             that ends in {UNFINISHED})",
            dir.display()
        ))),
    }
}

/// Has `fill` make a database, which must be durable when it returns, and gives it the name `to`;
/// `what` is it, for messages. What is made of one that fails is removed.
pub fn make<T>(
    fs: &dyn Fs,
    to: &Path,
    what: &str,
    fill: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    refuse(to)?;
    let Some(mut beside) = to.file_name().map(ToOwned::to_owned) else {
        return Err(Error::InvalidArgument(format!(
            "{} does not end in a name that a {what} could have; name a new directory",
            to.display()
        )));
    };
    // It takes long, and the process may change its directory meanwhile.
    let given = to;
    let to = &fs.absolute(to)?;
    let parent = to.parent().unwrap_or(to);
    // Gone before there is any work that could be lost.
    let was_there = fs.exists(to)?;
    if was_there {
        if !fs.list(to)?.is_empty() {
            return Err(Error::InvalidArgument(format!(
                "the {what}'s directory {} is not empty; name a new one",
                to.display()
            )));
        }
        fs.remove_dir(to).map_err(|error| {
            Error::InvalidArgument(format!(
                "the {what} is made beside {0} and then gets its name, but the empty directory \
                 {0} cannot be replaced ({error}); name one that does not exist",
                to.display()
            ))
        })?;
    }
    beside.push(UNFINISHED);
    let beside = parent.join(beside);
    // As they are given: those above are not looked at.
    let made = fs::create_dirs(fs, given.parent().unwrap_or(given))?;
    let parents = made.iter().map(|dir| fs.absolute(dir)).collect::<Result<Vec<_>>>()?;
    let build = || -> Result<T> {
        fs.create_dir_all(&beside)?;
        clear(fs, &beside, what)?;
        let built = fill(&beside).and_then(|made| fs.rename(&beside, to).map(|()| made));
        built.inspect_err(|_| {
            if let Err(error) = remove(fs, &beside, what) {
                tracing::warn!(%error, "what was made of a {what} is left");
            }
        })
    };
    let made = build().inspect_err(|_| {
        fs::remove_dirs(fs, &parents);
        if was_there && let Err(error) = fs.create_dir_all(to) {
            tracing::warn!(%error, "the empty directory for a {what} is gone");
        }
    })?;
    fs.sync_dir(parent)?;
    Ok(made)
}

/// Removes what an earlier try has left, but for the lock file; nobody may be at work there.
fn clear(fs: &dyn Fs, dir: &Path, what: &str) -> Result<()> {
    let _lock = fs.lock(&dir.join(LOCK))?;
    clear_locked(fs, dir, what)
}

fn clear_locked(fs: &dyn Fs, dir: &Path, what: &str) -> Result<()> {
    let entries = fs.list(dir)?;
    let beside = Path::new(CURRENT).with_extension("tmp");
    let is_ours = |name: &str| parse_file_name(name).is_some() || Path::new(name) == beside;
    if let Some(other) = entries.iter().find(|entry| entry.is_dir || !is_ours(&entry.name)) {
        return Err(Error::InvalidArgument(format!(
            "the {what} is made in {} first, but that has `{}`, which is not part of a database; \
             remove it, or give the {what} another name",
            dir.display(),
            other.name
        )));
    }
    let names = entries.iter().filter(|entry| entry.name != LOCK);
    names.map(|entry| dir.join(&entry.name)).try_for_each(|path| fs.remove(&path))
}

/// Removes all of it, unless somebody else has begun there meanwhile.
fn remove(fs: &dyn Fs, dir: &Path, what: &str) -> Result<()> {
    let _lock = fs.lock(&dir.join(LOCK))?;
    clear_locked(fs, dir, what)?;
    fs.remove(&dir.join(LOCK))?;
    fs.remove_dir(dir)
}
