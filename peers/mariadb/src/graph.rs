//! LinkBench's graph in tables, by the statements of LinkBench's own store for MySQL, as text: a
//! link, its entry in the index and the count of its node change in one transaction.

use crate::settings::Form;
use crate::sql::{Changed, Insert, Sql, bytes, change, number, push_bytes};
use crate::store::MariaDb;
use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use shaledb_lab::stores::engine::Result;
use shaledb_lab::workloads::linkbench::graph::{
    Count, Graph, GraphSession, Link, LinkRange, LinkRows, Node, NodeRows,
};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// The tables, in the order in which they are made.
pub(crate) const TABLES: [&str; 3] = ["linktable", "counttable", "nodetable"];

/// The tables of LinkBench's documentation; `partitions` is 0 for a `linktable` without any.
fn create(form: Form, partitions: u32) -> [String; 3] {
    let (end, family) = (form.table(), |name: &str| form.family(name));
    let partitioned = match partitions {
        0 => String::new(),
        count => format!(" PARTITION BY KEY (id1) PARTITIONS {count}"),
    };
    [
        format!(
            "CREATE TABLE linktable (
                id1 bigint(20) unsigned NOT NULL DEFAULT 0,
                id2 bigint(20) unsigned NOT NULL DEFAULT 0,
                link_type bigint(20) unsigned NOT NULL DEFAULT 0,
                visibility tinyint(3) NOT NULL DEFAULT 0,
                data varchar(255) NOT NULL DEFAULT '',
                time bigint(20) unsigned NOT NULL DEFAULT 0,
                version int(11) unsigned NOT NULL DEFAULT 0,
                PRIMARY KEY (link_type, id1, id2){},
                KEY id1_type (id1, link_type, visibility, time, id2, version, data){}
            ) {end}{partitioned}",
            family("cf_link_pk"),
            family("rev:cf_link_id1_type"),
        ),
        format!(
            "CREATE TABLE counttable (
                id bigint(20) unsigned NOT NULL DEFAULT 0,
                link_type bigint(20) unsigned NOT NULL DEFAULT 0,
                count int(10) unsigned NOT NULL DEFAULT 0,
                time bigint(20) unsigned NOT NULL DEFAULT 0,
                version bigint(20) unsigned NOT NULL DEFAULT 0,
                PRIMARY KEY (id, link_type){}
            ) {end}",
            family("cf_count_pk"),
        ),
        format!(
            "CREATE TABLE nodetable (
                id bigint(20) unsigned NOT NULL AUTO_INCREMENT,
                type int(10) unsigned NOT NULL,
                version bigint(20) unsigned NOT NULL,
                time int(10) unsigned NOT NULL,
                data mediumtext NOT NULL,
                PRIMARY KEY (id){}
            ) {end}",
            family("cf_node_pk"),
        ),
    ]
}

impl Graph for MariaDb {
    type Session<'a> = SqlGraph<'a>;

    fn create_tables(&self, partitions: u32) -> Result<()> {
        self.drop_tables()?;
        for table in create(self.form, partitions) {
            self.admin().query_drop(table)?;
        }
        Ok(())
    }

    fn session(&self) -> Result<SqlGraph<'_>> {
        SqlGraph::new(self)
    }

    fn drop_tables(&self) -> Result<()> {
        self.admin().query_drop(format!("DROP TABLE IF EXISTS {}", TABLES.join(", ")))?;
        self.wait_for_dropped_tables()
    }
}

/// A client has two connections, as LinkBench's: one for what writes, which commits, and one for
/// reads, where each statement is a transaction.
pub(crate) struct SqlGraph<'a> {
    store: &'a MariaDb,
    reads: Conn,
    writes: Conn,
    /// The statement to be sent.
    text: String,
    nodes: Insert,
    links: Insert,
    counts: Insert,
}

fn undo(connection: &mut Conn) -> Sql<()> {
    connection.query_drop("ROLLBACK")
}

fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// The columns of a link that queries give, in this order.
const SHOWN: &str = "id1, id2, link_type, visibility, data, time, version";

