//! The numbers of a table whose primary key counts up, in a tree whose keys are such numbers (u64,
//! big-endian).

use super::damaged::damaged;
use crate::stores::engine::{Handle, Result, TreeId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Gives numbers. The greatest one that is in the tree is looked up when the first is asked for.
#[derive(Default)]
pub struct Sequence {
    /// The number to be given next; 0 if it is not known yet.
    next: AtomicU64,
    finding: Mutex<()>,
}

impl Sequence {
    /// The next number.
    ///
    /// # Errors
    ///
    /// The engine fails.
    #[inline]
    pub fn next(&self, handle: &mut impl Handle, tree: TreeId) -> Result<u64> {
        self.know(handle, tree)?;
        Ok(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Numbers up to `number` were given otherwise.
    ///
    /// # Errors
    ///
    /// The engine fails.
    pub fn raise(&self, handle: &mut impl Handle, tree: TreeId, number: u64) -> Result<()> {
        self.know(handle, tree)?;
        self.next.fetch_max(number + 1, Ordering::Relaxed);
        Ok(())
    }

    /// The tree was cleared: numbers begin anew.
    pub fn forget(&self) {
        self.next.store(0, Ordering::Release);
    }

    #[inline]
    fn know(&self, handle: &mut impl Handle, tree: TreeId) -> Result<()> {
        if self.next.load(Ordering::Acquire) > 0 { Ok(()) } else { self.find(handle, tree) }
    }

    #[cold]
    fn find(&self, handle: &mut impl Handle, tree: TreeId) -> Result<()> {
        let _finding = self.finding.lock().unwrap_or_else(PoisonError::into_inner);
        if self.next.load(Ordering::Acquire) == 0 {
            self.next.store(greatest(handle, tree)? + 1, Ordering::Release);
        }
        Ok(())
    }
}

/// The greatest number in a tree; 0 if there is none. A scan goes upwards only, so it is found by
/// halves: 63 scans.
fn greatest(handle: &mut impl Handle, tree: TreeId) -> Result<u64> {
    // There is a number at or after `low` (unless it is 0), and none at or after `high`: what
    // counts up from 1 ends far before 2^63.
    let (mut low, mut high) = (0u64, 1u64 << 63);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let mut first = None;
        handle.scan(tree, &middle.to_be_bytes(), 1, &mut |key, _| {
            first = Some(<[u8; 8]>::try_from(key).map(u64::from_be_bytes));
            false
        })?;
        match first {
            Some(Ok(number)) => low = number,
            Some(Err(_)) => return Err(damaged("with keys that count up")),
            None => high = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Setup;
    use crate::stores::engine::Engine;
    use crate::stores::kv::KvStore;
    use crate::stores::model::Model;
    use std::path::Path;

    fn open(dir: &Path) -> KvStore<Model> {
        KvStore::open(dir, &Setup::default(), &["rows", "more"]).unwrap()
    }

    #[test]
    fn numbers_go_on_where_they_ended() {
        use crate::stores::store::Store;
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let mut handle = store.engine.handle().unwrap();
        assert_eq!(store.sequences[1].next(&mut handle, 1).unwrap(), 1);
        store.sequences[1].raise(&mut handle, 1, 76_543).unwrap();
        assert_eq!(store.sequences[1].next(&mut handle, 1).unwrap(), 76_544);
        handle.put(1, &76_544u64.to_be_bytes(), b"row").unwrap();
        assert_eq!(store.sequences[0].next(&mut handle, 0).unwrap(), 1);
        store.close().unwrap();

        let store = open(dir.path());
        let mut handle = store.engine.handle().unwrap();
        assert_eq!(store.sequences[1].next(&mut handle, 1).unwrap(), 76_545);
        store.engine.clear_tree(1).unwrap();
        store.sequences[1].forget();
        assert_eq!(store.sequences[1].next(&mut handle, 1).unwrap(), 1);
    }

    #[test]
    fn the_greatest_number_is_found_wherever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        for numbers in [vec![], vec![1], vec![1, 2, 3], vec![7, 1 << 40], vec![(1 << 62) + 5]] {
            let store = open(&dir.path().join(format!("{numbers:?}")));
            let mut handle = store.engine.handle().unwrap();
            for number in &numbers {
                handle.put(0, &u64::to_be_bytes(*number), b"").unwrap();
            }
            assert_eq!(greatest(&mut handle, 0).unwrap(), numbers.last().copied().unwrap_or(0));
        }
    }

    #[test]
    fn a_key_that_is_no_number_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let mut handle = store.engine.handle().unwrap();
        handle.put(0, b"\xff", b"").unwrap();
        let error = store.sequences[0].next(&mut handle, 0).unwrap_err().to_string();
        assert!(error.contains("not the benchmark's"), "{error}");
    }
}
