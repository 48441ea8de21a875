use super::ids::Ids;
use super::over_kv::TREES;
use super::rows::{C_BYTES, PAD_BYTES, Sbtest, fill_text};
use super::store::{Column, Conflict, Oltp, OltpSession};
use super::*;
use crate::generate::Random;
use crate::run::row::Row;
use crate::run::work::Named;
use crate::setup::Setup;
use crate::stores::engine::{Engine, Handle, Level, Metrics, Result, TreeId};
use crate::stores::kv::KvStore;
use crate::stores::model::Model;
use crate::stores::store::Store;
use crate::workloads::planned::Start;
use clap::Parser;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: SysbenchOptions,
}

fn options(flags: &[&str]) -> SysbenchOptions {
    Command::parse_from([&["x"], flags].concat()).options
}

const SMALL: [&str; 6] = ["--tables", "3", "--rows", "60", "--seconds", "0.2"];

struct Opened<E>(KvStore<E>, #[expect(dead_code, reason = "kept")] tempfile::TempDir);

fn open<E: Engine>() -> Opened<E> {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { memtable: 1 << 20, memory: 64 << 20, ..Setup::default() };
    Opened(KvStore::open(&dir.path().join("store"), &setup, &TREES).unwrap(), dir)
}

fn try_run<S: Oltp>(store: &S, options: &SysbenchOptions, step: &str, clients: u32) -> Result<Row> {
    let named = Named { workload: "sysbench", step, ..Named::default() };
    let at = step.parse()?;
    let costs = work::client_costs(options, at, 1)?;
    work::run(store, options, (at, clients), 1, costs, &named, &mut |_| {})
}

fn run<S: Oltp>(store: &S, options: &SysbenchOptions, step: &str, clients: u32) -> Row {
    try_run(store, options, step, clients).unwrap()
}

fn pairs<E: Engine>(store: &KvStore<E>, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    let mut add = |key: &[u8], value: &[u8]| {
        pairs.push((key.to_vec(), value.to_vec()));
        true
    };
    store.engine.handle().unwrap().scan(tree, b"", u64::MAX, &mut add).unwrap();
    pairs
}

#[derive(Clone, Debug, PartialEq)]
struct Found {
    k: u64,
    c: Vec<u8>,
    pad: Vec<u8>,
}

/// All rows, read from the tree by hand.
fn rows_by_hand<E: Engine>(store: &KvStore<E>) -> BTreeMap<(u32, u64), Found> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let row = |(key, value): (Vec<u8>, Vec<u8>)| {
        assert_eq!(value.len(), 4 + 119 + 59);
        let (k, text) = value.split_at(4);
        let (c, pad) = text.split_at(119);
        let found = Found { k: number(k), c: c.to_vec(), pad: pad.to_vec() };
        ((number(&key[..4]) as u32, number(&key[4..])), found)
    };
    pairs(store, 0).into_iter().map(row).collect()
}

/// The index must have an entry for each row, and nothing else.
fn check_index<E: Engine>(store: &KvStore<E>) {
    let entry = |(&(table, id), row): (&(u32, u64), &Found)| {
        [&table.to_be_bytes()[..], &(row.k as u32).to_be_bytes(), &id.to_be_bytes()].concat()
    };
    let wanted: BTreeSet<Vec<u8>> = rows_by_hand(store).iter().map(entry).collect();
    let got: Vec<_> = pairs(store, 1);
    assert!(got.iter().map(|(key, _)| key).eq(wanted.iter()));
}

