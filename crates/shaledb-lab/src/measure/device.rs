//! What the block device below a folder has done.

use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device that holds a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    major: u32,
    minor: u32,
}

/// What a block device counted (a trim may count as written).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Its name in /proc/diskstats.
    pub name: String,
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Device {
    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Device) -> Device {
        Device {
            name: self.name.clone(),
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

impl BlockDevice {
    /// The one below `path`; `None` if it cannot be told, as for a file system over the network.
    pub fn of(path: &Path) -> Option<BlockDevice> {
        let dev = path.metadata().ok()?.dev();
        let direct = BlockDevice::numbered(dev);
        if direct.counts().is_some() {
            return Some(direct);
        }
        // File systems of several volumes have numbers of their own; the list of mounts names the
        // device that such a one was mounted from.
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let source = source(&mounts, direct)?;
        let device = BlockDevice::numbered(std::fs::metadata(source).ok()?.rdev());
        device.counts().is_some().then_some(device)
    }

    fn numbered(dev: u64) -> BlockDevice {
        BlockDevice { major: libc::major(dev as _) as u32, minor: libc::minor(dev as _) as u32 }
    }

    /// What it has done since the system started.
    pub fn counts(&self) -> Option<Device> {
        parse(&std::fs::read_to_string("/proc/diskstats").ok()?, *self)
    }
}

/// The device in the last field but one of the line of a mount with this number.
fn source(mounts: &str, number: BlockDevice) -> Option<&str> {
    let number = format!("{}:{}", number.major, number.minor);
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let source = after.split(' ').nth(1)?;
        (before.split(' ').nth(2)? == number && source.starts_with('/')).then_some(source)
    })
}

/// The counts of the diskstats file are in sectors of 512 bytes whatever the device has.
fn parse(diskstats: &str, device: BlockDevice) -> Option<Device> {
    diskstats.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        if number(0)? != u64::from(device.major) || number(1)? != u64::from(device.minor) {
            return None;
        }
        Some(Device {
            name: (*words.get(2)?).to_owned(),
            reads: number(3)?,
            read_bytes: number(5)? * 512,
            writes: number(7)?,
            written_bytes: number(9)? * 512,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_read() {
        let stats = "   7  0 loop0 0 0 0 0 0 0 0 0 0 0 0\n \
            254  1 vda1 10 3 80 16 20 9 160 7 0 18672 182849 13101 30 7933832 5154\n";
        let device = BlockDevice { major: 254, minor: 1 };
        let counts = parse(stats, device).unwrap();
        assert_eq!((counts.name.as_str(), counts.reads, counts.writes), ("vda1", 10, 20));
        assert_eq!((counts.read_bytes, counts.written_bytes), (80 * 512, 160 * 512));
        assert_eq!(parse(stats, BlockDevice { major: 9, minor: 1 }), None);

        let mounts = "22 1 0:31 / /data rw,noatime shared:1 - btrfs /dev/sda2 rw\n";
        assert_eq!(source(mounts, BlockDevice { major: 0, minor: 31 }), Some("/dev/sda2"));
        assert_eq!(source(mounts, device), None);
    }

    #[test]
    fn bytes_that_reach_the_device_are_counted() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        // A machine may keep its files in memory or on a network: then there is nothing to tell.
        let Some(device) = BlockDevice::of(dir.path()) else { return };
        let before = device.counts().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, vec![7u8; 4 << 20]).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let done = device.counts().unwrap().since(&before);
        assert!(done.written_bytes >= 4 << 20 && done.writes > 0, "{done:?}");
    }
}
