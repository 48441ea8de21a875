//! A tree without bytes: real descriptions of tables, real plans, and a model of what tables hold.

use crate::content::{Content, Cutter, Density, Piece, merged, share};
use crate::existing::{self, Existing};
use crate::keys::Keys;
use crate::scenario::{Order, Scenario};
use shaledb::Codec;
use shaledb::base::config::LEVELS;
use shaledb::base::ranges::{RangeDelete, RangeDeletes};
use shaledb::compaction::picker;
use shaledb::compaction::plan::{Action, Busy, Load, Plan, Settings, Shape, Space};
use shaledb::compaction::policy::candidates::{Cost, Costs, index_of};
use shaledb::compaction::policy::chosen::Choice;
use shaledb::compaction::policy::{self, LAST};
use shaledb::compaction::range::overlapping;
use shaledb::compaction::score::Targets;
use shaledb::compaction::split::{self, OutputCut, Part};
use shaledb::table::meta::{FileId, TableMeta};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// What an entry takes in a block beside its key and value, with a sequence number and without.
const ENTRY_BYTES: f64 = 3.4;
const ENTRY_BYTES_LAST: f64 = 0.6;
/// Keys of a block share their first bytes, which are there once: about one where keys lie
/// anywhere, and this share of a key where they ascend.
const SHARED_ASCENDING: f64 = 0.4;
/// What a block takes in the index beside a key.
const INDEX_BYTES: f64 = 14.0;
/// How often in a table it is asked whether to cut it.
const ASKED: f64 = 16.0;

/// A place as a key.
pub fn key(at: u64) -> Vec<u8> {
    at.to_be_bytes().to_vec()
}

/// A key as a place.
fn place(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let taken = key.len().min(8);
    bytes[..taken].copy_from_slice(&key[..taken]);
    u64::from_be_bytes(bytes)
}

/// The part of a table from its first place to its last one (included) that lies in a range.
fn part_of((first, last): (u64, u64), (from, to): (u64, u64)) -> f64 {
    let width = |from: u64, to: u64| to.saturating_sub(from) as f64;
    let end = last.saturating_add(1);
    (width(first.max(from), end.min(to)) / width(first, end).max(1.0)).min(1.0)
}

/// What a codec does to the data; of one that was not measured, what the nearest one does.
pub fn cost_of(costs: &Costs, choice: Choice) -> Cost {
    let dictionary = choice.dictionary && matches!(choice.codec, Codec::Zstd(_));
    let near = match choice.codec {
        Codec::Zstd(level) if level < 0 => Codec::Zstd(-3),
        Codec::Zstd(level @ ..=2) => Codec::Zstd(level.clamp(1, 1)),
        Codec::Zstd(3..=4) | Codec::Auto => Codec::Zstd(3),
        Codec::Zlib(_) | Codec::Zstd(5..=7) => Codec::Zstd(6),
        Codec::Zstd(_) => Codec::Zstd(9),
        other => other,
    };
    let with = index_of(near, true).filter(|at| dictionary && costs.has(*at));
    let at = with.or_else(|| index_of(near, false)).unwrap_or(0);
    costs.0[at]
}

/// The tables of a tree and what they hold.
#[derive(Debug)]
pub struct Tree {
    /// The tables.
    pub shape: Shape,
    /// What the picker goes by.
    pub settings: Settings,
    /// What running jobs have reserved.
    pub busy: Busy,
    /// What codecs do to the data.
    pub costs: Costs,
    contents: BTreeMap<FileId, Content>,
    key_bytes: f64,
    value_bytes: f64,
    shared_bytes: f64,
    block_bytes: f64,
    filter_bits: u8,
    next_id: FileId,
    next_seq: u64,
}

