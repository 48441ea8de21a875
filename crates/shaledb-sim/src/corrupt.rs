//! Damage: one byte of one file of a closed database is changed. What is then read is right or is
//! an error that names the file; nothing else, and no panic.

use crate::model::Model;
use crate::ops::Op;
use crate::outcome::{Failure, Outcome};
use crate::world::{PATH, World, open_db};
use shaledb::fs::mem::{CrashMode, MemFs};
use shaledb::{Config, Error};
use std::path::{Path, PathBuf};

/// A byte to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flip {
    /// The file.
    pub path: PathBuf,
    /// The byte.
    pub offset: u64,
    /// The bits to turn over.
    pub xor: u8,
}

/// How damage was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// Opening the database reported it.
    Open,
    /// Reading everything reported it.
    Read,
    /// [`shaledb::Db::verify`] reported it.
    Verify,
    /// Nothing reported it, and all answers were right: the byte means nothing.
    Nowhere,
}

/// A closed database with every kind of file and what is in it.
pub fn prepare(program: &[Op], config: &Config) -> Outcome<(MemFs, Model)> {
    let mut world = World::create(config)?;
    world.run(program)?;
    world.close()?;
    Ok((world.fs.fork(), world.model.clone()))
}

/// Changes a byte and looks whether it is noticed.
pub fn run(fs: &MemFs, model: &Model, config: &Config, flip: &Flip) -> Outcome<Found> {
    let disk = fs.crash_clone(0, CrashMode::Kept);
    if !disk.corrupt(&flip.path, flip.offset, flip.xor) {
        return Err(Failure::Wrong(format!("there is no byte {flip:?}")));
    }
    let now = model.now();
    let met = |failure: Failure, how: Found| match failure {
        Failure::Engine(error) => names_file(&error, flip).map(|()| how),
        Failure::Wrong(what) => Err(Failure::Wrong(format!("{flip:?}: {what}"))),
    };
    let db = match open_db(&disk, PATH, config) {
        Ok(db) => db,
        Err(error) => return met(error.into(), Found::Open),
    };
    // First of all whether verify knows, while nothing is cached.
    let verified = db.verify(&mut |_| {});
    drop(db);
    let world = World::recover(disk, config, model, now, now);
    match world.and_then(|mut world| world.check()) {
        Err(failure) => met(failure, Found::Read),
        Ok(()) => match verified.map(|report| report.damage.into_iter().next()) {
            Ok(None) => Ok(Found::Nowhere),
            Ok(Some(error)) | Err(error) => met(error.into(), Found::Verify),
        },
    }
}

/// The error must say that this file is damaged, at an offset inside it.
fn names_file(error: &Error, flip: &Flip) -> Outcome<()> {
    match error {
        Error::Corruption { path, .. } if *path == flip.path => Ok(()),
        Error::Corruption { path, .. } => Err(Failure::Wrong(format!(
            "{flip:?} was reported as damage to {}: {error}",
            path.display()
        ))),
        _ => Err(Failure::Wrong(format!("{flip:?} was reported as something else: {error}"))),
    }
}

/// The kind of a file, by its name.
pub fn kind(path: &Path) -> &'static str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ["table", "wal", "blob", "MANIFEST", "CURRENT", "LOCK"]
        .into_iter()
        .find(|kind| name.contains(kind))
        .unwrap_or("other")
}
