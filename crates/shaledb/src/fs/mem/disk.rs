//! What is on the disk in memory: contents and names, live and durable.
//!
//! A file's durable content is `live[..synced]` followed by `cut` (durable bytes that a truncation
//! not yet synced has taken from the live content). Names are changed by operations; an operation
//! is pending until the directory is synced.

use super::content::{Content, Node};
use crate::base::error::{Error, Result};
use crate::base::sync::{Arc, Mutex};
use crate::fs::DirEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// A directory, whatever its name: as on a real disk it stays the same when it is renamed, and a
/// new one of the name of a removed one is another.
pub(super) type DirId = u32;

/// The directories that are there from the start: `/`, and where relative paths begin.
pub(super) const ROOT: DirId = 0;
pub(super) const HERE: DirId = 1;

#[derive(Clone)]
pub(super) enum Entry {
    File(Arc<Node>),
    Dir(DirId),
}

pub(super) type Names = BTreeMap<DirId, BTreeMap<String, Entry>>;

/// A full name: the directory and the name in it.
pub(super) type Name = (DirId, String);

/// A change of names that is not durable yet.
#[derive(Clone)]
pub(super) enum Change {
    /// The name now stands for this.
    Set(Name, Entry),
    /// The name is gone.
    Unset(Name),
    /// The second name now stands for this, and the first is gone, both or neither.
    Move(Name, Name, Entry),
}

impl Change {
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        let (a, b) = match self {
            Change::Set(name, _) | Change::Unset(name) => (name, None),
            Change::Move(from, to, _) => (to, Some(from)),
        };
        std::iter::once(a).chain(b)
    }

    /// The directory whose sync makes the change durable.
    fn dir(&self) -> DirId {
        match self {
            Change::Set(name, _) | Change::Unset(name) | Change::Move(_, name, _) => name.0,
        }
    }

    pub(super) fn apply(self, names: &mut Names) {
        match self {
            Change::Set(name, entry) => set(names, name, entry),
            Change::Unset(name) => unset(names, &name),
            Change::Move(from, to, entry) => {
                unset(names, &from);
                set(names, to, entry);
            }
        }
    }
}

pub(super) fn set(names: &mut Names, (dir, name): Name, entry: Entry) {
    if let Entry::Dir(id) = entry {
        names.entry(id).or_default();
    }
    names.entry(dir).or_default().insert(name, entry);
}

fn unset(names: &mut Names, (dir, name): &Name) {
    if let Some(entries) = names.get_mut(dir) {
        entries.remove(name);
    }
}

/// A change that a crash may undo.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) change: Change,
    /// A sync of the directory failed; later ones do not make it durable.
    pub(super) lost: bool,
}

/// How a lock file is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockShares {
    Whole,
    Shares(u32),
}

pub(super) struct Disk {
    pub(super) live: Names,
    pub(super) durable: Names,
    pub(super) pending: Vec<Pending>,
    pub(super) next_dir: DirId,
    /// Lock files that are locked: whole, or in how many shares.
    pub(super) locks: BTreeMap<PathBuf, LockShares>,
    pub(super) capacity: Option<u64>,
    pub(super) used: u64,
}

pub(super) fn io_error(op: &'static str, path: &Path, kind: ErrorKind) -> Error {
    Error::io(op, path, io::Error::from(kind))
}

impl Disk {
    pub(super) fn new() -> Disk {
        let roots: Names = [ROOT, HERE].map(|root| (root, BTreeMap::new())).into();
        Disk {
            durable: roots.clone(),
            live: roots,
            pending: Vec::new(),
            next_dir: HERE + 1,
            locks: BTreeMap::new(),
            capacity: None,
            used: 0,
        }
    }

    /// The directory of this path, if there is one.
    fn dir(&self, path: &Path) -> Option<DirId> {
        let mut at = HERE;
        for part in path.components() {
            at = match part {
                Component::RootDir => ROOT,
                Component::Normal(name) => match self.live.get(&at)?.get(name.to_str()?)? {
                    Entry::Dir(id) => *id,
                    Entry::File(_) => return None,
                },
                _ => return None,
            };
        }
        Some(at)
    }

