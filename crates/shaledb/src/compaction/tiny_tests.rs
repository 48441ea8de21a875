//! A tree of a few hundred entries in vectors, whose flushes and compactions do what the
//! picker, drop filter and splitter say, several at once, installed in stages, ending in any
//! order, some of them early. After every step each key is read at each snapshot and compared with
//! a plain history of the operations. Deletes that have met what they delete ask the other tables,
//! whose answer is the truth, or what a filter may wrongly say.

use super::drop::{Bottom, Decision, DropFilter, dropped_blobs, surviving_range_deletes};
use super::manual::{Step, pick_manual};
use super::older::Older;
use super::plan::{Action, Busy, Load, Plan, Settings, Shape};
use super::policy::LAST;
use super::split::{Cuts, OutputCut, Part, parts};
use super::stages::{Stage, Stages};
use super::{check, picker::pick};
use crate::base::config::{Codec, Codecs, LEVELS};
use crate::base::key::{Kind, SEQ_MAX, SeqNo, compare};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::state::TreeState;
use crate::table::meta::{FileId, TableMeta};
use arc_swap::ArcSwap;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const KEYS: u16 = 150;

#[derive(Clone, Debug)]
struct Entry {
    key: Vec<u8>,
    seq: SeqNo,
    kind: Kind,
    /// The sequence number that the entry was written with.
    value: SeqNo,
}

#[derive(Clone, Debug, Default)]
struct Content {
    entries: Vec<Entry>,
    deletes: RangeDeletes,
}

impl Content {
    fn sort(&mut self) {
        self.entries.sort_by(|a, b| compare(&a.key, a.seq, &b.key, b.seq));
    }

    fn meta(&self, id: FileId) -> TableMeta {
        let mut meta = TableMeta {
            id,
            file_bytes: 100 * (self.entries.len() + self.deletes.fragments().len()) as u64,
            entries: self.entries.len() as u64,
            deletes: self.entries.iter().filter(|e| e.kind == Kind::Delete).count() as u64,
            range_deletes: self.deletes.fragments().len() as u64,
            ..TableMeta::default()
        };
        let seqs =
            || self.entries.iter().map(|e| e.seq).chain(self.deletes.deletes().map(|d| d.seq));
        (meta.min_seq, meta.max_seq) = (seqs().min().unwrap(), seqs().max().unwrap());
        let starts = self.deletes.fragments().first().map(|f| &f.start);
        meta.smallest =
            self.entries.first().map(|e| &e.key).into_iter().chain(starts).min().unwrap().clone();
        if let Some(last) = self.entries.last() {
            meta.largest = last.key.clone();
        }
        if let Some(last) = self.deletes.fragments().last()
            && last.end > meta.largest
        {
            meta.largest = last.end.clone();
            meta.largest_exclusive = true;
        }
        let blobs = self.entries.iter().filter(|e| e.kind == Kind::Blob).map(|e| e.value);
        meta.blobs = blobs.collect();
        meta.blobs.sort_unstable();
        meta
    }
}

struct Job {
    plan: Plan,
    snapshots: Vec<SeqNo>,
    parts: Vec<Part>,
    stages: Stages,
    /// The parts that have not been done.
    left: Vec<usize>,
    /// The outputs of parts done and not installed.
    made: Vec<(usize, Content)>,
    /// The outputs of stages installed.
    reserved: Vec<FileId>,
    inputs: Vec<Arc<TableMeta>>,
}

struct Tiny {
    rng: StdRng,
    seq: SeqNo,
    history: Vec<(SeqNo, Kind, Vec<u8>, Vec<u8>)>,
    active: Content,
    active_deletes: Vec<RangeDelete>,
    shape: Shape,
    content: BTreeMap<FileId, Content>,
    settings: Settings,
    busy: Busy,
    jobs: Vec<Job>,
    snapshots: Vec<SeqNo>,
    next_id: FileId,
    /// Blobs that were let go.
    lost: BTreeSet<FileId>,
    /// Stages installed before the end of their job; jobs that ended early after one.
    early: u64,
    broken: u64,
    /// Deletes that went with what they delete, in flushes and in merges.
    met: [u64; 2],
}

fn key(at: u16) -> Vec<u8> {
    format!("{at:03}").into_bytes()
}