/// What a merge will make.
#[derive(Clone, Debug)]
pub struct Merged {
    /// What was planned.
    pub plan: Plan,
    /// The outputs.
    pub tables: Vec<(TableMeta, Content)>,
    /// Bytes of the inputs' files, and of what comes from above the output level.
    pub input_bytes: f64,
    /// See `input_bytes`.
    pub above_bytes: f64,
    /// Rows read.
    pub rows_in: f64,
    /// CPU seconds to decompress what is read.
    pub decompress_seconds: f64,
    /// Bytes of blocks before compression that are compressed anew, and written, and of the files.
    pub raw_out: f64,
    /// See `raw_out`.
    pub output_bytes: f64,
    /// CPU seconds to compress.
    pub compress_seconds: f64,
    /// The share of the rows that are copied by whole blocks.
    pub reused: f64,
}

/// The inputs of a merge that are of its output level, or those from above.
#[derive(Default)]
struct Input {
    /// Where each table begins and ends, and its entries.
    tables: Vec<(u64, u64, u64)>,
    /// CPU seconds to decompress them.
    decompress_seconds: f64,
}

impl Input {
    fn rows(&self) -> f64 {
        self.tables.iter().map(|table| table.2 as f64).sum()
    }

    /// The rows of blocks, each of so many rows, that no row from above meets: all that lie before
    /// and behind these, and some between them.
    fn rows_not_met(&self, above: &Input, rows_of_block: f64) -> f64 {
        let from = above.tables.iter().map(|table| table.0).min().unwrap_or(u64::MAX);
        let to = above.tables.iter().map(|table| table.1).max().unwrap_or(0);
        let between = |&(start, end, entries): &(u64, u64, u64)| {
            entries as f64 * part_of((start, end), (from, to.saturating_add(1)))
        };
        let between: f64 = self.tables.iter().map(between).sum();
        let density = above.rows() / between.max(1.0);
        self.rows() - between + between * (-density * rows_of_block).exp()
    }
}

impl Tree {
    /// An empty tree.
    pub fn new(scenario: &Scenario, settings: Settings) -> Tree {
        let tree = &scenario.config.tree;
        let block_bytes = f64::from(settings.codecs.blocks.of(LAST).0);
        Tree {
            shape: Shape { levels: vec![Vec::new(); LEVELS] },
            settings,
            busy: Busy::new(),
            costs: scenario.costs,
            contents: BTreeMap::new(),
            key_bytes: scenario.key_bytes,
            value_bytes: scenario.value_bytes,
            shared_bytes: match scenario.load.order {
                Order::Random => 1f64.min(scenario.key_bytes / 2.0),
                Order::Ascending => SHARED_ASCENDING * scenario.key_bytes,
            },
            block_bytes,
            filter_bits: tree.filter_bits,
            next_id: 1,
            next_seq: 1,
        }
    }

    /// Bytes of a block before compression. Where the engine chooses, what it begins with: how it
    /// goes on from there is not modelled.
    pub fn block_bytes(&self) -> f64 {
        self.block_bytes
    }

    /// Bytes of the blocks, before compression, of so many rows and deletes at a level.
    pub fn raw_bytes(&self, puts: f64, deletes: f64, level: usize) -> f64 {
        let entry = if level == LAST { ENTRY_BYTES_LAST } else { ENTRY_BYTES } - self.shared_bytes;
        puts * (self.key_bytes + self.value_bytes + entry) + deletes * (self.key_bytes + entry)
    }

    /// Bytes of the file: blocks after compression, filter, index.
    pub fn file_bytes(&self, raw: f64, entries: f64, level: usize, choice: Choice) -> f64 {
        let filter = f64::from(policy::filter_bits(self.filter_bits, level)) / 8.0;
        let blocks = raw / self.block_bytes;
        let index = blocks * (self.key_bytes.min(16.0) + INDEX_BYTES);
        raw * cost_of(&self.costs, choice).ratio + entries * filter + index
    }

    /// How a table of a level is compressed now.
    pub fn choice(&self, level: usize) -> Choice {
        let base = Targets::of(&self.shape, &self.settings).base;
        self.settings.codecs.of(level, base)
    }

