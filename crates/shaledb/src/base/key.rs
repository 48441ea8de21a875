//! Keys, sequence numbers and kinds: the order of entries inside a tree.
//!
//! An entry is (user key, sequence number, kind). Entries sort by user key ascending (bytes), then
//! by sequence number descending, so that the newest version of a key comes first. Every operation
//! of a batch has a sequence number of its own, so (user key, sequence number) is unique in a tree.

use std::cmp::Ordering;

/// A position in the commit order, from 1 on. Every operation gets the next one.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// let before: shaledb::SeqNo = db.snapshot().seq();
/// tree.put(b"a", b"1")?;
/// tree.delete(b"a")?;
/// assert_eq!(db.snapshot().seq(), before + 2);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub type SeqNo = u64;

/// The largest sequence number; as a read position it means "the newest of everything".
pub const SEQ_MAX: SeqNo = (1 << 56) - 1;

/// The first number of those that a transaction gives to its own writes until it commits. No
/// commit order gets this far.
pub const WRITE_SET_FIRST: SeqNo = 1 << 55;

// A number and a kind share 64 bits.
const _: () = assert!(WRITE_SET_FIRST < SEQ_MAX && SEQ_MAX <= u64::MAX >> 8);

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// What an entry says of its key. Part of the persistent format: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The key has no value from here on.
    Delete = 0,
    /// The key has this value.
    Put = 1,
    /// All keys from this key up to (not including) the end key, kept as the value, are deleted.
    RangeDelete = 2,
    /// Reserved: an operand for a merge operator.
    Merge = 3,
    /// The key has a large value, kept in a blob file that the value names.
    Blob = 4,
}

impl Kind {
    /// The kind with this number, if there is one.
    pub fn from_u8(byte: u8) -> Option<Kind> {
        match byte {
            0 => Some(Kind::Delete),
            1 => Some(Kind::Put),
            2 => Some(Kind::RangeDelete),
            3 => Some(Kind::Merge),
            4 => Some(Kind::Blob),
            _ => None,
        }
    }
}

/// Compares two entries: user key ascending, then sequence number descending.
#[inline]
pub fn compare(a_key: &[u8], a_seq: SeqNo, b_key: &[u8], b_seq: SeqNo) -> Ordering {
    a_key.cmp(b_key).then(b_seq.cmp(&a_seq))
}

/// The first eight bytes of a key as a big-endian number, zero-padded: for distinct heads, their
/// order is the order of the keys.
#[inline]
pub fn head(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        u64::from_be_bytes(*first)
    } else {
        let mut bytes = [0u8; 8];
        bytes[..key.len()].copy_from_slice(key);
        u64::from_be_bytes(bytes)
    }
}

/// The length of the longest common prefix of two keys.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let limit = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= limit {
        let x = head(&a[at..at + 8]) ^ head(&b[at..at + 8]);
        if x != 0 {
            return at + (x.leading_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < limit && a[at] == b[at] {
        at += 1;
    }
    debug_assert!(a[..at] == b[..at], "the prefix is of both");
    at
}

/// The smallest key greater than every key that starts with `prefix`, or `None` if there is none.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    debug_assert!(end.as_slice() > prefix && !end.starts_with(prefix), "all of the prefix is less");
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_version_comes_first() {
        assert_eq!(compare(b"a", 5, b"a", 3), Ordering::Less);
        assert_eq!(compare(b"a", 5, b"b", 9), Ordering::Less);
        assert_eq!(compare(b"a", 5, b"a", 5), Ordering::Equal);
    }

    #[test]
    fn heads_order_keys() {
        assert!(head(b"abc") < head(b"abd"));
        assert!(head(b"abcdefgh") == head(b"abcdefghi"));
        assert!(head(b"") <= head(b"\0"));
    }

    #[test]
    fn common_prefixes() {
        assert_eq!(common_prefix(b"", b"x"), 0);
        assert_eq!(common_prefix(b"abcdefghijk", b"abcdefghijx"), 10);
        assert_eq!(common_prefix(b"abcdefghi", b"abcdefg"), 7);
        assert_eq!(common_prefix(b"abcdXfghi", b"abcdYfghi"), 4);
    }

    #[test]
    fn prefix_ends() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }
}
