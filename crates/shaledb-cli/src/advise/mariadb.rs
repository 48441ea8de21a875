//! A sample of a table of a live MariaDB: stretches of rows by ranges of its primary key, so that a
//! large table is not scanned.
//!
//! The server is asked through the program `mariadb`, row by row, so that `shale` has no client of
//! its own, and who may log in how is said in that program's files as always.

use super::mariadb_places::{Range, full, literal};
use super::mariadb_rows::{Column, Fields, row};
use super::sample::{Row, Sample, Seen, Stretch, stretches_of};
use crate::args::AdviseOptions;
use crate::exit::{Exit, Failure, Outcome};
use shaledb_lab::units::grouped;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// A row of a table that the server knows nothing of.
const ROW_BYTES_USUAL: f64 = 100.0;
/// What counts as small may turn out larger by so much, since the server estimates.
const SMALL_TIMES: u64 = 4;
/// Rows of a table of up to so many bytes are counted: that takes about a second.
const COUNTED_BYTES: u64 = 256 << 20;
/// By what part the server's estimate of larger ones may be wrong, as far as was seen.
const ESTIMATE_BOUND: f64 = 0.10;
/// The fewest rows of a stretch.
const ROWS_MIN: u64 = 20;
/// Fewer ranges say little of the rest.
const RANGES_MIN: usize = 4;

/// Reads a sample of the table that the options name.
pub(super) fn sample(options: &AdviseOptions, socket: &Path, sample_bytes: u64) -> Outcome<Sample> {
    let stop = crate::signals::stop_flag()?;
    let named = options.table.as_deref().unwrap_or_default();
    let Some((database, table)) =
        named.split_once('.').filter(|(a, b)| !a.is_empty() && !b.is_empty())
    else {
        return Err(Failure::usage(format!("--table {named}: name it as DATABASE.TABLE")));
    };
    let server = Server { socket, user: options.user.as_deref(), stop: &stop };
    let table = Table::find(&server, database, table)?;
    let bytes = sample_bytes;
    if table.bytes <= bytes
        && let Some(stretches) = table.whole(&server, bytes)?
    {
        let rows = stretches.iter().map(|stretch| stretch.units).sum();
        return checked(table.sample(stretches, rows, Seen::All, table.notes.clone()), named);
    }
    let mut notes = table.notes.clone();
    let (rows, rows_bound) = table.count(&server)?;
    if rows_bound > 0.0 {
        notes.push(format!(
            "How many rows the table has is the server's own estimate, {}, and sizes go with it; \
             the bounds have {:.0} % for that. ANALYZE TABLE renews it.",
            grouped(rows),
            100.0 * rows_bound
        ));
    }
    let parts = stretches_of(bytes);
    let (stretches, seen) = match table.spread(&server, parts, bytes / parts)? {
        Ok(stretches) => (stretches, Seen::Spread),
        Err(why) => {
            notes.push(format!(
                "Only the table's beginning was read, since {why}: the bounds are wide."
            ));
            (table.head(&server, bytes)?, Seen::Head)
        }
    };
    let read = stretches.iter().map(|stretch| stretch.units).sum();
    let mut sample = table.sample(stretches, rows.max(read), seen, notes);
    sample.total_bound = rows_bound;
    checked(sample, named)
}

fn checked(sample: Sample, table: &str) -> Outcome<Sample> {
    if sample.rows == 0 {
        let what = format!("{table}: the table has no rows: there is nothing to advise on");
        return Err(Failure::new(Exit::BadInput, what));
    }
    Ok(sample)
}

/// How the server is reached.
struct Server<'a> {
    socket: &'a Path,
    user: Option<&'a str>,
    stop: &'a AtomicBool,
}

