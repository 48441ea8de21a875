//! Small helpers over the client: columns of rows, statements with many rows, conflicts.

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};
use std::fmt::Write;

/// The client's own result.
pub(crate) type Sql<T> = std::result::Result<T, mysql::Error>;

/// A row was changed since it was read, or others hold a lock in a circle or for too long.
pub(crate) fn is_conflict(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if matches!(error.code, 1020 | 1205 | 1213))
}

/// The key of a row that is inserted is there already.
pub(crate) fn is_duplicate(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if error.code == 1062)
}

/// A column that is a number from 0 on. A table that has something else there is not the
/// benchmark's: then it is as good as damaged, and the largest number stands for it.
pub(crate) fn number(row: &Row, column: usize) -> u64 {
    match row.as_ref(column) {
        Some(Value::UInt(number)) => *number,
        Some(Value::Int(number)) => u64::try_from(*number).unwrap_or(u64::MAX),
        Some(Value::Bytes(text)) => text_number(text),
        _ => u64::MAX,
    }
}

/// Numbers come as text from statements that were not prepared, and sums as decimals always.
fn text_number(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

/// A column of bytes.
pub(crate) fn bytes(row: &Row, column: usize) -> &[u8] {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

/// How many rows a statement found, those included that it found to be as they should become.
pub(crate) fn matched(affected: u64, info: &str) -> u64 {
    // "Rows matched: 1  Changed: 0  Warnings: 0"
    let rows = info.strip_prefix("Rows matched: ").and_then(|rest| rest.split(' ').next());
    rows.and_then(|rows| rows.parse().ok()).unwrap_or(affected)
}

/// What the first of several statements did.
pub(crate) struct Changed {
    /// Rows that it inserted, changed or deleted; 2 for one that an `INSERT` found and changed.
    pub(crate) rows: u64,
    /// Rows that it found, those included that were as they should become.
    pub(crate) matched: u64,
    /// The id that the server gave to a row.
    pub(crate) id: Option<u64>,
}

/// Executes statements, `;` between them, that give no rows, in one round trip.
pub(crate) fn change(connection: &mut Conn, text: &str) -> Sql<Changed> {
    let mut result = connection.query_iter(text)?;
    let rows = result.affected_rows();
    let matched = matched(rows, &result.info_str());
    let changed = Changed { rows, matched, id: result.last_insert_id() };
    // The error of a later statement comes with its own answer.
    while let Some(set) = result.iter() {
        for row in set {
            row?;
        }
    }
    Ok(changed)
}

/// Adds bytes of any value: in hexadecimal, which needs no escapes and is the server's own way to
/// write them.
pub(crate) fn push_bytes(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push_str("X'");
    text.reserve(2 * bytes.len() + 1);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text.push('\'');
}

/// An `INSERT` of many rows, as text whose memory is used again.
pub(crate) struct Insert {
    text: String,
    head: usize,
    rows: usize,
}

impl Insert {
    /// `head` goes up to `VALUES`.
    pub(crate) fn new(head: &str) -> Insert {
        Insert { text: head.to_owned(), head: head.len(), rows: 0 }
    }

    /// Begins a row.
    pub(crate) fn row(&mut self) -> RowText<'_> {
        self.text.push_str(if self.rows == 0 { " (" } else { ",(" });
        self.rows += 1;
        RowText { text: &mut self.text, columns: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The statement.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn clear(&mut self) {
        self.text.truncate(self.head);
        self.rows = 0;
    }
}

/// A row of an [`Insert`].
pub(crate) struct RowText<'a> {
    text: &'a mut String,
    columns: usize,
}

impl RowText<'_> {
    fn next(&mut self) {
        if self.columns > 0 {
            self.text.push(',');
        }
        self.columns += 1;
    }

    pub(crate) fn number(mut self, number: impl Into<u64>) -> Self {
        self.next();
        // Writing to a string does not fail.
        let _ = write!(self.text, "{}", number.into());
        self
    }

    /// What needs no quotes.
    pub(crate) fn plain(mut self, text: &str) -> Self {
        self.next();
        self.text.push_str(text);
        self
    }

    /// Letters in quotes, or bytes that are none.
    pub(crate) fn text(mut self, text: &[u8]) -> Self {
        let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'\'' && byte != b'\\';
        match std::str::from_utf8(text).ok().filter(|_| text.iter().all(is_plain)) {
            Some(letters) => {
                self.next();
                self.text.push('\'');
                self.text.push_str(letters);
                self.text.push('\'');
                self
            }
            None => self.bytes(text),
        }
    }

    /// Bytes of any value.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.next();
        push_bytes(self.text, bytes);
        self
    }

    pub(crate) fn end(self) {
        self.text.push(')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_as_sql() {
        let mut insert = Insert::new("INSERT INTO t VALUES");
        assert!(insert.is_empty());
        insert.row().number(7u64).bytes(b"a'\0\xff").end();
        insert.row().number(u64::MAX).bytes(b"").end();
        let wanted = "INSERT INTO t VALUES (7,X'612700FF'),(18446744073709551615,X'')";
        assert_eq!(insert.text(), wanted);
        insert.clear();
        insert.row().number(0u32).end();
        assert_eq!(insert.text(), "INSERT INTO t VALUES (0)");
    }

    #[test]
    fn rows_that_did_not_change_are_counted() {
        assert_eq!(matched(0, "Rows matched: 1  Changed: 0  Warnings: 0"), 1);
        assert_eq!(matched(3, ""), 3);
    }
}
