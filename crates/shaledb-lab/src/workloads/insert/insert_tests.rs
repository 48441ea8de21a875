use super::over_kv::TREES;
use super::purchase::Purchase;
use super::rows::{Noise, Rows, time_of};
use super::store::{Hit, Index, Sales, SalesSession, Start};
use super::*;
use crate::generate::Random;
use crate::run::row::Row;
use crate::run::work::Named;
use crate::setup::Setup;
use crate::stores::engine::{Batch, Engine, Handle, Metrics, Result, TreeId};
use crate::stores::kv::KvStore;
use crate::stores::model::{Model, ModelHandle};
use crate::workloads::planned::Start as Begin;
use clap::Parser;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: InsertOptions,
}

fn options(flags: &[&str]) -> InsertOptions {
    Command::parse_from([&["x"], flags].concat()).options
}

/// An engine and its folder, which goes away last.
struct Opened<E>(KvStore<E>, #[expect(dead_code, reason = "kept")] tempfile::TempDir);

impl<E> std::ops::Deref for Opened<E> {
    type Target = KvStore<E>;

    fn deref(&self) -> &KvStore<E> {
        &self.0
    }
}

fn open<E: Engine>() -> Opened<E> {
    let dir = tempfile::tempdir().unwrap();
    // Small enough for a few flushes and compactions. What `auto` takes depends on how busy the
    // machine is, and so do sizes.
    let codecs = "zstd:1".parse().unwrap();
    let setup = Setup { memtable: 2 << 20, memory: 64 << 20, codecs, ..Setup::default() };
    Opened(KvStore::open(&dir.path().join("store"), &setup, &TREES).unwrap(), dir)
}

fn try_run<S: Sales>(store: &S, options: &InsertOptions, step: &str) -> Result<Row> {
    let named = Named { workload: "insert", step, ..Named::default() };
    let at = step.parse()?;
    let costs = work::client_costs(options, at, 1)?;
    let mut row = work::run(store, options, at, 1, costs, &named, &mut |_| {})?;
    row.extra = work::extra(store, options, true, row.size_bytes)?;
    Ok(row)
}

fn run<S: Sales>(store: &S, options: &InsertOptions, step: &str) -> Row {
    try_run(store, options, step).unwrap()
}

fn pairs<E: Engine>(store: &KvStore<E>, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    let mut handle = store.engine.handle().unwrap();
    let mut add = |key: &[u8], value: &[u8]| {
        pairs.push((key.to_vec(), value.to_vec()));
        true
    };
    handle.scan(tree, b"", u64::MAX, &mut add).unwrap();
    pairs
}

/// Rows of all tables, read from the primary key's tree by hand.
fn rows_by_hand<E: Engine>(store: &KvStore<E>) -> Vec<(u32, Vec<u64>, Vec<u8>)> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let mut rows = Vec::new();
    for (key, value) in pairs(store, 0) {
        let (columns, data) = value.split_at(24);
        let mut row = vec![number(&key[4..]), number(&columns[..8])];
        row.extend(columns[8..].chunks(4).map(number));
        rows.push((number(&key[..4]) as u32, row, data.to_vec()));
    }
    rows
}

/// Each index must have an entry for each row, and nothing else.
fn check_indexes<E: Engine>(store: &KvStore<E>) {
    let rows = rows_by_hand(store);
    // Columns of a row: id, time, register, customer, product, price; widths of an entry's.
    let entries: [(TreeId, &[(usize, usize)]); 3] = [
        (1, &[(5, 4), (3, 4), (0, 8)]),
        (2, &[(2, 4), (5, 4), (3, 4), (0, 8)]),
        (3, &[(5, 4), (1, 8), (3, 4), (0, 8)]),
    ];
    for (tree, columns) in entries {
        let wanted: BTreeSet<Vec<u8>> = rows
            .iter()
            .map(|(table, row, _)| {
                let mut key = table.to_be_bytes().to_vec();
                for &(column, width) in columns {
                    key.extend_from_slice(&row[column].to_be_bytes()[8 - width..]);
                }
                key
            })
            .collect();
        let got: Vec<_> = pairs(store, tree);
        assert!(got.iter().all(|(_, value)| value.is_empty()));
        assert!(got.iter().map(|(key, _)| key).eq(wanted.iter()), "{}", TREES[tree]);
    }
}

