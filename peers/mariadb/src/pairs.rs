//! A user's rows in a table of a key and a value.

use crate::sql::{Insert, bytes};
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Row, Statement, Value};
use shaledb_lab::stores::engine::Result;
use shaledb_lab::workloads::rows::RowsOptions;
use shaledb_lab::workloads::rows::store::{Pairs, PairsSession};

/// What InnoDB takes as a key, and so all of them.
const KEY_BYTES_MAX: u64 = 3072;

impl Pairs for MariaDb {
    type Session<'s> = SqlPairs<'s>;

    fn create(&self, rows: &RowsOptions) -> Result<()> {
        if rows.key_bytes_max > KEY_BYTES_MAX {
            return Err(format!(
                "the longest key has {} bytes, and a key of a table has at most {KEY_BYTES_MAX}. \
                 Leave {} out of --engines, or name a shorter key with --key",
                rows.key_bytes_max,
                self.form.name()
            )
            .into());
        }
        let mut admin = self.admin();
        admin.query_drop("DROP TABLE IF EXISTS pairs")?;
        admin.query_drop(format!(
            "CREATE TABLE pairs (
                k varbinary({}) NOT NULL,
                v longblob NOT NULL,
                PRIMARY KEY (k)
            ) {}",
            rows.key_bytes_max.max(1),
            self.form.table()
        ))?;
        Ok(())
    }

    fn session(&self, rows: &RowsOptions) -> Result<SqlPairs<'_>> {
        let mut connection = self.connect(false)?;
        let get = connection.prep("SELECT v FROM pairs WHERE k = ?")?;
        // A row that is replaced costs a look-up more, so only keys that come again are.
        let verb = if rows.repeats { "REPLACE" } else { "INSERT" };
        let insert = Insert::new(&format!("{verb} INTO pairs (k, v) VALUES"));
        Ok(SqlPairs { store: self, connection, get, insert })
    }
}

/// One client's view of the table.
pub(crate) struct SqlPairs<'s> {
    store: &'s MariaDb,
    connection: Conn,
    get: Statement,
    insert: Insert,
}

impl PairsSession for SqlPairs<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert.row().text(key).text(value).end();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if !self.insert.is_empty() {
            let insert = &self.insert;
            let load = |connection: &mut Conn| connection.query_drop(insert.text());
            self.store.retry_one(&mut self.connection, load)?;
            self.insert.clear();
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8], see: &mut impl FnMut(&[u8])) -> Result<bool> {
        let values = Params::Positional(vec![Value::Bytes(key.to_vec())]);
        let row: Option<Row> = self
            .connection
            .exec_first(&self.get, values)
            .map_err(|error| self.store.explain(error.into()))?;
        if let Some(row) = &row {
            see(bytes(row, 0));
        }
        Ok(row.is_some())
    }
}