#[test]
fn steps_are_read_written_and_planned() {
    let defaults = options(&[]);
    defaults.check().unwrap();
    let plan: Vec<String> =
        defaults.plan().iter().map(|(step, clients)| format!("{step}x{clients}")).collect();
    assert_eq!(plan.len(), 21);
    assert_eq!(plan[..3], ["loadx4", "update-indexx1", "update-indexx4"]);
    assert_eq!(plan[17..], ["selectx1", "selectx4", "insertx1", "insertx4"]);
    let planned = defaults.planned();
    assert_eq!((planned[0].name.as_str(), &planned[0].start), ("load", &Start::Fresh));
    assert_eq!(
        (planned[10].name.as_str(), &planned[10].start),
        ("read-only.100.c4", &Start::Continue)
    );
    for (planned, wanted) in planned.iter().zip(defaults.plan()) {
        assert_eq!(defaults.step(&planned.name), Ok(wanted));
    }
    assert!(defaults.step("wait_idle").is_err() && defaults.step("drop.c1").is_err());
    assert_eq!(defaults.data_bytes(), 2 * 8 * 50_000 * 202);
    let json = serde_json::to_string(&defaults).unwrap();
    assert!(json.contains("\"read-only.10000\"") && json.contains("\"read-write\""), "{json}");
    assert_eq!(serde_json::from_str::<SysbenchOptions>(&json).unwrap(), defaults);
    assert_eq!("read-write.7".parse(), Ok(Step::ReadWrite(7)));
    for wrong in ["read-only.0", "load.3", "delete", "read-only."] {
        assert!(wrong.parse::<Step>().unwrap_err().contains(wrong));
    }
    assert!(options(&["--steps", "select"]).check().unwrap_err().contains("load"));
    assert!(options(&["--rows", "5G"]).check().unwrap_err().contains("--rows"));
    assert_eq!(options(&["--clients", "64"]).plan()[0], (Step::Load, 8));
}

#[test]
fn texts_are_groups_of_even_digits() {
    let mut random = Random::new(3);
    let (mut c, mut pad) = ([0; C_BYTES], [0; PAD_BYTES]);
    let mut counts = [[0u64; 10]; C_BYTES];
    for _ in 0..20_000 {
        fill_text(&mut random, &mut c);
        fill_text(&mut random, &mut pad);
        for (text, groups) in [(&c[..], 10), (&pad[..], 5)] {
            let text = std::str::from_utf8(text).unwrap();
            let lengths: Vec<usize> = text.split('-').map(str::len).collect();
            assert_eq!(lengths, vec![11; groups], "{text}");
        }
        for (counts, byte) in counts.iter_mut().zip(c).filter(|(_, byte)| *byte != b'-') {
            counts[usize::from(byte - b'0')] += 1;
        }
    }
    // Pearson's sum over ten digits has nine degrees of freedom: 60 is never reached by chance.
    for counts in counts.iter().filter(|counts| counts.iter().sum::<u64>() > 0) {
        let sum: f64 = counts.iter().map(|&n| (n as f64 - 2000.0).powi(2) / 2000.0).sum();
        assert!(sum < 60.0, "{counts:?}");
    }
}

#[test]
fn ids_are_distributed_as_asked() {
    const ROWS: u64 = 100_000;
    const PICKS: u64 = 400_000;
    let mut random = Random::new(4);
    let mut shares = |distribution| {
        let ids = Ids::new(distribution, ROWS);
        let mut counts = vec![0u64; 100];
        for _ in 0..PICKS {
            let id = ids.pick(&mut random);
            assert!((1..=ROWS).contains(&id));
            counts[((id - 1) * 100 / ROWS) as usize] += 1;
        }
        counts
    };
    let even = shares(Distribution::Uniform);
    let sum: f64 = even.iter().map(|&n| (n as f64 - 4000.0).powi(2) / 4000.0).sum();
    // 99 degrees of freedom: four deviations.
    assert!((sum - 99.0).abs() < 4.0 * (2.0f64 * 99.0).sqrt(), "{sum}");

    // The middle hundredth lies across the cells 49 and 50. The bell is the mean of twelve even
    // numbers: its deviation is 1/12, so a hundredth in its middle has 0.01 * 12 / sqrt(2 pi).
    let special = shares(Distribution::Special);
    let middle = (special[49] + special[50]) as f64 / PICKS as f64;
    let bell = 0.25 * 0.02 * 12.0 / (2.0 * std::f64::consts::PI).sqrt();
    assert!((middle - 0.75 - bell).abs() < 0.004, "{middle}");
    // Within one deviation of the middle lie 68.3 % of the bell.
    let near: u64 = special[50 - 8..50 + 8].iter().sum();
    let near = (near as f64 / PICKS as f64 - 0.75) / 0.25;
    assert!((near - 0.663).abs() < 0.02, "{near}");
    for rows in 1..5 {
        let ids = Ids::new(Distribution::Special, rows);
        assert!((0..1000).all(|_| (1..=rows).contains(&ids.pick(&mut random))));
    }
}

