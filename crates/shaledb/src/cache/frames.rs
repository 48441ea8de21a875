//! Places by number for what the cache holds: who has found a value once finds it again without
//! the cache's table, whose every look-up waits for memory several times.
//!
//! A [`Slot`], one for each block of a table, keeps the number of the frame that its value was put
//! in, and the frame's generation. A frame's generation changes whenever its value leaves, before
//! the next one comes. So a slot that is out of date finds nothing, and never another's value.

use crate::base::rank;
use crate::base::sync::Mutex;
use arc_swap::ArcSwapOption;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use std::sync::atomic::{AtomicUsize, Ordering::Release};
use std::sync::{Arc, OnceLock};

/// The frames of the first chunk; each chunk has twice as many as the one before.
const CHUNK_FRAMES_FIRST: usize = 256;
/// With these there are as many frames as a number has values.
const CHUNKS: usize = 25;
/// What a frame keeps of its value.
pub(super) const FRAME_BYTES: u64 = 24;

/// How many there are.
const FRAMES: usize = (CHUNK_FRAMES_FIRST << CHUNKS) - CHUNK_FRAMES_FIRST;

const _: () = assert!(FRAMES as u64 > u32::MAX as u64);

/// A frame and its generation, which is never 0 where there is a frame.
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
struct Frame<V> {
    value: ArcSwapOption<V>,
    generation: AtomicU32,
    /// How often the value was found here. Counted without care: some may be lost.
    uses: AtomicU32,
}

impl<V> Default for Frame<V> {
    fn default() -> Frame<V> {
        Frame {
            value: ArcSwapOption::empty(),
            generation: AtomicU32::new(1),
            uses: AtomicU32::new(0),
        }
    }
}

/// The frames of a cache. Thread-safe.
#[derive(Debug)]
pub(super) struct Frames<V> {
    chunks: [OnceLock<Box<[Frame<V>]>>; CHUNKS],
    /// How many have ever been used.
    used: AtomicUsize,
    free: Mutex<Vec<u32>, { rank::FRAMES }>,
}

impl<V> Frames<V> {
    pub fn new() -> Frames<V> {
        Frames {
            chunks: [const { OnceLock::new() }; CHUNKS],
            used: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
        }
    }

    /// The chunk that has a frame, and where it has it.
    #[inline]
    fn place(frame: usize) -> (usize, usize) {
        let chunk = (frame / CHUNK_FRAMES_FIRST + 1).ilog2() as usize;
        (chunk, frame - ((CHUNK_FRAMES_FIRST << chunk) - CHUNK_FRAMES_FIRST))
    }

    #[inline]
    fn frame(&self, frame: usize) -> Option<&Frame<V>> {
        let (chunk, at) = Frames::<V>::place(frame);
        self.chunks.get(chunk)?.get()?.get(at)
    }

    /// Puts a value into a frame of its own.
    pub fn hold(&self, value: &Arc<V>) -> Spot {
        let free = self.free.lock().pop();
        let number = free.map_or_else(|| self.used.fetch_add(1, Relaxed), |free| free as usize);
        let (chunk, at) = Frames::<V>::place(number);
        let frames = self.chunks[chunk]
            .get_or_init(|| (0..CHUNK_FRAMES_FIRST << chunk).map(|_| Frame::default()).collect());
        let frame = &frames[at];
        frame.uses.store(0, Relaxed);
        let spot = Spot::new(number as u32, frame.generation.load(Relaxed));
        let before = frame.value.swap(Some(Arc::clone(value)));
        assert!(before.is_none(), "a frame has one value");
        spot
    }

    /// Takes the value out of its frame. To be called once.
    pub fn release(&self, spot: Spot) {
        let Some(frame) = self.frame(spot.frame()) else { return };
        // Before any other value can be here, so that who sees that one sees this, too.
        let generation = frame.generation.fetch_add(1, Release);
        assert_eq!(generation, spot.generation(), "a value leaves its frame once");
        frame.value.store(None);
        // A frame whose generations are used up is used no more.
        if generation < u32::MAX {
            self.free.lock().push(spot.frame() as u32);
        }
    }

    /// The value that was put there, if it still is, and how often it was asked for before.
    #[inline]
    pub fn get(&self, spot: Spot) -> Option<(Arc<V>, u32)> {
        if spot == Spot::default() {
            return None;
        }
        let frame = self.frame(spot.frame())?;
        let value = frame.value.load_full()?;
        // Looked at after the value: if that is a later one, its generation is seen as well.
        if frame.generation.load(Acquire) != spot.generation() {
            return None;
        }
        let uses = frame.uses.load(Relaxed);
        frame.uses.store(uses.wrapping_add(1), Relaxed);
        Some((value, uses))
    }

    /// How many values there are.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.used.load(Relaxed) - self.free.lock().len()
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
            if expected.1 == CHUNK_FRAMES_FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(Frames::<u8>::place(u32::MAX as usize).0 < CHUNKS);
    }

    #[test]
    fn a_value_is_found_until_it_is_let_go_and_no_other_after_it() {
        let frames = Frames::new();
        let spots: Vec<Spot> = (0..1000).map(|value| frames.hold(&Arc::new(value))).collect();
        for (value, spot) in spots.iter().enumerate() {
            assert_eq!(frames.get(*spot).map(|found| (*found.0, found.1)), Some((value, 0)));
            assert_eq!(frames.get(*spot).map(|found| found.1), Some(1));
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
