use super::*;
use shaledb_lab::stores::conformance;

#[test]
fn does_what_every_engine_must() {
    let dir = tempfile::tempdir().unwrap();
    let setup = conformance::setup();
    conformance::check::<WiredTiger>(dir.path(), &setup, 1, 4000).unwrap();
    let scans = conformance::Scans::OfOneMoment;
    conformance::check_threads::<WiredTiger>(dir.path(), &setup, 50, scans).unwrap();
}

#[test]
fn updates_as_every_engine_must() {
    let dir = tempfile::tempdir().unwrap();
    let setup = conformance::setup();
    conformance::check_updates::<WiredTiger>(dir.path(), &setup, 2, 4000).unwrap();
    conformance::check_counters::<WiredTiger>(dir.path(), &setup, 200).unwrap();
}

#[test]
fn commits_can_be_synced() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { durability: Durability::Power, ..conformance::setup() };
    conformance::check::<WiredTiger>(dir.path(), &setup, 2, 400).unwrap();
}

#[test]
fn every_codec_opens_and_bytes_when_idle_are_counted() {
    let names = ["none", "zlib:1", "zlib", "zstd:3", "lz4"].map(|codec| {
        super::codec(&Setup { codecs: codec.parse().unwrap(), ..conformance::setup() }).1
    });
    assert_eq!(names, ["none", "zlib", "zlib", "snappy", "snappy"]);
    let mut sizes = Vec::new();
    for codec in ["none", "lz4", "zlib:1", "zlib", "zstd:3"] {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup { codecs: codec.parse().unwrap(), ..conformance::setup() };
        let store = WiredTiger::open(dir.path(), &setup, &["a"]).unwrap();
        let mut handle = store.handle().unwrap();
        for n in 0..5_000u64 {
            let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes();
            handle.put(0, &key, &[n as u8; 200]).unwrap();
        }
        store.wait_idle().unwrap();
        let metrics = store.metrics().unwrap();
        assert!(metrics.wal_bytes > 1_000_000, "{metrics:?}");
        let size = shaledb_lab::measure::disk_bytes(dir.path());
        assert!(size < 8 << 20, "{size}: room is set aside for logs that are not needed");
        assert!(metrics.table.contains("block-manager:"), "{}", metrics.table);
        sizes.push(metrics.flush_bytes.unwrap());
        drop(handle);
        store.close().unwrap();
    }
    assert!(sizes[0] > 1_000_000 && sizes[1..].iter().all(|size| *size < sizes[0]), "{sizes:?}");
}

#[test]
fn a_tree_is_cleared_beside_a_handle_that_nobody_uses() {
    let dir = tempfile::tempdir().unwrap();
    let store = WiredTiger::open(dir.path(), &conformance::setup(), &["a"]).unwrap();
    let mut handle = store.handle().unwrap();
    handle.put(0, b"k", b"v").unwrap();
    store.clear_tree(0).unwrap();
    assert!(!handle.get(0, b"k", &mut |_| ()).unwrap());
}
