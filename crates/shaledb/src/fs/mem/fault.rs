//! Which calls fail, how often each was made, and a trace of them.

use super::call::Call;
use super::disk::{Disk, io_error};
use crate::base::coding;
use crate::base::error::{Error, Result};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Call {
    /// All kinds.
    pub const ALL: [Call; 15] = [
        Call::Open,
        Call::Read,
        Call::Stat,
        Call::List,
        Call::Lock,
        Call::Create,
        Call::Append,
        Call::Sync,
        Call::Truncate,
        Call::Rename,
        Call::Remove,
        Call::RemoveDir,
        Call::Link,
        Call::CreateDir,
        Call::SyncDir,
    ];

    /// Whether the call changes the disk.
    pub fn changes(self) -> bool {
        self >= Call::Create
    }

    fn op(self) -> &'static str {
        match self {
            Call::Open => "open",
            Call::Read => "read",
            Call::Stat => "stat",
            Call::List => "list",
            Call::Lock => "lock",
            Call::Create => "create",
            Call::Append => "append to",
            Call::Sync => "sync",
            Call::Truncate => "truncate",
            Call::Rename => "rename",
            Call::Remove | Call::RemoveDir => "remove",
            Call::Link => "link",
            Call::CreateDir => "create directory",
            Call::SyncDir => "sync directory",
        }
    }
}

// Calls are counted by number.
const _: () = {
    let mut at = 0;
    while at < Call::ALL.len() {
        assert!(Call::ALL[at] as usize == at);
        at += 1;
    }
};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device answers with an error; nothing happens.
    Io,
    /// There is no space.
    Full,
    /// Of an append about half lands before the device answers with an error. Other calls fail as
    /// with [`Fault::Io`].
    Short,
    /// Of a sync: what was to be made durable is lost, and the error is reported to one of those
    /// who sync the file at that moment: who returns first. Other calls fail as with [`Fault::Io`].
    ReportOne,
    /// Of an append about half lands before there is no more space. Other calls fail as with
    /// [`Fault::Full`].
    ShortFull,
    /// The process has as many files open as it may: nothing happens. For calls that open one.
    NoHandle,
}

/// How often each kind of call was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Call::ALL.len()]);

impl Counts {
    /// The calls of one kind.
    pub fn of(&self, call: Call) -> u64 {
        self.0[call as usize]
    }

    /// All calls.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// All calls that change the disk.
    pub fn changes(&self) -> u64 {
        self.0[Call::Create as usize..].iter().sum()
    }
}

/// Called with what is done to which file; see [`MemFs::pause`](super::MemFs::pause).
pub type Pause = Arc<dyn Fn(Call, &Path) + Send + Sync>;

struct Rule {
    call: Call,
    /// The count of calls of the kind from which the rule holds.
    from: u64,
    fault: Fault,
    once: bool,
}

#[derive(Default)]
pub(super) struct Faults {
    counts: Counts,
    rules: Vec<Rule>,
    struck: u64,
    /// The last call was struck by a short write.
    short: bool,
    /// The last call was struck by a failure that nobody has reported yet.
    unreported: bool,
    /// The count of changes after which the power is off.
    power_until: Option<u64>,
    crashed: bool,
    hash: u64,
    trace: Option<Vec<String>>,
    /// With this bound an image is kept before every so many changes.
    image_every: Option<u64>,
    /// Disks as they were, with the count of changes made until then.
    images: Vec<(u64, Disk)>,
    pause: Option<Pause>,
    /// Under this directory every call that would change something is refused.
    read_only: Option<PathBuf>,
    /// Bytes of files that the device cannot read.
    unreadable: Vec<(PathBuf, Range<u64>)>,
}

impl Faults {
    /// Keeps an image of the disk if one is due, and says whether a call may happen.
    pub(super) fn enter(
        &mut self,
        disk: &Disk,
        call: Call,
        path: &Path,
        at: u64,
        bytes: &[u8],
    ) -> Result<()> {
        if let Some(every) = self.image_every
            && call.changes()
        {
            let changes = self.counts.changes();
            if changes.is_multiple_of(every) && self.images.last().is_none_or(|i| i.0 < changes) {
                self.images.push((changes, disk.image()));
            }
        }
        if call.changes() && self.refuses(path) {
            return Err(io_error(call.op(), path, io::ErrorKind::ReadOnlyFilesystem));
        }
        self.strike(call, path, at, bytes)
    }

    /// Fails a read that touches bytes which the device cannot read, as Linux does.
    pub(super) fn check_read(&self, path: &Path, bytes: Range<u64>) -> Result<()> {
        let touches = |part: &Range<u64>| part.start < bytes.end && bytes.start < part.end;
        if !self.unreadable.iter().any(|(file, part)| file == path && touches(part)) {
            return Ok(());
        }
        let source = Arc::new(io::Error::from_raw_os_error(libc::EIO));
        Err(Error::Io { op: Call::Read.op(), path: path.to_owned(), source })
    }

