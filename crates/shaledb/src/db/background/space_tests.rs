use super::*;
use crate::base::config::{Codec, Config, LEVELS};
use crate::compaction::policy::chosen::{Choice, Chosen};
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use crate::fs::mem::MemClock;
use crate::table::meta::Why;
use std::sync::Arc;

/// A row of which a codec saves three quarters.
fn row(number: u64) -> ([u8; 8], Vec<u8>) {
    let mut noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut value = vec![b'-'; 400];
    for byte in &mut value[..100] {
        noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        *byte = (noise >> 56) as u8;
    }
    (noise.to_be_bytes(), value)
}

/// A load that comes faster than the processor compresses is written as it is. At the limit that is
/// no reason to refuse what would fit.
#[test]
fn what_was_compressed_lightly_makes_room() {
    let background = Background::Stepped;
    // The clock stands, so that no other codecs are chosen meanwhile.
    let env = Env { clock: Arc::new(MemClock::new()), ..Env::memory() };
    let options = OpenOptions { env, background, ..OpenOptions::default() };
    let (memtable_bytes, table_bytes) = (64 << 10, 256 << 10);
    let config = Config { memory_bytes: 8 << 20, memtable_bytes, table_bytes, ..Config::default() };
    let db = Db::open_in("/db", config, options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    let light = Choice { codec: Codec::None, dictionary: false, why: Why::CpuShort };
    tree.inner.chosen.store(Chosen([Some(light); LEVELS]).pack(), Relaxed);
    let put = |number: u64| {
        let (key, value) = row(number);
        tree.put(&key, &value).unwrap_or_else(|error| panic!("{number}: {error}\n{}", db.stats()));
    };
    (0..10_000).for_each(put);
    db.compact().unwrap();
    let used = db.stats().space_used;
    assert!(used > 4_000_000, "{used}");
    db.set_space_limit(used * 5 / 4).unwrap();
    (10_000..20_000).for_each(put);
    for number in 0..20_000 {
        let (key, value) = row(number);
        assert_eq!(tree.get(&key).unwrap().as_deref(), Some(&*value));
    }
    assert!(db.verify(&mut |_| ()).unwrap().damage.is_empty());
}
