use super::folder::read_rows;
use super::room::{Room, room};
use super::sitting::Campaign;
use super::*;
use crate::measure::Bound;
use crate::run::row::Row;
use crate::setup::Setup;
use crate::workloads::kv::KvOptions;
use crate::workloads::planned::{PlannedStep, Start};
use crate::workloads::workload::Workload;
use clap::Parser;
use std::path::PathBuf;
use std::process::Command;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    kv: KvOptions,
    #[command(flatten)]
    campaign: CampaignOptions,
}

/// A driver that is a shell script. Its store is one file with a line for each step that was done
/// to it; the row has that file's lines as operations, and a hundred bytes for each as live. A step
/// that is named in `$dir/fail` fails after it wrote half a line, one that is named in `$dir/wait`
/// goes on for ever.
const DRIVER: &str = r#"
read -r job
field() { echo "$job" | sed "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/"; }
engine=$(field engine); step=$(field step); folder=$(field folder); repeat=$(field repeat)
echo "$engine $step $repeat" >>"$dir/log"
mkdir -p "$folder"
grep -q "^$engine $step$" "$dir/fail" 2>/dev/null && { printf half >>"$folder/steps"; exit 5; }
grep -q "^$engine $step$" "$dir/wait" 2>/dev/null && { printf half >>"$folder/steps"; \
    echo >"$dir/waiting"; while :; do sleep 1; done; }
echo "$step" >>"$folder/steps"
ops=$(($(wc -l <"$folder/steps"))); live=$(field live_bytes)
[ "$live" = null ] || live=$((live + 100))
echo "{\"row\":{\"schema\":2,\"workload\":\"kv\",\"step\":\"$step\",\"engine\":\"$engine\",\"repeat\":$repeat,\"ops\":$ops,\"live_bytes\":$live}}"
"#;

struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Lab {
        Lab(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn plan(&self, flags: &str) -> Plan {
        let words = ["x", "--engines", "a,b", "--patience", "100"];
        let flags = Flags::parse_from(words.into_iter().chain(flags.split_whitespace()));
        let options = CampaignOptions { db: Some(self.path("db")), ..flags.campaign };
        let group = options.group(Workload::Kv(flags.kv), &Setup::default());
        let plan = options.plan(vec![group]);
        plan.check().unwrap();
        plan
    }

    /// A sitting on the run's folder.
    fn sit(&self, plan: &Plan, stopped: &dyn Fn() -> bool) -> Outcome {
        std::fs::create_dir_all(self.path("run")).unwrap();
        let dir = self.0.path().to_owned();
        let driver = move |_: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", DRIVER]).env("dir", &dir);
            Ok(command)
        };
        let folder = self.path("run");
        let campaign = Campaign::open(folder, plan.clone(), None, &driver, stopped).unwrap();
        let outcome = campaign.all().unwrap();
        // Each step was told what the one before it left, whatever happened between them.
        let live = |row: &Row| row.live_bytes.is_none_or(|bytes| bytes == 100 * row.ops);
        assert!(outcome.rows.iter().all(live), "{:?}", outcome.rows);
        outcome
    }
}

fn never() -> bool {
    false
}

fn ops(outcome: &Outcome, engine: &str) -> Vec<(String, u64)> {
    let rows = outcome.rows.iter().filter(|row| row.engine == engine);
    rows.map(|row| (row.step.clone(), row.ops)).collect()
}

#[test]
fn engines_take_turns() {
    let lab = Lab::new();
    let plan = lab.plan("--benchmarks fillseq,overwrite,readrandom --repeats 2");
    let outcome = lab.sit(&plan, &never);
    assert_eq!((outcome.rows.len(), outcome.failed.len(), outcome.stopped), (12, 0, false));
    assert!(outcome.rows.iter().all(|row| row.live_bytes.is_some()));
    let log = lab.log();
    assert_eq!(log[..4], ["a fillseq 0", "b fillseq 0", "b overwrite 0", "a overwrite 0"]);
    assert_eq!(log[6..8], ["b fillseq 1", "a fillseq 1"]);
    // Each repeat begins with an empty store.
    let steps = ["fillseq", "overwrite", "readrandom"];
    let wanted: Vec<(String, u64)> = (0..2)
        .flat_map(|_| steps.iter().zip(1..).map(|(step, ops)| ((*step).to_owned(), ops)))
        .collect();
    assert_eq!(ops(&outcome, "a"), wanted);
    assert_eq!(ops(&outcome, "b"), wanted);
    assert!(!lab.path("db").exists(), "the folder of stores that the run made is removed");
    // All is done: another sitting does nothing.
    let again = lab.sit(&plan, &never);
    assert_eq!((again.rows.len(), lab.log().len()), (12, 12));
}

