//! The dictionaries that tables of a database have: each once in memory, however many tables have
//! it, and the ones used last kept ready for the tables to come.

use super::format::compress::Dictionary;
use crate::base::rank;
use crate::base::sync::Mutex;
use crate::cache::Memory;
use crate::fs::process::{Process, process};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Dictionaries that are kept ready take at most this share of the memory: one in so many.
const KEPT_SHARE: u64 = 128;
/// And those that no tree has yet.
const TRIED_SHARE: u64 = 512;

/// Dictionaries by their content. Thread-safe.
#[derive(Debug)]
pub struct Dictionaries {
    memory: Arc<Memory>,
    state: Mutex<State, { rank::DICTIONARIES }>,
    /// A fork shares nothing: a thread that is not there may have held the lock.
    process: Process,
}

#[derive(Debug, Default)]
struct State {
    /// All that anyone has, with their ids.
    known: Vec<(u32, Weak<Dictionary>)>,
    /// At this length those that are no more are taken out.
    prune_at: usize,
    /// The ones used last, the last one at the end.
    kept: VecDeque<Arc<Dictionary>>,
    /// The same of those that no tree has yet.
    tried: VecDeque<Arc<Dictionary>>,
}

impl Dictionaries {
    /// None yet; their memory is counted in `memory`.
    pub fn new(memory: &Arc<Memory>) -> Dictionaries {
        let (state, process) = (Mutex::default(), process());
        Dictionaries { memory: Arc::clone(memory), state, process }
    }

    /// The dictionary with the same content that others have already, or this one.
    pub fn share(&self, dictionary: Arc<Dictionary>) -> Arc<Dictionary> {
        if !self.process.is_this() {
            return dictionary;
        }
        // Dropped after the lock is released: a last reference may go with them.
        let mut seen = Vec::new();
        let mut state = self.state.lock();
        let alike = |(id, other): &(u32, Weak<Dictionary>)| {
            let other = (*id == dictionary.id()).then(|| other.upgrade())??;
            seen.push(Arc::clone(&other));
            (other.bytes() == dictionary.bytes()).then_some(other)
        };
        let found = state.known.iter().find_map(alike);
        if let Some(found) = found {
            return found;
        }
        if state.known.len() >= state.prune_at {
            state.known.retain(|(_, known)| known.strong_count() > 0);
            state.prune_at = 2 * state.known.len() + 64;
        }
        state.known.push((dictionary.id(), Arc::downgrade(&dictionary)));
        drop(state);
        dictionary.count_in(&self.memory);
        dictionary
    }

    /// Keeps one ready that no tree has yet, instead of others like it.
    pub fn keep_tried(&self, dictionary: &Arc<Dictionary>) {
        let room = self.memory.total() / TRIED_SHARE;
        let gone = keep_last(&mut self.state.lock().tried, dictionary, room);
        drop(gone);
    }

    /// Keeps this one ready, instead of those that were not used for the longest time.
    pub fn keep(&self, dictionary: &Arc<Dictionary>) {
        let mut state = self.state.lock();
        state.tried.retain(|other| !Arc::ptr_eq(other, dictionary));
        let gone = keep_last(&mut state.kept, dictionary, self.memory.total() / KEPT_SHARE);
        drop(state);
        drop(gone);
    }
}

/// Puts a dictionary at the end, and takes as many from the front as are too many for so many
/// bytes.
fn keep_last(
    kept: &mut VecDeque<Arc<Dictionary>>,
    dictionary: &Arc<Dictionary>,
    room: u64,
) -> Vec<Arc<Dictionary>> {
    let mut gone = Vec::new();
    if kept.back().is_some_and(|last| Arc::ptr_eq(last, dictionary)) {
        return gone;
    }
    if let Some(at) = kept.iter().position(|other| Arc::ptr_eq(other, dictionary)) {
        gone.extend(kept.remove(at));
    }
    kept.push_back(Arc::clone(dictionary));
    let bytes = |kept: &VecDeque<Arc<Dictionary>>| -> usize {
        kept.iter().map(|dictionary| dictionary.memory_bytes()).sum()
    };
    while kept.len() > 1 && bytes(kept) as u64 > room {
        gone.extend(kept.pop_front());
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Cache, Weigh};

    struct Nothing;

    impl Weigh for Nothing {
        fn bytes(&self) -> usize {
            0
        }
    }

    fn dictionary(number: usize) -> Arc<Dictionary> {
        let row = |at: usize| format!("{number} is the number of {at}, of which there are many");
        let samples: Vec<String> = (0..200).map(row).collect();
        let samples: Vec<&[u8]> = samples.iter().map(String::as_bytes).collect();
        Arc::new(Dictionary::make(&samples.concat(), &samples, 3).unwrap())
    }

    #[test]
    fn each_is_in_memory_once_and_counted_while_anyone_has_it() {
        let cache = Arc::new(Cache::<Nothing>::new(8 << 20));
        let memory = Arc::new(Memory::new(8 << 20, cache));
        let all = Dictionaries::new(&memory);
        let one = all.share(dictionary(1));
        let counted = memory.meta();
        assert_eq!(counted, one.memory_bytes() as u64);
        assert!(Arc::ptr_eq(&all.share(dictionary(1)), &one) && memory.meta() == counted);
        let two = all.share(dictionary(2));
        assert!(!Arc::ptr_eq(&two, &one) && memory.meta() > counted);
        drop(two);
        assert_eq!(memory.meta(), counted);
        // Kept are as many as suit the memory, the last ones.
        let weak: Vec<_> = (10..30)
            .map(|number| {
                let dictionary = all.share(dictionary(number));
                all.keep(&dictionary);
                Arc::downgrade(&dictionary)
            })
            .collect();
        let kept = weak.iter().filter(|weak| weak.strong_count() > 0).count();
        assert!((1..10).contains(&kept), "{kept}");
        assert!(weak.iter().rev().take(kept).all(|weak| weak.strong_count() == 1));
        assert!(memory.meta() <= counted + (8 << 20) / KEPT_SHARE);
    }
}
