//! The configurations that programs are run under, and which seeds a test runs.

use shaledb::{Codec, Codecs, Config, SyncPolicy, TreeConfig};

/// Small memtables, tables and blocks, so that short programs flush, compact and split.
pub fn small() -> Config {
    Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 1,
        space_limit: 0,
        sync: SyncPolicy::OnRequest,
        create: true,
        tree: TreeConfig {
            codecs: Codecs::default(),
            dictionary: false,
            block_bytes: 1024,
            filter_bits: 10,
            blob_bytes: 4096,
        },
    }
}

/// The same with the smallest limit on space.
pub fn limited() -> Config {
    Config { space_limit: 2 << 20, ..small() }
}

/// Configurations that must give the same answers: every setting at its bounds and between.
pub fn many() -> Vec<Config> {
    let codecs = [
        Codecs::default(),
        Codecs::all(Codec::None),
        Codecs::all(Codec::Lz4),
        Codecs::all(Codec::Zlib(1)),
        Codecs::all(Codec::Zstd(-5)),
        Codecs { upper: Codec::Zstd(1), middle: Codec::Zlib(9), bottommost: Codec::None },
    ];
    let blocks = [1024, 4096, 0, 1 << 20];
    let filters = [0, 1, 10, 20];
    let blobs = [4096, 8192, 1 << 30];
    let memtables = [64 << 10, 256 << 10, 2 << 20];
    let tables = [64 << 10, 1 << 20, 64 << 20];
    let syncs = [SyncPolicy::OnRequest, SyncPolicy::Always, SyncPolicy::OnRequest];
    // The lengths of the lists have few common factors, so the combinations differ.
    (0..36)
        .map(|index: usize| Config {
            memory_bytes: [8 << 20, 64 << 20][index % 2],
            memtable_bytes: memtables[index / 2 % memtables.len()],
            table_bytes: tables[index / 5 % tables.len()],
            background_threads: 1 + index as u32 % 4,
            space_limit: 0,
            sync: syncs[index / 3 % syncs.len()],
            create: true,
            tree: TreeConfig {
                codecs: codecs[index % codecs.len()],
                dictionary: index % 4 < 2,
                block_bytes: blocks[index / 2 % blocks.len()],
                filter_bits: filters[index / 3 % filters.len()],
                blob_bytes: blobs[index / 4 % blobs.len()],
            },
        })
        .collect()
}

/// The seeds of a test: `SHALE_SEED` alone if it is set, else the first `count`, or twenty times
/// as many if `SHALE_EXHAUSTIVE` is set.
pub fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SHALE_SEED").ok().and_then(|text| text.parse().ok()) {
        Some(seed) => vec![seed],
        None if exhaustive() => (0..count * 20).collect(),
        None => (0..count).collect(),
    }
}

/// Whether nothing is to be left out by sampling.
pub fn exhaustive() -> bool {
    std::env::var_os("SHALE_EXHAUSTIVE").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_valid_and_different() {
        let many = many();
        small().validate().unwrap();
        for (index, config) in many.iter().enumerate() {
            config.validate().unwrap();
            assert!(!many[..index].contains(config), "{index}");
        }
        assert!(many.len() >= 30);
    }
}