#[test]
fn the_load_fills_each_table_and_its_index() {
    let options = options(&["--tables", "5", "--rows", "1500"]);
    let store = open::<Model>();
    for _ in 0..2 {
        let row = run(&store.0, &options, "load", 2);
        assert_eq!((row.ops, row.unit.as_str(), row.clients), (7500, "row", 2));
        assert_eq!(row.latency_us["load"].count, 10);
        assert_eq!(row.latency_us["create index"].count, 5);
        let rows = rows_by_hand(&store.0);
        let ids: Vec<(u32, u64)> =
            (0..5).flat_map(|table| (1..=1500).map(move |id| (table, id))).collect();
        assert!(rows.keys().eq(&ids));
        assert!(rows.values().all(|row| (1..=1500).contains(&row.k)));
        check_index(&store.0);
    }
    assert_eq!(store.0.last_id(4).unwrap(), 1500);
}

#[test]
fn the_index_is_as_the_tables_are_after_clients_at_once() {
    let options = options(&SMALL);
    let store = open::<Model>();
    run(&store.0, &options, "load", 3);
    let loaded = rows_by_hand(&store.0);
    let sum = |rows: &BTreeMap<(u32, u64), Found>| rows.values().map(|row| row.k).sum::<u64>();

    // Each update adds one: none is lost, though the clients meet in 180 rows.
    let row = run(&store.0, &options, "update-index", 4);
    let updated = rows_by_hand(&store.0);
    assert!(row.ops > 180 && row.found == row.ops);
    assert_eq!(sum(&updated), sum(&loaded) + row.ops);
    assert!(updated.values().zip(loaded.values()).all(|(a, b)| a.c == b.c && a.pad == b.pad));
    check_index(&store.0);

    let row = run(&store.0, &options, "update-nonindex", 4);
    let after = rows_by_hand(&store.0);
    assert!(row.found == row.ops && sum(&after) == sum(&updated) && after != updated);
    check_index(&store.0);

    // A transaction deletes a row and inserts it again, so none comes or goes.
    let row = run(&store.0, &options, "read-write.10", 4);
    assert!(row.ops > 0 && row.found == row.ops);
    assert_eq!((row.unit.as_str(), row.extra["statements_per_op"]), ("transaction", 20.0));
    assert!(rows_by_hand(&store.0).keys().eq(loaded.keys()));
    check_index(&store.0);

    let row = run(&store.0, &options, "insert", 4);
    let after = rows_by_hand(&store.0);
    assert!(row.ops > 0 && row.found == row.ops);
    assert_eq!(after.len() as u64, 180 + row.ops);
    for table in 0..3 {
        let rows = after.range((table, 0)..(table + 1, 0)).count() as u64;
        assert_eq!(store.0.last_id(table).unwrap(), rows);
    }
    check_index(&store.0);
}

#[test]
fn steps_that_only_read_change_nothing() {
    let options = options(&SMALL);
    let store = open::<Model>();
    run(&store.0, &options, "load", 1);
    let loaded = rows_by_hand(&store.0);
    for step in ["read-only.1", "read-only.10", "point-query", "select", "wait_idle"] {
        let row = run(&store.0, &options, step, 2);
        assert!(row.ops > 0 && row.found == row.ops && row.counted.user_bytes == 0, "{step}");
        assert!(step == "wait_idle" || row.counted.read_bytes > 0);
    }
    assert_eq!(rows_by_hand(&store.0), loaded);
}