/// Inserts a link, or makes one that is there visible or hidden; then what else has to change.
/// Whether it is new.
fn add_link(connection: &mut Conn, link: &Link<'_>, text: &mut String) -> Sql<bool> {
    let Link { id1, link_type, id2, visible, time, version, data } = *link;
    let visibility = u8::from(visible);
    text.clear();
    // Writing to a string does not fail, here and below.
    let _ = write!(
        text,
        "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) \
         VALUES ({id1}, {id2}, {link_type}, {visibility}, "
    );
    push_bytes(text, data);
    let _ = write!(
        text,
        ", {time}, {version}) ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)"
    );
    // 1: a new row. 2: one that is visible now and was not, or the other way round. 0: neither.
    let affected = change(connection, text)?.rows;
    let is_new = affected == 1;
    // The last statement has the commit with it, which saves a round trip.
    let commit = if is_new { "; COMMIT" } else { "" };
    let counted = match (affected, visible) {
        (1 | 2, true) => Some((1, "+ 1")),
        (2, false) => Some((0, "+ -1")),
        _ => None,
    };
    if let Some((first, more)) = counted {
        let now = milliseconds();
        text.clear();
        let _ = write!(
            text,
            "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES ({id1}, {link_type}, {first}, {now}, 0) ON DUPLICATE KEY UPDATE \
             count = count {more}, version = version + 1, time = {now}{commit}"
        );
        change(connection, text)?;
    } else if is_new {
        change(connection, "COMMIT")?;
    }
    if !is_new {
        text.clear();
        let _ = write!(text, "UPDATE linktable SET visibility = {visibility}, data = ");
        push_bytes(text, data);
        let _ = write!(
            text,
            ", time = {time}, version = {version} \
             WHERE id1 = {id1} AND id2 = {id2} AND link_type = {link_type}; COMMIT"
        );
        change(connection, text)?;
    }
    Ok(is_new)
}

/// Looks at a link, hides it if it can be seen, and counts one less. Whether it could be seen.
fn delete_link(
    connection: &mut Conn,
    (id1, link_type, id2): (u64, u64, u64),
    text: &mut String,
) -> Sql<bool> {
    let which = format!("id1 = {id1} AND id2 = {id2} AND link_type = {link_type}");
    text.clear();
    let _ = write!(text, "SELECT visibility FROM linktable WHERE {which} FOR UPDATE");
    let row: Option<Row> = connection.query_first(&*text)?;
    let found = row.is_some_and(|row| number(&row, 0) == 1);
    if found {
        text.clear();
        let _ = write!(text, "UPDATE linktable SET visibility = 0 WHERE {which}");
        change(connection, text)?;
        let now = milliseconds();
        text.clear();
        let _ = write!(
            text,
            "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES ({id1}, {link_type}, 0, {now}, 0) ON DUPLICATE KEY UPDATE \
             count = IF (count = 0, 0, count - 1), time = {now}, version = version + 1"
        );
        change(connection, text)?;
    }
    change(connection, "COMMIT")?;
    Ok(found)
}

impl<'a> SqlGraph<'a> {
    fn new(store: &'a MariaDb) -> Result<SqlGraph<'a>> {
        let nodes = "INSERT INTO nodetable (id, type, version, time, data) VALUES";
        let links = "INSERT INTO linktable \
                     (id1, id2, link_type, visibility, data, time, version) VALUES";
        let counts = "REPLACE INTO counttable (id, link_type, count, time, version) VALUES";
        Ok(SqlGraph {
            reads: store.connect(false)?,
            writes: store.connect(true)?,
            store,
            text: String::new(),
            nodes: Insert::new(nodes),
            links: Insert::new(links),
            counts: Insert::new(counts),
        })
    }

    /// Executes the statement in `text`, which ends with its commit; what it changed.
    fn write(&mut self) -> Result<Changed> {
        let text = &self.text;
        self.store.retry(&mut self.writes, |connection| change(connection, text), undo)
    }

    /// Executes the query in `text`, and shows the links that it gives; how many.
    fn show(&mut self, see: &mut impl FnMut(&Link<'_>)) -> Result<u64> {
        let mut rows = self.reads.query_iter(&self.text)?;
        let mut count = 0;
        for row in rows.by_ref() {
            let row = row?;
            see(&Link {
                id1: number(&row, 0),
                id2: number(&row, 1),
                link_type: number(&row, 2),
                visible: number(&row, 3) == 1,
                data: bytes(&row, 4),
                time: number(&row, 5),
                version: number(&row, 6) as u32,
            });
            count += 1;
        }
        Ok(count)
    }
}

/// Executes an `INSERT` of many rows, if there are any, and commits it.
fn load(store: &MariaDb, connection: &mut Conn, rows: &Insert, end: &str) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let text = format!("{}{end}; COMMIT", rows.text());
    store.retry(connection, |connection| change(connection, &text), undo)?;
    Ok(())
}

impl GraphSession for SqlGraph<'_> {
    fn load_nodes(&mut self, nodes: &NodeRows) -> Result<()> {
        self.nodes.clear();
        for node in nodes.iter() {
            let row = self.nodes.row().number(node.id).number(node.node_type);
            row.number(node.version).number(node.time).bytes(node.data).end();
        }
        load(self.store, &mut self.writes, &self.nodes, "")
    }

