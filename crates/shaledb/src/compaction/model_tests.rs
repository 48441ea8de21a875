//! A tree without bytes: tables are ranges of a key space with a density, flushes and compactions
//! change them as real ones would. So the picker can be driven through a load of a terabyte in
//! seconds, and what it costs can be counted. Run with `--nocapture` to see the figures.

use super::plan::{Action, Busy, Load, Plan, Reason, Settings, Shape};
use super::policy::LAST;
use super::range::{bytes_of, overlapping};
use super::score::{Targets, debt, level_bytes};
use super::{check, picker::pick};
use crate::base::config::{Codec, Codecs, LEVELS};
use crate::table::meta::TableMeta;
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn key(at: u64) -> Vec<u8> {
    at.to_be_bytes().to_vec()
}

fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

struct Job {
    plan: Plan,
    left: u64,
}

struct Model {
    shape: Shape,
    settings: Settings,
    busy: Busy,
    jobs: Vec<Job>,
    /// The bytes of all distinct keys; `None`: every write is a new key.
    universe: Option<f64>,
    next_id: u64,
    next_seq: u64,
    flushed: u64,
    written: [u64; LEVELS],
    reasons: BTreeMap<Reason, (u64, u64)>,
    level0_max: usize,
    /// The most bytes that a merge from a level below 0 had.
    largest: u64,
    stalls: u64,
    threads: usize,
}

impl Model {
    fn new(memtable: u64, table: u64, universe: Option<f64>) -> Model {
        Model {
            shape: Shape { levels: vec![Vec::new(); LEVELS] },
            settings: Settings {
                memtable_bytes: memtable,
                table_bytes: table,
                codecs: Codecs::all(Codec::Lz4).into(),
                filter_bits: 10,
                building: false,
            },
            busy: Busy::new(),
            jobs: Vec::new(),
            universe,
            next_id: 1,
            next_seq: 1,
            flushed: 0,
            written: [0; LEVELS],
            reasons: BTreeMap::new(),
            level0_max: 0,
            largest: 0,
            stalls: 0,
            threads: 4,
        }
    }

    fn table(&mut self, low: u64, high: u64, bytes: u64) -> TableMeta {
        self.next_id += 1;
        TableMeta {
            id: self.next_id,
            file_bytes: bytes.max(1),
            smallest: key(low),
            largest: key(high),
            entries: bytes / 100 + 1,
            ..TableMeta::default()
        }
    }

    fn flush(&mut self, low: u64, high: u64, bytes: u64) {
        let mut table = self.table(low, high, bytes);
        (table.min_seq, table.max_seq) = (self.next_seq, self.next_seq + 99);
        self.next_seq += 100;
        self.shape.levels[0].insert(0, Arc::new(table));
        self.flushed += bytes;
        self.written[0] += bytes;
        self.level0_max = self.level0_max.max(self.shape.levels[0].len());
    }

    /// Starts all compactions that are due and there are threads for; answers whether any.
    fn start(&mut self, idle: bool) -> bool {
        let mut any = false;
        while self.jobs.len() < self.threads {
            let load = Load { idle, ..Load::default() };
            let Some(plan) = pick(&self.shape, &self.settings, &self.busy, &load) else { break };
            check::plan(&self.shape, &self.busy, &plan);
            any = true;
            if plan.action == Action::Move {
                self.finish(plan);
                continue;
            }
            if plan.reason == Reason::Size {
                self.largest = self.largest.max(plan.input_bytes);
            }
            self.busy.start(&plan);
            self.jobs.push(Job { left: plan.input_bytes, plan });
        }
        any
    }

    /// Gives the running jobs `budget` bytes of work, evenly.
    fn work(&mut self, mut budget: u64, idle: bool) {
        self.start(idle);
        while budget > 0 && !self.jobs.is_empty() {
            let least = self.jobs.iter().map(|job| job.left).min().unwrap();
            let slice = least.min(budget / self.jobs.len() as u64).max(1);
            budget = budget.saturating_sub(slice * self.jobs.len() as u64);
            for job in &mut self.jobs {
                job.left = job.left.saturating_sub(slice);
            }
            while let Some(index) = self.jobs.iter().position(|job| job.left == 0) {
                let job = self.jobs.remove(index);
                self.busy.finish(&job.plan);
                self.finish(job.plan);
            }
            self.start(idle);
        }
    }

