//! The two ways in which RocksDB is open: plain, or with transactions that lock. The second costs
//! its plain writes locks and keeps memtables for longer, so only a step of updates opens it so.

use crate::{cursor, stats};
use rocksdb::{
    BoundColumnFamily, ColumnFamilyDescriptor, DBPinnableSlice, DBWithThreadMode, Error,
    FlushOptions, MultiThreaded, Options, ReadOptions, TransactionDB, TransactionDBOptions,
    TransactionOptions, WaitForCompactOptions, WriteBatch, WriteBatchWithTransaction, WriteOptions,
};
use shaledb_lab::stores::engine::{Batch, Metrics, Op, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Milliseconds that a transaction waits for a lock: as Shale's.
pub(crate) const LOCK_MILLIS: i64 = 10_000;
/// What RocksDB adds to the key and the value of an operation in a batch, at most.
const OP_BYTES: usize = 16;

pub(crate) type Family = Arc<BoundColumnFamily<'static>>;

pub(crate) enum Database {
    Plain(DBWithThreadMode<MultiThreaded>),
    Locking(TransactionDB<MultiThreaded>),
}

/// The same call of both.
macro_rules! both {
    ($database:expr, $db:ident => $call:expr) => {
        match $database {
            Database::Plain($db) => $call,
            Database::Locking($db) => $call,
        }
    };
}

/// The operations of a batch as RocksDB's. The crate takes the batch away: one with room enough is
/// one allocation.
fn ours<const TRANSACTION: bool>(
    batch: &Batch,
    families: &[Family],
) -> WriteBatchWithTransaction<TRANSACTION> {
    let bytes = batch.user_bytes() as usize + OP_BYTES * batch.len();
    let mut ours = WriteBatchWithTransaction::with_capacity_bytes(bytes);
    for op in batch.iter() {
        match op {
            Op::Put(tree, key, value) => ours.put_cf(&families[tree], key, value),
            Op::Delete(tree, key) => ours.delete_cf(&families[tree], key),
        }
    }
    ours
}

impl Database {
    pub(crate) fn open(
        settings: &Options,
        dir: &Path,
        families: Vec<ColumnFamilyDescriptor>,
        is_for_updates: bool,
    ) -> Result<Database> {
        if !is_for_updates {
            let db = DBWithThreadMode::open_cf_descriptors(settings, dir, families)?;
            return Ok(Database::Plain(db));
        }
        let mut locking = TransactionDBOptions::default();
        locking.set_txn_lock_timeout(LOCK_MILLIS);
        locking.set_default_lock_timeout(LOCK_MILLIS);
        let db = TransactionDB::open_cf_descriptors(settings, &locking, dir, families)?;
        Ok(Database::Locking(db))
    }

    /// A family without the lifetime of its database: looking it up by name at each operation would
    /// cost RocksDB a lock and a search that a program in C++ does not pay.
    ///
    /// # Safety
    ///
    /// The family goes before the database.
    pub(crate) unsafe fn family(&self, name: &str) -> Result<Family> {
        let family = both!(self, db => db.cf_handle(name))
            .ok_or("a column family is missing, which the open created")?;
        // SAFETY: only the lifetime changes, which the caller answers for.
        Ok(unsafe { std::mem::transmute::<Arc<BoundColumnFamily<'_>>, Family>(family) })
    }

    pub(crate) fn clear(&self, name: &str, family: &Options) -> Result<()> {
        both!(self, db => {
            db.drop_cf(name)?;
            db.create_cf(name, family)?;
        });
        Ok(())
    }

    pub(crate) fn wait_idle(&self, names: &[String]) -> Result<()> {
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        for name in names {
            both!(self, db => {
                let family =
                    db.cf_handle(name).ok_or("a column family is missing, which the open created")?;
                db.flush_cf_opt(&family, &flush)?;
            });
        }
        match self {
            Database::Plain(db) => {
                let mut wait = WaitForCompactOptions::default();
                wait.set_flush(true);
                db.wait_for_compact(&wait)?;
            }
            Database::Locking(db) => {
                // The crate has no better way. No step of a run waits on a store that is open so.
                while db.property_int_value("rocksdb.num-running-compactions")? != Some(0) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        Ok(())
    }

    /// Of transactions the crate shows what RocksDB counts of the whole database, and not what of
    /// families: flushes, compactions and levels.
    pub(crate) fn metrics(&self, names: &[String]) -> Result<Metrics> {
        let database = both!(self, db => db.property_value("rocksdb.dbstats"))?.unwrap_or_default();
        let Database::Plain(db) = self else {
            return Ok(stats::metrics(&database, &[]));
        };
        let mut families = Vec::new();
        for name in names {
            let family =
                db.cf_handle(name).ok_or("a column family is missing, which the open created")?;
            let text = db.property_value_cf(&family, "rocksdb.cfstats-no-file-histogram")?;
            families.push((name.as_str(), text.unwrap_or_default()));
        }
        Ok(stats::metrics(&database, &families))
    }

    #[inline]
    pub(crate) fn put(
        &self,
        family: &Family,
        key: &[u8],
        value: &[u8],
        write: &WriteOptions,
    ) -> Result<()> {
        both!(self, db => db.put_cf_opt(family, key, value, write)).map_err(Into::into)
    }

    #[inline]
    pub(crate) fn get<'a>(
        &'a self,
        family: &Family,
        key: &[u8],
        read: &ReadOptions,
    ) -> std::result::Result<Option<DBPinnableSlice<'a>>, Error> {
        both!(self, db => db.get_pinned_cf_opt(family, key, read))
    }

    /// Shows values by the keys' places and counts them.
    #[inline]
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: &Family,
        keys: &[K],
        read: &ReadOptions,
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<u64> {
        match self {
            Database::Plain(db) => {
                shown(db.batched_multi_get_cf_opt(family, keys, false, read), found)
            }
            // The crate has no batched one here.
            Database::Locking(db) => {
                let keys = keys.iter().map(|key| (family, key));
                shown(db.multi_get_cf_opt(keys, read), found)
            }
        }
    }

    #[inline]
    pub(crate) fn delete(&self, family: &Family, key: &[u8], write: &WriteOptions) -> Result<()> {
        both!(self, db => db.delete_cf_opt(family, key, write)).map_err(Into::into)
    }

    #[inline]
    pub(crate) fn write(
        &self,
        batch: &Batch,
        families: &[Family],
        write: &WriteOptions,
    ) -> Result<()> {
        match self {
            Database::Plain(db) => {
                let ours: WriteBatch = ours(batch, families);
                db.write_opt(ours, write).map_err(Into::into)
            }
            Database::Locking(db) => {
                db.write_opt(ours::<true>(batch, families), write).map_err(Into::into)
            }
        }
    }

    #[inline]
    pub(crate) fn scan(
        &self,
        family: &Family,
        read: ReadOptions,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        both!(self, db => cursor::show(db.raw_iterator_cf_opt(family, read), from, rows, row))
    }

    #[inline]
    pub(crate) fn update(
        &self,
        family: &Family,
        key: &[u8],
        (write, locking): (&WriteOptions, &TransactionOptions),
        new: &mut Vec<u8>,
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let Database::Locking(db) = self else {
            return Err("RocksDB was not opened for updates".into());
        };
        let transaction = db.transaction_opt(write, locking);
        let old = transaction.get_pinned_for_update_cf(family, key, true)?;
        new.clear();
        change(old.as_deref(), new);
        transaction.put_cf(family, key, &new)?;
        let found = old.is_some();
        drop(old);
        transaction.commit()?;
        Ok(found)
    }
}

fn shown<V: AsRef<[u8]>>(
    values: Vec<std::result::Result<Option<V>, Error>>,
    found: &mut impl FnMut(usize, &[u8]),
) -> Result<u64> {
    let mut there = 0;
    for (at, value) in values.into_iter().enumerate() {
        if let Some(value) = value? {
            found(at, value.as_ref());
            there += 1;
        }
    }
    Ok(there)
}
