//! The stores of a campaign: one folder for each subject, what state it is in, and saved copies.
//!
//! Nothing is removed that a campaign did not make: the folder of stores has a marker file, and one
//! that has other things in it and no marker is refused.

use crate::stores::engine::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const MARKER: &str = "shale-bench.txt";
const MARKER_TEXT: &str =
    "A folder of stores of `shale bench`. The folders in it are made and emptied by it.\n";

/// What a store went through last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    pub(super) group: usize,
    pub(super) repeat: u32,
    pub(super) step: usize,
}

/// `state.json` of a run's folder.
#[derive(Default, Serialize, Deserialize)]
struct State {
    /// Whether the folder of stores was made for this run.
    #[serde(default)]
    made: bool,
    /// What whole stores are left by. One that a step is working on is not in it.
    left: BTreeMap<String, Left>,
    /// The same of whole copies.
    saved: BTreeMap<String, Left>,
}

/// See the module.
pub(super) struct Stores {
    base: PathBuf,
    file: PathBuf,
    state: State,
}

impl Stores {
    /// Makes the folder `base`, or takes an empty one or one that an earlier campaign made. The
    /// state is kept in `file`.
    pub(super) fn open(base: &Path, file: &Path) -> Result<Stores> {
        let is_new = !base.exists();
        std::fs::create_dir_all(base)
            .map_err(|error| format!("could not create {}: {error}", base.display()))?;
        let marker = base.join(MARKER);
        if !marker.exists() {
            let mut entries = std::fs::read_dir(base)
                .map_err(|error| format!("could not read {}: {error}", base.display()))?;
            if entries.next().is_some() {
                return Err(format!(
                    "{} is neither empty nor a folder of stores of an earlier run (it has no \
                     {MARKER}): name another with --db",
                    base.display()
                )
                .into());
            }
            std::fs::write(&marker, MARKER_TEXT)
                .map_err(|error| format!("could not write {}: {error}", marker.display()))?;
        }
        let state = match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| format!("{} is not a list of stores: {error}", file.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(format!("could not read {}: {error}", file.display()).into()),
        };
        let mut stores = Stores { base: base.to_owned(), file: file.to_owned(), state };
        if is_new {
            stores.state.made = true;
            stores.write()?;
        }
        Ok(stores)
    }

    /// A store's folder.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// What left a store as it is; `None` if it is not known, or a step did not come to its end.
    pub(super) fn left(&self, name: &str) -> Option<Left> {
        self.state.left.get(name).copied()
    }

    /// Empties a store.
    pub(super) fn clear(&mut self, name: &str) -> Result<()> {
        self.begin(name)?;
        remove(&self.folder(name))
    }

    /// A step is about to work on a store.
    pub(super) fn begin(&mut self, name: &str) -> Result<()> {
        self.state.left.remove(name);
        self.write()
    }

    /// A step came to its end.
    pub(super) fn done(&mut self, name: &str, left: Left) -> Result<()> {
        self.state.left.insert(name.to_owned(), left);
        self.write()
    }

    fn copy_name(name: &str, step: usize) -> String {
        format!("{name}.after-{step}")
    }

    /// Keeps a copy of a store as it is. On a file system that can, it shares the store's blocks.
    pub(super) fn save(&mut self, name: &str) -> Result<()> {
        let Some(left) = self.left(name) else { return Ok(()) };
        let copy = Stores::copy_name(name, left.step);
        self.state.saved.remove(&copy);
        self.write()?;
        copy_folder(&self.folder(name), &self.base.join(&copy))?;
        self.state.saved.insert(copy, left);
        self.write()
    }

    /// Puts a store back to what `wanted` left; false if there is no such copy.
    pub(super) fn restore(&mut self, name: &str, wanted: Left) -> Result<bool> {
        let copy = Stores::copy_name(name, wanted.step);
        if self.state.saved.get(&copy) != Some(&wanted) {
            return Ok(false);
        }
        self.clear(name)?;
        copy_folder(&self.base.join(&copy), &self.folder(name))?;
        self.done(name, wanted)?;
        Ok(true)
    }