    fn finish(&mut self, plan: Plan) {
        let mut inputs: Vec<Arc<TableMeta>> = Vec::new();
        for (level, ids) in &plan.inputs {
            let tables = &mut self.shape.levels[*level];
            inputs.extend(tables.iter().filter(|t| ids.contains(&t.id)).cloned());
            tables.retain(|table| !ids.contains(&table.id));
        }
        assert_eq!(inputs.len(), plan.input_ids().count(), "inputs are still there");
        let outputs = match plan.action {
            Action::Move => inputs,
            Action::DropFiles => Vec::new(),
            Action::Merge => self.merge(&plan, &inputs),
        };
        let moved = plan.action == Action::Move;
        let bytes = if moved { 0 } else { bytes_of(&outputs) };
        let row = self.reasons.entry(plan.reason).or_default();
        (row.0, row.1) = (row.0 + 1, row.1 + bytes);
        self.written[plan.output_level] += bytes;
        let tables = &mut self.shape.levels[plan.output_level];
        if plan.output_level == 0 {
            let newest = outputs.iter().map(|t| t.max_seq).max().unwrap();
            let at = tables.partition_point(|table| table.max_seq > newest);
            tables.splice(at..at, outputs);
            return;
        }
        let found = overlapping(tables, &plan.range);
        assert!(
            tables[found.clone()].iter().all(|t| outputs.iter().all(|o| !o.overlaps(t))),
            "outputs overlap nothing"
        );
        tables.extend(outputs);
        tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    }

