//! WiredTiger: a B-tree table per tree, a session with a cursor per tree in each handle, a log that
//! every commit is written to.

use crate::api;
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::engine::{Batch, Engine, Failure, Handle, Metrics, Op, Result, TreeId};
use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

/// What MongoDB starts WiredTiger with.
const CHECKPOINT: &str = "(wait=60,log_size=2GB)";
/// The library's own least and most that make sense for a log file.
const LOG_FILE_BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=100 << 20;
const EVICTION_THREADS: u32 = 4;
/// Values are kept in leaf pages whatever their size, as MongoDB does: no read for each.
const LEAF_VALUE_BYTES: &str = "64MB";
const MEMORY_PAGE_BYTES: &str = "10m";
const VERSION: (c_int, c_int, c_int) = (3, 2, 1);

/// Calls a function of a handle's structure with the handle as its first argument.
macro_rules! call {
    ($handle:expr, $function:ident $(, $argument:expr)*) => {{
        let handle = $handle;
        // SAFETY: the handle came from the library, whose version was checked against the layout of
        // the structures, and its owner has not closed it; the arguments are of the types that the
        // header names and live until the call returns. Bytes given to set_key and set_value live
        // until the operation after it, which is all that WiredTiger asks.
        unsafe { ((*handle).$function)(handle $(, $argument)*) }
    }};
}

fn checked(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(failure(code)) }
}

fn failure(code: c_int) -> Failure {
    // SAFETY: the function gives a text that stays.
    let text = unsafe { CStr::from_ptr(api::wiredtiger_strerror(code)) };
    format!("WiredTiger: {}", text.to_string_lossy()).into()
}

/// The connection; sessions keep it open.
struct Connection(*mut api::Connection);

// SAFETY: a connection may be used by several threads at once.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.0.is_null() {
            call!(self.0, close, std::ptr::null());
        }
    }
}

impl Connection {
    fn session(self: &Arc<Connection>) -> Result<Session> {
        let mut session = null_mut();
        checked(call!(self.0, open_session, null_mut(), std::ptr::null(), &mut session))?;
        Ok(Session { session, _connection: self.clone() })
    }
}

/// A session with its cursors, which are closed with it.
struct Session {
    session: *mut api::Session,
    _connection: Arc<Connection>,
}

// SAFETY: a session and its cursors may be used by one thread after another.
unsafe impl Send for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        call!(self.session, close, std::ptr::null());
    }
}

impl Session {
    fn cursor(&self, uri: &CStr, config: &CStr) -> Result<*mut api::Cursor> {
        let mut cursor = null_mut();
        let (uri, config) = (uri.as_ptr(), config.as_ptr());
        checked(call!(self.session, open_cursor, uri, null_mut(), config, &mut cursor))?;
        Ok(cursor)
    }
}

/// An open database.
pub(crate) struct WiredTiger {
    own: Mutex<Session>,
    connection: Arc<Connection>,
    names: Vec<CString>,
    table: CString,
}

/// WiredTiger's own codec in the place of one of the lab's: the extension that brings it, and its
/// name. Debian's build has no LZ4 and no Zstandard. Snappy, MongoDB's default, stands for both:
/// zlib compresses as Zstandard does, but a B-tree compresses a page anew for every few rows that
/// change, and zlib made a random write seven times as dear in CPU.
fn codec(setup: &Setup) -> (Option<String>, &'static str) {
    match setup.codecs.bottommost.split(':').collect::<Vec<_>>()[..] {
        ["lz4" | "zstd", ..] => (Some("libwiredtiger_snappy.so".to_owned()), "snappy"),
        ["zlib", level] => {
            let config = format!("libwiredtiger_zlib.so={{config={{compression_level={level}}}}}");
            (Some(config), "zlib")
        }
        ["zlib"] => (Some("libwiredtiger_zlib.so".to_owned()), "zlib"),
        _ => (None, "none"),
    }
}

/// As long as the others' logs. Files are not made before they are needed: three of 100 MB would
/// be most of a small store.
fn log(setup: &Setup) -> String {
    let bytes = setup.memtable.clamp(*LOG_FILE_BYTES.start(), *LOG_FILE_BYTES.end());
    format!("(enabled=true,archive=true,file_max={bytes},prealloc=false)")
}