    pub(super) fn set_unreadable(&mut self, path: &Path, bytes: Range<u64>) {
        self.unreadable.push((path.to_owned(), bytes));
    }

    /// Whether the file is on a medium mounted for reading.
    pub(super) fn refuses(&self, path: &Path) -> bool {
        self.read_only.as_ref().is_some_and(|dir| path.starts_with(dir))
    }

    /// Counts and traces a call, and makes it fail if a rule says so.
    fn strike(&mut self, call: Call, path: &Path, at: u64, bytes: &[u8]) -> Result<()> {
        if call.changes() && self.power_until.is_some_and(|until| self.counts.changes() >= until) {
            self.crashed = true;
        }
        if self.crashed {
            self.short = false;
            let source = io::Error::other("the power is off");
            return Err(Error::Io { op: call.op(), path: path.to_owned(), source: source.into() });
        }
        self.counts.0[call as usize] += 1;
        self.note(call, path, at, bytes);
        if self.rules.is_empty() {
            return Ok(());
        }
        let count = self.counts.of(call);
        let Some(index) = self.rules.iter().position(|r| r.call == call && count >= r.from) else {
            return Ok(());
        };
        let fault = self.rules[index].fault;
        if self.rules[index].once {
            self.rules.remove(index);
        }
        self.struck += 1;
        self.short = matches!(fault, Fault::Short | Fault::ShortFull);
        self.unreported = fault == Fault::ReportOne && call == Call::Sync;
        match fault {
            Fault::Full | Fault::ShortFull => Err(Error::DiskFull { path: path.to_owned() }),
            Fault::Io | Fault::Short | Fault::ReportOne => {
                let source = Arc::new(io::Error::other("injected fault"));
                Err(Error::Io { op: call.op(), path: path.to_owned(), source })
            }
            Fault::NoHandle => {
                let source = Arc::new(io::Error::from_raw_os_error(libc::EMFILE));
                Err(Error::Io { op: call.op(), path: path.to_owned(), source })
            }
        }
    }

    fn note(&mut self, call: Call, path: &Path, at: u64, bytes: &[u8]) {
        let name = path.as_os_str().as_encoded_bytes();
        let parts = [call as u64, coding::hash(name), at, bytes.len() as u64, coding::hash(bytes)];
        for part in parts {
            self.hash = (self.hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
        }
        if let Some(trace) = &mut self.trace
            && call.changes()
        {
            let change = self.counts.changes();
            trace.push(match call {
                Call::Append => {
                    format!("{change} append {} at {at}, {} bytes", path.display(), bytes.len())
                }
                Call::Rename | Call::Link => {
                    let to = String::from_utf8_lossy(bytes);
                    format!("{change} {} {} to {to}", call.op(), path.display())
                }
                _ => format!("{change} {} {}", call.op(), path.display()),
            });
        }
    }

    /// After a failed append: how many of its bytes landed all the same.
    pub(super) fn take_short(&mut self, bytes: usize) -> Option<usize> {
        std::mem::take(&mut self.short).then_some(bytes.div_ceil(2))
    }

    /// After a failed sync: whether nobody has reported it yet.
    pub(super) fn take_unreported(&mut self) -> bool {
        std::mem::take(&mut self.unreported)
    }

    pub(super) fn add(&mut self, call: Call, nth: u64, fault: Fault, once: bool) {
        let from = self.counts.of(call) + nth.max(1);
        self.rules.push(Rule { call, from, fault, once });
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
        self.power_until = None;
        self.crashed = false;
    }

    pub(super) fn crash_after(&mut self, changes: u64) {
        self.power_until = Some(self.counts.changes() + changes);
    }

    pub(super) fn crashed(&self) -> bool {
        self.crashed
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn struck(&self) -> u64 {
        self.struck
    }

    pub(super) fn trace_hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn keep_trace(&mut self) {
        self.trace.get_or_insert_default();
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.trace.clone().unwrap_or_default()
    }

    pub(super) fn keep_images(&mut self, every: Option<u64>) {
        self.image_every = every;
    }

    pub(super) fn take_images(&mut self) -> Vec<(u64, Disk)> {
        std::mem::take(&mut self.images)
    }

    pub(super) fn set_pause(&mut self, pause: Option<Pause>) {
        self.pause = pause;
    }

    pub(super) fn pause(&self) -> Option<Pause> {
        self.pause.clone()
    }

    pub(super) fn set_read_only(&mut self, dir: &Path) {
        self.read_only = Some(dir.to_owned());
    }
}