impl Tiny {
    fn new(seed: u64) -> Tiny {
        Tiny {
            rng: StdRng::seed_from_u64(seed),
            seq: 0,
            history: Vec::new(),
            active: Content::default(),
            active_deletes: Vec::new(),
            shape: Shape { levels: vec![Vec::new(); LEVELS] },
            content: BTreeMap::new(),
            settings: Settings {
                memtable_bytes: 100,
                table_bytes: 800,
                codecs: Codecs { upper: Codec::None, ..Codecs::all(Codec::Lz4) }.into(),
                filter_bits: 10,
                building: false,
            },
            busy: Busy::new(),
            jobs: Vec::new(),
            snapshots: Vec::new(),
            next_id: 1,
            lost: BTreeSet::new(),
            early: 0,
            broken: 0,
            met: [0; 2],
        }
    }

    fn write(&mut self) {
        self.seq += 1;
        let seq = self.seq;
        let at = self.rng.random_range(0..KEYS);
        let (kind, key, mut end) = match self.rng.random_range(0..100) {
            0..65 => (Kind::Put, key(at), Vec::new()),
            65..75 => (Kind::Blob, key(at), Vec::new()),
            75..97 => (Kind::Delete, key(at), Vec::new()),
            _ => (Kind::RangeDelete, key(at), Vec::new()),
        };
        // Some keys live for a moment.
        let last = self.history.last().filter(|last| matches!(last.1, Kind::Put | Kind::Blob));
        let key = match last {
            Some(last) if kind == Kind::Delete && self.rng.random_bool(0.5) => last.2.clone(),
            _ => key,
        };
        if kind == Kind::RangeDelete {
            end = self::key(at + self.rng.random_range(1..40));
            self.active_deletes.push(RangeDelete { start: key.clone(), end: end.clone(), seq });
        } else {
            self.active.entries.push(Entry { key: key.clone(), seq, kind, value: seq });
        }
        self.history.push((seq, kind, key, end));
    }

    fn flush(&mut self) {
        let mut content = std::mem::take(&mut self.active);
        content.deletes = RangeDeletes::new(self.active_deletes.drain(..));
        content.sort();
        if content.entries.is_empty() && content.deletes.is_empty() {
            return;
        }
        let mut snapshots = self.snapshots.clone();
        snapshots.push(self.seq);
        let state = ArcSwap::from_pointee(TreeState::empty());
        let older = Some(Older::all(&state, 0, 0));
        let content = self.filter(&content, &snapshots, Bottom::Unknown, older, 0);
        if content.entries.is_empty() && content.deletes.is_empty() {
            return;
        }
        let meta = self.add(content);
        self.shape.levels[0].insert(0, meta);
    }

    fn add(&mut self, content: Content) -> Arc<TableMeta> {
        let meta = Arc::new(content.meta(self.next_id));
        self.content.insert(self.next_id, content);
        self.next_id += 1;
        meta
    }

    fn deletes(&self) -> RangeDeletes {
        let tables = self.shape.levels.iter().flatten();
        RangeDeletes::union(tables.map(|table| &self.content[&table.id].deletes))
    }

    fn start(&mut self, idle: bool) -> bool {
        let deletes = self.deletes();
        let range_deletes = Some(&deletes);
        let load = Load { idle, snapshots: &self.snapshots, range_deletes, ..Load::default() };
        let Some(plan) = pick(&self.shape, &self.settings, &self.busy, &load) else { return false };
        self.run(plan);
        true
    }

    fn run(&mut self, plan: Plan) {
        check::plan(&self.shape, &self.busy, &plan);
        self.busy.start(&plan);
        let mut snapshots = self.snapshots.clone();
        snapshots.push(self.seq);
        let mut inputs = Vec::new();
        for (level, ids) in &plan.inputs {
            let tables = self.shape.levels[*level].iter();
            inputs.extend(tables.filter(|t| ids.contains(&t.id)).map(|t| (*level, t.clone())));
        }
        let tables: Vec<Arc<TableMeta>> = inputs.iter().map(|(_, table)| table.clone()).collect();
        let parts = match plan.action {
            Action::Merge => self.cut(&plan, &inputs),
            _ => vec![Part::default()],
        };
        let stages = Stages::new(&plan, &parts, inputs);
        let left = (0..parts.len()).collect();
        let (made, reserved) = (Vec::new(), Vec::new());
        let job = Job { plan, snapshots, parts, stages, left, made, reserved, inputs: tables };
        self.jobs.push(job);
    }

