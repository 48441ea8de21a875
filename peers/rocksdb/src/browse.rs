//! A column family of somebody's database, read-only, for `shale advise`. The crate does not show
//! how many bytes lie before a key, nor its handles, so this goes by RocksDB's C interface.

use librocksdb_sys as ffi;
use shaledb_lab::browse::{About, Browse, Entry};
use shaledb_lab::stores::engine::Result;
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// What RocksDB adds to each key that its properties count: a sequence number and a type.
const KEY_SUFFIX: u64 = 8;
/// Tables that are open at a time.
const OPEN_FILES: i32 = 512;
/// A read-only open must name this one too.
const DEFAULT: &CStr = c"default";

/// An open column family.
pub(crate) struct Folder {
    path: PathBuf,
    /// Of the column family.
    name: String,
    options: *mut ffi::rocksdb_options_t,
    read: *mut ffi::rocksdb_readoptions_t,
    db: *mut ffi::rocksdb_t,
    /// That of `DEFAULT`, and the one that is read: it may be the same.
    families: Vec<*mut ffi::rocksdb_column_family_handle_t>,
}

impl Folder {
    /// Opens the column family of a database, which may be open elsewhere.
    pub(crate) fn open(path: &Path, family: &str) -> Result<Folder> {
        let folder = CString::new(path.as_os_str().as_bytes())?;
        let name = CString::new(family)?;
        // SAFETY: these calls only allocate; `Folder` frees.
        let (options, read) =
            unsafe { (ffi::rocksdb_options_create(), ffi::rocksdb_readoptions_create()) };
        let mut opened = Folder {
            path: path.to_owned(),
            name: family.to_owned(),
            options,
            read,
            db: null_mut(),
            families: Vec::new(),
        };
        // SAFETY: both were just made.
        unsafe {
            // Not every table of a large database at once.
            ffi::rocksdb_options_set_max_open_files(options, OPEN_FILES);
            ffi::rocksdb_readoptions_set_fill_cache(read, 0);
            ffi::rocksdb_readoptions_set_total_order_seek(read, 1);
        }
        let mut names = vec![DEFAULT.as_ptr()];
        if family.as_bytes() != DEFAULT.to_bytes() {
            names.push(name.as_ptr());
        }
        let of_each = vec![options.cast_const(); names.len()];
        let mut families = vec![null_mut(); names.len()];
        let mut error = null_mut();
        // SAFETY: the arrays have as many elements as the count says, and live through the call.
        let db = unsafe {
            ffi::rocksdb_open_for_read_only_column_families(
                options,
                folder.as_ptr(),
                names.len() as i32,
                names.as_ptr(),
                of_each.as_ptr(),
                families.as_mut_ptr(),
                0,
                &raw mut error,
            )
        };
        if let Some(why) = taken(error) {
            return Err(opened.refused(&why).into());
        }
        (opened.db, opened.families) = (db, families);
        Ok(opened)
    }

    /// Why it is not open, and what to do.
    fn refused(&self, why: &str) -> String {
        let hint = if why.contains("Column family not found") {
            format!("; --tree names one of its column families: {}", self.names().join(", "))
        } else if why.contains("comparator") {
            "; only keys in the order of their bytes can be read. Of MyRocks, ask the server by \
             --mariadb"
                .to_owned()
        } else {
            String::new()
        };
        let (path, family) = (self.path.display(), &self.name);
        format!("{path}: RocksDB cannot open the column family {family}: {why}{hint}")
    }

    /// The column families of the database.
    fn names(&self) -> Vec<String> {
        let folder = CString::new(self.path.as_os_str().as_bytes());
        let Ok(folder) = folder else { return Vec::new() };
        let (mut count, mut error) = (0, null_mut());
        // SAFETY: the options are valid; the list is read by its count and given back to RocksDB.
        unsafe {
            let list = ffi::rocksdb_list_column_families(
                self.options,
                folder.as_ptr(),
                &raw mut count,
                &raw mut error,
            );
            if taken(error).is_some() {
                return Vec::new();
            }
            let name = |at| CStr::from_ptr(*list.add(at)).to_string_lossy().into_owned();
            let names = (0..count).map(name).collect();
            ffi::rocksdb_list_column_families_destroy(list, count);
            names
        }
    }

    fn family(&self) -> *mut ffi::rocksdb_column_family_handle_t {
        self.families.last().copied().unwrap_or(null_mut())
    }

