//! `cargo xtask validate`: what `shale simulate` foresees, beside what the engine then did.
//!
//! Each case loads rows, overwrites them at a rate that is held, then as fast as it goes, on a
//! device of a known rate. The forecast of a step begins with the levels that the step before it
//! left and knows nothing of the step itself.
//!
//! Rows that are there are not measured again. Beside them stands how they were measured: with
//! other options, or by another engine, they would be set beside a forecast of something else.

use crate::command::{Outcome, failed, git, read, root, shale};
use clap::Args;
use serde_json::{Value, json};
use shaledb_lab::options::{CodecNames, Skew};
use shaledb_lab::report::plain_table;
use shaledb_lab::run::row::Row;
use shaledb_lab::units::{bytes, parse_bytes, three_digits};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The mean bytes of a key and a value of the lab's rows.
const ROW_BYTES: u64 = 270;
/// The steps: the fill, at a rate that is held, as fast as it goes.
const STEPS: [&str; 3] = ["filluniquerandom", "readrandomwriterandom", "overwrite"];

#[derive(Args)]
pub(crate) struct ValidateOptions {
    /// Bytes of keys and values
    #[arg(long, value_delimiter = ',', default_value = "3G,15G,40G", value_parser = parse_bytes)]
    size: Vec<u64>,

    /// Codecs, separated by semicolons
    #[arg(long, value_delimiter = ';', default_value = "none;lz4;none,lz4,zstd:3")]
    codecs: Vec<CodecNames>,

    /// How overwritten keys spread
    #[arg(long, value_delimiter = ',', default_value = "uniform,zipf:0.9")]
    skew: Vec<Skew>,

    /// The share of the data that each of the two steps overwrites, about
    #[arg(long, default_value_t = 1.0)]
    share: f64,

    /// The rate that is held, in MiB of keys and values a second
    #[arg(long, default_value_t = 16.0)]
    rate: f64,

    /// The most bytes a second that files are read and written with
    #[arg(long, default_value = "300M", value_parser = parse_bytes)]
    device: u64,

    /// The engine's memory [default: a sixteenth of the data]
    #[arg(long, value_parser = parse_bytes)]
    memory: Option<u64>,

    /// Cores of the machine
    #[arg(long, default_value_t = 2)]
    cores: u64,

    /// Where the databases go [default: a new folder under /var/tmp]
    #[arg(long)]
    work: Option<PathBuf>,

    /// Where the rows of each case go, and validate.md; rows that are there are not measured again,
    /// and refused if they were measured with other options or another engine
    #[arg(long, default_value = "target/validate")]
    out: PathBuf,

    /// Use this program instead of building it
    #[arg(long)]
    program: Option<PathBuf>,
}

/// A case: its data, codecs and skew.
struct Case<'a> {
    size: u64,
    codecs: &'a CodecNames,
    skew: Skew,
}

/// A step as it was and as it was foreseen.
struct Pair {
    case: String,
    /// The commit of the engine that was measured.
    engine: String,
    step: &'static str,
    row: Row,
    foreseen: Value,
}

/// One measure: what is told of a row, what is foreseen, and how far apart is too far.
struct Measure {
    name: &'static str,
    measured: fn(&Row) -> f64,
    foreseen: fn(&Value) -> f64,
    print: fn(f64) -> String,
    /// Whether a difference counts in points, not as a share.
    points: bool,
}

