//! LinkBench's graph in tables, by the statements of LinkBench's own store for MySQL: a link, its
//! entry in the index and the count of its node change in one transaction.

use crate::settings::Form;
use crate::sql::{Insert, Sql, bytes, matched, number};
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Row, Statement, Value};
use shaledb_lab::stores::engine::Result;
use shaledb_lab::workloads::linkbench::graph::{
    Count, Graph, GraphSession, Link, LinkRange, LinkRows, Node, NodeRows,
};
use std::sync::atomic::Ordering;

/// The tables, in the order in which they are made.
pub(crate) const TABLES: [&str; 3] = ["linktable", "counttable", "nodetable"];

fn create(form: Form) -> [String; 3] {
    let (end, family) = (form.table(), |name: &str| form.family(name));
    [
        format!(
            "CREATE TABLE IF NOT EXISTS linktable (
                id1 bigint unsigned NOT NULL DEFAULT 0,
                id2 bigint unsigned NOT NULL DEFAULT 0,
                link_type bigint unsigned NOT NULL DEFAULT 0,
                visibility tinyint NOT NULL DEFAULT 0,
                data varchar(255) NOT NULL DEFAULT '',
                time bigint unsigned NOT NULL DEFAULT 0,
                version int unsigned NOT NULL DEFAULT 0,
                PRIMARY KEY (link_type, id1, id2){},
                KEY id1_type (id1, link_type, visibility, time, id2, version, data){}
            ) {end}",
            family("cf_link_pk"),
            family("rev:cf_link_id1_type"),
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS counttable (
                id bigint unsigned NOT NULL DEFAULT 0,
                link_type bigint unsigned NOT NULL DEFAULT 0,
                count int unsigned NOT NULL DEFAULT 0,
                time bigint unsigned NOT NULL DEFAULT 0,
                version bigint unsigned NOT NULL DEFAULT 0,
                PRIMARY KEY (id, link_type){}
            ) {end}",
            family("cf_count_pk"),
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS nodetable (
                id bigint unsigned NOT NULL AUTO_INCREMENT,
                type int unsigned NOT NULL,
                version bigint unsigned NOT NULL,
                time int unsigned NOT NULL,
                data mediumtext NOT NULL,
                PRIMARY KEY (id){}
            ) {end}",
            family("cf_node_pk"),
        ),
    ]
}

impl Graph for MariaDb {
    type Session<'a> = SqlGraph<'a>;

    fn session(&self) -> Result<SqlGraph<'_>> {
        if !self.graph_is_there.swap(true, Ordering::Relaxed) {
            for table in create(self.form) {
                self.admin().query_drop(table)?;
            }
        }
        SqlGraph::new(self)
    }

    fn drop_tables(&self) -> Result<()> {
        self.graph_is_there.store(false, Ordering::Relaxed);
        self.admin().query_drop(format!("DROP TABLE IF EXISTS {}", TABLES.join(", ")))?;
        self.wait_for_dropped_tables()
    }
}

/// A client has two connections, as LinkBench's: one for transactions of several statements, one
/// where each statement is a transaction.
pub(crate) struct SqlGraph<'a> {
    store: &'a MariaDb,
    single: Single,
    several: Several,
    nodes: Insert,
    links: Insert,
    counts: Insert,
}

struct Single {
    connection: Conn,
    add_node: Statement,
    update_node: Statement,
    delete_node: Statement,
    get_node: Statement,
    list: Statement,
    count: Statement,
    /// By the number of links that are asked for.
    get_links: Vec<Option<Statement>>,
}

struct Several {
    connection: Conn,
    add: Statement,
    update: Statement,
    look: Statement,
    hide: Statement,
    count_more: Statement,
    count_less: Statement,
}

impl Single {
    fn new(mut connection: Conn) -> Sql<Single> {
        let mut prepare = |text: &str| connection.prep(text);
        Ok(Single {
            add_node: prepare(
                "INSERT INTO nodetable (type, version, time, data) VALUES (?, ?, ?, ?)",
            )?,
            update_node: prepare(
                "UPDATE nodetable SET version = ?, time = ?, data = ? WHERE id = ? AND type = ?",
            )?,
            delete_node: prepare("DELETE FROM nodetable WHERE id = ? AND type = ?")?,
            get_node: prepare("SELECT type, version, time, data FROM nodetable WHERE id = ?")?,
            list: prepare(
                "SELECT id2, visibility, time, version, data FROM linktable FORCE INDEX (id1_type) \
                 WHERE id1 = ? AND link_type = ? AND visibility = 1 AND time <= ? \
                 ORDER BY time DESC LIMIT ?, ?",
            )?,
            count: prepare("SELECT count FROM counttable WHERE id = ? AND link_type = ?")?,
            get_links: Vec::new(),
            connection,
        })
    }

