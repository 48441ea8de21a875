use super::draw::Draw;
use super::work::{TREES, client_costs, open, run};
use super::*;
use crate::generate::Random;
use crate::options::Skew;
use crate::run::row::Row;
use crate::run::work::Named;
use crate::setup::Setup;
use crate::stores::engine::{Engine, Handle, Metrics, Result, TreeId};
use crate::stores::kv::KvStore;
use crate::stores::model::Model;
use crate::stores::null::{Null, NullHandle};
use crate::workloads::planned::{PlannedStep, Start};
use clap::Parser;
use std::path::Path;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: KvOptions,
}

fn options(flags: &str) -> KvOptions {
    Command::parse_from(std::iter::once("x").chain(flags.split_whitespace())).options
}

fn run_all(options: &KvOptions) -> Vec<Row> {
    let dir = tempfile::tempdir().unwrap();
    let store = KvStore::<Model>::open(dir.path(), &Setup::default(), &TREES).unwrap();
    let steps = options.planned();
    let one = |step: &PlannedStep| run_step(&store, options, &step.name);
    steps.iter().map(one).collect()
}

fn run_step(store: &KvStore<Model>, options: &KvOptions, step: &str) -> Row {
    let named = Named { workload: "kv", step, opened: None };
    let benchmark = options.step(step).unwrap();
    run(store, options, benchmark, 1, (0.0, 0.0), &named, &mut |_| ()).unwrap()
}

#[test]
fn every_benchmark_gives_a_row() {
    let options = options(
        "--benchmarks fillseq,readseq,overwrite,readrandom,seekrandom,readwhilewriting,wait_idle,\
         deleterandom,fillrandom,overwrite --num 2000 --threads 3",
    );
    let rows = run_all(&options);
    let names: Vec<&str> = rows.iter().map(|row| row.step.as_str()).collect();
    assert_eq!(names[..2], ["fillseq", "readseq"]);
    assert_eq!(names[9], "overwrite (2)");
    assert_eq!((rows[0].ops, rows[1].ops), (2000, 6000));
    assert_eq!((rows[3].found, rows[4].found), (2000, 2000));
    assert!(rows[5].writer.is_some());
    assert!(rows[0].counted.user_bytes > 2000 * 120);
    assert_eq!(rows[1].counted.read_bytes, 3 * rows[0].counted.user_bytes);
    assert_eq!(rows[1].latency_us["row"].count, 6000);
    assert_eq!((rows[6].ops, rows[6].unit.as_str()), (1, "wait_idle"));
    assert_eq!((rows[8].ops, rows[9].ops), (2000, 2000));
}

#[test]
fn a_step_that_finds_little_has_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let store = KvStore::<Model>::open(dir.path(), &Setup::default(), &TREES).unwrap();
    run_step(&store, &options("--num 500"), "fillseq");
    let notes = |num: &str, step: &str| {
        let flags = format!("--benchmarks {step} --num {num}");
        run_step(&store, &options(&flags), step).notes
    };
    for step in ["fillseq", "overwrite", "readrandom", "readmissing", "updaterandom"] {
        assert_eq!(notes("500", step), [""; 0], "{step}");
    }
    let few = notes("5000", "readrandom");
    assert!(few.len() == 1 && few[0].contains("of 5000 operations found a key"), "{few:?}");
}

#[test]
fn a_read_of_many_keys_is_one_operation_that_counts_all_bytes() {
    let rows = run_all(&options(
        "--benchmarks fillseq,multireadrandom,scanrandom,prefixscan,readmissing,updaterandom \
         --num 2000 --threads 2 --key-bytes 20 --value-bytes 100 --scan-rows 50",
    ));
    let pair = 120;
    let is = |row: &Row, ops, unit: &str, kind: &str| {
        assert_eq!((row.ops, row.unit.as_str()), (ops, unit), "{}", row.step);
        assert_eq!(row.latency_us[kind].count, ops, "{}", row.step);
    };
    let [_, multi, scans, prefixes, missing, updates] = &rows[..] else { panic!("{rows:?}") };
    is(multi, 20, "query", "multi_get");
    assert_eq!((multi.found, multi.counted.read_bytes), (20, 20 * 100 * pair));
    is(scans, 40, "query", "scan");
    // Those that begin near the end have fewer rows.
    assert_eq!((scans.found, scans.counted.read_bytes % pair), (40, 0));
    assert!((1900 * pair..=2000 * pair).contains(&scans.counted.read_bytes), "{scans:?}");
    is(prefixes, 16, "query", "scan");
    // The last prefix has 80 keys, every other one 128.
    let short = (16 * 128 * pair - prefixes.counted.read_bytes) / (48 * pair);
    assert_eq!(prefixes.counted.read_bytes, (16 * 128 - short * 48) * pair);
    assert!(prefixes.found == 16 && short < 8, "{prefixes:?}");
    is(missing, 2000, "read", "get");
    assert_eq!((missing.found, missing.counted.read_bytes), (0, 0));
    is(updates, 2000, "transaction", "update");
    assert_eq!(updates.found, 2000);
    let counted = (updates.counted.user_bytes, updates.counted.read_bytes);
    assert_eq!(counted, (2000 * pair, 2000 * pair));
}

