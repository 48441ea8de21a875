//! Codec choices side by side: each choice for the upper levels, the middle and the last level is a
//! column of one matrix, each measure of each step of each workload a line.
//!
//! A tree without levels between the small ones and the last does not show what the middle's
//! codec does; how many levels there are depends on the amount of data (`--scale`).
//!
//! With `--matrix` the choices are tried under many conditions instead: [`conditions`].

mod choices;
mod defaults;
pub mod conditions;

use self::choices::are_different;
use self::conditions::MatrixOptions;
use self::defaults::defaults;
use crate::campaign::{CampaignOptions, Group, Subject};
use crate::options::{CodecNames, ValueBytes, positive};
use crate::report::columns::is_whole;
use crate::report::plain_table;
use crate::run::row::{Row, VARIANT};
use crate::setup::Setup;
use crate::units::{bytes, count, three_digits};
use crate::workloads::insert::{InsertOptions, Step};
use crate::workloads::kv::{Benchmark, KvOptions};
use crate::workloads::linkbench::LinkbenchOptions;
use crate::workloads::workload::Workload;
use clap::{Args, ValueEnum};
use std::collections::BTreeMap;

/// What the codecs are tried on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum Kind {
    /// The social graph: a load and one loop of queries
    Linkbench,
    /// The insert benchmark: l.i0, l.x, l.i1, qr100
    Insert,
    /// The insert benchmark with large objects of two sizes and four shares of random bytes
    Large,
    /// The db_bench pattern: fillseq, readwhilewriting, overwrite, wait_idle
    Kv,
}

/// The choices and what they are tried on.
#[derive(Args, Clone, Debug)]
pub struct CompressOptions {
    /// The workloads that the codecs are tried on
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "linkbench,insert,kv",
        conflicts_with = "matrix"
    )]
    pub workloads: Vec<Kind>,

    /// Codecs for the upper levels; each is tried with each of the middle and each of the last
    #[arg(long, value_delimiter = ',', default_value = "none,lz4", conflicts_with = "matrix")]
    pub upper: Vec<String>,

    /// Codecs for the levels between
    #[arg(long, value_delimiter = ',', default_value = "lz4", conflicts_with = "matrix")]
    pub middle: Vec<String>,

    /// Codecs for the last level
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "zstd:3,zlib:1,zlib:6",
        conflicts_with = "matrix"
    )]
    pub bottommost: Vec<String>,

    /// How much data; 1 is 100 to 400 MB before compression, by workload, and 200 MB with --matrix
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub scale: f64,

    /// Seconds of each step that is bound by time [default: 5, with --matrix 6]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub seconds: Option<u64>,

    /// The choices under many conditions.
    #[command(flatten)]
    pub conditions: MatrixOptions,
}

/// Seconds of a step without `--matrix`.
const SECONDS: u64 = 5;

impl CompressOptions {
    /// All choices, those of one upper codec together.
    ///
    /// # Errors
    ///
    /// A codec has no such name.
    pub fn choices(&self) -> Result<Vec<CodecNames>, String> {
        let mut choices = Vec::new();
        for upper in &self.upper {
            for middle in &self.middle {
                for bottommost in &self.bottommost {
                    choices.push(format!("{upper},{middle},{bottommost}").parse()?);
                }
            }
        }
        Ok(choices)
    }

    fn scaled(&self, rows: u64) -> u64 {
        ((rows as f64 * self.scale) as u64).max(2000)
    }

    /// The workloads of a kind, each with what names it beside the codecs.
    fn workloads_of(&self, kind: Kind) -> Result<Vec<(String, Workload)>, String> {
        let whole = self.seconds.unwrap_or(SECONDS);
        let seconds = whole as f64;
        let one = |workload| Ok(vec![(String::new(), workload)]);
        match kind {
            Kind::Linkbench => {
                let options = defaults::<LinkbenchOptions>()?;
                let maxid1 = self.scaled(options.maxid1);
                one(Workload::Linkbench(LinkbenchOptions {
                    maxid1,
                    loops: 1,
                    seconds: whole,
                    ..options
                }))
            }
            Kind::Insert => {
                let options = defaults::<InsertOptions>()?;
                one(Workload::Insert(InsertOptions {
                    steps: vec![
                        Step::Load { indexed: false },
                        Step::Index,
                        Step::Insert { few: false },
                        Step::Query { point: false, rate: 100 },
                    ],
                    rows: self.scaled(options.rows),
                    inserts: self.scaled(options.inserts),
                    seconds,
                    ..options
                }))
            }
            Kind::Large => {
                let options = defaults::<InsertOptions>()?;
                let rows = self.scaled(options.rows);
                let variants = InsertOptions { rows, seconds, ..options }.large_objects();
                let insert = |(name, options)| (name, Workload::Insert(options));
                Ok(variants.into_iter().map(insert).collect())
            }
            Kind::Kv => {
                let options = defaults::<KvOptions>()?;
                one(Workload::Kv(KvOptions {
                    benchmarks: vec![
                        Benchmark::Fillseq,
                        Benchmark::Readwhilewriting,
                        Benchmark::Overwrite,
                        Benchmark::WaitIdle,
                    ],
                    num: self.scaled(options.num),
                    value_bytes: ValueBytes { least: 400, most: 400 },
                    duration: Some(seconds),
                    // Time ends the steps, not a number of operations.
                    ops: Some(u64::MAX >> 1),
                    ..options
                }))
            }
        }
    }

