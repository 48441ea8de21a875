//! How the changes of a unique key are told apart by row: each is an entry of (key, row).
//!
//! ```text
//! entry := key, with a 1 after each 0 | 0 0 | row
//! ```
//!
//! So entries are in the order of keys, and those of one key are neighbours, whatever bytes keys
//! and rows have.

use crate::base::coding::Decoder;

/// What ends the key in an entry.
const END: [u8; 2] = [0, 0];

/// Where an entry of a unique tree says which row it is of.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let people = db.tree_or_create("people")?;
/// use shaledb::{BuildOptions, TreeConfig, UniqueRow};
///
/// // Email -> number of the person.
/// people.put(b"7", b"ada@example.org")?;
/// let options = BuildOptions { unique: Some(UniqueRow::Value), ..BuildOptions::default() };
/// let mut build = people.build_online("by_email", TreeConfig::default(), options)?;
/// build.fill(|key, email, entries| entries.add(email, key))?;
/// assert_eq!(build.finish()?.get(b"ada@example.org")?.unwrap(), b"7");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniqueRow {
    /// Its value is the row's key.
    Value,
    /// Its value begins with the row's key: the key's length (as a varint: seven bits a byte, the
    /// lowest first, with the eighth bit set in all bytes but the last), then the key. Anything may
    /// follow. A length of 0 is for entries that are not unique, such as those with a NULL: their
    /// own key tells their row.
    Counted,
}

impl UniqueRow {
    /// The row that an entry with this value is of, if it says so.
    pub(crate) fn of(self, value: &[u8]) -> Option<&[u8]> {
        match self {
            UniqueRow::Value => Some(value),
            UniqueRow::Counted => Decoder::new(value).bytes(),
        }
    }
}

/// The key under which writers put and delete an entry of a unique tree while it is built: that of
/// the entry, and which row it is of.
///
/// ```
/// use shaledb::entry_of_row;
///
/// assert_eq!(entry_of_row(b"ada@example.org", b"7"), b"ada@example.org\0\x007");
/// assert!(entry_of_row(b"a", b"z") < entry_of_row(b"a\0", b"a"));
/// ```
pub fn entry_of_row(key: &[u8], row: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(key.len() + END.len() + row.len());
    for &byte in key {
        entry.push(byte);
        if byte == 0 {
            entry.push(1);
        }
    }
    entry.extend_from_slice(&END);
    entry.extend_from_slice(row);
    entry
}

/// Puts the key of an entry into `key` and answers its row; `None`: it is no entry.
pub(crate) fn split_entry<'a>(entry: &'a [u8], key: &mut Vec<u8>) -> Option<&'a [u8]> {
    key.clear();
    let mut rest = entry;
    loop {
        let zero = rest.iter().position(|byte| *byte == 0)?;
        let (plain, from_zero) = rest.split_at_checked(zero)?;
        key.extend_from_slice(plain);
        if let Some(row) = from_zero.strip_prefix(&END) {
            return Some(row);
        }
        rest = from_zero.strip_prefix(&[0, 1])?;
        key.push(0);
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
