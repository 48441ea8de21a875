//! Where rows go: batches, or tables built directly.

use crate::exit::{Failure, Outcome};
use shaledb::{Batch, Db, Ingest, Tree, WriteOptions};
use shaledb_cli::rows::Record;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

const BATCH_BYTES: usize = 256 << 10;

/// Of so many keys it is remembered that they came: 8 bytes each, 75 MB in all.
const KEYS_MAX: usize = 4 << 20;

/// Takes rows.
pub(super) struct Sink<'a> {
    to: To<'a>,
    keys: Keys,
}

enum To<'a> {
    Batches { db: &'a Db, tree: &'a Tree, batch: Batch },
    Tables(Option<Box<Ingest>>),
}

/// Why a record was not added.
pub(super) enum Added {
    Bad(String),
    Failed(Failure),
}

impl<'a> Sink<'a> {
    pub(super) fn new(db: &'a Db, tree: &'a Tree, sorted: bool) -> Outcome<Sink<'a>> {
        let to = match sorted {
            true => To::Tables(Some(Box::new(tree.ingest()?))),
            false => To::Batches { db, tree, batch: Batch::new() },
        };
        Ok(Sink { to, keys: Keys::default() })
    }

    pub(super) fn add(&mut self, record: &Record) -> Result<(), Added> {
        check(record).map_err(Added::Bad)?;
        let result = match &mut self.to {
            To::Batches { db, tree, batch } => {
                self.keys.add(&record.key);
                batch.put(tree, &record.key, &record.value);
                if batch.bytes() < BATCH_BYTES {
                    return Ok(());
                }
                let written = db.write(batch, WriteOptions::default());
                batch.clear();
                written
            }
            // A key that came before is refused here.
            To::Tables(Some(ingest)) => ingest.add(&record.key, &record.value),
            To::Tables(None) => Ok(()),
        };
        match result {
            Ok(()) => Ok(()),
            // Of an ingest: the key is not greater than the one before.
            Err(shaledb::Error::InvalidArgument(what)) => Err(Added::Bad(what)),
            Err(error) => Err(Added::Failed(error.into())),
        }
    }

    /// How many rows had the key of an earlier one, and whether there may be more.
    pub(super) fn repeated(&self) -> (u64, bool) {
        (self.keys.repeated, self.keys.hashes.len() >= KEYS_MAX)
    }

    /// Makes all that was added durable, in tables: nobody has to replay a log afterwards.
    pub(super) fn finish(&mut self) -> Outcome<()> {
        match &mut self.to {
            To::Batches { db, batch, .. } => {
                db.write(batch, WriteOptions::default())?;
                batch.clear();
                db.sync()?;
                db.flush()?;
            }
            To::Tables(ingest) => {
                if let Some(ingest) = ingest.take() {
                    ingest.finish()?;
                }
            }
        }
        Ok(())
    }
}

/// The engine's bounds, checked here so that the line is to blame and not the batch.
fn check(record: &Record) -> Result<(), String> {
    use shaledb::base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
    if record.key.len() > KEY_BYTES_MAX {
        return Err(format!("the key has {} bytes, more than {KEY_BYTES_MAX}", record.key.len()));
    }
    if record.value.len() as u64 > VALUE_BYTES_MAX {
        let bytes = record.value.len();
        return Err(format!("the value has {bytes} bytes, more than {VALUE_BYTES_MAX}"));
    }
    Ok(())
}

/// Counts keys that came before. It remembers 64-bit hashes with a secret, so two keys of one hash
/// are counted as one with a chance of less than 1 in a million over all keys that it remembers.
#[derive(Default)]
struct Keys {
    secret: RandomState,
    hashes: HashSet<u64, AsItIs>,
    repeated: u64,
}

impl Keys {
    fn add(&mut self, key: &[u8]) {
        let hash = self.secret.hash_one(key);
        if self.hashes.len() < KEYS_MAX {
            self.repeated += u64::from(!self.hashes.insert(hash));
        } else {
            self.repeated += u64::from(self.hashes.contains(&hash));
        }
    }
}

/// A hash is hashed already.
#[derive(Clone, Default)]
struct AsItIs;

struct Same(u64);

impl BuildHasher for AsItIs {
    type Hasher = Same;

    fn build_hasher(&self) -> Same {
        Same(0)
    }
}

impl Hasher for Same {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only u64 are hashed");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
