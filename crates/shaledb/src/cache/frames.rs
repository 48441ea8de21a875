//! Places by number for what the cache holds: who has found a value once finds it again without
//! the cache's table, whose every look-up waits for memory several times.
//!
//! A [`Slot`], one for each block of a table, keeps the number of the frame that its value was put
//! in, and the frame's generation. A frame's generation changes whenever its value leaves, before
//! the next one comes. So a slot that is out of date finds nothing, and never another's value.

use crate::base::prefetch;
use crate::base::rank;
use crate::base::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use std::sync::atomic::{AtomicUsize, Ordering::Release};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The frames of the first chunk. Chunks double up to the greatest size, so that nobody waits long
/// for one to be made; then they have that size.
const CHUNK_FRAMES_FIRST: usize = 256;
const CHUNK_FRAMES_MAX: usize = CHUNK_FRAMES_FIRST << DOUBLINGS;
const DOUBLINGS: usize = 6;
/// The frames of the chunks before those of the greatest size.
const FRAMES_DOUBLING: usize = CHUNK_FRAMES_MAX - CHUNK_FRAMES_FIRST;
/// For 16 million values. More are found by their keys.
const CHUNKS: usize = DOUBLINGS + 1024;
/// What a frame keeps of its value.
pub(super) const FRAME_BYTES: u64 = 48;
/// An epoch ends when one of so many values has left the cache.
const EPOCH_PARTS: usize = 8;

const _: () =
    assert!(FRAMES_DOUBLING + (CHUNKS - DOUBLINGS) * CHUNK_FRAMES_MAX < u32::MAX as usize);

/// A frame and its generation, which is never 0 where there is a frame; else 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot(u64);

impl Spot {
    fn new(frame: u32, generation: u32) -> Spot {
        debug_assert!(generation > 0);
        Spot(u64::from(frame) << 32 | u64::from(generation))
    }

    #[inline]
    fn frame(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline]
    fn generation(self) -> u32 {
        self.0 as u32
    }
}

/// Remembers where in a cache a value was found last. Each slot is for one place only, and for one
/// cache.
#[derive(Debug, Default)]
pub struct Slot(AtomicU64);

impl Slot {
    #[inline]
    pub(super) fn get(&self) -> Spot {
        Spot(self.0.load(Acquire))
    }

    #[inline]
    pub(super) fn set(&self, spot: Spot) {
        self.0.store(spot.0, Release);
    }
}

#[derive(Debug)]
pub(super) struct Frame<V> {
    /// Changed by who puts a value in and by who takes it out. Who finds it held goes by the key.
    /// (What swaps pointers without a lock would look at all threads at each change.)
    value: RwLock<Option<Arc<V>>>,
    generation: AtomicU32,
    /// The last epoch in which the value was found here.
    used: AtomicU32,
}

impl<V> Default for Frame<V> {
    fn default() -> Frame<V> {
        Frame { value: RwLock::new(None), generation: AtomicU32::new(1), used: AtomicU32::new(0) }
    }
}

type Chunk<V> = Box<[Frame<V>]>;

#[derive(Debug, Default)]
struct Free {
    frames: Vec<u32>,
    /// How many values have left in this epoch.
    left: usize,
}

/// The frames of a cache. Thread-safe.
#[derive(Debug)]
pub(super) struct Frames<V> {
    chunks: Box<[OnceLock<Chunk<V>>]>,
    /// How many have ever had a value.
    begun: AtomicUsize,
    /// Ends whenever so many values have left that those that stay should have been used since.
    epoch: AtomicU32,
    free: Mutex<Free, { rank::FRAMES }>,
}

impl<V> Frames<V> {
    pub fn new() -> Frames<V> {
        Frames {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            begun: AtomicUsize::new(0),
            epoch: AtomicU32::new(0),
            free: Mutex::new(Free::default()),
        }
    }

