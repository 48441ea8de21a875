//! What takes several calls of a file system: files and directories that a crash leaves whole.

use super::Fs;
use crate::base::error::Result;
use std::path::{Path, PathBuf};

/// Writes a small file so that after a crash either the old or the new content is there: written
/// beside (with the extension `tmp`, which `path` must not have), synced, renamed over, directory
/// synced.
///
/// ```
/// # let fs = shaledb::Env::memory().fs;
/// # let path = std::path::Path::new("/CURRENT");
/// shaledb::fs::replace(&*fs, path, b"old")?;
/// shaledb::fs::replace(&*fs, path, b"new")?;
/// assert_eq!(shaledb::fs::read_all(&*fs, path)?, b"new");
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn replace(fs: &dyn Fs, path: &Path, content: &[u8]) -> Result<()> {
    let beside: PathBuf = path.with_extension("tmp");
    assert_ne!(beside, path, "the old content stays until the new one is there");
    let mut file = fs.create(&beside)?;
    file.append(content)?;
    assert_eq!(file.len(), content.len() as u64, "nothing else is in the new file");
    file.sync()?;
    drop(file);
    fs.rename(&beside, path)?;
    match path.parent() {
        Some(dir) => fs.sync_dir(dir),
        None => Ok(()),
    }
}

/// Creates a directory and those above it, and makes the names of all of them durable: also of
/// those that are there already, since whoever made them may have been killed before this. Answers
/// with those that it made, the outermost first; after an error none of them is left, if that can
/// be helped.
///
/// ```
/// use std::path::Path;
///
/// # let fs = shaledb::Env::memory().fs;
/// let made = shaledb::fs::create_dirs(&*fs, "/data/2026".as_ref())?;
/// assert_eq!(made, [Path::new("/data"), Path::new("/data/2026")]);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn create_dirs(fs: &dyn Fs, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut missing = Vec::new();
    for dir in dir.ancestors() {
        if dir.as_os_str().is_empty() || fs.exists(dir)? {
            break;
        }
        missing.push(dir.to_owned());
    }
    let make = || -> Result<()> {
        fs.create_dir_all(dir)?;
        for (index, parent) in dir.ancestors().skip(1).enumerate() {
            match fs.sync_dir(parent) {
                // We have made nothing in it, nor has anybody else without more rights.
                Err(error) if index >= missing.len() && error.is_permission_denied() => {}
                other => other?,
            }
        }
        Ok(())
    };
    let result = make();
    missing.reverse();
    assert!(missing.is_sorted_by(|a, b| b.parent() == Some(a)), "each is made in the one before");
    result.inspect_err(|_| remove_dirs(fs, &missing))?;
    Ok(missing)
}

/// Removes directories that [`create_dirs`] made, as far as they are empty.
///
/// ```
/// # let fs = shaledb::Env::memory().fs;
/// let made = shaledb::fs::create_dirs(&*fs, "/data/2026".as_ref())?;
/// shaledb::fs::remove_dirs(&*fs, &made);
/// assert!(!fs.exists("/data".as_ref())?);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn remove_dirs(fs: &dyn Fs, made: &[PathBuf]) {
    for dir in made.iter().rev() {
        let _ = fs.remove_dir(dir);
    }
}

/// Reads a whole file into memory.
///
/// ```
/// # let fs = shaledb::Env::memory().fs;
/// # let path = std::path::Path::new("/greeting");
/// fs.create(path)?.append(b"hello")?;
/// assert_eq!(shaledb::fs::read_all(&*fs, path)?, b"hello");
/// # Ok::<(), shaledb::Error>(())
/// ```
pub fn read_all(fs: &dyn Fs, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open(path)?;
    let mut content = vec![0; file.len()? as usize];
    file.read_at(0, &mut content)?;
    Ok(content)
}
