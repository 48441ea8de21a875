//! Keys, values and chance, as db_bench makes them, nearly free.
//!
//! A key is an 8-byte big-endian number, then `0` characters up to the key size, so that the order
//! of the numbers is the order of the keys. A value is a slice of one buffer of a MiB that was
//! filled once with pieces of 100 bytes, of which a share of `compressibility` is random and the
//! rest repeats it: making a value is adding to an offset. A workload may fill a buffer of its own.

use std::sync::Arc;

/// A small generator of pseudo-random numbers (xoshiro256++), seeded by a number.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Random {
        let mut at = seed;
        let mut next = || {
            // splitmix64 spreads any seed, zero included, over the whole state.
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = at;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Random { state: [next(), next(), next(), next()] }
    }

    /// One for a named use, so that two uses of one seed do not walk the same way.
    pub fn named(seed: u64, name: &str, thread: u64) -> Random {
        let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Random::new(hash ^ (thread << 48))
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, which is not zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to less than 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Brings `all` into an order of which each is as likely.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// Bytes of the number in a key.
pub const NUMBER_BYTES: usize = 8;

/// Turns numbers into keys.
#[derive(Clone, Debug)]
pub struct Keys {
    key: Vec<u8>,
}

impl Keys {
    /// Keys of `key_bytes`, at least one.
    pub fn new(key_bytes: usize) -> Keys {
        Keys { key: vec![b'0'; key_bytes.max(1)] }
    }

    /// Keys that lie between those of [`Keys::new`]: that of a number comes after it and before the
    /// next. There are none under [`NUMBER_BYTES`] + 1 bytes.
    pub fn between(key_bytes: usize) -> Keys {
        let mut keys = Keys::new(key_bytes);
        if let Some(last) = keys.key.get_mut(NUMBER_BYTES..).and_then(<[u8]>::last_mut) {
            *last = b'1';
        }
        keys
    }

    /// The key of a number. Keys under 8 bytes keep the low bytes of the number.
    #[inline]
    pub fn key(&mut self, number: u64) -> &[u8] {
        let width = self.key.len().min(NUMBER_BYTES);
        self.key[..width].copy_from_slice(&number.to_be_bytes()[NUMBER_BYTES - width..]);
        &self.key
    }
}

const PIECE_BYTES: usize = 100;
const BUFFER_BYTES: usize = 1 << 20;

/// Values that are slices of one shared buffer: of a size between two bounds, or rows of it.
#[derive(Clone, Debug)]
pub struct Values {
    buffer: Arc<Vec<u8>>,
    /// Of rows: where each begins, and at last where the last one ends.
    rows: Option<Arc<Vec<u32>>>,
    /// The offset of the next slice, or the number of the next row.
    at: usize,
    least: usize,
    span: u64,
}

impl Values {
    /// Values of `least` to `most` bytes that compress to about `compressibility` of their size.
    pub fn new(seed: u64, least: usize, most: usize, compressibility: f64) -> Values {
        let mut random = Random::named(seed, "values", 0);
        let wanted = BUFFER_BYTES.max(most * 2) + PIECE_BYTES;
        let fresh = ((PIECE_BYTES as f64 * compressibility) as usize).clamp(1, PIECE_BYTES);
        let mut buffer = Vec::with_capacity(wanted + PIECE_BYTES);
        while buffer.len() < wanted {
            let start = buffer.len();
            for _ in 0..fresh {
                // Printable, as db_bench's: 95 characters.
                buffer.push(b' ' + random.below(95) as u8);
            }
            while buffer.len() < start + PIECE_BYTES {
                buffer.push(buffer[buffer.len() - fresh]);
            }
        }
        Values::slices(buffer, least, most)
    }

    /// Values of `least` to `most` bytes, slices of a buffer that has at least `most`.
    pub fn slices(buffer: Vec<u8>, least: usize, most: usize) -> Values {
        assert!(buffer.len() >= most, "{} bytes for values of {most}", buffer.len());
        let span = (most.max(least) - least + 1) as u64;
        Values { buffer: Arc::new(buffer), rows: None, at: 0, least, span }
    }

    /// Values that are the rows of a buffer: those between two neighbours of `starts`.
    pub fn rows(buffer: Vec<u8>, starts: Vec<u32>) -> Values {
        assert!(starts.len() > 1 && starts.last().is_some_and(|&end| end as usize <= buffer.len()));
        Values { buffer: Arc::new(buffer), rows: Some(Arc::new(starts)), at: 0, least: 0, span: 1 }
    }

    /// The next value.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> &[u8] {
        if let Some(starts) = &self.rows {
            let rows = starts.len() - 1;
            if self.at >= rows {
                self.at = random.below(rows as u64) as usize;
            }
            let (start, end) = (starts[self.at] as usize, starts[self.at + 1] as usize);
            self.at += 1;
            return &self.buffer[start..end];
        }
        let bytes = self.least + random.below(self.span) as usize;
        if self.at + bytes > self.buffer.len() {
            // An odd start, so that the rounds through the buffer do not repeat each other.
            self.at = random.below(1000) as usize;
        }
        let value = &self.buffer[self.at..self.at + bytes];
        self.at += bytes;
        value
    }

    /// Starts elsewhere in the buffer, so that threads do not write the same values.
    pub fn started_at(mut self, thread: u64) -> Values {
        let places = self.rows.as_ref().map_or(self.buffer.len(), |starts| starts.len());
        self.at = (thread as usize * 7919) % (places / 2);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_of_numbers() {
        let mut keys = Keys::new(20);
        let low = keys.key(255).to_vec();
        let high = keys.key(256).to_vec();
        assert!(low < high);
        assert_eq!(low.len(), 20);
        assert_eq!(&high[6..10], &[1, 0, b'0', b'0']);
        assert_eq!(Keys::new(2).key(0x1_02_03), &[2, 3]);
    }

    #[test]
    fn keys_that_are_not_there_lie_between_those_that_are() {
        for key_bytes in [NUMBER_BYTES + 1, 20] {
            let (mut keys, mut between) = (Keys::new(key_bytes), Keys::between(key_bytes));
            let absent = between.key(7).to_vec();
            assert!(keys.key(7) < &absent[..] && &absent[..] < keys.key(8));
            assert_eq!(absent.len(), key_bytes);
        }
        assert_eq!(Keys::between(8).key(7), Keys::new(8).key(7));
    }

    #[test]
    fn values_keep_their_bounds_and_vary() {
        let mut random = Random::new(1);
        let mut values = Values::new(1, 100, 400, 0.5);
        let mut total = 0;
        for _ in 0..100_000 {
            let value = values.next(&mut random);
            assert!((100..=400).contains(&value.len()));
            total += value.len();
        }
        assert!((24_000_000..26_000_000).contains(&total), "{total}");
    }

    #[test]
    fn half_of_a_piece_is_fresh() {
        let values = Values::new(1, 100, 100, 0.5);
        assert_eq!(values.buffer[..50], values.buffer[50..100]);
        assert_ne!(values.buffer[..50], values.buffer[100..150]);
    }

    #[test]
    fn rows_come_whole_and_in_order_from_where_a_thread_starts() {
        let mut random = Random::new(1);
        let values = Values::rows(b"abbccc".to_vec(), vec![0, 1, 3, 6]);
        let mut first = values.clone();
        for row in [b"a".as_slice(), b"bb", b"ccc"] {
            assert_eq!(first.next(&mut random), row);
        }
        // After the last one it goes on anywhere.
        for _ in 0..100 {
            assert!(["a", "bb", "ccc"].map(str::as_bytes).contains(&first.next(&mut random)));
        }
        assert_eq!(values.started_at(1).next(&mut random), b"bb");
    }

    #[test]
    fn chance_is_even_and_named() {
        let mut random = Random::named(1, "a", 0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
        assert_ne!(Random::named(1, "a", 0).bits(), Random::named(1, "b", 0).bits());
        assert_ne!(Random::named(1, "a", 0).bits(), Random::named(1, "a", 1).bits());
    }
}
