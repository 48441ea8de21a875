//! SQLite: a table without row identifiers per tree, in one file in WAL mode; a connection per
//! handle. Writers take turns by a lock of ours, because those of SQLite find theirs taken and
//! sleep.

use rusqlite::{Connection, OpenFlags, Rows, Statement, ffi};
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::engine::{Batch, Engine, Handle, Metrics, Op, Result, TreeId};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// The default, and right for rows of up to 200 bytes in a table without row identifiers.
const PAGE_BYTES: u64 = 4096;
/// Of each connection. Other connections' commits empty it, so that more would be of no use.
const CACHE_BYTES: u64 = 16 << 20;
/// The most that this build of SQLite maps.
const MAP_BYTES_MAX: u64 = 0x7fff_0000;

/// An open database.
pub(crate) struct Sqlite {
    file: PathBuf,
    setup: Setup,
    names: Vec<String>,
    /// For all that is not a workload's operation.
    own: Mutex<Connection>,
    writing: Arc<Mutex<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns the accounting of memory off: it makes every allocation of every thread take one lock.
fn configure_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the option takes one int, and nothing has called SQLite yet: every connection is
        // opened after this.
        unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0) };
    });
}

fn synchronous(setup: &Setup) -> &'static str {
    if setup.durability == Durability::Power { "FULL" } else { "NORMAL" }
}

fn map_bytes(setup: &Setup) -> u64 {
    setup.memory.min(MAP_BYTES_MAX)
}

/// What a memtable may hold before it is flushed, the log may hold before it is copied back.
fn checkpoint_pages(setup: &Setup) -> u64 {
    (setup.memtable / PAGE_BYTES).max(1)
}

fn connect(file: &Path, setup: &Setup) -> Result<Connection> {
    configure_once();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update(None, "page_size", PAGE_BYTES as i64)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous(setup))?;
    connection.pragma_update(None, "mmap_size", map_bytes(setup) as i64)?;
    connection.pragma_update(None, "cache_size", -((CACHE_BYTES >> 10) as i64))?;
    connection.pragma_update(None, "wal_autocheckpoint", checkpoint_pages(setup) as i64)?;
    Ok(connection)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Engine for Sqlite {
    type Handle = SqliteHandle;
    const NAME: &'static str = "sqlite";

    fn version() -> String {
        rusqlite::version().to_owned()
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Sqlite> {
        std::fs::create_dir_all(dir)?;
        let file = dir.join("data.sqlite");
        let own = connect(&file, setup)?;
        for name in trees {
            let name = quoted(name);
            own.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS {name} \
                 (k BLOB PRIMARY KEY NOT NULL, v BLOB NOT NULL) WITHOUT ROWID"
            ))?;
        }
        let names = trees.iter().map(|name| quoted(name)).collect();
        let (own, writing) = (Mutex::new(own), Arc::default());
        Ok(Sqlite { file, setup: setup.clone(), names, own, writing })
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Sqlite> {
        // There is one writer at a time: every transaction that writes holds all rows.
        Sqlite::open(dir, setup, trees)
    }

    fn configuration(setup: &Setup) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        vec![
            pair("journal_mode", "WAL".to_owned()),
            pair("synchronous", synchronous(setup).to_owned()),
            pair("page_size", PAGE_BYTES.to_string()),
            pair("mmap_size", map_bytes(setup).to_string()),
            pair("cache_size (of each connection)", CACHE_BYTES.to_string()),
            pair("wal_autocheckpoint (pages)", checkpoint_pages(setup).to_string()),
            pair("SQLITE_CONFIG_MEMSTATUS", "0".to_owned()),
            pair("tables", "WITHOUT ROWID".to_owned()),
            pair("compression", "none: SQLite has none".to_owned()),
        ]
    }

    fn handle(&self) -> Result<SqliteHandle> {
        let connection = Box::new(connect(&self.file, &self.setup)?);
        let prepare =
            |text: &str| -> Result<Statement<'static>> { Ok(lasting(connection.prepare(text)?)) };
        let trees = self.names.iter().map(|name| -> Result<Statements> {
            Ok(Statements {
                put: prepare(&format!("REPLACE INTO {name} VALUES (?1, ?2)"))?,
                get: prepare(&format!("SELECT v FROM {name} WHERE k = ?1"))?,
                delete: prepare(&format!("DELETE FROM {name} WHERE k = ?1"))?,
                scan: prepare(&format!("SELECT k, v FROM {name} WHERE k >= ?1 ORDER BY k"))?,
                range: prepare(&format!(
                    "SELECT k, v FROM {name} WHERE k >= ?1 AND k < ?2 ORDER BY k"
                ))?,
            })
        });
        Ok(SqliteHandle {
            trees: trees.collect::<Result<_>>()?,
            begin: prepare("BEGIN IMMEDIATE")?,
            begin_read: prepare("BEGIN")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            new: Vec::new(),
            writing: self.writing.clone(),
            _connection: connection,
        })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        let _turn = lock(&self.writing);
        // Without a condition SQLite frees all pages and visits no row. They are used again; the
        // file does not shrink.
        lock(&self.own).execute_batch(&format!("DELETE FROM {}", self.names[tree]))?;
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        let _turn = lock(&self.writing);
        let busy: i64 =
            lock(&self.own).query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
        if busy != 0 {
            return Err("SQLite could not copy its log back: a reader holds it".into());
        }
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        let own = lock(&self.own);
        let number = |name: &str| -> Result<i64> {
            Ok(own.pragma_query_value(None, name, |row| row.get(0))?)
        };
        let table =
            format!("pages {}, free {}\n", number("page_count")?, number("freelist_count")?);
        Ok(Metrics { table, ..Metrics::default() })
    }

    fn close(self) -> Result<()> {
        let own = self.own.into_inner().unwrap_or_else(PoisonError::into_inner);
        own.close().map_err(|(_, error)| error.into())
    }
}

