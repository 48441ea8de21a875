//! The TPC-C pattern on real servers: what transactions change, the conditions after many at once,
//! and that a condition that does not hold is told.

use crate::check::check_open;
use crate::settings::Form;
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use shaledb_lab::driver::Server as _;
use shaledb_lab::run::row::Row;
use shaledb_lab::run::work::Named;
use shaledb_lab::setup::Setup;
use shaledb_lab::stores::store::Store;
use shaledb_lab::workloads::tpcc::input::{
    Delivery, Line, NewOrder, OrderStatus, Payment, StockLevel, Who,
};
use shaledb_lab::workloads::tpcc::options::Switch;
use shaledb_lab::workloads::tpcc::store::{Tpcc, TpccSession};
use shaledb_lab::workloads::tpcc::{Step, TpccOptions, work};
use std::path::Path;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn open(form: Form, folder: &Path) -> MariaDb {
    let setup = Setup { memory: 96 << 20, memtable: 4 << 20, ..Setup::default() };
    MariaDb::open(form.name(), folder, &setup).unwrap()
}

fn options(foreign_keys: Switch) -> TpccOptions {
    TpccOptions {
        steps: Vec::new(),
        warehouses: 2,
        clients: vec![4],
        load_clients: 2,
        seconds: 2.0,
        warm_up: 0,
        foreign_keys,
        shrink: 100,
    }
}

fn run(store: &MariaDb, options: &TpccOptions, step: (Step, u32)) -> Row {
    let named = Named { workload: "tpcc", step: "", ..Named::default() };
    work::run(store, options, step, 1, (0.0, 0.0), &named, &mut |_| {}).unwrap()
}

/// Many transactions at once, which keep the conditions, also after the server was stopped and
/// started.
fn trades(form: Form, foreign_keys: Switch) {
    let dir = folder();
    let store = open(form, dir.path());
    let options = options(foreign_keys);
    run(&store, &options, (Step::Load, 2));
    assert_eq!(store.check_warehouses().unwrap(), 11);
    let row = run(&store, &options, (Step::Run, 4));
    assert!(row.latency_us["new_order"].count > 0 && row.latency_us["payment"].count > 0);
    assert!(row.counted.read_bytes > 0 && row.extra.contains_key("retries"));
    run(&store, &options, (Step::Check, 1));
    let constraints = "SELECT COUNT(*) FROM information_schema.referential_constraints \
                       WHERE constraint_schema = DATABASE()";
    let wanted = if foreign_keys == Switch::On { 10 } else { 0 };
    assert_eq!(store.ask(constraints).unwrap(), wanted);
    let found = check_open(&store).unwrap();
    assert!(found.contains("\"stock\":2000"), "{found}");
    store.close().unwrap();

    let store = open(form, dir.path());
    assert_eq!(store.check_warehouses().unwrap(), 11);
    assert_eq!(check_open(&store).unwrap(), found);
    store.close().unwrap();
}

#[test]
fn warehouses_of_innodb_keep_the_conditions() {
    trades(Form::Innodb, Switch::On);
}

#[test]
fn warehouses_of_myrocks_keep_the_conditions() {
    trades(Form::Myrocks, Switch::Off);
}

#[test]
#[ignore = "needs the plugin"]
fn warehouses_of_shale_keep_the_conditions() {
    trades(Form::Shale, Switch::On);
}

#[test]
#[ignore = "needs the plugin"]
fn warehouses_of_shale_without_foreign_keys_keep_the_conditions() {
    trades(Form::Shale, Switch::Off);
}

#[test]
fn myrocks_is_not_asked_for_foreign_keys() {
    let dir = folder();
    let store = open(Form::Myrocks, dir.path());
    let error = store.create_warehouses(true).unwrap_err().to_string();
    assert!(error.contains("--foreign-keys off"), "{error}");
    store.close().unwrap();
}

