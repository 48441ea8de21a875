//! A database that is there, as a start: its manifest tells of each table what the model needs.

use crate::content::{Content, Density, Piece, share};
use crate::keys::Keys;
use shaledb::base::config::LEVELS;
use shaledb::compaction::policy::LAST;
use shaledb::fs::Env;
use shaledb::table::meta::TableMeta;
use shaledb::version::manifest;
use shaledb::{Error, TreeConfig};
use std::path::Path;

/// The tables of a tree.
#[derive(Clone, Debug)]
pub struct Existing {
    /// The tree's name.
    pub name: String,
    /// Its settings.
    pub config: TreeConfig,
    /// Its tables by level.
    pub levels: Vec<Vec<TableMeta>>,
}

/// A table in the model's key space.
#[derive(Clone, Debug)]
pub struct Placed {
    /// As it is described, but for its keys.
    pub table: TableMeta,
    /// Where it lies.
    pub start: u64,
    /// See `start`.
    pub end: u64,
}

impl Existing {
    /// The tree of this name, or the largest one, of the database in a directory. Nothing is
    /// changed there, and the database may be in use.
    ///
    /// # Errors
    /// There is no database or no such tree, or its manifest cannot be read.
    pub fn read(path: &Path, name: Option<&str>) -> Result<Existing, Error> {
        let found = manifest::recover(&*Env::os().fs, path)?;
        let bytes = |levels: &[Vec<TableMeta>]| -> u64 {
            levels.iter().flatten().map(|table| table.file_bytes).sum()
        };
        let trees = found.trees.into_values();
        let tree = match name {
            Some(name) => trees.into_iter().find(|tree| tree.name == name),
            None => trees.into_iter().max_by_key(|tree| bytes(&tree.levels)),
        };
        let Some(tree) = tree else {
            return Err(Error::NoSuchTree(name.unwrap_or_default().to_owned()));
        };
        Ok(Existing { name: tree.name, config: tree.config, levels: tree.levels })
    }

    fn sum(&self, of: impl Fn(&TableMeta) -> u64) -> f64 {
        self.levels.iter().flatten().map(|table| of(table) as f64).sum()
    }

    /// Rows, as the last levels tell; what lies above the level with the most rows replaces some.
    pub fn rows(&self) -> f64 {
        let of = |tables: &Vec<TableMeta>| -> f64 {
            tables.iter().map(|table| (table.entries - table.deletes) as f64).sum()
        };
        self.levels.iter().map(of).fold(0.0, f64::max)
    }

    /// Bytes of a key and of a value, at the mean.
    pub fn row_bytes(&self) -> (f64, f64) {
        let entries = self.sum(|table| table.entries).max(1.0);
        let puts = (entries - self.sum(|table| table.deletes)).max(1.0);
        let key = self.sum(|table| table.key_bytes) / entries;
        (key.max(1.0), self.sum(|table| table.value_bytes) / puts)
    }

    /// How many times smaller the blocks of the last level are than before compression; of a tree
    /// without a last level, those of all.
    pub fn ratio(&self) -> f64 {
        let of = |tables: &[&TableMeta]| {
            let raw: u64 = tables.iter().map(|table| table.raw_bytes).sum();
            let data: u64 = tables.iter().map(|table| table.data_bytes).sum();
            (raw > 0).then(|| raw as f64 / data.max(1) as f64)
        };
        let last: Vec<&TableMeta> = self.levels.get(LAST).into_iter().flatten().collect();
        let all: Vec<&TableMeta> = self.levels.iter().flatten().collect();
        of(&last).or_else(|| of(&all)).unwrap_or(1.0).max(1.0)
    }

    /// The tables in the model's key space: where the level with the most bytes has as many bytes
    /// before a place as the place has of the key space.
    pub fn placed(&self) -> Vec<Vec<Placed>> {
        let bytes =
            |tables: &Vec<TableMeta>| tables.iter().map(|table| table.file_bytes).sum::<u64>();
        let below = self.levels.iter().skip(1).max_by_key(|tables| bytes(tables));
        let anchors = below.filter(|tables| !tables.is_empty()).cloned().unwrap_or_else(|| {
            // Only level 0: all of it as one.
            let mut all = TableMeta { file_bytes: 1, ..TableMeta::default() };
            let tables = || self.levels.iter().flatten();
            all.smallest = tables().map(|table| table.smallest.clone()).min().unwrap_or_default();
            all.largest = tables().map(|table| table.largest.clone()).max().unwrap_or_default();
            vec![all]
        });
        let all = bytes(&anchors).max(1) as f64;
        let place = |key: &[u8]| {
            let at = anchors.partition_point(|table| table.largest.as_slice() < key);
            let before: u64 = anchors[..at].iter().map(|table| table.file_bytes).sum();
            let inside = anchors.get(at).map_or(0.0, |table| {
                within(&table.smallest, &table.largest, key) * table.file_bytes as f64
            });
            ((before as f64 + inside) / all * 2f64.powi(64)) as u64
        };
        let mut levels = Vec::with_capacity(LEVELS);
        for (level, tables) in self.levels.iter().enumerate() {
            let mut placed: Vec<Placed> = Vec::with_capacity(tables.len());
            for table in tables {
                let (mut start, mut end) = (place(&table.smallest), place(&table.largest));
                if level > 0 {
                    // Tables of a level stay apart, however alike their keys are.
                    start = start.max(placed.last().map_or(0, |before| before.end));
                }
                start = start.min(u64::MAX - 2);
                end = end.max(start + 1);
                placed.push(Placed { table: table.clone(), start, end });
            }
            levels.push(placed);
        }
        levels
    }
}

