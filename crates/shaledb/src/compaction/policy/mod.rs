//! How the tables of a level are written: codec, size of blocks, filter, size, and when a table may
//! be moved into a level although it was written for another one. Pure.
//!
//! [`candidates`] says what the codecs do to data, [`chosen`] holds what was chosen for each level,
//! [`auto`] chooses where the codec is [`Codec::Auto`](crate::Codec::Auto), and [`levels`] has the
//! rules for levels. [`block_size`] chooses how large blocks are, which [`sizes`] holds.

pub mod candidates;
pub mod sizes;
pub mod chosen;
pub mod auto;
pub mod levels;
pub mod block_size;

pub use levels::{
    LAST, filter_bits, makes_blocks_anew, may_have_kept, may_move, reuses_blocks, table_bytes,
    wants_rewrite, would_shrink,
};