struct Statements {
    put: Statement<'static>,
    get: Statement<'static>,
    delete: Statement<'static>,
    scan: Statement<'static>,
    range: Statement<'static>,
}

/// One thread's view of it. The statements come before their connection, so that they go first.
pub(crate) struct SqliteHandle {
    trees: Vec<Statements>,
    begin: Statement<'static>,
    begin_read: Statement<'static>,
    commit: Statement<'static>,
    rollback: Statement<'static>,
    /// What an update writes.
    new: Vec<u8>,
    writing: Arc<Mutex<()>>,
    _connection: Box<Connection>,
}

// SAFETY: a connection may be used by one thread after another, and its statements with it. All of
// them are in this one value, which is not shared.
unsafe impl Send for SqliteHandle {}

/// A statement without the lifetime of its connection: preparing it for each operation would cost
/// what a program in C does not pay.
fn lasting(statement: Statement<'_>) -> Statement<'static> {
    // SAFETY: only the lifetime changes. The one place that keeps the result, SqliteHandle, owns
    // the connection as well, in a box that stays where it is, and lets the statements go first.
    unsafe { std::mem::transmute(statement) }
}

/// Looks a key up by a prepared statement.
fn get(get: &mut Statement<'_>, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
    let mut rows = get.query((key,))?;
    match rows.next()? {
        Some(row) => {
            found(row.get_ref(0)?.as_blob()?);
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Shows up to `rows` rows of a query.
fn show(mut found: Rows<'_>, rows: u64, row: &mut impl FnMut(&[u8], &[u8]) -> bool) -> Result<u64> {
    let mut done = 0;
    while done < rows {
        let Some(pair) = found.next()? else { break };
        done += 1;
        if !row(pair.get_ref(0)?.as_blob()?, pair.get_ref(1)?.as_blob()?) {
            break;
        }
    }
    Ok(done)
}

impl SqliteHandle {
    /// Ends a transaction: by a commit, or by a rollback if something in it failed. The first error
    /// is the one to report.
    fn end<T>(&mut self, outcome: Result<T>) -> Result<T> {
        let outcome = outcome.and_then(|done| {
            self.commit.execute(())?;
            Ok(done)
        });
        outcome.inspect_err(|_| {
            let _ = self.rollback.execute(());
        })
    }
}

impl Handle for SqliteHandle {
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let _turn = lock(&self.writing);
        self.trees[tree].put.execute((key, value))?;
        Ok(())
    }

    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        get(&mut self.trees[tree].get, key, found)
    }

    /// In one transaction, since beginning one is a lock of a file.
    fn multi_get(
        &mut self,
        tree: TreeId,
        keys: &[impl AsRef<[u8]>],
        found: &mut impl FnMut(usize, &[u8]),
    ) -> Result<u64> {
        self.begin_read.execute(())?;
        let by = &mut self.trees[tree].get;
        let all = keys.iter().enumerate().try_fold(0, |there, (at, key)| {
            let is_there = get(by, key.as_ref(), &mut |value| found(at, value))?;
            Ok(there + u64::from(is_there))
        });
        self.end(all)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let _turn = lock(&self.writing);
        self.trees[tree].delete.execute((key,))?;
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> Result<()> {
        let writing = self.writing.clone();
        let _turn = lock(&writing);
        self.begin.execute(())?;
        let trees = &mut self.trees;
        let applied = batch.iter().try_for_each(|op| {
            match op {
                Op::Put(tree, key, value) => trees[tree].put.execute((key, value))?,
                Op::Delete(tree, key) => trees[tree].delete.execute((key,))?,
            };
            Ok(())
        });
        self.end(applied)
    }

    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        show(self.trees[tree].scan.query((from,))?, rows, row)
    }

    fn scan_range(
        &mut self,
        tree: TreeId,
        from: &[u8],
        to: &[u8],
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        show(self.trees[tree].range.query((from, to))?, u64::MAX, row)
    }

    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let writing = self.writing.clone();
        let _turn = lock(&writing);
        self.begin.execute(())?;
        let (by, new) = (&mut self.trees[tree], &mut self.new);
        new.clear();
        let mut read_and_write = || -> Result<bool> {
            let found = get(&mut by.get, key, &mut |old| change(Some(old), new))?;
            if !found {
                change(None, new);
            }
            by.put.execute((key, &new[..]))?;
            Ok(found)
        };
        let outcome = read_and_write();
        self.end(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaledb_lab::stores::conformance;

    #[test]
    fn does_what_every_engine_must() {
        let dir = tempfile::tempdir().unwrap();
        let setup = conformance::setup();
        conformance::check::<Sqlite>(dir.path(), &setup, 1, 4000).unwrap();
        let scans = conformance::Scans::OfOneMoment;
        conformance::check_threads::<Sqlite>(dir.path(), &setup, 50, scans).unwrap();
    }

    #[test]
    fn updates_as_every_engine_must() {
        let dir = tempfile::tempdir().unwrap();
        let setup = conformance::setup();
        conformance::check_updates::<Sqlite>(dir.path(), &setup, 2, 4000).unwrap();
        conformance::check_counters::<Sqlite>(dir.path(), &setup, 200).unwrap();
    }

    #[test]
    fn commits_can_be_synced() {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup { durability: Durability::Power, ..conformance::setup() };
        conformance::check::<Sqlite>(dir.path(), &setup, 2, 400).unwrap();
    }

    #[test]
    fn settings_are_as_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let setup = conformance::setup();
        let store = Sqlite::open(dir.path(), &setup, &["a\"b"]).unwrap();
        let own = lock(&store.own);
        let number =
            |name: &str| -> i64 { own.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
        assert_eq!(number("page_size"), PAGE_BYTES as i64);
        assert_eq!(number("mmap_size"), 64 << 20);
        assert_eq!(number("wal_autocheckpoint"), 256);
        assert_eq!(number("synchronous"), 1);
        let mode: String = own.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn a_cleared_tree_gives_its_pages_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::open(dir.path(), &conformance::setup(), &["a", "b"]).unwrap();
        let mut batch = Batch::new();
        (0..2000u32).for_each(|n| batch.put(0, &n.to_be_bytes(), &[1; 200]));
        let mut handle = store.handle().unwrap();
        handle.write(&batch).unwrap();
        store.clear_tree(0).unwrap();
        let free = store.metrics().unwrap().table;
        let free: u64 = free.trim().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(free > 100, "{free}");
        store.wait_idle().unwrap();
    }
}
