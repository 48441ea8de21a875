//! `cargo xtask compare`: Shale and RocksDB by the same client code on the same work.
//!
//! Each benchmark is a process of its own on a database that the one before left, and the engines
//! take turns step by step (which of them goes first alternates too), so that a change of the
//! machine's mood meets both. A ratio is always Shale / RocksDB; the ratio of a step is the median
//! over the repeats.

use crate::command::{Outcome, failed, root, works};
use crate::peers::{self, Programs};
use crate::step::Step;
use crate::table;
use clap::Args;
use shaledb_lab::run::row::Row;
use shaledb_lab::units::parse_count;
use shaledb_lab::workloads::kv::Benchmark;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Args)]
pub(crate) struct CompareOptions {
    /// How many keys
    #[arg(long, default_value = "10M", value_parser = parse_count)]
    pub(crate) num: u64,

    /// Which settings of the codecs: lz4 (everywhere), mixed (none, lz4, zstd:3), none
    #[arg(long, value_delimiter = ',', default_value = "lz4,mixed,none")]
    pub(crate) settings: Vec<String>,

    /// Which benchmarks, in this order
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "fillrandom,fillseq,overwrite,wait_idle,readrandom,seekrandom,readseq,\
                         multireadrandom,scanrandom,prefixscan,readmissing,readwhilewriting,\
                         updaterandom,deleterandom"
    )]
    pub(crate) tests: Vec<Benchmark>,

    /// How often everything is repeated
    #[arg(long, default_value_t = 1)]
    pub(crate) repeat: usize,

    /// Seconds of a read benchmark; deleterandom and readwhilewriting run twice as long, fills and
    /// overwrite to their end
    #[arg(long, default_value_t = 12.0)]
    pub(crate) seconds: f64,

    /// A first look: 500k keys, 3 seconds each
    #[arg(long)]
    pub(crate) quick: bool,

    /// Where the databases go [default: a new folder under /var/tmp]
    #[arg(long)]
    pub(crate) work: Option<PathBuf>,

    /// Where rows.jsonl, compare.json and compare.md go
    #[arg(long, default_value = "target/compare")]
    pub(crate) out: PathBuf,

    /// Use these programs instead of building them: `shale`, and `shale-peer-rocksdb` in any folder
    #[arg(long, num_args = 2, value_names = ["SHALE", "PEER"])]
    pub(crate) programs: Vec<PathBuf>,

    /// More flags for both, such as `--flags=--threads=2`
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) flags: Vec<String>,

    /// More flags for RocksDB alone, such as `--peer-flags=--block-bytes --peer-flags=4K`
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) peer_flags: Vec<String>,
}

pub(crate) fn run(options: &CompareOptions) -> Outcome {
    let settings: Vec<(&str, &str)> = options
        .settings
        .iter()
        .map(|name| match name.as_str() {
            "lz4" => Ok(("lz4", "lz4")),
            "mixed" => Ok(("mixed", "none,lz4,zstd:3")),
            "none" => Ok(("none", "none")),
            other => {
                Err(format!("there is no setting `{other}`; the settings are lz4, mixed and none"))
            }
        })
        .collect::<Outcome<_>>()?;
    let programs = match &options.programs[..] {
        [shale, rocksdb] => {
            // `shale bench` finds a peer's driver by its folder and this name.
            if rocksdb.file_name() != Some("shale-peer-rocksdb".as_ref()) {
                return Err(format!(
                    "{} is not the driver of RocksDB. Name a file shale-peer-rocksdb",
                    rocksdb.display()
                ));
            }
            Programs { shale: shale.clone(), rocksdb: rocksdb.clone() }
        }
        _ => peers::build()?,
    };
    let work = options.work.clone().unwrap_or_else(|| {
        Path::new("/var/tmp").join(format!("shale-compare-{}", std::process::id()))
    });
    let out = root().join(&options.out);
    std::fs::create_dir_all(&out).map_err(|error| failed("create", &out, &error))?;

    let mut compare = Compare { options, programs, out, steps: Vec::new(), turn: 0 };
    let outcome = settings.iter().try_for_each(|(name, codecs)| {
        (0..options.repeat.max(1)).try_for_each(|repeat| {
            let folder = work.join(name);
            let outcome = compare.setting(name, codecs, repeat, &folder);
            // Only this task's own folder, one per setting, is removed.
            let _ = std::fs::remove_dir_all(&folder);
            outcome
        })
    });
    let _ = std::fs::remove_dir(&work);
    // What was measured before a failure is still worth showing.
    compare.report()?;
    outcome
}

struct Compare<'a> {
    options: &'a CompareOptions,
    programs: Programs,
    out: PathBuf,
    steps: Vec<Step>,
    turn: usize,
}

