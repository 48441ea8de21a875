//! The sysbench pattern in tables, by sysbench's own statements.

use crate::settings::Form;
use crate::sql::{Insert, Sql, bytes, is_conflict, is_duplicate, matched, number};
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Row, Statement, Value};
use shaledb_lab::stores::engine::{Failure, Result};
use shaledb_lab::workloads::sysbench::rows::Sbtest;
use shaledb_lab::workloads::sysbench::store::{Column, Conflict, Oltp, OltpSession};
use std::collections::HashMap;
use std::ops::RangeInclusive;

pub(crate) fn table_name(table: u32) -> String {
    format!("sbtest{table}")
}

fn create(form: Form, table: u32) -> String {
    format!(
        "CREATE TABLE {} (
            id bigint unsigned NOT NULL,
            k int unsigned NOT NULL DEFAULT 0,
            c char(120) NOT NULL DEFAULT '',
            pad char(60) NOT NULL DEFAULT '',
            PRIMARY KEY (id)
        ) {}",
        table_name(table),
        form.table()
    )
}

impl Oltp for MariaDb {
    type Session<'s> = SqlOltp<'s>;

    fn create(&self, tables: u32) -> Result<()> {
        self.drop_numbered("sbtest")?;
        for table in 0..tables {
            self.admin().query_drop(create(self.form, table))?;
        }
        Ok(())
    }

    fn create_index(&self, table: u32) -> Result<u64> {
        let name = table_name(table);
        let mut connection = self.connect(false)?;
        let rows: Option<Row> = connection.query_first(format!("SELECT COUNT(*) FROM {name}"))?;
        let alter = format!("ALTER TABLE {name} ADD INDEX k_{table} (k)");
        connection.query_drop(alter).map_err(|error| self.explain(error.into()))?;
        Ok(rows.map_or(0, |row| number(&row, 0)))
    }

    fn session(&self) -> Result<SqlOltp<'_>> {
        Ok(SqlOltp {
            connection: self.connect(false)?,
            store: self,
            statements: HashMap::new(),
            begun: false,
            changes: 0,
            loaded: None,
        })
    }

    fn last_id(&self, table: u32) -> Result<u64> {
        self.ask(&format!("SELECT COALESCE(MAX(id), 0) FROM {}", table_name(table)))
    }
}

/// The statements of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Point(bool),
    Range,
    Sum,
    Ordered(bool),
    UpdateIndex,
    UpdateNonindex,
    Delete,
    Insert,
}

impl Kind {
    fn text(self, name: &str) -> String {
        let between = "WHERE id BETWEEN ? AND ?";
        match self {
            Kind::Point(pad) => {
                format!("SELECT {} FROM {name} WHERE id = ?", if pad { "pad" } else { "c" })
            }
            Kind::Range => format!("SELECT c FROM {name} {between}"),
            Kind::Sum => format!("SELECT COALESCE(SUM(k), 0), COUNT(*) FROM {name} {between}"),
            Kind::Ordered(false) => format!("SELECT c FROM {name} {between} ORDER BY c"),
            Kind::Ordered(true) => format!("SELECT DISTINCT c FROM {name} {between} ORDER BY c"),
            Kind::UpdateIndex => format!("UPDATE {name} SET k = k + 1 WHERE id = ?"),
            Kind::UpdateNonindex => format!("UPDATE {name} SET c = ? WHERE id = ?"),
            Kind::Delete => format!("DELETE FROM {name} WHERE id = ?"),
            Kind::Insert => format!("INSERT INTO {name} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
        }
    }
}

/// One client's view of the tables.
pub(crate) struct SqlOltp<'s> {
    store: &'s MariaDb,
    connection: Conn,
    statements: HashMap<(Kind, u32), Statement>,
    begun: bool,
    changes: u64,
    /// Rows to be loaded, and the table.
    loaded: Option<(u32, Insert)>,
}

