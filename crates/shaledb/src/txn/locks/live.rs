//! The transactions that are under way, for those who want to know what a database is busy with.
//! A transaction is added at its beginning and taken out at its end: one short list's mutex each,
//! that of the thread which begins it. What it shares is kept for the next one.

use super::deadlock::Waiting;
use super::lock::TxnId;
use crate::base::rank;
use crate::base::shards::Shards;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};

/// How many that have ended a list keeps for others.
const SPARE: usize = 8;

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

#[derive(Debug)]
struct List<T> {
    live: Vec<(TxnId, Arc<T>)>,
    ended: Vec<Arc<T>>,
}

/// The transactions that have not ended, each with what is shared with its thread.
#[derive(Debug)]
pub(super) struct Registry<T> {
    lists: Shards<Mutex<List<T>, { rank::LIVE }>>,
}

impl<T> Default for Registry<T> {
    fn default() -> Registry<T> {
        let list = || List { live: Vec::new(), ended: Vec::new() };
        Registry { lists: Shards::new(|| Mutex::new(list())) }
    }
}

impl<T: AsRef<Seen>> Registry<T> {
    /// Adds a transaction; answers with what it shares, and the list to give to `remove`.
    pub fn add(&self, id: TxnId, shared: T) -> (usize, Arc<T>) {
        let (list_at, list) = self.lists.local();
        let mut list = list.lock();
        let shared = match list.ended.pop() {
            Some(mut ended) => match Arc::get_mut(&mut ended) {
                Some(free) => {
                    *free = shared;
                    ended
                }
                // Somebody still looks at it.
                None => Arc::new(shared),
            },
            None => Arc::new(shared),
        };
        debug_assert!(list.live.iter().all(|one| one.0 != id), "a number is given once");
        list.live.push((id, shared.clone()));
        (list_at, shared)
    }

    /// Takes a transaction out.
    pub fn remove(&self, id: TxnId, list_at: usize) {
        let mut list = self.lists.at(list_at).lock();
        debug_assert!(list.live.iter().any(|one| one.0 == id), "who ends was live");
        if let Some(at) = list.live.iter().position(|one| one.0 == id) {
            let (_, shared) = list.live.swap_remove(at);
            if list.ended.len() < SPARE {
                list.ended.push(shared);
            }
        }
    }

    /// All, oldest first.
    pub fn all(&self) -> Vec<Live> {
        let mut all = Vec::new();
        for list in self.lists.iter() {
            for (id, shared) in &list.lock().live {
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
