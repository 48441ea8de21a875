//! Rows of fields: CSV, TSV and what is like them.
//!
//! The csv crate reads; what it lets pass in silence is refused here: rows with another number of
//! fields, columns of the same name, quotes that do not end or that text follows.

use super::key::Joined;
use super::options::Options;
use super::quotes::Watched;
use super::record::{Problem, Record, too_long};
use crate::text::from_hex;
use std::io::{self, Read};

pub(super) struct Columns {
    reader: csv::Reader<Watched>,
    row: csv::ByteRecord,
    /// The line of a row that is there and not used: of a file without a header, the first one.
    unused: Option<u64>,
    names: Vec<String>,
    take: Take,
}

/// What of a row is its key and its value.
enum Take {
    /// Columns called `key` and `value`, or `key_hex` and `value_hex`.
    Pair {
        key: Field,
        value: Field,
    },
    Columns {
        key: Vec<usize>,
        joined: Box<Joined>,
        value: Option<usize>,
        prefixes: Vec<Vec<u8>>,
    },
}

#[derive(Clone, Copy)]
struct Field {
    column: usize,
    is_hex: bool,
}

impl Columns {
    pub(super) fn new(
        input: Box<dyn Read>,
        options: &Options,
        delimiter: u8,
        quotes: bool,
        header: bool,
    ) -> Result<Columns, Problem> {
        let watched = Watched::new(input, delimiter, quotes, options.row_bytes_max);
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .quoting(quotes)
            .buffer_capacity(64 << 10)
            .from_reader(watched);
        let mut columns = Columns {
            reader,
            row: csv::ByteRecord::new(),
            unused: None,
            names: Vec::new(),
            take: Take::Pair {
                key: Field { column: 0, is_hex: false },
                value: Field { column: 0, is_hex: false },
            },
        };
        let Some(line) = columns.read()? else {
            if header {
                let what = "the file is empty, but its first line must name the columns. Use \
                            --no-header for a file without names";
                return Err(Problem::Rest(1, what.to_owned()));
            }
            return Ok(columns);
        };
        columns.unused = (!header).then_some(line);
        columns.names = match header {
            true => header_names(&columns.row).map_err(|what| Problem::Rest(line, what))?,
            false => (1..=columns.row.len()).map(|number| number.to_string()).collect(),
        };
        columns.take = Take::new(options, &columns.names, header).map_err(Problem::Options)?;
        Ok(columns)
    }

    /// Reads the next row; gives its line.
    pub(super) fn next(&mut self, record: &mut Record) -> Result<Option<u64>, Problem> {
        let line = match self.unused.take() {
            Some(line) => Some(line),
            None => self.read()?,
        };
        let Some(line) = line else { return Ok(None) };
        if self.row.len() != self.names.len() {
            let what = format!(
                "the row has {} fields, but the first line has {}",
                self.row.len(),
                self.names.len()
            );
            return Err(Problem::Row(line, what));
        }
        self.take.take(&self.row, &self.names, record).map_err(|what| Problem::Row(line, what))?;
        Ok(Some(line))
    }

    /// Reads a row and gives the line in which it begins.
    fn read(&mut self) -> Result<Option<u64>, Problem> {
        let is_row = match self.reader.read_byte_record(&mut self.row) {
            Ok(is_row) => is_row,
            Err(error) => return Err(self.failed(error)),
        };
        let end = self.reader.position().byte();
        if self.reader.get_ref().is_too_long(end) {
            return Err(self.too_long());
        }
        let (last, stray) = self.reader.get_mut().take_row(end);
        if let Some(line) = self.reader.get_ref().open_at_end() {
            let what = "a quoted field begins in this line and does not end. Close the quote, or \
                        write a quote inside a field twice";
            return Err(Problem::Rest(line, what.to_owned()));
        }
        if !is_row {
            return Ok(None);
        }
        let line = last - self.lines_of_row();
        if stray {
            let what = "text follows a closing quote. Write a quote inside a quoted field twice";
            return Err(Problem::Row(line, what.to_owned()));
        }
        Ok(Some(line))
    }

    /// The line ends inside of the row's fields.
    fn lines_of_row(&self) -> u64 {
        memchr::memchr_iter(b'\n', self.row.as_slice()).count() as u64
    }

    fn too_long(&self) -> Problem {
        let watched = self.reader.get_ref();
        Problem::Rest(watched.next_line(), too_long(watched.row_bytes_max()))
    }

    fn failed(&self, error: csv::Error) -> Problem {
        match error.into_kind() {
            csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.too_long()
            }
            csv::ErrorKind::Io(error) => Problem::Read(error),
            other => Problem::Read(io::Error::other(format!("{other:?}"))),
        }
    }
}