impl Server<'_> {
    /// Asks, and hands over each row until `each` has enough.
    fn ask(&self, sql: &str, mut each: impl FnMut(Fields) -> Outcome<bool>) -> Outcome<()> {
        let mut command = Command::new("mariadb");
        command.args(["--batch", "--quick", "--skip-column-names", "--connect-timeout=10"]);
        // Bytes as they are stored.
        command.arg("--default-character-set=binary").arg("--socket").arg(self.socket);
        if let Some(user) = self.user {
            command.args(["--user", user]);
        }
        command.args(["--execute", sql]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::new(
                Exit::Other,
                "--mariadb asks the server through the program `mariadb`, which is not in the \
                 PATH. Install MariaDB's client (Debian: mariadb-client)",
            ),
            _ => Failure::new(Exit::Other, format!("could not run `mariadb`: {error}")),
        })?;
        let mut answer = BufReader::new(child.stdout.take().ok_or_else(closed)?);
        let mut line = Vec::new();
        let mut enough = false;
        while !enough {
            line.clear();
            if answer.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if self.stop.load(Ordering::Relaxed) {
                let _ = child.kill();
                return Err(Failure::new(Exit::Stopped, "stopped: there is no advice"));
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            enough = !each(line.split(|byte| *byte == b'\t').map(field).collect())?;
        }
        if enough {
            // What it still had to say is not wanted.
            let _ = child.kill();
            child.wait()?;
            return Ok(());
        }
        let mut said = String::new();
        if let Some(mut errors) = child.stderr.take() {
            errors.read_to_string(&mut said)?;
        }
        if child.wait()?.success() {
            return Ok(());
        }
        let said = said.lines().find(|line| line.contains("ERROR")).unwrap_or(said.trim());
        Err(Failure::new(
            Exit::Other,
            format!(
                "MariaDB at {}: {said}. Check --mariadb and --user; a password goes into \
                 ~/.my.cnf, group [client]",
                self.socket.display()
            ),
        ))
    }

    /// All rows of an answer.
    fn rows(&self, sql: &str) -> Outcome<Vec<Vec<String>>> {
        let mut rows = Vec::new();
        self.ask(sql, |fields| {
            let text = |field: Option<Vec<u8>>| {
                field.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
            };
            rows.push(fields.into_iter().map(text).collect());
            Ok(true)
        })?;
        Ok(rows)
    }
}

fn closed() -> Failure {
    Failure::new(Exit::Other, "`mariadb` gave no answer")
}

/// A field as the client prints it in batches, without its escapes.
fn field(printed: &[u8]) -> Option<Vec<u8>> {
    if printed == b"NULL" {
        return None;
    }
    let mut bytes = Vec::with_capacity(printed.len());
    let mut rest = printed.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (_, true) => match rest.next() {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'0') => 0,
                Some(&other) => other,
                None => b'\\',
            },
            (byte, false) => byte,
        });
    }
    Some(bytes)
}

fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

/// A table, as the server describes it.
struct Table {
    /// In SQL.
    name: String,
    columns: Vec<Column>,
    /// How many rows it has, and bytes, by the server's estimates.
    rows: u64,
    bytes: u64,
    notes: Vec<String>,
}

impl Table {
    fn find(server: &Server<'_>, database: &str, table: &str) -> Outcome<Table> {
        let of =
            format!("TABLE_SCHEMA = {} AND TABLE_NAME = {}", literal(database), literal(table));
        let found = server.rows(&format!(
            "SELECT TABLE_TYPE, COALESCE(TABLE_ROWS, 0), COALESCE(DATA_LENGTH, 0), \
             COALESCE(ENGINE, '') FROM information_schema.TABLES WHERE {of}"
        ))?;
        let Some(found) = found.first() else {
            return Err(Failure::new(
                Exit::NoSuch,
                format!("the server has no table {database}.{table} that this user may see"),
            ));
        };
        if found.first().is_some_and(|kind| kind.contains("VIEW")) {
            return Err(Failure::usage(format!(
                "{database}.{table} is a view. Name a table: what is stored is that"
            )));
        }
        let number = |at: usize| found.get(at).and_then(|text| text.parse().ok()).unwrap_or(0);
        let keys = server.rows(&format!(
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE {of} AND INDEX_NAME = \
             'PRIMARY' ORDER BY SEQ_IN_INDEX"
        ))?;
        let others = server.rows(&format!(
            "SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE {of} AND \
             INDEX_NAME <> 'PRIMARY'"
        ))?;
        let described = server.rows(&format!(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COALESCE(COLLATION_NAME, '') \
             FROM information_schema.COLUMNS WHERE {of} AND EXTRA NOT LIKE '%VIRTUAL%' ORDER BY \
             ORDINAL_POSITION"
        ))?;
        let mut columns: Vec<Column> = described.iter().filter_map(|of| Column::of(of)).collect();
        for (at, key) in keys.iter().enumerate() {
            if let Some(column) =
                columns.iter_mut().find(|column| Some(&column.name) == key.first())
            {
                column.key = Some(at);
            }
        }
        // The key's columns first, in its order.
        columns.sort_by_key(|column| column.key.unwrap_or(usize::MAX));
        let engine = found.get(3).map_or("", String::as_str);
        let mut notes = vec![format!(
            "Rows are those of a table of {engine}, as a key and a value with numbers and times in \
             binary; how `ENGINE=SHALE` stores a row may differ by some bytes."
        )];
        let others = others.first().and_then(|row| row.first()).map_or("0", String::as_str);
        if others != "0" {
            notes.push(format!("Its {others} other indexes are not counted."));
        }
        let name = format!("{}.{}", name(database), name(table));
        Ok(Table { name, columns, rows: number(1), bytes: number(2), notes })
    }