#[test]
fn steps_are_read_and_written() {
    let defaults = options(&[]);
    let names: Vec<String> = defaults.steps.iter().map(Step::to_string).collect();
    assert_eq!(names.join(","), "l.i0,l.x,l.i1,l.i2,qr100,qp100,qr500,qp500,qr1000,qp1000");
    defaults.check().unwrap();
    for wrong in ["qr", "qx100", "l.i3", "qp1e3", "qr99999999999"] {
        assert!(wrong.parse::<Step>().unwrap_err().contains(wrong));
    }
    let json = serde_json::to_string(&defaults).unwrap();
    assert!(json.contains("\"qr500\""), "{json}");
    assert_eq!(serde_json::from_str::<InsertOptions>(&json).unwrap(), defaults);
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    let wrong = |flags: &[&str]| options(flags).check().unwrap_err();
    assert!(wrong(&["--steps", "l.x,l.i0"]).contains("--steps"));
    assert!(wrong(&["--rows", "100", "--clients", "3"]).contains("at least 150"));
    options(&["--rows", "100", "--clients", "3", "--no-deletes"]).check().unwrap();
    let bad = ["x", "--random-percent", "101"];
    assert!(Command::try_parse_from(bad).is_err());
}

#[test]
fn commits_have_the_rows_that_the_steps_say() {
    let options = options(&["--rows-per-commit", "200", "--inserts", "1000"]);
    let of = |step: &str| {
        let step = step.parse().unwrap();
        (options.rows_per_commit_of(step), options.rows_of(step))
    };
    assert_eq!(of("l.i0"), (1000, Some(1_000_000)));
    assert_eq!(of("l.i1"), (200, Some(1000)));
    assert_eq!(of("l.i2"), (20, Some(250)));
    assert_eq!((of("qr100"), of("qp500"), of("qr0")), ((100, None), (200, None), (1, None)));
}

#[test]
fn a_plan_has_each_step_under_a_name_of_its_own() {
    let some = options(&["--steps", "l.i0,wait_idle,l.x,wait_idle,qr100", "--rows", "1000"]);
    let planned = some.planned();
    let names: Vec<&str> = planned.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["l.i0", "wait_idle", "l.x", "wait_idle (2)", "qr100"]);
    assert_eq!((&planned[0].start, &planned[3].start), (&Begin::Fresh, &Begin::Continue));
    assert_eq!(some.step("wait_idle (2)"), Ok(Step::WaitIdle));
    assert!(some.step("drop").is_err());
    // 32 bytes of columns, 15 of data, 72 of index entries.
    assert_eq!(some.data_bytes(), 1000 * 119);
    let growing = options(&["--rows", "1000", "--inserts", "400", "--no-deletes"]);
    assert_eq!(growing.data_bytes(), (1000 + 400 + 100 + 2 * 16_000) * 119);
    assert_eq!(options(&["--steps", "l.i0", "--rows", "1000"]).data_bytes(), 47_000);
}

/// Pearson's sum over cells that are equally likely; its mean is the number of cells less one, its
/// variance twice that.
fn chi_square(counts: &[u64]) -> f64 {
    let wanted = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - wanted).powi(2) / wanted).sum()
}