fn transaction_sync(setup: &Setup) -> &'static str {
    match setup.durability {
        Durability::Process => "(enabled=true,method=none)",
        Durability::Power => "(enabled=true,method=fsync)",
    }
}

/// The settings of the connection, as name and value.
fn settings(setup: &Setup) -> Vec<(&'static str, String)> {
    let threads = EVICTION_THREADS.max(setup.background_threads).min(20);
    vec![
        ("cache_size", setup.memory.to_string()),
        ("session_max", "1000".to_owned()),
        ("eviction", format!("(threads_min={threads},threads_max={threads})")),
        ("checkpoint", CHECKPOINT.to_owned()),
        ("log", log(setup)),
        ("transaction_sync", transaction_sync(setup).to_owned()),
        ("statistics", "(fast)".to_owned()),
        ("extensions", format!("[{}]", codec(setup).0.unwrap_or_default())),
    ]
}

fn table_settings(setup: &Setup) -> Vec<(&'static str, String)> {
    vec![
        ("key_format", "u".to_owned()),
        ("value_format", "u".to_owned()),
        ("block_compressor", codec(setup).1.to_owned()),
        ("leaf_page_max", setup.block_bytes.to_string()),
        ("leaf_value_max", LEAF_VALUE_BYTES.to_owned()),
        ("memory_page_max", MEMORY_PAGE_BYTES.to_owned()),
    ]
}

fn joined(settings: Vec<(&'static str, String)>) -> Result<CString> {
    let parts: Vec<String> =
        settings.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(CString::new(parts.join(","))?)
}

impl Engine for WiredTiger {
    type Handle = WiredTigerHandle;
    const NAME: &'static str = "wiredtiger";

    fn version() -> String {
        let (major, minor, patch) = api::version();
        format!("{major}.{minor}.{patch}")
    }

    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<WiredTiger> {
        if api::version() != VERSION {
            let found = WiredTiger::version();
            return Err(format!(
                "WiredTiger {found} is linked, but the adapter is written for 3.2.1: install \
                 libwiredtiger-dev of Debian 12"
            )
            .into());
        }
        std::fs::create_dir_all(dir)?;
        let home = CString::new(dir.as_os_str().as_encoded_bytes())?;
        let config = CString::new(format!("create,{}", joined(settings(setup))?.to_str()?))?;
        let mut connection = null_mut();
        // SAFETY: both texts end with a zero and live until the call returns; no handler of events
        // is given.
        checked(unsafe {
            api::wiredtiger_open(home.as_ptr(), null_mut(), config.as_ptr(), &mut connection)
        })?;
        let connection = Arc::new(Connection(connection));
        let own = connection.session()?;
        let table = joined(table_settings(setup))?;
        let mut names = Vec::new();
        for name in trees {
            let name = CString::new(format!("table:{name}"))?;
            checked(call!(own.session, create, name.as_ptr(), table.as_ptr()))?;
            names.push(name);
        }
        Ok(WiredTiger { own: Mutex::new(own), connection, names, table })
    }

    fn open_for_updates(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<WiredTiger> {
        // Of two transactions that change a row the second is refused, and done again.
        WiredTiger::open(dir, setup, trees)
    }

    fn configuration(setup: &Setup) -> Vec<(String, String)> {
        let table = table_settings(setup).into_iter();
        settings(setup).into_iter().chain(table).map(|(name, at)| (name.to_owned(), at)).collect()
    }

    fn handle(&self) -> Result<WiredTigerHandle> {
        let session = self.connection.session()?;
        let cursors = self.names.iter().map(|name| session.cursor(name, c""));
        let (cursors, new) = (cursors.collect::<Result<_>>()?, Vec::new());
        Ok(WiredTigerHandle { cursors, new, session })
    }

    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let name = self.names[tree].as_ptr();
        match call!(own.session, drop, name, std::ptr::null()) {
            0 => checked(call!(own.session, create, name, self.table.as_ptr())),
            // A handle that nobody uses is still there, with its cursors.
            api::EBUSY => {
                let none = std::ptr::null();
                checked(call!(own.session, truncate, name, null_mut(), null_mut(), none))
            }
            code => Err(failure(code)),
        }
    }

    fn wait_idle(&self) -> Result<()> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        checked(call!(own.session, checkpoint, std::ptr::null()))
    }

    fn metrics(&self) -> Result<Metrics> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let cursor = own.cursor(c"statistics:", c"statistics=(fast)")?;
        let all = statistics(cursor);
        checked(call!(cursor, close))?;
        let all = all?;
        let number = |key: c_int| -> u64 {
            let found = all.iter().find(|(known, _, _)| *known == key);
            found.map_or(0, |&(_, _, value)| value.max(0) as u64)
        };
        let lines = all.iter().filter(|(_, name, value)| {
            let groups = ["block-manager:", "cache:", "log:", "transaction:"];
            *value != 0 && groups.iter().any(|group| name.starts_with(group))
        });
        Ok(Metrics {
            wal_bytes: number(api::LOG_BYTES_WRITTEN),
            flush_bytes: Some(number(api::BLOCK_BYTE_WRITE)),
            stall_seconds: number(api::CACHE_WRITE_APP_TIME) as f64 / 1e6,
            table: lines.map(|(_, name, value)| format!("{name} {value}\n")).collect(),
            ..Metrics::default()
        })
    }

    fn close(self) -> Result<()> {
        drop(self.own);
        let mut connection =
            Arc::try_unwrap(self.connection).map_err(|_| "a handle of WiredTiger is still open")?;
        let pointer = std::mem::replace(&mut connection.0, null_mut());
        checked(call!(pointer, close, std::ptr::null()))
    }
}