impl SqlOltp<'_> {
    fn statement(&mut self, kind: Kind, table: u32) -> Sql<Statement> {
        if let Some(known) = self.statements.get(&(kind, table)) {
            return Ok(known.clone());
        }
        let statement = self.connection.prep(kind.text(&table_name(table)))?;
        self.statements.insert((kind, table), statement.clone());
        Ok(statement)
    }

    /// The error of a statement: a conflict is one that the client knows.
    fn failure(&self, error: mysql::Error) -> Failure {
        if is_conflict(&error) { Conflict.into() } else { self.store.explain(error.into()) }
    }

    /// Executes a statement that changes rows.
    fn write(&mut self, kind: Kind, table: u32, values: Vec<Value>) -> Result<()> {
        let outcome = self.statement(kind, table).and_then(|statement| {
            self.connection.exec_drop(&statement, Params::Positional(values))
        });
        outcome.map_err(|error| self.failure(error))?;
        self.changes += matched(self.connection.affected_rows(), &self.connection.info_str());
        Ok(())
    }

    /// Executes a statement that asks for rows.
    fn read(
        &mut self,
        kind: Kind,
        table: u32,
        ids: &RangeInclusive<u64>,
        see: &mut impl FnMut(&Row),
    ) -> Result<u64> {
        let statement = self.statement(kind, table).map_err(|error| self.failure(error))?;
        let values = match kind {
            Kind::Point(_) => vec![(*ids.start()).into()],
            _ => vec![(*ids.start()).into(), (*ids.end()).into()],
        };
        let read = |connection: &mut Conn| -> Sql<u64> {
            let mut rows = connection.exec_iter(&statement, Params::Positional(values))?;
            let mut count = 0;
            for row in rows.by_ref() {
                see(&row?);
                count += 1;
            }
            Ok(count)
        };
        read(&mut self.connection).map_err(|error| self.failure(error))
    }

    fn query(&mut self, text: &str) -> Result<()> {
        self.connection.query_drop(text).map_err(|error| self.failure(error))
    }
}

impl OltpSession for SqlOltp<'_> {
    fn begin(&mut self) -> Result<()> {
        self.rollback()?;
        self.query("BEGIN")?;
        self.begun = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<u64> {
        if let Some((_, rows)) = self.loaded.as_mut().filter(|(_, rows)| !rows.is_empty()) {
            let load = |connection: &mut Conn| connection.query_drop(rows.text());
            self.store.retry_one(&mut self.connection, load)?;
            self.changes += self.connection.affected_rows();
            rows.clear();
        }
        if self.begun {
            self.query("COMMIT")?;
            self.begun = false;
        }
        Ok(std::mem::take(&mut self.changes))
    }

    fn rollback(&mut self) -> Result<()> {
        self.changes = 0;
        if let Some((_, rows)) = &mut self.loaded {
            rows.clear();
        }
        if self.begun {
            self.begun = false;
            self.query("ROLLBACK")?;
        }
        Ok(())
    }

    fn load(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()> {
        if self.loaded.as_ref().is_none_or(|(of, _)| *of != table) {
            if self.loaded.as_ref().is_some_and(|(_, rows)| !rows.is_empty()) {
                return Err(
                    "one commit loads rows of two tables, which this driver does not support"
                        .into(),
                );
            }
            let name = table_name(table);
            let head = format!("INSERT INTO {name} (id, k, c, pad) VALUES");
            self.loaded = Some((table, Insert::new(&head)));
        }
        if let Some((_, rows)) = &mut self.loaded {
            rows.row().number(row.id).number(row.k).bytes(row.c).bytes(row.pad).end();
        }
        Ok(())
    }

    fn point(
        &mut self,
        table: u32,
        id: u64,
        column: Column,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<bool> {
        let kind = Kind::Point(column == Column::Pad);
        Ok(self.read(kind, table, &(id..=id), &mut |row| see(bytes(row, 0)))? > 0)
    }

    fn range(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64> {
        self.read(Kind::Range, table, &ids, &mut |row| see(bytes(row, 0)))
    }

    fn sum(&mut self, table: u32, ids: RangeInclusive<u64>) -> Result<(u64, u64)> {
        let mut sum = (0, 0);
        self.read(Kind::Sum, table, &ids, &mut |row| sum = (number(row, 0), number(row, 1)))?;
        Ok(sum)
    }

    fn ordered(
        &mut self,
        table: u32,
        ids: RangeInclusive<u64>,
        distinct: bool,
        see: &mut impl FnMut(&[u8]),
    ) -> Result<u64> {
        self.read(Kind::Ordered(distinct), table, &ids, &mut |row| see(bytes(row, 0)))
    }

    fn update_index(&mut self, table: u32, id: u64) -> Result<()> {
        self.write(Kind::UpdateIndex, table, vec![id.into()])
    }

    fn update_nonindex(&mut self, table: u32, id: u64, c: &[u8]) -> Result<()> {
        self.write(Kind::UpdateNonindex, table, vec![c.into(), id.into()])
    }

    fn delete(&mut self, table: u32, id: u64) -> Result<()> {
        self.write(Kind::Delete, table, vec![id.into()])
    }

    fn insert(&mut self, table: u32, row: &Sbtest<'_>) -> Result<()> {
        let text = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        let values = vec![row.id.into(), row.k.into(), text(row.c), text(row.pad)];
        let outcome = self.statement(Kind::Insert, table).and_then(|statement| {
            self.connection.exec_drop(&statement, Params::Positional(values))
        });
        match outcome {
            Err(error) if is_duplicate(&error) => {
                Err(format!("table {table} has the row {} already", row.id).into())
            }
            Err(error) => Err(self.failure(error)),
            Ok(()) => {
                self.changes += 1;
                Ok(())
            }
        }
    }
}