    fn number(&self, property: &CStr) -> u64 {
        let mut number = 0;
        // SAFETY: database and family are open.
        let failed = unsafe {
            ffi::rocksdb_property_int_cf(
                self.db,
                self.family(),
                property.as_ptr(),
                &raw mut number,
            )
        };
        if failed == 0 { number } else { 0 }
    }

    fn text(&self, property: &CStr) -> String {
        // SAFETY: database and family are open; the text is RocksDB's until it is freed.
        unsafe {
            let text =
                ffi::rocksdb_property_value_cf(self.db, self.family(), property.as_ptr());
            taken(text).unwrap_or_default()
        }
    }

    fn cursor(&self) -> Cursor {
        // SAFETY: database, options and family are open, and outlive the cursor, which no caller
        // keeps.
        Cursor(unsafe { ffi::rocksdb_create_iterator_cf(self.db, self.read, self.family()) })
    }
}

impl Browse for Folder {
    fn about(&mut self) -> Result<About> {
        let tables = self.text(c"rocksdb.aggregated-table-properties");
        let table_entries = property(&tables, "# entries");
        let raw_key = property(&tables, "raw key size");
        let memtable_entries = self.number(c"rocksdb.num-entries-active-mem-table");
        let cursor = self.cursor();
        // SAFETY: the cursor is valid.
        unsafe { ffi::rocksdb_iter_seek_to_last(cursor.0) };
        let last = cursor.row()?.map(|(key, _)| key.to_vec());
        let mut others = if last.is_none() { self.names() } else { Vec::new() };
        others.retain(|name| *name != self.name);
        Ok(About {
            table_entries,
            memtable_entries,
            raw_bytes: raw_key.saturating_sub(KEY_SUFFIX * table_entries)
                + property(&tables, "raw value size"),
            has_uncounted: memtable_entries > 0 || self.number(c"rocksdb.num-blob-files") > 0,
            last,
            others,
        })
    }

    fn stored_before(&mut self, key: &[u8]) -> Result<u64> {
        let (from, from_bytes) = (c"".as_ptr(), 0);
        let (to, to_bytes) = (key.as_ptr().cast::<c_char>(), key.len());
        let (mut bytes, mut error) = (0, null_mut());
        // SAFETY: one range, whose keys live through the call.
        unsafe {
            ffi::rocksdb_approximate_sizes_cf(
                self.db,
                self.family(),
                1,
                &raw const from,
                &raw const from_bytes,
                &raw const to,
                &raw const to_bytes,
                &raw mut bytes,
                &raw mut error,
            );
        }
        taken(error).map_or(Ok(bytes), |why| Err(why.into()))
    }

    fn rows(&mut self, from: &[u8], bytes: u64, places: bool) -> Result<Vec<Entry>> {
        let cursor = self.cursor();
        // SAFETY: the cursor is valid, and the key lives through the call.
        unsafe { ffi::rocksdb_iter_seek(cursor.0, from.as_ptr().cast(), from.len()) };
        let (mut rows, mut so_far) = (Vec::new(), 0);
        while so_far < bytes.max(1)
            && let Some((key, value)) = cursor.row()?
        {
            so_far += (key.len() + value.len()) as u64;
            let (key, value) = (key.to_vec(), value.to_vec());
            let before = if places { self.stored_before(&key)? } else { 0 };
            rows.push(Entry { key, value, before });
            // SAFETY: the cursor is at a row, which is not used any more.
            unsafe { ffi::rocksdb_iter_next(cursor.0) };
        }
        Ok(rows)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // SAFETY: each was made by the call that belongs to it, is freed once, and the database
        // goes after its families.
        unsafe {
            for family in &self.families {
                ffi::rocksdb_column_family_handle_destroy(*family);
            }
            if !self.db.is_null() {
                ffi::rocksdb_close(self.db);
            }
            ffi::rocksdb_readoptions_destroy(self.read);
            ffi::rocksdb_options_destroy(self.options);
        }
    }
}

struct Cursor(*mut ffi::rocksdb_iterator_t);

