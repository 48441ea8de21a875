//! How a table is to be written.

use crate::base::config::Codec;
use crate::table::format::compress::Dictionary;
use crate::table::meta::Why;
use std::sync::Arc;

/// Which compression dictionary a table has, if its codec is zstd.
#[derive(Clone, Debug, Default)]
pub enum TableDictionary {
    /// None.
    #[default]
    None,
    /// One made of its own first blocks, if that pays.
    OfTable,
    /// This one.
    Given(Arc<Dictionary>),
}

/// How a table is to be written.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The codec of data blocks; not [`Codec::Auto`].
    pub codec: Codec,
    /// Why it is this one. Where the engine has chosen it, a block that was compressed better may
    /// be reused.
    pub why: Why,
    /// Its compression dictionary.
    pub dictionary: TableDictionary,
    /// The size of a block before compression.
    pub block_bytes: usize,
    /// Filter bits per key; 0 for no filter.
    pub filter_bits: u8,
    /// The number of the tree that the table is written for; 0 for none. Kept in the file, for a
    /// repair of a database whose manifest is lost.
    pub tree: u32,
}
