use super::*;
use crate::setup::Setup;
use crate::workloads::kv::KvOptions;
use crate::workloads::workload::Workload;
use clap::Parser;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    kv: KvOptions,
}

fn job() -> Job {
    Job {
        engine: "fake".to_owned(),
        folder: "/nowhere".into(),
        setup: Setup::default(),
        workload: Workload::Kv(Flags::parse_from(["x"]).kv),
        step: "fillseq".to_owned(),
        setting: String::new(),
        repeat: 0,
        seed: 1,
        live_bytes: None,
    }
}

/// A driver that is a shell script; `$job` is the job's line.
fn script(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("read -r job; {text}"));
    command
}

fn outcome(text: &str, patience: f64, stopped: &dyn Fn() -> bool) -> Result<Row, Trouble> {
    bounded(text, patience, stopped, None)
}

fn bounded(
    text: &str,
    patience: f64,
    stopped: &dyn Fn() -> bool,
    bound: Option<&Bound>,
) -> Result<Row, Trouble> {
    let mut hear = |_: &str, _: Option<&Progress>| ();
    let mut attention = Attention { patience, stopped, hear: &mut hear };
    run(script(text), &job(), bound, &mut attention)
}

fn why(outcome: Result<Row, Trouble>) -> String {
    match outcome {
        Err(Trouble::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn row_line() -> String {
    let row = Row { step: "fillseq".to_owned(), ops: 7, ..Row::default() };
    serde_json::to_string(&Event::Row(Box::new(row))).unwrap()
}

#[test]
fn a_row_is_taken_over() {
    let text = format!(
        "case \"$job\" in *fillseq*) ;; *) exit 1;; esac; echo noise; echo '{{\"doing\":\"x\"}}'; \
         echo '{}'",
        row_line()
    );
    assert_eq!(outcome(&text, 60.0, &|| false).unwrap().ops, 7);
}

#[test]
fn failures_are_explained() {
    let never = || false;
    let reported = outcome("echo '{\"failed\":\"the disk is full\"}'; exit 1", 60.0, &never);
    assert_eq!(why(reported), "the disk is full");
    let silent = why(outcome("echo 'Abort: page 3' >&2; exit 7", 60.0, &never));
    assert!(silent.contains("exit status: 7") && silent.contains("page 3"), "{silent}");
    let killed = why(outcome("kill -9 $$", 60.0, &never));
    assert!(killed.contains("signal 9"), "{killed}");
    let late = why(outcome(&format!("echo '{}'; exit 2", row_line()), 60.0, &never));
    assert!(late.contains("then failed"), "{late}");
    let missing = Command::new("/no/such/program");
    let mut hear = |_: &str, _: Option<&Progress>| ();
    let mut attention = Attention { patience: 60.0, stopped: &never, hear: &mut hear };
    assert!(why(run(missing, &job(), None, &mut attention)).contains("/no/such/program"));
}

#[test]
fn the_first_and_the_last_words_of_a_driver_are_kept() {
    let many = why(outcome("seq 1 100 >&2; exit 7", 60.0, &|| false));
    let lines: Vec<&str> = many.lines().skip(1).collect();
    assert_eq!((lines[0], lines[9], lines[10]), ("1", "10", "... (80 lines)"));
    assert_eq!((lines[11], lines[20], lines.len()), ("91", "100", 21));
    let few = why(outcome("seq 1 20 >&2; exit 7", 60.0, &|| false));
    assert_eq!(few.lines().skip(1).collect::<Vec<_>>().join(" ").len(), 50, "{few}");
}

#[test]
fn a_driver_that_hangs_is_ended_with_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("child");
    // The grandchild would keep the pipes open for long.
    let text = format!("sleep 1000 & echo $! >{}; wait", file.display());
    let why = why(outcome(&text, 0.5, &|| false));
    assert!(why.contains("did nothing") && why.contains("--patience"), "{why}");
    assert_gone(&file);
}

#[test]
fn work_is_a_sign_of_life() {
    // Steps of half a second for two seconds, with a patience of one.
    let progress = |ops: u64| {
        let progress = Progress { ops, ..Progress::default() };
        serde_json::to_string(&Event::Progress(progress)).unwrap()
    };
    let steps: String =
        (1..=4).map(|ops| format!("sleep 0.5; echo '{}';", progress(ops))).collect();
    let text = format!("{steps} echo '{}'", row_line());
    assert!(outcome(&text, 1.9, &|| false).is_ok());
    // The same, but nothing is done.
    let text = format!("while sleep 0.1; do echo '{}'; done", progress(0));
    assert!(why(outcome(&text, 1.0, &|| false)).contains("did nothing"));
}

#[test]
fn a_stop_ends_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("child");
    let text = format!("sleep 1000 & echo $! >{}; wait", file.display());
    let there = || std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'));
    assert!(matches!(outcome(&text, 60.0, &there), Err(Trouble::Stopped)));
    assert_gone(&file);
}

fn assert_gone(file: &std::path::Path) {
    let id = std::fs::read_to_string(file).unwrap();
    let stat = std::path::PathBuf::from(format!("/proc/{}/stat", id.trim()));
    // Whoever inherited it may not have waited for it yet: then it is a zombie.
    for _ in 0..500 {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        if text.is_empty() || text.contains(") Z ") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {} goes on", id.trim());
}

/// A process and its parent, as the system lists it; `None` if it is gone.
fn parent(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

#[test]
fn only_the_driver_and_what_it_starts_are_bound() {
    // Without the right to make groups there is nothing to try.
    let Ok(bound) = Bound::new(256 << 20) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (started, seen) = (dir.path().join("started"), dir.path().join("seen"));
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let text = format!(
        "sleep 1000 & echo $$ $! >{}.tmp; mv {0}.tmp {0}; until [ -e {} ]; do sleep 0.05; done; \
         kill $!; echo '{}'",
        started.display(),
        seen.display(),
        row_line()
    );
    let family = std::cell::RefCell::new(Vec::new());
    let look = || {
        let Ok(ids) = std::fs::read_to_string(&started) else { return false };
        if family.borrow().is_empty() {
            let ids: Vec<u32> = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
            let members = bound.processes().unwrap();
            assert!(ids.iter().all(|id| members.contains(id)), "{ids:?} in {members:?}");
            // Those that ended since they were listed have no parent any more.
            for (member, parent) in members.iter().filter_map(|&id| Some((id, parent(id)?))) {
                assert!(member == ids[0] || parent == ids[0], "{member} of {parent}, {ids:?}");
            }
            assert!(!members.contains(&std::process::id()) && !members.contains(&bystander.id()));
            *family.borrow_mut() = ids;
            std::fs::write(&seen, "").unwrap();
        }
        false
    };
    assert_eq!(bounded(&text, 60.0, &look, Some(&bound)).unwrap().ops, 7);
    assert_eq!(family.borrow().len(), 2);
    drop(bound);
    assert!(bystander.try_wait().unwrap().is_none(), "it was ended with the group");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_kill_is_the_bounds_only_if_it_was() {
    let never = || false;
    let Ok(bound) = Bound::new(16 << 20) else { return };
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    // The page cache fills the group, which is no reason to end anything.
    let text = format!("head -c 40000000 /dev/zero >{}/a; kill -9 $$", dir.path().display());
    let other = why(bounded(&text, 60.0, &never, Some(&bound)));
    assert!(other.contains("signal 9") && !other.contains("--memory-bound"), "{other}");
    assert!(bound.hits() > 0);
    let text = "head -c 64000000 /dev/zero | tail -n 1 | wc -c; kill -9 $$";
    let hungry = why(bounded(text, 60.0, &never, Some(&bound)));
    assert!(hungry.contains("--memory-bound"), "{hungry}");
}
