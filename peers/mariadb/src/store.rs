//! A server as the lab's store: our own, or one at an address that was given.

use crate::metrics;
use crate::server::{Server, data};
use crate::settings::{Form, SESSION, configuration};
use crate::sql::{Sql, bytes, is_conflict, number};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};
use shaledb_lab::driver;
use shaledb_lab::measure::disk_bytes;
use shaledb_lab::setup::Setup;
use shaledb_lab::stores::engine::{Failure, Metrics, Result};
use shaledb_lab::stores::store::{Host, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The database that all tables are in.
pub(crate) const DATABASE: &str = "shaledb_lab";

/// Where the store's folder says that a server at an address has our database.
const MARKER: &str = "address.txt";

/// A transaction that others kept from its end so often will not come to it.
const MOST_RETRIES: u32 = 1000;

/// How often a condition of the server is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
pub(crate) struct MariaDb {
    pub(crate) form: Form,
    setup: Setup,
    folder: PathBuf,
    version: String,
    address: OptsBuilder,
    /// For what no client does: looks at the server, changes of tables.
    admin: Mutex<Conn>,
    /// `None` if its address was given.
    server: Option<Server>,
    /// What a server that was not started for this step had counted before it.
    baseline: Metrics,
    /// Transactions that were done again.
    retries: AtomicU64,
}

impl driver::Server for MariaDb {
    fn open(engine: &str, folder: &Path, setup: &Setup) -> Result<MariaDb> {
        let form = Form::named(engine)?;
        let (server, address) = match &setup.address {
            None => {
                let server = Server::start(form, folder, setup)?;
                let address = server.address();
                (Some(server), address)
            }
            Some(address) => (None, given(address)?),
        };
        let mut first = Conn::new(address.clone())
            .map_err(|error| format!("could not connect to the server: {error}"))?;
        if server.is_none() && !folder.join(MARKER).exists() {
            first.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
        }
        first.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
        if server.is_none() {
            std::fs::write(folder.join(MARKER), "The database is on a server of somebody else.\n")?;
        }
        let version: Option<String> = first.query_first("SELECT VERSION()")?;
        let address = address
            .db_name(Some(DATABASE))
            .init(vec![SESSION])
            .prefer_socket(false)
            .stmt_cache_size(Some(0));
        let admin = Conn::new(address.clone())?;
        let mut store = MariaDb {
            form,
            setup: setup.clone(),
            folder: folder.to_owned(),
            version: version.unwrap_or_default(),
            address,
            admin: Mutex::new(admin),
            server,
            baseline: Metrics::default(),
            retries: AtomicU64::new(0),
        };
        match store.server {
            Some(_) if !matches!(form, Form::Myrocks | Form::Shale) => {
                store.wait_for_warm_pool()?
            }
            Some(_) => {}
            None => {
                let before = metrics::metrics(form, &mut store.admin())?;
                store.baseline = before;
            }
        }
        Ok(store)
    }
}

/// Reads `[USER@]SOCKET` or `[USER@]HOST:PORT`.
fn given(address: &str) -> Result<OptsBuilder> {
    let (user, place) = address.rsplit_once('@').unwrap_or(("root", address));
    let password = std::env::var("MYSQL_PWD").ok();
    let options = OptsBuilder::new().user(Some(user)).pass(password);
    if place.contains('/') {
        return Ok(options.socket(Some(place)));
    }
    let (host, port) = place.rsplit_once(':').unwrap_or((place, "3306"));
    match port.parse() {
        Ok(port) if !host.is_empty() => Ok(options.ip_or_hostname(Some(host)).tcp_port(port)),
        _ => Err(format!(
            "`{address}` is no address of a server: [USER@]SOCKET or [USER@]HOST:PORT (--address)"
        )
        .into()),
    }
}

impl MariaDb {
    /// A connection. Each statement is a transaction unless `transactions`: then each goes on until
    /// it is committed.
    pub(crate) fn connect(&self, transactions: bool) -> Result<Conn> {
        let mut connection = Conn::new(self.address.clone()).map_err(|error| {
            self.explain(format!("could not connect to the server: {error}").into())
        })?;
        if transactions {
            connection.query_drop("SET autocommit = 0")?;
        }
        Ok(connection)
    }

    pub(crate) fn admin(&self) -> MutexGuard<'_, Conn> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error with what the server's log says, if the server has gone away.
    pub(crate) fn explain(&self, error: Failure) -> Failure {
        match &self.server {
            Some(server) => server.explain(error),
            None => error,
        }
    }

    /// Does a transaction, again and again while others keep it from its end. `undo` ends one that
    /// failed.
    pub(crate) fn retry<C, T>(
        &self,
        client: &mut C,
        mut transaction: impl FnMut(&mut C) -> Sql<T>,
        mut undo: impl FnMut(&mut C) -> Sql<()>,
    ) -> Result<T> {
        for _ in 0..MOST_RETRIES {
            match transaction(client) {
                Ok(done) => return Ok(done),
                Err(error) if is_conflict(&error) => {
                    undo(client)?;
                    self.retries.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    // Why it failed matters more than whether that could be undone.
                    let _ = undo(client);
                    return Err(self.explain(error.into()));
                }
            }
        }
        Err(format!("a transaction failed by {MOST_RETRIES} conflicts in a row").into())
    }

    /// The same for a transaction that is one statement, which the server undoes.
    pub(crate) fn retry_one<C, T>(
        &self,
        client: &mut C,
        statement: impl FnMut(&mut C) -> Sql<T>,
    ) -> Result<T> {
        self.retry(client, statement, |_| Ok(()))
    }

    /// InnoDB reads in the background what was in its pool when it was stopped.
    fn wait_for_warm_pool(&self) -> Result<()> {
        self.wait_until("the buffer pool is loaded", |connection| {
            let row: Option<Row> =
                connection.query_first("SHOW STATUS LIKE 'Innodb_buffer_pool_load_status'")?;
            let text = row.and_then(|row| row.get::<String, _>(1)).unwrap_or_default();
            // Without a list of pages, as at the first start, there is nothing to load.
            let done = ["completed", "not started", "Cannot open", "aborted"];
            Ok(text.is_empty() || done.iter().any(|word| text.contains(word)))
        })
    }

    /// Waits for what the server does in the background.
    pub(crate) fn wait_until(
        &self,
        what: &str,
        mut is_so: impl FnMut(&mut Conn) -> Sql<bool>,
    ) -> Result<()> {
        loop {
            let so = is_so(&mut self.admin()).map_err(|error| {
                self.explain(format!("while waiting until {what}: {error}").into())
            })?;
            if so {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The number that a query gives.
    pub(crate) fn ask(&self, query: &str) -> Result<u64> {
        let row: Option<Row> = self.admin().query_first(query)?;
        Ok(row.map_or(0, |row| number(&row, 0)))
    }

    /// Ends the server at once, as a failing machine would.
    #[cfg(test)]
    pub(crate) fn kill(self) {
        self.server.unwrap().kill();
    }

    fn wait_idle_innodb(&self) -> Result<()> {
        let before = self.ask("SELECT @@GLOBAL.innodb_max_dirty_pages_pct")?;
        self.admin().query_drop("SET GLOBAL innodb_max_dirty_pages_pct = 0")?;
        let waited =
            self.wait_until("all pages are written and old versions purged", |connection| {
                let query = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                         ('Innodb_buffer_pool_pages_dirty', 'Innodb_history_list_length')";
                let rows: Vec<Row> = connection.query(query)?;
                Ok(rows.iter().all(|row| number(row, 1) == 0))
            });
        let restore = format!("SET GLOBAL innodb_max_dirty_pages_pct = {before}");
        self.admin().query_drop(restore)?;
        waited
    }

    fn wait_idle_myrocks(&self) -> Result<()> {
        self.admin().query_drop("SET GLOBAL rocksdb_force_flush_memtable_now = 1")?;
        self.wait_until("no compaction is due", |connection| {
            let query = "SELECT COALESCE(SUM(value), 0) FROM information_schema.rocksdb_cfstats \
                         WHERE stat_type IN ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING')";
            let pending: Option<Row> = connection.query_first(query)?;
            if pending.is_some_and(|row| number(&row, 0) > 0) {
                return Ok(false);
            }
            // Of each background thread, what it does now: a line `operation_type: Compaction`.
            let status: Vec<Row> = connection.query("SHOW ENGINE ROCKSDB STATUS")?;
            let works = |row: &Row| {
                let text = String::from_utf8_lossy(bytes(row, 2)).into_owned();
                let operation = |line: &str| line.strip_prefix("operation_type:").map(str::len);
                bytes(row, 0) == b"BG_THREADS"
                    && text.lines().filter_map(operation).any(|rest| rest > 1)
            };
            Ok(!status.iter().any(works))
        })
    }
}

impl Store for MariaDb {
    fn name(&self) -> String {
        self.form.name().to_owned()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn configuration(&self) -> Vec<(String, String)> {
        match &self.setup.address {
            None => configuration(self.form, &self.setup),
            Some(address) => vec![
                ("address".to_owned(), address.clone()),
                ("tables".to_owned(), self.form.table().to_owned()),
                ("each connection".to_owned(), SESSION.to_owned()),
            ],
        }
    }

    /// The files of the tables, which MyRocks and Shale have in one folder with their log. InnoDB's
    /// log, undo logs and system tablespace are counted apart: see [`Store::extra`].
    fn folder(&self) -> Option<PathBuf> {
        self.server.as_ref()?;
        let name = match self.form {
            Form::Myrocks => "#rocksdb",
            Form::Shale => "#shale",
            _ => DATABASE,
        };
        Some(data(&self.folder).join(name))
    }

    fn host(&self) -> Host {
        match &self.server {
            Some(server) => Host::Processes(vec![server.pid()]),
            None => Host::Elsewhere,
        }
    }

    fn notes(&self) -> Vec<String> {
        match self.retries.load(Ordering::Relaxed) {
            0 => Vec::new(),
            count => vec![format!(
                "{count} transactions met a deadlock or waited for a lock for too long, and were \
                 done again"
            )],
        }
    }

    fn extra(&self) -> BTreeMap<String, f64> {
        let retries = self.retries.load(Ordering::Relaxed) as f64;
        let mut extra = BTreeMap::from([("retries".to_owned(), retries)]);
        if let Some(tables) = self.folder() {
            let all = disk_bytes(&data(&self.folder));
            let other = all.saturating_sub(disk_bytes(&tables));
            extra.insert("server_files_bytes".to_owned(), other as f64);
        }
        extra
    }

    fn wait_idle(&self) -> Result<()> {
        match self.form {
            Form::Myrocks => self.wait_idle_myrocks(),
            // Returns when nothing is left to flush or to merge.
            Form::Shale => Ok(self.admin().query_drop("SET GLOBAL shale_wait_idle = 1")?),
            _ => self.wait_idle_innodb(),
        }
    }

    fn metrics(&self) -> Result<Metrics> {
        let metrics = metrics::metrics(self.form, &mut self.admin());
        let metrics = metrics.map_err(|error| self.explain(error.into()))?;
        Ok(metrics.since(&self.baseline))
    }

    fn close(self) -> Result<()> {
        drop(self.admin);
        self.server.map_or(Ok(()), Server::stop)
    }
}