fn assert_even(counts: &[u64]) {
    let freedom = (counts.len() - 1) as f64;
    let sum = chi_square(counts);
    assert!((sum - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(), "{sum} of {freedom}");
}

#[test]
fn columns_are_even_and_data_is_as_random_as_asked() {
    for (percent, bytes) in [("20", "100-1000"), ("95", "100-1000"), ("50", "10-20")] {
        let options = options(&["--random-percent", percent, "--data-bytes", bytes]);
        let noise = Noise::new(1, &options);
        let mut rows = Rows::new(&options, &noise, 1, "l.i0", 0);
        let (least, most) = (options.data_bytes.least, options.data_bytes.most);
        let mut lengths = vec![0; most - least + 1];
        let mut columns: [Vec<u64>; 4] = [1000, 100, 100, 500].map(|cells| vec![0; cells]);
        let mut seen = [0u64; 256];
        let (mut noisy, mut total) = (0, 0);
        for id in 1..=200_000 {
            let row = rows.row(id);
            assert_eq!((row.id, row.time), (id, time_of(id)));
            lengths[row.data.len() - least] += 1;
            columns[0][row.register as usize] += 1;
            columns[1][row.customer as usize / 1000] += 1;
            columns[2][row.product as usize / 100] += 1;
            columns[3][row.price as usize / 100] += 1;
            let random = row.data.len() * percent.parse::<usize>().unwrap() / 100;
            assert!(row.data[random..].iter().all(|byte| *byte == b'a'));
            row.data[..random.min(64)].iter().for_each(|byte| seen[*byte as usize] += 1);
            noisy += random;
            total += row.data.len();
        }
        assert_even(&lengths);
        columns.iter().for_each(|column| assert_even(column));
        let share = 100.0 * noisy as f64 / total as f64;
        // Lengths are cut to whole bytes, at most one of the ten to twenty.
        assert!((share - percent.parse::<f64>().unwrap()).abs() < 3.5, "{share}");
        // The noise is drawn once and goes round, so only its bytes' evenness is a matter of
        // chance.
        let mean = seen.iter().sum::<u64>() as f64 / 256.0;
        assert!(seen.iter().all(|count| (*count as f64 / mean - 1.0).abs() < 0.05), "{seen:?}");
    }
}

#[test]
fn rows_do_not_repeat_and_clients_differ() {
    let options = options(&["--data-bytes", "1000", "--random-percent", "100"]);
    let noise = Noise::new(1, &options);
    let data = |seed, step, client, count: u64| -> Vec<Vec<u8>> {
        let mut rows = Rows::new(&options, &noise, seed, step, client);
        (1..=count).map(|id| rows.row(id).data.to_vec()).collect()
    };
    let rows = data(1, "l.i0", 0, 2000);
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 2000);
    assert_eq!(rows, data(1, "l.i0", 0, 2000));
    for other in [data(1, "l.i0", 1, 1), data(1, "l.i1", 0, 1), data(2, "l.i0", 0, 1)] {
        assert_ne!(rows[0], other[0]);
    }
}

const SMALL: [&str; 16] = [
    "--rows",
    "3001",
    "--inserts",
    "2501",
    "--clients",
    "3",
    "--rows-per-commit",
    "40",
    "--seconds",
    "0.2",
    "--customers",
    "50",
    "--max-price",
    "1",
    "--cash-registers",
    "7",
];

#[test]
fn indexes_are_as_the_table_is_after_clients_at_once() {
    let options = options(&SMALL);
    let store = open::<Model>();
    let loaded = run(&*store, &options, "l.i0");
    assert_eq!((loaded.ops, loaded.found), (3001, 3001));
    assert!((0..3).all(|table| !store.is_indexed(table).unwrap()));
    assert!((1..4).all(|tree| pairs(&store, tree).is_empty()));

    assert_eq!(run(&*store, &options, "l.x").ops, 3001);
    assert!((0..3).all(|table| store.is_indexed(table).unwrap()));
    check_indexes(&store);

    // Each table keeps its size while its rows are replaced, and some more than once.
    for (step, ops) in [("l.i1", Some(2501)), ("l.i2", Some(625)), ("qr3000", None)] {
        let before = ids(&*store);
        let outcome = run(&*store, &options, step);
        assert!(ops.is_none_or(|ops| outcome.ops == ops));
        let after = ids(&*store);
        for (before, after) in before.iter().zip(&after) {
            assert!(after.0 > before.0 && after.1 - after.0 == before.1 - before.0);
        }
        assert_eq!(rows_by_hand(&store).len(), 3001);
        check_indexes(&store);
    }
    let ids = ids(&*store);
    assert!(ids.iter().all(|(oldest, _)| *oldest > 1001), "{ids:?}");
}

#[test]
fn live_bytes_are_those_that_are_there() {
    let options = options(&[&SMALL[..], &["--data-bytes", "10-200"]].concat());
    let store = open::<Model>();
    let mut live = 0;
    for step in ["l.i0", "l.x", "l.i1", "qr3000", "wait_idle"] {
        live += run(&*store, &options, step).live_grown_bytes;
        let of = |(key, value): (Vec<u8>, Vec<u8>)| key.len() + value.len();
        let all = (0..TREES.len()).flat_map(|tree| pairs(&store, tree));
        let right = all.map(of).sum::<usize>() as f64;
        // A row's key has the table's number as well, which is none of its columns.
        assert!((0.95..1.03).contains(&(live as f64 / right)), "{step}: {live} of {right}");
    }
}