    /// Bytes of the files of so many rows at a level.
    pub fn bytes_of_rows(&self, rows: f64, level: usize) -> f64 {
        let raw = self.raw_bytes(rows, 0.0, level);
        self.file_bytes(raw, rows, level, self.settings.codecs.of(level, LAST - 1))
    }

    fn describe(
        &mut self,
        content: &Content,
        keys: &Keys,
        level: usize,
        choice: Choice,
    ) -> TableMeta {
        self.next_id += 1;
        let (puts, deletes) = (content.puts(keys), content.deletes());
        let raw = self.raw_bytes(puts, deletes, level);
        let (start, end) = content.bounds();
        let bytes = |value: f64| value.round() as u64;
        TableMeta {
            id: self.next_id,
            file_bytes: bytes(self.file_bytes(raw, puts + deletes, level, choice)).max(1),
            smallest: key(start),
            largest: key(end.saturating_sub(1)),
            entries: bytes(puts + deletes).max(1),
            deletes: bytes(deletes),
            range_deletes: u64::from(content.dropped_to > 0),
            raw_bytes: bytes(raw),
            data_bytes: bytes(raw * cost_of(&self.costs, choice).ratio),
            codec: Some(choice.codec),
            why: choice.why,
            ..TableMeta::default()
        }
    }

    /// Adds a table of level 0; answers with its description.
    pub fn flush(&mut self, content: Content, keys: &Keys) -> Arc<TableMeta> {
        let choice = self.choice(0);
        let mut table = self.describe(&content, keys, 0, choice);
        (table.min_seq, table.max_seq) = (self.next_seq, self.next_seq + 99);
        self.next_seq += 100;
        let table = Arc::new(table);
        self.contents.insert(table.id, content);
        self.shape.levels[0].insert(0, table.clone());
        table
    }

    /// Puts tables that hold an even density into a level below 0, over a part of the key space.
    pub fn fill(&mut self, level: usize, (start, end): (u64, u64), density: Density, keys: &Keys) {
        let target = Targets::of(&self.shape, &self.settings).bytes[level];
        let aim = policy::table_bytes(self.settings.table_bytes, level, target.max(1)) as f64;
        let choice = self.choice(level);
        let whole = Content::even(start, end, density);
        let raw = self.raw_bytes(whole.puts(keys), whole.deletes(), level);
        let all = self.file_bytes(raw, whole.puts(keys), level, choice);
        let count = (all / aim).ceil().max(1.0) as u64;
        let width = (end - start) / count;
        for at in 0..count {
            let from = start + at * width;
            let to = if at + 1 == count { end } else { from + width };
            let content = Content::even(from, to, density);
            let mut table = self.describe(&content, keys, level, choice);
            if level < LAST {
                (table.min_seq, table.max_seq) = (1, 1);
            }
            self.contents.insert(table.id, content);
            self.shape.levels[level].push(Arc::new(table));
        }
        self.shape.levels[level].sort_by(|a, b| a.smallest.cmp(&b.smallest));
        self.next_seq = self.next_seq.max(2);
    }

    /// Takes the tables of a database that is there and has so many rows, before the end of the
    /// places that have any.
    pub fn adopt(&mut self, existing: &Existing, rows: f64, end: u64, keys: &Keys) {
        let placed = existing.placed(end);
        let only_above = existing::only_above(&placed, rows);
        for (level, tables) in placed.into_iter().enumerate() {
            for placed in tables {
                self.next_id += 1;
                let only_here = if placed.is_alone { 1.0 } else { only_above };
                let content = existing::content(&placed, only_here, keys);
                let mut table = placed.table;
                self.next_seq = self.next_seq.max(table.max_seq + 1);
                (table.id, table.range_deletes) = (self.next_id, 0);
                (table.smallest, table.largest) = (key(placed.start), key(placed.end - 1));
                table.largest_exclusive = false;
                self.contents.insert(table.id, content);
                self.shape.levels[level].push(Arc::new(table));
            }
        }
    }

