//! Sorts keys of one width that may not fit in memory, such as the entries of an index that is
//! created: runs that are sorted in memory go to files without a name, which a merge reads.

use crate::stores::engine::{Batch, Handle, Result, TreeId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Sorts keys of `N` bytes.
pub struct Sorter<const N: usize> {
    dir: PathBuf,
    keys: Vec<[u8; N]>,
    most: usize,
    runs: Vec<File>,
}

impl<const N: usize> Sorter<N> {
    /// Keeps at most about `memory` bytes of keys in memory, the rest in files in `dir`.
    pub fn new(dir: &Path, memory: usize) -> Sorter<N> {
        let most = (memory / N).max(1);
        Sorter { dir: dir.to_owned(), keys: Vec::new(), most, runs: Vec::new() }
    }

    /// Adds a key.
    ///
    /// # Errors
    ///
    /// A file cannot be made or written.
    #[inline]
    pub fn push(&mut self, key: [u8; N]) -> Result<()> {
        if self.keys.len() == self.most {
            self.spill()?;
        }
        self.keys.push(key);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.keys.sort_unstable();
        let path = self.dir.join(format!("sort-{}-{:p}.tmp", self.runs.len(), self));
        let wrong =
            |error| format!("{}: a run of a sort cannot be written: {error}", path.display());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(wrong)?;
        // Without a name it goes away with this process, however that ends.
        std::fs::remove_file(&path).map_err(wrong)?;
        let mut writer = BufWriter::new(file);
        for key in &self.keys {
            writer.write_all(key).map_err(wrong)?;
        }
        let mut file = writer.into_inner().map_err(|error| wrong(error.into_error()))?;
        file.rewind().map_err(wrong)?;
        self.runs.push(file);
        self.keys.clear();
        Ok(())
    }

    /// Shows all keys in order.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written; what `each` answers.
    pub fn drain(mut self, each: &mut impl FnMut(&[u8; N]) -> Result<()>) -> Result<()> {
        if self.runs.is_empty() {
            self.keys.sort_unstable();
            return self.keys.iter().try_for_each(each);
        }
        self.spill()?;
        self.keys = Vec::new();
        let mut runs: Vec<BufReader<File>> = self.runs.drain(..).map(BufReader::new).collect();
        let mut heads = BinaryHeap::new();
        for (run, file) in runs.iter_mut().enumerate() {
            if let Some(key) = next::<N>(file)? {
                heads.push(Reverse((key, run)));
            }
        }
        while let Some(Reverse((key, run))) = heads.pop() {
            each(&key)?;
            if let Some(key) = next::<N>(&mut runs[run])? {
                heads.push(Reverse((key, run)));
            }
        }
        Ok(())
    }
}

/// Keys to a batch of [`Sorter::write`].
const KEYS_PER_BATCH: usize = 1000;

impl<const N: usize> Sorter<N> {
    /// Writes all keys to a tree, in order and without values.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written; the engine fails.
    pub fn write(self, handle: &mut impl Handle, tree: TreeId) -> Result<()> {
        let mut batch = Batch::new();
        self.drain(&mut |key| {
            batch.put(tree, key, b"");
            if batch.len() == KEYS_PER_BATCH {
                handle.write(&batch)?;
                batch.clear();
            }
            Ok(())
        })?;
        if batch.is_empty() { Ok(()) } else { handle.write(&batch) }
    }
}

fn next<const N: usize>(file: &mut BufReader<File>) -> Result<Option<[u8; N]>> {
    let mut key = [0; N];
    match file.read_exact(&mut key) {
        Ok(()) => Ok(Some(key)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(format!("a run of a sort cannot be read: {error}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    #[test]
    fn runs_and_merge_give_the_order() {
        let dir = tempfile::tempdir().unwrap();
        for (count, memory) in [(0, 64), (7, 8 * 7), (8, 8 * 7), (10_000, 8 * 333), (10_000, 1)] {
            let count = if memory == 1 { 50 } else { count };
            let mut random = Random::new(count);
            let mut sorter = Sorter::<8>::new(dir.path(), memory);
            let mut wanted: Vec<u64> = (0..count).map(|_| random.below(5_000)).collect();
            wanted.iter().for_each(|key| sorter.push(key.to_be_bytes()).unwrap());
            wanted.sort_unstable();
            let mut got = Vec::new();
            let mut each = |key: &[u8; 8]| {
                got.push(u64::from_be_bytes(*key));
                Ok(())
            };
            sorter.drain(&mut each).unwrap();
            assert_eq!(got, wanted);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let mut sorter = Sorter::<1>::new(Path::new("/nowhere/at all"), 1);
        sorter.push([1]).unwrap();
        let error = sorter.push([2]).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at all/sort-0"), "{error}");
    }
}
