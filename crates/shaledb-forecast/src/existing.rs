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

/// So many places are left for each table: more than a number of 53 bits is off by.
const APART: u64 = 1 << 12;

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
    /// Whether no table of a deeper level has keys between its own: all its rows are there once.
    pub is_alone: bool,
}

/// A range of keys, and the bytes that it stands for.
struct Anchor<'a> {
    low: &'a [u8],
    high: &'a [u8],
    bytes: u64,
}

impl<'a> Anchor<'a> {
    fn of(table: &'a TableMeta) -> Anchor<'a> {
        Anchor { low: &table.smallest, high: &table.largest, bytes: table.file_bytes }
    }
}

/// Whether one of these tables, which are in order and lie apart, has keys between those of
/// another.
fn meets(tables: &[TableMeta], table: &TableMeta) -> bool {
    let at = tables.partition_point(|other| other.largest < table.smallest);
    tables.get(at).is_some_and(|other| other.smallest <= table.largest)
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

    /// Rows, as the level with the most tells; what lies above it replaces some, but for tables
    /// that meet none below, as when rows came behind all others.
    pub fn rows(&self) -> f64 {
        let of = |table: &TableMeta| (table.entries - table.deletes) as f64;
        let rows: Vec<f64> =
            self.levels.iter().map(|tables| tables.iter().map(of).sum::<f64>()).collect();
        let most = rows.iter().copied().fold(0.0, f64::max);
        let level = rows.iter().rposition(|rows| *rows == most).unwrap_or(0);
        let above = self.levels.iter().enumerate().take(level);
        let alone = above.flat_map(|(level, tables)| {
            tables.iter().filter(move |table| self.is_alone(level, table)).map(of)
        });
        most + alone.sum::<f64>()
    }

    /// Whether no table of a deeper level meets this one. Those of level 0 may meet each other; if
    /// there are no others nothing is told.
    fn is_alone(&self, level: usize, table: &TableMeta) -> bool {
        let mut deeper = self.levels.iter().skip(level + 1);
        let beside = || {
            let met = |other: &&TableMeta| {
                other.smallest <= table.largest && table.smallest <= other.largest
            };
            self.levels.first().is_some_and(|tables| tables.iter().filter(met).count() > 1)
        };
        let none_below = self.levels.iter().skip(1).all(Vec::is_empty);
        !(level == 0 && (none_below || beside())) && !deeper.any(|tables| meets(tables, table))
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

    /// Ranges of keys that lie apart, in order: the tables of the largest level below level 0, and
    /// of the others those that meet none of them.
    fn anchors(&self) -> Vec<Anchor<'_>> {
        let bytes = |tables: &[TableMeta]| tables.iter().map(|table| table.file_bytes).sum::<u64>();
        let mut levels: Vec<&[TableMeta]> = self.levels.iter().skip(1).map(Vec::as_slice).collect();
        levels.sort_by_key(|tables| std::cmp::Reverse(bytes(tables)));
        levels.extend(self.levels.first().map(Vec::as_slice));
        let mut anchors: Vec<Anchor<'_>> = Vec::new();
        for table in levels.into_iter().flatten() {
            let at = anchors.partition_point(|other| other.high < table.smallest.as_slice());
            if anchors.get(at).is_none_or(|other| table.largest.as_slice() < other.low) {
                anchors.insert(at, Anchor::of(table));
            }
        }
        anchors
    }

    /// Only level 0: all of it as one.
    fn one_anchor(&self) -> Anchor<'_> {
        let tables = || self.levels.iter().flatten();
        let low = tables().map(|table| table.smallest.as_slice()).min().unwrap_or_default();
        let high = tables().map(|table| table.largest.as_slice()).max().unwrap_or_default();
        Anchor { low, high, bytes: 1 }
    }

