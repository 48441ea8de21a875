//! What every target takes from its input, and asks of an error.

use crate::base::config::Codec;
use crate::base::error::Error;

/// The codecs that an input chooses from.
pub(super) const CODECS: [Codec; 6] =
    [Codec::None, Codec::Lz4, Codec::Zlib(1), Codec::Zlib(6), Codec::Zstd(-3), Codec::Zstd(3)];

/// Takes bytes off the front of the input; zeros once it has ended.
pub(super) struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub fn number(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next `count` bytes, or as many as there are.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Damage must be told as damage.
pub(super) fn assert_corruption(error: &Error) {
    assert!(error.is_corruption(), "not an error of damage: {error}");
}
