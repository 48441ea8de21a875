//! Files that go.
//!
//! To remove a file, or to close one that was removed, takes the system as long as the device takes
//! to be told: 10 to 60 ms for each 64 MB, and a merge leaves many files at once. So a look-up or a
//! commit that happens to be the last to let go of them hands them to a thread of the engine, and
//! a merge, whose threads would spend up to a fifth of their time so, does the same as long as
//! that thread keeps up and nobody waits for room.

use crate::base::rank;
use crate::base::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::path::PathBuf;

/// So many files may wait before a merge removes its own: they still take space.
const WAITING_MAX: usize = 16;

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
    /// Whether room is short, so that the engine's threads remove their files at once.
    hurries: bool,
}

/// What threads have left for another to close and remove.
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

    /// Whether the engine's threads are to remove their files at once, since space is limited.
    pub fn hurry(&self, hurries: bool) {
        self.left.lock().hurries = hurries;
    }

    /// Leaves it to who takes them; answers with it if the calling thread has to see to it.
    pub fn leave(&self, gone: Gone) -> Option<Gone> {
        let mut left = self.left.lock();
        let engines = matches!(gone, Gone::File(_)) && IS_ENGINES.get();
        let at_once = engines && (left.hurries || left.files.len() >= WAITING_MAX);
        if !left.is_taken || at_once {
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

    /// What threads have left.
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
