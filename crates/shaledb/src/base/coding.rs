//! Numbers as bytes: little-endian, and variable-length (seven bits a byte, low bits first), and
//! the checksum that everything on disk carries.

use twox_hash::XxHash3_64;

/// The checksum of `bytes`: the low 32 bits of XXH3-64.
#[inline]
pub fn checksum(bytes: &[u8]) -> u32 {
    XxHash3_64::oneshot(bytes) as u32
}

/// The hash of a key that filters and caches use: XXH3-64.
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// Which of so many places a hash stands for: by its high bits.
#[inline]
pub fn place_of(hash: u64, places: usize) -> usize {
    let place = ((u128::from(hash) * places as u128) >> 64) as usize;
    debug_assert!(place < places);
    place
}

/// The most bytes a variable-length number takes.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` as a variable-length number.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads fields off the front of a byte slice; every read answers `None` past the end.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, at: 0 }
    }

    /// How many bytes have been read.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A 32-bit little-endian number.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// A 64-bit little-endian number.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A variable-length number; `None` also if it does not fit 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// A byte string preceded by its length as a variable-length number.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.varint()?).ok()?;
        self.take(count)
    }
}

/// Appends a byte string preceded by its length as a variable-length number.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut decoder = Decoder::new(&out);
            assert_eq!(decoder.varint(), Some(value));
            assert!(decoder.is_empty());
            assert_eq!(Decoder::new(&out[..out.len() - 1]).varint(), None);
        }
        assert_eq!(Decoder::new(&[0xff; 11]).varint(), None);
    }

    #[test]
    fn byte_strings_do_not_read_past_the_end() {
        let mut out = Vec::new();
        put_bytes(&mut out, b"hello");
        assert_eq!(Decoder::new(&out).bytes(), Some(&b"hello"[..]));
        assert_eq!(Decoder::new(&out[..3]).bytes(), None);
    }
}