#[test]
fn prefixes_of_short_keys_end_with_the_last_key_that_there_can_be() {
    let rows = run_all(&options(
        "--benchmarks fillseq,prefixscan --num 256 --ops 50 --key-bytes 1 --value-bytes 9",
    ));
    assert_eq!((rows[1].found, rows[1].counted.read_bytes), (50, 50 * 128 * 10));
}

#[test]
fn keys_between_others_need_room() {
    assert!(options("--benchmarks readmissing --key-bytes 9").check().is_ok());
    assert!(options("--benchmarks readrandom --key-bytes 8").check().is_ok());
    let why = options("--benchmarks fillseq,readmissing --key-bytes 8").check().unwrap_err();
    assert!(why.contains("--key-bytes") && why.contains("at least 9"), "{why}");
}

/// Has no updates.
struct Plain;

impl Engine for Plain {
    type Handle = NullHandle;
    const NAME: &'static str = "plain";

    fn version() -> String {
        String::new()
    }

    fn open(_: &Path, _: &Setup, _: &[&str]) -> Result<Plain> {
        Ok(Plain)
    }

    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }

    fn handle(&self) -> Result<NullHandle> {
        Null.handle()
    }

    fn clear_tree(&self, _: TreeId) -> Result<()> {
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics::default())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn an_engine_without_transactions_refuses_updates_and_says_so() {
    let open = |step| open::<Plain>(Path::new(""), &Setup::default(), step).map(|_| ());
    open(Benchmark::Overwrite).unwrap();
    let why = open(Benchmark::Updaterandom).unwrap_err().to_string();
    assert!(why.starts_with("plain has no transactions") && why.contains("--benchmarks"), "{why}");
}

#[test]
fn steps_begin_with_a_new_store_or_go_on() {
    let steps = options("--benchmarks fillseq,overwrite,fillrandom").planned();
    let starts: Vec<&Start> = steps.iter().map(|step| &step.start).collect();
    assert_eq!(starts, [&Start::Fresh, &Start::Continue, &Start::Fresh]);
}

#[test]
fn time_and_operations_end_a_benchmark() {
    let rows = run_all(&options(
        "--benchmarks fillseq,readrandom,readseq,overwrite --num 1000 --ops 1G --duration 0.05",
    ));
    assert_eq!(rows[0].ops, 1000);
    assert!(rows[1].ops > 0 && rows[1].ops < 1_000_000_000);
    // A scan ends with the last row whatever --ops says.
    assert!(rows[2].ops > 0 && rows[2].ops <= 1000);
    let rows = run_all(&options("--benchmarks fillseq,readseq,overwrite --num 1000 --ops 150"));
    assert_eq!((rows[0].ops, rows[1].ops, rows[2].ops), (1000, 150, 150));
}

#[test]
fn the_client_is_measured_on_an_engine_that_does_nothing() {
    let options = options("--num 1000");
    for benchmark in [
        "fillseq",
        "readrandom",
        "seekrandom",
        "readseq",
        "readwhilewriting",
        "multireadrandom",
        "scanrandom",
        "prefixscan",
        "readmissing",
        "updaterandom",
        "filluniquerandom",
        "readrandomwriterandom",
    ] {
        let step = options.step(benchmark).unwrap();
        let (client, writer) = client_costs(&options, step, 1).unwrap();
        assert!(client > 0.0, "{benchmark}");
        assert_eq!(writer > 0.0, benchmark == "readwhilewriting");
    }
    let error = options.step("sing").unwrap_err();
    assert!(error.contains("no step `sing`"));
}

#[test]
fn the_writer_has_its_bytes_a_second() {
    let options = options("--rate-limit 2 --key-bytes 20 --value-bytes 100-400");
    assert!((options.writer_rate() - 2.0 * 1048576.0 / 270.0).abs() < 1e-6);
    assert_eq!(options.data_bytes(), 270_000_000);
}

