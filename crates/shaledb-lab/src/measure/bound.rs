//! A bound on the memory of some processes, page cache included, and an empty page cache: so that
//! the ratio of data to memory means something.

use super::field::field;
use std::fs;
use std::path::{Path, PathBuf};

/// A control group with a bound on memory. It goes away with this value; its processes must have
/// ended by then.
#[derive(Debug)]
pub struct Bound {
    group: PathBuf,
    second_version: bool,
}

impl Bound {
    /// Makes a group whose processes have `bytes` together: what they allocate and what they have
    /// in the page cache. The error says why this machine does not allow it.
    ///
    /// # Errors
    ///
    /// The machine has no control groups with a memory controller, or this process may not make
    /// one.
    pub fn new(bytes: u64) -> Result<Bound, String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| format!("could not read /proc/self/mountinfo: {error}"))?;
        let own = fs::read_to_string("/proc/self/cgroup")
            .map_err(|error| format!("could not read /proc/self/cgroup: {error}"))?;
        let mut why = "no control group file system with a memory controller is mounted".to_owned();
        for parent in parents(&mounts, &own) {
            match Bound::below(&parent, bytes) {
                Ok(bound) => return Ok(bound),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn below(parent: &Parent, bytes: u64) -> Result<Bound, String> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        remove_abandoned(&parent.folder);
        let name = format!("{NAME}{}-{number}", std::process::id());
        if parent.second_version {
            // Refused where it is on already or may not be: then the file below is missing.
            let _ = fs::write(parent.folder.join("cgroup.subtree_control"), "+memory");
        }
        let group = parent.folder.join(name);
        fs::create_dir(&group)
            .map_err(|error| format!("could not create {}: {error}", group.display()))?;
        let bound = Bound { group, second_version: parent.second_version };
        let (limit, swap) = match parent.second_version {
            true => ("memory.max", "memory.swap.max"),
            false => ("memory.limit_in_bytes", "memory.swappiness"),
        };
        bound.write(limit, bytes)?;
        // Not there without swap space, which is as good.
        let _ = bound.write(swap, 0);
        Ok(bound)
    }

    fn write(&self, file: &str, number: u64) -> Result<(), String> {
        let path = self.group.join(file);
        fs::write(&path, number.to_string())
            .map_err(|error| format!("could not write {number} to {}: {error}", path.display()))
    }

    /// Takes a process in; those that it starts from now on are in it too.
    ///
    /// # Errors
    ///
    /// The process has ended, or the system refuses.
    pub fn add(&self, pid: u32) -> Result<(), String> {
        self.write("cgroup.procs", u64::from(pid))
    }

    /// The processes in it.
    ///
    /// # Errors
    ///
    /// The system does not list them.
    pub fn processes(&self) -> Result<Vec<u32>, String> {
        let path = self.group.join("cgroup.procs");
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("could not read {}: {error}", path.display()))?;
        Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
    }

    /// How often the system had to take memory back from the group because of the bound, as it does
    /// all the time once the page cache fills it.
    pub fn hits(&self) -> u64 {
        match self.second_version {
            true => self.count("memory.events", "max "),
            false => self.read("memory.failcnt").trim().parse().unwrap_or(0),
        }
    }

    /// How many of its processes the system ended because of the bound.
    pub fn kills(&self) -> u64 {
        match self.second_version {
            true => self.count("memory.events", "oom_kill "),
            false => self.count("memory.oom_control", "oom_kill "),
        }
    }

    fn count(&self, file: &str, name: &str) -> u64 {
        field(&self.read(file), name).unwrap_or(0)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.group.join(file)).unwrap_or_default()
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // A process that was just killed may still be listed for a moment.
        for _ in 0..50 {
            match fs::remove_dir(&self.group) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}

/// Groups are called so, then the process that made them and a number.
const NAME: &str = "shaledb-lab-";

/// Removes the groups of processes that were killed and could not do it themselves. One that has
/// processes cannot be removed.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next());
        if maker.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            // Another campaign may have been faster.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// A folder that groups can be made in.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    folder: PathBuf,
    second_version: bool,
}

/// Where to try, best first: in this process's own group, then in those above it, since a group of
/// the second version that has processes may have no bounded group in it.
fn parents(mountinfo: &str, own: &str) -> Vec<Parent> {
    let mut parents = Vec::new();
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let (before, after): (Vec<&str>, Vec<&str>) =
            (before.split(' ').collect(), after.split(' ').collect());
        let (Some(root), Some(mount), Some(&kind)) = (before.get(3), before.get(4), after.first())
        else {
            continue;
        };
        let second_version = kind == "cgroup2";
        let memory = || after.get(2).is_some_and(|all| all.split(',').any(|one| one == "memory"));
        let first_version = kind == "cgroup" && memory();
        if !first_version && !second_version {
            continue;
        }
        let Some(path) = own.lines().find_map(|line| group_of(line, second_version)) else {
            continue;
        };
        let path = path.strip_prefix(*root).unwrap_or(path).trim_start_matches('/');
        for above in Path::new(path).ancestors() {
            parents.push(Parent { folder: Path::new(mount).join(above), second_version });
        }
    }
    parents
}

