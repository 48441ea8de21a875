use super::*;
use shaledb_lab::stores::conformance::{self, Scans};

#[test]
fn does_what_every_engine_must() {
    let dir = tempfile::tempdir().unwrap();
    let setup = conformance::setup();
    conformance::check::<Fjall>(dir.path(), &setup, 1, 4000).unwrap();
}

#[test]
fn updates_as_every_engine_must() {
    let dir = tempfile::tempdir().unwrap();
    let setup = conformance::setup();
    conformance::check_updates::<Fjall>(dir.path(), &setup, 2, 4000).unwrap();
    conformance::check_counters::<Fjall>(dir.path(), &setup, 200).unwrap();
}

#[test]
fn scans_are_of_one_moment_while_nothing_is_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { memtable: 64 << 20, memory: 512 << 20, ..conformance::setup() };
    conformance::check_threads::<Fjall>(dir.path(), &setup, 50, Scans::OfOneMoment).unwrap();
}

/// What fjall does not promise: see `a_flush_shows_what_a_batch_has_done_so_far`.
#[test]
fn scans_beside_flushes_show_whole_rows_but_parts_of_batches() {
    let dir = tempfile::tempdir().unwrap();
    let setup = conformance::setup();
    conformance::check_threads::<Fjall>(dir.path(), &setup, 200, Scans::RowByRow).unwrap();
}

/// fjall 3.1.13 with lsm-tree 3.1.10: a batch takes its number and then writes row by row, and
/// publishes the number when it is done. A flush, a compaction or a clearing of any tree meanwhile
/// takes the next number and publishes that, and with it what the batch has written so far. Here
/// the batch is done by hand, so that the flush comes in its middle each time. If this fails, fjall
/// has mended it: then `Scans::OfOneMoment` is to be asked for above, and docs/peers.md changed.
#[test]
fn a_flush_shows_what_a_batch_has_done_so_far() {
    let dir = tempfile::tempdir().unwrap();
    let store = Fjall::open(dir.path(), &conformance::setup(), &["a", "b"]).unwrap();
    let (a, b) = (&store.trees[0], &store.trees[1]);
    for key in ["first", "last"] {
        a.insert(key, "old").unwrap();
    }
    b.insert("another tree", "has something to flush").unwrap();
    // What `WriteBatch::commit` does up to its first row.
    let number = store.db.supervisor.seqno.next();
    a.tree.insert("first", "new", number);
    let read = |key: &str| {
        let value = store.db.snapshot().get(a, key).unwrap().unwrap();
        String::from_utf8(value.to_vec()).unwrap()
    };
    assert_eq!([read("first"), read("last")], ["old", "old"]);
    b.rotate_memtable_and_wait().unwrap();
    assert_eq!([read("first"), read("last")], ["new", "old"]);
}

#[test]
fn commits_can_be_synced() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { durability: Durability::Power, ..conformance::setup() };
    conformance::check::<Fjall>(dir.path(), &setup, 2, 400).unwrap();
}

#[test]
fn what_is_idle_is_in_levels() {
    let dir = tempfile::tempdir().unwrap();
    let setup = conformance::setup();
    let store = Fjall::open(dir.path(), &setup, &["a", "b"]).unwrap();
    let mut handle = store.handle().unwrap();
    for n in 0..20_000u64 {
        let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes();
        handle.put((n % 2) as usize, &key, &[n as u8; 200]).unwrap();
    }
    store.wait_idle().unwrap();
    let metrics = store.metrics().unwrap();
    assert!(metrics.levels.iter().map(|level| level.bytes).sum::<u64>() > 10_000);
    assert!(metrics.table.contains("tables"), "{}", metrics.table);
    assert!(!Fjall::configuration(&setup).is_empty());
}

#[test]
fn memtables_share_what_they_get() {
    let setup = Setup::default().resolved();
    assert_eq!(memtable_bytes(&setup, 1), setup.memtable);
    assert_eq!(memtable_bytes(&setup, 5), setup.memtable / 2);
}