#[test]
fn one_engine_fails_alone() {
    let lab = Lab::new();
    lab.write("fail", "b overwrite\n");
    let plan = lab.plan("--benchmarks fillseq,overwrite,readrandom,fillrandom");
    let outcome = lab.sit(&plan, &never);
    assert_eq!(outcome.failed.len(), 1, "{:?}", outcome.failed);
    assert!(outcome.failed[0].contains("overwrite of b") && outcome.failed[0].contains("next 1"));
    assert_eq!(ops(&outcome, "a").len(), 4);
    // What would find a broken store is left out; what begins anew is not.
    assert_eq!(ops(&outcome, "b"), [("fillseq".to_owned(), 1), ("fillrandom".to_owned(), 1)]);
    let text = std::fs::read_to_string(lab.path("run/failed.jsonl")).unwrap();
    assert!(text.contains("\"engine\":\"b\"") && text.contains("exit status: 5"), "{text}");

    // Mended, it is tried again, on a store that has gone through what it should.
    std::fs::remove_file(lab.path("fail")).unwrap();
    let outcome = lab.sit(&plan, &never);
    assert!(outcome.failed.is_empty());
    let of_b = ops(&outcome, "b");
    assert!(of_b.contains(&("overwrite".to_owned(), 2)), "{of_b:?}");
    assert!(of_b.contains(&("readrandom".to_owned(), 3)), "{of_b:?}");
}

#[test]
fn a_run_that_was_stopped_goes_on() {
    let lab = Lab::new();
    lab.write("wait", "b overwrite\n");
    let plan = lab.plan("--benchmarks fillseq,overwrite,readrandom");
    let waiting = lab.path("waiting");
    let outcome = lab.sit(&plan, &|| waiting.exists());
    assert!(outcome.stopped);
    assert_eq!(outcome.rows.len(), 2);
    std::fs::remove_file(lab.path("wait")).unwrap();

    let outcome = lab.sit(&plan, &never);
    assert_eq!((outcome.rows.len(), outcome.stopped), (6, false));
    for engine in ["a", "b"] {
        let mut all = ops(&outcome, engine);
        all.sort();
        let wanted = [("fillseq", 1), ("overwrite", 2), ("readrandom", 3)];
        assert_eq!(all, wanted.map(|(step, ops)| (step.to_owned(), ops)));
    }
    // The store that a step was working on is filled again; the other one is as it was left.
    let fills = |engine: &str| {
        let line = format!("{engine} fillseq 0");
        lab.log().iter().filter(|known| **known == line).count()
    };
    assert_eq!((fills("a"), fills("b")), (1, 2));
}

