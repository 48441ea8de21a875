//! A real server of each form, beside the model: the same answers, durability, conflicts, checks.

use crate::check::check_open;
use crate::settings::Form;
use crate::sql::{change, is_duplicate};
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use shaledb_lab::driver::Server as _;
use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::kv::KvStore;
use shaledb_lab::stores::model::Model;
use shaledb_lab::stores::store::{Host, Store};
use shaledb_lab::workloads::agreement;
use shaledb_lab::workloads::linkbench::graph::{
    Graph, GraphSession, LINK_TYPE, Link, NODE_TYPE, Node,
};
use shaledb_lab::workloads::linkbench::options::PARTITIONS;
use shaledb_lab::workloads::{insert, linkbench, rows, sysbench};
use std::path::Path;
use std::sync::Barrier;

fn setup() -> Setup {
    Setup { memory: 96 << 20, memtable: 4 << 20, ..Setup::default() }
}

fn folder() -> tempfile::TempDir {
    // On a disk: holes are not punched, and O_DIRECT is not there, everywhere.
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn open(form: Form, folder: &Path) -> MariaDb {
    MariaDb::open(form.name(), folder, &setup()).unwrap()
}

fn open_with_graph(form: Form, folder: &Path) -> MariaDb {
    let store = open(form, folder);
    store.create_tables(PARTITIONS).unwrap();
    store
}

fn model(folder: &Path, name: &str, trees: &[&str]) -> KvStore<Model> {
    KvStore::open(&folder.join(name), &setup(), trees).unwrap()
}

/// How many partitions `linktable` has.
fn partitions(store: &MariaDb) -> u64 {
    let query = "SELECT COUNT(*) FROM information_schema.partitions WHERE table_schema = DATABASE() \
                 AND table_name = 'linktable' AND partition_name IS NOT NULL";
    store.ask(query).unwrap()
}

/// All workloads on a server of this form and on the model, which answer alike, also after the
/// server was stopped and started.
fn agrees(form: Form) {
    let dir = folder();
    let path = dir.path();
    let store = open(form, path);
    let graph = model(path, "graph", &linkbench::over_kv::TREES);
    agreement::graph(&store, &graph, 1, 1500, Some(PARTITIONS)).unwrap();
    assert_eq!(partitions(&store), u64::from(PARTITIONS));
    // LinkBench's own statements are text.
    let prepared = "SELECT VARIABLE_VALUE FROM information_schema.global_status \
                    WHERE VARIABLE_NAME = 'Com_stmt_prepare'";
    assert_eq!(store.ask(prepared).unwrap(), 0);
    let sales = model(path, "sales", &insert::over_kv::TREES);
    agreement::sales(&store, &sales, 1, 400).unwrap();
    let oltp = model(path, "oltp", &sysbench::over_kv::TREES);
    agreement::oltp(&store, &oltp, 1, 800).unwrap();
    store.wait_idle().unwrap();
    let metrics = store.metrics().unwrap();
    assert!(metrics.wal_bytes > 0 && metrics.flush_bytes > Some(0), "{metrics:?}");
    let has_levels = matches!(form, Form::Myrocks | Form::Shale);
    assert_eq!(metrics.levels.is_empty(), !has_levels);
    assert_eq!(metrics.levels.iter().any(|level| level.bytes > 0), has_levels);
    let pairs = model(path, "pairs", &rows::over_kv::TREES);
    agreement::pairs(&store, &pairs, 1, 600).unwrap();
    store.wait_idle().unwrap();
    let found = check_open(&store).unwrap();
    assert!(found.contains("\"purchases1\":") && found.contains("\"sbtest0\":"), "{found}");
    assert!(matches!(store.host(), Host::Processes(pids) if pids.len() == 1));
    store.close().unwrap();

    let store = open(form, path);
    assert_eq!(check_open(&store).unwrap(), found);
    agreement::graph(&store, &graph, 2, 500, None).unwrap();
    store.drop_tables().unwrap();
    store.close().unwrap();
}

#[test]
fn innodb_agrees_with_the_model() {
    agrees(Form::Innodb);
}

#[test]
fn compressed_innodb_agrees_with_the_model() {
    agrees(Form::Compressed);
}

#[test]
fn innodb_with_holes_agrees_with_the_model() {
    agrees(Form::Punch);
}

#[test]
fn myrocks_agrees_with_the_model() {
    agrees(Form::Myrocks);
}

/// Of the server that `mariadb/shale/build` lays out, which SHALE_MARIADB_SERVER names.
#[test]
#[ignore = "needs the plugin"]
fn shale_agrees_with_the_model() {
    agrees(Form::Shale);
}

/// At either durability, what was answered outlives a server that is killed.
fn survives(form: Form) {
    for durability in [Durability::Process, Durability::Power] {
        let dir = folder();
        let setup = Setup { durability, ..setup() };
        let store = MariaDb::open(form.name(), dir.path(), &setup).unwrap();
        let node = Node { id: 0, node_type: NODE_TYPE, version: 1, time: 1, data: b"node" };
        store.create_tables(PARTITIONS).unwrap();
        let mut session = store.session().unwrap();
        let last = (0..50).map(|_| session.add_node(&node).unwrap()).last().unwrap();
        session.add_link(&link(1, 2)).unwrap();
        drop(session);
        store.kill();

        let store = MariaDb::open(form.name(), dir.path(), &setup).unwrap();
        let mut session = store.session().unwrap();
        for id in last - 49..=last {
            assert!(session.get_node(NODE_TYPE, id, &mut |_| ()).unwrap(), "{durability:?} {id}");
        }
        assert_eq!(session.count_links(1, LINK_TYPE).unwrap(), Some(1));
        drop(session);
        check_open(&store).unwrap();
        store.close().unwrap();
    }
}

#[test]
fn what_innodb_answered_survives_the_end_of_the_server() {
    survives(Form::Innodb);
}

#[test]
fn what_myrocks_answered_survives_the_end_of_the_server() {
    survives(Form::Myrocks);
}

#[test]
#[ignore = "needs the plugin"]
fn what_shale_answered_survives_the_end_of_the_server() {
    survives(Form::Shale);
}

#[test]
fn links_without_partitions_agree_with_the_model() {
    let dir = folder();
    let store = open(Form::Innodb, dir.path());
    let graph = model(dir.path(), "graph", &linkbench::over_kv::TREES);
    agreement::graph(&store, &graph, 3, 600, Some(0)).unwrap();
    assert_eq!(partitions(&store), 0);
    check_open(&store).unwrap();
    store.close().unwrap();
}

#[test]
fn of_several_statements_the_first_is_counted_and_each_error_told() {
    let dir = folder();
    let store = open_with_graph(Form::Innodb, dir.path());
    let mut connection = store.connect(true).unwrap();
    let insert = "INSERT INTO counttable (id) VALUES (1), (2)";
    let changed = change(&mut connection, &format!("{insert}; COMMIT")).unwrap();
    assert_eq!((changed.rows, changed.matched), (2, 2));
    let same = "UPDATE counttable SET count = 0 WHERE id = 1";
    let changed = change(&mut connection, &format!("{same}; COMMIT")).unwrap();
    assert_eq!((changed.rows, changed.matched), (0, 1));
    let error = change(&mut connection, &format!("{same}; {insert}")).err().unwrap();
    assert!(is_duplicate(&error), "{error}");
    // The connection goes on.
    change(&mut connection, "ROLLBACK").unwrap();
    drop(connection);
    store.close().unwrap();
}

fn link(id1: u64, id2: u64) -> Link<'static> {
    let (visible, time, version) = (true, 9, 0);
    Link { id1, link_type: LINK_TYPE, id2, visible, time, version, data: b"link" }
}