#[test]
fn queries_give_what_a_look_at_all_rows_gives() {
    let options = options(&SMALL);
    let store = open::<Model>();
    run(&store.0, &options, "load", 1);
    // Equal texts in several rows, for `distinct`.
    let mut session = store.0.session().unwrap();
    let mut random = Random::new(5);
    for table in 0..3 {
        for id in 10..30 {
            let digit = b'0' + random.below(4) as u8;
            session.update_nonindex(table, id, &[digit; C_BYTES]).unwrap();
            assert_eq!(session.commit().unwrap(), 1);
        }
    }
    let rows = rows_by_hand(&store.0);
    for _ in 0..300 {
        let table = random.below(3) as u32;
        let from = random.below(70);
        let to = from + random.below(40);
        let in_range: Vec<&Found> =
            rows.range((table, from)..=(table, to)).map(|(_, row)| row).collect();
        let mut wanted: Vec<Vec<u8>> = in_range.iter().map(|row| row.c.clone()).collect();
        let mut got = Vec::new();
        let mut see = |c: &[u8]| got.push(c.to_vec());
        let count = session.range(table, from..=to, &mut see).unwrap();
        assert_eq!((count, &got), (wanted.len() as u64, &wanted));
        let sum = in_range.iter().map(|row| row.k).sum();
        assert_eq!(session.sum(table, from..=to).unwrap(), (sum, wanted.len() as u64));
        wanted.sort();
        for distinct in [false, true] {
            if distinct {
                wanted.dedup();
            }
            let mut got = Vec::new();
            let mut see = |c: &[u8]| got.push(c.to_vec());
            let count = session.ordered(table, from..=to, distinct, &mut see).unwrap();
            assert_eq!((count, &got), (wanted.len() as u64, &wanted));
        }
        let id = random.below(70);
        for column in [Column::C, Column::Pad] {
            let mut got = None;
            let found = session.point(table, id, column, &mut |text| got = Some(text.to_vec()));
            let row = rows.get(&(table, id));
            let text = |row: &Found| if column == Column::C { &row.c } else { &row.pad }.clone();
            assert_eq!((found.unwrap(), got), (row.is_some(), row.map(text)));
        }
    }
}

#[test]
fn a_transaction_sees_its_own_writes_and_is_whole() {
    let store = open::<Model>();
    let mut session = store.0.session().unwrap();
    let (c, pad) = ([b'c'; C_BYTES], [b'p'; PAD_BYTES]);
    let row = |id, k| Sbtest { id, k, c: &c, pad: &pad };
    session.insert(0, &row(1, 7)).unwrap();
    assert_eq!(session.commit().unwrap(), 1);

    // Twice the same row, then gone, then there again; and a row that is not there.
    session.begin().unwrap();
    session.update_index(0, 1).unwrap();
    session.update_index(0, 1).unwrap();
    session.update_nonindex(0, 1, &[b'd'; C_BYTES]).unwrap();
    session.update_index(0, 2).unwrap();
    assert_eq!(rows_by_hand(&store.0)[&(0, 1)].k, 7);
    assert_eq!(session.commit().unwrap(), 3);
    assert_eq!(rows_by_hand(&store.0)[&(0, 1)].k, 9);
    check_index(&store.0);

    session.begin().unwrap();
    session.delete(0, 1).unwrap();
    session.insert(0, &row(1, 3)).unwrap();
    session.update_index(0, 1).unwrap();
    assert_eq!(session.commit().unwrap(), 3);
    let rows = rows_by_hand(&store.0);
    assert!(rows.len() == 1 && rows[&(0, 1)].k == 4 && rows[&(0, 1)].c == c);
    check_index(&store.0);

    // A row that is there is not inserted again, nor is anything else of its transaction.
    session.begin().unwrap();
    session.update_index(0, 1).unwrap();
    session.insert(0, &row(1, 3)).unwrap();
    let error = session.commit().unwrap_err().to_string();
    assert!(error.contains("has a row 1 already"), "{error}");
    session.rollback().unwrap();
    session.begin().unwrap();
    session.delete(0, 1).unwrap();
    session.rollback().unwrap();
    assert_eq!(session.commit().unwrap(), 0);
    assert_eq!(rows_by_hand(&store.0), rows);
    session.delete(0, 1).unwrap();
    assert_eq!(session.commit().unwrap(), 1);
    assert!(pairs(&store.0, 0).is_empty() && pairs(&store.0, 1).is_empty());
    for id in 0..8 {
        session.delete(0, id).unwrap();
    }
    assert!(session.delete(0, 9).is_err());
}

#[test]
fn what_level_0_had_is_told() {
    let level = |level, files| Level { level, files, bytes: 10 * files, ..Level::default() };
    let before = Metrics { levels: vec![level(0, 3), level(5, 9)], ..Metrics::default() };
    let extra = work::extra(Step::PointQuery, &before);
    assert_eq!((extra["level0_files_before"], extra["level0_bytes_before"]), (3.0, 30.0));
    assert_eq!(work::extra(Step::ReadOnly(5), &Metrics::default()).len(), 1);
}

/// Tables where each second transaction meets a conflict.
struct Quarrel(AtomicU64);
struct QuarrelSession<'s>(&'s AtomicU64);

