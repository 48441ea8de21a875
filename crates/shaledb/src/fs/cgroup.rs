//! How much memory the control groups of a process let it have: that of a service, of a container,
//! and those which they are in. Pure: who calls it reads the files.

use std::path::{Path, PathBuf};

/// Where the hierarchies are mounted, by convention; in a container its own groups are there.
const ROOT: &str = "/sys/fs/cgroup";

/// The least limit of the groups of a process, in bytes; `None` if there is none. `groups` is
/// the text of its /proc/self/cgroup, whose lines are `0::PATH` for the one hierarchy of version 2
/// and `NUMBER:CONTROLLERS:PATH` for those of version 1. `read` reads a file of one line.
pub(super) fn memory_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = files(groups).into_iter().filter_map(|file| limit(&read(&file)?));
    limits.min()
}

/// The files that may have a limit: of each group, and of all above it. A group of the host that a
/// container does not see has none there, and is passed over.
fn files(groups: &str) -> Vec<PathBuf> {
    let (two, one) = (Path::new(ROOT), Path::new(ROOT).join("memory"));
    // Of the root alone, whether or not the lines can be read.
    let mut found = vec![two.join("memory.max"), one.join("memory.limit_in_bytes")];
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (mount, name) = match (number, controllers) {
            ("0", "") => (two, "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (&*one, "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        // A group beside the one that is the container's root.
        if path.iter().any(|part| part == "..") {
            continue;
        }
        let groups = path.ancestors().filter(|group| !group.as_os_str().is_empty());
        found.extend(groups.map(|group| mount.join(group).join(name)));
    }
    found
}

/// `max`, or a number of bytes.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups of a process, files and their texts, and the limit.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<u64>);

    #[test]
    fn the_least_limit_counts() {
        let service = "0::/system.slice/shop.service\n";
        let old = "12:cpuset:/\n4:cpu,memory:/system.slice/shop.service\n1:name=systemd:/x\n";
        let cases: [Case<'_>; 12] = [
            ("", &[], None),
            ("", &[("memory.max", "4096\n")], Some(4096)),
            ("", &[("memory/memory.limit_in_bytes", "4096\n")], Some(4096)),
            // A service with `MemoryMax=`.
            (
                service,
                &[
                    ("system.slice/memory.max", "max\n"),
                    ("system.slice/shop.service/memory.max", "1073741824\n"),
                ],
                Some(1 << 30),
            ),
            // What it is in has less.
            (
                service,
                &[
                    ("system.slice/memory.max", "1048576\n"),
                    ("system.slice/shop.service/memory.max", "1073741824\n"),
                ],
                Some(1 << 20),
            ),
            (service, &[("system.slice/shop.service/memory.max", "max\n")], None),
            (service, &[("other.slice/memory.max", "1\n")], None),
            // Version 1, whose number for no limit is the caller's to bound.
            (
                old,
                &[
                    ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
                    ("memory/system.slice/shop.service/memory.limit_in_bytes", "5000\n"),
                ],
                Some(5000),
            ),
            (old, &[("cpuset/memory.max", "1\n"), ("memory/x/memory.limit_in_bytes", "1")], None),
            // In a container: the host's path is not there, or is its root.
            ("0::/docker/0123\n", &[("memory.max", "7000\n")], Some(7000)),
            ("0::/\n", &[("memory.max", "7000\n")], Some(7000)),
            ("0::/../beside\n", &[("../beside/memory.max", "1\n"), ("memory.max", "2\n")], Some(2)),
        ];
        for (groups, files, expected) in cases {
            let read = |path: &Path| {
                let name = path.strip_prefix(ROOT).expect("all of them are there");
                let found = files.iter().find(|(file, _)| Path::new(file) == name);
                found.map(|(_, text)| (*text).to_owned())
            };
            assert_eq!(memory_limit(groups, read), expected, "{groups:?} {files:?}");
        }
    }
}
