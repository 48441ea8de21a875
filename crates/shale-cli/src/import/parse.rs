//! From a line to a key and a value.

use super::lines::Lines;
use crate::args::{Format, ImportOptions};
use crate::exit::{Exit, Failure, Outcome};
use crate::text::{from_hex, unescape};
use serde_json::{Map, Value};

/// One pair.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// How lines of one file are read.
pub(super) enum Parser {
    Kv { escaped: bool },
    Json { key: Vec<Vec<String>>, separator: String, value: Option<Vec<String>> },
    Pairs,
    Columns(Columns),
}

/// How rows of CSV or TSV are read.
pub(super) struct Columns {
    delimiter: u8,
    names: Vec<String>,
    key: Vec<usize>,
    separator: String,
    value: Option<usize>,
}

impl Parser {
    /// Checks the flags; reads the header line, if the format has one.
    pub(super) fn new(
        options: &ImportOptions,
        format: Format,
        lines: &mut Lines,
    ) -> Outcome<Parser> {
        let separator = options.key_separator.clone();
        let path = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
        if options.escaped && format != Format::Kv {
            return Err(Failure::usage("--escaped is for --format kv"));
        }
        Ok(match format {
            Format::Kv => {
                if !options.key.is_empty() || options.value.is_some() {
                    return Err(Failure::usage(
                        "key<TAB>value lines have no columns: --key and --value are for json, csv \
                         and tsv (name the --format)",
                    ));
                }
                Parser::Kv { escaped: options.escaped }
            }
            Format::Json if options.key.is_empty() => Parser::Pairs,
            Format::Json => Parser::Json {
                key: options.key.iter().map(|name| path(name)).collect(),
                separator,
                value: options.value.as_deref().map(path),
            },
            Format::Csv => Parser::Columns(Columns::new(options, b',', lines)?),
            Format::Tsv => Parser::Columns(Columns::new(options, b'\t', lines)?),
        })
    }

    /// Whether a quoted field may span lines.
    pub(super) fn quoted(&self) -> bool {
        matches!(self, Parser::Columns(Columns { delimiter: b',', .. }))
    }

    /// Reads one line; false for an empty one, which is no record.
    pub(super) fn parse(&self, line: &[u8], record: &mut Record) -> Result<bool, String> {
        record.key.clear();
        record.value.clear();
        if line.is_empty() {
            return Ok(false);
        }
        match self {
            Parser::Kv { escaped } => pair(line, *escaped, record)?,
            Parser::Json { key, separator, value } => {
                let object: Value = parse_json(line)?;
                for (at, path) in key.iter().enumerate() {
                    if at > 0 {
                        record.key.extend(separator.as_bytes());
                    }
                    append_text(field(&object, path)?, &mut record.key);
                }
                match value {
                    Some(path) => append_text(field(&object, path)?, &mut record.value),
                    None => record.value.extend(line.trim_ascii()),
                }
            }
            Parser::Pairs => {
                let object: Value = parse_json(line)?;
                bytes_of(&object, "key", &mut record.key)?;
                bytes_of(&object, "value", &mut record.value)?;
            }
            Parser::Columns(columns) => columns.parse(line, record)?,
        }
        Ok(true)
    }
}

fn pair(line: &[u8], escaped: bool, record: &mut Record) -> Result<(), String> {
    let at = line
        .iter()
        .position(|&byte| byte == b'\t')
        .ok_or("there is no tab between a key and a value")?;
    let (key, value) = (&line[..at], &line[at + 1..]);
    if escaped {
        record.key = unescape(key)?;
        record.value = unescape(value)?;
    } else {
        record.key.extend(key);
        record.value.extend(value);
    }
    Ok(())
}

fn parse_json(line: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(line).map_err(|error| format!("this is no JSON: {error}"))
}

fn field<'a>(object: &'a Value, path: &[String]) -> Result<&'a Value, String> {
    // A field whose name has a dot in it comes before a path.
    if let Some(value) = object.get(path.join(".")) {
        return Ok(value);
    }
    path.iter().try_fold(object, |value, name| {
        value.get(name).ok_or_else(|| format!("there is no field `{}`", path.join(".")))
    })
}

/// A string as its text, anything else as JSON.
fn append_text(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => out.extend(text.as_bytes()),
        other => out.extend(other.to_string().as_bytes()),
    }
}

fn bytes_of(object: &Value, name: &str, out: &mut Vec<u8>) -> Result<(), String> {
    if let Some(value) = object.get(name) {
        append_text(value, out);
        return Ok(());
    }
    match object.get(format!("{name}_hex")).and_then(Value::as_str) {
        Some(digits) => {
            *out = from_hex(digits)?;
            Ok(())
        }
        None => Err(format!(
            "there is no field `{name}` (or `{name}_hex`); name the fields of the key with --key"
        )),
    }
}

