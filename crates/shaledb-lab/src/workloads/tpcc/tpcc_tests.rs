//! Parameters, chance and clients of the TPC-C pattern, on a store that notes what it is given. The
//! statements are tested on servers, by the driver.

use super::chance::{Uneven, between, data, last_name, letters, names};
use super::clients::{KINDS, MIX};
use super::input::{Delivery, Inputs, NewOrder, OrderStatus, Payment, StockLevel, Who};
use super::rows::{Cell, Rows, Table};
use super::scale::Scale;
use super::store::{Done, Tpcc, TpccSession};
use super::*;
use crate::generate::Random;
use crate::run::row::Row;
use crate::run::work::Named;
use crate::stores::engine::{Metrics, Result};
use crate::stores::store::Store;
use crate::workloads::planned::Start;
use clap::Parser;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

#[derive(Parser, Debug)]
struct Command {
    #[command(flatten)]
    options: TpccOptions,
}

fn options(flags: &[&str]) -> TpccOptions {
    Command::try_parse_from([&["x"], flags].concat()).unwrap().options
}

/// Rows as texts, by table.
type Tables = BTreeMap<&'static str, Vec<Vec<String>>>;

/// Notes what it is given.
#[derive(Default)]
struct Kept {
    rows: Mutex<Tables>,
    foreign_keys: Mutex<Option<bool>>,
    broken: bool,
}
struct KeptSession<'s>(&'s Kept);

impl Store for Kept {
    fn name(&self) -> String {
        "kept".to_owned()
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

impl Tpcc for Kept {
    type Session<'s> = KeptSession<'s>;

    fn create_warehouses(&self, foreign_keys: bool) -> Result<()> {
        *self.foreign_keys.lock().unwrap() = Some(foreign_keys);
        Ok(())
    }
    fn warehouse_session(&self) -> Result<KeptSession<'_>> {
        Ok(KeptSession(self))
    }
    fn check_warehouses(&self) -> Result<u64> {
        if self.broken { Err("condition 1 does not hold".into()) } else { Ok(11) }
    }
}

impl TpccSession for KeptSession<'_> {
    fn load(&mut self, rows: &Rows) -> Result<()> {
        let text = |cell: Cell<'_>| match cell {
            Cell::Number(number) => number.to_string(),
            Cell::Decimal(count, digits) => format!("{count}e-{digits}"),
            Cell::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            Cell::Now => "now".to_owned(),
            Cell::Null => "null".to_owned(),
        };
        let cells: Vec<String> = rows.cells().map(text).collect();
        let columns = rows.columns();
        assert_eq!(cells.len(), columns * rows.len());
        let mut tables = self.0.rows.lock().unwrap();
        let table = tables.entry(rows.table().name()).or_default();
        table.extend(cells.chunks(columns).map(<[String]>::to_vec));
        Ok(())
    }
    fn new_order(&mut self, order: &NewOrder) -> Result<Done> {
        let fails = order.lines.last().unwrap().item == 100_001;
        Ok(Done { count: if fails { 0 } else { order.lines.len() as u64 }, read: 100 })
    }
    fn payment(&mut self, _: &Payment) -> Result<Done> {
        Ok(Done { count: 1, read: 100 })
    }
    fn order_status(&mut self, _: &OrderStatus) -> Result<Done> {
        Ok(Done { count: 9, read: 100 })
    }
    fn delivery(&mut self, _: &Delivery) -> Result<Done> {
        Ok(Done { count: 10, read: 100 })
    }
    fn stock_level(&mut self, _: &StockLevel) -> Result<Done> {
        Ok(Done { count: 0, read: 100 })
    }
}

fn try_run(store: &Kept, options: &TpccOptions, step: &str) -> Result<Row> {
    let named = Named { workload: "tpcc", step, ..Named::default() };
    let at = options.step(step)?;
    let costs = work::client_costs(options, at.0, 1)?;
    work::run(store, options, at, 1, costs, &named, &mut |_| {})
}