/// Two transactions take the locks of two rows, each the other's first: one is rolled back and done
/// again, and the row's notes say so.
fn deadlocks(form: Form) {
    let dir = folder();
    let store = open_with_graph(form, dir.path());
    let mut session = store.session().unwrap();
    session.add_link(&link(1, 1)).unwrap();
    session.add_link(&link(2, 2)).unwrap();
    drop(session);
    let meet = Barrier::new(2);
    let both = |ids: [u64; 2]| {
        let mut connection = store.connect(true).unwrap();
        let mut first = true;
        let update = |connection: &mut mysql::Conn| {
            for (at, id) in ids.into_iter().enumerate() {
                let text = "UPDATE counttable SET version = version + 1 WHERE id = ?";
                connection.exec_drop(text, (id,))?;
                if at == 0 && std::mem::take(&mut first) {
                    meet.wait();
                }
            }
            connection.query_drop("COMMIT")
        };
        store.retry(&mut connection, update, |c| c.query_drop("ROLLBACK")).unwrap();
    };
    std::thread::scope(|threads| {
        threads.spawn(|| both([1, 2]));
        threads.spawn(|| both([2, 1]));
    });
    assert_eq!(store.ask("SELECT SUM(version) FROM counttable").unwrap(), 4);
    assert!(store.extra()["retries"] >= 1.0);
    assert!(store.notes()[0].contains("deadlock"), "{:?}", store.notes());
    store.close().unwrap();
}