impl Columns {
    fn new(options: &ImportOptions, delimiter: u8, lines: &mut Lines) -> Outcome<Columns> {
        let bad = |text: String| Failure::new(Exit::BadInput, text);
        let file = options.file.display();
        let header = lines
            .next(delimiter == b',')?
            .ok_or_else(|| bad(format!("{file} is empty: the first line must name the columns")))?;
        let text = header.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header.text);
        let names =
            split(text, delimiter).map_err(|what| bad(format!("{file}: line 1: {what}")))?;
        let names: Vec<String> =
            names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let find = |wanted: &String| {
            names.iter().position(|name| name == wanted).ok_or_else(|| {
                Failure::usage(format!(
                    "{file} has no column `{wanted}`; its columns are {}",
                    names.join(", ")
                ))
            })
        };
        if options.key.is_empty() {
            return Err(Failure::usage(format!(
                "name the column or columns of the key with --key; {file} has {}",
                names.join(", ")
            )));
        }
        let key = options.key.iter().map(find).collect::<Outcome<_>>()?;
        let value = options.value.as_ref().map(find).transpose()?;
        let separator = options.key_separator.clone();
        Ok(Columns { delimiter, names, key, separator, value })
    }

    fn parse(&self, line: &[u8], record: &mut Record) -> Result<(), String> {
        let fields = split(line, self.delimiter)?;
        if fields.len() != self.names.len() {
            return Err(format!(
                "there are {} fields where the header names {}",
                fields.len(),
                self.names.len()
            ));
        }
        let of = |column: usize| fields.get(column).map_or(&[][..], Vec::as_slice);
        for (at, &column) in self.key.iter().enumerate() {
            if at > 0 {
                record.key.extend(self.separator.as_bytes());
            }
            record.key.extend(of(column));
        }
        match self.value {
            Some(column) => record.value.extend(of(column)),
            None => {
                let mut object = Map::new();
                for (name, field) in self.names.iter().zip(&fields) {
                    let text = std::str::from_utf8(field)
                        .map_err(|_| format!("column `{name}` is not UTF-8"))?;
                    object.insert(name.clone(), text.into());
                }
                record.value = serde_json::to_vec(&object).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// The fields of one row. TSV has no quotes: a tab always ends a field.
fn split(line: &[u8], delimiter: u8) -> Result<Vec<Vec<u8>>, String> {
    if delimiter == b'\t' {
        return Ok(line.split(|&byte| byte == b'\t').map(<[u8]>::to_vec).collect());
    }
    if !line.iter().filter(|&&byte| byte == b'"').count().is_multiple_of(2) {
        return Err("a quoted field does not end".to_owned());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(line);
    match reader.byte_records().next() {
        Some(Ok(record)) => Ok(record.iter().map(<[u8]>::to_vec).collect()),
        Some(Err(error)) => Err(error.to_string()),
        None => Ok(vec![Vec::new()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(parser: &Parser, line: &str) -> Result<(String, String), String> {
        let mut record = Record::default();
        parser.parse(line.as_bytes(), &mut record)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((text(&record.key), text(&record.value)))
    }

    fn pair_of(key: &str, value: &str) -> Result<(String, String), String> {
        Ok((key.to_owned(), value.to_owned()))
    }

    #[test]
    fn tabs_and_escapes() {
        let plain = Parser::Kv { escaped: false };
        assert_eq!(parsed(&plain, "a\\tb\tc\td"), pair_of("a\\tb", "c\td"));
        assert!(parsed(&plain, "no tab").is_err());
        let escaped = Parser::Kv { escaped: true };
        assert_eq!(parsed(&escaped, "a\\tb\t\\x41"), pair_of("a\tb", "A"));
        assert!(parsed(&escaped, "a\\q\tb").is_err());
    }

    #[test]
    fn json_fields() {
        let parser = Parser::Json {
            key: vec![vec!["user".into(), "id".into()], vec!["n".into()]],
            separator: "/".into(),
            value: None,
        };
        let line = r#"{"user":{"id":"ann"},"n":7}"#;
        assert_eq!(parsed(&parser, line), pair_of("ann/7", line));
        assert!(parsed(&parser, "{\"n\":7}").unwrap_err().contains("user.id"));
        assert!(parsed(&parser, "{").unwrap_err().contains("no JSON"));
        let pairs = Parser::Pairs;
        assert_eq!(parsed(&pairs, r#"{"key_hex":"6161","value":"x"}"#), pair_of("aa", "x"));
        assert!(parsed(&pairs, r#"{"key":"a"}"#).is_err());
    }

    #[test]
    fn rows_of_columns() {
        let columns = |delimiter, value| {
            Parser::Columns(Columns {
                delimiter,
                names: vec!["id".into(), "name".into()],
                key: vec![0],
                separator: "/".into(),
                value,
            })
        };
        let json = r#"{"id":"1","name":"a,\"b\""}"#;
        assert_eq!(parsed(&columns(b',', None), "1,\"a,\"\"b\"\"\""), pair_of("1", json));
        assert_eq!(parsed(&columns(b'\t', Some(1)), "1\t\"x"), pair_of("1", "\"x"));
        assert!(parsed(&columns(b',', None), "1").unwrap_err().contains("header names 2"));
        assert!(parsed(&columns(b',', None), "1,\"x").unwrap_err().contains("does not end"));
    }
}