    /// The next compaction that is due beside those that run, by the engine's own picker.
    pub fn pick(&self, idle: bool, space: Space) -> Option<Plan> {
        let deletes = self.range_deletes();
        let newest = [self.next_seq];
        let load = Load { idle, snapshots: &newest, range_deletes: Some(&deletes), space };
        picker::pick(&self.shape, &self.settings, &self.busy, &load)
    }

    /// The range deletes of all tables.
    fn range_deletes(&self) -> RangeDeletes {
        let tables = self.shape.levels.iter().flatten().filter(|table| table.range_deletes > 0);
        RangeDeletes::new(tables.filter_map(|table| {
            let end = self.contents.get(&table.id)?.dropped_to;
            Some(RangeDelete { start: key(0), end: key(end), seq: table.max_seq })
        }))
    }

    /// What a plan will make. Its inputs are reserved until [`Tree::install`].
    pub fn start(&mut self, plan: Plan, keys: &Keys) -> Merged {
        self.busy.start(&plan);
        let mut done = Merged {
            tables: Vec::new(),
            input_bytes: plan.input_bytes as f64,
            above_bytes: (plan.input_bytes - plan.output_level_bytes) as f64,
            rows_in: 0.0,
            decompress_seconds: 0.0,
            raw_out: 0.0,
            output_bytes: 0.0,
            compress_seconds: 0.0,
            reused: 0.0,
            plan,
        };
        if done.plan.action != Action::Merge {
            return done;
        }
        let mut inputs = Vec::new();
        let (mut above, mut there) = (Input::default(), Input::default());
        for (level, ids) in &done.plan.inputs {
            let is_there = *level == done.plan.output_level && *level > 0;
            let input = if is_there { &mut there } else { &mut above };
            for table in self.shape.levels[*level].iter().filter(|table| ids.contains(&table.id)) {
                inputs.extend(self.contents.get(&table.id));
                let codec = table.codec.unwrap_or(Codec::None);
                let choice = Choice { codec, dictionary: true, why: table.why };
                let cost = cost_of(&self.costs, choice);
                input.decompress_seconds += table.raw_bytes as f64 * cost.decompress / 1e9;
                input.tables.push((place(&table.smallest), place(&table.largest), table.entries));
            }
        }
        done.rows_in = above.rows() + there.rows();
        let pieces = merged(&inputs);
        let dropped_to = inputs.iter().map(|content| content.dropped_to).max().unwrap_or(0);
        let tables = self.cut(&done.plan, pieces, dropped_to, keys);
        let (level, choice) = (done.plan.output_level, done.plan.choice);
        for content in tables {
            let mut table = self.describe(&content, keys, level, choice);
            if level < LAST {
                (table.min_seq, table.max_seq) = (1, 1);
            }
            done.raw_out += table.raw_bytes as f64;
            done.output_bytes += table.file_bytes as f64;
            done.tables.push((table, content));
        }
        // A block that no row from above meets is copied as it is.
        let rows_of_block = self.block_bytes / (self.key_bytes + self.value_bytes).max(1.0);
        let kept = there.rows_not_met(&above, rows_of_block);
        done.reused = kept / done.rows_in.max(1.0);
        let anew = 1.0 - done.reused;
        // Its keys are looked at all the same.
        done.decompress_seconds = above.decompress_seconds + there.decompress_seconds;
        done.compress_seconds = done.raw_out * anew * cost_of(&self.costs, choice).compress / 1e9;
        done
    }

