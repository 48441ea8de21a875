//! Files that go, and that a user's thread was the last to hold.
//!
//! To remove a file, or to close one that was removed, takes the system as long as the device takes
//! to be told: 10 to 60 ms for each 64 MB, and a merge leaves many files at once. So a look-up or a
//! commit that happens to be the last to let go of them hands them to a thread of the engine.

use crate::base::rank;
use crate::base::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::path::PathBuf;

thread_local! {
    static IS_ENGINES: Cell<bool> = const { Cell::new(false) };
}

/// Says that the calling thread is the engine's own.
pub fn engines_own_thread() {
    IS_ENGINES.set(true);
}

/// Something of a file that nobody uses any more.
pub enum Gone {
    /// A file that is to be removed.
    File(PathBuf),
    /// What may be the last to hold a file that was removed.
    Held(Box<dyn Send>),
}

#[derive(Default)]
struct Left {
    files: Vec<Gone>,
    /// How many are being seen to.
    under_way: usize,
    /// Whether a thread takes them.
    is_taken: bool,
}

/// What users' threads have left for another to close and remove.
#[derive(Default)]
pub struct GoneFiles {
    left: Mutex<Left, { rank::GONE_FILES }>,
    done: Condvar,
}

/// Says at its end that one has been seen to, also after a panic.
struct UnderWay<'a>(&'a GoneFiles);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.left.lock().under_way -= 1;
        self.0.done.notify_all();
    }
}

impl GoneFiles {
    /// From now on a thread takes what is left.
    pub fn begin(&self) {
        self.left.lock().is_taken = true;
    }

    /// Leaves it to who takes them; answers with it if the calling thread has to see to it. The
    /// engine's own do so for files: whoever waits for a merge's end finds its inputs gone.
    pub fn leave(&self, gone: Gone) -> Option<Gone> {
        if matches!(gone, Gone::File(_)) && IS_ENGINES.get() {
            return Some(gone);
        }
        let mut left = self.left.lock();
        if !left.is_taken {
            return Some(gone);
        }
        left.files.push(gone);
        None
    }

    /// Whether any are left, or being seen to.
    pub fn are_there(&self) -> bool {
        let left = self.left.lock();
        !left.files.is_empty() || left.under_way > 0
    }

    /// Sees to one of those that were left; whether there was one.
    pub fn see_to_one(&self, remove: impl FnOnce(Gone)) -> bool {
        let mut left = self.left.lock();
        let Some(gone) = left.files.pop() else { return false };
        left.under_way += 1;
        drop(left);
        let _under_way = UnderWay(self);
        remove(gone);
        true
    }

    /// Sees to all that were left, and waits for who sees to one.
    pub fn see_to_all(&self, remove: impl Fn(Gone)) {
        while self.see_to_one(&remove) {}
        let mut left = self.left.lock();
        while left.under_way > 0 {
            left = self.done.wait(left);
        }
    }

    /// As [`GoneFiles::see_to_all`], for the last time.
    pub fn end(&self, remove: impl Fn(Gone)) {
        self.left.lock().is_taken = false;
        self.see_to_all(remove);
    }

    /// What users' threads have left.
    #[cfg(test)]
    pub fn take(&self) -> Vec<Gone> {
        std::mem::take(&mut self.left.lock().files)
    }
}

impl std::fmt::Debug for GoneFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GoneFiles")
    }
}