    /// Removes a store's saved copies, and the store unless it is kept.
    pub(super) fn remove(&mut self, name: &str, keep: bool) -> Result<()> {
        let prefix = Stores::copy_name(name, 0);
        let prefix = prefix.trim_end_matches('0');
        let copies: Vec<String> =
            self.state.saved.keys().filter(|copy| copy.starts_with(prefix)).cloned().collect();
        for copy in copies {
            self.state.saved.remove(&copy);
            self.write()?;
            remove(&self.base.join(copy))?;
        }
        if keep { Ok(()) } else { self.clear(name) }
    }

    /// Removes the folder of stores if it was made for this run and nothing is in it any more.
    pub(super) fn finish(self) {
        let empty = std::fs::read_dir(&self.base).is_ok_and(|entries| entries.count() == 1);
        if self.state.made && empty {
            let _ = std::fs::remove_file(self.base.join(MARKER));
            let _ = std::fs::remove_dir(&self.base);
        }
    }

    /// All of it or none, whenever the machine stops.
    fn write(&self) -> Result<()> {
        let fresh = self.file.with_extension("tmp");
        let text = serde_json::to_vec_pretty(&self.state)?;
        std::fs::write(&fresh, text)
            .and_then(|()| std::fs::rename(&fresh, &self.file))
            .map_err(|error| format!("could not write {}: {error}", self.file.display()).into())
    }
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("could not remove {}: {error}", folder.display()).into())
        }
        _ => Ok(()),
    }
}

/// Copies a folder, holes as holes, blocks shared where the file system can.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    let mut command = Command::new("cp");
    if cfg!(target_os = "linux") {
        command.args(["-a", "--reflink=auto", "--sparse=auto"]);
    } else {
        command.arg("-a");
    }
    let output = command
        .args([from, to])
        .output()
        .map_err(|error| format!("could not run `cp` to copy a store: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("could not copy {} to {}: {}", from.display(), to.display(), why.trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Left = Left { group: 0, repeat: 1, step: 2 };

    #[test]
    fn states_outlive_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let (base, file) = (dir.path().join("stores"), dir.path().join("state.json"));
        let mut stores = Stores::open(&base, &file).unwrap();
        std::fs::create_dir(stores.folder("a")).unwrap();
        std::fs::write(stores.folder("a").join("x"), "one").unwrap();
        stores.done("a", LEFT).unwrap();
        stores.save("a").unwrap();
        stores.begin("a").unwrap();
        std::fs::write(stores.folder("a").join("x"), "two").unwrap();

        let mut stores = Stores::open(&base, &file).unwrap();
        assert_eq!(stores.left("a"), None);
        assert!(!stores.restore("a", Left { repeat: 0, ..LEFT }).unwrap());
        assert!(stores.restore("a", LEFT).unwrap());
        assert_eq!(stores.left("a"), Some(LEFT));
        assert_eq!(std::fs::read(stores.folder("a").join("x")).unwrap(), b"one");
        stores.remove("a", false).unwrap();
        assert_eq!(std::fs::read_dir(&base).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_of_somebody_else_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = Stores::open(dir.path(), &dir.path().join("s")).err().unwrap();
        assert!(error.to_string().contains("neither empty nor"), "{error}");
        assert!(dir.path().join("thesis.txt").exists());
    }

    #[test]
    fn a_folder_that_was_made_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("stores");
        let mut stores = Stores::open(&base, &dir.path().join("s")).unwrap();
        std::fs::create_dir(stores.folder("a")).unwrap();
        stores.remove("a", true).unwrap();
        stores.finish();
        assert!(base.join("a").exists());
        // Another run finds it there.
        let mut stores = Stores::open(&base, &dir.path().join("other")).unwrap();
        stores.remove("a", false).unwrap();
        stores.finish();
        assert!(base.exists(), "it was there before");
        // The one that made it goes on, and comes to its end.
        Stores::open(&base, &dir.path().join("s")).unwrap().finish();
        assert!(!base.exists());
    }
}