impl Cursor {
    /// Where it stands; `None` behind the last row.
    fn row(&self) -> Result<Option<(&[u8], &[u8])>> {
        // SAFETY: the cursor is valid; key and value are its own until it moves.
        unsafe {
            if ffi::rocksdb_iter_valid(self.0) == 0 {
                let mut error = null_mut();
                ffi::rocksdb_iter_get_error(self.0, &raw mut error);
                return taken(error).map_or(Ok(None), |why| Err(why.into()));
            }
            let (mut key_bytes, mut value_bytes) = (0, 0);
            let key = ffi::rocksdb_iter_key(self.0, &raw mut key_bytes);
            let value = ffi::rocksdb_iter_value(self.0, &raw mut value_bytes);
            Ok(Some((slice(key, key_bytes), slice(value, value_bytes))))
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        unsafe { ffi::rocksdb_iter_destroy(self.0) }
    }
}

/// # Safety
///
/// So many bytes are there as long as the result is used.
unsafe fn slice<'a>(bytes: *const c_char, count: usize) -> &'a [u8] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller says so, and there is at least one.
    unsafe { std::slice::from_raw_parts(bytes.cast(), count) }
}

/// A text of RocksDB, which is freed; `None` if there is none.
fn taken(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: RocksDB gave it away, with a zero at its end.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        ffi::rocksdb_free(text.cast());
        Some(copy)
    }
}

/// A number of `name=number; ...`.
fn property(text: &str, name: &str) -> u64 {
    let number = text.split(';').find_map(|part| {
        let (key, value) = part.split_once('=')?;
        (key.trim() == name).then(|| value.trim().parse().ok())?
    });
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocksdb::{DB, Options};

    const ROWS: u32 = 20_000;

    fn made(path: &Path) {
        let mut options = Options::default();
        options.create_if_missing(true);
        // What RocksDB takes where it is linked.
        options.set_compression_type(rocksdb::DBCompressionType::Snappy);
        let mut db = DB::open(&options, path).unwrap();
        db.create_cf("other", &options).unwrap();
        for number in 0..ROWS {
            db.put(number.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush().unwrap();
        db.delete(0u32.to_be_bytes()).unwrap();
    }

    #[test]
    fn places_and_rows_of_a_database_that_is_not_ours() {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path());
        let mut folder = Folder::open(dir.path(), "default").unwrap();
        let about = folder.about().unwrap();
        assert_eq!(about.table_entries, u64::from(ROWS));
        assert_eq!(about.raw_bytes, u64::from(ROWS) * 104);
        assert_eq!(about.last, Some((ROWS - 1).to_be_bytes().to_vec()));
        // What the log had is in memory.
        assert!(about.memtable_entries == 1 && about.has_uncounted);
        let half = folder.stored_before(&(ROWS / 2).to_be_bytes()).unwrap() as f64;
        let all = folder.stored_before(&ROWS.to_be_bytes()).unwrap() as f64;
        assert!((half / all - 0.5).abs() < 0.1, "{half} of {all}");
        let rows = folder.rows(b"", 1000, true).unwrap();
        assert_eq!(rows[0].key, 1u32.to_be_bytes());
        assert!(rows.iter().all(|row| row.before == folder.stored_before(&row.key).unwrap()));
        assert_eq!(rows.len(), 10);
        let rest = folder.rows(&(ROWS - 2).to_be_bytes(), 1 << 20, false).unwrap();
        assert_eq!(rest.len(), 2);
        assert_eq!(rest[1].value, [7; 100]);
        let mut other = Folder::open(dir.path(), "other").unwrap();
        let others = vec!["default".to_owned()];
        assert_eq!(other.about().unwrap(), About { others, ..About::default() });
        assert_eq!(other.rows(b"", 1, true).unwrap(), []);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        made(dir.path());
        let missing = Folder::open(dir.path(), "none").err().unwrap().to_string();
        assert!(missing.contains("default, other"), "{missing}");
        let empty = tempfile::tempdir().unwrap();
        assert!(Folder::open(empty.path(), "default").is_err());
        let ordered = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_comparator("backwards", Box::new(|one, other| other.cmp(one)));
        drop(DB::open(&options, ordered.path()).unwrap());
        let refused = Folder::open(ordered.path(), "default").err().unwrap().to_string();
        assert!(refused.contains("--mariadb"), "{refused}");
    }

    #[test]
    fn numbers_of_properties() {
        let text = "# data blocks=2; # entries=20; # deletions=0; raw key size=400; raw value size=9";
        assert_eq!(property(text, "# entries"), 20);
        assert_eq!(property(text, "raw value size"), 9);
        assert_eq!(property(text, "none"), 0);
    }
}
