//! Tests of walks through changes, against all entries of a random tree.

use super::*;
use crate::iter::testing::{Random, read_seq};
use crate::read::testing::{TestBlobs, Tree};
use std::collections::BTreeMap;

#[test]
fn a_walk_tells_the_newest_change_of_each_key() {
    let mut told = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let tree = Tree::random(&mut random);
        let after = random.below(tree.last_seq + 1);
        let through = read_seq(&mut random, tree.last_seq).max(after);
        let mut newest = BTreeMap::new();
        for entry in tree.entries() {
            if entry.seq > after && entry.seq <= through {
                let known = newest.entry(entry.key.clone()).or_insert(entry);
                if known.seq < entry.seq {
                    *known = entry;
                }
            }
        }
        let blobs: Arc<dyn BlobSource> = Arc::new(TestBlobs);
        let mut changes = Changes::new(&tree.state, after, through, blobs);
        for (key, entry) in &newest {
            assert!(changes.step().unwrap(), "seed {seed}");
            assert_eq!(changes.key(), key, "seed {seed}");
            let value = match entry.kind {
                Kind::Delete => None,
                Kind::Blob => Some(TestBlobs.read(&entry.value).unwrap()),
                _ => Some(entry.value.clone()),
            };
            assert_eq!(changes.value().unwrap(), value, "seed {seed}");
            told += 1;
        }
        assert!(!changes.step().unwrap(), "seed {seed}");
    }
    assert!(told > 1000, "{told} changes");
}
