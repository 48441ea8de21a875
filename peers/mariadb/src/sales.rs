//! The insert benchmark in tables: an `INSERT` of many rows to a commit, a `DELETE` of a range.

use crate::settings::Form;
use crate::sql::{Insert, Sql, bytes, number};
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Statement};
use shaledb_lab::stores::engine::Result;
use shaledb_lab::workloads::insert::purchase::Purchase;
use shaledb_lab::workloads::insert::store::{Hit, Index, Sales, SalesSession, Start};
use std::ops::{Range, RangeInclusive};

/// Longer data do not fit in a row of a table beside its other columns.
const VARCHAR_BYTES: usize = 20_000;

pub(crate) fn table_name(table: u32) -> String {
    format!("purchases{table}")
}

/// The secondary indexes with their columns.
pub(crate) const INDEXES: [(&str, &str); 3] = [
    ("price_customer", "price, customerid"),
    ("register_price_customer", "cashregisterid, price, customerid"),
    ("price_time_customer", "price, dateandtime, customerid"),
];

fn create(form: Form, table: u32, indexed: bool, data_bytes: usize) -> String {
    let data = match data_bytes {
        0..=VARCHAR_BYTES => format!("varchar({})", data_bytes.max(1)),
        _ => "mediumtext".to_owned(),
    };
    let keys = |(name, columns): &(&str, &str)| format!(", KEY {name} ({columns})");
    let keys: String = INDEXES.iter().filter(|_| indexed).map(keys).collect();
    format!(
        "CREATE TABLE {} (
            transactionid bigint unsigned NOT NULL,
            dateandtime bigint unsigned NOT NULL,
            cashregisterid int unsigned NOT NULL,
            customerid int unsigned NOT NULL,
            productid int unsigned NOT NULL,
            price int unsigned NOT NULL,
            data {data} NOT NULL,
            PRIMARY KEY (transactionid){keys}
        ) {}",
        table_name(table),
        form.table()
    )
}

impl MariaDb {
    /// Drops the tables whose names are these letters and a number.
    pub(crate) fn drop_numbered(&self, letters: &str) -> Result<()> {
        let query = format!(
            "SELECT table_name FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name REGEXP '^{letters}[0-9]+$'"
        );
        let names: Vec<String> = self.admin().query(query)?;
        if names.is_empty() {
            return Ok(());
        }
        self.admin().query_drop(format!("DROP TABLE {}", names.join(", ")))?;
        self.wait_for_dropped_tables()
    }
}

impl Sales for MariaDb {
    type Session<'s> = SqlSales<'s>;

    fn create(&self, tables: u32, indexed: bool, data_bytes: usize) -> Result<()> {
        self.drop_numbered("purchases")?;
        for table in 0..tables {
            self.admin().query_drop(create(self.form, table, indexed, data_bytes))?;
        }
        Ok(())
    }

    fn session(&self, table: u32) -> Result<SqlSales<'_>> {
        SqlSales::new(self, table)
    }

    /// One `ALTER TABLE` for all three.
    fn create_indexes(&self, table: u32) -> Result<u64> {
        let name = table_name(table);
        let mut connection = self.connect(false)?;
        let rows: Option<Row> = connection.query_first(format!("SELECT COUNT(*) FROM {name}"))?;
        let add = INDEXES.map(|(index, columns)| format!("ADD INDEX {index} ({columns})"));
        let alter = format!("ALTER TABLE {name} {}", add.join(", "));
        connection.query_drop(alter).map_err(|error| self.explain(error.into()))?;
        Ok(rows.map_or(0, |row| number(&row, 0)))
    }

    fn is_indexed(&self, table: u32) -> Result<bool> {
        let query = format!(
            "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE() \
             AND table_name = '{}' AND index_name = '{}'",
            table_name(table),
            INDEXES[0].0
        );
        Ok(self.ask(&query)? > 0)
    }

    fn ids(&self, table: u32) -> Result<Option<RangeInclusive<u64>>> {
        let name = table_name(table);
        let query = format!("SELECT MIN(transactionid), MAX(transactionid) FROM {name}");
        let row: Option<(Option<u64>, Option<u64>)> = self.admin().query_first(query)?;
        Ok(row.and_then(|(least, greatest)| Some(least?..=greatest?)))
    }
}

/// One client's view of a table.
pub(crate) struct SqlSales<'s> {
    store: &'s MariaDb,
    name: String,
    /// Where each statement is a transaction.
    single: Conn,
    /// Where a transaction goes on until its commit.
    several: Conn,
    /// The rows of the open transaction.
    rows: Insert,
    /// What the open transaction has deleted.
    deleted: Vec<Range<u64>>,
    ranges: [Option<Statement>; 4],
    point: Option<Statement>,
    delete: Option<Statement>,
}

/// Asks for rows of an index from a place in it on.
fn range_query(name: &str, index: Index) -> String {
    let (columns, first, second) = match index {
        Index::Primary => {
            return format!(
                "SELECT transactionid, price, customerid FROM {name} \
                 WHERE transactionid >= ? ORDER BY transactionid LIMIT ?"
            );
        }
        Index::Price => ("price, customerid", "price", "customerid"),
        Index::Register => ("cashregisterid, price, customerid", "cashregisterid", "price"),
        Index::Date => ("price, dateandtime, customerid", "price", "dateandtime"),
    };
    let key = INDEXES.iter().find(|(_, known)| *known == columns).map_or("PRIMARY", |(key, _)| key);
    format!(
        "SELECT transactionid, {columns} FROM {name} FORCE INDEX ({key}) \
         WHERE ({first} = ? AND {second} >= ?) OR {first} > ? \
         ORDER BY {columns}, transactionid LIMIT ?"
    )
}