    fn merge(&mut self, plan: &Plan, inputs: &[Arc<TableMeta>]) -> Vec<Arc<TableMeta>> {
        let mut cuts: Vec<u64> = Vec::new();
        for table in inputs {
            cuts.push(number(&table.smallest));
            cuts.push(number(&table.largest).saturating_add(1));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut by_start: Vec<&Arc<TableMeta>> = inputs.iter().collect();
        by_start.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        let mut outputs = Vec::new();
        let (mut low, mut sum) = (None, 0.0);
        let (mut next, mut open): (usize, Vec<&Arc<TableMeta>>) = (0, Vec::new());
        for pair in cuts.windows(2) {
            open.retain(|table| number(&table.largest) >= pair[0]);
            while next < by_start.len() && number(&by_start[next].smallest) == pair[0] {
                open.push(by_start[next]);
                next += 1;
            }
            let mut at = pair[0];
            let rate = self.rate(&open);
            // Fill tables to their size from this stretch of even density.
            while at < pair[1] {
                let room = (plan.table_bytes as f64 - sum) / rate.max(1e-30);
                let step =
                    if room >= (pair[1] - at) as f64 { pair[1] - at } else { room as u64 + 1 };
                if !open.is_empty() {
                    low.get_or_insert(at);
                    sum += rate * step as f64;
                }
                at += step;
                if sum >= plan.table_bytes as f64 {
                    outputs.push(self.table(low.take().unwrap(), at - 1, sum as u64));
                    sum = 0.0;
                }
            }
        }
        if let Some(low) = low {
            outputs.push(self.table(low, number(&plan.range.largest), sum as u64));
        }
        if plan.output_level == 0 {
            outputs[0].min_seq = inputs.iter().map(|t| t.min_seq).min().unwrap();
            outputs[0].max_seq = inputs.iter().map(|t| t.max_seq).max().unwrap();
        }
        let outputs: Vec<Arc<TableMeta>> = outputs.into_iter().map(Arc::new).collect();
        if self.universe.is_none() {
            let (before, after) = (bytes_of(inputs), bytes_of(&outputs));
            assert!(
                before.abs_diff(after) <= before / 1000 + 100,
                "{before} became {after}: {inputs:?} {outputs:?} {cuts:?}"
            );
        }
        outputs
    }

    /// Bytes per key of the key space after merging these tables.
    fn rate(&self, tables: &[&Arc<TableMeta>]) -> f64 {
        let own = |table: &Arc<TableMeta>| {
            let width = number(&table.largest) - number(&table.smallest) + 1;
            table.file_bytes as f64 / width as f64
        };
        match self.universe {
            None => tables.iter().map(|table| own(table)).sum(),
            Some(bytes) => {
                let full = bytes / 2f64.powi(64);
                let missing: f64 =
                    tables.iter().map(|table| (1.0 - own(table) / full).max(0.0)).product();
                full * (1.0 - missing)
            }
        }
    }

    fn total(&self) -> u64 {
        level_bytes(&self.shape).iter().sum()
    }

    fn report(&self, title: &str) -> f64 {
        let targets = Targets::of(&self.shape, &self.settings);
        let written: u64 = self.written.iter().sum();
        let amp = written as f64 / self.flushed as f64;
        println!(
            "{title}: {} GiB flushed, {} GiB stored, write amplification {amp:.2}, level 0 at most \
             {} tables, stalls {}, base {}",
            self.flushed / GIB,
            self.total() / GIB,
            self.level0_max,
            self.stalls,
            targets.base,
        );
        for level in 0..LEVELS {
            let tables = &self.shape.levels[level];
            if !tables.is_empty() || self.written[level] > 0 {
                println!(
                    "  L{level}: {:6} tables {:9} MiB of {:9} MiB, written {:5.2} of the load",
                    tables.len(),
                    bytes_of(tables) / MIB,
                    targets.bytes[level] / MIB,
                    self.written[level] as f64 / self.flushed as f64,
                );
            }
        }
        for (reason, (count, bytes)) in &self.reasons {
            println!("  {}: {count} jobs, {} GiB", reason.name(), bytes / GIB);
        }
        amp
    }

    /// Runs everything that is due until nothing is; fails if that does not end.
    fn run_all(&mut self, idle: bool) -> u64 {
        let before: u64 = self.written.iter().sum();
        for _ in 0..1_000_000 {
            if !self.start(idle) && self.jobs.is_empty() {
                check::shape(&self.shape);
                return self.written.iter().sum::<u64>() - before;
            }
            self.work(self.total() / 10 + 1, idle);
        }
        panic!("compaction does not come to an end");
    }

    /// Feeds flushes, with `budget` bytes of compaction for each byte flushed.
    fn load(&mut self, bytes: u64, budget: u64) {
        self.load_of(bytes, self.settings.memtable_bytes, budget);
    }

    /// As [`Model::load`], where a memtable becomes a table of `table` bytes.
    fn load_of(&mut self, bytes: u64, table: u64, budget: u64) {
        let end = self.flushed + bytes;
        while self.flushed < end {
            if self.shape.levels[0].len() < 36 {
                self.flush(0, u64::MAX - 1, table);
            } else {
                self.stalls += 1;
            }
            self.work(budget * table, false);
        }
    }
}

#[test]
fn random_inserts() {
    let gib: u64 = std::env::var("SHALE_MODEL_GIB").map_or(128, |text| text.parse().unwrap());
    let mut model = Model::new(64 * MIB, 64 * MIB, None);
    model.load(gib * GIB, 30);
    let amp = model.report("random inserts");
    assert!(amp < 22.0, "{amp}");
    assert!(model.level0_max <= 24 && model.stalls == 0, "{}", model.level0_max);
    let owed = debt(&model.shape, &model.settings, 0).bytes;
    let paid = model.run_all(false);
    println!("  debt {} MiB, paid {} MiB", owed / MIB, paid / MIB);
    let stored = level_bytes(&model.shape);
    let above: u64 = stored[..LAST].iter().sum();
    assert!(above as f64 <= 0.15 * stored[LAST] as f64, "{stored:?}");
    model.run_all(true);
    model.report("  then idle");
}

/// Overwriting trees of some size, where a memtable of 64 MiB becomes a table of 64 MiB without
/// compression and of 35 MiB with it: what is written for each byte flushed, and how many tables
/// level 0 has at most.
#[test]
fn overwrites() {
    for (tree, table, amp_max, tables_max) in [
        (300, 35, 2.0, 8),
        (1_400, 35, 6.0, 9),
        (2_700, 64, 8.3, 8),
        (6_000, 35, 8.7, 8),
        (6_000, 64, 7.8, 11),
        (12_000, 64, 8.4, 8),
        (40_000, 35, 12.4, 14),
    ] {
        let mut model = Model::new(64 * MIB, 64 * MIB, Some((tree * MIB) as f64));
        model.load_of(3 * tree * MIB, table * MIB, 30);
        (model.flushed, model.written) = (0, [0; LEVELS]);
        model.reasons.clear();
        model.level0_max = 0;
        model.load_of(2 * tree * MIB, table * MIB, 30);
        let amp = model.report(&format!("overwriting {tree} MiB by tables of {table} MiB"));
        assert!(amp < amp_max && model.stalls == 0, "{amp}");
        assert!(model.level0_max <= tables_max, "{}", model.level0_max);
    }
}

/// A tree that grows from nothing, with compaction that keeps up and that does not: no merge of a
/// level below 0 takes a good part of the tree at once, as one of a table does that lies over all
/// of the level below it.
#[test]
fn merges_stay_bounded_while_a_tree_grows() {
    for budget in [5, 8, 30] {
        let mut model = Model::new(64 * MIB, 64 * MIB, None);
        model.load_of(12 * GIB, 54 * MIB, budget);
        model.report(&format!("growing, {budget} bytes of work for each"));
        println!("  the largest merge below level 0 had {} MiB", model.largest / MIB);
        assert!(model.largest <= 25 * 64 * MIB, "{} MiB", model.largest / MIB);
    }
}