/// The path in a line such as `4:memory:/a/b` or, of the second version, `0::/a/b`.
fn group_of(line: &str, second_version: bool) -> Option<&str> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let wanted = if second_version { "" } else { "memory" };
    controllers.split(',').any(|one| one == wanted).then_some(path)
}

/// Throws what the page cache has of these files and folders away, so that the next reader goes to
/// storage. Only those files are affected. How many could not be treated.
pub fn drop_page_cache(path: &Path) -> usize {
    let Ok(meta) = path.symlink_metadata() else { return 1 };
    if meta.is_dir() {
        let Ok(entries) = fs::read_dir(path) else { return 1 };
        return entries.flatten().map(|entry| drop_page_cache(&entry.path())).sum();
    }
    if !meta.is_file() {
        return 0;
    }
    usize::from(drop_file(path).is_err())
}

#[cfg(target_os = "linux")]
fn drop_file(path: &Path) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let file = fs::File::open(path)?;
    // Pages that are not yet written stay.
    file.sync_all()?;
    // SAFETY: the descriptor is open for the length of the call, which takes numbers only.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        code => Err(std::io::Error::from_raw_os_error(code)),
    }
}

#[cfg(not(target_os = "linux"))]
fn drop_file(_: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Usage;
    use std::process::{Command, Stdio};

    #[test]
    fn parents_of_both_versions() {
        let mounts = "31 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n33 24 0:28 / \
                      /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n34 24 0:29 / \
                      /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let own = "4:memory:/user/me\n1:cpu:/\n0::/user.slice\n";
        let folders: Vec<String> = parents(mounts, own)
            .iter()
            .map(|parent| format!("{}{}", parent.second_version, parent.folder.display()))
            .collect();
        assert_eq!(
            folders,
            [
                "true/sys/fs/cgroup/unified/user.slice",
                "true/sys/fs/cgroup/unified/",
                "false/sys/fs/cgroup/memory/user/me",
                "false/sys/fs/cgroup/memory/user",
                "false/sys/fs/cgroup/memory/",
            ]
        );
    }

    #[test]
    fn a_process_keeps_to_its_bound() {
        // Without the right to make groups there is nothing to try.
        let Ok(bound) = Bound::new(16 << 20) else { return };
        assert_eq!((bound.processes().unwrap(), bound.kills()), (vec![], 0));
        let run = |bytes: &str| {
            let mut child = Command::new("sh")
                .arg("-c")
                // It waits until it is in the group, then `tail` keeps one long line in memory. It
                // is this `tail` that the system's log tells of as killed.
                .arg(format!("read go; head -c {bytes} /dev/zero | tail -n 1 | wc -c"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            bound.add(child.id()).unwrap();
            drop(child.stdin.take());
            let output = child.wait_with_output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        assert_eq!(run("1000000"), "1000000");
        assert_ne!(run("64000000"), "64000000", "four times the bound fitted in");
        assert!(bound.hits() > 0 && bound.kills() > 0);
        let group = bound.group.clone();
        drop(bound);
        assert!(!group.exists());
    }

    #[test]
    fn groups_that_a_killed_campaign_left_are_removed() {
        let Ok(bound) = Bound::new(16 << 20) else { return };
        let mut gone = Command::new("true").spawn().unwrap();
        let left = bound.group.with_file_name(format!("{NAME}{}-0", gone.id()));
        gone.wait().unwrap();
        fs::create_dir(&left).unwrap();
        let other = Bound::new(16 << 20).unwrap();
        assert!(!left.exists() && bound.group.exists() && other.group.exists());
    }

    #[test]
    fn files_that_were_dropped_are_read_again() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("a");
        fs::write(&path, vec![7u8; 4 << 20]).unwrap();
        // What is in memory only, as a tmpfs, cannot be dropped, and nothing is read for it.
        if crate::measure::BlockDevice::of(dir.path()).is_none() {
            return;
        }
        assert_eq!(drop_page_cache(dir.path()), 0);
        let before = Usage::now();
        assert_eq!(fs::read(&path).unwrap().len(), 4 << 20);
        assert!(Usage::now().since(&before).read_bytes >= 4 << 20);
        assert_eq!(drop_page_cache(&dir.path().join("missing")), 1);
    }
}
