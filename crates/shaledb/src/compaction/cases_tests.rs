//! The picker and the drop filter as text: shapes in, plans out. See `cases/`; run with
//! `SHALE_REWRITE=1` to write what is answered now into the files, and read the difference.
//!
//! A picker case is a line `# title`, then lines of input, `----`, and the answer. Sizes are in
//! MiB; tables are numbered in the order in which they appear. `L0: a-m 60, n-z 60 seq=5-9 del=0.7`
//! gives a level's tables (level 0 newest first): first and last key, size, and what else matters.

use super::check;
use super::drop::{Bottom, Decision, DropFilter, surviving_range_deletes};
use super::manual::{Step, pick_manual};
use super::picker::pick;
use super::plan::{Busy, Load, Plan, Settings, Shape};
use super::policy::chosen::LevelCodecs;
use crate::base::config::{Codec, Codecs, LEVELS};
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::table::meta::TableMeta;
use std::fmt::Write;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// Runs the cases of a file through `answer`.
fn run(name: &str, answer: fn(&str) -> String) {
    let path = format!("{}/src/compaction/cases/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut now = String::new();
    for case in text.split("\n# ") {
        let case = case.trim_start_matches("# ");
        let (title, rest) = case.split_once('\n').unwrap();
        let input = rest.split("----").next().unwrap().trim();
        writeln!(now, "# {title}\n{input}\n----\n{}\n", answer(input).trim_end()).unwrap();
    }
    let now = format!("{}\n", now.trim_end());
    if std::env::var_os("SHALE_REWRITE").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    assert!(now == text, "{path}: the answers are now:\n{now}");
}

/// The two numbers of `1-9`, or one number twice.
fn span(text: &str) -> (SeqNo, SeqNo) {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    (low.parse().unwrap(), high.parse().unwrap())
}

fn table(text: &str, id: u64) -> TableMeta {
    let mut words = text.split_whitespace();
    let (smallest, largest) = words.next().unwrap().split_once('-').unwrap();
    let bytes = words.next().unwrap().parse::<u64>().unwrap() * MIB;
    let mut meta = TableMeta {
        id,
        file_bytes: bytes,
        entries: 1000,
        smallest: smallest.into(),
        largest: largest.into(),
        min_seq: 1,
        max_seq: 1,
        ..TableMeta::default()
    };
    for word in words {
        match word.split_once('=').unwrap() {
            ("seq", value) => (meta.min_seq, meta.max_seq) = span(value),
            ("del", value) => meta.deletes = (value.parse::<f64>().unwrap() * 1000.0) as u64,
            ("ranges", value) => meta.range_deletes = value.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }
    meta
}

#[derive(Default)]
struct Case {
    shape: Shape,
    busy: Vec<u64>,
    idle: bool,
    manual: bool,
    snapshots: Vec<SeqNo>,
    deletes: Vec<RangeDelete>,
}

fn range_delete(text: &str) -> RangeDelete {
    let (range, seq) = text.trim().split_once('@').unwrap();
    let (start, end) = range.split_once('-').unwrap();
    RangeDelete { start: start.into(), end: end.into(), seq: seq.parse().unwrap() }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn parse(input: &str) -> Case {
    let mut case = Case { shape: Shape { levels: vec![Vec::new(); LEVELS] }, ..Case::default() };
    let mut id = 0;
    for line in input.lines() {
        match line.split_once(':').map_or((line, ""), |(name, rest)| (name, rest.trim())) {
            ("idle", _) => case.idle = true,
            ("manual", _) => case.manual = true,
            ("busy", rest) => case.busy = numbers(rest),
            ("snapshots", rest) => case.snapshots = numbers(rest),
            ("deletes", rest) => case.deletes = rest.split(',').map(range_delete).collect(),
            (level, rest) => {
                let level: usize = level.strip_prefix('L').unwrap().parse().unwrap();
                for text in rest.split(',') {
                    id += 1;
                    case.shape.levels[level].push(Arc::new(table(text, id)));
                }
            }
        }
    }
    check::shape(&case.shape);
    case
}

fn show(plan: &Plan) -> String {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let inputs: Vec<String> =
        plan.inputs.iter().map(|(level, ids)| format!("L{level}{ids:?}")).collect();
    format!(
        "{}: {:?} {} -> L{}{} {}..{} {} MiB {}",
        plan.reason.name(),
        plan.action,
        inputs.join(" + "),
        plan.output_level,
        if plan.is_last { " (last)" } else { "" },
        text(&plan.range.smallest),
        text(&plan.range.largest),
        plan.input_bytes / MIB,
        plan.choice.codec,
    )
}

/// The plans that would be started one after the other, until no more can run beside them.
fn answer_pick(input: &str) -> String {
    let case = parse(input);
    let settings = Settings {
        memtable_bytes: 64 * MIB,
        table_bytes: 64 * MIB,
        codecs: Codecs { upper: Codec::None, middle: Codec::Lz4, bottommost: Codec::Zstd(3) }
            .into(),
        filter_bits: 10,
        building: false,
    };
    let deletes = RangeDeletes::new(case.deletes);
    let range_deletes = Some(&deletes);
    let load =
        Load { idle: case.idle, snapshots: &case.snapshots, range_deletes, ..Load::default() };
    let mut busy = Busy::new();
    for table in case.shape.levels.iter().flatten() {
        if case.busy.contains(&table.id) {
            busy.reserve_table(table.id);
        }
    }
    let mut answer = String::new();
    while answer.lines().count() < 4 {
        let plan = if case.manual {
            match pick_manual(&case.shape, &settings, &busy, &load, (None, None)) {
                Step::Run(plan) => Some(*plan),
                other => {
                    writeln!(answer, "{other:?}").unwrap();
                    None
                }
            }
        } else {
            pick(&case.shape, &settings, &busy, &load)
        };
        let Some(plan) = plan else { break };
        check::plan(&case.shape, &busy, &plan);
        writeln!(answer, "{}", show(&plan)).unwrap();
        busy.start(&plan);
    }
    if answer.is_empty() { "nothing".to_owned() } else { answer }
}

/// A drop case: `snapshots: 5 9`, `below: c-f`, `deletes: a-c@7`, then entries `key@seq kind`.
fn answer_drop(input: &str) -> String {
    let mut snapshots = Vec::new();
    let mut below: Vec<Arc<TableMeta>> = Vec::new();
    let mut deletes = Vec::new();
    let mut entries = Vec::new();
    for line in input.lines() {
        if let Some(rest) = line.strip_prefix("snapshots:") {
            snapshots = numbers(rest);
        } else if let Some(rest) = line.strip_prefix("below:") {
            below =
                rest.split_whitespace().map(|t| Arc::new(table(&format!("{t} 1"), 1))).collect();
        } else if let Some(rest) = line.strip_prefix("deletes:") {
            deletes = rest.split(',').map(range_delete).collect();
        } else {
            let (at, kind) = line.split_once(' ').unwrap();
            let (key, seq) = at.split_once('@').unwrap();
            let kind = match kind {
                "put" => Kind::Put,
                "blob" => Kind::Blob,
                "delete" => Kind::Delete,
                other => panic!("{other}"),
            };
            entries.push((key, seq.parse::<SeqNo>().unwrap(), kind));
        }
    }
    let deletes = RangeDeletes::new(deletes);
    let bottom = Bottom::Levels(vec![below]);
    let mut filter = DropFilter::new(&snapshots, bottom.clone(), deletes.clone());
    let mut answer = String::new();
    for (key, seq, kind) in entries {
        match filter.decide(key.as_bytes(), seq, kind) {
            Decision::Keep => write!(answer, "{key}@{seq} ").unwrap(),
            Decision::KeepAsSeqZero => write!(answer, "{key}@0 ").unwrap(),
            Decision::Drop => {}
            Decision::Ask => unreachable!("nobody is to be asked"),
        }
    }
    for delete in surviving_range_deletes(&deletes, &snapshots, &bottom).deletes() {
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        write!(answer, "{}-{}@{} ", text(&delete.start), text(&delete.end), delete.seq).unwrap();
    }
    if answer.is_empty() { "nothing".to_owned() } else { answer }
}

#[test]
fn picker_cases() {
    run("picker", answer_pick);
}

#[test]
fn drop_cases() {
    run("drop", answer_drop);
}

#[test]
fn codecs_follow_the_distance_from_the_top() {
    let codecs = LevelCodecs::from(Codecs::default());
    let shown = |base| (0..LEVELS).map(move |level| codecs.of(level, base).codec.to_string());
    let join = |base| shown(base).collect::<Vec<String>>().join(" ");
    assert_eq!(join(2), "none none none none lz4 lz4 zstd:3");
    assert_eq!(join(5), "none none none none none none zstd:3");
    assert_eq!(join(6), "none none none none none none zstd:3");
}