fn ids<S: Sales>(store: &S) -> Vec<(u64, u64)> {
    let ids = |table| store.ids(table).unwrap().unwrap().into_inner();
    (0..3).map(ids).collect()
}

#[test]
fn a_load_with_indexes_writes_them_and_a_second_load_begins_anew() {
    let options = options(&[&SMALL[..], &["--no-deletes"]].concat());
    let store = open::<Model>();
    for _ in 0..2 {
        run(&*store, &options, "l.i");
        assert_eq!(rows_by_hand(&store).len(), 3001);
        check_indexes(&store);
    }
    run(&*store, &options, "l.i1");
    assert_eq!(rows_by_hand(&store).len(), 3001 + 2501);
    assert_eq!(ids(&*store)[0], (1, 1001 + 834));
    run(&*store, &options, "l.i0");
    assert!((1..5).all(|tree| pairs(&store, tree).is_empty()));
}

#[test]
fn queries_give_what_a_look_at_all_rows_gives() {
    let options = options(&SMALL);
    let store = open::<Model>();
    run(&*store, &options, "l.i");
    run(&*store, &options, "l.i1");
    let mut random = Random::new(7);
    for table in 0..3 {
        let rows: Vec<Hit> = rows_by_hand(&store)
            .iter()
            .filter(|(of, _, _)| *of == table)
            .map(|(_, row, _)| Hit {
                id: row[0],
                time: row[1],
                register: row[2] as u32,
                customer: row[3] as u32,
                price: row[5] as u32,
            })
            .collect();
        let mut session = store.session(table).unwrap();
        for _ in 0..400 {
            let start = any_start(&mut random);
            let limit = 1 + random.below(30);
            let mut got = Vec::new();
            let count = session.range(start, limit, &mut |hit| got.push(*hit)).unwrap();
            let wanted = range_by_hand(&rows, start, limit);
            assert_eq!(got, wanted, "{start:?}");
            assert_eq!(count, wanted.len() as u64);
        }
        for (of, row, data) in rows_by_hand(&store).iter().step_by(17) {
            let mut seen = None;
            let mut see = |found: &Purchase<'_>| seen = Some((found.price, found.data.to_vec()));
            let found = store.session(*of).unwrap().point(row[0], &mut see).unwrap();
            assert!(found && seen == Some((row[5] as u32, data.clone())));
        }
        assert!(!session.point(1, &mut |_| panic!("deleted")).unwrap());
        assert!(!session.point(1 << 40, &mut |_| panic!("not yet")).unwrap());
    }
}

fn any_start(random: &mut Random) -> Start {
    let index = Index::ALL[random.below(4) as usize];
    let (first, second) = match index {
        Index::Primary => (random.below(3000), 0),
        Index::Price => (random.below(110), random.below(60)),
        Index::Register => (random.below(9), random.below(110)),
        Index::Date => (random.below(110), time_of(random.below(3000))),
    };
    Start { index, first, second }
}

fn range_by_hand(rows: &[Hit], start: Start, limit: u64) -> Vec<Hit> {
    let order = |row: &Hit| match start.index {
        Index::Primary => (row.id, 0, 0, 0),
        Index::Price => (row.price.into(), row.customer.into(), row.id, 0),
        Index::Register => (row.register.into(), row.price.into(), row.customer.into(), row.id),
        Index::Date => (row.price.into(), row.time, row.customer.into(), row.id),
    };
    let mut rows: Vec<&Hit> = rows.iter().collect();
    rows.sort_by_key(|row| order(row));
    rows.into_iter()
        .filter(|row| {
            let (first, second, ..) = order(row);
            (first, second) >= (start.first, start.second)
        })
        .take(limit as usize)
        .map(|row| Hit {
            time: if start.index == Index::Date { row.time } else { 0 },
            register: if start.index == Index::Register { row.register } else { 0 },
            ..*row
        })
        .collect()
}

