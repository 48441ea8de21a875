//! The folder a run works in. Nothing is removed that this code did not make.

use crate::engine::Result;
use crate::options::{BenchOptions, Benchmark};
use std::path::{Path, PathBuf};

const MARKER: &str = "shale-bench.txt";
const MARKER_TEXT: &str = "A working folder of `shale bench kv`. Fills empty the folders in it.\n";

/// The engine's folder inside the working folder.
pub(super) struct Folder {
    base: PathBuf,
    data: PathBuf,
    made: bool,
}

impl Folder {
    /// Makes the working folder, or takes an empty one, or one that it made earlier.
    pub(super) fn prepare(options: &BenchOptions, engine: &str) -> Result<Folder> {
        let base = match &options.db {
            Some(path) => path.clone(),
            None => scratch(),
        };
        let made = !base.exists();
        std::fs::create_dir_all(&base)
            .map_err(|error| format!("could not make the folder {}: {error}", base.display()))?;
        let marker = base.join(MARKER);
        if !marker.exists() {
            let mut entries = std::fs::read_dir(&base)
                .map_err(|error| format!("could not read {}: {error}", base.display()))?;
            if entries.next().is_some() {
                return Err(format!(
                    "{} is neither empty nor a working folder of an earlier run (it has no \
                     {MARKER}): name another with --db",
                    base.display()
                )
                .into());
            }
            std::fs::write(&marker, MARKER_TEXT)
                .map_err(|error| format!("could not write {}: {error}", marker.display()))?;
        }
        let data = base.join(engine);
        Ok(Folder { base, data, made })
    }

    /// Where the engine's files are.
    pub(super) fn path(&self) -> &Path {
        &self.data
    }

    /// Removes the engine's files.
    pub(super) fn clear(&mut self) -> Result<()> {
        if self.data.exists() {
            std::fs::remove_dir_all(&self.data)
                .map_err(|error| format!("could not remove {}: {error}", self.data.display()))?;
        }
        Ok(())
    }

    /// Refuses to read or overwrite a database that was never filled.
    pub(super) fn need_data(&self, benchmark: Benchmark) -> Result<()> {
        if benchmark.is_fill() || self.data.exists() {
            return Ok(());
        }
        Err(format!(
            "{} needs a database and there is none in {}: begin with fillseq or fillrandom, or \
             name the folder of an earlier run (one with --keep) with --db",
            benchmark.name(),
            self.data.display()
        )
        .into())
    }

    /// Removes the engine's files, and the working folder if this run made it.
    pub(super) fn finish(mut self, keep: bool) -> Result<()> {
        if keep {
            return Ok(());
        }
        self.clear()?;
        if self.made {
            let _ = std::fs::remove_file(self.base.join(MARKER));
            // Another engine's folder may be beside ours: then it stays.
            let _ = std::fs::remove_dir(&self.base);
        }
        Ok(())
    }
}

/// A new name under /var/tmp, which is on a disk where /tmp may be memory.
fn scratch() -> PathBuf {
    let disk = Path::new("/var/tmp");
    let base = if disk.is_dir() { disk.to_owned() } else { std::env::temp_dir() };
    base.join(format!("shale-bench-{}", std::process::id()))
}
