//! Whole runs on the engine in memory: the same rows for the same seed, and rows that agree with
//! each other after several clients worked at once.

use super::choice::{self, Choice};
use super::graph::{self, Graph, GraphSession, LINK_TYPE, LinkRange, NODE_TYPE};
use super::load::{self, Rows};
use super::over_kv::{Checked, TREES, check};
use super::work::{client_costs, run, work};
use super::*;
use crate::run::pace::{Bounds, Pace, Seen, Total};
use crate::run::row::Row;
use crate::run::work::{Named, share};
use crate::setup::Setup;
use crate::stores::engine::{Engine, Handle};
use crate::stores::kv::KvStore;
use crate::stores::model::Model;
use crate::stores::null::Null;
use crate::workloads::planned::Start;
use clap::Parser;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Parser, Debug)]
struct Command {
    #[command(flatten)]
    options: LinkbenchOptions,
}

fn options(flags: &[&str]) -> LinkbenchOptions {
    Command::try_parse_from([&["x"], flags].concat()).unwrap().options
}

/// Runs a step as a driver would: each client on a thread, until its bound.
fn drive<G: Graph>(graph: &G, choice: &Choice, options: &LinkbenchOptions, step: Step) -> Total {
    let rows = Rows::default();
    let work = work(graph, choice, &rows, options, 1, step).unwrap();
    let (ops, count) = (work.ops, work.clients.len());
    let stop = AtomicBool::new(false);
    let mut all = Total::default();
    std::thread::scope(|threads| {
        let mut running = Vec::new();
        for (at, mut client) in work.clients.into_iter().enumerate() {
            let stop = &stop;
            let ops = ops.map(|ops| share(ops, count, at));
            running.push(threads.spawn(move || {
                let seen = Seen::default();
                let mut pace = Pace::new(Bounds { ops, ..Bounds::default() }, stop, &seen);
                client.run(&mut pace).unwrap();
                pace.total
            }));
        }
        running.into_iter().for_each(|thread| all.add(&thread.join().unwrap()));
    });
    all
}

fn open(dir: &Path) -> KvStore<Model> {
    KvStore::open(dir, &Setup::default(), &TREES).unwrap()
}

/// All rows of all trees.
fn rows(store: &KvStore<Model>) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let mut handle = store.engine.handle().unwrap();
    for tree in 0..TREES.len() {
        let mut see = |key: &[u8], value: &[u8]| {
            rows.push((tree, key.to_vec(), value.to_vec()));
            true
        };
        handle.scan(tree, b"", u64::MAX, &mut see).unwrap();
    }
    rows
}

#[test]
fn the_load_is_what_the_distribution_says() {
    let options = options(&["--maxid1", "5000", "--load-clients", "3", "--load-batch", "100"]);
    let choice = Choice::new(1, &options);
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let total = drive(&store, &choice, &options, Step::Load);
    let checked = check(&store).unwrap();
    let links: u64 = (1..=5000).map(|id| choice.loaded.links(id)).sum();
    assert_eq!(checked, Checked { nodes: 5000, links, visible: links });
    assert_eq!(total.latencies.len(), load::KINDS.len());
    let lists = (1..=5000).flat_map(|id| (0..2).map(move |t| (id, LINK_TYPE + t)));
    let counts = lists.filter(|&(id, t)| choice.loaded.links_of(id, t) > 0).count() as u64;
    assert_eq!(total.ops, 5000 + links + counts);
    let mut session = store.session().unwrap();
    for id in [1, 2, 4999, 5000] {
        assert!(session.get_node(NODE_TYPE, id, &mut |_| ()).unwrap());
        let count = session.count_links(id, LINK_TYPE).unwrap().unwrap_or(0);
        assert_eq!(count, choice.loaded.links_of(id, LINK_TYPE));
    }
    assert!(!session.get_node(NODE_TYPE, 5001, &mut |_| ()).unwrap());
}

#[test]
fn live_bytes_are_those_that_are_there() {
    let flags = ["--maxid1", "3000", "--clients", "3", "--requests", "20k", "--load-batch", "100"];
    let options = options(&flags);
    let choice = Choice::new(1, &options);
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let bytes = || {
        let of = |(_, key, value): &(usize, Vec<u8>, Vec<u8>)| key.len() + value.len();
        rows(&store).iter().map(of).sum::<usize>() as i64
    };
    let loaded = drive(&store, &choice, &options, Step::Load);
    assert_eq!((loaded.grown, loaded.written as i64), (bytes(), bytes()));
    let grown = drive(&store, &choice, &options, Step::Query(1)).grown;
    let (live, right) = (loaded.grown + grown, bytes());
    // What a deleted node had is not known, and counts of nodes without links are not counted.
    assert!((right - live).abs() * 25 < right, "{live} instead of {right}");
    let row = Row { step: "q1".to_owned(), live_grown_bytes: -5, ..Row::default() };
    assert_eq!(options.live_bytes(&row, 20), 15);
    let row = Row { step: "drop".to_owned(), ..Row::default() };
    assert_eq!(options.live_bytes(&row, 20), 0);
}

