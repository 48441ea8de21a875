//! Who loads a user's rows, and who looks them up.

use super::file::RowReader;
use super::options::RowsOptions;
use super::store::PairsSession;
use crate::generate::Random;
use crate::run::pace::{Client, Did, Pace};
use crate::stores::engine::Result;
use std::hint::black_box;

/// A commit of the load has so many rows, or so many bytes.
const ROWS_PER_COMMIT: u64 = 1000;
const BYTES_PER_COMMIT: u64 = 256 << 10;

/// So many different keys are looked up, again and again.
const KEYS: u64 = 20_000;

/// Loads all rows of the file.
pub(super) struct Loader<T> {
    pub(super) session: T,
    pub(super) rows: RowsOptions,
}

impl<T: PairsSession> Client for Loader<T> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        let mut file = RowReader::open(&self.rows.file)?;
        let mut has_more = true;
        while has_more && pace.begin() {
            let (mut count, mut bytes) = (0, 0);
            while count < ROWS_PER_COMMIT && bytes < BYTES_PER_COMMIT {
                has_more = file.next()?;
                if !has_more {
                    break;
                }
                self.session.put(&file.key, &file.value)?;
                count += 1;
                bytes += (file.key.len() + file.value.len()) as u64;
            }
            if count > 0 {
                self.session.commit()?;
                pace.end_group(0, count, Did::added(bytes));
            }
        }
        Ok(())
    }
}

/// Looks keys up.
pub(super) struct Reader<T> {
    session: T,
    keys: Vec<Vec<u8>>,
}

impl<T: PairsSession> Reader<T> {
    /// Of keys that are evenly spread over the file, in an order of chance.
    pub(super) fn new(session: T, rows: &RowsOptions, seed: u64) -> Result<Reader<T>> {
        let step = (rows.rows / KEYS).max(1);
        let mut file = RowReader::open(&rows.file)?;
        let (mut keys, mut at) = (Vec::new(), 0);
        while file.next()? {
            if at % step == 0 {
                keys.push(file.key.clone());
            }
            at += 1;
        }
        if keys.is_empty() {
            return Err(format!("{} has no rows", rows.file.display()).into());
        }
        let mut random = Random::named(seed, "rows get", 0);
        for at in (1..keys.len()).rev() {
            keys.swap(at, random.below(at as u64 + 1) as usize);
        }
        Ok(Reader { session, keys })
    }
}

impl<T: PairsSession> Client for Reader<T> {
    fn run(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        for key in self.keys.iter().cycle() {
            if !pace.begin() {
                break;
            }
            let mut read = 0;
            let found = self.session.get(key, &mut |value| {
                black_box(value);
                read = value.len();
            })?;
            pace.end(0, Did { found, read: (key.len() + read) as u64, ..Did::default() });
        }
        Ok(())
    }
}
