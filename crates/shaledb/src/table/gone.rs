//! Files that go, and that a user's thread was the last to hold.
//!
//! To remove a file, or to close one that was removed, takes the system as long as the device takes
//! to be told: 10 to 60 ms for each 64 MB, and a merge leaves many files at once. So a look-up or a
//! commit that happens to be the last to let go of them hands them to a thread of the engine.

use crate::base::rank;
use crate::base::sync::Mutex;
use std::cell::Cell;
use std::path::PathBuf;

thread_local! {
    static IS_ENGINES: Cell<bool> = const { Cell::new(false) };
}

/// Says that the calling thread is the engine's own: nobody waits for what it does.
pub fn engines_own_thread() {
    IS_ENGINES.set(true);
}

/// A file that nobody refers to any more.
pub struct Gone {
    /// What holds it open, if anything does.
    pub held: Box<dyn Send>,
    /// Its name, if that is to be removed still.
    pub path: Option<PathBuf>,
}

#[derive(Default)]
struct Left {
    files: Vec<Gone>,
    /// Whether a thread takes them.
    is_taken: bool,
}

/// What users' threads have left for another to close and remove.
#[derive(Default)]
pub struct GoneFiles {
    left: Mutex<Left, { rank::GONE_FILES }>,
}

impl GoneFiles {
    /// From now on a thread takes what is left.
    pub fn begin(&self) {
        self.left.lock().is_taken = true;
    }

    /// Leaves the file to who takes them; answers with it if the calling thread has to see to it.
    pub fn leave(&self, gone: Gone) -> Option<Gone> {
        if IS_ENGINES.get() {
            return Some(gone);
        }
        let mut left = self.left.lock();
        if !left.is_taken {
            return Some(gone);
        }
        left.files.push(gone);
        None
    }

    /// One of those that were left, and whether there are more.
    pub fn take_one(&self) -> (Option<Gone>, bool) {
        let files = &mut self.left.lock().files;
        (files.pop(), !files.is_empty())
    }

    /// All that were left.
    pub fn take(&self) -> Vec<Gone> {
        std::mem::take(&mut self.left.lock().files)
    }

    /// As [`GoneFiles::take`], for the last time.
    pub fn end(&self) -> Vec<Gone> {
        self.left.lock().is_taken = false;
        self.take()
    }
}

impl std::fmt::Debug for GoneFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GoneFiles")
    }
}
