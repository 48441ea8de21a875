//! A clock by which a test does something in the middle of a call.

use crate::fs::Clock;
use std::sync::Mutex;

type Look = Box<dyn FnMut() -> bool + Send>;

/// A clock that stands still. Each look at it calls what a test has given it, up to the call that
/// answers that it was what the test has waited for.
#[derive(Default)]
pub(super) struct Surprise(Mutex<Option<Look>>);

impl Surprise {
    /// Calls `look` from now on.
    pub fn arm(&self, look: impl FnMut() -> bool + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(look));
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }
}

impl Clock for Surprise {
    fn now_nanos(&self) -> u64 {
        // Not under the lock: what it does looks at the clock as well.
        let look = self.0.lock().unwrap().take();
        if let Some(mut look) = look
            && !look()
        {
            *self.0.lock().unwrap() = Some(look);
        }
        1
    }

    fn thread_cpu_nanos(&self) -> u64 {
        0
    }

    fn sleep_nanos(&self, _: u64) {}
}