fn hit(index: Index, row: &Row) -> Hit {
    let column = |at| number(row, at) as u32;
    let hit = Hit { id: number(row, 0), ..Hit::default() };
    match index {
        Index::Primary | Index::Price => Hit { price: column(1), customer: column(2), ..hit },
        Index::Register => {
            Hit { register: column(1), price: column(2), customer: column(3), ..hit }
        }
        Index::Date => Hit { price: column(1), time: number(row, 2), customer: column(3), ..hit },
    }
}

impl<'s> SqlSales<'s> {
    fn new(store: &'s MariaDb, table: u32) -> Result<SqlSales<'s>> {
        let name = table_name(table);
        let head = format!(
            "INSERT INTO {name} (transactionid, dateandtime, cashregisterid, customerid, \
             productid, price, data) VALUES"
        );
        Ok(SqlSales {
            single: store.connect(false)?,
            several: store.connect(true)?,
            store,
            name,
            rows: Insert::new(&head),
            deleted: Vec::new(),
            ranges: [const { None }; 4],
            point: None,
            delete: None,
        })
    }

    fn delete_statement(&mut self) -> Sql<Statement> {
        if self.delete.is_none() {
            let name = &self.name;
            let text = format!("DELETE FROM {name} WHERE transactionid >= ? AND transactionid < ?");
            self.delete = Some(self.several.prep(text)?);
        }
        self.delete.clone().ok_or_else(|| mysql::Error::IoError(std::io::ErrorKind::Other.into()))
    }

    /// Deletes and inserts, anew if the transaction was rolled back.
    fn commit_several(&mut self) -> Sql<()> {
        if !self.rows.is_empty() {
            self.several.query_drop(self.rows.text())?;
        }
        self.several.query_drop("COMMIT")
    }
}

/// Undoes the transaction and deletes again what it had deleted.
fn undo(session: &mut SqlSales<'_>) -> Sql<()> {
    session.several.query_drop("ROLLBACK")?;
    let statement = session.delete_statement()?;
    for ids in session.deleted.clone() {
        session.several.exec_drop(&statement, (ids.start, ids.end))?;
    }
    Ok(())
}

impl SalesSession for SqlSales<'_> {
    fn insert(&mut self, row: &Purchase<'_>) -> Result<()> {
        let text = self.rows.row().number(row.id).number(row.time).number(row.register);
        text.number(row.customer).number(row.product).number(row.price).bytes(row.data).end();
        Ok(())
    }

    fn delete(&mut self, ids: Range<u64>) -> Result<u64> {
        let statement = self.delete_statement()?;
        let store = self.store;
        let deleted = store.retry(
            self,
            |session| {
                session.several.exec_drop(&statement, (ids.start, ids.end))?;
                Ok(session.several.affected_rows())
            },
            undo,
        )?;
        self.deleted.push(ids);
        Ok(deleted)
    }

    fn commit(&mut self) -> Result<()> {
        let store = self.store;
        if !self.deleted.is_empty() {
            store.retry(self, SqlSales::commit_several, undo)?;
        } else if !self.rows.is_empty() {
            let rows = &self.rows;
            store.retry_one(&mut self.single, |single| single.query_drop(rows.text()))?;
        }
        self.rows.clear();
        self.deleted.clear();
        Ok(())
    }

    fn range(&mut self, start: Start, limit: u64, row: &mut impl FnMut(&Hit)) -> Result<u64> {
        let Start { index, first, second } = start;
        let prepared = &mut self.ranges[index as usize];
        let statement = match prepared {
            Some(statement) => statement,
            None => prepared.insert(self.single.prep(range_query(&self.name, index))?),
        };
        let mut rows = match index {
            Index::Primary => self.single.exec_iter(&*statement, (first, limit))?,
            _ => self.single.exec_iter(&*statement, (first, second, first, limit))?,
        };
        let mut count = 0;
        for found in rows.by_ref() {
            row(&hit(index, &found?));
            count += 1;
        }
        Ok(count)
    }

    fn point(&mut self, id: u64, row: &mut impl FnMut(&Purchase<'_>)) -> Result<bool> {
        let statement = match &mut self.point {
            Some(statement) => statement,
            empty => empty.insert(self.single.prep(format!(
                "SELECT dateandtime, cashregisterid, customerid, productid, price, data FROM {} \
                 WHERE transactionid = ?",
                self.name
            ))?),
        };
        let found: Option<Row> = self.single.exec_first(&*statement, (id,))?;
        if let Some(found) = &found {
            let column = |at| number(found, at) as u32;
            row(&Purchase {
                id,
                time: number(found, 0),
                register: column(1),
                customer: column(2),
                product: column(3),
                price: column(4),
                data: bytes(found, 5),
            });
        }
        Ok(found.is_some())
    }
}