    /// The chunk that has a frame, and where it has it.
    #[inline]
    fn place(frame: usize) -> (usize, usize) {
        match frame.checked_sub(FRAMES_DOUBLING) {
            Some(rest) => (DOUBLINGS + rest / CHUNK_FRAMES_MAX, rest % CHUNK_FRAMES_MAX),
            None => {
                let chunk = (frame / CHUNK_FRAMES_FIRST + 1).ilog2() as usize;
                (chunk, frame - ((CHUNK_FRAMES_FIRST << chunk) - CHUNK_FRAMES_FIRST))
            }
        }
    }

    #[inline]
    fn frame(&self, frame: usize) -> Option<&Frame<V>> {
        let (chunk, at) = Frames::<V>::place(frame);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// Puts a value into a frame of its own, if there is one.
    pub fn hold(&self, value: &Arc<V>) -> Spot {
        let free = self.free.lock().frames.pop();
        let number = free.map_or_else(|| self.begun.fetch_add(1, Relaxed), |free| free as usize);
        let (chunk, at) = Frames::<V>::place(number);
        let Some(chunk_of) = self.chunks.get(chunk) else {
            self.begun.fetch_sub(1, Relaxed);
            return Spot::default();
        };
        let frames = chunk_of.get_or_init(|| {
            let size = CHUNK_FRAMES_FIRST << chunk.min(DOUBLINGS);
            (0..size).map(|_| Frame::default()).collect()
        });
        let frame = &frames[at];
        // Its next use is the first one.
        frame.used.store(self.epoch.load(Relaxed).wrapping_sub(1), Relaxed);
        let spot = Spot::new(number as u32, frame.generation.load(Relaxed));
        let mut place = frame.value.write().unwrap_or_else(PoisonError::into_inner);
        assert!(place.is_none(), "a frame has one value");
        *place = Some(Arc::clone(value));
        spot
    }

    /// Takes the value out of its frame, if it has one. To be called once.
    pub fn release(&self, spot: Spot) {
        if spot == Spot::default() {
            return;
        }
        let Some(frame) = self.frame(spot.frame()) else { return };
        // Before any other value can be here, so that who sees that one sees this, too.
        let generation = frame.generation.fetch_add(1, Release);
        assert_eq!(generation, spot.generation(), "a value leaves its frame once");
        let left = frame.value.write().unwrap_or_else(PoisonError::into_inner).take();
        debug_assert!(left.is_some(), "what leaves was there");
        let mut free = self.free.lock();
        free.left += 1;
        if free.left > (self.begun.load(Relaxed) - free.frames.len()) / EPOCH_PARTS {
            free.left = 0;
            self.epoch.fetch_add(1, Relaxed);
        }
        // A frame whose generations are used up is used no more.
        if generation < u32::MAX {
            free.frames.push(spot.frame() as u32);
        }
    }

    /// The value that was put there, if it still is, and whether this is its first use in this
    /// epoch.
    #[inline]
    pub fn get(&self, spot: Spot) -> Option<(Arc<V>, bool)> {
        let (frame, value) = self.look(spot, Arc::clone)?;
        let epoch = self.epoch.load(Relaxed);
        let first = frame.used.load(Relaxed) != epoch;
        if first {
            frame.used.store(epoch, Relaxed);
        }
        Some((value, first))
    }

    /// Begins to load the frame.
    #[inline]
    pub fn prepare(&self, spot: Spot) {
        if spot != Spot::default()
            && let Some(frame) = self.frame(spot.frame())
        {
            prefetch::line(frame);
        }
    }

    /// The value's frame, and what `look` makes of the value that was put there, if it still is.
    /// That is no use of it.
    #[inline]
    pub fn look<T>(&self, spot: Spot, look: impl FnOnce(&Arc<V>) -> T) -> Option<(&Frame<V>, T)> {
        if spot == Spot::default() {
            return None;
        }
        let frame = self.frame(spot.frame())?;
        let is_its = |order| frame.generation.load(order) == spot.generation();
        // Not locked in vain: it may be another's by now.
        if !is_its(Relaxed) {
            return None;
        }
        let place = frame.value.try_read().ok()?;
        // Looked at while the value stays: if that is a later one, its generation is seen as well.
        let value = place.as_ref().filter(|_| is_its(Acquire))?;
        Some((frame, look(value)))
    }

    /// How many values there are.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.begun.load(Relaxed) - self.free.lock().frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_through_the_chunks() {
        let mut expected = (0, 0);
        for frame in 0..100_000 {
            assert_eq!(Frames::<u8>::place(frame), expected, "{frame}");
            expected.1 += 1;
            if expected.1 == CHUNK_FRAMES_FIRST << expected.0.min(DOUBLINGS) {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(Frames::<u8>::place(16_000_000).0 < CHUNKS);
    }

    #[test]
    fn without_a_frame_a_value_has_no_spot() {
        let frames = Frames::new();
        let first = frames.hold(&Arc::new(1));
        let begun = frames.begun.swap(FRAMES_DOUBLING + 1024 * CHUNK_FRAMES_MAX, Relaxed);
        let none = frames.hold(&Arc::new(2));
        assert_eq!(none, Spot::default());
        frames.release(none);
        frames.begun.store(begun, Relaxed);
        frames.release(first);
        assert_eq!(frames.held(), 0);
    }

    #[test]
    fn a_value_is_found_until_it_is_let_go_and_no_other_after_it() {
        let frames = Frames::new();
        let spots: Vec<Spot> = (0..1000).map(|value| frames.hold(&Arc::new(value))).collect();
        for (value, spot) in spots.iter().enumerate() {
            assert_eq!(frames.get(*spot).map(|found| (*found.0, found.1)), Some((value, true)));
            assert_eq!(frames.get(*spot).map(|found| found.1), Some(false));
        }
        spots.iter().step_by(2).for_each(|spot| frames.release(*spot));
        assert_eq!(frames.held(), 500);
        let later: Vec<Spot> = (0..500).map(|value| frames.hold(&Arc::new(5000 + value))).collect();
        assert_eq!(frames.held(), 1000);
        for (value, spot) in spots.iter().enumerate() {
            let kept = frames.get(*spot).map(|found| *found.0);
            assert_eq!(kept, (value % 2 == 1).then_some(value));
        }
        for (value, spot) in later.iter().enumerate() {
            assert_eq!(frames.get(*spot).map(|found| *found.0), Some(5000 + value));
        }
        assert!(frames.get(Spot::default()).is_none());
    }

    #[test]
    fn an_epoch_ends_when_an_eighth_has_left() {
        let frames = Frames::new();
        let spots: Vec<Spot> = (0..900).map(|value| frames.hold(&Arc::new(value))).collect();
        let first = |spot: Spot| frames.get(spot).map(|found| found.1);
        assert_eq!((first(spots[0]), first(spots[0])), (Some(true), Some(false)));
        spots[800..].iter().for_each(|spot| frames.release(*spot));
        assert_eq!(first(spots[0]), Some(false), "100 of 900");
        frames.release(spots[799]);
        assert_eq!((first(spots[0]), first(spots[0])), (Some(true), Some(false)));
    }

    #[test]
    fn a_frame_without_generations_left_is_used_no_more() {
        let frames = Frames::new();
        let first = frames.hold(&Arc::new(1));
        frames.release(first);
        let frame = frames.frame(first.frame()).unwrap();
        frame.generation.store(u32::MAX, Relaxed);
        let last = frames.hold(&Arc::new(2));
        assert_eq!((last.frame(), last.generation()), (first.frame(), u32::MAX));
        frames.release(last);
        let next = frames.hold(&Arc::new(3));
        assert_ne!(next.frame(), first.frame());
        assert!(frames.get(first).is_none() && frames.get(last).is_none());
    }
}