#[test]
fn steps_are_read_written_and_planned() {
    let defaults = options(&[]);
    defaults.check().unwrap();
    let planned = defaults.planned();
    let names: Vec<&str> = planned.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["load", "run.c1", "run.c4", "check"]);
    for step in &planned {
        assert_eq!(step.start == Start::Fresh, step.name == "load");
        assert_eq!(
            defaults.step(&step.name).unwrap().0,
            step.name[..].split('.').next().unwrap().parse().unwrap()
        );
    }
    assert_eq!(
        (defaults.step("run.c4"), defaults.step("load")),
        (Ok((Step::Run, 4)), Ok((Step::Load, 2)))
    );
    assert!(defaults.step("wait_idle").is_err() && defaults.step("drop").is_err());
    assert_eq!(defaults.warehouses, 10);
    // About 80 MB to a warehouse.
    let bytes = defaults.data_bytes() * 2 / 3 / 10;
    assert!((75_000_000..85_000_000).contains(&bytes), "{bytes}");
    let json = serde_json::to_string(&defaults).unwrap();
    assert!(json.contains("\"foreign_keys\":\"on\""), "{json}");
    assert_eq!(serde_json::from_str::<TpccOptions>(&json).unwrap(), defaults);
    assert!(options(&["--steps", "run,check"]).check().unwrap_err().contains("load"));
}

#[test]
fn wrong_flags_are_refused() {
    for flags in [
        ["--warehouses", "0"],
        ["--warehouses", "10001"],
        ["--clients", "0"],
        ["--seconds", "0"],
        ["--foreign-keys", "maybe"],
        ["--shrink", "0"],
        ["--shrink", "101"],
        ["--steps", "delivery"],
    ] {
        let error = Command::try_parse_from([&["x"], &flags[..]].concat()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(flags[0]) && error.contains(flags[1]), "{error}");
    }
}

#[test]
fn names_and_texts_are_the_standards() {
    assert_eq!(last_name(371), "PRICALLYOUGHT");
    assert_eq!(last_name(0), "BARBARBAR");
    assert_eq!(last_name(999), "EINGEINGEING");
    let random = &mut Random::new(5);
    let mut originals = 0;
    for _ in 0..10_000 {
        let mut text = Vec::new();
        data(random, &mut text);
        assert!((26..=50).contains(&text.len()));
        originals += u32::from(String::from_utf8(text).unwrap().contains("ORIGINAL"));
        let mut text = Vec::new();
        letters(random, 2..=3, &mut text);
        assert!((2..=3).contains(&text.len()) && text.iter().all(u8::is_ascii_alphanumeric));
    }
    assert!((900..1100).contains(&originals), "{originals}");
}

#[test]
fn uneven_numbers_are_in_their_range_and_uneven() {
    let scale = Scale::new(1, 1);
    for seed in 0..50 {
        let uneven = Uneven::new(seed);
        let apart = uneven.loaded_name.abs_diff(uneven.asked_name);
        assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "{apart}");
    }
    let uneven = Uneven::new(1);
    let random = &mut Random::new(1);
    let mut counts = vec![0u32; 3001];
    for _ in 0..300_000 {
        counts[uneven.customer(random, &scale) as usize] += 1;
        assert!((1..=100_000).contains(&uneven.item(random, &scale)));
        assert!(Uneven::name(uneven.asked_name, random, &scale) < 1000);
    }
    // Of even numbers each would come about 100 times.
    assert_eq!(counts[0], 0);
    assert!(counts.iter().max() > Some(&500), "{:?}", counts.iter().max());
    let small = Scale::new(1, 100);
    assert_eq!((small.customers, small.items, names(&small)), (30, 1000, 30));
    for _ in 0..10_000 {
        assert!((1..=30).contains(&uneven.customer(random, &small)));
        assert!(Uneven::name(uneven.asked_name, random, &small) < 30);
    }
}