/// How far a key lies from `low` (0) to `high` (1), by the eight bytes behind what the two share.
fn within(low: &[u8], high: &[u8], key: &[u8]) -> f64 {
    let shared = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(key.get(shared..).unwrap_or_default()) {
            *to = *from;
        }
        u64::from_be_bytes(bytes) as f64
    };
    let (low, high) = (number(low), number(high));
    if high <= low { 0.0 } else { ((number(key) - low) / (high - low)).clamp(0.0, 1.0) }
}

/// Of the rows above the lowest of these levels, the share that is only there, if there are `rows`
/// in all: a load has brought them, and no merge has taken them down. A database that is there does
/// not tell how many rows it has; all are taken to be in its largest level.
pub fn only_above(levels: &[Vec<Placed>], rows: f64) -> f64 {
    let of = |tables: &Vec<Placed>| -> f64 {
        tables.iter().map(|placed| (placed.table.entries - placed.table.deletes) as f64).sum()
    };
    let bottom = (1..levels.len()).rev().find(|level| !levels[*level].is_empty()).unwrap_or(0);
    // Level 0 alone is all above.
    let there = if bottom > 0 { of(&levels[bottom]) } else { 0.0 };
    let above = levels[..bottom.max(1)].iter().map(of).sum::<f64>();
    ((rows - there) / above.max(1.0)).clamp(0.0, 1.0)
}

/// What a table of a database holds, as far as its description tells. A share of its rows is at no
/// other place: all of them in the lowest level. The others are updates.
pub fn content(placed: &Placed, only_here: f64, keys: &Keys) -> Content {
    let width = share(placed.start, placed.end).max(1e-19);
    let deletes = placed.table.deletes as f64 / width;
    let puts = (placed.table.entries - placed.table.deletes) as f64 / width;
    let rows = only_here * puts;
    let met = (puts - rows) / (1.0 - (rows / keys.count()).min(0.95));
    let draws = keys.writes_for(met.min(0.95 * keys.count()));
    let density = Density { rows, draws, deletes };
    let piece = Piece { start: placed.start, end: placed.end, density };
    Content { pieces: vec![piece], dropped_to: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(low: &str, high: &str, bytes: u64) -> TableMeta {
        TableMeta {
            smallest: low.into(),
            largest: high.into(),
            file_bytes: bytes,
            entries: bytes / 10,
            key_bytes: bytes,
            raw_bytes: 2 * bytes,
            data_bytes: bytes,
            ..TableMeta::default()
        }
    }

    #[test]
    fn tables_lie_where_the_bytes_of_the_largest_level_do() {
        let mut levels = vec![Vec::new(); LEVELS];
        levels[0] = vec![table("a", "z", 50)];
        levels[5] = vec![table("a", "c", 30), table("d", "x", 40)];
        levels[6] = vec![table("a", "b", 300), table("c", "m", 100), table("n", "z", 600)];
        let existing = Existing { name: "t".into(), config: TreeConfig::default(), levels };
        let placed = existing.placed();
        let at = |level: usize, table: usize| {
            let placed = &placed[level][table];
            [placed.start, placed.end].map(|at| (share(0, at) * 100.0).round())
        };
        assert_eq!((at(6, 0), at(6, 1), at(6, 2)), ([0.0, 30.0], [30.0, 40.0], [40.0, 100.0]));
        assert_eq!((at(0, 0), at(5, 0)), ([0.0, 100.0], [0.0, 30.0]));
        assert!(placed[5][1].start >= placed[5][0].end);
        assert_eq!((existing.rows(), existing.ratio()), (100.0, 2.0));
    }

    #[test]
    fn rows_that_no_merge_has_taken_down_are_at_no_other_place() {
        let mut levels = vec![Vec::new(); LEVELS];
        levels[0] = vec![table("a", "z", 1000)];
        levels[5] = vec![table("a", "z", 1000)];
        levels[6] = vec![table("a", "z", 8000)];
        let existing = Existing { name: "t".into(), config: TreeConfig::default(), levels };
        let placed = existing.placed();
        // 800 below, 200 above.
        for (rows, share) in [(1000.0, 1.0), (900.0, 0.5), (800.0, 0.0), (700.0, 0.0)] {
            assert_eq!(only_above(&placed, rows), share, "{rows} rows");
        }
        let only_level0 = [placed[0].clone()];
        for (rows, share) in [(100.0, 1.0), (50.0, 0.5)] {
            assert_eq!(only_above(&only_level0, rows), share, "{rows} rows");
        }
        let keys = Keys::new(900.0, crate::keys::Skew::Uniform);
        let half = content(&placed[5][0], 0.5, &keys);
        assert!((half.puts(&keys) - 100.0).abs() < 2.0, "{}", half.puts(&keys));
        assert!((half.pieces[0].density.rows - 50.0).abs() < 1.0);
    }
}
