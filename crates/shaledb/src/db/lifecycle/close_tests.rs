//! What calls in flight do that meet a close, when the directory is another instance's already.

use crate::base::error::{Error, Result};
use crate::base::sync::atomic::Ordering;
use crate::db::testing::Surprise;
use crate::db::{Background, Db, OpenOptions, Tree};
use crate::fs::mem::MemFs;
use crate::fs::{Env, Fs};
use crate::{Config, LockMode, ScanOptions, TransactionOptions, TreeConfig, WriteOptions};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

/// How many large values the later instance writes, and how many tables.
const VALUES: u8 = 20;

/// The earlier instance gives out numbers that no file has, so that it goes on with one that the
/// later one gives to a large value, or to a table.
fn skip_numbers(db: &Db, count: u8) {
    for _ in 0..count {
        db.core().new_file();
    }
}

fn large(n: u8) -> Vec<u8> {
    vec![n; 5000]
}

#[derive(Clone)]
struct World {
    fs: Arc<MemFs>,
    clock: Arc<Surprise>,
    /// The instance that has opened the directory after the close.
    later: Arc<Mutex<Option<Db>>>,
}

impl World {
    fn new() -> World {
        World { fs: Arc::new(MemFs::new()), clock: Arc::default(), later: Arc::default() }
    }

    fn open(&self) -> Result<Db> {
        let env = Env { fs: self.fs.clone(), clock: self.clock.clone() };
        let config = Config {
            memory_bytes: 16 << 20,
            memtable_bytes: 64 << 10,
            table_bytes: 64 << 10,
            tree: TreeConfig { blob_bytes: 4096, ..TreeConfig::default() },
            ..Config::default()
        };
        let options = OpenOptions { env, background: Background::Stepped, read_only: false };
        Db::open_in("/db", config, options)
    }

    fn files(&self) -> Result<Vec<String>> {
        let files = self.fs.list(Path::new("/db"))?;
        Ok(files.into_iter().map(|file| file.name).collect())
    }

    /// An instance with a tree.
    fn earlier(&self) -> Result<(Db, Tree)> {
        let db = self.open()?;
        let tree = db.tree_or_create("t")?;
        Ok((db, tree))
    }

    /// Closes the earlier instance and writes to a later one, with a handle of the other left.
    /// First large values, whose files have numbers one after the other, then tables.
    fn reopen(&self, earlier: Db) {
        earlier.close().unwrap();
        let db = self.open().unwrap();
        let tree = db.tree("t").unwrap();
        for n in 0..VALUES {
            tree.put_with(&[n], &large(n), WriteOptions::SYNC).unwrap();
        }
        for n in 0..VALUES {
            tree.put(&[VALUES, n], b"small").unwrap();
            db.flush().unwrap();
        }
        *self.later.lock().unwrap() = Some(db);
    }

    /// Whether what the later instance has written is there, for it and for the next one.
    fn check(&self) -> Result<()> {
        let mut db = self.later.lock().unwrap().take().expect("it was opened anew");
        for _ in 0..2 {
            let tree = db.tree("t")?;
            for n in 0..VALUES {
                assert!(tree.get(&[n])?.is_some_and(|value| value == large(n)), "{n}");
                assert_eq!(tree.get(&[VALUES, n])?.unwrap(), b"small");
            }
            assert_eq!(tree.scan::<&[u8]>(..)?.count(), 2 * usize::from(VALUES));
            drop(tree);
            db.close()?;
            db = self.open()?;
        }
        Ok(())
    }
}

/// A value during the first read of which the database is closed and opened anew.
struct Hook(World, Option<Db>, io::Cursor<Vec<u8>>);

impl Read for Hook {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Some(earlier) = self.1.take() {
            self.0.reopen(earlier);
        }
        self.2.read(to)
    }
}

fn closed<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::Closed)), "{result:?}");
}

#[test]
fn a_value_that_is_being_written_leaves_the_next_instances_files_alone() -> Result<()> {
    for bulk in [false, true] {
        let world = World::new();
        let (db, tree) = world.earlier()?;
        skip_numbers(&db, VALUES / 2);
        let mut value = Hook(world.clone(), Some(db), io::Cursor::new(large(99)));
        if bulk {
            let mut ingest = tree.ingest()?;
            ingest.add(b"a", b"begun")?;
            closed(ingest.add_reader(b"k", &mut value));
            closed(ingest.add(b"l", b"more"));
        } else {
            closed(tree.put_reader(b"k", &mut value, WriteOptions::default()));
        }
        world.check()?;
    }
    Ok(())
}

/// What it is about to commit it writes to tables, and removes them when that fails.
#[test]
fn a_transaction_beyond_its_memory_leaves_the_next_instances_files_alone() -> Result<()> {
    let world = World::new();
    let (db, tree) = world.earlier()?;
    let last = db.tree_or_create("u")?;
    let mut txn = db.begin(TransactionOptions { memory_bytes: 20_000, ..Default::default() })?;
    (0..5u8).try_for_each(|n| txn.put(&last, &[n], &[n; 1000]))?;
    (0..60u8).try_for_each(|n| txn.put(&tree, &[n], &[n; 1000]))?;
    assert!(txn.spilled_bytes() > 0);
    // When the tables of the first tree are written and what the other has was read: there is a look
    // at the clock before and one after.
    let (inside, core) = (world.clone(), db.core().clone());
    let (first, mut handle) = (core.next_file.load(Ordering::Relaxed), Some(db));
    let mut looks = 0;
    world.clock.arm(move || {
        looks += u32::from(core.next_file.load(Ordering::Relaxed) > first);
        if let Some(db) = handle.take_if(|_| looks == 2) {
            skip_numbers(&db, VALUES + VALUES / 2);
            inside.reopen(db);
        }
        looks == 2
    });
    let refused = txn.commit(WriteOptions::SYNC);
    assert!(world.clock.has_come(), "it was closed meanwhile");
    closed(refused);
    drop((tree, last));
    world.check()
}

/// What a thread is in the middle of is there when the close returns, or does not come.
#[test]
fn no_file_comes_or_goes_once_a_database_is_closed() -> Result<()> {
    let world = World::new();
    let (db, tree) = world.earlier()?;
    let mut ingest = tree.ingest()?;
    let (making, made) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        let mut n = 0u64;
        loop {
            let result = ingest.add(&n.to_be_bytes(), &large(1));
            let _ = making.send(());
            match result {
                Ok(()) => n += 1,
                Err(error) => return error,
            }
        }
    });
    made.recv().unwrap();
    db.close()?;
    let files = world.files()?;
    closed::<()>(Err(writer.join().unwrap()));
    assert_eq!(world.files()?, files);
    Ok(())
}

#[test]
fn who_holds_the_last_handle_removes_his_files() -> Result<()> {
    for scans in [false, true] {
        let world = World::new();
        let (db, tree) = world.earlier()?;
        let mut txn =
            db.begin(TransactionOptions { memory_bytes: 10_000, ..Default::default() })?;
        (0..200u8).try_for_each(|n| txn.put(&tree, &[n], &[n; 1000]))?;
        assert!(txn.spilled_bytes() > 0);
        let mut scan = txn.scan_locking(&tree, ScanOptions::default(), LockMode::Shared)?;
        assert!(scan.next(&mut txn)?);
        drop((tree, db));
        if scans {
            drop(txn);
            drop(scan);
        } else {
            drop(scan);
            drop(txn);
        }
        let files = world.files()?;
        assert!(!files.iter().any(|name| name.ends_with(".run")), "{scans}: {files:?}");
    }
    Ok(())
}
