//! What was recorded of a process, and the disks that a power loss may make of it.

use crate::program::Step;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One recorded call.
#[derive(Debug)]
pub enum Event {
    Open {
        fd: u32,
        dir: bool,
        existed: bool,
        cut: bool,
        path: String,
    },
    Close(u32),
    Write {
        fd: u32,
        offset: usize,
        data: Vec<u8>,
    },
    Cut {
        fd: u32,
        length: usize,
    },
    SyncBegins(u32),
    /// With the name of the file, or `/` of a directory.
    SyncEnds(u32, String),
    Rename(String, String),
    Link(String, String),
    Unlink(String),
    RemoveDir(String),
    MakeDir(String),
    Says(String),
}

impl Event {
    /// Whether a power loss before it and one after it may leave different disks, or promises.
    pub fn changes(&self) -> bool {
        match self {
            Event::Open { existed, cut, .. } => !existed || *cut,
            Event::Close(_) | Event::SyncBegins(_) => false,
            _ => true,
        }
    }

    /// What was synced.
    pub fn synced(&self) -> Option<&str> {
        match self {
            Event::SyncEnds(_, name) => Some(name),
            _ => None,
        }
    }
}

/// Reads a record.
pub fn events(mut log: &[u8]) -> Vec<Event> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut found = Vec::new();
    while let Some(end) = log.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&log[..end]).unwrap().to_owned();
        log = &log[end + 1..];
        let (what, rest) = line.split_at(2);
        let numbers: Vec<usize> = rest.split(' ').map_while(|word| word.parse().ok()).collect();
        let fd = numbers.first().map_or(0, |fd| *fd as u32);
        let mut data = |length: usize| {
            let (data, after) = log.split_at(length);
            log = after;
            data.to_vec()
        };
        let event = match what {
            "O " => {
                let [_, dir, existed, cut] = numbers[..] else { panic!("{line}") };
                let path = rest.splitn(5, ' ').nth(4).unwrap().to_owned();
                let name = path.rsplit('/').next().unwrap().to_owned();
                names.insert(fd, if dir == 1 { "/".to_owned() } else { name });
                Event::Open { fd, dir: dir == 1, existed: existed == 1, cut: cut == 1, path }
            }
            "X " => Event::Close(fd),
            "W " => Event::Write { fd, offset: numbers[1], data: data(numbers[2]) },
            "T " => Event::Cut { fd, length: numbers[1] },
            "B " => Event::SyncBegins(fd),
            "E " => Event::SyncEnds(fd, names[&fd].clone()),
            "R " | "L " => {
                let end = log.iter().position(|byte| *byte == b'\n').unwrap();
                let to = std::str::from_utf8(&log[2..end]).unwrap().to_owned();
                log = &log[end + 1..];
                let from = rest.to_owned();
                if what == "R " { Event::Rename(from, to) } else { Event::Link(from, to) }
            }
            "U " => Event::Unlink(rest.to_owned()),
            "D " => Event::RemoveDir(rest.to_owned()),
            "M " => Event::MakeDir(rest.to_owned()),
            "A " => Event::Says(String::from_utf8(data(numbers[0])).unwrap()),
            _ => panic!("the engine did something that is not recorded: {line}"),
        };
        found.push(event);
    }
    found
}

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Lost,
    Kept,
    /// Each file fares as this seed says: its sectors are kept or lost one by one, or together;
    /// names likewise.
    Torn(u64),
}

const SECTOR: usize = 512;

enum Change {
    Write { offset: usize, data: Vec<u8> },
    Cut(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { offset, data } => write_at(content, *offset, data),
            Change::Cut(length) => content.resize(*length, 0),
        }
    }
}

fn write_at(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}

#[derive(Default)]
struct Node {
    durable: Vec<u8>,
    /// Changes that no sync has covered, with the moment of each.
    pending: Vec<(u64, Change)>,
}

impl Node {
    fn sync(&mut self, before: u64) {
        let covered = self.pending.iter().take_while(|(moment, _)| *moment < before).count();
        for (_, change) in self.pending.drain(..covered) {
            change.apply(&mut self.durable);
        }
    }

    fn after(&self, fate: Fate, chance: &mut Chance) -> Vec<u8> {
        let mut content = self.durable.clone();
        let all = self.pending.len() as u64;
        let (mode, prefix) = match fate {
            Fate::Lost => (0, 0),
            Fate::Kept => (1, 0),
            Fate::Torn(_) => (chance.below(4), chance.below(all + 1)),
        };
        for ((_, change), index) in self.pending.iter().zip(0..) {
            match (mode, change) {
                (1, change) => change.apply(&mut content),
                (2, change) if index < prefix => change.apply(&mut content),
                (3, Change::Write { offset, data }) => tear(&mut content, *offset, data, chance),
                (3, Change::Cut(_)) if chance.below(2) == 0 => change.apply(&mut content),
                _ => {}
            }
        }
        content
    }
}

