//! The transactions that are under way, for those who want to know what a database is busy with.
//! A transaction is added at its beginning and taken out at its end: one short list's mutex each.

use super::deadlock::Waiting;
use super::shard::TxnId;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};

/// How many lists there are: transactions that begin one after the other are in different ones.
const LISTS: usize = 16;

/// What is known of a transaction from its beginning on.
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    /// When it began, in clock nanoseconds.
    pub began: u64,
    /// The name of its isolation level.
    pub isolation: &'static str,
    /// Whether it takes no locks.
    pub optimistic: bool,
}

/// What others may know of a transaction.
#[derive(Debug, Default)]
pub(super) struct Seen {
    about: About,
    writes: AtomicU64,
    bytes: AtomicU64,
    keys: AtomicU64,
}

impl Seen {
    pub fn new(about: About) -> Seen {
        Seen { about, ..Seen::default() }
    }

    #[inline]
    pub fn note_writes(&self, writes: u64, bytes: u64) {
        self.writes.store(writes, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub fn note_keys(&self, keys: usize) {
        self.keys.store(keys as u64, Ordering::Relaxed);
    }
}

/// A transaction that has not ended, as of a moment ago.
#[derive(Clone, Debug)]
pub struct Live {
    /// Its number.
    pub id: TxnId,
    /// What is known from its beginning on.
    pub about: About,
    /// How many writes it has made.
    pub writes: u64,
    /// What these take, in bytes.
    pub bytes: u64,
    /// How many keys it has locked.
    pub keys: u64,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// For whom.
    pub blockers: Vec<TxnId>,
}

type List<T> = Mutex<Vec<(TxnId, Arc<T>)>>;

/// The transactions that have not ended, each with what is shared with its thread.
#[derive(Debug)]
pub(super) struct Registry<T> {
    lists: Vec<List<T>>,
}

impl<T> Default for Registry<T> {
    fn default() -> Registry<T> {
        Registry { lists: (0..LISTS).map(|_| Mutex::default()).collect() }
    }
}

impl<T: AsRef<Seen>> Registry<T> {
    fn list(&self, id: TxnId) -> &List<T> {
        &self.lists[id as usize % LISTS]
    }

    pub fn add(&self, id: TxnId, shared: &Arc<T>) {
        self.list(id).lock().push((id, shared.clone()));
    }

    pub fn remove(&self, id: TxnId) {
        let mut list = self.list(id).lock();
        if let Some(at) = list.iter().position(|one| one.0 == id) {
            list.swap_remove(at);
        }
    }

    /// All, oldest first.
    pub fn all(&self) -> Vec<Live> {
        let mut all = Vec::new();
        for list in &self.lists {
            for (id, shared) in &*list.lock() {
                let seen: &Seen = (**shared).as_ref();
                all.push(Live {
                    id: *id,
                    about: seen.about,
                    writes: seen.writes.load(Ordering::Relaxed),
                    bytes: seen.bytes.load(Ordering::Relaxed),
                    keys: seen.keys.load(Ordering::Relaxed),
                    waiting: None,
                    blockers: Vec::new(),
                });
            }
        }
        all.sort_unstable_by_key(|live| live.id);
        all
    }
}