#[test]
fn inputs_have_the_standards_proportions() {
    const ORDERS: u32 = 40_000;
    let scale = Scale::new(5, 1);
    let mut inputs = Inputs::new(Random::new(2), scale, Uneven::new(2));
    let (mut order, mut lines, mut remote, mut failing) = (NewOrder::default(), 0, 0, 0);
    let (mut elsewhere, mut by_name) = (0, 0);
    for _ in 0..ORDERS {
        inputs.new_order(&mut order);
        assert!((1..=5).contains(&order.warehouse) && (1..=10).contains(&order.district));
        assert!((5..=15).contains(&order.lines.len()));
        lines += order.lines.len() as u32;
        let (last, others) = order.lines.split_last().unwrap();
        assert!(others.iter().all(|line| (1..=100_000).contains(&line.item)));
        failing += u32::from(last.item == 100_001);
        let is_remote = |line: &&input::Line| line.supplier != order.warehouse;
        remote += order.lines.iter().filter(is_remote).count() as u32;
        assert!(order.lines.iter().all(|line| (1..=5).contains(&line.supplier)));
        let payment = inputs.payment();
        assert!((100..=500_000).contains(&payment.amount));
        elsewhere += u32::from(payment.customer_warehouse != payment.warehouse);
        by_name += u32::from(matches!(payment.who, Who::Name(_)));
    }
    let share = |count: u32, of: u32| f64::from(count) / f64::from(of);
    let near = |share: f64, wanted: f64| assert!((share / wanted - 1.0).abs() < 0.2, "{share}");
    near(share(lines, ORDERS), 10.0);
    near(share(failing, ORDERS), 0.01);
    near(share(remote, lines), 0.01);
    near(share(elsewhere, ORDERS), 0.15);
    near(share(by_name, ORDERS), 0.6);
    // One warehouse has no other.
    let mut alone = Inputs::new(Random::new(2), Scale::new(1, 1), Uneven::new(2));
    assert!((0..1000).all(|_| alone.payment().customer_warehouse == 1));
}

fn loaded(flags: &[&str]) -> (Kept, Row) {
    let (store, options) = (Kept::default(), options(flags));
    let row = try_run(&store, &options, "load").unwrap();
    (store, row)
}

const SMALL: [&str; 4] = ["--warehouses", "3", "--shrink", "50"];

#[test]
fn the_load_has_all_rows_and_keeps_the_conditions() {
    let (store, row) = loaded(&SMALL);
    assert_eq!(*store.foreign_keys.lock().unwrap(), Some(true));
    let tables = store.rows.into_inner().unwrap();
    let count = |name: &str| tables[name].len();
    assert_eq!((count("item"), count("warehouse"), count("stock")), (2000, 3, 6000));
    assert_eq!((count("district"), count("customer"), count("history")), (30, 1800, 1800));
    assert_eq!((count("orders"), count("new_order")), (1800, 540));
    let all: usize = tables.values().map(Vec::len).sum();
    assert_eq!((row.ops, row.found), (all as u64, all as u64));
    let kinds: Vec<&str> = row.latency_us.keys().map(String::as_str).collect();
    let mut wanted = load::KINDS.to_vec();
    wanted.sort_unstable();
    assert_eq!(kinds, wanted);
    assert_eq!(load::KINDS, Table::ALL.map(Table::name));

    // What was paid adds up.
    assert!(tables["warehouse"].iter().all(|row| row[8] == "600000e-2"));
    assert!(tables["district"].iter().all(|row| row[9] == "60000e-2" && row[10] == "61"));
    // An order of each customer; lines and new orders of each order.
    let lines = |order: &[String]| {
        tables["order_line"].iter().filter(|line| line[..3] == order[..3]).collect::<Vec<_>>()
    };
    let mut customers = Vec::new();
    for order in &tables["orders"] {
        let delivered = order[0].parse::<u32>().unwrap() <= 42;
        assert_eq!(order[5] == "null", !delivered);
        let is_new = tables["new_order"].iter().any(|new| new[..] == order[..3]);
        assert_eq!(is_new, !delivered);
        let lines = lines(order);
        assert_eq!(lines.len(), order[6].parse::<usize>().unwrap());
        assert!(lines.iter().all(|line| (line[6] == "null") != delivered));
        assert!(lines.iter().all(|line| (line[8] == "0e-2") == delivered));
        customers.push((&order[2], &order[1], &order[3]));
    }
    customers.sort();
    customers.dedup();
    assert_eq!(customers.len(), 1800);
    // Each last name is somebody's.
    assert_eq!(tables["customer"][59][5], last_name(59));
}

