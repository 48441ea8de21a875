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

    /// A figure of the tree.
    fn of_tree(&self, figure: impl Fn(&TreeStats) -> u64) -> u64 {
        let stats = self.db.stats();
        stats.trees.iter().filter(|other| other.name == self.tree.name()).map(figure).sum()
    }
}

fn options(lower: &[u8]) -> ScanOptions<'static> {
    ScanOptions { lower: Some(lower.to_vec()), fill_cache: false, ..ScanOptions::default() }
}

impl Browse for ShaleTree {
    fn about(&mut self) -> Result<About> {
        let raw = |level: &LevelStats| (level.bytes as f64 * level.ratio.max(1.0)) as u64;
        let mut scan = self.tree.scan_with(options(b""))?;
        scan.seek_last()?;
        let last = scan.valid().then(|| scan.key().to_vec());
        let mut others = Vec::new();
        if last.is_none() {
            let stats = self.db.stats();
            others.extend(stats.trees.into_iter().map(|tree| tree.name));
            others.retain(|name| name != self.tree.name());
        }
        Ok(About {
            table_entries: self.of_tree(|tree| tree.levels.iter().map(|level| level.entries).sum()),
            memtable_entries: self.of_tree(|tree| tree.memtable_entries),
            raw_bytes: self.of_tree(|tree| tree.levels.iter().map(raw).sum()),
            has_uncounted: self
                .of_tree(|tree| u64::from(tree.memtable_bytes > 0 || tree.blob_files > 0))
                > 0,
            last,
            others,
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