    /// The shares of a merge's input that each of its parts has, if so many threads are free.
    pub fn parts(&self, merge: &Merged, free: usize) -> Vec<f64> {
        let of_plan = merge.plan.inputs.iter().flat_map(|(level, ids)| {
            let tables = self.shape.levels[*level].iter();
            tables.filter(|table| ids.contains(&table.id)).map(|table| (*level, &**table))
        });
        let tables: Vec<(usize, &TableMeta)> = of_plan.collect();
        let bounds = |table: &TableMeta| (place(&table.smallest), place(&table.largest));
        let points = |at: usize, pieces: u64| {
            let (start, end) = bounds(tables[at].1);
            let inside = |at: u64| key(start + end.saturating_sub(start) / pieces * at);
            Ok::<_, Infallible>((1..pieces).map(inside).collect())
        };
        let Ok(parts) = split::for_threads(&merge.plan, &tables, free, points);
        let bytes_of = |part: &Part| -> f64 {
            let from = part.start.as_deref().map_or(0, place);
            let to = part.end.as_deref().map_or(u64::MAX, place);
            let of = |(_, table): &(usize, &TableMeta)| {
                table.file_bytes as f64 * part_of(bounds(table), (from, to))
            };
            tables.iter().map(of).sum()
        };
        let shares: Vec<f64> = parts.iter().map(bytes_of).collect();
        let all: f64 = shares.iter().sum::<f64>().max(1e-9);
        let shares = shares.into_iter().map(|bytes| bytes / all);
        let shares: Vec<f64> = shares.filter(|share| *share > 1e-6).collect();
        if shares.is_empty() { vec![1.0] } else { shares }
    }

    /// Cuts what a merge makes into tables, where the engine would.
    fn cut(&self, plan: &Plan, pieces: Vec<Piece>, dropped_to: u64, keys: &Keys) -> Vec<Content> {
        let mut rule = OutputCut::new(plan, None);
        let mut cutter = Cutter::default();
        let level = plan.output_level;
        let ratio = cost_of(&self.costs, plan.choice).ratio;
        let step_bytes = (plan.table_bytes as f64 / ASKED).max(1.0);
        let mut bytes = 0.0;
        for mut piece in pieces {
            if plan.is_last {
                piece.density = piece.density.at_the_bottom(keys);
            }
            let density = piece.density;
            let raw = self.raw_bytes(density.puts(keys), density.deletes, level);
            let of_all = self.file_bytes(raw, density.entries(keys), level, plan.choice);
            if of_all < ratio.min(1e-9) {
                continue;
            }
            let mut at = piece.start;
            while at < piece.end {
                if bytes > 0.0 && rule.before(&key(at), bytes as u64) {
                    cutter.cut();
                    bytes = 0.0;
                }
                let width = (step_bytes / of_all * 2f64.powi(64)).max(1.0);
                let mut end =
                    if width >= (piece.end - at) as f64 { piece.end } else { at + width as u64 };
                // Near its end the engine looks at each key.
                if let Some(below) = rule.next()
                    && rule.is_near_end(bytes as u64)
                {
                    let behind = place(&below.largest).saturating_add(1);
                    if behind > at {
                        end = end.min(behind);
                    }
                }
                cutter.add(Piece { start: at, end, density });
                bytes += of_all * share(at, end);
                at = end;
            }
        }
        cutter.cut();
        let mut tables = cutter.tables;
        if dropped_to > 0 && !plan.is_last {
            match tables.first_mut() {
                Some(first) => first.dropped_to = dropped_to,
                None => tables.push(Content { pieces: Vec::new(), dropped_to }),
            }
        }
        tables
    }

