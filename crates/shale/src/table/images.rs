//! The memory of cached blocks: buffers in classes of sizes, shared by all threads, whose pages go
//! back to the system when the cache shrinks.
//!
//! A block is read by one thread and evicted by another, and the cache gives way when memtables
//! grow. With an allocator that has an arena for each thread, each arena then holds memory that
//! only its threads can use again, and none goes back: twice what the cache was given was resident
//! (docs/decisions/0006-memory.md).
//!
//! Sizes are rounded up to one of eight classes between powers of two. The buffers of a class are
//! cut from mappings that stay as long as any of their buffers is in use. A free buffer is kept as
//! it is while there are few of these, else its pages are given back.

use crate::base::pages::{Buffer, Pages};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::ops::Deref;
use std::sync::Arc;

/// Shorter images are vectors: thousands fit the smallest mapping.
const BYTES_MIN: usize = 1 << 9;
/// Longer images are mappings of their own.
const BYTES_MAX: usize = 1 << 18;
/// The classes from one power of two to the next.
const STEPS: usize = 8;
const CLASSES: usize = (BYTES_MAX / BYTES_MIN).ilog2() as usize * STEPS;
/// The size of a mapping that buffers are cut from. Its pages are taken when they are used.
const MAPPING_BYTES: usize = 1 << 20;
/// Of the cache's memory, one part in so many may be in free buffers.
const FREE_SHARE: u64 = 64;

/// The block images of one database.
#[derive(Debug)]
pub struct Images {
    classes: Vec<Mutex<Class>>,
    /// The bytes of free buffers that have pages.
    free: AtomicUsize,
    free_max: usize,
}

#[derive(Debug, Default)]
struct Class {
    /// Free buffers that have pages.
    warm: Vec<Buffer>,
    /// Free buffers whose pages have been given back, or not taken yet.
    cold: Vec<Buffer>,
}

/// The class of images of so many bytes, and the size of its buffers.
fn class_of(bytes: usize) -> (usize, usize) {
    let bytes = bytes.max(BYTES_MIN + 1);
    // The power of two below, and the eighths from there on.
    let power = (bytes - 1).ilog2();
    let step = (1usize << power) / STEPS;
    let eighths = (bytes - 1 - (1 << power)) / step + 1;
    let class = (power - BYTES_MIN.ilog2()) as usize * STEPS + eighths - 1;
    (class, (1 << power) + eighths * step)
}

impl Images {
    /// For a cache of `cache_bytes`.
    pub fn new(cache_bytes: u64) -> Arc<Images> {
        Arc::new(Images {
            classes: (0..CLASSES).map(|_| Mutex::default()).collect(),
            free: AtomicUsize::new(0),
            free_max: usize::try_from(cache_bytes / FREE_SHARE).unwrap_or(usize::MAX),
        })
    }

    /// Memory for an image of `bytes`. Its content is anything.
    pub fn image(self: &Arc<Images>, bytes: usize) -> Image {
        if bytes < BYTES_MIN {
            return Image::from(vec![0; bytes]);
        }
        if bytes > BYTES_MAX {
            let mut parts = Pages::map(bytes, 1).split(bytes);
            return Image { buffer: parts.swap_remove(0), home: None };
        }
        let (class, size) = class_of(bytes);
        let buffer = self.take(class, size).resized(bytes);
        Image { buffer, home: Some(Arc::clone(self)) }
    }

    fn take(&self, class: usize, size: usize) -> Buffer {
        let mut lists = self.classes[class].lock();
        if let Some(buffer) = lists.warm.pop() {
            drop(lists);
            self.free.fetch_sub(size, Relaxed);
            return buffer;
        }
        if let Some(buffer) = lists.cold.pop() {
            return buffer;
        }
        let mut parts = Pages::map(MAPPING_BYTES.max(4 * size), 1).split(size);
        let buffer = parts.swap_remove(0);
        lists.cold.append(&mut parts);
        buffer
    }

    fn put(&self, mut buffer: Buffer) {
        let size = buffer.capacity();
        let (class, _) = class_of(size);
        let warm = self.free.fetch_add(size, Relaxed) + size <= self.free_max;
        if !warm {
            self.free.fetch_sub(size, Relaxed);
            buffer.give_back();
        }
        let mut lists = self.classes[class].lock();
        if warm { lists.warm.push(buffer) } else { lists.cold.push(buffer) }
    }

    /// Bytes of free buffers that have pages.
    pub fn free_bytes(&self) -> usize {
        self.free.load(Relaxed)
    }
}

/// The bytes of a block: in memory of [`Images`], or in a vector.
#[derive(Debug, Default)]
pub struct Image {
    buffer: Buffer,
    home: Option<Arc<Images>>,
}

impl Image {
    /// How many bytes of memory it takes.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// The same memory, if there is enough of it, for an image of another length; its content is
    /// anything.
    pub fn resized(mut self, bytes: usize) -> Image {
        if self.home.is_some() && bytes > self.buffer.capacity() {
            return Image::from(vec![0; bytes]);
        }
        let buffer = std::mem::take(&mut self.buffer).resized(bytes);
        Image { buffer, home: self.home.take() }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

impl From<Vec<u8>> for Image {
    fn from(bytes: Vec<u8>) -> Image {
        Image { buffer: Buffer::from(bytes), home: None }
    }
}

impl Deref for Image {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.put(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
