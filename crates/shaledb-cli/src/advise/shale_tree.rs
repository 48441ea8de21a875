//! A tree of a Shale database, for [`super::tree`].

use shaledb::{Db, LevelStats, ScanOptions, Tree, TreeStats};
use shaledb_lab::browse::{About, Browse, Entry};
use shaledb_lab::stores::engine::Result;

/// A tree, with its database, which stays open as long as it is read.
pub(super) struct ShaleTree {
    tree: Tree,
    db: Db,
}

impl ShaleTree {
    pub(super) fn new(db: Db, tree: Tree) -> ShaleTree {
        ShaleTree { tree, db }
    }
}

fn options(lower: &[u8]) -> ScanOptions<'static> {
    ScanOptions { lower: Some(lower.to_vec()), fill_cache: false, ..ScanOptions::default() }
}

/// Bytes before compression, as the blocks of a level's tables have them.
fn raw_bytes(level: &LevelStats) -> u64 {
    (level.bytes as f64 * level.ratio.max(1.0)) as u64
}

impl Browse for ShaleTree {
    fn about(&mut self) -> Result<About> {
        let mut scan = self.tree.scan_with(options(b""))?;
        scan.seek_last()?;
        let last = scan.valid().then(|| scan.key().to_vec());
        let (own, others): (Vec<TreeStats>, Vec<TreeStats>) =
            self.db.stats().trees.into_iter().partition(|tree| tree.name == self.tree.name());
        let sum = |figure: fn(&TreeStats) -> u64| own.iter().map(figure).sum::<u64>();
        let others = if last.is_none() { others } else { Vec::new() };
        Ok(About {
            table_entries: sum(|tree| tree.levels.iter().map(|level| level.entries).sum()),
            memtable_entries: sum(|tree| tree.memtable_entries),
            raw_bytes: sum(|tree| tree.levels.iter().map(raw_bytes).sum()),
            has_uncounted: own.iter().any(|tree| tree.memtable_bytes > 0 || tree.blob_files > 0),
            last,
            others: others.into_iter().map(|tree| tree.name).collect(),
        })
    }

    fn stored_before(&mut self, key: &[u8]) -> Result<u64> {
        Ok(self.tree.approximate_bytes(b"", Some(key))?)
    }

    fn rows(&mut self, from: &[u8], bytes: u64, places: bool) -> Result<Vec<Entry>> {
        let mut scan = self.tree.scan_with(options(from))?;
        scan.seek_first()?;
        let (mut rows, mut so_far) = (Vec::new(), 0);
        while scan.valid() && so_far < bytes.max(1) {
            let (key, value) = (scan.key().to_vec(), scan.value()?.to_vec());
            so_far += (key.len() + value.len()) as u64;
            let before = if places { self.stored_before(&key)? } else { 0 };
            rows.push(Entry { key, value, before });
            scan.next()?;
        }
        Ok(rows)
    }
}
