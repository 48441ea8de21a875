//! A value as a read returns it: a part of a cached block without a copy, or bytes of its own.

use crate::base::error::Result;
use crate::fs::meter::Meter;
use crate::state::TreeState;
use crate::table::BlockSlice;
use std::fmt;
use std::ops::Deref;

/// Where the values of [`Kind::Blob`](crate::base::key::Kind::Blob) entries come from.
pub trait BlobSource: Send + Sync {
    /// Reads the whole value that `blob_ref` (the value of such an entry) names.
    fn read(&self, blob_ref: &[u8]) -> Result<Vec<u8>>;

    /// Whether the database has been closed, which ends the scan.
    fn is_closed(&self) -> bool {
        false
    }

    /// Whether the scan was made of this state, which it then keeps.
    fn is_of(&self, _state: &TreeState) -> bool {
        false
    }

    /// Notes that the scan has passed so many dead entries of the active memtable of its state.
    fn note_dead(&self, _count: u64) {}

    /// What measures and counts the reads of a scan, if anything does. Asked here so that a scan
    /// need not hold one thing more that all threads share.
    fn meter(&self) -> Option<&Meter> {
        None
    }
}

/// A value as a read gives it: derefs to its bytes, and compares with bytes. It may be a part of a
/// cached block without a copy, and then holds on to the block (about [`TreeConfig::block_bytes`]):
/// keep a copy instead of many of these for long.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// tree.put(b"greeting", b"hello")?;
/// let value: shaledb::Value = tree.get(b"greeting")?.unwrap();
/// assert_eq!(value, b"hello");
/// assert!(value.starts_with(b"he"));
/// # Ok::<(), shaledb::Error>(())
/// ```
///
/// [`TreeConfig::block_bytes`]: crate::TreeConfig::block_bytes
#[derive(Clone)]
pub struct Value(Bytes);

#[derive(Clone)]
enum Bytes {
    /// A part of a block.
    Block(BlockSlice),
    /// Bytes of its own.
    Owned(Vec<u8>),
}

impl Value {
    pub(crate) fn block(slice: BlockSlice) -> Value {
        Value(Bytes::Block(slice))
    }

    pub(crate) fn owned(bytes: Vec<u8>) -> Value {
        Value(Bytes::Owned(bytes))
    }

    /// The bytes, copied only if they are part of a block.
    ///
    /// ```
    /// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// tree.put(b"greeting", b"hello")?;
    /// let bytes: Vec<u8> = tree.get(b"greeting")?.unwrap().into_vec();
    /// assert_eq!(String::from_utf8(bytes).unwrap(), "hello");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Bytes::Block(slice) => slice.to_vec(),
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Block(slice) => slice,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Value> for Vec<u8> {
    fn from(value: Value) -> Vec<u8> {
        value.into_vec()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl Eq for Value {}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        **self == **other
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for Value {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Value {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Value {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}

impl PartialEq<Vec<u8>> for Value {
    fn eq(&self, other: &Vec<u8>) -> bool {
        **self == **other
    }
}