    fn cut(&mut self, plan: &Plan, inputs: &[(usize, Arc<TableMeta>)]) -> Vec<Part> {
        let mut cuts = Vec::new();
        for (_, table) in inputs {
            let entries = &self.content[&table.id].entries;
            let keys = entries.iter().skip(1).step_by(3).map(|e| e.key.clone()).collect();
            cuts.push(Cuts { table, keys });
        }
        let of_output = inputs.iter().filter(|(level, _)| *level == plan.output_level);
        let aligned: Vec<&[u8]> = of_output.map(|(_, table)| table.smallest.as_slice()).collect();
        if plan.output_level == 0 {
            return vec![Part::default()];
        }
        let parts = parts(&cuts, &aligned, [300, 1000, 3000][self.rng.random_range(0..3)]);
        check_parts(&parts);
        parts
    }

    /// Does one part of a job; one that completes a stage is installed. `breaks` ends the job
    /// there, as a failure would.
    fn advance(&mut self, breaks: bool) {
        if self.jobs.is_empty() {
            return;
        }
        let index = self.rng.random_range(0..self.jobs.len());
        let mut job = self.jobs.remove(index);
        let part = job.left.swap_remove(self.rng.random_range(0..job.left.len()));
        match job.plan.action {
            Action::Merge => job.made.extend(self.merge(&job, part).into_iter().map(|c| (part, c))),
            Action::Move => {
                let moved = job.inputs.iter().map(|table| self.content[&table.id].clone());
                job.made.extend(moved.map(|content| (part, content)));
            }
            Action::DropFiles => {}
        }
        if let Some(stage) = job.stages.done(part) {
            self.install(&mut job, &stage);
            self.early += u64::from(!stage.is_last);
        }
        let ends = breaks && job.plan.action == Action::Merge;
        if !job.left.is_empty() && !ends {
            self.jobs.push(job);
            return;
        }
        self.broken += u64::from(!job.left.is_empty() && !job.reserved.is_empty());
        assert!(!job.left.is_empty() || job.stages.rest().is_empty());
        self.busy.finish(&job.plan);
        job.reserved.iter().for_each(|&id| self.busy.release_table(id));
    }

    fn install(&mut self, job: &mut Job, stage: &Stage) {
        let mut removed = Vec::new();
        for (level, id) in &stage.removed {
            let tables = &mut self.shape.levels[*level];
            let at = tables.iter().position(|table| table.id == *id).expect("it is there");
            removed.push(tables.remove(at));
        }
        let (added, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut job.made).into_iter().partition(|(p, _)| stage.parts.contains(p));
        job.made = rest;
        let added: Vec<Arc<TableMeta>> = added.into_iter().map(|(_, c)| self.add(c)).collect();
        for table in &added {
            assert!(job.plan.range.spans(table), "outputs stay in the range");
            job.reserved.push(table.id);
            self.busy.reserve_table(table.id);
        }
        let tables = &mut self.shape.levels[job.plan.output_level];
        tables.extend(added);
        if job.plan.output_level == 0 {
            tables.sort_by_key(|table| std::cmp::Reverse(table.max_seq));
        } else {
            tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        }
        let staying = self.shape.levels.iter().flatten().map(|table| &**table);
        self.lost.extend(dropped_blobs(removed.iter().map(|table| &**table), staying));
        job.stages.installed(stage);
        check::shape(&self.shape);
    }

    fn merge(&mut self, job: &Job, part: usize) -> Vec<Content> {
        let part = &job.parts[part];
        let (start, end) = (part.start.clone().unwrap_or_default(), part.end.as_deref());
        let inputs = || job.inputs.iter().filter(|table| part.meets(table));
        let deletes = RangeDeletes::union(inputs().map(|t| &self.content[&t.id].deletes));
        let mut piece = Content { entries: Vec::new(), deletes: deletes.clip(&start, end) };
        for table in inputs() {
            let entries = self.content[&table.id].entries.iter();
            piece.entries.extend(entries.filter(|e| inside(&e.key, &start, end)).cloned());
        }
        piece.sort();
        let state = ArcSwap::from_pointee(TreeState::empty());
        let older = Older::below(&job.plan, &state, 0);
        let (bottom, below) = (Bottom::of(&job.plan), job.plan.output_level + 1);
        let kept = self.filter(&piece, &job.snapshots, bottom, older, below);
        cut(&job.plan, &kept, start, part.end.clone())
    }