/// What each transaction changes, by the standard's words.
fn does(form: Form) {
    let dir = folder();
    let store = open(form, dir.path());
    run(&store, &options(Switch::On), (Step::Load, 1));
    let mut session = store.warehouse_session().unwrap();
    let ask = |query: &str| store.ask(query).unwrap();

    // An order of two lines, one from elsewhere. What falls below ten is filled up by 91.
    store.admin().query_drop("UPDATE stock SET s_quantity = 20 WHERE s_i_id = 5").unwrap();
    let line = |supplier| Line { item: 5, supplier, quantity: 8 };
    let lines = vec![line(1), line(2), line(1)];
    let mut order = NewOrder { warehouse: 1, district: 3, customer: 7, lines };
    assert_eq!(session.new_order(&order).unwrap().count, 3);
    let stock = "SELECT SUM(s_quantity * 1000 + s_ytd + s_order_cnt * 100 + s_remote_cnt) \
                 FROM stock WHERE s_i_id = 5 AND s_w_id =";
    assert_eq!(ask(&format!("{stock} 1")), (20 - 8 - 8 + 91) * 1000 + 16 + 200);
    assert_eq!(ask(&format!("{stock} 2")), (20 - 8) * 1000 + 8 + 100 + 1);
    let placed = "SELECT COUNT(*) FROM orders JOIN new_order ON o_id = no_o_id AND o_d_id = no_d_id \
                  AND o_w_id = no_w_id JOIN order_line ON ol_o_id = o_id AND ol_d_id = o_d_id AND \
                  ol_w_id = o_w_id JOIN item ON i_id = ol_i_id JOIN stock ON s_i_id = i_id AND \
                  s_w_id = ol_supply_w_id WHERE o_id = 31 AND o_d_id = 3 AND o_w_id = 1 AND \
                  o_c_id = 7 AND o_ol_cnt = 3 AND o_all_local = 0 AND o_carrier_id IS NULL AND \
                  ol_amount = 8 * i_price AND ol_dist_info = s_dist_03";
    assert_eq!(ask(placed), 3);

    // One whose last item is not there leaves nothing.
    let rows = "SELECT (SELECT COUNT(*) FROM orders) + (SELECT COUNT(*) FROM order_line) + \
                (SELECT COUNT(*) FROM new_order) + (SELECT SUM(d_next_o_id) FROM district) + \
                (SELECT SUM(s_quantity) FROM stock)";
    let before = ask(rows);
    order.lines.push(Line { item: 1001, supplier: 1, quantity: 1 });
    assert_eq!(session.new_order(&order).unwrap().count, 0);
    assert_eq!(ask(rows), before);

    // A payment by name, of a customer of another warehouse with bad credit.
    let bad = "UPDATE customer SET c_credit = 'BC', c_data = 'old', c_last = 'BARBARBAR' \
               WHERE c_w_id = 2 AND c_d_id = 4";
    store.admin().query_drop(bad).unwrap();
    let first = |id| format!("UPDATE customer SET c_first = 'f{id:02}' WHERE c_id = {id}");
    for id in 1..=30 {
        store.admin().query_drop(first(id)).unwrap();
    }
    let payment = Payment {
        warehouse: 1,
        district: 3,
        customer_warehouse: 2,
        customer_district: 4,
        who: Who::Name(0),
        amount: 12_345,
    };
    session.payment(&payment).unwrap();
    // Of thirty the fifteenth is in the middle.
    let paid = "SELECT COUNT(*) FROM customer JOIN history ON h_c_id = c_id AND h_c_d_id = c_d_id \
                AND h_c_w_id = c_w_id WHERE c_id = 15 AND c_w_id = 2 AND c_d_id = 4 AND \
                c_balance = -133.45 AND c_ytd_payment = 133.45 AND c_payment_cnt = 2 AND \
                c_data = '15 4 2 3 1 123.45 | old' AND h_amount = 123.45 AND h_w_id = 1 AND \
                h_d_id = 3";
    assert_eq!(ask(paid), 1);

    let asked = OrderStatus { warehouse: 1, district: 3, who: Who::Id(7) };
    let status = session.order_status(&asked).unwrap();
    assert!(status.count == 3 && status.read > 20, "{status:?}");

    // The oldest order of each district: 22, the first that the load has not delivered.
    let owed = "SELECT SUM(ol_amount) * 100 FROM order_line WHERE ol_w_id = 1 AND ol_o_id = 22";
    let balance = "SELECT SUM(c_balance + 10000) * 100 FROM customer";
    let (owed, before) =
        (ask(&format!("SELECT FLOOR(({owed}))")), ask(&format!("SELECT FLOOR(({balance}))")));
    let done = session.delivery(&Delivery { warehouse: 1, carrier: 9 }).unwrap();
    assert_eq!(done.count, 10);
    assert_eq!(ask("SELECT COUNT(*) FROM orders WHERE o_id = 22 AND o_carrier_id = 9"), 10);
    assert_eq!(ask("SELECT COUNT(*) FROM new_order WHERE no_o_id = 22"), 10);
    assert_eq!(ask(&format!("SELECT FLOOR(({balance}))")), before + owed);

    store.admin().query_drop("UPDATE stock SET s_quantity = 50").unwrap();
    let low = "UPDATE stock SET s_quantity = 11 WHERE s_w_id = 1 AND s_i_id = 5";
    store.admin().query_drop(low).unwrap();
    let level = |threshold| StockLevel { warehouse: 1, district: 3, threshold };
    assert_eq!(session.stock_level(&level(11)).unwrap().count, 0);
    assert_eq!(session.stock_level(&level(12)).unwrap().count, 1);
    assert_eq!(store.check_warehouses().unwrap(), 11);
    drop(session);
    store.close().unwrap();
}