#[test]
fn the_same_seed_loads_the_same_rows() {
    let choose = |flags: &[&str]| {
        let options = options(flags);
        let choice = Choice::new(1, &options);
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        drive(&store, &choice, &options, Step::Load);
        rows(&store)
    };
    let first = choose(&["--maxid1", "3000"]);
    assert!(first == choose(&["--maxid1", "3000"]), "two loads of one seed differ");
    assert!(first == choose(&["--maxid1", "3000", "--load-batch", "7"]), "batches matter");
    assert!(first != choose(&["--maxid1", "3000", "--load-clients", "1"]));
}

#[test]
fn one_client_does_the_same_again() {
    let flags = ["--maxid1", "2000", "--clients", "1", "--requests", "5000"];
    let options = options(&flags);
    let choice = Choice::new(1, &options);
    let again = || {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        drive(&store, &choice, &options, Step::Load);
        let totals = [1, 2].map(|number| {
            let total = drive(&store, &choice, &options, Step::Query(number));
            (total.ops, total.found, total.written, total.read)
        });
        (totals, check(&store).unwrap())
    };
    let (totals, checked) = again();
    assert_eq!((totals, checked), again());
    assert_eq!(totals[0].0, 5000);
    assert_ne!(totals[0], totals[1], "each loop has operations of its own");
}

#[test]
fn rows_agree_after_many_clients_at_once() {
    // Few nodes, so that clients meet; few links to a list, so that older ones are asked for.
    let flags = ["--maxid1", "40", "--clients", "6", "--requests", "60k", "--range-limit", "3"];
    let options = options(&flags);
    let choice = Choice::new(1, &options);
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    drive(&store, &choice, &options, Step::Load);
    let loaded = check(&store).unwrap();
    let total = drive(&store, &choice, &options, Step::Query(1));
    let after = check(&store).unwrap();
    assert_eq!(total.ops, 60_000);
    assert!(total.written > 0 && total.read > 0);
    assert_eq!(total.latencies.len(), choice::KINDS.len());
    assert!(after.links > loaded.links && after.visible < after.links, "{after:?}");
    // About 2.6 % of the operations add a node, and all loaded ones were deleted long ago.
    assert!((1200..1900).contains(&after.nodes), "{after:?}");
    drive(&store, &choice, &options, Step::Drop);
    assert_eq!(check(&store).unwrap(), Checked::default());
}

#[test]
fn the_range_limit_holds_and_older_links_follow() {
    let options = options(&["--maxid1", "1000"]);
    let choice = Choice::new(1, &options);
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    drive(&store, &choice, &options, Step::Load);
    let id1 = (1..=1000).max_by_key(|&id| choice.loaded.links(id)).unwrap();
    let links = choice.loaded.links_of(id1, LINK_TYPE);
    assert!(links > 100, "{links}");
    let mut session = store.session().unwrap();
    let (mut shown, mut newest, mut skip) = (0, u64::MAX, 0);
    loop {
        let range = LinkRange { id1, link_type: LINK_TYPE, newest, skip, limit: 30 };
        let before = newest;
        let count = session
            .get_link_list(&range, &mut |link| {
                assert!(link.time <= newest);
                newest = link.time;
            })
            .unwrap();
        shown += count;
        skip = 1;
        if count < 30 {
            break;
        }
        assert!(newest < before);
    }
    assert_eq!(shown, links);
}

#[test]
fn steps_are_written_as_they_are_read() {
    let names = |flags: &[&str]| {
        let steps = options(flags).planned();
        assert!(steps.iter().all(|step| (step.start == Start::Fresh) == (step.name == "load")));
        steps.into_iter().map(|step| step.name).collect::<Vec<String>>().join(" ")
    };
    assert_eq!(names(&["--loops", "2"]), "load q1 q2 drop");
    assert_eq!(names(&["--loops", "1", "--keep-tables"]), "load q1");
    for step in [Step::Load, Step::Query(24), Step::Drop] {
        assert_eq!(step.to_string().parse(), Ok(step));
    }
    assert!("q".parse::<Step>().unwrap_err().contains("the steps are load, qN and drop"));
}

#[test]
fn wrong_flags_are_refused() {
    let wrong = |flags: &[&str]| Command::try_parse_from([&["x"], flags].concat()).unwrap_err();
    for flags in [
        ["--maxid1", "0"],
        ["--rate", "0"],
        ["--write-uncorrelated-shape", "1"],
        ["--clients", "0"],
        ["--history-percent", "101"],
        ["--partitions", "1025"],
        ["--partitions", "some"],
    ] {
        let error = wrong(&flags).to_string();
        assert!(error.contains(flags[0]), "{error}");
    }
}