    fn filter(
        &mut self,
        content: &Content,
        snapshots: &[SeqNo],
        bottom: Bottom,
        older: Option<Older<'_>>,
        below: usize,
    ) -> Content {
        let deletes = surviving_range_deletes(&content.deletes, snapshots, &bottom);
        let mut filter = DropFilter::new(snapshots, bottom, content.deletes.clone()).asking(older);
        let mut kept = Content { entries: Vec::new(), deletes };
        let mut entries = content.entries.iter().peekable();
        while let Some(entry) = entries.next() {
            match filter.decide(&entry.key, entry.seq, entry.kind) {
                Decision::Keep => kept.entries.push(entry.clone()),
                Decision::KeepAsSeqZero => kept.entries.push(Entry { seq: 0, ..entry.clone() }),
                Decision::Drop => {}
                Decision::Ask => {
                    let met = entries.peek().is_some_and(|next| next.key == entry.key);
                    let wrong = self.rng.random_bool(0.1);
                    if met && !wrong && !self.has(&entry.key, below) {
                        self.met[usize::from(below > 0)] += 1;
                    } else {
                        kept.entries.push(entry.clone());
                    }
                }
            }
        }
        kept
    }

    /// Whether a table has the key, from a level on.
    fn has(&self, key: &[u8], level: usize) -> bool {
        let tables = self.shape.levels[level..].iter().flatten();
        tables.flat_map(|table| &self.content[&table.id].entries).any(|entry| entry.key == key)
    }

    /// The value of `key` at `seq`: levels from the top, the first one with an entry decides.
    fn get(&self, key: &[u8], seq: SeqNo, deletes: &RangeDeletes) -> Option<SeqNo> {
        let newest = |entries: &[Entry]| -> Option<Entry> {
            let found = entries.iter().filter(|e| e.key == key && e.seq <= seq);
            found.max_by_key(|e| e.seq).cloned()
        };
        let mut hits = newest(&self.active.entries).into_iter().collect::<Vec<Entry>>();
        for table in self.shape.levels.iter().flatten() {
            if table.covers(key) {
                hits.extend(newest(&self.content[&table.id].entries));
            }
        }
        let entry = hits.first()?;
        // By when they were written: a copy of an entry above may have sequence number 0.
        let covering = deletes.newest_covering(key, seq);
        let hidden = entry.value.max(covering);
        assert!(hits.iter().all(|hit| hit.value <= hidden), "the newest is on top: {hits:?}");
        if entry.kind == Kind::Delete || covering > entry.seq {
            return None;
        }
        assert!(entry.kind != Kind::Blob || !self.lost.contains(&entry.value), "{entry:?}");
        Some(entry.value)
    }

    fn expected(&self, key: &[u8], seq: SeqNo) -> Option<SeqNo> {
        let mut value = None;
        for (at, kind, start, end) in self.history.iter().take_while(|op| op.0 <= seq) {
            match kind {
                Kind::RangeDelete if start.as_slice() <= key && key < end.as_slice() => {
                    value = None
                }
                Kind::Put | Kind::Blob if start == key => value = Some(*at),
                Kind::Delete if start == key => value = None,
                _ => {}
            }
        }
        value
    }

    fn check(&self) {
        let deletes =
            RangeDeletes::new(self.deletes().deletes().chain(self.active_deletes.iter().cloned()));
        for &seq in self.snapshots.iter().chain([&SEQ_MAX]) {
            for at in 0..KEYS {
                let key = key(at);
                let (found, right) = (self.get(&key, seq, &deletes), self.expected(&key, seq));
                assert_eq!(found, right, "key {at} at {seq}");
            }
        }
    }
}

fn inside(key: &[u8], start: &[u8], end: Option<&[u8]>) -> bool {
    start <= key && end.is_none_or(|end| key < end)
}

fn check_parts(parts: &[Part]) {
    assert!(parts[0].start.is_none() && parts.last().unwrap().end.is_none());
    for pair in parts.windows(2) {
        assert!(pair[0].end.is_some() && pair[0].end == pair[1].start);
        assert!(pair[0].start < pair[0].end);
    }
}