/// All statistics: key, name, value.
fn statistics(cursor: *mut api::Cursor) -> Result<Vec<(c_int, String, i64)>> {
    let mut all = Vec::new();
    loop {
        match call!(cursor, next) {
            0 => {}
            api::NOTFOUND => return Ok(all),
            code => return Err(failure(code)),
        }
        let (mut key, mut value) = (0 as c_int, 0i64);
        let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
        checked(call!(cursor, get_key, &raw mut key))?;
        checked(call!(cursor, get_value, &raw mut name, &raw mut text, &raw mut value))?;
        let _: *const std::ffi::c_char = text;
        // SAFETY: the library gave a text that stays until the cursor moves.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        all.push((key, name, value));
    }
}

/// One thread's view of it.
pub(crate) struct WiredTigerHandle {
    cursors: Vec<*mut api::Cursor>,
    /// What an update writes.
    new: Vec<u8>,
    session: Session,
}

// SAFETY: a session and its cursors may be used by one thread after another; all of them are in
// this one value, which is not shared.
unsafe impl Send for WiredTigerHandle {}

/// The bytes of a key or a value where they lie.
///
/// # Safety
///
/// The item was filled by the library, and its cursor does not move while the bytes are in use.
unsafe fn bytes<'a>(item: &api::Item) -> &'a [u8] {
    if item.size == 0 {
        return &[];
    }
    // SAFETY: by what the caller promises.
    unsafe { std::slice::from_raw_parts(item.data.cast(), item.size) }
}

fn set_key(cursor: *mut api::Cursor, key: &api::Item) {
    call!(cursor, set_key, std::ptr::from_ref(key).cast::<c_void>());
}

fn put(cursor: *mut api::Cursor, key: &[u8], value: &[u8]) -> c_int {
    let (key, value) = (api::Item::new(key), api::Item::new(value));
    set_key(cursor, &key);
    call!(cursor, set_value, std::ptr::from_ref(&value).cast::<c_void>());
    call!(cursor, insert)
}

fn delete(cursor: *mut api::Cursor, key: &[u8]) -> c_int {
    let key = api::Item::new(key);
    set_key(cursor, &key);
    match call!(cursor, remove) {
        api::NOTFOUND => 0,
        code => code,
    }
}

/// Does it again as long as another transaction was first to change the same row.
fn retried(mut act: impl FnMut() -> c_int) -> Result<()> {
    loop {
        match act() {
            api::ROLLBACK => std::thread::yield_now(),
            code => return checked(code),
        }
    }
}

impl WiredTigerHandle {
    fn begin(&self) -> c_int {
        call!(self.session.session, begin_transaction, c"isolation=snapshot".as_ptr())
    }