#[test]
fn live_bytes_are_those_that_are_there() {
    live_bytes_are_there(
        "--benchmarks fillseq,overwrite,deleterandom,readmissing,updaterandom,\
         multireadrandom,scanrandom,prefixscan,readrandom,overwrite,readwhilewriting,\
         fillrandom,readrandomwriterandom,filluniquerandom",
    );
    // Nothing is told of hot keys that are deleted and come again.
    live_bytes_are_there(
        "--skew zipf:0.9 --benchmarks fillrandom,overwrite,readrandom,updaterandom,fillseq,\
         deleterandom,fillrandom,readrandomwriterandom",
    );
}

fn live_bytes_are_there(flags: &str) {
    let options = options(&format!("{flags} --num 3000 --ops 4000"));
    let dir = tempfile::tempdir().unwrap();
    let store = KvStore::<Model>::open(dir.path(), &Setup::default(), &TREES).unwrap();
    let mut live = 0;
    for step in options.planned() {
        if step.start == Start::Fresh {
            store.engine.clear_tree(0).unwrap();
            live = 0;
        }
        let row = run_step(&store, &options, &step.name);
        live = options.live_bytes(&row, live);
        let mut right = 0;
        let mut handle = store.engine.handle().unwrap();
        let add = &mut |key: &[u8], value: &[u8]| {
            right += key.len() + value.len();
            true
        };
        handle.scan(0, b"", u64::MAX, add).unwrap();
        let share = live as f64 / right as f64;
        assert!((0.96..1.04).contains(&share), "{}: {live} instead of {right}", step.name);
    }
}

#[test]
fn keys_of_a_skew_are_hot_in_all_steps_and_lie_anywhere() {
    let hottest = |seed, name: &str| {
        let draw = Draw::new(Skew::Zipf(0.9), 10_000, seed);
        let mut random = Random::named(seed, name, 0);
        let mut counts = vec![0u32; 10_000];
        (0..200_000).for_each(|_| counts[draw.number(&mut random) as usize] += 1);
        let mut numbers: Vec<usize> = (0..10_000).collect();
        numbers.sort_by_key(|&number| std::cmp::Reverse(counts[number]));
        let share = f64::from(counts[numbers[0]]) / 200_000.0;
        // The sum of r^-0.9 over these ranks is 15.7.
        assert!((share - 1.0 / 15.7).abs() < 0.003, "{share}");
        numbers.truncate(20);
        numbers
    };
    let writes = hottest(1, "overwrite");
    assert_eq!(writes[..5], hottest(1, "readrandom")[..5]);
    assert_ne!(writes[..5], hottest(2, "overwrite")[..5]);
    let lower = writes.iter().filter(|&&number| number < 5_000).count();
    assert!((4..17).contains(&lower), "{writes:?}");
}

#[test]
fn reads_and_writes_come_in_their_share() {
    let rows = run_all(&options(
        "--benchmarks filluniquerandom,readrandomwriterandom --num 3000 --ops 20000 --threads 2 \
         --read-share 0.75 --idle-after",
    ));
    let [fill, mixed] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((fill.ops, fill.unit.as_str()), (3000, "write"));
    assert_eq!((mixed.ops, mixed.unit.as_str()), (20_000, "operation"));
    let (reads, writes) = (mixed.latency_us["get"].count, mixed.latency_us["put"].count);
    assert_eq!(reads + writes, 20_000);
    assert!((14_500..15_500).contains(&reads), "{reads}");
    // The fill has left no key out.
    assert_eq!(mixed.found, reads);
    assert!(mixed.extra.contains_key("idle_seconds") && fill.extra.contains_key("idle_seconds"));
    let all = |share| {
        let flags = "--benchmarks filluniquerandom,readrandomwriterandom --num 500 --read-share";
        run_all(&options(&format!("{flags} {share}")))[1].latency_us.clone()
    };
    assert!(!all(0).contains_key("get") && !all(1).contains_key("put"));
}

#[test]
fn writes_wait_for_their_rate() {
    let options = options(
        "--benchmarks filluniquerandom,readrandomwriterandom --num 1000 --ops 400 --read-share 0.5 \
         --write-rate 0.25 --key-bytes 20 --value-bytes 492 --threads 2",
    );
    assert_eq!(options.writes_per_second(), Some(256.0));
    let row = &run_all(&options)[1];
    // About 100 writes of each client, so many a second: no machine is too fast for it.
    let writes = row.latency_us["put"].count as f64;
    assert!(row.seconds >= 0.7 * writes / 512.0, "{} s for {writes}", row.seconds);
}
