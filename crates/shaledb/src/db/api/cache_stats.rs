//! How the block cache is divided between uncompressed and compressed blocks, as statistics say it.

use crate::cache::Tiers;
use serde::Serialize;
use std::fmt;

/// The two tiers of the block cache. The share of the compressed one is found by measurement: a
/// sample of the blocks that are used goes through small simulated caches of several shares.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let cache: shaledb::CacheStats = db.stats().cache;
/// assert_eq!(cache.compressed_share, 0.0);
/// println!("{cache}");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheStats {
    /// Bytes that both tiers may take.
    pub capacity_bytes: u64,
    /// The share of them that is for compressed blocks, from 0 to 1.
    pub compressed_share: f64,
    /// Why it is this one, in words.
    pub why: &'static str,
    /// Bytes of uncompressed blocks.
    pub uncompressed_bytes: u64,
    /// How many there are.
    pub uncompressed_blocks: u64,
    /// Bytes of compressed blocks.
    pub compressed_bytes: u64,
    /// How many there are.
    pub compressed_blocks: u64,
    /// Microseconds that it lately took to read a block from storage (or from the system's page
    /// cache), on average.
    pub read_us: f64,
    /// Microseconds that it lately took to decompress one.
    pub decompress_us: f64,
    /// What each share would have done lately, on the same uses of blocks.
    pub shares: Vec<ShareStats>,
}

/// What a share of compressed blocks would have done: parts of all uses of blocks, from 0 to 1. The
/// rest would have been found uncompressed.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// let shares: Vec<shaledb::ShareStats> = db.stats().cache.shares;
/// assert_eq!((shares[0].share, shares[0].read), (0.0, 0.0));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ShareStats {
    /// The share.
    pub share: f64,
    /// Uses that would have been reads.
    pub read: f64,
    /// Uses that would have found the block compressed.
    pub decompressed: f64,
}

impl CacheStats {
    pub(super) fn of(tiers: &Tiers, capacity_bytes: u64) -> CacheStats {
        let part = |count: f64, uses: f64| if uses > 0.0 { count / uses } else { 0.0 };
        let share = |(share, tally): &(f64, crate::cache::Tally)| ShareStats {
            share: *share,
            read: part(tally.read, tally.uses()),
            decompressed: part(tally.unpacked, tally.uses()),
        };
        CacheStats {
            capacity_bytes,
            compressed_share: tiers.share,
            why: tiers.why.words(),
            uncompressed_bytes: tiers.raw.0,
            uncompressed_blocks: tiers.raw.1 as u64,
            compressed_bytes: tiers.packed.0,
            compressed_blocks: tiers.packed.1 as u64,
            read_us: tiers.costs.read_nanos / 1e3,
            decompress_us: tiers.costs.unpack_nanos / 1e3,
            shares: tiers.tallies.iter().map(share).collect(),
        }
    }
}

impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MB: f64 = 1e6;
        write!(
            f,
            "{} blocks uncompressed ({:.1} MB), {} compressed ({:.1} MB); share of these {:.3}, \
             since {}",
            self.uncompressed_blocks,
            self.uncompressed_bytes as f64 / MB,
            self.compressed_blocks,
            self.compressed_bytes as f64 / MB,
            self.compressed_share,
            self.why
        )?;
        if self.read_us > 0.0 {
            let (read, decompress) = (self.read_us, self.decompress_us);
            write!(f, "; a read takes {read:.1} us, decompressing {decompress:.1} us")?;
        }
        if self.shares.iter().any(|share| share.read > 0.0) {
            write!(f, "; reads per 100 uses by share:")?;
            for ShareStats { share, read, .. } in &self.shares {
                write!(f, " {share:.3}: {:.1}", 100.0 * read)?;
            }
        }
        Ok(())
    }
}
