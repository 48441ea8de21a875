//! Whether tables and their indexes agree, by the server's own counts: what a step left is looked
//! at once more, by statements that no client of the lab uses.

use crate::sales::INDEXES;
use crate::settings::Form;
use crate::sql::number;
use crate::store::{DATABASE, MariaDb};
use crate::{graph, oltp, sales, tpcc_tables};
use mysql::Row;
use mysql::prelude::Queryable;
use shaledb_lab::driver::Server as _;
use shaledb_lab::setup::Setup;
use shaledb_lab::stores::engine::Result;
use shaledb_lab::stores::store::Store;
use std::path::Path;

/// Starts a server on a store's folder, compares all tables that are there, and gives the numbers
/// of their rows as JSON.
pub(crate) fn check(engine: &str, folder: &Path) -> Result<String> {
    if !crate::server::data(folder).exists() {
        return Err(format!(
            "{} does not have a store of {engine}. Name the folder of its database",
            folder.display()
        )
        .into());
    }
    let setup = Setup { memory: 128 << 20, memtable: 8 << 20, ..Setup::default() };
    let store = MariaDb::open(engine, folder, &setup)?;
    let found = check_open(&store)?;
    store.close()?;
    Ok(found)
}

/// The same of a server that runs.
pub(crate) fn check_open(store: &MariaDb) -> Result<String> {
    let mut found = serde_json::Map::new();
    let query = format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}' \
         ORDER BY table_name"
    );
    let tables: Vec<String> = store.admin().query(query)?;
    for table in &tables {
        found.insert(table.clone(), compare_indexes(store, table)?.into());
        check_table(store, table)?;
    }
    if graph::TABLES.iter().all(|table| tables.iter().any(|known| known == table)) {
        check_counts(store)?;
        let visible = store.ask("SELECT COALESCE(SUM(visibility = 1), 0) FROM linktable")?;
        found.insert("visible links".to_owned(), visible.into());
    }
    Ok(serde_json::Value::Object(found).to_string())
}

/// The columns of an index with the primary key's, which every index has.
fn columns(table: &str, index: &str) -> Option<String> {
    if table == "linktable" {
        return Some("id1, id2, link_type, visibility, data, time, version".to_owned());
    }
    if (0..1000).any(|number| table == oltp::table_name(number)) {
        return Some("id, k".to_owned());
    }
    if (0..1000).any(|number| table == sales::table_name(number)) {
        let (_, columns) = INDEXES.iter().find(|(known, _)| *known == index)?;
        return Some(format!("transactionid, {columns}"));
    }
    tpcc_tables::index_columns(table, index)
}

/// A table's rows and a sum over some columns, read by one index, or from the rows themselves.
fn read_by(store: &MariaDb, table: &str, index: Option<&str>, columns: &str) -> Result<(u64, u64)> {
    let by = match index {
        Some(index) => format!("FORCE INDEX ({index})"),
        None => "USE INDEX ()".to_owned(),
    };
    let query = format!(
        "SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('/', {columns}))), 0) FROM {table} {by}"
    );
    let plan: Option<Row> = store.admin().query_first(format!("EXPLAIN {query}"))?;
    let used: Option<String> = plan.and_then(|row| row.get_opt("key")?.ok());
    let rows: Option<Row> = store.admin().query_first(query)?;
    let rows = rows.map_or((0, 0), |row| (number(&row, 0), number(&row, 1)));
    // An index that the server does not use would be compared with nothing.
    if rows.0 > 0 && used.as_deref() != index {
        return Err(format!("{table} is not read by {index:?} but by {used:?}").into());
    }
    Ok(rows)
}

/// All secondary indexes of a table have its rows and nothing else; how many there are.
fn compare_indexes(store: &MariaDb, table: &str) -> Result<u64> {
    let query = format!(
        "SELECT DISTINCT index_name FROM information_schema.statistics \
         WHERE table_schema = DATABASE() AND table_name = '{table}' AND index_name <> 'PRIMARY'"
    );
    let indexes: Vec<String> = store.admin().query(query)?;
    for index in &indexes {
        let columns = columns(table, index)
            .ok_or_else(|| format!("{table} has an index {index} that no benchmark makes"))?;
        let by_rows = read_by(store, table, None, &columns)?;
        let by_index = read_by(store, table, Some(index), &columns)?;
        if by_rows != by_index {
            return Err(format!(
                "{table} has {by_rows:?} rows and sum by itself, {by_index:?} by {index}"
            )
            .into());
        }
    }
    store.ask(&format!("SELECT COUNT(*) FROM {table} USE INDEX ()"))
}

/// The server's own check.
fn check_table(store: &MariaDb, table: &str) -> Result<()> {
    let rows: Vec<Row> = store.admin().query(format!("CHECK TABLE {table}"))?;
    for row in rows {
        let (kind, text): (String, String) =
            (row.get(2).unwrap_or_default(), row.get(3).unwrap_or_default());
        if kind == "status" && text != "OK" {
            return Err(format!("CHECK TABLE {table}: {text}").into());
        }
    }
    Ok(())
}

/// Each count is the number of links that can be seen, and there is one for each list that has any.
fn check_counts(store: &MariaDb) -> Result<()> {
    let wrong = store.ask(
        "SELECT COUNT(*) FROM (SELECT id1, link_type, SUM(visibility = 1) AS visible \
         FROM linktable GROUP BY id1, link_type) AS links \
         LEFT JOIN counttable ON counttable.id = links.id1 \
         AND counttable.link_type = links.link_type \
         WHERE COALESCE(counttable.count, 0) <> links.visible",
    )?;
    let counted = store.ask("SELECT COALESCE(SUM(count), 0) FROM counttable")?;
    let visible = store.ask("SELECT COALESCE(SUM(visibility = 1), 0) FROM linktable")?;
    if wrong > 0 || counted != visible {
        return Err(format!(
            "{wrong} lists have a count that is not that of their links; {counted} links are \
             counted and {visible} can be seen"
        )
        .into());
    }
    Ok(())
}

impl MariaDb {
    /// MyRocks drops tables at once and removes their rows in the background: their space is free
    /// when that is done.
    pub(crate) fn wait_for_dropped_tables(&self) -> Result<()> {
        if self.form != Form::Myrocks {
            return Ok(());
        }
        self.wait_until("dropped tables are removed", |connection| {
            // Else the thread that removes them looks once a minute whether it is done.
            connection.query_drop("SET GLOBAL rocksdb_signal_drop_index_thread = 1")?;
            let query = "SELECT COUNT(*) FROM information_schema.rocksdb_global_info \
                         WHERE type = 'DDL_DROP_INDEX_ONGOING'";
            let row: Option<Row> = connection.query_first(query)?;
            Ok(row.is_none_or(|row| number(&row, 0) == 0))
        })
    }
}
