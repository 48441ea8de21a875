use super::*;
use crate::base::coding::hash;
use crate::base::config::Codec;
use crate::base::ranges::RangeDelete;
use crate::table::testing::{Entry, World, entries, options, path};

const CODECS: [Codec; 4] = [Codec::None, Codec::Lz4, Codec::Zlib(6), Codec::Zstd(3)];

fn naive<'a>(entries: &'a [Entry], key: &[u8], seq: SeqNo) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.0 == key && entry.1 <= seq)
}

#[test]
fn gets_find_what_a_naive_search_finds() {
    let entries = entries(400, 4, 7);
    for (id, codec) in (1..).zip(CODECS) {
        for block_bytes in [64, 1000, 16 * 1024] {
            let world = World::new(64 << 20);
            let table = world.open(world.write(id, options(codec, block_bytes), &entries));
            for (key, ..) in &entries {
                for seq in [0, 100, 400, 999, SEQ_MAX] {
                    let found = table.get(key, hash(key), seq).unwrap();
                    let found = found.map(|e| (key.clone(), e.seq, e.kind, e.value.to_vec()));
                    assert_eq!(found.as_ref(), naive(&entries, key, seq), "{codec} {block_bytes}");
                }
                let absent = [key.as_slice(), b"!"].concat();
                assert!(table.get(&absent, hash(&absent), SEQ_MAX).unwrap().is_none());
            }
            for absent in [&b""[..], b"user/", b"zzz"] {
                assert!(table.get(absent, hash(absent), SEQ_MAX).unwrap().is_none());
            }
        }
    }
}