#[test]
fn query_steps_ask_each_index_and_find_rows() {
    let options = options(&SMALL);
    let store = open::<Model>();
    run(&*store, &options, "l.i");
    let ranges = run(&*store, &options, "qr300");
    let points = run(&*store, &options, "qp300");
    let kinds = |row: &Row| row.latency_us.keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(kinds(&ranges), "date pk price register");
    assert_eq!((kinds(&points).as_str(), points.unit.as_str()), ("point", "query"));
    let count: u64 = ranges.latency_us.values().map(|latency| latency.count).sum();
    assert!(ranges.ops == count && ranges.found > 0 && ranges.counted.read_bytes > 0);
    // A row can go between the look at the window and the query.
    assert!(points.found > points.ops / 2);
    // Without secondary indexes only the primary key is asked.
    let store = open::<Model>();
    run(&*store, &options, "l.i0");
    let ranges = run(&*store, &options, "qr0");
    assert!(kinds(&ranges) == "pk" && ranges.writer.is_none());
}

/// A model whose commits take a while.
struct Slow(Model);
struct SlowHandle(ModelHandle);

const WAIT: Duration = Duration::from_millis(150);

impl Engine for Slow {
    type Handle = SlowHandle;
    const NAME: &'static str = "slow";
    fn version() -> String {
        String::new()
    }
    fn open(dir: &Path, setup: &Setup, trees: &[&str]) -> Result<Slow> {
        Model::open(dir, setup, trees).map(Slow)
    }
    fn configuration(_: &Setup) -> Vec<(String, String)> {
        Vec::new()
    }
    fn handle(&self) -> Result<SlowHandle> {
        self.0.handle().map(SlowHandle)
    }
    fn clear_tree(&self, tree: TreeId) -> Result<()> {
        self.0.clear_tree(tree)
    }
    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }
    fn metrics(&self) -> Result<Metrics> {
        self.0.metrics()
    }
    fn close(self) -> Result<()> {
        Ok(())
    }
}

impl Handle for SlowHandle {
    fn put(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(tree, key, value)
    }
    fn get(&mut self, tree: TreeId, key: &[u8], found: &mut impl FnMut(&[u8])) -> Result<bool> {
        self.0.get(tree, key, found)
    }
    fn delete(&mut self, tree: TreeId, key: &[u8]) -> Result<()> {
        self.0.delete(tree, key)
    }
    fn write(&mut self, batch: &Batch) -> Result<()> {
        std::thread::sleep(WAIT);
        self.0.write(batch)
    }
    fn scan(
        &mut self,
        tree: TreeId,
        from: &[u8],
        rows: u64,
        row: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        self.0.scan(tree, from, rows, row)
    }
}

#[test]
fn a_writer_that_cannot_hold_its_rate_is_told() {
    let options = options(&[&SMALL[..], &["--rows-per-load-commit", "3000"]].concat());
    let store = open::<Slow>();
    run(&*store, &options, "l.i0");
    // Forty rows take two commits of 150 ms: a hundred and some a second and client.
    let writer = run(&*store, &options, "qr20000").writer.unwrap();
    assert!(!writer.held && writer.ops > 0 && writer.rate < writer.wanted, "{writer:?}");
    assert_eq!(writer.wanted, 60_000.0);
    // One row a second is due, and is done at once.
    let writer = run(&*store, &options, "qr1").writer.unwrap();
    assert!(writer.held, "{writer:?}");
}

#[test]
fn rows_that_an_engine_lost_are_noticed() {
    let options = options(&SMALL);
    let store = open::<Model>();
    run(&*store, &options, "l.i0");
    let mut handle = store.engine.handle().unwrap();
    let (key, _) = pairs(&store, 0).remove(5);
    handle.delete(0, &key).unwrap();
    let error = try_run(&*store, &options, "l.i1").unwrap_err();
    assert!(error.to_string().contains("of the 40 oldest rows from transactionid 1, 39"));
}

