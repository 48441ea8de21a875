//! The stores of a campaign: one folder for each subject, what state it is in, and saved copies.
//!
//! Nothing is removed that a campaign did not make: the folder of stores has a marker file, and one
//! that has other things in it and no marker is refused.
//!
//! One campaign at a time works in a folder of stores. Beside each store is the name of the run
//! that changed it last. So a run that goes on later does not take another one's store for its own.

use super::folder::lock;
use crate::problem::{Kind, Problem};
use crate::stores::engine::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const MARKER: &str = "shale-bench.txt";
const MARKER_TEXT: &str =
    "A folder of stores of `shale bench`. The folders in it are made and emptied by it.\n";

/// What the name of a store's folder and this make is the file with its owner.
const OWNER: &str = ".run";

/// A name that no other run has.
fn new_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", now.as_nanos(), std::process::id())
}

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
    /// The run's name among all others. Runs of earlier versions had none.
    #[serde(default)]
    run: String,
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
    /// The folder is locked as long as this is open.
    _lock: File,
}

impl Stores {
    /// Makes the folder `base`, or takes an empty one or one that an earlier campaign made. The
    /// state is kept in `file`. Another campaign that works in the folder is an error.
    pub(super) fn open(base: &Path, file: &Path) -> Result<Stores> {
        let is_new = !base.exists();
        std::fs::create_dir_all(base).map_err(|error| Problem::file("create", base, &error))?;
        let lock = lock(base, || {
            format!(
                "another `shale bench` works on the stores in {}. Wait until it ends, or name \
                 another folder with --db",
                base.display()
            )
        })?;
        let marker = base.join(MARKER);
        if !marker.exists() {
            let mut entries =
                std::fs::read_dir(base).map_err(|error| Problem::file("read", base, &error))?;
            if entries.next().is_some() {
                let text = format!(
                    "{} is neither empty nor a folder of stores of an earlier run (it has no \
                     {MARKER}): name another with --db",
                    base.display()
                );
                return Err(Problem::new(Kind::Usage, text).into());
            }
            std::fs::write(&marker, MARKER_TEXT)
                .map_err(|error| Problem::file("write", &marker, &error))?;
        }
        let mut state = match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice::<State>(&bytes)
                .map_err(|error| format!("{} is not a list of stores: {error}", file.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(Problem::file("read", file, &error).into()),
        };
        if state.run.is_empty() {
            state.run = new_name();
        }
        let mut stores =
            Stores { base: base.to_owned(), file: file.to_owned(), state, _lock: lock };
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

    /// What left a store as it is; `None` if it is not known, a step did not come to its end, or
    /// another run has worked on it since.
    pub(super) fn left(&self, name: &str) -> Option<Left> {
        let left = self.state.left.get(name).copied();
        left.filter(|_| self.folder(name).exists() && self.is_own(name))
    }

    fn owner(&self, name: &str) -> PathBuf {
        self.base.join(format!("{name}{OWNER}"))
    }

    /// Whether this run was the last that changed a store or a copy. Earlier versions did not say,
    /// nor does a file that a full disk left empty.
    pub(super) fn is_own(&self, name: &str) -> bool {
        std::fs::read_to_string(self.owner(name))
            .map_or(true, |run| run.is_empty() || run == self.state.run)
    }

    /// Says that this run changes a store or a copy.
    fn own(&self, name: &str) -> Result<()> {
        let owner = self.owner(name);
        if std::fs::read_to_string(&owner).is_ok_and(|run| run == self.state.run) {
            return Ok(());
        }
        std::fs::write(&owner, &self.state.run)
            .map_err(|error| Problem::file("write", &owner, &error).into())
    }

    /// Empties a store.
    pub(super) fn clear(&mut self, name: &str) -> Result<()> {
        self.begin(name)?;
        remove(&self.folder(name))
    }

    /// A step is about to work on a store.
    pub(super) fn begin(&mut self, name: &str) -> Result<()> {
        self.state.left.remove(name);
        self.write()?;
        self.own(name)
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
        self.own(&copy)?;
        copy_folder(&self.folder(name), &self.base.join(&copy))?;
        self.state.saved.insert(copy, left);
        self.write()
    }

    /// Puts a store back to what `wanted` left; false if there is no such copy.
    pub(super) fn restore(&mut self, name: &str, wanted: Left) -> Result<bool> {
        let copy = Stores::copy_name(name, wanted.step);
        if self.state.saved.get(&copy) != Some(&wanted) || !self.is_own(&copy) {
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
            self.discard(&copy)?;
        }
        if keep {
            return Ok(());
        }
        self.state.left.remove(name);
        self.write()?;
        self.discard(name)
    }

    /// Removes a store or a copy, unless another run has made it its own.
    fn discard(&self, name: &str) -> Result<()> {
        if !self.is_own(name) {
            return Ok(());
        }
        remove(&self.folder(name))?;
        match std::fs::remove_file(self.owner(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Problem::file("remove", &self.owner(name), &error).into())
            }
            _ => Ok(()),
        }
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
            .map_err(|error| Problem::file("write", &self.file, &error).into())
    }
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Problem::file("remove", folder, &error).into())
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

        drop(stores);
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
    fn a_store_that_another_run_changed_is_not_the_own_one() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("stores");
        let open = |name: &str| Stores::open(&base, &dir.path().join(name));
        let fill = |stores: &mut Stores, name: &str| {
            stores.clear(name).unwrap();
            std::fs::create_dir(stores.folder(name)).unwrap();
            stores.done(name, LEFT).unwrap();
        };
        let mut stores = open("first").unwrap();
        fill(&mut stores, "a");
        fill(&mut stores, "b");
        let why = open("second").err().unwrap().to_string();
        assert!(why.contains("another `shale bench`") && why.contains("--db"), "{why}");
        drop(stores);

        let mut other = open("second").unwrap();
        assert_eq!(other.left("a"), None);
        fill(&mut other, "a");
        other.save("a").unwrap();
        drop(other);

        let mut stores = open("first").unwrap();
        assert_eq!((stores.left("a"), stores.left("b")), (None, Some(LEFT)));
        assert!(!stores.restore("a", LEFT).unwrap());
        stores.remove("a", false).unwrap();
        assert!(base.join("a").exists(), "it is the other one's");
        std::fs::remove_dir(base.join("b")).unwrap();
        assert_eq!(stores.left("b"), None, "it is gone");
    }

    #[test]
    fn states_of_earlier_versions_hold() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state.json");
        let old = r#"{"made": true, "left": {"a": {"group": 0, "repeat": 1, "step": 2}},
            "saved": {}}"#;
        std::fs::write(&file, old).unwrap();
        std::fs::create_dir_all(dir.path().join("stores/a")).unwrap();
        std::fs::write(dir.path().join("stores").join(MARKER), MARKER_TEXT).unwrap();
        let stores = Stores::open(&dir.path().join("stores"), &file).unwrap();
        assert_eq!(stores.left("a"), Some(LEFT));
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
