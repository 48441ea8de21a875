//! Finding tables by key, against a plain search.

use super::*;
use crate::base::stats::Recorder;
use crate::fs::Env;
use crate::fs::mem::{MemClock, MemFs};
use crate::table::TableEnv;
use std::path::PathBuf;

fn env() -> Arc<TableEnv> {
    let env = Env { fs: Arc::new(MemFs::new()), clock: Arc::new(MemClock::new()) };
    TableEnv::new(env, 8 << 20, Arc::new(Recorder::new()))
}

fn table(env: &Arc<TableEnv>, id: u64, smallest: &[u8], largest: &[u8], open: bool) -> Arc<Table> {
    let meta = TableMeta {
        id,
        file_bytes: 100,
        smallest: smallest.to_vec(),
        largest: largest.to_vec(),
        largest_exclusive: open,
        max_seq: id % 7,
        ..TableMeta::default()
    };
    Table::new(meta, PathBuf::from("/t"), env)
}

fn check(level: &Level, key: &[u8]) {
    let plain = level.tables().iter().find(|table| table.meta.covers(key));
    let id = |table: Option<&Arc<Table>>| table.map(|table| table.meta.id);
    assert_eq!(id(level.find(key)), id(plain), "{key:?}");
    let before = level.tables().iter().filter(|table| table.meta.is_before(key)).count();
    assert_eq!(level.position(key), before, "{key:?}");
}

#[test]
fn finding_equals_a_plain_search() {
    let env = env();
    let mut state = 1u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    // Keys with and without a common prefix, that differ within and behind the first eight bytes.
    let prefixes: [&[u8]; 4] = [b"", b"p", b"a-long-prefix/", b"\0\0\0\x01"];
    for round in 0..200 {
        let prefix = prefixes[round % 4];
        let mut keys: Vec<Vec<u8>> = (0..2 * (1 + below(20)))
            .map(|_| {
                let count = below(12) as usize;
                let tail = (0..count).map(|_| [0, b'a', b'b', 0xff][below(4) as usize]);
                prefix.iter().copied().chain(tail).collect()
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let mut tables: Vec<Arc<Table>> = (1..)
            .zip(keys.chunks_exact(2))
            .map(|(id, pair)| table(&env, id, &pair[0], &pair[1], below(2) == 0))
            .collect();
        tables.reverse();
        let level = Level::new(1 + round % 6, tables).unwrap();
        assert_eq!(level.bytes(), 100 * level.len() as u64);
        for key in &keys {
            check(&level, key);
            check(&level, &[key, &b"\0"[..]].concat());
            check(&level, &key[..key.len() - key.len().min(1)]);
        }
        for key in [&b""[..], b"a", b"p", b"q", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
            check(&level, key);
        }
        for low in &keys {
            for high in &keys {
                let range = level.overlapping(low, Some(high));
                let overlaps =
                    |table: &Arc<Table>| !table.meta.is_before(low) && table.meta.smallest <= *high;
                if low <= high {
                    let plain: Vec<usize> =
                        (0..level.len()).filter(|at| overlaps(&level.tables()[*at])).collect();
                    assert_eq!(range.collect::<Vec<_>>(), plain);
                }
                let meeting = level.meeting(low, Some(high));
                let ends = level.tables()[meeting.start..].iter();
                let count = ends.take_while(|table| table.meta.smallest < *high).count();
                assert_eq!(meeting, level.position(low)..level.position(low) + count);
            }
            assert_eq!(level.overlapping(low, None), level.position(low)..level.len());
            assert_eq!(level.meeting(low, None), level.position(low)..level.len());
            let begin = level.tables().iter().filter(|table| table.meta.smallest <= *low).count();
            assert_eq!(level.beginning_up_to(low), begin);
        }
    }
}

#[test]
fn level_0_is_newest_first_and_may_overlap() {
    let env = env();
    let tables = (1..=10).map(|id| table(&env, id, b"a", b"z", false)).collect();
    let level = Level::new(0, tables).unwrap();
    let order: Vec<(u64, u64)> = level.metas().map(|meta| (meta.max_seq, meta.id)).collect();
    assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
    assert_eq!(level.overlapping(b"b", Some(b"c")), 0..10);
}

#[test]
fn overlapping_tables_are_refused_in_a_run() {
    let env = env();
    let pair = |open| vec![table(&env, 1, b"a", b"c", open), table(&env, 2, b"c", b"d", false)];
    assert!(Level::new(1, pair(true)).is_ok());
    assert!(Level::new(1, pair(false)).unwrap_err().contains("tables 1 and 2 of level 1"));
    let nested = vec![table(&env, 1, b"a", b"z", false), table(&env, 2, b"c", b"d", false)];
    assert!(Level::new(1, nested).is_err());
}
