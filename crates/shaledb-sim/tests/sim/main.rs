//! The tests of the engine in the simulated world. Each prints the seed it failed with, and
//! `SHALE_SEED=<seed>` runs that seed alone; `SHALE_EXHAUSTIVE=1` leaves nothing out.

mod checkpoint;
mod corrupt;
mod crash;
mod dictionary;
mod fault;
mod flush;
mod failed_sync;
mod follower;
mod isolation;
mod metamorphic;
mod model;
mod online;
mod prepared;
mod stages;
mod space;
mod threads;
mod tracked;
mod undecided;
mod unique;
mod unsynced;
mod verify;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Says which seed a panic happened with, and ends a run that hangs.
struct Case {
    label: String,
    done: Option<mpsc::Sender<()>>,
}

/// No case takes nearly as long.
const HANG: Duration = Duration::from_secs(120);

impl Case {
    fn new(label: String) -> Case {
        let (done, wait) = mpsc::channel::<()>();
        let name = label.clone();
        let late = Arc::new(AtomicBool::new(false));
        std::thread::spawn(move || {
            if wait.recv_timeout(HANG) == Err(mpsc::RecvTimeoutError::Timeout) {
                late.store(true, Ordering::Relaxed);
                eprintln!("{name} hangs");
                std::process::abort();
            }
        });
        Case { label, done: Some(done) }
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        self.done = None;
        if std::thread::panicking() {
            eprintln!("failed: {}", self.label);
        }
    }
}