/// The names of a header; each of them must be of one column only.
fn header_names(row: &csv::ByteRecord) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::with_capacity(row.len());
    for (at, field) in row.iter().enumerate() {
        let name = std::str::from_utf8(field).map_err(|_| {
            format!(
                "the name of column {} is not UTF-8. Convert the file, such as with `iconv -f \
                 LATIN1 -t UTF-8`",
                at + 1
            )
        })?;
        names.push(name.to_owned());
    }
    let mut sorted: Vec<(&String, usize)> = names.iter().zip(1..).collect();
    sorted.sort();
    if let Some(two) = sorted.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(format!(
            "columns {} and {} are both called `{}`, so one would be lost. Rename one, or drop the \
             first line and use --no-header",
            two[0].1, two[1].1, two[0].0
        ));
    }
    Ok(names)
}

impl Take {
    fn new(options: &Options, names: &[String], header: bool) -> Result<Take, String> {
        let shown = || {
            let shown: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            shown.join(", ")
        };
        if options.key.is_empty() {
            if let (Some(pair), None, true) = (pair(names), &options.value, header) {
                return Ok(pair);
            }
            return Err(format!(
                "there is no --key. Name the columns that make the key with it; the columns are {}",
                shown()
            ));
        }
        let find = |wanted: &String| {
            names.iter().position(|name| name == wanted).ok_or_else(|| {
                format!("there is no column `{wanted}`; the columns are {}", shown())
            })
        };
        let key: Vec<usize> = options.key.iter().map(find).collect::<Result<_, _>>()?;
        let joined = Box::new(Joined::new(&options.separator, key.len())?);
        let value = options.value.as_ref().map(find).transpose()?;
        Ok(Take::Columns { key, joined, value, prefixes: prefixes(names) })
    }

    fn take(
        &self,
        row: &csv::ByteRecord,
        names: &[String],
        record: &mut Record,
    ) -> Result<(), String> {
        let (keys, joined, value, prefixes) = match self {
            Take::Pair { key, value } => {
                key.take(row, &mut record.key)?;
                return value.take(row, &mut record.value);
            }
            Take::Columns { key, joined, value, prefixes } => (key, joined, value, prefixes),
        };
        for (number, &column) in keys.iter().enumerate() {
            joined.add(&mut record.key, number, &names[column], |key| {
                key.extend(&row[column]);
                Ok(())
            })?;
        }
        if let Some(column) = value {
            record.value.extend(&row[*column]);
            return Ok(());
        }
        for ((prefix, field), name) in prefixes.iter().zip(row).zip(names) {
            let text = std::str::from_utf8(field).map_err(|_| {
                format!(
                    "column `{name}` is not UTF-8. Convert the file to UTF-8, or store one column \
                     as it is with --value"
                )
            })?;
            record.value.extend(prefix);
            put_string(text, &mut record.value)?;
        }
        record.value.push(b'}');
        Ok(())
    }
}

impl Field {
    fn take(self, row: &csv::ByteRecord, out: &mut Vec<u8>) -> Result<(), String> {
        let field = &row[self.column];
        if !self.is_hex {
            out.extend(field);
            return Ok(());
        }
        *out = from_hex(&String::from_utf8_lossy(field))?;
        Ok(())
    }
}

/// The columns of a file that `shale export` wrote.
fn pair(names: &[String]) -> Option<Take> {
    let find = |name: &str| {
        let plain = names.iter().position(|other| other == name);
        let hex = names.iter().position(|other| *other == format!("{name}_hex"));
        match (plain, hex) {
            (Some(column), None) => Some(Field { column, is_hex: false }),
            (None, Some(column)) => Some(Field { column, is_hex: true }),
            _ => None,
        }
    };
    let (key, value) = (find("key")?, find("value")?);
    (names.len() == 2).then_some(Take::Pair { key, value })
}

/// What stands before each field in the JSON object of a row.
fn prefixes(names: &[String]) -> Vec<Vec<u8>> {
    let prefix = |(at, name): (usize, &String)| {
        let mut prefix = vec![if at == 0 { b'{' } else { b',' }];
        prefix.extend(serde_json::Value::from(name.as_str()).to_string().as_bytes());
        prefix.push(b':');
        prefix
    };
    names.iter().enumerate().map(prefix).collect()
}

fn put_string(text: &str, out: &mut Vec<u8>) -> Result<(), String> {
    serde_json::to_writer(out, text).map_err(|error| error.to_string())
}

/// The names in a list with commas between them; one with a comma in it stands in quotes.
pub fn names(list: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(list.as_bytes());
    let row = reader.records().next().and_then(Result::ok);
    row.map_or_else(Vec::new, |row| row.iter().map(str::to_owned).collect())
}
