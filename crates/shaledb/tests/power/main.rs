//! Power loss, recorded from a real process: a child works on a database on the real disk with every
//! call that changes files recorded in order (`record.c`, preloaded), and says what it was told is
//! durable. Of the record are made the disks that a power loss may leave at many of its moments:
//! what was not synced is kept, lost, or torn by sectors; names are durable by a sync of their
//! directory only. The engine opens each on the real disk: all that was acknowledged as durable is
//! there, nothing is there in part, and the files verify.
//!
//! That this can fail is shown by children whose syncs of one kind are left out and told as done:
//! for each kind some disk is found wrong. `SHALE_EXHAUSTIVE=1` looks at every moment.

mod disk;
mod program;

use disk::{Event, Fate, Recorder, events};
use program::{LONG_LOG, Report, State, Step, perform, program};
use shaledb::{Config, Db, TreeConfig};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHILD: &str = "SHALE_POWER_CHILD";
const SEED: &str = "SHALE_POWER_SEED";

/// Small, so that flushes, compactions and changes of the log happen all the time.
fn config() -> Config {
    Config {
        memory_bytes: 8 << 20,
        memtable_bytes: 64 << 10,
        table_bytes: 64 << 10,
        background_threads: 1,
        tree: TreeConfig { block_bytes: 1024, blob_bytes: 4096, ..TreeConfig::default() },
        ..Config::default()
    }
}

fn exhaustive() -> bool {
    std::env::var_os("SHALE_EXHAUSTIVE").is_some()
}

/// The child: works through the program and says before and after each step where it is.
#[test]
fn child() {
    let (Some(root), Ok(seed)) = (std::env::var_os(CHILD), std::env::var(SEED)) else { return };
    let root = PathBuf::from(root);
    let seed = seed.parse().unwrap();
    let mut config = config();
    if seed == LONG_LOG {
        (config.memory_bytes, config.memtable_bytes) = (64 << 20, 16 << 20);
    }
    let mut report = Report::new(&root.join("ACKS"));
    perform(&root, &config, &program(seed), &mut report);
}

/// What a child has done.
struct Recorded {
    events: Vec<Event>,
    steps: Vec<Step>,
    /// The state after so many steps.
    states: Vec<State>,
    root: PathBuf,
}

