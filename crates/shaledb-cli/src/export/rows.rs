//! Rows as text of each format. A row that the format cannot hold is refused.

use crate::args::{ExportOptions, Format};
use crate::exit::{Exit, Failure, Outcome};
use serde_json::Map;
use shaledb::Scan;
use shaledb_cli::rows::{self, KeyFields, Members};
use shaledb_cli::text::{Form, escaped, hex, put_json};

/// Rows as text of one format.
pub(super) struct Rows {
    format: Format,
    delimiter: u8,
    header: bool,
    form: Form,
    /// Of values that are objects.
    key: Option<KeyFields>,
    columns: Vec<String>,
    /// The key that the fields of a value make.
    key_of_fields: Vec<u8>,
    is_first: bool,
}

impl Rows {
    pub(super) fn new(options: &ExportOptions, format: Format) -> Outcome<Rows> {
        let is_columns = matches!(format, Format::Csv | Format::Tsv);
        let names = |lists: &[String]| lists.iter().flat_map(|list| rows::names(list)).collect();
        if !is_columns
            && (options.delimiter.is_some() || options.no_header || !options.columns.is_empty())
        {
            return Err(Failure::usage(
                "--delimiter, --no-header and --columns apply to csv and tsv only",
            ));
        }
        if format == Format::Kv && (options.hex || !options.key.is_empty()) {
            return Err(Failure::usage("--key and --hex apply to csv, tsv and json only"));
        }
        let key: Vec<String> = names(&options.key);
        let key = match key.is_empty() {
            true => None,
            false => Some(KeyFields::new(&key, &options.key_separator).map_err(Failure::usage)?),
        };
        let delimiter = if format == Format::Tsv { b'\t' } else { b',' };
        Ok(Rows {
            format,
            delimiter: options.delimiter.unwrap_or(delimiter),
            header: is_columns && !options.no_header,
            form: Form { hex: options.hex, raw: false },
            key,
            columns: names(&options.columns),
            key_of_fields: Vec::new(),
            is_first: true,
        })
    }

    /// The columns of a tree without rows, as far as they are known.
    pub(super) fn header_alone(&mut self, text: &mut Vec<u8>) {
        if self.header && (self.key.is_none() || !self.columns.is_empty()) {
            let names = self.header_names();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            // Names that cannot be written are found with the first row.
            let _ = self.fields(&names, text);
        }
    }

    fn header_names(&self) -> Vec<String> {
        match (&self.key, self.form.hex) {
            (Some(_), _) => self.columns.clone(),
            (None, false) => vec!["key".to_owned(), "value".to_owned()],
            (None, true) => vec!["key_hex".to_owned(), "value_hex".to_owned()],
        }
    }

    /// Appends the row at which a scan stands.
    pub(super) fn put(&mut self, scan: &Scan, text: &mut Vec<u8>) -> Outcome<()> {
        let (key, value) = (scan.key(), scan.value()?);
        let put = match self.format {
            Format::Kv => {
                self.form.print(key, text);
                text.push(b'\t');
                self.form.print(value, text);
                text.push(b'\n');
                Ok(())
            }
            Format::Json => self.put_object(key, value, text),
            Format::Csv | Format::Tsv => self.put_fields(key, value, text),
        };
        self.is_first = false;
        put.map_err(|what| {
            let key = escaped(&key[..key.len().min(200)]);
            Failure::new(Exit::BadInput, format!("the row with the key {key}: {what}"))
                .with("key", key)
        })
    }

    fn put_object(&mut self, key: &[u8], value: &[u8], text: &mut Vec<u8>) -> Result<(), String> {
        if self.key.is_some() {
            self.members(key, value)?;
            if value.trim_ascii() != value || value.contains(&b'\n') || value.contains(&b'\r') {
                return Err("the value has a line end in it, or white space around it. Export \
                            without --key"
                    .to_owned());
            }
            text.extend(value);
        } else {
            let mut object = Map::new();
            put_json(&mut object, "key", key, self.form);
            put_json(&mut object, "value", value, self.form);
            text.extend(serde_json::to_vec(&object).map_err(|error| error.to_string())?);
        }
        text.push(b'\n');
        Ok(())
    }

    /// The members of a value; its key must be what the fields say.
    fn members<'a>(&mut self, key: &[u8], value: &'a [u8]) -> Result<Members<'a>, String> {
        let members = Members::parse(value).map_err(|error| {
            format!("the value is not a JSON object ({error}). Export without --key")
        })?;
        self.key_of_fields.clear();
        if let Some(fields) = &mut self.key {
            fields.key_of(&members, &mut self.key_of_fields)?;
            fields.accept();
        }
        if self.key_of_fields != key {
            return Err(format!(
                "the fields that --key names make {}, so the key would be lost. Name the fields \
                 that make it, or export without --key",
                escaped(&self.key_of_fields)
            ));
        }
        Ok(members)
    }

    fn put_fields(&mut self, key: &[u8], value: &[u8], text: &mut Vec<u8>) -> Result<(), String> {
        if self.key.is_none() {
            self.put_header(text)?;
            if self.form.hex {
                return self.fields(&[&hex(key), &hex(value)], text);
            }
            let not_text = |_| {
                "it is not UTF-8, but other programs expect text in such files. Use --hex or \
                 --format json"
            };
            let key = std::str::from_utf8(key).map_err(not_text)?;
            let value = std::str::from_utf8(value).map_err(not_text)?;
            return self.fields(&[key, value], text);
        }
        let members = self.members(key, value)?;
        if self.columns.is_empty() {
            self.columns = members.0.iter().map(|(name, _)| name.0.to_string()).collect();
        }
        self.put_header(text)?;
        if let Some((name, _)) =
            members.0.iter().find(|(name, _)| !self.columns.iter().any(|column| *column == name.0))
        {
            return Err(format!(
                "the value has the field `{}`, which is not a column. Name all fields with \
                 --columns",
                name.0
            ));
        }
        let mut fields = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            let field = members.member(name)?;
            let field = field.ok_or_else(|| {
                format!(
                    "the value has no field `{name}`, and an empty column would mean an empty \
                     text. Use --format json"
                )
            })?;
            fields.push(rows::text_of(field)?);
        }
        let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
        self.fields(&fields, text)
    }

    fn put_header(&self, text: &mut Vec<u8>) -> Result<(), String> {
        if !self.header || !self.is_first {
            return Ok(());
        }
        let names = self.header_names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.fields(&names, text)
    }

    /// Appends a line of fields.
    fn fields(&self, fields: &[&str], text: &mut Vec<u8>) -> Result<(), String> {
        if self.is_first
            && text.is_empty()
            && fields.first().is_some_and(|f| f.starts_with('\u{feff}'))
        {
            return Err(
                "it begins with a byte order mark, which readers drop at the start of a file. Use \
                 --format json"
                    .to_owned(),
            );
        }
        let delimiter = char::from(self.delimiter);
        let mut writer = csv::WriterBuilder::new();
        writer.delimiter(self.delimiter).flexible(true);
        if self.format == Format::Tsv {
            if fields.iter().any(|field| field.contains([delimiter, '\r', '\n'])) {
                return Err(
                    "it has a tab or a line end in it, which a field of tsv cannot hold. Use \
                     --format csv"
                        .to_owned(),
                );
            }
            if matches!(fields, [""]) {
                return Err("the line would be empty. Use --format csv".to_owned());
            }
            writer.quote_style(csv::QuoteStyle::Never);
        }
        let mut writer = writer.from_writer(&mut *text);
        writer.write_record(fields).and_then(|()| Ok(writer.flush()?)).map_err(|e| e.to_string())
    }
}
