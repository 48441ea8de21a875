//! `cargo xtask plan`: what today's policies lead to, by `shale simulate`, beside a branch's.
//!
//! The scenarios are those whose figures a test keeps. A branch's program is built once for each
//! commit, in a worktree under target/plan; its figures are kept there too.

use crate::command::{Outcome, cargo, failed, git, read, root, run};
use clap::Args;
use serde_json::Value;
use shaledb_lab::report::plain_table;
use shaledb_lab::units::{bytes, three_digits};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the scenarios are: a name, a colon, and flags of `shale simulate`.
const SCENARIOS: &str = "crates/shaledb-cli/tests/plan/scenarios.txt";
/// Figures that differ by less are alike.
const ALIKE: f64 = 0.01;

#[derive(Args)]
pub(crate) struct PlanOptions {
    /// Beside the code of this branch or commit
    #[arg(long, value_name = "COMMIT")]
    against: Option<String>,

    /// Only scenarios whose name contains one of these
    scenarios: Vec<String>,

    /// In seconds, with the little effort of the test that keeps figures: changes show, and figures
    /// of large data are too low. The other commit has to know `shale simulate --care little`
    #[arg(long)]
    quick: bool,
}

/// One figure: its name, where it is in the JSON, how it is printed, and how much is nothing.
struct Figure {
    name: &'static str,
    at: &'static str,
    print: fn(f64) -> String,
    nothing: f64,
}

const FIGURES: [Figure; 7] = [
    Figure { name: "w-amp", at: "/write_amp", print: three_digits, nothing: 0.005 },
    Figure { name: "size", at: "/space_bytes", print: size, nothing: 1e6 },
    Figure { name: "at most", at: "/space_peak_bytes", print: size, nothing: 1e6 },
    Figure { name: "cores", at: "/cores", print: three_digits, nothing: 0.005 },
    Figure { name: "device", at: "/device_written_bytes_per_second", print: rate, nothing: 1e3 },
    Figure { name: "slowed", at: "/slowed_share", print: percent, nothing: 0.001 },
    Figure { name: "most", at: "/most/bytes_per_second", print: rate, nothing: 1e3 },
];

fn size(value: f64) -> String {
    bytes(value as u64)
}

fn rate(value: f64) -> String {
    format!("{}/s", bytes(value as u64))
}

fn percent(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// A scenario with its figures, or why there are none.
type Told = (String, Outcome<Vec<f64>>);

pub(crate) fn plan(options: &PlanOptions) -> Outcome {
    let scenarios = scenarios(&read(&root().join(SCENARIOS))?, &options.scenarios)?;
    run(cargo().args(["build", "--package", "shaledb-cli"]), "building shale")?;
    let here = told(&target().join("debug/shale"), &scenarios, options.quick);
    let there = match &options.against {
        Some(name) => {
            let commit = commit(name)?;
            Some((name.clone(), kept(&commit, &scenarios, options.quick)?))
        }
        None => None,
    };
    println!("{}", table(&here, there.as_ref()));
    match there {
        None => println!("--against COMMIT sets another commit's figures beside these"),
        Some((name, there)) => println!("{}", summary(&here, &there, &name)),
    }
    Ok(())
}

fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR");
    root().join(named.map_or_else(|| "target".into(), PathBuf::from))
}

/// The names and flags of those that were asked for.
fn scenarios(text: &str, asked: &[String]) -> Outcome<Vec<(String, String)>> {
    let all: Vec<(String, String)> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, flags)| (name.to_owned(), flags.to_owned()))
        .collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|part| name.contains(part));
    let chosen: Vec<_> = all.iter().filter(|(name, _)| is_asked(name)).cloned().collect();
    if chosen.is_empty() {
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!(
            "no scenario has a name with {}. There are: {}. {SCENARIOS} has them",
            asked.join(" or "),
            names.join(", ")
        ));
    }
    Ok(chosen)
}