const MEASURES: [Measure; 6] = [
    Measure {
        name: "w-amp",
        measured: |row| row.counted.write_amp.unwrap_or(f64::NAN),
        foreseen: |told| at(told, "/write_amp"),
        print: three_digits,
        points: false,
    },
    Measure {
        name: "files at the end",
        measured: |row| row.size_bytes as f64,
        foreseen: |told| at(told, "/space_bytes"),
        print: size,
        points: false,
    },
    Measure {
        name: "at most",
        measured: |row| row.size_peak_bytes as f64,
        foreseen: |told| at(told, "/space_peak_bytes"),
        print: size,
        points: false,
    },
    Measure {
        name: "CPU, us a write",
        measured: |row| row.cpu.us_per_op,
        foreseen: |told| {
            let cpu = ["user_cpu", "flush_cpu", "merge_cpu"];
            let cpu: f64 = cpu.iter().map(|name| at(told, &format!("/totals/{name}"))).sum();
            cpu * 1e6 / (at(told, "/totals/written") / ROW_BYTES as f64)
        },
        print: three_digits,
        points: false,
    },
    Measure {
        name: "MB/s written",
        measured: |row| row.counted.user_bytes as f64 / row.seconds / 1e6,
        foreseen: |told| at(told, "/totals/written") / at(told, "/totals/seconds") / 1e6,
        print: three_digits,
        points: false,
    },
    Measure {
        name: "slowed, %",
        measured: |row| row.counted.stall_percent,
        foreseen: |told| 100.0 * at(told, "/slowed_share"),
        print: |value| format!("{value:.1}"),
        points: true,
    },
];