    /// Reads a row and writes it, within a transaction: the code, and whether the row was there.
    fn change(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> std::result::Result<bool, c_int> {
        let (cursor, of) = (self.cursors[tree], api::Item::new(key));
        let ok = |code: c_int| if code == 0 { Ok(()) } else { Err(code) };
        self.new.clear();
        set_key(cursor, &of);
        let found = match call!(cursor, search) {
            0 => {
                let mut old = api::Item::new(b"");
                ok(call!(cursor, get_value, &raw mut old))?;
                // SAFETY: the library filled it, and the cursor moves only after `change` is done.
                change(Some(unsafe { bytes(&old) }), &mut self.new);
                true
            }
            api::NOTFOUND => {
                change(None, &mut self.new);
                false
            }
            code => return Err(code),
        };
        ok(put(cursor, key, &self.new))?;
        ok(call!(self.session.session, commit_transaction, std::ptr::null()))?;
        Ok(found)
    }

    fn rollback(&self) {
        call!(self.session.session, rollback_transaction, std::ptr::null());
    }

    /// Shows the pairs from where the cursor is put.
    fn show(
        cursor: *mut api::Cursor,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> std::result::Result<u64, c_int> {
        let mut code = if from.is_empty() {
            call!(cursor, next)
        } else {
            let mut side = 0;
            let key = api::Item::new(from);
            set_key(cursor, &key);
            match call!(cursor, search_near, &mut side) {
                0 if side < 0 => call!(cursor, next),
                code => code,
            }
        };
        let mut done = 0;
        while done < rows {
            match code {
                0 => {}
                api::NOTFOUND => break,
                code => return Err(code),
            }
            let (mut key, mut value) = (api::Item::new(b""), api::Item::new(b""));
            let codes =
                [call!(cursor, get_key, &raw mut key), call!(cursor, get_value, &raw mut value)];
            if let Some(&code) = codes.iter().find(|&&code| code != 0) {
                return Err(code);
            }
            done += 1;
            // SAFETY: the library filled both, and the cursor moves only after `row` is done.
            if !unsafe { row(bytes(&key), bytes(&value)) } || done == rows {
                break;
            }
            code = call!(cursor, next);
        }
        Ok(done)
    }
}

impl Handle for WiredTigerHandle {
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        let cursor = self.cursors[tree];
        retried(|| put(cursor, key, value))
    }

    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        let cursor = self.cursors[tree];
        let key = api::Item::new(key);
        set_key(cursor, &key);
        match call!(cursor, search) {
            0 => {}
            api::NOTFOUND => return Ok(false),
            code => return Err(failure(code)),
        }
        let mut value = api::Item::new(b"");
        checked(call!(cursor, get_value, &raw mut value))?;
        // SAFETY: the library filled it, and the cursor is reset only after `found` is done.
        found(unsafe { bytes(&value) });
        checked(call!(cursor, reset))?;
        Ok(true)
    }

    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        let cursor = self.cursors[tree];
        retried(|| delete(cursor, key))
    }

    fn write(&mut self, batch: &Batch) -> Result<()> {
        retried(|| {
            let began = self.begin();
            if began != 0 {
                return began;
            }
            for op in batch.iter() {
                let code = match op {
                    Op::Put(tree, key, value) => put(self.cursors[tree], key, value),
                    Op::Delete(tree, key) => delete(self.cursors[tree], key),
                };
                if code != 0 {
                    self.rollback();
                    return code;
                }
            }
            call!(self.session.session, commit_transaction, std::ptr::null())
        })
    }

    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        if rows == 0 {
            return Ok(0);
        }
        let cursor = self.cursors[tree];
        checked(self.begin())?;
        let shown = WiredTigerHandle::show(cursor, from, rows, row);
        let reset = call!(cursor, reset);
        self.rollback();
        checked(reset)?;
        shown.map_err(failure)
    }

    fn update(
        &mut self,
        tree: TreeId,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>, &mut Vec<u8>),
    ) -> Result<bool> {
        let mut found = false;
        retried(|| {
            let began = self.begin();
            if began != 0 {
                return began;
            }
            match self.change(tree, key, change) {
                Ok(is_there) => {
                    found = is_there;
                    0
                }
                Err(code) => {
                    // A commit that fails has rolled back; a second time does no harm.
                    self.rollback();
                    code
                }
            }
        })?;
        Ok(found)
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