    /// The statement that asks for so many links.
    fn get_links(&mut self, count: usize) -> Sql<Statement> {
        if self.get_links.len() <= count {
            self.get_links.resize(count + 1, None);
        }
        if let Some(statement) = &self.get_links[count] {
            return Ok(statement.clone());
        }
        let marks = vec!["?"; count].join(",");
        let text = format!(
            "SELECT id2, visibility, time, version, data FROM linktable \
             WHERE link_type = ? AND id1 = ? AND id2 IN ({marks})"
        );
        let statement = self.connection.prep(text)?;
        self.get_links[count] = Some(statement.clone());
        Ok(statement)
    }
}

impl Several {
    fn new(mut connection: Conn) -> Sql<Several> {
        let mut prepare = |text: &str| connection.prep(text);
        Ok(Several {
            add: prepare(
                "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) \
                 VALUES (?, ?, ?, ?, ?, ?, ?) \
                 ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)",
            )?,
            update: prepare(
                "UPDATE linktable SET visibility = ?, data = ?, time = ?, version = ? \
                 WHERE link_type = ? AND id1 = ? AND id2 = ?",
            )?,
            look: prepare(
                "SELECT visibility, time FROM linktable \
                 WHERE link_type = ? AND id1 = ? AND id2 = ? FOR UPDATE",
            )?,
            hide: prepare(
                "UPDATE linktable SET visibility = 0 WHERE link_type = ? AND id1 = ? AND id2 = ?",
            )?,
            count_more: prepare(
                "INSERT INTO counttable (id, link_type, count, time, version) \
                 VALUES (?, ?, 1, ?, 0) ON DUPLICATE KEY UPDATE \
                 count = count + 1, time = VALUES(time), version = version + 1",
            )?,
            count_less: prepare(
                "INSERT INTO counttable (id, link_type, count, time, version) \
                 VALUES (?, ?, 0, ?, 0) ON DUPLICATE KEY UPDATE \
                 count = IF(count = 0, 0, count - 1), time = VALUES(time), version = version + 1",
            )?,
            connection,
        })
    }

    fn undo(&mut self) -> Sql<()> {
        self.connection.query_drop("ROLLBACK")
    }

    fn add_link(&mut self, link: &Link<'_>) -> Sql<bool> {
        let Link { id1, link_type, id2, visible, time, version, data } = *link;
        let visibility = u8::from(visible);
        let row = (id1, id2, link_type, visibility, data, time, version);
        self.connection.exec_drop(&self.add, row)?;
        // 1: a new row. 2: one that is visible now and was not, or the other way round. 0: neither.
        let affected = self.connection.affected_rows();
        let counts = match (affected, visible) {
            (1 | 2, true) => Some(&self.count_more),
            (2, false) => Some(&self.count_less),
            _ => None,
        };
        if let Some(statement) = counts {
            self.connection.exec_drop(statement, (id1, link_type, time))?;
        }
        if affected != 1 {
            let row = (visibility, data, time, version, link_type, id1, id2);
            self.connection.exec_drop(&self.update, row)?;
        }
        self.connection.query_drop("COMMIT")?;
        Ok(affected == 1)
    }

    fn delete_link(&mut self, id1: u64, link_type: u64, id2: u64) -> Sql<bool> {
        let key = (link_type, id1, id2);
        let row: Option<Row> = self.connection.exec_first(&self.look, key)?;
        let found = row.filter(|row| number(row, 0) == 1);
        if let Some(row) = &found {
            self.connection.exec_drop(&self.hide, key)?;
            let time = number(row, 1);
            self.connection.exec_drop(&self.count_less, (id1, link_type, time))?;
        }
        self.connection.query_drop("COMMIT")?;
        Ok(found.is_some())
    }
}

impl<'a> SqlGraph<'a> {
    fn new(store: &'a MariaDb) -> Result<SqlGraph<'a>> {
        let nodes = "INSERT INTO nodetable (id, type, version, time, data) VALUES";
        let links = "INSERT INTO linktable \
                     (id1, id2, link_type, visibility, data, time, version) VALUES";
        let counts = "INSERT INTO counttable (id, link_type, count, time, version) VALUES";
        Ok(SqlGraph {
            single: Single::new(store.connect(false)?)?,
            several: Several::new(store.connect(true)?)?,
            store,
            nodes: Insert::new(nodes),
            links: Insert::new(links),
            counts: Insert::new(counts),
        })
    }

    /// Executes a statement that is a transaction; how many rows it changed or found as they are.
    fn write(&mut self, which: fn(&Single) -> &Statement, values: Vec<Value>) -> Result<u64> {
        self.store.retry_one(&mut self.single, |single| {
            let statement = which(single).clone();
            let values = Params::Positional(values.clone());
            single.connection.exec_drop(&statement, values)?;
            let (affected, info) =
                (single.connection.affected_rows(), single.connection.info_str());
            Ok(matched(affected, &info))
        })
    }
}

/// Executes an `INSERT` of many rows.
fn load(store: &MariaDb, connection: &mut Conn, rows: &Insert) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    store.retry_one(connection, |connection| connection.query_drop(rows.text()))
}