#[test]
fn partitions_are_linkbenchs_own_and_those_of_a_plan_before_them_none() {
    assert_eq!(options(&[]).partitions, 16);
    let mut plan = serde_json::to_value(options(&["--partitions", "4"])).unwrap();
    let read = |plan: &serde_json::Value| -> LinkbenchOptions {
        serde_json::from_value(plan.clone()).unwrap()
    };
    assert_eq!(read(&plan).partitions, 4);
    plan.as_object_mut().unwrap().remove("partitions");
    assert_eq!(read(&plan).partitions, 0);
}

#[test]
fn rows_of_all_steps_are_whole() {
    let flags = ["--maxid1", "3000", "--clients", "2", "--requests", "3000", "--loops", "1"];
    let options = options(&flags);
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let step = |step| {
        let costs = client_costs(&options, step, 1).unwrap();
        let name = step.to_string();
        let named = Named { workload: "linkbench", step: &name, opened: None };
        run(&store, &options, step, 1, costs, &named, &mut |_| ()).unwrap()
    };

    let load = step(Step::Load);
    let choice = Choice::new(1, &options);
    let links: u64 = (1..=3000).map(|id| choice.loaded.links(id)).sum();
    assert_eq!((load.workload.as_str(), load.step.as_str()), ("linkbench", "load"));
    assert_eq!((load.unit.as_str(), load.clients), ("row", 2));
    assert_eq!((load.extra["nodes"], load.extra["links"]), (3000.0, links as f64));
    assert_eq!(load.ops, 3000 + links + load.extra["counts"] as u64);
    assert_eq!((load.found, load.parameters["maxid1"].as_u64()), (load.ops, Some(3000)));
    assert!(load.cpu.client_us_per_op > 0.0);

    let query = step(Step::Query(1));
    assert_eq!((query.step.as_str(), query.ops, query.clients), ("q1", 3000, 2));
    let names: Vec<&str> = query.latency_us.keys().map(String::as_str).collect();
    let mut kinds = choice::KINDS.to_vec();
    kinds.sort_unstable();
    assert_eq!(names, kinds);
    assert_eq!(query.latency_us.values().map(|kind| kind.count).sum::<u64>(), 3000);
    assert!(query.found > 1500 && query.counted.user_bytes > 0 && query.counted.read_bytes > 0);
    check(&store).unwrap();

    let drop = step(Step::Drop);
    assert_eq!((drop.ops, drop.unit.as_str()), (1, "drop"));
    assert!(drop.extra["drop_seconds"] > 0.0);
    assert_eq!(check(&store).unwrap(), Checked::default());
}

/// The same on Shale, whose trees are flushed and compacted meanwhile.
#[cfg(feature = "shale")]
#[test]
fn rows_on_shale_agree_and_are_there_after_it_was_closed() {
    use crate::stores::shale::Shale;
    use crate::stores::store::Store;
    let flags = ["--maxid1", "4k", "--clients", "4", "--requests", "20k", "--range-limit", "50"];
    let options = options(&flags);
    let choice = Choice::new(1, &options);
    let setup = Setup { memory: 8 << 20, memtable: 1 << 20, ..Setup::default() };
    let dir = tempfile::tempdir().unwrap();
    let open = || KvStore::<Shale>::open(dir.path(), &setup, &TREES).unwrap();
    let store = open();
    drive(&store, &choice, &options, Step::Load);
    drive(&store, &choice, &options, Step::Query(1));
    let checked = check(&store).unwrap();
    assert!(checked.visible > 10_000 && checked.visible < checked.links, "{checked:?}");
    store.close().unwrap();

    let store = open();
    assert_eq!(check(&store).unwrap(), checked);
    let node = graph::Node { id: 0, node_type: NODE_TYPE, version: 1, time: 0, data: b"" };
    let added = store.session().unwrap().add_node(&node).unwrap();
    assert!(added > 4400 && added <= 4001 + 20_000, "{added}");
    drive(&store, &choice, &options, Step::Drop);
    assert_eq!(check(&store).unwrap(), Checked::default());
    store.close().unwrap();
}

#[test]
fn a_query_step_has_the_bounds_that_were_given() {
    let options = options(&["--rate", "100", "--requests", "10", "--seconds", "7"]);
    let (choice, rows) = (Choice::new(1, &options), Rows::default());
    let of = |step| work(&Null, &choice, &rows, &options, 1, step).unwrap();
    let query = of(Step::Query(1));
    assert_eq!((query.rate, query.ops), (Some(100.0), Some(10)));
    assert_eq!(query.duration, Some(Duration::from_secs(7)));
    let load = of(Step::Load);
    assert_eq!((load.rate, load.ops, load.duration), (None, None, None));
}

/// What the client costs. Run alone and optimized:
/// `cargo test --release -p shaledb-lab --lib client_cost -- --ignored --nocapture`
#[test]
#[ignore = "prints a measurement; nothing is asserted about time"]
fn client_cost_on_a_graph_that_does_nothing() {
    let options = options(&["--maxid1", "1M"]);
    for step in [Step::Load, Step::Query(1)] {
        let (cost, _) = client_costs(&options, step, 1).unwrap();
        println!("{step}: {cost:.3} us of CPU per operation");
    }
}