    /// What was read of so many rows. Those of a primary key are all different: where some read
    /// alike, that is noted.
    fn sample(
        &self,
        mut stretches: Vec<Stretch>,
        rows: u64,
        seen: Seen,
        mut notes: Vec<String>,
    ) -> Sample {
        if self.columns.first().is_some_and(|column| column.key.is_some()) {
            let alike = tell_apart(&mut stretches);
            if alike > 0 {
                notes.push(format!(
                    "{} of the rows that were read have a primary key that the client prints as \
                     another row's, as it rounds FLOAT. They count as different keys, with 8 bytes \
                     more each.",
                    grouped(alike)
                ));
            }
        }
        Sample::new(stretches, Some(rows), seen, notes)
    }

    /// How many rows it has, and by what part that may be wrong.
    fn count(&self, server: &Server<'_>) -> Outcome<(u64, f64)> {
        if self.bytes > COUNTED_BYTES {
            return Ok((self.rows, ESTIMATE_BOUND));
        }
        let counted = server.rows(&format!("SELECT COUNT(*) FROM {}", self.name))?;
        let number = counted.first().and_then(|row| row.first()).and_then(|text| text.parse().ok());
        Ok(number.map_or((self.rows, ESTIMATE_BOUND), |rows| (rows, 0.0)))
    }

    /// The bytes of a row, by the server's estimates.
    fn row_bytes(&self) -> f64 {
        match (self.rows, self.bytes) {
            (0, _) | (_, 0) => ROW_BYTES_USUAL,
            (rows, bytes) => (bytes as f64 / rows as f64).max(1.0),
        }
    }

    fn select(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| name(&column.name)).collect();
        format!("SELECT {} FROM {}", names.join(", "), self.name)
    }

    /// By the primary key, if there is one.
    fn order(&self) -> String {
        let keys = self.columns.iter().filter(|column| column.key.is_some());
        let names: Vec<String> = keys.map(|column| name(&column.name)).collect();
        if names.is_empty() { String::new() } else { format!(" ORDER BY {}", names.join(", ")) }
    }

    /// All rows in stretches of one size; `None` if there are many more than was thought.
    fn whole(&self, server: &Server<'_>, sample_bytes: u64) -> Outcome<Option<Vec<Stretch>>> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        server.ask(&format!("{}{}", self.select(), self.order()), |fields| {
            let row = row(&self.columns, &fields, rows.len() as u64);
            bytes += (row.0.len() + row.1.len()) as u64;
            rows.push(row);
            Ok(bytes <= SMALL_TIMES * sample_bytes)
        })?;
        Ok((bytes <= SMALL_TIMES * sample_bytes).then(|| stretches(rows, sample_bytes)))
    }

    /// Its first rows.
    fn head(&self, server: &Server<'_>, sample_bytes: u64) -> Outcome<Vec<Stretch>> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        server.ask(&self.select(), |fields| {
            let row = row(&self.columns, &fields, rows.len() as u64);
            bytes += (row.0.len() + row.1.len()) as u64;
            rows.push(row);
            Ok(bytes < sample_bytes)
        })?;
        Ok(stretches(rows, sample_bytes))
    }

    /// Up to so many ranges of the first column of the primary key that have rows. Or why there are
    /// none.
    fn ranges(&self, server: &Server<'_>, parts: u64) -> Outcome<Result<Vec<Range>, String>> {
        let Some(first) = self.columns.first().filter(|column| column.key == Some(0)) else {
            return Ok(Err("it has no primary key".to_owned()));
        };
        let column = name(&first.name);
        let ends =
            server.rows(&format!("SELECT MIN({column}), MAX({column}) FROM {}", self.name))?;
        let Some([low, high]) = ends.first().map(Vec::as_slice) else {
            return Ok(Err("it has no rows".to_owned()));
        };
        // One run of the program tells of all of them, each by two look-ups.
        let mut ask = |ranges: &[Range]| {
            let asked = ranges.iter().enumerate().map(|(at, range)| {
                let (table, condition) = (&self.name, condition(&column, range));
                format!("(SELECT {at}, MIN({column}), MAX({column}) FROM {table}{condition});")
            });
            let mut found = Vec::new();
            server.ask(&asked.collect::<String>(), |fields| {
                let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
                if let [Some(at), Some(low), Some(high)] = fields.as_slice() {
                    found.push((text(at).parse().unwrap_or(usize::MAX), text(low), text(high)));
                }
                Ok(true)
            })?;
            Ok(found)
        };
        let full = match first.scale() {
            Some(scale) => full(scale, (low, high), parts, &mut ask)?,
            None => None,
        };
        let Some(full) = full else {
            return Ok(Err(format!(
                "its primary key begins with `{}`, which is neither an integer nor a text of \
                 printable ASCII",
                first.name
            )));
        };
        let count = full.len().min(parts as usize);
        if count < RANGES_MIN {
            return Ok(Err(format!(
                "only {count} ranges of `{}`, with which its primary key begins, were found to \
                 have rows",
                first.name
            )));
        }
        let range = |number: usize| full.get(number * full.len() / count).cloned();
        Ok(Ok((0..count).filter_map(range).collect()))
    }

    /// The first rows of each of so many ranges, so many bytes by the server's estimate. Or why
    /// there are none.
    fn spread(
        &self,
        server: &Server<'_>,
        parts: u64,
        bytes: u64,
    ) -> Outcome<Result<Vec<Stretch>, String>> {
        let ranges = match self.ranges(server, parts)? {
            Ok(ranges) => ranges,
            Err(why) => return Ok(Err(why)),
        };
        let column = self.columns.first().map(|column| name(&column.name)).unwrap_or_default();
        let count = ((bytes as f64 / self.row_bytes()) as u64).max(ROWS_MIN);
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut all = Vec::new();
        for range in ranges {
            let (select, order) = (self.select(), self.order());
            let sql = format!("{select}{}{order} LIMIT {count}", condition(&column, &range));
            let mut rows: Vec<Row> = Vec::new();
            server.ask(&sql, |fields| {
                let row = row(&self.columns, &fields, 0);
                // Places that the collation orders otherwise make ranges that overlap.
                if !seen.contains(&row.0) {
                    rows.push(row);
                }
                Ok(true)
            })?;
            seen.extend(rows.iter().map(|row| row.0.clone()));
            if !rows.is_empty() {
                all.push(Stretch { at: range.at, units: rows.len() as u64, rows, file: 0 });
            }
        }
        let gone = || "the rows that ranges of its primary key had are gone".to_owned();
        Ok(if all.is_empty() { Err(gone()) } else { Ok(all) })
    }
}

