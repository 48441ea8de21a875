//! A block with the bytes that it was read from.

use super::block::Block;
use super::compress::Dictionary;
use crate::base::key::SeqNo;
use std::sync::Arc;

/// A data block as it lies in a file, to be reused without compressing it again.
#[derive(Clone, Copy, Debug)]
pub struct RawBlock<'a> {
    /// The frame, trailer included.
    pub bytes: &'a [u8],
    /// The same block decoded.
    pub block: &'a Block,
    /// The dictionary of the table in which it is.
    pub dictionary: Option<&'a Arc<Dictionary>>,
    /// Whether it was stored plain without a try to compress it.
    pub untried: bool,
    /// The sequence number of all its entries if its table was ingested, else 0. The bytes do not
    /// say it, so such a block may be reused only where its entries may become as old as 0.
    pub ingest_seq: SeqNo,
}