    fn load_links(&mut self, links: &LinkRows) -> Result<()> {
        self.links.clear();
        for link in links.iter() {
            let row = self.links.row().number(link.id1).number(link.id2).number(link.link_type);
            let row = row.number(u8::from(link.visible)).bytes(link.data);
            row.number(link.time).number(link.version).end();
        }
        let end = " ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)";
        load(self.store, &mut self.writes, &self.links, end)
    }

    fn load_counts(&mut self, counts: &[Count]) -> Result<()> {
        self.counts.clear();
        for count in counts {
            let row = self.counts.row().number(count.id).number(count.link_type);
            row.number(count.count).number(count.time).number(count.version).end();
        }
        load(self.store, &mut self.writes, &self.counts, "")
    }

    fn add_node(&mut self, node: &Node<'_>) -> Result<u64> {
        let Node { node_type, version, time, data, .. } = *node;
        self.text.clear();
        let _ = write!(
            self.text,
            "INSERT INTO nodetable (type, version, time, data) \
             VALUES ({node_type}, {version}, {time}, "
        );
        push_bytes(&mut self.text, data);
        self.text.push_str("); COMMIT");
        let changed = self.write()?;
        changed.id.ok_or_else(|| "the server gave a new node no id".into())
    }

    fn update_node(&mut self, node: &Node<'_>) -> Result<bool> {
        let Node { id, node_type, version, time, data } = *node;
        self.text.clear();
        let _ =
            write!(self.text, "UPDATE nodetable SET version = {version}, time = {time}, data = ");
        push_bytes(&mut self.text, data);
        let _ = write!(self.text, " WHERE id = {id} AND type = {node_type}; COMMIT");
        Ok(self.write()?.matched > 0)
    }

    fn delete_node(&mut self, node_type: u32, id: u64) -> Result<bool> {
        self.text.clear();
        let _ = write!(
            self.text,
            "DELETE FROM nodetable WHERE id = {id} AND type = {node_type}; COMMIT"
        );
        Ok(self.write()?.matched > 0)
    }

    fn get_node(
        &mut self,
        node_type: u32,
        id: u64,
        found: &mut impl FnMut(&Node<'_>),
    ) -> Result<bool> {
        self.text.clear();
        let _ = write!(
            self.text,
            "SELECT id, type, version, time, data FROM nodetable WHERE id = {id}"
        );
        let row: Option<Row> = self.reads.query_first(&self.text)?;
        let row = row.filter(|row| number(row, 1) == u64::from(node_type));
        if let Some(row) = &row {
            let (version, time) = (number(row, 2), number(row, 3) as u32);
            found(&Node { id, node_type, version, time, data: bytes(row, 4) });
        }
        Ok(row.is_some())
    }

    fn add_link(&mut self, link: &Link<'_>) -> Result<bool> {
        let text = &mut self.text;
        self.store.retry(&mut self.writes, |connection| add_link(connection, link, text), undo)
    }

    fn delete_link(&mut self, id1: u64, link_type: u64, id2: u64) -> Result<bool> {
        let text = &mut self.text;
        let key = (id1, link_type, id2);
        self.store.retry(&mut self.writes, |connection| delete_link(connection, key, text), undo)
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
        self.text.clear();
        let _ = write!(
            self.text,
            "SELECT {SHOWN} FROM linktable \
             WHERE id1 = {id1} AND link_type = {link_type} AND id2 IN ("
        );
        for (at, id2) in id2s.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(self.text, "{comma}{id2}");
        }
        self.text.push(')');
        self.show(row)
    }

    fn get_link_list(&mut self, range: &LinkRange, row: &mut impl FnMut(&Link<'_>)) -> Result<u64> {
        let LinkRange { id1, link_type, newest, skip, limit } = *range;
        self.text.clear();
        let _ = write!(
            self.text,
            "SELECT {SHOWN} FROM linktable FORCE INDEX (`id1_type`) \
             WHERE id1 = {id1} AND link_type = {link_type} AND time >= 0 AND time <= {newest} \
             AND visibility = 1 ORDER BY time DESC LIMIT {skip},{limit}"
        );
        self.show(row)
    }

    fn count_links(&mut self, id1: u64, link_type: u64) -> Result<Option<u64>> {
        self.text.clear();
        let _ = write!(
            self.text,
            "SELECT count FROM counttable WHERE id = {id1} AND link_type = {link_type}"
        );
        let row: Option<Row> = self.reads.query_first(&self.text)?;
        Ok(row.map(|row| number(&row, 0)))
    }
}
