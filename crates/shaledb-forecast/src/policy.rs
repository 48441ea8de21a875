//! Codecs chosen as the engine chooses them: its own price and choice, fed by what the model does.

use crate::tree::Tree;
use shaledb::Codec;
use shaledb::base::config::LEVELS;
use shaledb::compaction::policy::auto::{
    self, EVERY_NANOS, LEVEL_SECONDS, LevelLoad, Price, SECONDS, TreeLoad, Window,
};

/// What was done since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Thread seconds of background work, and of these such in which it waited for the device.
    pub busy: f64,
    /// See `busy`.
    pub waiting: f64,
    /// CPU seconds of background work, and of users.
    pub background_cpu: f64,
    /// See `background_cpu`.
    pub users_cpu: f64,
    /// Bytes that background work read or wrote, whichever is more.
    pub bytes: f64,
    /// Seconds in which writers were slowed.
    pub slowed: f64,
    /// Bytes before compression, by level: compressed, and decompressed for users.
    pub levels: [LevelLoad; LEVELS],
}

/// When codecs were chosen last, and by what.
#[derive(Debug, Default)]
pub struct Policy {
    at: f64,
    done: Done,
    window: Option<Window>,
    price: Price,
    loads: [LevelLoad; LEVELS],
}

impl Policy {
    /// What is done meanwhile is added here.
    pub fn done(&mut self) -> &mut Done {
        &mut self.done
    }

    /// Chooses codecs anew, if it is time for that.
    pub fn look(&mut self, tree: &mut Tree, now: f64, still: &Still) {
        let seconds = now - self.at;
        let set = &tree.settings.codecs.set;
        let has_auto = [set.upper, set.middle, set.bottommost].contains(&Codec::Auto);
        if seconds * 1e9 < EVERY_NANOS as f64 || !has_auto {
            return;
        }
        self.at = now;
        let done = std::mem::take(&mut self.done);
        let share = seconds / (seconds + LEVEL_SECONDS);
        for (load, new) in self.loads.iter_mut().zip(&done.levels) {
            load.written += share * (new.written / seconds - load.written);
            load.read += share * (new.read / seconds - load.read);
        }
        let last = self.window.unwrap_or(Window { dilation: 1.0, ..Window::default() });
        let each = |seconds: f64, before: f64| {
            if done.bytes < 4096.0 { before } else { seconds * 1e9 / done.bytes }
        };
        let new = Window {
            cores: still.cores,
            threads: still.threads,
            busy: done.busy / seconds,
            waiting: done.waiting / seconds,
            background_cpu: done.background_cpu / seconds,
            users_cpu: done.users_cpu / seconds,
            dilation: still.dilation,
            storage_nanos: each(done.waiting, last.storage_nanos) + still.byte_nanos,
            storage_cpu_nanos: still.byte_nanos,
            user_read_nanos: still.user_read_nanos,
            slowed: done.slowed / seconds,
            at_rest: still.at_rest,
        };
        let window = self.window.map_or(new, |old| old.blend(&new, seconds / (seconds + SECONDS)));
        let costs = [Some(tree.costs); LEVELS];
        let load = TreeLoad { costs, levels: self.loads, chosen: tree.settings.codecs.chosen };
        self.price = auto::price(&window, &self.price, std::slice::from_ref(&load));
        self.window = Some(window);
        tree.settings.codecs.chosen = auto::choose(&self.price, &load);
    }
}

/// What does not have to be averaged.
#[derive(Clone, Copy, Debug)]
pub struct Still {
    /// Cores, and background threads.
    pub cores: f64,
    /// See `cores`.
    pub threads: f64,
    /// How many times its CPU time work takes, since threads share cores.
    pub dilation: f64,
    /// Nanoseconds of CPU for a byte read or written.
    pub byte_nanos: f64,
    /// Nanoseconds that a user's read waits for a byte.
    pub user_read_nanos: f64,
    /// Whether nothing is being written.
    pub at_rest: bool,
}
