//! `cargo xtask roofline`: what each test costs beside the floor that its parts set on this
//! machine.
//!
//! The parts (copies, checksums, codecs, comparisons, the page cache) are measured each by itself
//! by `crates/shaledb/examples/roofline.rs`. How much of each a test needs is taken from what the
//! engine counted in it: bytes written and read by level. So the floor is that of this design with
//! these bytes: what remains above it is the price of the engine's own structures, of the system
//! and of threads that share caches.

use crate::command::{Outcome, cargo, failed, run, shale};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use shaledb_lab::report::plain_table;
use shaledb_lab::run::row::Row;
use shaledb_lab::units::parse_count;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const TESTS: &str = "fillseq,fillrandom,overwrite,wait_idle,readrandom,seekrandom,readseq";

/// The last level, whose codec is the last of three.
const LAST: u32 = 6;

/// Bytes of a row of the tests: a key of 20, a value of 250 on average.
const ROW_BYTES: f64 = 270.0;

#[derive(Args)]
pub(crate) struct RooflineOptions {
    /// How many keys
    #[arg(long, default_value = "3M", value_parser = parse_count)]
    num: u64,

    /// Which settings of the codecs: none, lz4, mixed (none, lz4, zstd:3)
    #[arg(long, value_delimiter = ',', default_value = "none,mixed")]
    settings: Vec<String>,

    /// Which tests, of those of the default: of others no floor is known
    #[arg(long, value_delimiter = ',', default_value = TESTS,
        value_parser = PossibleValuesParser::new(TESTS.split(',')))]
    benchmarks: Vec<String>,

    /// The most seconds of a test but the fills
    #[arg(long, default_value_t = 10)]
    seconds: u64,

    /// The most operations of a test but the fills [default: --num]
    #[arg(long)]
    ops: Option<String>,

    /// The engine's memory
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,

    /// The most memory of engine, client and page cache together
    #[arg(long, value_name = "SIZE")]
    memory_bound: Option<String>,

    /// Where the databases go
    #[arg(long, default_value = "/var/tmp")]
    work: PathBuf,

    /// Use this `shale` instead of building it
    #[arg(long)]
    program: Option<PathBuf>,
}

pub(crate) fn roofline(options: &RooflineOptions) -> Outcome {
    let settings: Vec<(&str, [&str; 3])> = options
        .settings
        .iter()
        .map(|name| match name.as_str() {
            "none" => Ok(("none", ["none"; 3])),
            "lz4" => Ok(("lz4", ["lz4"; 3])),
            "mixed" => Ok(("mixed", ["none", "lz4", "zstd:3"])),
            other => {
                Err(format!("there is no setting `{other}`; the settings are none, lz4 and mixed"))
            }
        })
        .collect::<Outcome<_>>()?;
    let program = shale(options.program.as_deref())?;
    let parts = Parts::measure(&options.work)?;
    let header = ["test", "codecs", "CPU, us", "floor, us", "floor / CPU", "the floor's parts"];
    let mut table = plain_table(&header);
    for (name, codecs) in settings {
        for row in measure(&program, options, name, &codecs)? {
            if row.step == "wait_idle" {
                continue;
            }
            let floor = parts.floor(&row, &codecs);
            let sum: f64 = floor.iter().map(|(_, nanos)| nanos / 1000.0).sum();
            let cpu = row.cpu.us_per_op;
            let shown = floor.iter().filter(|(_, nanos)| nanos / 1000.0 > sum / 20.0);
            let shown: Vec<String> =
                shown.map(|(name, nanos)| format!("{name} {:.2}", nanos / 1000.0)).collect();
            table.add_row([
                row.step.clone(),
                name.to_owned(),
                format!("{cpu:.2}"),
                format!("{sum:.2}"),
                format!("{:.2}", sum / cpu),
                shown.join(", "),
            ]);
        }
    }
    println!("{}", parts.text());
    println!("{table}");
    Ok(())
}