fn at(told: &Value, place: &str) -> f64 {
    told.pointer(place).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

fn size(value: f64) -> String {
    bytes(value as u64)
}

pub(crate) fn validate(options: &ValidateOptions) -> Outcome {
    let program = shale(options.program.as_deref())?;
    let out = root().join(&options.out);
    std::fs::create_dir_all(&out).map_err(|error| failed("create", &out, &error))?;
    let engine = engine(options.program.as_deref())?;
    let mut pairs = Vec::new();
    for &size in &options.size {
        for codecs in &options.codecs {
            for &skew in &options.skew {
                let case = Case { size, codecs, skew };
                pairs.extend(one(options, &program, &engine, &out, &case)?);
                report(options, &out, &pairs)?;
            }
        }
    }
    println!("\nWritten: {}/validate.md", out.display());
    Ok(())
}

/// Measures a case, unless its rows are there, and foresees its steps.
fn one(
    options: &ValidateOptions,
    program: &Path,
    engine: &str,
    out: &Path,
    case: &Case<'_>,
) -> Outcome<Vec<Pair>> {
    let name = format!("{} {} {}", bytes(case.size), case.codecs, case.skew);
    let rows_path = out.join(format!("{}.jsonl", name.replace([' ', ',', ':'], "-")));
    let (how_path, how) = (rows_path.with_extension("how.json"), how(options, engine, case));
    if rows_path.exists() {
        let kept = how_path.exists().then(|| read(&how_path)).transpose()?;
        fits(&rows_path, kept.as_deref(), &how)?;
    } else {
        // First: rows without it are of nobody knows what.
        let text = format!("{how:#}\n");
        std::fs::write(&how_path, text).map_err(|error| failed("write", &how_path, &error))?;
        let text = measure(options, program, case, &name)?;
        std::fs::write(&rows_path, text).map_err(|error| failed("write", &rows_path, &error))?;
    }
    let text = read(&rows_path)?;
    let rows: Vec<Row> =
        text.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(|error| {
            format!("{} has a line that is not a row: {error}. Remove it", rows_path.display())
        })?;
    let mut pairs = Vec::new();
    for (from, step) in STEPS.iter().zip(&STEPS[1..]) {
        let found = rows.iter().find(|row| row.step == *step);
        let row = found.ok_or_else(|| format!("{} has no row of {step}", rows_path.display()))?;
        let foreseen = foresee(options, program, &rows_path, case, from, row)?;
        let (case, engine) = (name.clone(), engine.to_owned());
        pairs.push(Pair { case, engine, step, row: row.clone(), foreseen });
    }
    Ok(pairs)
}

/// Which engine is measured: the last commit that changed it, and whether it was changed since; of
/// a program that was named its path and length.
fn engine(program: Option<&Path>) -> Outcome<String> {
    if let Some(program) = program {
        let meta = std::fs::metadata(program).map_err(|error| failed("read", program, &error))?;
        return Ok(format!("{}, {} bytes", program.display(), meta.len()));
    }
    let said = |args: &[&str]| {
        let output = git().args(args).args(["--", "crates/shaledb", "crates/shaledb-lab"]).output();
        let output = output.map_err(|error| format!("could not run git: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("git {} failed: {}", args.join(" "), said.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = said(&["log", "-1", "--format=%h"])?;
    let changed = !said(&["status", "--porcelain"])?.is_empty();
    Ok(if changed { format!("{commit}, changed") } else { commit })
}

/// What rows depend on beside the case that their file is named by. Cores are a matter of the
/// forecast.
fn how(options: &ValidateOptions, engine: &str, case: &Case<'_>) -> Value {
    json!({
        "engine": engine,
        "size": case.size,
        "share": options.share,
        "rate": options.rate,
        "device": options.device,
        "memory": memory(options, case),
    })
}

/// Refuses rows that were measured otherwise.
fn fits(rows: &Path, kept: Option<&str>, how: &Value) -> Outcome {
    let remove = "Remove it to measure again, or name another folder by --out";
    let rows = rows.display();
    let Some(kept) = kept else {
        return Err(format!("nothing says how the rows of {rows} were measured. {remove}"));
    };
    let kept: Value = serde_json::from_str(kept)
        .map_err(|error| format!("what stands beside {rows} is not JSON: {error}. {remove}"))?;
    let names = how.as_object().into_iter().flat_map(|how| how.keys());
    let others: Vec<String> = names
        .filter(|name| kept[name] != how[name])
        .map(|name| format!("{name} {}, not {}", kept[name], how[name]))
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!("the rows of {rows} were measured with {}. {remove}", others.join("; ")))
}

fn memory(options: &ValidateOptions, case: &Case<'_>) -> u64 {
    options.memory.unwrap_or(case.size / 16)
}

/// The lines of the lab's rows.
fn measure(
    options: &ValidateOptions,
    program: &Path,
    case: &Case<'_>,
    name: &str,
) -> Outcome<String> {
    let work = options.work.clone().unwrap_or_else(|| {
        Path::new("/var/tmp").join(format!("shale-validate-{}", std::process::id()))
    });
    let (memory, rows) = (memory(options, case), case.size / ROW_BYTES);
    let seconds = options.share * case.size as f64 / (options.rate * f64::from(1 << 20));
    eprintln!("xtask: {name}: a fill, then two steps of at most {seconds:.0} s");
    let mut command = Command::new(program);
    command
        .args(["bench", "kv", "--engines", "shale", "--benchmarks", &STEPS.join(",")])
        .args(["--num", &rows.to_string()])
        .args(["--ops", &((options.share * rows as f64) as u64).to_string()])
        .args(["--duration", &seconds.to_string()])
        .args(["--read-share", "0", "--write-rate", &options.rate.to_string()])
        .args(["--codecs", &case.codecs.to_string(), "--skew", &case.skew.to_string()])
        .args(["--no-dictionary", "--memory", &memory.to_string()])
        .args(["--device-bound", &options.device.to_string(), "--json-to", "-"])
        .arg("--db")
        .arg(work.join("db"))
        .arg("--run")
        .arg(work.join("run"))
        .stderr(Stdio::inherit());
    let output = command.output().map_err(|error| failed("run", program, &error))?;
    // Only this task's own folders are removed.
    let _ = std::fs::remove_dir_all(work.join("run"));
    let _ = std::fs::remove_dir_all(work.join("db"));
    let _ = std::fs::remove_dir(&work);
    if !output.status.success() {
        return Err(format!("{} failed ({}) on {name}", program.display(), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name}: the rows are not text"))
}

/// What a step will be, from what the one before it left.
fn foresee(
    options: &ValidateOptions,
    program: &Path,
    rows: &Path,
    case: &Case<'_>,
    from: &str,
    row: &Row,
) -> Outcome<Value> {
    let held = row.step == STEPS[1];
    let write = match held {
        true => format!("{}/s", (options.rate * f64::from(1 << 20)) as u64),
        false => "unlimited".to_owned(),
    };
    let output = Command::new(program)
        .args(["--json", "simulate", "--step", from, "--from"])
        .arg(rows)
        .args(["--inserts", "0%", "--deletes", "0%", "--reads", "0", "--write", &write])
        .args(["--skew", &case.skew.to_string(), "--for", &format!("{}s", row.seconds)])
        .args(["--cores", &options.cores.to_string(), "--device"])
        .arg(format!("{}/s", options.device))
        // The bound on the device counts what the page cache would give, too.
        .args(["--ram", &memory(options, case).to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed("run", program, &error))?;
    if !output.status.success() {
        return Err(format!("{} simulate failed ({})", program.display(), output.status));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("`shale simulate` printed what is not JSON: {error}"))
}

fn difference(measure: &Measure, pair: &Pair) -> String {
    let (measured, foreseen) = ((measure.measured)(&pair.row), (measure.foreseen)(&pair.foreseen));
    if measure.points {
        return format!("{:+.1}", foreseen - measured);
    }
    format!("{:+.0} %", 100.0 * (foreseen / measured - 1.0))
}

/// Prints the table of all cases so far, and writes it for readers.
fn report(options: &ValidateOptions, out: &Path, pairs: &[Pair]) -> Outcome {
    let mut header = vec!["data, codecs, skew", "engine", "step"];
    header.extend(MEASURES.iter().map(|measure| measure.name));
    let mut table = plain_table(&header);
    let mut markdown = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for pair in pairs {
        let cell = |measure: &Measure| {
            let measured = (measure.print)((measure.measured)(&pair.row));
            let foreseen = (measure.print)((measure.foreseen)(&pair.foreseen));
            format!("{measured}, {foreseen} ({})", difference(measure, pair))
        };
        let step = match pair.step == STEPS[1] {
            true => format!("{} MiB/s", options.rate),
            false => "as fast as it goes".to_owned(),
        };
        let mut cells = vec![pair.case.clone(), pair.engine.clone(), step];
        cells.extend(MEASURES.iter().map(cell));
        markdown.push_str(&format!("| {} |\n", cells.join(" | ")));
        table.add_row(cells);
    }
    println!("Measured, foreseen (difference):\n\n{}", table.trim_fmt());
    let path = out.join("validate.md");
    std::fs::write(&path, markdown).map_err(|error| failed("write", &path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Asked {
        #[command(flatten)]
        options: ValidateOptions,
    }

    #[test]
    fn rows_that_were_measured_otherwise_are_refused() {
        let options = |flags: &[&str]| Asked::parse_from([&["validate"], flags].concat()).options;
        let how_of = |flags: &[&str], engine: &str| {
            let options = options(flags);
            let case = Case { size: 3 << 30, codecs: &options.codecs[0], skew: options.skew[0] };
            how(&options, engine, &case)
        };
        let rows = Path::new("target/validate/3.jsonl");
        let kept = format!("{:#}", how_of(&[], "abc"));
        let of = |how: &Value| fits(rows, Some(&kept), how);
        assert_eq!(of(&how_of(&["--cores", "8", "--out", "x"], "abc")), Ok(()));
        for (flags, engine, part) in [
            (&["--rate", "8"][..], "abc", "rate 16.0, not 8.0"),
            (&["--share", "0.5"], "abc", "share 1.0, not 0.5"),
            (&["--device", "100M"], "abc", "device "),
            (&["--memory", "64M"], "abc", "memory "),
            (&[], "abd", "engine \"abc\", not \"abd\""),
        ] {
            let told = of(&how_of(flags, engine)).unwrap_err();
            assert!(told.contains("3.jsonl were measured with ") && told.contains(part), "{told}");
        }
        let told = fits(rows, None, &how_of(&[], "abc")).unwrap_err();
        assert!(told.contains("nothing says how") && told.contains("--out"), "{told}");
    }
}