#[test]
fn transactions_do_on_innodb_what_the_standard_says() {
    does(Form::Innodb);
}

#[test]
#[ignore = "needs the plugin"]
fn transactions_do_on_shale_what_the_standard_says() {
    does(Form::Shale);
}

/// A payment waits for a lock for too long: it is done again, once in all, and counted.
fn tries_again(form: Form, timeout: &str) {
    let dir = folder();
    let store = open(form, dir.path());
    run(&store, &options(Switch::On), (Step::Load, 1));
    store.admin().query_drop(format!("SET GLOBAL {timeout} = 1")).unwrap();
    let mut session = store.warehouse_session().unwrap();
    let mut other = store.connect(true).unwrap();
    // A payment comes to this row late: what it did before is undone too.
    let lock = "SELECT * FROM customer WHERE c_w_id = 2 AND c_d_id = 4 AND c_id = 7 FOR UPDATE";
    other.query_drop(lock).unwrap();
    let payment = Payment {
        warehouse: 1,
        district: 3,
        customer_warehouse: 2,
        customer_district: 4,
        who: Who::Id(7),
        amount: 100,
    };
    std::thread::scope(|threads| {
        threads.spawn(|| session.payment(&payment).unwrap());
        while store.extra()["retries"] < 1.0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        other.query_drop("COMMIT").unwrap();
    });
    assert!(store.notes()[0].contains("waited for a lock"), "{:?}", store.notes());
    assert_eq!(store.ask("SELECT COUNT(*) FROM history WHERE h_amount = 1").unwrap(), 1);
    assert_eq!(store.ask("SELECT COUNT(*) FROM warehouse WHERE w_ytd = 3001").unwrap(), 1);
    assert_eq!(store.check_warehouses().unwrap(), 11);
    store.close().unwrap();
}

#[test]
fn a_transaction_that_waits_too_long_on_innodb_is_done_again() {
    tries_again(Form::Innodb, "innodb_lock_wait_timeout");
}

#[test]
#[ignore = "needs the plugin"]
fn a_transaction_that_waits_too_long_on_shale_is_done_again() {
    tries_again(Form::Shale, "shale_lock_wait_timeout");
}

#[test]
fn a_condition_that_does_not_hold_is_told() {
    let dir = folder();
    let store = open(Form::Innodb, dir.path());
    run(&store, &options(Switch::On), (Step::Load, 2));
    let order = "WHERE o_w_id = 1 AND o_d_id = 1";
    let line = "WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1";
    for (spoil, wanted) in [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1".to_owned(), "1 8"),
        ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3".to_owned(), "2"),
        ("DELETE FROM new_order WHERE no_o_id = 25".to_owned(), "3 5"),
        (format!("DELETE FROM order_line {line} AND ol_number = 1"), "4 6"),
        (format!("UPDATE orders SET o_carrier_id = NULL {order} AND o_id = 1"), "5 7"),
        (format!("UPDATE orders SET o_ol_cnt = o_ol_cnt + 3 - 2 * o_id {order} AND o_id < 3"), "6"),
        (format!("UPDATE order_line SET ol_delivery_d = NULL {line}"), "7"),
        ("UPDATE history SET h_amount = 11 WHERE h_w_id = 1 AND h_d_id = 1".to_owned(), "8 9 10"),
        ("UPDATE district SET d_ytd = d_ytd + 3 - 2 * d_id WHERE d_id < 3".to_owned(), "9"),
        ("UPDATE customer SET c_balance = c_balance + 1 WHERE c_id = 1".to_owned(), "10 12"),
        ("UPDATE customer SET c_ytd_payment = 0 WHERE c_id = 1".to_owned(), "12"),
    ] {
        store.admin().query_drop("BEGIN").unwrap();
        store.admin().query_drop(&spoil).unwrap();
        let error = store.check_warehouses().unwrap_err().to_string();
        let told = error.rsplit_once("broken: ").unwrap().1.split("; ");
        let numbers: Vec<&str> = told.filter_map(|one| one.split(' ').next()).collect();
        assert_eq!(numbers.join(" "), wanted, "{spoil}: {error}");
        store.admin().query_drop("ROLLBACK").unwrap();
        assert_eq!(store.check_warehouses().unwrap(), 11);
    }
    store.close().unwrap();
}