fn shown<'r>(id1: u64, link_type: u64, row: &'r Row) -> Link<'r> {
    Link {
        id1,
        link_type,
        id2: number(row, 0),
        visible: number(row, 1) == 1,
        time: number(row, 2),
        version: number(row, 3) as u32,
        data: bytes(row, 4),
    }
}

impl GraphSession for SqlGraph<'_> {
    fn load_nodes(&mut self, nodes: &NodeRows) -> Result<()> {
        self.nodes.clear();
        for node in nodes.iter() {
            let row = self.nodes.row().number(node.id).number(node.node_type);
            row.number(node.version).number(node.time).bytes(node.data).end();
        }
        load(self.store, &mut self.single.connection, &self.nodes)
    }

    fn load_links(&mut self, links: &LinkRows) -> Result<()> {
        self.links.clear();
        for link in links.iter() {
            let row = self.links.row().number(link.id1).number(link.id2).number(link.link_type);
            let row = row.number(u8::from(link.visible)).bytes(link.data);
            row.number(link.time).number(link.version).end();
        }
        load(self.store, &mut self.single.connection, &self.links)
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<()> {
        self.counts.clear();
        for count in counts {
            let row = self.counts.row().number(count.id).number(count.link_type);
            row.number(count.count).number(count.time).number(count.version).end();
        }
        load(self.store, &mut self.single.connection, &self.counts)
    }

    fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        self.store.retry_one(&mut self.single, |single| {
            let row = (node.node_type, node.version, node.time, node.data);
            single.connection.exec_drop(&single.add_node, row)?;
            Ok(single.connection.last_insert_id())
        })
    }

    fn update_node(&mut self, node: &Node<'_>) -> Result<bool> {
        let values: Vec<Value> = vec![
            node.version.into(),
            node.time.into(),
            node.data.into(),
            node.id.into(),
            node.node_type.into(),
        ];
        Ok(self.write(|single| &single.update_node, values)? > 0)
    }

    fn delete_node(&mut self, node_type: u32, id: u64) -> Result<bool> {
        let values: Vec<Value> = vec![id.into(), node_type.into()];
        Ok(self.write(|single| &single.delete_node, values)? > 0)
    }

    fn get_node(
        &mut self,
        node_type: u32,
        id: u64,
        found: &mut impl FnMut(&Node<'_>),
    ) -> Result<bool> {
        let single = &mut self.single;
        let row: Option<Row> = single.connection.exec_first(&single.get_node, (id,))?;
        let row = row.filter(|row| number(row, 0) == u64::from(node_type));
        if let Some(row) = &row {
            let (version, time) = (number(row, 1), number(row, 2) as u32);
            found(&Node { id, node_type, version, time, data: bytes(row, 3) });
        }
        Ok(row.is_some())
    }

    fn add_link(&mut self, link: &Link<'_>) -> Result<bool> {
        self.store.retry(&mut self.several, |several| several.add_link(link), Several::undo)
    }

    fn delete_link(&mut self, id1: u64, link_type: u64, id2: u64) -> Result<bool> {
        let delete = |several: &mut Several| several.delete_link(id1, link_type, id2);
        self.store.retry(&mut self.several, delete, Several::undo)
    }

    fn get_links(
        &mut self,
        id1: u64,
        link_type: u64,
        id2s: &[u64],
        row: &mut impl FnMut(&Link<'_>),
    ) -> Result<u64> {
        if id2s.is_empty() {
            return Ok(0);
        }
        let statement = self.single.get_links(id2s.len())?;
        let values = [link_type, id1].iter().chain(id2s).map(|&id| id.into()).collect();
        let mut rows = self.single.connection.exec_iter(&statement, Params::Positional(values))?;
        let mut count = 0;
        for found in rows.by_ref() {
            row(&shown(id1, link_type, &found?));
            count += 1;
        }
        Ok(count)
    }

    fn get_link_list(&mut self, range: &LinkRange, row: &mut impl FnMut(&Link<'_>)) -> Result<u64> {
        let LinkRange { id1, link_type, newest, skip, limit } = *range;
        let single = &mut self.single;
        let values = (id1, link_type, newest, skip, limit);
        let mut rows = single.connection.exec_iter(&single.list, values)?;
        let mut count = 0;
        for found in rows.by_ref() {
            row(&shown(id1, link_type, &found?));
            count += 1;
        }
        Ok(count)
    }

    fn count_links(&mut self, id1: u64, link_type: u64) -> Result<Option<u64>> {
        let single = &mut self.single;
        let row: Option<Row> = single.connection.exec_first(&single.count, (id1, link_type))?;
        Ok(row.map(|row| number(&row, 0)))
    }
}