#[test]
fn a_line_that_was_cut_off_is_done_again() {
    let lab = Lab::new();
    let plan = lab.plan("--benchmarks fillseq,readrandom");
    let first = lab.sit(&plan, &never);
    let rows = std::fs::read_to_string(lab.path("run/rows.jsonl")).unwrap();
    lab.write("run/rows.jsonl", &rows[..rows.len() - 10]);
    let outcome = lab.sit(&plan, &never);
    assert_eq!(outcome.rows.len(), first.rows.len());
    let again = std::fs::read_to_string(lab.path("run/rows.jsonl")).unwrap();
    assert_eq!(again.lines().count(), 4);
    lab.write("run/rows.jsonl", "{\"schema\":2}\nnoise\n");
    let error = read_rows(&lab.path("run/rows.jsonl")).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn stores_may_be_kept_and_read_by_another_run() {
    let lab = Lab::new();
    lab.sit(&lab.plan("--benchmarks fillseq --keep"), &never);
    assert!(lab.path("db/a/steps").exists());
    std::fs::remove_dir_all(lab.path("run")).unwrap();
    let outcome = lab.sit(&lab.plan("--benchmarks readrandom --keep"), &never);
    assert_eq!(ops(&outcome, "a"), [("readrandom".to_owned(), 2)]);

    let other = Lab::new();
    let outcome = other.sit(&other.plan("--benchmarks readrandom"), &never);
    assert_eq!(outcome.failed.len(), 2);
    assert!(outcome.failed[0].contains("there is none in"), "{:?}", outcome.failed);
}

#[test]
fn a_run_does_not_go_on_with_the_store_of_another() {
    let lab = Lab::new();
    lab.write("wait", "b readrandom\n");
    let waiting = lab.path("waiting");
    let plan = lab.plan("--benchmarks fillseq,readrandom --keep");
    assert!(lab.sit(&plan, &|| waiting.exists()).stopped);
    std::fs::remove_file(lab.path("wait")).unwrap();
    // Another run fills the same stores, and goes on with them.
    std::fs::rename(lab.path("run"), lab.path("first")).unwrap();
    let other = lab.plan("--benchmarks fillrandom,overwrite,overwrite --keep");
    assert!(lab.sit(&other, &never).failed.is_empty());

    std::fs::rename(lab.path("run"), lab.path("second")).unwrap();
    std::fs::rename(lab.path("first"), lab.path("run")).unwrap();
    let outcome = lab.sit(&plan, &never);
    for engine in ["a", "b"] {
        let wanted = [("fillseq".to_owned(), 1), ("readrandom".to_owned(), 2)];
        assert_eq!(ops(&outcome, engine), wanted, "{engine}");
    }
}

#[test]
fn repeats_on_a_store_that_was_there_are_of_that_store() {
    let lab = Lab::new();
    let run = |flags: &str, folder: &str| {
        let outcome = lab.sit(&lab.plan(flags), &never);
        std::fs::rename(lab.path("run"), lab.path(folder)).unwrap();
        outcome.failed.len()
    };
    assert_eq!(run("--benchmarks fillseq --keep", "first"), 0);
    assert_eq!(run("--benchmarks readrandom --keep", "second"), 0);
    assert_eq!(run("--benchmarks fillrandom --keep", "third"), 0);
    std::fs::rename(lab.path("second"), lab.path("run")).unwrap();
    let more = lab.sit(&lab.plan("--benchmarks readrandom --repeats 2 --keep"), &never);
    assert_eq!((more.rows.len(), more.failed.len()), (2, 2));
    assert!(more.failed[0].contains("another run has changed"), "{:?}", more.failed);
}

#[test]
fn two_processes_do_not_share_a_run() {
    let lab = Lab::new();
    let plan = lab.plan("--benchmarks fillseq");
    std::fs::create_dir_all(lab.path("run")).unwrap();
    let driver = |_: &str| Ok(Command::new("true"));
    let open = || Campaign::open(lab.path("run"), plan.clone(), None, &driver, &never);
    let first = open().unwrap();
    let why = open().err().unwrap().to_string();
    assert!(why.contains("another `shale bench` works on the run"), "{why}");
    drop(first);
    open().unwrap();
}

#[test]
fn too_small_a_disk_is_refused() {
    let lab = Lab::new();
    let plan = lab.plan("--num 1000000G");
    let Room::Short(text) = room(&Plan { stores: lab.path(""), ..plan }).unwrap() else {
        panic!("a disk of more than an exabyte");
    };
    assert!(text.contains("which has"), "{text}");
    let small = lab.plan("--num 1000");
    // Two engines, the data and as much again.
    assert_eq!(small.disk_bytes(), 2 * 2 * 270_000);
}

#[test]
fn settings_of_one_engine_on_one_workload_are_alternatives() {
    let lab = Lab::new();
    let mut plan = lab.plan("");
    // Two engines, and a second workload for one of them.
    let mut other = plan.groups[0].clone();
    other.subjects[0].setting = "large".to_owned();
    other.subjects.truncate(1);
    plan.groups.push(other);
    assert!(!plan.has_alternatives());
    let mut more = plan.groups[1].subjects[0].clone();
    more.setting = "zstd".to_owned();
    plan.groups[1].subjects.push(more);
    assert!(plan.has_alternatives());
}

#[test]
fn memory_is_bounded_or_a_note_says_why() {
    let lab = Lab::new();
    let plan = lab.plan("--benchmarks fillseq --memory-bound 100M");
    assert!(plan.cold);
    let outcome = lab.sit(&plan, &never);
    let row = &outcome.rows[0];
    match Bound::new(1 << 30) {
        Ok(_) => assert_eq!(row.memory_bound, Some(100 << 20)),
        Err(_) => assert!(row.notes[0].contains("not bounded"), "{:?}", row.notes),
    }
}

#[test]
fn copies_are_saved_for_those_that_come_later() {
    let step = |name: &str, start: Start| PlannedStep { name: name.to_owned(), start };
    let after = |name: &str| Start::After(name.to_owned());
    let steps = [
        step("load", Start::Fresh),
        step("q1", after("load")),
        step("q2", after("load")),
        step("q3", after("q2")),
    ];
    let wanted: Vec<bool> = (0..4).map(|at| plan::is_wanted_later(&steps, at)).collect();
    // The step that just follows finds its store as it is.
    assert_eq!(wanted, [true, false, false, false]);
}

#[test]
fn plans_are_read_back_and_newer_ones_refused() {
    let lab = Lab::new();
    let plan = lab.plan("--repeats 3");
    let text = serde_json::to_string(&plan).unwrap();
    lab.write("plan.json", &text);
    assert_eq!(read_plan(lab.0.path()).unwrap().repeats, 3);
    lab.write("plan.json", &text.replacen("\"schema\":1", "\"schema\":9", 1));
    let error = read_plan(lab.0.path()).unwrap_err().to_string();
    assert!(error.contains("schema 9"), "{error}");
    assert!(read_plan(&lab.path("none")).unwrap_err().to_string().contains("not the folder"));
}

#[test]
fn the_same_engine_twice_is_refused() {
    let lab = Lab::new();
    let mut plan = lab.plan("");
    plan.groups[0].subjects[1].engine = "a".to_owned();
    assert!(plan.check().unwrap_err().contains("named twice"));
    plan.groups[0].subjects[1].setting = "lz4, small".to_owned();
    plan.check().unwrap();
    assert_eq!(plan.groups[0].folder(1), "a-lz4__small");
}

#[test]
fn drivers_that_are_missing_are_named() {
    let missing = driver("no-such-engine").unwrap_err().to_string();
    assert!(missing.contains("the engines are shale"), "{missing}");
    assert!(driver("shale").is_ok());
}