    /// Puts what was made in the place of what it was made of.
    pub fn install(&mut self, done: Merged) {
        let Merged { plan, tables, .. } = done;
        self.busy.finish(&plan);
        let mut moved = Vec::new();
        let seqs = |tables: &[Arc<TableMeta>]| {
            let least = tables.iter().map(|table| table.min_seq).min().unwrap_or(1);
            (least, tables.iter().map(|table| table.max_seq).max().unwrap_or(1))
        };
        for (level, ids) in &plan.inputs {
            let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.shape.levels[*level])
                .into_iter()
                .partition(|table| ids.contains(&table.id));
            self.shape.levels[*level] = kept;
            moved.extend(taken);
        }
        let (oldest, newest) = seqs(&moved);
        let outputs: Vec<Arc<TableMeta>> = if plan.action == Action::Move {
            moved
        } else {
            for table in &moved {
                self.contents.remove(&table.id);
            }
            let mut outputs = Vec::with_capacity(tables.len());
            for (mut table, content) in tables {
                if plan.output_level < LAST {
                    (table.min_seq, table.max_seq) = (oldest, newest);
                }
                self.contents.insert(table.id, content);
                outputs.push(Arc::new(table));
            }
            outputs
        };
        let tables = &mut self.shape.levels[plan.output_level];
        if plan.output_level == 0 {
            let at = tables.partition_point(|table| table.max_seq > newest);
            tables.splice(at..at, outputs);
        } else {
            debug_assert!(
                outputs.iter().all(|new| tables[overlapping(tables, &plan.range)]
                    .iter()
                    .all(|table| !table.overlaps(new))),
                "outputs overlap nothing"
            );
            tables.extend(outputs);
            tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        }
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> f64 {
        self.shape.levels.iter().flatten().map(|table| table.file_bytes as f64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Skew;
    use crate::scenario::sample;
    use shaledb::compaction::policy::chosen::LevelCodecs;

    fn input(tables: &[(u64, u64, u64)]) -> Input {
        Input { tables: tables.to_vec(), decompress_seconds: 0.0 }
    }

    #[test]
    fn blocks_before_and_behind_what_comes_are_copied() {
        const PART: u64 = u64::MAX / 100;
        let there = input(&[(0, 20 * PART, 2000), (20 * PART, 40 * PART, 2000)]);
        // Dense: each block between is met.
        let above = input(&[(10 * PART, 30 * PART, 2000)]);
        assert!((there.rows_not_met(&above, 60.0) - 2000.0).abs() < 1.0);
        // One row for each block, so that a part of e^-1 of the blocks has none.
        let above = input(&[(0, 40 * PART, 4000 / 50)]);
        assert!((there.rows_not_met(&above, 50.0) - 4000.0 / std::f64::consts::E).abs() < 5.0);
        assert_eq!(input(&[]).rows_not_met(&above, 50.0), 0.0);
    }

    #[test]
    fn parts_are_all_of_a_merge_and_one_of_tables_without_width() {
        assert_eq!(part_of((5, 5), (0, 5)), 0.0);
        assert_eq!(part_of((5, 5), (5, 9)), 1.0);
        assert_eq!(part_of((0, 99), (25, 50)), 0.25);
        let scenario = sample();
        let settings = Settings {
            memtable_bytes: 4 << 20,
            table_bytes: 16 << 20,
            codecs: LevelCodecs::of_config(&scenario.config.tree),
            filter_bits: 10,
            building: false,
        };
        let keys = Keys::new(1e6, Skew::Uniform);
        for narrow in [false, true] {
            let mut tree = Tree::new(&scenario, settings.clone());
            let all = Density { rows: 3e5, ..Density::default() };
            tree.fill(LAST, (0, u64::MAX), all, &keys);
            let (from, to) = if narrow { (7, 8) } else { (0, u64::MAX) };
            let rows = if narrow { 1.0 / share(from, to) } else { 1.0 };
            for _ in 0..16 {
                let density = Density { rows: 2e4 * rows, ..Density::default() };
                tree.flush(Content::even(from, to, density), &keys);
            }
            let plan = tree.pick(false, Space::default()).expect("level 0 is full");
            let merge = tree.start(plan, &keys);
            for free in 1..4 {
                let parts = tree.parts(&merge, free);
                assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-3, "{parts:?}");
                assert!(narrow || parts.len() >= free, "{free} threads: {parts:?}");
            }
        }
    }
}