/// Where the shared library for recording is made.
fn recorder(dir: &Path) -> PathBuf {
    let library = dir.join("record.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power/record.c");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    let output = compiler.args(["-ldl", "-lpthread"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// Runs a child; with `skip` the syncs of such files are left out.
fn record(dir: &Path, seed: u64, skip: Option<&str>) -> Recorded {
    let library = recorder(dir);
    let (root, log) = (dir.join("world"), dir.join("events"));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir(&root).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["child", "--exact", "--test-threads=1", "--nocapture"]);
    child.env(CHILD, &root).env(SEED, seed.to_string());
    child.env("LD_PRELOAD", &library).env("POWER_LOG", &log).env("POWER_ROOT", &root);
    if let Some(skip) = skip {
        child.env("POWER_SKIP", skip);
    }
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
    let steps = program(seed);
    let mut state = State::default();
    let mut states = vec![state.clone()];
    for step in &steps {
        state.apply(step);
        states.push(state.clone());
    }
    Recorded { events: events(&std::fs::read(&log).unwrap()), steps, states, root }
}

/// The disks that the power may leave, looked at.
#[derive(Debug, Default)]
struct Tally {
    disks: u64,
    /// How many had lost something that was not acknowledged as durable.
    shortened: u64,
    checkpoints: u64,
    prepared: u64,
}

/// Looks at about `count` disks of what was recorded; what is wrong with the first that is.
fn examine(recorded: &Recorded, count: usize, tally: &mut Tally) -> Result<(), String> {
    // The child has worked on a disk; what is made of the record need not be durable.
    let memory = Path::new("/dev/shm");
    let scratch = match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    };
    let mut recorder = Recorder::new(&recorded.root);
    let changes = recorded.events.iter().filter(|event| event.changes()).count();
    let stride = if exhaustive() { 1 } else { (changes / count).max(1) };
    let mut at = 0;
    let mut next = 0;
    for event in &recorded.events {
        recorder.apply(event);
        if !event.changes() {
            continue;
        }
        at += 1;
        // Moments at odd distances, so that none of a repeated sequence is always missed.
        if at < next {
            continue;
        }
        next = at + 1 + (at * 7919) % (2 * stride - 1).max(1);
        let fates = [Fate::Lost, Fate::Torn(at as u64), Fate::Torn(at as u64 + 1_000_000)];
        for fate in fates.into_iter().take(if exhaustive() { 3 } else { 1 + at % 3 }) {
            look(recorded, &recorder, fate, scratch.path(), tally)
                .map_err(|what| format!("after change {at} of {changes}, {fate:?}: {what}"))?;
        }
    }
    for fate in [Fate::Lost, Fate::Kept] {
        look(recorded, &recorder, fate, scratch.path(), tally)?;
    }
    Ok(())
}

/// Opens one disk and compares.
fn look(
    recorded: &Recorded,
    recorder: &Recorder,
    fate: Fate,
    scratch: &Path,
    tally: &mut Tally,
) -> Result<(), String> {
    let root = scratch.join("disk");
    let _ = std::fs::remove_dir_all(&root);
    recorder.write(fate, &root);
    tally.disks += 1;
    let (low, high) = (recorder.durable_steps(&recorded.steps), recorder.begun_steps());
    let path = root.join("db");
    if !path.join("CURRENT").exists() && low == 0 {
        return Ok(());
    }
    let states = &recorded.states[low..=high.min(recorded.steps.len())];
    let found = check(&path, states)?;
    tally.shortened += u64::from(found + 1 < states.len());
    tally.prepared += u64::from(!states[found].prepared.is_empty());
    // Of the checkpoints that are done the newest.
    for number in (1..=recorder.acked_steps()).rev() {
        if let Step::Checkpoint(name) = &recorded.steps[number - 1] {
            check(&root.join(name), &recorded.states[number - 1..number])
                .map_err(|what| format!("checkpoint {name}: {what}"))?;
            tally.checkpoints += 1;
            break;
        }
    }
    Ok(())
}

/// Which of the states the database is in; it must be one of them, and work.
fn check(path: &Path, states: &[State]) -> Result<usize, String> {
    let told = |error: shaledb::Error| error.to_string();
    let db = Db::open(path, Config { create: false, ..config() }).map_err(told)?;
    let found = State::of(&db).map_err(told)?;
    let report = db.verify(&mut |_| ()).map_err(told)?;
    if !report.damage.is_empty() {
        return Err(format!("{:?}", report.damage));
    }
    let Some(index) = states.iter().rposition(|state| *state == found) else {
        let nearest = states.last().unwrap();
        return Err(format!(
            "it is in none of {} states: {}",
            states.len(),
            found.against(nearest)
        ));
    };
    // What was prepared can be decided, and what was found is there once more.
    let mut wanted = states[index].clone();
    for prepared in db.prepared().map_err(told)? {
        wanted.apply(&Step::Decide(prepared.xid().to_vec(), true));
        prepared.commit(shaledb::WriteOptions::SYNC).map_err(told)?;
    }
    db.close().map_err(told)?;
    let db = Db::open_read_only(path, config()).map_err(told)?;
    if State::of(&db).map_err(told)? != wanted {
        return Err("after another open it is in another state".to_owned());
    }
    Ok(index)
}

#[test]
fn a_power_loss_at_any_moment_loses_nothing_that_was_durable() {
    let mut tally = Tally::default();
    let seeds = if exhaustive() { 1..7 } else { 1..2 };
    for seed in seeds {
        let dir = tempfile::tempdir().unwrap();
        let recorded = record(dir.path(), seed, None);
        let synced: BTreeSet<&str> = recorded.events.iter().filter_map(Event::synced).collect();
        for kind in ["wal", "table", "blob", "MANIFEST", "prepared", "run", "CURRENT", "/"] {
            assert!(synced.iter().any(|name| name.contains(kind)), "no sync of {kind}: {synced:?}");
        }
        examine(&recorded, 160, &mut tally).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    println!("{tally:?}");
    assert!(tally.disks > 100 && tally.shortened > 10, "{tally:?}");
    assert!(tally.checkpoints > 0 && tally.prepared > 0, "{tally:?}");
}

/// A log that is written through memory mapped ahead is as good as one that is written by calls.
#[test]
fn a_power_loss_leaves_of_a_mapped_log_what_was_durable() {
    let dir = tempfile::tempdir().unwrap();
    let log = shaledb::Env::os().fs.create_log(&dir.path().join("log"), 0).unwrap();
    if log.preparer().is_none() {
        println!("not on this file system");
        return;
    }
    let lengthened = |event: &&Event| matches!(event, Event::Cut { length, .. } if *length > 0 && length % 65_536 == 0);
    let ahead = |of: &Recorded| of.events.iter().filter(lengthened).count();
    // How many is a matter of when the thread that maps them runs: on a busy machine there may be
    // none.
    let record_one = |_| record(tempfile::tempdir().unwrap().path(), LONG_LOG, None);
    let recorded = (0..20).map(record_one).find(|recorded| ahead(recorded) > 2);
    let recorded = recorded.expect("pieces of the log are mapped ahead");
    let mut tally = Tally::default();
    examine(&recorded, 60, &mut tally).unwrap();
    assert!(tally.disks > 60 && tally.shortened > 20, "{tally:?}");
    let recorded = record(dir.path(), LONG_LOG, Some("wal"));
    examine(&recorded, 200, &mut tally).expect_err("syncs of the log were left out");
}

/// Each kind of sync is needed: without it some power loss is found that loses something.
#[test]
fn a_sync_that_is_left_out_is_found() {
    for kind in ["wal", "table", "blob", "MANIFEST", "run", "CURRENT", "/"] {
        let dir = tempfile::tempdir().unwrap();
        let recorded = record(dir.path(), 1, Some(kind));
        let found = examine(&recorded, 400, &mut Tally::default());
        let what = found.expect_err(kind);
        println!("without syncs of {kind}: {what}");
    }
}