impl Compare<'_> {
    fn num(&self) -> u64 {
        if self.options.quick { self.options.num.min(500_000) } else { self.options.num }
    }

    fn seconds(&self, test: Benchmark) -> f64 {
        let base = if self.options.quick { 3.0 } else { self.options.seconds };
        match test {
            Benchmark::Deleterandom | Benchmark::Readwhilewriting => base * 2.0,
            _ => base,
        }
    }

    fn setting(&mut self, name: &str, codecs: &str, repeat: usize, folder: &Path) -> Outcome {
        for (at, &test) in self.options.tests.iter().enumerate() {
            self.turn += 1;
            // Dirty pages of the step before are nobody's fault in this one.
            works("sync", &[]);
            let shale_first = (self.turn + repeat).is_multiple_of(2);
            let mut rows = Vec::new();
            for shale in [shale_first, !shale_first] {
                let row = self.one(shale, test, codecs, folder)?;
                eprintln!(
                    "{name:>6} {:>17} {:>8}: {:>10.0}/s {:>8.2} CPU us/op",
                    row.step, row.engine, row.rate, row.cpu.us_per_op
                );
                rows.push((shale, row));
            }
            rows.sort_by_key(|(shale, _)| !shale);
            let pair: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
            let [shale, rocksdb] = <[Row; 2]>::try_from(pair).map_err(|_| "a row is missing")?;
            let before = self.options.tests[..at].iter().filter(|&&other| other == test).count();
            let step = match before {
                0 => test.name().to_owned(),
                _ => format!("{} ({})", test.name(), before + 1),
            };
            match self.steps.iter_mut().find(|s| s.setting == name && s.name == step) {
                Some(known) => known.pairs.push((shale, rocksdb)),
                None => self.steps.push(Step {
                    setting: name.to_owned(),
                    name: step,
                    pairs: vec![(shale, rocksdb)],
                }),
            }
        }
        Ok(())
    }

    /// Runs one benchmark of one engine and gives its row. The peer's program is found by the lab
    /// in its folder.
    fn one(&self, shale: bool, test: Benchmark, codecs: &str, folder: &Path) -> Outcome<Row> {
        let program = &self.programs.shale;
        let run = self.out.join(format!("run-{}", std::process::id()));
        let peers = self.programs.rocksdb.parent().unwrap_or(Path::new("."));
        let mut command = Command::new(program);
        command.args(["bench", "kv", "--engines", if shale { "shale" } else { "rocksdb" }]);
        match test {
            // Every key once on average, so that what compaction owes is mostly paid in the step.
            Benchmark::Overwrite => command.args(["--ops", &self.num().to_string()]),
            // Time ends a step, not a number of operations.
            _ => command
                .args(["--duration", &self.seconds(test).to_string()])
                .args(["--ops", if test == Benchmark::Readseq { "1000G" } else { "100G" }]),
        };
        command
            .args(["--benchmarks", test.name(), "--codecs", codecs, "--keep", "--json-to", "-"])
            .args(["--num", &self.num().to_string()])
            .arg("--db")
            .arg(folder)
            .arg("--run")
            .arg(&run)
            .args(&self.options.flags)
            .args(if shale { &[][..] } else { &self.options.peer_flags })
            .env("SHALE_PEERS", peers)
            .stderr(Stdio::inherit());
        let output = command.output().map_err(|error| failed("run", program, &error))?;
        // Its row is kept with all others; what is left of it says nothing more.
        let _ = std::fs::remove_dir_all(&run);
        if !output.status.success() {
            return Err(format!(
                "{} {} failed ({})",
                program.display(),
                test.name(),
                output.status
            ));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().ok_or_else(|| format!("{} printed no row", test.name()))?;
        let row: Row = serde_json::from_str(line).map_err(|error| {
            format!("{} printed a line that is not a row: {error}", test.name())
        })?;
        self.keep(line)?;
        Ok(row)
    }

    fn keep(&self, line: &str) -> Outcome {
        let path = self.out.join("rows.jsonl");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| writeln!(file, "{line}"))
            .map_err(|error| failed("write", &path, &error))
    }

    fn report(&self) -> Outcome {
        if self.steps.is_empty() {
            return Ok(());
        }
        let heading = format!(
            "{} keys of 20 B, values 100-400 B, compressible to 0.5; 64 MiB memtables, 1.25 GiB of \
             memory (RocksDB: cache, memtables charged to it), 10 filter bits per key, WAL on, \
             sync off, 2 background threads; {} s per read step, {} repeat(s){}.\nMachine: {}.",
            shaledb_lab::units::grouped(self.num()),
            self.seconds(Benchmark::Readrandom),
            self.options.repeat.max(1),
            [("both with ", &self.options.flags), ("RocksDB with ", &self.options.peer_flags)]
                .into_iter()
                .filter(|(_, flags)| !flags.is_empty())
                .map(|(who, flags)| format!("; {who}{}", flags.join(" ")))
                .collect::<String>(),
            shaledb_lab::measure::machine()
        );
        println!("\n{heading}\nRatios are Shale / RocksDB 11.\n\n{}", table::terminal(&self.steps));
        let write = |name: &str, text: String| {
            let path = self.out.join(name);
            std::fs::write(&path, text).map_err(|error| failed("write", &path, &error))
        };
        write("compare.md", format!("{heading}\n\n{}", table::markdown(&self.steps)))?;
        let json = serde_json::to_string_pretty(&table::json(&self.steps, &heading));
        write("compare.json", json.map_err(|error| error.to_string())?)?;
        println!("\nWritten: {0}/compare.md, compare.json, rows.jsonl", self.out.display());
        Ok(())
    }
}