#[test]
fn commits_are_bound_by_bytes() {
    let flags = ["--data-bytes", "1M", "--rows", "10", "--rows-per-load-commit", "100"];
    let options = options(&[&flags[..], &["--no-deletes"]].concat());
    let store = open::<Model>();
    let row = run(&*store, &options, "l.i0");
    // Four MiB are reached with the fourth row, since each is a little more than one.
    assert_eq!(row.latency_us["insert"].count, 3);
    assert_eq!(row.counted.user_bytes, 10 * ((1 << 20) + 32));
}

#[test]
fn the_large_objects_are_of_both_sizes_and_four_kinds() {
    let variants = options(&[]).large_objects();
    assert_eq!(variants.len(), 8);
    for (name, variant) in &variants {
        variant.check().unwrap();
        let mean = (variant.data_bytes.least + variant.data_bytes.most) as u64 / 2;
        assert!((195_000_000..205_000_000).contains(&(variant.rows * mean)), "{name}");
        assert!(!variant.steps.contains(&Step::Index) && variant.no_deletes);
    }
    assert_eq!(variants[1].0, "100-1000 B, 45 % random");
    assert_eq!(variants[7].1.random_percent, 95);
}

#[test]
fn the_size_follows_from_what_is_random() {
    let large = options(&["--data-bytes", "10000-20000", "--random-percent", "20"]);
    let size = |percent, compressed| {
        let options = InsertOptions { random_percent: percent, ..large.clone() };
        super::size::predicted_bytes(&options, 1000, compressed)
    };
    // 1.1 x 1000 rows of 15,000 bytes, a fifth of them random, and a few bytes each.
    assert!((size(20, true) - 3_300_000.0).abs() < 20_000.0, "{}", size(20, true));
    assert!((size(95, true) - size(20, true) - 12_375_000.0).abs() < 1.0);
    assert!((size(20, false) - 1.1 * 1000.0 * 15_032.0).abs() < 1.0);
    assert_eq!(size(20, false), size(95, false));

    let options = options(&SMALL);
    let store = open::<Model>();
    run(&*store, &options, "l.i0");
    let figures = work::extra(&*store, &options, true, 100_000).unwrap();
    assert_eq!(figures["table_rows"], 3001.0);
    let predicted = super::size::predicted_bytes(&options, 3001, true);
    assert_eq!(figures["predicted_size_bytes"], predicted);
    assert_eq!(figures["size_per_predicted"], 100_000.0 / predicted);
    run(&*store, &options, "l.x");
    assert!(!work::extra(&*store, &options, true, 1).unwrap().contains_key("predicted_size_bytes"));
}

#[cfg(feature = "shale")]
#[test]
fn shale_has_the_size_that_is_predicted() {
    for (bytes, percent) in [("100-1000", "20"), ("100-1000", "75"), ("10000-20000", "45")] {
        // Enough that the logs, of which up to four wait empty with 192 KiB each, are a few percent.
        let rows = if bytes == "100-1000" { "100000" } else { "6000" };
        let flags = ["--data-bytes", bytes, "--random-percent", percent, "--rows", rows];
        let options = options(&[&flags[..], &["--no-deletes"]].concat());
        let store = open::<crate::stores::shale::Shale>();
        run(&*store, &options, "l.i0");
        run(&*store, &options, "wait_idle");
        let share = run(&*store, &options, "qp0").extra["size_per_predicted"];
        assert!((0.8..1.2).contains(&share), "{bytes} {percent}: {share}");
    }
}

#[cfg(feature = "shale")]
#[test]
fn shale_does_the_steps() {
    let options = options(&SMALL);
    let store = open::<crate::stores::shale::Shale>();
    for step in ["l.i0", "l.x", "l.i1", "l.i2", "qr500", "qp500", "wait_idle"] {
        let row = run(&*store, &options, step);
        assert_eq!((row.engine.as_str(), row.step.as_str()), ("shale", step));
        assert_eq!(row.extra["table_rows"], 3001.0);
        assert!(row.rate > 0.0 && row.size_bytes > 0);
    }
    check_indexes(&store);
    assert_eq!(rows_by_hand(&store).len(), 3001);
}

#[test]
fn the_clients_own_cost_is_measured() {
    let options = options(&SMALL);
    let store = open::<Model>();
    for step in ["l.i", "l.i1", "qr100", "qp100"] {
        let row = run(&*store, &options, step);
        assert!(row.cpu.client_us_per_op > 0.0, "{step}");
    }
}