#[test]
fn deadlocks_of_innodb_are_done_again_and_told() {
    deadlocks(Form::Innodb);
}

#[test]
fn deadlocks_of_myrocks_are_done_again_and_told() {
    deadlocks(Form::Myrocks);
}

#[test]
#[ignore = "needs the plugin"]
fn deadlocks_of_shale_are_done_again_and_told() {
    deadlocks(Form::Shale);
}

#[test]
fn a_check_finds_what_is_wrong() {
    let dir = folder();
    let store = open_with_graph(Form::Innodb, dir.path());
    let mut session = store.session().unwrap();
    session.add_link(&link(1, 1)).unwrap();
    session.add_link(&link(1, 2)).unwrap();
    drop(session);
    let found = check_open(&store).unwrap();
    assert!(found.contains("\"linktable\":2") && found.contains("\"visible links\":2"), "{found}");
    for (spoil, wanted) in [
        ("UPDATE counttable SET count = 1", "1 lists have a count"),
        ("DELETE FROM counttable", "0 links are counted and 2"),
        ("CREATE INDEX other ON nodetable (time)", "an index other"),
    ] {
        store.admin().query_drop(spoil).unwrap();
        let error = check_open(&store).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    store.close().unwrap();
}

#[test]
fn the_log_of_a_server_that_does_not_start_is_shown() {
    let dir = folder();
    open(Form::Innodb, dir.path()).close().unwrap();
    let system = dir.path().join("data/ibdata1");
    std::fs::write(&system, vec![7u8; 12 << 20]).unwrap();
    let error = MariaDb::open("innodb", dir.path(), &setup()).err().unwrap().to_string();
    assert!(error.contains("did not start"), "{error}");
    assert!(error.contains("server.log") && error.contains("InnoDB"), "{error}");
}

/// Another driver finds the server by its address: it is not ours to measure or to stop, and what
/// it had counted before does not count.
#[test]
fn a_server_at_an_address_is_used_and_left_alone() {
    let (ours, other) = (folder(), folder());
    let server = open_with_graph(Form::Innodb, ours.path());
    server.session().unwrap().add_link(&link(1, 1)).unwrap();
    let socket = ours.path().join("socket").display().to_string();
    let setup = Setup { address: Some(format!("root@{socket}")), ..setup() };
    let store = MariaDb::open("innodb", other.path(), &setup).unwrap();
    assert_eq!((store.host(), store.folder()), (Host::Elsewhere, None));
    assert!(store.configuration().iter().any(|(name, _)| name == "address"));
    assert_eq!(store.metrics().unwrap().flush_bytes, Some(0));
    // A new store has a new database.
    store.create_tables(0).unwrap();
    let mut session = store.session().unwrap();
    assert_eq!(session.count_links(1, LINK_TYPE).unwrap(), None);
    session.add_link(&link(1, 3)).unwrap();
    drop(session);
    store.close().unwrap();
    let store = MariaDb::open("innodb", other.path(), &setup).unwrap();
    assert_eq!(store.session().unwrap().count_links(1, LINK_TYPE).unwrap(), Some(1));
    store.close().unwrap();
    assert_eq!(server.ask("SELECT 7").unwrap(), 7);
    server.close().unwrap();

    let wrong = Setup { address: Some("host:port".to_owned()), ..setup };
    let error = MariaDb::open("innodb", other.path(), &wrong).err().unwrap().to_string();
    assert!(error.contains("no address of a server"), "{error}");
}