    /// Cuts a path into its directory, which must exist, and its name. Roots have no name.
    fn split(&self, op: &'static str, path: &Path) -> Result<Name> {
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(parent), Some(name)) = (path.parent(), name) else {
            return Err(io_error(op, path, ErrorKind::InvalidInput));
        };
        match self.dir(parent) {
            Some(dir) => Ok((dir, name.to_owned())),
            None => Err(io_error(op, path, ErrorKind::NotFound)),
        }
    }

    fn entry(&self, path: &Path) -> Option<&Entry> {
        let name = path.file_name()?.to_str()?;
        self.live.get(&self.dir(path.parent()?)?)?.get(name)
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.dir(path).is_some() || self.entry(path).is_some()
    }

    pub(super) fn file(&self, op: &'static str, path: &Path) -> Result<Arc<Node>> {
        match self.entry(path) {
            Some(Entry::File(node)) => Ok(node.clone()),
            Some(Entry::Dir(_)) => Err(io_error(op, path, ErrorKind::IsADirectory)),
            None => Err(io_error(op, path, ErrorKind::NotFound)),
        }
    }

    fn change(&mut self, change: Change) {
        change.clone().apply(&mut self.live);
        self.pending.push(Pending { change, lost: false });
    }

    /// Splits the path of a file's name to be made: there must not be a directory of the name.
    fn new_name(&self, op: &'static str, path: &Path) -> Result<Name> {
        let name = self.split(op, path)?;
        if self.dir(path).is_some() {
            return Err(io_error(op, path, ErrorKind::IsADirectory));
        }
        Ok(name)
    }

    pub(super) fn create(&mut self, path: &Path) -> Result<Arc<Node>> {
        if let Ok(node) = self.file("create", path) {
            self.truncate(&node, 0);
            return Ok(node);
        }
        let name = self.new_name("create", path)?;
        let content = Content { names: 1, ..Content::default() };
        let node = Arc::new(Node { data: Mutex::new(content) });
        self.change(Change::Set(name, Entry::File(node.clone())));
        Ok(node)
    }

    pub(super) fn write(&mut self, node: &Node, path: &Path, at: u64, bytes: &[u8]) -> Result<()> {
        let mut data = node.data.lock();
        let (at, before) = (at as usize, data.live.len());
        assert!(at <= before, "an append leaves no hole");
        let mut take = bytes;
        let growth = (at + bytes.len()).saturating_sub(before) as u64;
        let free = self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used));
        if growth > free {
            take = &bytes[..bytes.len() - (growth - free) as usize];
        }
        if at < data.synced {
            // Overwriting durable bytes: they stay durable until the next sync.
            let tail = data.live[at..].to_vec();
            data.truncate(at);
            Arc::make_mut(&mut data.live).extend_from_slice(&tail);
        }
        let live = Arc::make_mut(&mut data.live);
        let end = at + take.len();
        if live.len() < end {
            live.resize(end, 0);
        }
        live[at..end].copy_from_slice(take);
        assert!(data.live.len() >= before && data.synced <= at, "what is durable stays as it is");
        if data.names > 0 {
            self.used += (data.live.len() - before) as u64;
        }
        if take.len() < bytes.len() {
            return Err(Error::DiskFull { path: path.to_owned() });
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, node: &Node, bytes: u64) {
        let mut data = node.data.lock();
        if data.names > 0 {
            self.used = self.used - data.live.len() as u64 + bytes;
        }
        data.truncate(bytes as usize);
    }

    fn unlinked(&mut self, entry: Option<Entry>) {
        if let Some(Entry::File(node)) = entry {
            let mut data = node.data.lock();
            assert!(data.names > 0, "a name is removed once");
            data.names -= 1;
            if data.names == 0 {
                assert!(self.used >= data.live.len() as u64, "what is named is counted");
                self.used -= data.live.len() as u64;
            }
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        if self.dir(from).is_some() {
            return self.rename_dir(from, to);
        }
        let node = self.file("rename", from)?;
        let target = self.new_name("rename", to)?;
        if from == to {
            return Ok(());
        }
        let replaced = self.entry(to).cloned();
        self.unlinked(replaced);
        self.change(Change::Move(self.split("rename", from)?, target, Entry::File(node)));
        Ok(())
    }

    fn rename_dir(&mut self, from: &Path, to: &Path) -> Result<()> {
        let (source, target) = (self.split("rename", from)?, self.split("rename", to)?);
        let kind = match (self.dir(from), self.entry(to)) {
            (None, _) => ErrorKind::NotFound,
            _ if to.starts_with(from) => ErrorKind::InvalidInput,
            (_, Some(Entry::File(_))) => ErrorKind::NotADirectory,
            (_, Some(Entry::Dir(there))) if !self.live[there].is_empty() => {
                ErrorKind::DirectoryNotEmpty
            }
            (Some(dir), _) => {
                self.change(Change::Move(source, target, Entry::Dir(dir)));
                return Ok(());
            }
        };
        Err(io_error("rename", from, kind))
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<()> {
        let node = self.file("remove", path)?;
        self.change(Change::Unset(self.split("remove", path)?));
        self.unlinked(Some(Entry::File(node)));
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> Result<()> {
        let Some(dir) = self.dir(path) else {
            return Err(io_error("remove", path, ErrorKind::NotFound));
        };
        if !self.live[&dir].is_empty() {
            return Err(io_error("remove", path, ErrorKind::DirectoryNotEmpty));
        }
        let name = self.split("remove", path)?;
        self.change(Change::Unset(name));
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> Result<()> {
        let node = self.file("link", from)?;
        let name = self.new_name("link", to)?;
        if self.entry(to).is_some() {
            return Err(io_error("link", to, ErrorKind::AlreadyExists));
        }
        node.data.lock().names += 1;
        self.change(Change::Set(name, Entry::File(node)));
        Ok(())
    }

    pub(super) fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        let Some(names) = self.dir(dir).and_then(|dir| self.live.get(&dir)) else {
            return Err(io_error("list", dir, ErrorKind::NotFound));
        };
        let describe = |(name, entry): (&String, &Entry)| match entry {
            Entry::File(node) => {
                let bytes = node.data.lock().live.len() as u64;
                DirEntry { name: name.clone(), bytes, is_dir: false }
            }
            Entry::Dir(_) => DirEntry { name: name.clone(), bytes: 0, is_dir: true },
        };
        Ok(names.iter().map(describe).collect())
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> Result<()> {
        if self.dir(path).is_some() {
            return Ok(());
        }
        if self.entry(path).is_some() {
            return Err(io_error("create directory", path, ErrorKind::AlreadyExists));
        }
        if let Some(parent) = path.parent() {
            self.create_dir_all(parent)?;
        }
        let name = self.split("create directory", path)?;
        assert!(!self.live.contains_key(&self.next_dir), "a directory has a number of its own");
        self.change(Change::Set(name, Entry::Dir(self.next_dir)));
        self.next_dir += 1;
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> Result<()> {
        let Some(dir) = self.dir(path) else {
            return Err(io_error("sync directory", path, ErrorKind::NotFound));
        };
        let mut synced: BTreeSet<Name> = BTreeSet::new();
        // The newest first: what a later change of the same name has made durable is not lost.
        let (mut done, mut left) = (Vec::new(), Vec::new());
        for pending in std::mem::take(&mut self.pending).into_iter().rev() {
            if pending.change.dir() != dir {
                left.push(pending);
            } else if !pending.lost {
                synced.extend(pending.change.names().cloned());
                done.push(pending.change);
            } else if !pending.change.names().any(|name| synced.contains(name)) {
                left.push(pending);
            }
        }
        left.reverse();
        self.pending = left;
        done.into_iter().rev().for_each(|change| change.apply(&mut self.durable));
        let mut pending = self.pending.iter();
        assert!(pending.all(|one| one.lost || one.change.dir() != dir), "all else is durable");
        Ok(())
    }

    /// A sync of the directory has failed: what was to be made durable is not tried again.
    pub(super) fn lose_names(&mut self, path: &Path) {
        let Some(dir) = self.dir(path) else { return };
        for pending in self.pending.iter_mut().filter(|pending| pending.change.dir() == dir) {
            pending.lost = true;
        }
    }
}