    /// A group for each workload, in which all choices on all engines take turns at each step.
    ///
    /// # Errors
    ///
    /// A codec has no such name, or several choices are the same to an engine; or as
    /// [`MatrixOptions::groups`].
    pub fn groups(&self, campaign: &CampaignOptions, setup: &Setup) -> Result<Vec<Group>, String> {
        if self.conditions.matrix {
            return self.conditions.groups(campaign, setup, self.scale, self.seconds);
        }
        let choices = self.choices()?;
        let mut groups = Vec::new();
        for &kind in &self.workloads {
            for (variant, workload) in self.workloads_of(kind)? {
                let mut subjects = Vec::new();
                for engine in &campaign.engines {
                    are_different(engine, &choices, setup)?;
                    for codecs in &choices {
                        subjects.push(Subject {
                            engine: engine.clone(),
                            setting: setting(codecs, &variant),
                            setup: Setup { codecs: codecs.clone(), ..setup.clone() },
                        });
                    }
                }
                groups.push(Group { workload, subjects });
            }
        }
        Ok(groups)
    }
}

/// The codecs, always all three, and the variant of the workload.
fn setting(codecs: &CodecNames, variant: &str) -> String {
    let codecs = format!("{},{},{}", codecs.upper, codecs.middle, codecs.bottommost);
    if variant.is_empty() { codecs } else { format!("{codecs}{VARIANT}{variant}") }
}

/// A measure of the matrix: its name, its figure in a row, how that is written.
type Measure = (&'static str, fn(&Row) -> Option<f64>, fn(f64) -> String);

/// Of a step that is one operation there is no rate, but its time.
fn unless_whole(row: &Row, figure: f64) -> Option<f64> {
    (!is_whole(row)).then_some(figure)
}

const MEASURES: [Measure; 11] = [
    ("rate/s", |row| unless_whole(row, row.rate), count),
    ("secs", |row| is_whole(row).then_some(row.seconds), three_digits),
    ("rate p95", |row| unless_whole(row, row.rates.p95).filter(|_| row.rates.intervals > 0), count),
    ("Mcpu/op", |row| unless_whole(row, row.cpu.us_per_op), three_digits),
    ("CPU secs", |row| is_whole(row).then_some(row.cpu.seconds), three_digits),
    ("wKB/op", |row| unless_whole(row, row.io.written_kb_per_op), three_digits),
    (
        "written",
        |row| is_whole(row).then_some(row.io.written_bytes as f64),
        |written| bytes(written as u64),
    ),
    ("size", |row| Some(row.size_bytes as f64), |size| bytes(size as u64)),
    ("w-amp", |row| row.counted.write_amp, three_digits),
    ("c.csecs", |row| row.counted.compaction_cpu_seconds, three_digits),
    ("stall%", |row| Some(row.counted.stall_percent), three_digits),
];

/// The rows of a run as one matrix: a column for each engine and choice, a line for each measure of
/// each step; in brackets the ratio to the first column. Repeats are averaged.
pub fn matrix(rows: &[Row]) -> String {
    let mut columns: Vec<String> = Vec::new();
    let mut lines: Vec<(String, usize)> = Vec::new();
    let mut cells: BTreeMap<(String, usize, usize), (f64, u32)> = BTreeMap::new();
    for row in rows {
        let (codecs, variant) = (row.choice(), row.variant());
        let name = format!("{} {codecs}", row.engine);
        let column = columns.iter().position(|known| *known == name).unwrap_or_else(|| {
            columns.push(name);
            columns.len() - 1
        });
        let step = format!("{} {} {variant}", row.workload, row.step).trim_end().to_owned();
        for (at, (_, figure, _)) in MEASURES.iter().enumerate() {
            let Some(figure) = figure(row) else { continue };
            let line = (step.clone(), at);
            if !lines.contains(&line) {
                lines.push(line);
            }
            let cell = cells.entry((step.clone(), at, column)).or_default();
            *cell = (cell.0 + figure, cell.1 + 1);
        }
    }
    let header: Vec<&str> =
        ["step", "measure"].into_iter().chain(columns.iter().map(String::as_str)).collect();
    let mut table = plain_table(&header);
    for (step, at) in lines {
        let (measure, _, text) = MEASURES[at];
        let mean = |column| {
            let (sum, count) = cells.get(&(step.clone(), at, column))?;
            Some(sum / f64::from(*count))
        };
        let first = mean(0);
        let cell = |column| match (mean(column), first) {
            (None, _) => String::new(),
            (Some(mean), Some(first)) if column > 0 && first > 0.0 => {
                format!("{} ({:.2})", text(mean), mean / first)
            }
            (Some(mean), _) => text(mean),
        };
        let figures = (0..columns.len()).map(cell);
        table.add_row([step.clone(), measure.to_owned()].into_iter().chain(figures));
    }
    table.trim_fmt()
}

#[cfg(test)]
#[path = "compress_tests.rs"]
mod tests;
