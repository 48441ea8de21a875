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
use std::collections::VecDeque;
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
    /// In the order in which they came, numbered.
    files: VecDeque<(u64, Gone)>,
    /// The number of the next one.
    next: u64,
    /// Those that are being seen to.
    under_way: Vec<u64>,
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
struct UnderWay<'a> {
    gone: &'a GoneFiles,
    number: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.gone.left.lock().under_way.retain(|number| *number != self.number);
        self.gone.done.notify_all();
    }
}

impl GoneFiles {
    /// From now on a thread takes what is left.
    pub fn begin(&self) {
        self.left.lock().is_taken = true;
    }

    /// Whether the engine's threads are to remove their files at once, since space is limited.
    /// Asked under a lock, so that the last answer is of the latest limit.
    pub fn hurry(&self, hurries: impl FnOnce() -> bool) {
        let mut left = self.left.lock();
        left.hurries = hurries();
    }

    /// Leaves it to who takes them; answers with it if the calling thread has to see to it.
    pub fn leave(&self, gone: Gone) -> Option<Gone> {
        let mut left = self.left.lock();
        let engines = matches!(gone, Gone::File(_)) && IS_ENGINES.get();
        let at_once = engines && (left.hurries || left.files.len() >= WAITING_MAX);
        if !left.is_taken || at_once {
            return Some(gone);
        }
        let number = left.next;
        left.next += 1;
        left.files.push_back((number, gone));
        None
    }

    /// Whether any are left, or being seen to.
    pub fn are_there(&self) -> bool {
        let left = self.left.lock();
        !left.files.is_empty() || !left.under_way.is_empty()
    }

    /// Sees to one of those that were left; whether there was one.
    pub fn see_to_one(&self, remove: impl FnOnce(Gone)) -> bool {
        self.see_to_one_before(u64::MAX, remove)
    }

    fn see_to_one_before(&self, end: u64, remove: impl FnOnce(Gone)) -> bool {
        let mut left = self.left.lock();
        let Some((number, gone)) = left.files.pop_front_if(|(number, _)| *number < end) else {
            return false;
        };
        left.under_way.push(number);
        drop(left);
        let _under_way = UnderWay { gone: self, number };
        remove(gone);
        true
    }

    /// Sees to all that were left until now, and waits for who sees to one of them; not for those
    /// that others leave meanwhile, which may never end.
    pub fn see_to_all(&self, remove: impl Fn(Gone)) {
        let end = self.left.lock().next;
        while self.see_to_one_before(end, &remove) {}
        let mut left = self.left.lock();
        while left.under_way.iter().any(|number| *number < end) {
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
        self.left.lock().files.drain(..).map(|(_, gone)| gone).collect()
    }
}

impl std::fmt::Debug for GoneFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GoneFiles")
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_what_is_left_does_not_wait_for_what_comes_later() {
        let gone = GoneFiles::default();
        gone.begin();
        let leave = || assert!(gone.leave(Gone::Held(Box::new(()))).is_none());
        leave();
        leave();
        let seen = Cell::new(0);
        gone.see_to_all(|_| {
            leave();
            seen.set(seen.get() + 1);
            assert!(seen.get() < 10, "it goes on as long as others leave files");
        });
        assert_eq!((seen.get(), gone.take().len()), (2, 2));
    }

    #[test]
    fn files_wait_in_the_order_in_which_they_came() {
        let gone = GoneFiles::default();
        gone.begin();
        for name in ["a", "b", "c"] {
            assert!(gone.leave(Gone::File(PathBuf::from(name))).is_none());
        }
        let mut order = Vec::new();
        while gone.see_to_one(|gone| match gone {
            Gone::File(path) => order.push(path),
            Gone::Held(_) => unreachable!("files were left"),
        }) {}
        assert_eq!(order, ["a", "b", "c"].map(PathBuf::from));
    }
}
