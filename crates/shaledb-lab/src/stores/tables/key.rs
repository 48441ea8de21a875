//! Columns as bytes. The bytes of a key compare as its columns do, one after another: numbers are
//! big-endian, signed numbers have their sign bit turned, a descending column has all bits turned,
//! and a string is escaped and ended, so that a short one comes before its continuations.
//!
//! ```text
//! u8 u16 u32 u64   big-endian
//! i32 i64          big-endian, the highest bit turned
//! f64              IEEE 754 big-endian: negative: all bits turned, else the highest bit turned
//! text             each 00 as 00 ff, then 00 01
//! rest             as they are, to the end (only as the last column)
//! ```
//!
//! A row's value is written in the same way; its last column of bytes needs no length.

/// Writes columns one after another into memory that is used again.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Empty.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// Begins a new key or value.
    #[inline]
    pub fn start(&mut self) -> &mut Encoder {
        self.bytes.clear();
        self
    }

    /// Adds a byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> &mut Encoder {
        self.bytes.push(value);
        self
    }

    /// Adds a number.
    #[inline]
    pub fn u16(&mut self, value: u16) -> &mut Encoder {
        self.raw(&value.to_be_bytes())
    }

    /// Adds a number.
    #[inline]
    pub fn u32(&mut self, value: u32) -> &mut Encoder {
        self.raw(&value.to_be_bytes())
    }

    /// Adds a number.
    #[inline]
    pub fn u64(&mut self, value: u64) -> &mut Encoder {
        self.raw(&value.to_be_bytes())
    }

    /// Adds a number in falling order.
    #[inline]
    pub fn u64_descending(&mut self, value: u64) -> &mut Encoder {
        self.u64(!value)
    }

    /// Adds a signed number.
    #[inline]
    pub fn i32(&mut self, value: i32) -> &mut Encoder {
        self.u32(value as u32 ^ 1 << 31)
    }

    /// Adds a signed number.
    #[inline]
    pub fn i64(&mut self, value: i64) -> &mut Encoder {
        self.u64(value as u64 ^ 1 << 63)
    }

    /// Adds a number that is not NaN.
    #[inline]
    pub fn f64(&mut self, value: f64) -> &mut Encoder {
        debug_assert!(!value.is_nan());
        let bits = value.to_bits();
        self.u64(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
    }

    /// Adds bytes of any length, other columns may follow.
    pub fn text(&mut self, value: &[u8]) -> &mut Encoder {
        for &byte in value {
            self.bytes.push(byte);
            if byte == 0 {
                self.bytes.push(0xff);
            }
        }
        self.raw(&[0, 1])
    }

    /// Adds bytes as they are, as the last column.
    #[inline]
    pub fn rest(&mut self, value: &[u8]) -> &mut Encoder {
        self.raw(value)
    }

    #[inline]
    fn raw(&mut self, value: &[u8]) -> &mut Encoder {
        self.bytes.extend_from_slice(value);
        self
    }

    /// What was written since [`start`](Encoder::start).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads columns one after another; `None` where the bytes end too early or are not a column's.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Of a key or a value.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes }
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = tail;
        Some(*head)
    }

    /// A byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A number.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number that was written in falling order.
    #[inline]
    pub fn u64_descending(&mut self) -> Option<u64> {
        self.u64().map(|value| !value)
    }

    /// A signed number.
    #[inline]
    pub fn i32(&mut self) -> Option<i32> {
        self.u32().map(|bits| (bits ^ 1 << 31) as i32)
    }

    /// A signed number.
    #[inline]
    pub fn i64(&mut self) -> Option<i64> {
        self.u64().map(|bits| (bits ^ 1 << 63) as i64)
    }

    /// A number.
    #[inline]
    pub fn f64(&mut self) -> Option<f64> {
        let bits = self.u64()?;
        Some(f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits }))
    }

    /// Bytes of any length, added to `to`.
    pub fn text(&mut self, to: &mut Vec<u8>) -> Option<()> {
        loop {
            let zero = self.bytes.iter().position(|&byte| byte == 0)?;
            to.extend_from_slice(&self.bytes[..zero]);
            let after = *self.bytes.get(zero + 1)?;
            self.bytes = &self.bytes[zero + 2..];
            match after {
                0xff => to.push(0),
                1 => return Some(()),
                _ => return None,
            }
        }
    }

    /// All bytes that are left.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
