//! Which process this is: a fork of the one that opened a database must not write to it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often this process has been forked off another, as far as that can be told.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A process, told from its forks without a system call.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    id: u32,
    /// `None` if forks are not counted.
    forks: Option<u32>,
}

/// This process.
pub fn process() -> Process {
    static COUNTED: OnceLock<bool> = OnceLock::new();
    let counted = COUNTED.get_or_init(|| {
        // SAFETY: the function that is called in each child does nothing but count, in memory that
        // is there for as long as this code is: the C library forgets it when that is unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(count_fork)) == 0 }
    });
    let forks = counted.then(|| FORKS.load(Ordering::Relaxed));
    Process { id: std::process::id(), forks }
}

impl Process {
    /// Whether it is the one that asks, and no fork of it.
    #[inline]
    pub fn is_this(self) -> bool {
        match self.forks {
            Some(forks) => FORKS.load(Ordering::Relaxed) == forks,
            None => std::process::id() == self.id,
        }
    }

    /// The number that the system gave it.
    pub fn id(self) -> u32 {
        self.id
    }
}