/// Rows whose column is in a range, in SQL.
fn condition(column: &str, range: &Range) -> String {
    let end = range.end.as_ref().map(|end| format!(" AND {column} < {end}")).unwrap_or_default();
    format!(" WHERE {column} >= {}{end}", range.from)
}

/// Makes keys differ that are alike; answers how many were.
fn tell_apart(stretches: &mut [Stretch]) -> u64 {
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut alike = 0u64;
    for (key, _) in stretches.iter_mut().flat_map(|stretch| &mut stretch.rows) {
        if !seen.insert(key.clone()) {
            alike += 1;
            key.extend_from_slice(&alike.to_be_bytes());
        }
    }
    alike
}

/// Rows cut into as many stretches as a sample has.
fn stretches(rows: Vec<Row>, sample_bytes: u64) -> Vec<Stretch> {
    let total = rows.len().max(1);
    let each = total.div_ceil(stretches_of(sample_bytes) as usize).max(1);
    let mut all = Vec::new();
    let mut rows = rows.into_iter().peekable();
    let mut at = 0;
    while rows.peek().is_some() {
        let stretch: Vec<Row> = rows.by_ref().take(each).collect();
        let units = stretch.len() as u64;
        all.push(Stretch { at: at as f64 / total as f64, units, rows: stretch, file: 0 });
        at += units as usize;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_without_their_escapes() {
        assert_eq!(field(b"NULL"), None);
        assert_eq!(field(b"a\\tb\\\\c\\n\\0"), Some(b"a\tb\\c\n\0".to_vec()));
        assert_eq!(literal("it's\\"), "_utf8mb4'it''s\\\\'");
        assert_eq!(name("a`b"), "`a``b`");
    }

    #[test]
    fn keys_that_read_alike_are_told_apart() {
        let row = |key: &str| (key.as_bytes().to_vec(), Vec::new());
        let stretch =
            |keys: [&str; 3]| Stretch { rows: keys.map(row).into(), ..Stretch::default() };
        let mut stretches = [stretch(["a", "b", "b"]), stretch(["b", "c", "d"])];
        assert_eq!(tell_apart(&mut stretches), 2);
        assert_eq!(tell_apart(&mut stretches), 0);
        assert!(stretches[0].rows.is_sorted() && stretches[1].rows[0].0.starts_with(b"b"));
    }
}