/// Writes some of the sectors.
fn tear(content: &mut Vec<u8>, offset: usize, data: &[u8], chance: &mut Chance) {
    let mut at = 0;
    while at < data.len() {
        let end = ((offset + at) / SECTOR * SECTOR + SECTOR - offset).min(data.len());
        match chance.below(4) {
            0 => {}
            1 => write_at(content, offset + at, &vec![0; end - at]),
            _ => write_at(content, offset + at, &data[at..end]),
        }
        at = end;
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Entry {
    File(usize),
    Dir(usize),
}

type Name = (usize, String);

/// A change of names.
#[derive(Clone)]
enum Naming {
    Set(Name, Entry),
    Unset(Name),
    Move(Name, Name, Entry),
}

type Names = BTreeMap<usize, BTreeMap<String, Entry>>;

impl Naming {
    fn names(&self) -> Vec<&Name> {
        match self {
            Naming::Set(name, _) | Naming::Unset(name) => vec![name],
            Naming::Move(from, to, _) => vec![from, to],
        }
    }

    /// The directory whose sync makes it durable.
    fn dir(&self) -> usize {
        match self {
            Naming::Set(name, _) | Naming::Unset(name) | Naming::Move(_, name, _) => name.0,
        }
    }

    fn apply(&self, names: &mut Names) {
        let (gone, new) = match self {
            Naming::Set(name, entry) => (None, Some((name, entry))),
            Naming::Unset(name) => (Some(name), None),
            Naming::Move(from, to, entry) => (Some(from), Some((to, entry))),
        };
        if let Some((dir, name)) = gone {
            names.entry(*dir).or_default().remove(name);
        }
        if let Some(((dir, name), entry)) = new {
            names.entry(*dir).or_default().insert(name.clone(), *entry);
        }
    }
}

/// Numbers of chance.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// The directory that the record is of.
const ROOT: usize = 0;

/// The world of the process as far as the record has been read, and what of it is durable.
pub struct Recorder {
    root: PathBuf,
    nodes: Vec<Node>,
    live: Names,
    durable: Names,
    pending: Vec<(u64, Naming)>,
    dirs: usize,
    fds: BTreeMap<u32, Entry>,
    /// When the syncs under way of each descriptor began.
    syncs: BTreeMap<u32, VecDeque<u64>>,
    now: u64,
    begun: usize,
    acked: usize,
}

impl Recorder {
    pub fn new(root: &Path) -> Recorder {
        Recorder {
            root: root.to_owned(),
            nodes: Vec::new(),
            live: Names::new(),
            durable: Names::new(),
            pending: Vec::new(),
            dirs: 1,
            fds: BTreeMap::new(),
            syncs: BTreeMap::new(),
            now: 0,
            begun: 0,
            acked: 0,
        }
    }

    /// How many steps the process has begun.
    pub fn begun_steps(&self) -> usize {
        self.begun
    }

    /// How many of them it has said to be done.
    pub fn acked_steps(&self) -> usize {
        self.acked
    }

    /// How many of them were said to be durable, or are before one that was.
    pub fn durable_steps(&self, steps: &[Step]) -> usize {
        let synced = |step: &Step| step.is_durable();
        steps[..self.acked].iter().rposition(synced).map_or(0, |index| index + 1)
    }

    fn name(&self, path: &str) -> Name {
        let inside = Path::new(path).strip_prefix(&self.root).unwrap();
        let mut dir = ROOT;
        for part in inside.parent().unwrap() {
            match self.live[&dir][part.to_str().unwrap()] {
                Entry::Dir(inner) => dir = inner,
                Entry::File(_) => panic!("{path} is below a file"),
            }
        }
        (dir, inside.file_name().unwrap().to_str().unwrap().to_owned())
    }

    fn entry(&self, path: &str) -> Entry {
        if Path::new(path) == self.root {
            return Entry::Dir(ROOT);
        }
        let (dir, name) = self.name(path);
        self.live[&dir][&name]
    }

    fn naming(&mut self, naming: Naming) {
        naming.apply(&mut self.live);
        self.pending.push((self.now, naming));
    }

    fn change(&mut self, fd: u32, change: Change) {
        let Entry::File(node) = self.fds[&fd] else { panic!("a write to a directory") };
        self.nodes[node].pending.push((self.now, change));
    }

    pub fn apply(&mut self, event: &Event) {
        self.now += 1;
        match event {
            Event::Open { fd, dir, existed, cut, path } => {
                let entry = if *dir || *existed {
                    self.entry(path)
                } else {
                    self.nodes.push(Node::default());
                    let entry = Entry::File(self.nodes.len() - 1);
                    let name = self.name(path);
                    self.naming(Naming::Set(name, entry));
                    entry
                };
                self.fds.insert(*fd, entry);
                self.syncs.remove(fd);
                if *existed && *cut {
                    self.change(*fd, Change::Cut(0));
                }
            }
            Event::Close(fd) => drop(self.fds.remove(fd)),
            Event::Write { fd, offset, data } => {
                let (offset, data) = (*offset, data.clone());
                self.change(*fd, Change::Write { offset, data });
            }
            Event::Cut { fd, length } => self.change(*fd, Change::Cut(*length)),
            Event::SyncBegins(fd) => self.syncs.entry(*fd).or_default().push_back(self.now),
            // The oldest of those under way, which covers least.
            Event::SyncEnds(fd, _) => {
                let began = self.syncs.get_mut(fd).and_then(VecDeque::pop_front).unwrap();
                match self.fds[fd] {
                    Entry::File(node) => self.nodes[node].sync(began),
                    Entry::Dir(dir) => self.sync_dir(dir, began),
                }
            }
            Event::Rename(from, to) => {
                let (from, to, entry) = (self.name(from), self.name(to), self.entry(from));
                self.naming(Naming::Move(from, to, entry));
            }
            Event::Link(from, to) => {
                let (to, entry) = (self.name(to), self.entry(from));
                self.naming(Naming::Set(to, entry));
            }
            Event::Unlink(path) | Event::RemoveDir(path) => {
                let name = self.name(path);
                self.naming(Naming::Unset(name));
            }
            Event::MakeDir(path) => {
                let (name, entry) = (self.name(path), Entry::Dir(self.dirs));
                self.dirs += 1;
                self.naming(Naming::Set(name, entry));
            }
            Event::Says(text) => self.says(text),
        }
    }

    fn says(&mut self, text: &str) {
        let (what, number) = text.trim().split_once(' ').unwrap();
        let number = number.parse().unwrap();
        match what {
            "begin" => self.begun = number,
            "done" => self.acked = number,
            other => panic!("{other}"),
        }
    }

    fn sync_dir(&mut self, dir: usize, before: u64) {
        let durable = &mut self.durable;
        self.pending.retain(|(moment, naming)| {
            let covered = naming.dir() == dir && *moment < before;
            if covered {
                naming.apply(durable);
            }
            !covered
        });
    }

    /// The names after a power loss: of those not durable any, but with one all before it that had
    /// to do with the same name.
    fn names_after(&self, fate: Fate, chance: &mut Chance) -> Names {
        let often = match fate {
            Fate::Lost => 0,
            Fate::Kept => 4,
            Fate::Torn(_) => [0, 2, 4, 4][chance.below(4) as usize],
        };
        let mut kept = BTreeSet::new();
        let mut needed: BTreeSet<&Name> = BTreeSet::new();
        for (index, (_, naming)) in self.pending.iter().enumerate().rev() {
            let names = naming.names();
            if names.iter().any(|name| needed.contains(*name)) || chance.below(4) < often {
                kept.insert(index);
                needed.extend(names);
            }
        }
        let mut names = self.durable.clone();
        let pending = self.pending.iter().enumerate().filter(|(index, _)| kept.contains(index));
        pending.for_each(|(_, (_, naming))| naming.apply(&mut names));
        names
    }

    /// Writes the disk that a power loss leaves now to a new directory.
    pub fn write(&self, fate: Fate, to: &Path) {
        let seed = if let Fate::Torn(seed) = fate { seed } else { 0 };
        let mut chance = Chance(seed);
        let names = self.names_after(fate, &mut chance);
        // A file with two names has one content.
        let mut contents: BTreeMap<usize, Arc<Vec<u8>>> = BTreeMap::new();
        let mut left = vec![(ROOT, to.to_owned())];
        while let Some((dir, path)) = left.pop() {
            std::fs::create_dir(&path).unwrap();
            for (name, entry) in names.get(&dir).into_iter().flatten() {
                match entry {
                    Entry::Dir(inner) => left.push((*inner, path.join(name))),
                    Entry::File(node) => {
                        let after = || Arc::new(self.nodes[*node].after(fate, &mut chance));
                        let content = contents.entry(*node).or_insert_with(after);
                        std::fs::write(path.join(name), &***content).unwrap();
                    }
                }
            }
        }
    }
}