impl Store for Quarrel {
    fn name(&self) -> String {
        "quarrel".to_owned()
    }
    fn version(&self) -> String {
        String::new()
    }
    fn configuration(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn folder(&self) -> Option<PathBuf> {
        None
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

impl Oltp for Quarrel {
    type Session<'s> = QuarrelSession<'s>;
    fn create(&self, _: u32) -> Result<()> {
        Ok(())
    }
    fn create_index(&self, _: u32) -> Result<u64> {
        Ok(0)
    }
    fn session(&self) -> Result<QuarrelSession<'_>> {
        Ok(QuarrelSession(&self.0))
    }
    fn last_id(&self, _: u32) -> Result<u64> {
        Ok(0)
    }
}

impl OltpSession for QuarrelSession<'_> {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    fn commit(&mut self) -> Result<u64> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0..2000 => Ok(1),
            count if count % 2 == 1 => Err(Conflict.into()),
            4000.. => Err("the disk is full".into()),
            _ => Ok(1),
        }
    }
    fn rollback(&mut self) -> Result<()> {
        Ok(())
    }
    fn load(&mut self, _: u32, _: &Sbtest<'_>) -> Result<()> {
        Ok(())
    }
    fn point(&mut self, _: u32, _: u64, _: Column, _: &mut impl FnMut(&[u8])) -> Result<bool> {
        Ok(true)
    }
    fn range(&mut self, _: u32, _: RangeInclusive<u64>, _: &mut impl FnMut(&[u8])) -> Result<u64> {
        Ok(0)
    }
    fn sum(&mut self, _: u32, _: RangeInclusive<u64>) -> Result<(u64, u64)> {
        Ok((0, 0))
    }
    fn ordered(
        &mut self,
        _: u32,
        _: RangeInclusive<u64>,
        _: bool,
        _: &mut impl FnMut(&[u8]),
    ) -> Result<u64> {
        Ok(0)
    }
    fn update_index(&mut self, _: u32, _: u64) -> Result<()> {
        Ok(())
    }
    fn update_nonindex(&mut self, _: u32, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn delete(&mut self, _: u32, _: u64) -> Result<()> {
        Ok(())
    }
    fn insert(&mut self, _: u32, _: &Sbtest<'_>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn conflicts_are_counted_and_other_errors_end_the_step() {
    use crate::run::pace::{Bounds, Pace, Seen};
    let options = options(&SMALL);
    let store = Quarrel(AtomicU64::new(2000));
    let mut work = work::work(&store, &options, Step::ReadWrite(1), 1, 1).unwrap();
    let (stop, seen) = (std::sync::atomic::AtomicBool::new(false), Seen::default());
    let mut pace = Pace::new(Bounds { ops: Some(500), ..Bounds::default() }, &stop, &seen);
    work.clients[0].run(&mut pace).unwrap();
    assert_eq!((pace.total.ops, pace.total.latencies[1].count()), (500, 499));
    let error = try_run(&store, &SysbenchOptions { seconds: 60.0, ..options }, "insert", 2);
    assert_eq!(error.unwrap_err().to_string(), "the disk is full");
}

#[cfg(feature = "shale")]
#[test]
fn shale_does_the_steps() {
    let options = options(&["--tables", "2", "--rows", "3000", "--seconds", "0.2"]);
    let store = open::<crate::stores::shale::Shale>();
    for (step, clients) in options.plan() {
        let row = run(&store.0, &options, &step.to_string(), clients);
        assert_eq!((row.engine.as_str(), row.clients), ("shale", clients.into()));
        assert!(row.ops > 0 && row.found == row.ops, "{step}");
    }
    check_index(&store.0);
}

#[test]
fn live_bytes_are_those_that_are_there() {
    let options = options(&SMALL);
    let store = open::<Model>();
    let mut live = 0;
    for step in ["load", "update-index", "read-write", "insert", "wait_idle"] {
        let row = run(&store.0, &options, step, 2);
        assert_eq!(row.live_grown_bytes > 0, ["load", "insert"].contains(&step), "{step}");
        live += row.live_grown_bytes;
        let of = |(key, value): (Vec<u8>, Vec<u8>)| key.len() + value.len();
        let all = (0..TREES.len()).flat_map(|tree| pairs(&store.0, tree));
        let right = all.map(of).sum::<usize>();
        // The table's number is in each key and is none of the columns.
        assert!((0.95..1.0).contains(&(live as f64 / right as f64)), "{step}: {live} of {right}");
    }
}