/// What a program foresees. What it refuses is told in its row.
fn told(program: &Path, scenarios: &[(String, String)], quick: bool) -> Vec<Told> {
    let figures = |flags: &str| -> Outcome<Vec<f64>> {
        let mut command = Command::new(program);
        command.args(["--json", "simulate"]).args(flags.split(' '));
        if quick {
            command.args(["--care", "little"]);
        }
        let output = command.output().map_err(|error| failed("run", program, &error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(said.lines().next().unwrap_or("it said nothing").to_owned());
        }
        let value: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        let figure = |figure: &Figure| {
            let value = value.pointer(figure.at).and_then(Value::as_f64);
            value.ok_or_else(|| format!("its JSON has no {}", figure.at))
        };
        FIGURES.iter().map(figure).collect()
    };
    let each = |(name, flags): &(String, String)| {
        eprintln!("xtask: {name}: shale simulate {flags}");
        (name.clone(), figures(flags))
    };
    scenarios.iter().map(each).collect()
}

/// The full name of a commit.
fn commit(name: &str) -> Outcome<String> {
    let asked = format!("{name}^{{commit}}");
    let output = git().args(["rev-parse", "--verify", "--quiet", &asked]).output();
    let output = output.map_err(|error| format!("could not run git: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "--against {name}: there is no such branch or commit (`git branch -a`)"
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What another commit's program foresees, from what is kept of it as far as that goes.
fn kept(commit: &str, scenarios: &[(String, String)], quick: bool) -> Outcome<Vec<Told>> {
    let folder = target().join("plan");
    std::fs::create_dir_all(&folder).map_err(|error| failed("create", &folder, &error))?;
    let file = folder.join(format!("{commit}.json"));
    // A file that cannot be read is as good as none.
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let mut known: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    let key = |flags: &str| if quick { format!("{flags} --care little") } else { flags.to_owned() };
    let figures = |value: &Value| -> Option<Vec<f64>> {
        let all: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
        all.filter(|all| all.len() == FIGURES.len())
    };
    let is_known = |known: &serde_json::Map<String, Value>, flags: &str| {
        known.get(&key(flags)).and_then(figures)
    };
    let missing: Vec<(String, String)> =
        scenarios.iter().filter(|(_, flags)| is_known(&known, flags).is_none()).cloned().collect();
    let mut refused: Vec<Told> = Vec::new();
    if !missing.is_empty() {
        let program = build(&folder, commit)?;
        for ((name, flags), (_, told)) in missing.iter().zip(told(&program, &missing, quick)) {
            match told {
                Ok(figures) => drop(known.insert(key(flags), figures.into())),
                Err(why) => refused.push((name.clone(), Err(why))),
            }
        }
        std::fs::write(&file, Value::Object(known.clone()).to_string())
            .map_err(|error| failed("write", &file, &error))?;
    }
    let each = |(name, flags): &(String, String)| match is_known(&known, flags) {
        Some(figures) => (name.clone(), Ok(figures)),
        None => {
            let why = refused.iter().find(|one| &one.0 == name).map(|one| one.1.clone());
            (name.clone(), why.unwrap_or_else(|| Err("nothing is known".to_owned())))
        }
    };
    Ok(scenarios.iter().map(each).collect())
}

/// Another commit's program: built in a worktree of its own, unless it is there.
fn build(folder: &Path, commit: &str) -> Outcome<PathBuf> {
    let program = folder.join(format!("shale-{commit}"));
    if program.exists() {
        return Ok(program);
    }
    let tree = folder.join("tree");
    if tree.join(".git").exists() {
        let mut checkout = git();
        checkout.current_dir(&tree).args(["checkout", "--quiet", "--force", "--detach", commit]);
        run(&mut checkout, "checking out the other commit")?;
    } else {
        // What is left of a worktree whose folder was removed is in the way.
        run(git().args(["worktree", "prune"]), "forgetting worktrees that are gone")?;
        let mut add = git();
        add.args(["worktree", "add", "--quiet", "--detach"]).arg(&tree).arg(commit);
        run(&mut add, "making a worktree of the other commit")?;
    }
    let (mut command, target) = (cargo(), folder.join("target"));
    command
        .current_dir(&tree)
        .args(["build", "--package", "shaledb-cli"])
        .env("CARGO_TARGET_DIR", &target);
    run(&mut command, "building the other commit's shale")?;
    let built = target.join("debug/shale");
    std::fs::copy(&built, &program).map_err(|error| failed("copy", &built, &error))?;
    Ok(program)
}

/// By how much a figure changed, if that is worth a word.
fn change(figure: &Figure, here: f64, there: f64) -> Option<String> {
    let difference = here - there;
    if difference.abs() <= figure.nothing || difference.abs() <= ALIKE * there.abs() {
        return None;
    }
    // Of shares, and of what was nothing, a ratio says nothing.
    if figure.at == "/slowed_share" || there.abs() <= figure.nothing {
        return Some(format!(
            "* {}{}",
            if difference > 0.0 { "+" } else { "" },
            (figure.print)(difference)
        ));
    }
    Some(format!("* {:+.0} %", 100.0 * difference / there))
}

/// Scenarios below each other; with another commit each has its figures too, and what changed.
fn table(here: &[Told], there: Option<&(String, Vec<Told>)>) -> String {
    let mut heads = vec!["scenario", ""];
    heads.extend(FIGURES.iter().map(|figure| figure.name));
    let mut table = plain_table(&heads);
    let row = |name: &str, of: &str, told: &Outcome<Vec<f64>>| -> Vec<String> {
        let mut cells = vec![name.to_owned(), of.to_owned()];
        match told {
            Ok(values) => {
                cells.extend(FIGURES.iter().zip(values).map(|(f, value)| (f.print)(*value)));
            }
            Err(why) => cells.push(why.clone()),
        }
        cells
    };
    for (at, (name, told)) in here.iter().enumerate() {
        table.add_row(row(name, if there.is_some() { "today" } else { "" }, told));
        let Some((other, there)) = there else { continue };
        table.add_row(row("", other, &there[at].1));
        if let (Ok(here), Ok(there)) = (told, &there[at].1) {
            let figures = FIGURES.iter().zip(here.iter().zip(there));
            let changes =
                figures.map(|(f, (here, there))| change(f, *here, *there).unwrap_or_default());
            table.add_row([String::new(), String::new()].into_iter().chain(changes));
        }
    }
    table.trim_fmt()
}

/// How many figures changed.
fn summary(here: &[Told], there: &[Told], name: &str) -> String {
    let mut changed = Vec::new();
    for ((scenario, here), (_, there)) in here.iter().zip(there) {
        let count = match (here, there) {
            (Ok(here), Ok(there)) => FIGURES
                .iter()
                .zip(here.iter().zip(there))
                .filter(|(figure, (here, there))| change(figure, **here, **there).is_some())
                .count(),
            (Err(one), Err(other)) => usize::from(one != other),
            _ => 1,
        };
        if count > 0 {
            changed.push(format!("{scenario} ({count})"));
        }
    }
    if changed.is_empty() {
        return format!("No figure differs from {name} by more than a hundredth.");
    }
    format!("Differences from {name}, marked *: {}.", changed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_chosen_by_a_part_of_their_name() {
        let text = "# why\n3 GB: --size 3GB --for 1h\n1 TB: --size 1TB\n";
        let all = scenarios(text, &[]).unwrap();
        assert_eq!(all[0], ("3 GB".to_owned(), "--size 3GB --for 1h".to_owned()));
        assert_eq!(scenarios(text, &["TB".to_owned()]).unwrap(), all[1..]);
        let none = scenarios(text, &["PB".to_owned()]).unwrap_err();
        assert!(none.contains("with PB. There are: 3 GB, 1 TB"), "{none}");
    }

    #[test]
    fn what_changed_is_marked_and_the_rest_is_not() {
        let figures = |amp: f64, slowed: f64| vec![amp, 1e9, 2e9, 0.5, 1e7, slowed, 1e8];
        let here: Vec<Told> = vec![
            ("same".to_owned(), Ok(figures(4.0, 0.0))),
            ("worse".to_owned(), Ok(figures(6.0, 0.03))),
            ("gone".to_owned(), Err("error: it is refused".to_owned())),
        ];
        let there: Vec<Told> = vec![
            ("same".to_owned(), Ok(figures(4.02, 0.0))),
            ("worse".to_owned(), Ok(figures(4.0, 0.0))),
            ("gone".to_owned(), Ok(figures(1.0, 0.0))),
        ];
        let said = summary(&here, &there, "main");
        assert_eq!(said, "Differences from main, marked *: worse (2), gone (1).");
        let drawn = table(&here, Some(&("main".to_owned(), there.clone())));
        let lines: Vec<&str> = drawn.lines().filter(|line| line.contains('*')).collect();
        assert_eq!(lines.len(), 1, "{drawn}");
        assert!(lines[0].contains("* +50 %") && lines[0].contains("* +3.0 %"), "{drawn}");
        assert!(drawn.contains("it is refused"), "{drawn}");
        assert!(summary(&there, &there, "main").starts_with("No figure differs from main"));
    }
}