/// Cuts what is kept into tables; range deletes are cut where tables are.
fn cut(plan: &Plan, kept: &Content, start: Vec<u8>, end: Option<Vec<u8>>) -> Vec<Content> {
    let mut cutter = OutputCut::new(plan, None);
    let mut bounds = vec![start];
    let mut bytes = 0;
    for (index, entry) in kept.entries.iter().enumerate() {
        let is_new_key = index == 0 || kept.entries[index - 1].key != entry.key;
        if is_new_key && cutter.before(&entry.key, bytes) {
            bounds.push(entry.key.clone());
            bytes = 0;
        }
        bytes += 100;
    }
    let mut tables = Vec::new();
    for (index, start) in bounds.iter().enumerate() {
        let end = bounds.get(index + 1).or(end.as_ref()).map(Vec::as_slice);
        let entries = kept.entries.iter().filter(|e| inside(&e.key, start, end)).cloned().collect();
        let table = Content { entries, deletes: kept.deletes.clip(start, end) };
        if !table.entries.is_empty() || !table.deletes.is_empty() {
            tables.push(table);
        }
    }
    tables
}

fn scenario(seed: u64) -> Tiny {
    let mut tiny = Tiny::new(seed);
    for _ in 0..1500 {
        match tiny.rng.random_range(0..100) {
            0..70 => tiny.write(),
            70..78 => tiny.flush(),
            78..88 => {
                if tiny.jobs.len() < 3 {
                    let idle = tiny.rng.random_bool(0.1);
                    tiny.start(idle);
                }
            }
            88..97 => {
                let breaks = tiny.rng.random_bool(0.1);
                tiny.advance(breaks);
            }
            97 => tiny.snapshots.push(tiny.seq),
            _ => {
                if !tiny.snapshots.is_empty() {
                    let index = tiny.rng.random_range(0..tiny.snapshots.len());
                    tiny.snapshots.remove(index);
                }
            }
        }
        tiny.snapshots.dedup();
        if tiny.seq.is_multiple_of(16) {
            tiny.check();
        }
    }
    ends(&mut tiny);
    tiny
}

/// Lets all work end, then compacts everything: only what can be seen is left.
fn ends(tiny: &mut Tiny) {
    tiny.flush();
    for step in 0.. {
        assert!(step < 10_000, "compaction does not come to an end");
        if !tiny.start(true) && tiny.jobs.is_empty() {
            break;
        }
        tiny.advance(false);
    }
    tiny.check();
    tiny.snapshots.clear();
    loop {
        let deletes = tiny.deletes();
        let load = Load { range_deletes: Some(&deletes), ..Load::default() };
        match pick_manual(&tiny.shape, &tiny.settings, &tiny.busy, &load, (None, None)) {
            Step::Run(plan) => tiny.run(*plan),
            Step::Wait => assert!(!tiny.jobs.is_empty(), "nothing runs"),
            Step::Done => break,
        }
        tiny.advance(false);
    }
    tiny.check();
    let tables: Vec<&Arc<TableMeta>> = tiny.shape.levels.iter().flatten().collect();
    assert_eq!(tables.len(), tiny.shape.levels[LAST].len());
    assert!(tables.iter().all(|table| table.deletes == 0 && table.range_deletes == 0));
    let live = (0..KEYS).filter(|&at| tiny.expected(&key(at), SEQ_MAX).is_some()).count();
    let stored: u64 = tables.iter().map(|table| table.entries).sum();
    assert_eq!(stored, live as u64);
}

#[test]
fn reads_are_right_whatever_runs() {
    let first: u64 = std::env::var("SHALE_SEED").map_or(0, |text| text.parse().unwrap());
    let count: u64 = std::env::var("SHALE_SEEDS").map_or(12, |text| text.parse().unwrap());
    let (mut early, mut broken, mut met) = (0, 0, [0; 2]);
    for seed in first..first + count {
        println!("SHALE_SEED={seed}");
        let tiny = scenario(seed);
        early += tiny.early;
        broken += tiny.broken;
        met = [met[0] + tiny.met[0], met[1] + tiny.met[1]];
    }
    println!("{early} stages before the end of a job, {broken} jobs that ended after one");
    println!("{met:?} deletes went with what they delete");
    assert!(count < 12 || early > 100 && broken > 10, "{early} {broken}");
    assert!(count < 12 || met.iter().all(|&met| met > 20), "{met:?}");
}