/// Runs the tests on one setting; a row for each.
fn measure(
    program: &Path,
    options: &RooflineOptions,
    name: &str,
    codecs: &[&str; 3],
) -> Outcome<Vec<Row>> {
    let folder = options.work.join(format!("shale-roofline-{}-{name}", std::process::id()));
    let lines = folder.join("rows.jsonl");
    std::fs::create_dir_all(&folder).map_err(|error| failed("create", &folder, &error))?;
    let mut command = Command::new(program);
    let seconds = options.seconds.to_string();
    let benchmarks = options.benchmarks.join(",");
    command.args(["bench", "kv", "--benchmarks", &benchmarks, "--duration", &seconds]);
    command.args(["--num", &options.num.to_string(), "--codecs", &codecs.join(",")]);
    let others = [
        ("--ops", &options.ops),
        ("--memory", &options.memory),
        ("--memory-bound", &options.memory_bound),
    ];
    for (flag, value) in others {
        command.args(value.iter().flat_map(|value| [flag, value]));
    }
    command.arg("--db").arg(folder.join("db")).arg("--run").arg(folder.join("run"));
    command.arg("--json-to").arg(&lines).stdout(std::process::Stdio::null());
    let outcome = run(&mut command, "shale bench kv").and_then(|()| {
        let text =
            std::fs::read_to_string(&lines).map_err(|error| failed("read", &lines, &error))?;
        let row = |line| serde_json::from_str(line).map_err(|error| format!("{error} in {line}"));
        text.lines().map(row).collect()
    });
    // Only this task's own folder is removed.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

/// What each part costs, in nanoseconds.
struct Parts(BTreeMap<String, f64>);

impl Parts {
    fn measure(folder: &Path) -> Outcome<Parts> {
        let mut command = cargo();
        command.args(["run", "--quiet", "--release", "-p", "shaledb", "--example", "roofline"]);
        command.args(["--", "--json", "--folder"]).arg(folder);
        let output = command.output().map_err(|error| format!("cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!("the parts: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Parts::read(&String::from_utf8_lossy(&output.stdout))
    }

    fn read(text: &str) -> Outcome<Parts> {
        let mut parts = BTreeMap::new();
        for line in text.lines() {
            let wrong = |what: &str| format!("{what} in the parts: {line}");
            let value: Value =
                serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
            let name = value["part"].as_str().ok_or_else(|| wrong("no name"))?;
            let nanos = value["nanos"].as_f64().ok_or_else(|| wrong("no figure"))?;
            parts.insert(name.to_owned(), nanos);
        }
        Ok(Parts(parts))
    }

    fn of(&self, name: &str) -> f64 {
        *self.0.get(name).unwrap_or_else(|| panic!("the part `{name}` was measured"))
    }

    fn text(&self) -> String {
        let mut table = plain_table(&["part", "ns"]);
        for (name, nanos) in &self.0 {
            table.add_row([name.clone(), format!("{nanos:.2}")]);
        }
        format!("{table}\n")
    }

    /// The parts of one operation of a test that its floor is the sum of, in nanoseconds.
    fn floor(&self, row: &Row, codecs: &[&str; 3]) -> Vec<(&'static str, f64)> {
        let ops = row.ops.max(1) as f64;
        let copies = |rows: f64| rows * self.of("copy a row");
        if row.unit == "write" {
            let log = self.of("checksum") * ROW_BYTES / 1024.0 + copies(1.0);
            let mut floor = vec![
                ("log", log),
                ("memtable", self.of("find among memtable") + copies(1.0)),
                ("copies", 0.0),
                ("codecs", 0.0),
                ("checksums", 0.0),
                ("page cache", 0.0),
            ];
            for level in &row.counted.levels {
                // A level without tables at the end does not tell its codec.
                let usual = if level.level == 0 { 0 } else { 1 + usize::from(level.level == LAST) };
                let own = codecs.iter().find(|codec| **codec == level.codec);
                let codec = *own.unwrap_or(&codecs[usual]);
                // Blocks that are reused are neither decompressed nor compressed.
                let reused = level.reused_bytes as f64 / ops;
                let (written, read) =
                    (level.written_bytes as f64 / ops, level.read_bytes as f64 / ops);
                let size = self.of(&format!("size by {codec}"));
                let made = (written - reused).max(0.0) / size;
                floor[2].1 += copies(made / ROW_BYTES);
                if codec != "none" {
                    // A merge reads about as much of the level as it writes to it. What it reads
                    // from above, by another codec, is left out.
                    let opened = made.min((read - reused).max(0.0) / size);
                    floor[3].1 += self.of(&format!("compress {codec}")) * made / 1024.0
                        + self.of(&format!("decompress {codec}")) * opened / 1024.0;
                }
                floor[4].1 += self.of("checksum") * (written + read) / 1024.0;
                floor[5].1 += self.of("write through page cache") * written / 1024.0;
                floor[5].1 += self.of("read from page cache") * read / 1024.0;
            }
            return floor;
        }
        let stored = row.counted.read_bytes as f64 / ops / 1024.0;
        let codec = codecs[2];
        let raw = stored / self.of(&format!("size by {codec}"));
        let rows = match row.step.as_str() {
            "seekrandom" => 11.0,
            _ => 1.0,
        };
        let mut floor = vec![("copies", copies(rows))];
        if row.step != "readseq" {
            floor.push(("find", self.of("find among all")));
        }
        floor.push(("checksums", self.of("checksum") * stored));
        floor.push(("page cache", self.of("read from page cache") * stored));
        if codec != "none" {
            floor.push(("codec", self.of(&format!("decompress {codec}")) * raw.max(stored)));
        }
        floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaledb_lab::stores::engine::Level;

    const PARTS: &str = r#"{"part": "checksum", "nanos": 20, "of": "KiB"}
{"part": "copy a row", "nanos": 10, "of": "row"}
{"part": "find among memtable", "nanos": 300, "of": "key"}
{"part": "find among all", "nanos": 1000, "of": "key"}
{"part": "compress zstd:3", "nanos": 3000, "of": "KiB"}
{"part": "decompress zstd:3", "nanos": 150, "of": "KiB"}
{"part": "size by none", "nanos": 1, "of": "byte"}
{"part": "size by lz4", "nanos": 0.5, "of": "byte"}
{"part": "compress lz4", "nanos": 800, "of": "KiB"}
{"part": "size by zstd:3", "nanos": 0.5, "of": "byte"}
{"part": "write through page cache", "nanos": 700, "of": "KiB"}
{"part": "read from page cache", "nanos": 80, "of": "KiB"}"#;

    fn sum(floor: &[(&str, f64)]) -> f64 {
        floor.iter().map(|(_, nanos)| nanos).sum()
    }

    #[test]
    fn a_floor_counts_the_bytes_of_each_level_by_its_codec() {
        let parts = Parts::read(PARTS).unwrap();
        let mut row = Row { unit: "write".into(), ops: 1024, ..Row::default() };
        let none = sum(&parts.floor(&row, &["none"; 3]));
        assert!((none - (20.0 * ROW_BYTES / 1024.0 + 320.0)).abs() < 1e-6, "{none}");
        // A KiB of the last level for each write, two before compression.
        let level = |level| Level { level, written_bytes: 1 << 20, ..Level::default() };
        row.counted.levels = vec![level(6)];
        let mixed = sum(&parts.floor(&row, &["none", "lz4", "zstd:3"]));
        let rows = 2048.0 / ROW_BYTES;
        assert!((mixed - none - (10.0 * rows + 6000.0 + 20.0 + 700.0)).abs() < 1e-6, "{mixed}");
        row.counted.levels = vec![level(0)];
        let upper = sum(&parts.floor(&row, &["none", "lz4", "zstd:3"]));
        assert!((upper - none - (10.0 * rows / 2.0 + 720.0)).abs() < 1e-6, "{upper}");
        // Half as much is read as is written, and decompressed.
        row.counted.levels = vec![Level { read_bytes: 1 << 19, ..level(6) }];
        let merged = sum(&parts.floor(&row, &["none", "lz4", "zstd:3"]));
        assert!((merged - mixed - (0.5 * (20.0 + 80.0) + 150.0)).abs() < 1e-6, "{merged}");
        // What is reused is read and written, and that is all.
        let reused = Level { read_bytes: 1 << 20, reused_bytes: 1 << 20, ..level(6) };
        row.counted.levels = vec![reused];
        let copied = sum(&parts.floor(&row, &["none", "lz4", "zstd:3"]));
        assert!((copied - none - (2.0 * 20.0 + 700.0 + 80.0)).abs() < 1e-6, "{copied}");
        // A level above the last may have the codec of level 0.
        row.counted.levels = vec![Level { codec: "none".into(), ..level(5) }];
        assert_eq!(sum(&parts.floor(&row, &["none", "lz4", "zstd:3"])), upper);
    }

    #[test]
    fn a_read_of_a_cached_row_is_a_search_and_a_copy() {
        let parts = Parts::read(PARTS).unwrap();
        let mut row =
            Row { unit: "read".into(), step: "readrandom".into(), ops: 1, ..Row::default() };
        assert_eq!(sum(&parts.floor(&row, &["none", "lz4", "zstd:3"])), 1010.0);
        row.counted.read_bytes = 8192;
        let read = sum(&parts.floor(&row, &["none", "lz4", "zstd:3"]));
        assert_eq!(read, 1010.0 + 8.0 * (20.0 + 80.0) + 16.0 * 150.0);
        assert!(Parts::read("{\"part\": 1}").is_err());
    }
}
