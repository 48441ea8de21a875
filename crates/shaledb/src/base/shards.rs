//! One value for each of a few groups of threads, so that threads on different cores seldom write
//! to the same cache line. For what each operation has to note somewhere and few look at as a
//! whole.

/// How many there are: threads are few times as many as cores where this matters.
const SHARDS: usize = 16;

/// Alone on its cache lines: processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// A value for each group of threads. A thread's own is a matter of speed only: any may be used.
#[derive(Debug)]
pub struct Shards<T>(Box<[Padded<T>]>);

impl<T> Shards<T> {
    /// Each as `make` makes it.
    pub fn new(mut make: impl FnMut() -> T) -> Shards<T> {
        Shards((0..SHARDS).map(|_| Padded(make())).collect())
    }

    /// The calling thread's, and its index.
    #[inline]
    pub fn local(&self) -> (usize, &T) {
        let index = local_index();
        (index, &self.0[index].0)
    }

    /// The one with this index, which [`Shards::local`] has answered.
    #[inline]
    pub fn at(&self, index: usize) -> &T {
        &self.0[index].0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|one| &one.0)
    }
}

#[cfg(not(feature = "shuttle"))]
#[inline]
fn local_index() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static INDEX: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    // A thread that ends has none any more.
    INDEX.try_with(|index| *index).unwrap_or(0)
}

/// Few, so that threads share some and not others.
#[cfg(feature = "shuttle")]
fn local_index() -> usize {
    usize::from(shuttle::thread::current().id()) % 2
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::Shards;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn each_thread_keeps_its_own() {
        let shards = Shards::new(|| AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| {
                    let (index, _) = shards.local();
                    for _ in 0..10 {
                        let (again, own) = shards.local();
                        assert_eq!(again, index);
                        own.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let sums: Vec<u64> = shards.iter().map(|own| own.load(Ordering::Relaxed)).collect();
        assert_eq!(sums.iter().sum::<u64>(), 400);
        assert!(sums.iter().all(|&sum| sum % 10 == 0), "{sums:?}");
        assert!(sums.iter().filter(|&&sum| sum > 0).count() > 1, "{sums:?}");
        assert_eq!(shards.at(0).load(Ordering::Relaxed), sums[0]);
    }
}
