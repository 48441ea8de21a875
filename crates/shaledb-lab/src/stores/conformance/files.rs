//! A copy of a store's files as they are at one moment.

use crate::stores::engine::Result;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Copies a folder whose files may change under it: until one copy began and ended with the same
/// files, which the end of a process would have left as well.
pub(super) fn copy_still(from: &Path, to: &Path) -> Result<()> {
    for _ in 0..200 {
        let before = stamps(from)?;
        if copy_folder(from, to).is_ok() && stamps(from)? == before {
            return Ok(());
        }
        std::fs::remove_dir_all(to)?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("the files in {} do not come to rest", from.display()).into())
}

type Stamps = BTreeMap<PathBuf, (u64, SystemTime)>;

/// Size and time of every file.
fn stamps(folder: &Path) -> std::io::Result<Stamps> {
    let mut all = Stamps::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(data) if data.is_dir() => all.extend(stamps(&entry.path())?),
            Ok(data) => {
                all.insert(entry.path(), (data.len(), data.modified()?));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
