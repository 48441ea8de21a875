//! What a store takes on disk, and what is left there.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes that the files under a folder take on disk: allocated blocks, so that holes are not
/// counted; hard links once. A path may be a file too.
pub fn disk_bytes(path: &Path) -> u64 {
    let mut total = 0;
    let mut seen = BTreeSet::new();
    let mut paths: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(path) = paths.pop() {
        // A file may go away between the listing and the look at it.
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir() {
            let Ok(entries) = std::fs::read_dir(&path) else { continue };
            paths.extend(entries.flatten().map(|entry| entry.path()));
        } else if meta.nlink() < 2 || seen.insert((meta.dev(), meta.ino())) {
            total += meta.blocks() * 512;
        }
    }
    total
}

/// Bytes that this user can still write on the file system of `path`; `None` if it does not tell.
pub fn free_bytes(path: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero bytes are a valid statvfs.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends with a zero and `answer` is valid for writing for the length of the call.
    let code = unsafe { libc::statvfs(path.as_ptr(), &mut answer) };
    (code == 0).then(|| answer.f_bavail as u64 * answer.f_frsize as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_links_count_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), vec![1u8; 10_000]).unwrap();
        let alone = disk_bytes(dir.path());
        std::fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
        assert_eq!(disk_bytes(dir.path()), alone);
        assert_eq!(disk_bytes(&dir.path().join("a")), alone);
        assert!(alone >= 10_000);
    }

    #[test]
    fn holes_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("sparse")).unwrap();
        file.set_len(1 << 30).unwrap();
        assert!(disk_bytes(dir.path()) < 1 << 20);
    }

    #[test]
    fn a_disk_has_room() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
        assert_eq!(free_bytes(Path::new("/no such folder")), None);
    }
}