    /// The tables in the model's key space, up to the end of what has rows there: where the level
    /// with the most bytes has as many bytes before a place as the place has of it. Tables of other
    /// levels that lie before, between or behind those have places of their own.
    pub fn placed(&self, end: u64) -> Vec<Vec<Placed>> {
        let is_flat = self.levels.iter().skip(1).all(Vec::is_empty);
        let anchors = if is_flat { vec![self.one_anchor()] } else { self.anchors() };
        // Bytes before each.
        let mut before = Vec::with_capacity(anchors.len());
        let mut all = 0;
        for anchor in &anchors {
            before.push(all);
            all += anchor.bytes;
        }
        // Tables whose keys are alike are at least a place apart, and all end before the end.
        let tables = self.levels.iter().map(Vec::len).sum::<usize>() as u64;
        let apart = APART.min(end / 2 / (tables + 1));
        let width = (end - apart * (tables + 1)) as f64;
        let place = |key: &[u8]| {
            let at = anchors.partition_point(|anchor| anchor.high < key);
            let bytes = anchors.get(at).map_or(all as f64, |anchor| {
                before[at] as f64 + within(anchor.low, anchor.high, key) * anchor.bytes as f64
            });
            (bytes / all.max(1) as f64 * width) as u64
        };
        let mut levels = Vec::with_capacity(LEVELS);
        for (level, tables) in self.levels.iter().enumerate() {
            let mut placed: Vec<Placed> = Vec::with_capacity(tables.len());
            for table in tables {
                let (mut start, end) = (place(&table.smallest), place(&table.largest));
                if level > 0 {
                    // Tables of a level stay apart, however alike their keys are.
                    start = start.max(placed.last().map_or(0, |before| before.end));
                }
                let is_alone = self.is_alone(level, table);
                let end = end.max(start + 1);
                placed.push(Placed { table: table.clone(), start, end, is_alone });
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

/// Of the rows above the lowest of these levels, but for those of tables that meet none below, the
/// share that is only there, if there are `rows` in all: a load has brought them, and no merge has
/// taken them down. A database that is there does not tell how many rows it has; all are taken to
/// be in its largest level.
pub fn only_above(levels: &[Vec<Placed>], rows: f64) -> f64 {
    let of = |is_alone: bool| -> f64 {
        let all = levels.iter().flatten().filter(|placed| placed.is_alone == is_alone);
        all.map(|placed| (placed.table.entries - placed.table.deletes) as f64).sum()
    };
    ((rows - of(true)) / of(false).max(1.0)).clamp(0.0, 1.0)
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
        let placed = existing.placed(u64::MAX);
        let at = |level: usize, table: usize| {
            let placed = &placed[level][table];
            [placed.start, placed.end].map(|at| (share(0, at) * 100.0).round())
        };
        assert_eq!((at(6, 0), at(6, 1), at(6, 2)), ([0.0, 30.0], [30.0, 40.0], [40.0, 100.0]));
        assert_eq!((at(0, 0), at(5, 0)), ([0.0, 100.0], [0.0, 30.0]));
        assert!(placed[5][1].start >= placed[5][0].end);
        assert_eq!((existing.rows(), existing.ratio()), (100.0, 2.0));
    }

    /// New rows came behind all others: what is above the largest level lies behind it.
    #[test]
    fn tables_that_meet_none_have_places_of_their_own() {
        let mut levels = vec![Vec::new(); LEVELS];
        levels[0] = vec![table("q", "r", 100), table("o", "p", 100)];
        levels[5] = vec![table("k", "l", 200), table("m", "n", 200)];
        levels[6] = vec![table("a", "c", 300), table("d", "i", 300)];
        let existing = Existing { name: "t".into(), config: TreeConfig::default(), levels };
        for end in [u64::MAX, 1 << 40] {
            let placed = existing.placed(end);
            let at = |level: usize, table: usize| {
                let placed = &placed[level][table];
                assert!(placed.is_alone && placed.end <= end);
                [placed.start, placed.end].map(|at| (at as f64 / end as f64 * 12.0).round())
            };
            assert_eq!((at(6, 0), at(6, 1)), ([0.0, 3.0], [3.0, 6.0]));
            assert_eq!((at(5, 0), at(5, 1)), ([6.0, 8.0], [8.0, 10.0]));
            assert_eq!((at(0, 1), at(0, 0)), ([10.0, 11.0], [11.0, 12.0]));
        }
        // None replaces another.
        assert_eq!(existing.rows(), 120.0);
    }

    #[test]
    fn rows_that_no_merge_has_taken_down_are_at_no_other_place() {
        let mut levels = vec![Vec::new(); LEVELS];
        levels[0] = vec![table("a", "z", 1000)];
        levels[5] = vec![table("a", "z", 1000)];
        levels[6] = vec![table("a", "z", 8000)];
        let existing = Existing { name: "t".into(), config: TreeConfig::default(), levels };
        let placed = existing.placed(u64::MAX);
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