#[test]
fn rows_are_as_large_as_is_said() {
    let (store, row) = loaded(&["--warehouses", "3", "--shrink", "10"]);
    let tables = store.rows.into_inner().unwrap();
    let mut stored = 0;
    for table in Table::ALL {
        let rows = &tables[table.name()];
        let size = |(text, column): (&String, &str)| match text.as_str() {
            "null" => 0,
            "now" => 8,
            text if text.contains("e-") => 8,
            _ if column.ends_with("_zip") || column.ends_with("phone") => text.len(),
            text if text.parse::<u32>().is_ok() => 4,
            text => text.len(),
        };
        let bytes: usize = rows
            .iter()
            .map(|row| row.iter().zip(table.columns().split(", ")).map(size).sum::<usize>())
            .sum();
        let (mean, said) = (bytes as f64 / rows.len() as f64, table.row_bytes() as f64);
        // There are few places.
        let off = if rows.len() < 100 { 0.1 } else { 0.02 };
        assert!((mean / said - 1.0).abs() < off, "{}: {mean} {said}", table.name());
        stored += rows.len() as u64 * table.stored_bytes();
    }
    assert_eq!(row.live_grown_bytes, stored as i64);
}

#[test]
fn the_same_seed_loads_the_same_rows_by_any_number_of_clients() {
    let sorted = |flags: &[&str]| {
        let mut tables = loaded(&[&SMALL[..], flags].concat()).0.rows.into_inner().unwrap();
        tables.values_mut().for_each(|rows| rows.sort());
        tables
    };
    assert!(sorted(&["--load-clients", "1"]) == sorted(&["--load-clients", "3"]));
}

#[test]
fn transactions_are_mixed_as_the_standard_says() {
    assert_eq!(MIX.iter().sum::<u32>(), 100);
    let store = Kept::default();
    let options = options(&["--seconds", "0.6", "--clients", "2", "--foreign-keys", "off"]);
    let row = try_run(&store, &options, "run.c2").unwrap();
    assert_eq!((row.clients, row.unit.as_str()), (2, "transaction"));
    for (kind, percent) in KINDS.iter().zip(MIX) {
        let share = 100.0 * row.latency_us[*kind].count as f64 / row.ops as f64;
        assert!((share / f64::from(percent) - 1.0).abs() < 0.15, "{kind} {share}");
    }
    // Orders that are rolled back change nothing, and count as orders.
    let orders = row.latency_us["new_order"].count;
    let rolled_back = (row.ops - row.found) as f64 / orders as f64;
    assert!((0.005..0.015).contains(&rolled_back), "{rolled_back}");
    let per_minute = row.extra["new_orders_per_minute"];
    assert!((per_minute * row.seconds / 60.0 / orders as f64 - 1.0).abs() < 1e-9);
    assert_eq!(row.counted.read_bytes, 100 * row.ops);
    assert!(row.live_grown_bytes > 0 && row.counted.user_bytes > row.live_grown_bytes as u64);
    assert!(store.rows.lock().unwrap().is_empty());
}

#[test]
fn a_check_that_fails_fails_the_step() {
    let options = options(&[]);
    let row = try_run(&Kept::default(), &options, "check").unwrap();
    assert_eq!((row.ops, row.unit.as_str()), (1, "check"));
    let broken = Kept { broken: true, ..Kept::default() };
    let error = try_run(&broken, &options, "check").unwrap_err().to_string();
    assert!(error.contains("condition 1 does not hold"), "{error}");
}

#[test]
fn numbers_of_a_range_are_all_there() {
    let random = &mut Random::new(9);
    let seen: std::collections::BTreeSet<u32> = (0..1000).map(|_| between(random, 3..=7)).collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
}
