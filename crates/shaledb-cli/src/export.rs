//! `export`: a tree as text that `import` reads back.
//!
//! A row that the format cannot say ends the export: text with a hole in it would not be noticed. A
//! file gets its name when it is complete.

use crate::args::{ExportOptions, Format};
use crate::exit::{Exit, Failure, Outcome};
use crate::{open, screen};
use serde_json::Map;
use shaledb::Scan;
use shaledb_cli::rows::{self, KeyFields, Members};
use shaledb_cli::text::{Form, escaped, hex, put_json};
use shaledb_lab::units::{bytes, grouped};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Writes a tree.
pub(crate) fn export(options: &ExportOptions, json: bool) -> Outcome {
    let format = match (options.format, options.file == Path::new("-")) {
        (Some(format), _) => format,
        (None, true) => return Err(Failure::usage("name the --format of the standard output")),
        (None, false) => Format::of(&options.file),
    };
    let mut rows = Rows::new(options, format)?;
    let bounds = options.range.bounds(Form::default())?;
    let stop = crate::signals::stop_flag()?;
    let db = open::reading(&options.read)?;
    let tree = db.tree(&options.name.tree)?;
    let mut scan = tree.scan_with(bounds)?;
    let mut target = Target::create(options)?;
    let bar = screen::bytes_bar(None, "export");
    scan.seek_first()?;
    let (mut count, mut size) = (0u64, 0u64);
    let mut text = Vec::new();
    while scan.valid() {
        if stop.load(Ordering::Relaxed) {
            let file = options.file.display();
            return Err(Failure::new(Exit::Stopped, format!("stopped: {file} is not complete")));
        }
        text.clear();
        rows.put(&scan, &mut text)?;
        target.write(&text)?;
        (count, size) = (count + 1, size + text.len() as u64);
        if count.is_multiple_of(1024) {
            bar.set_position(size);
        }
        scan.next()?;
    }
    if count == 0 {
        rows.header_alone(&mut text);
        target.write(&text)?;
    }
    target.finish()?;
    bar.finish_and_clear();
    if options.file == Path::new("-") {
        return Ok(Exit::Done);
    }
    if json {
        screen::json(&serde_json::json!({ "records": count, "bytes": size }))?;
    } else {
        screen::line(&format!("{} records, {} of text", grouped(count), bytes(size)))?;
    }
    Ok(Exit::Done)
}

/// Rows as text.
struct Rows {
    format: Format,
    delimiter: u8,
    header: bool,
    form: Form,
    /// Of values that are objects.
    key: Option<KeyFields>,
    columns: Vec<String>,
    made: Vec<u8>,
    is_first: bool,
}

impl Rows {
    fn new(options: &ExportOptions, format: Format) -> Outcome<Rows> {
        let is_columns = matches!(format, Format::Csv | Format::Tsv);
        let names = |lists: &[String]| lists.iter().flat_map(|list| rows::names(list)).collect();
        if !is_columns
            && (options.delimiter.is_some() || options.no_header || !options.columns.is_empty())
        {
            return Err(Failure::usage(
                "--delimiter, --no-header and --columns are for csv and tsv",
            ));
        }
        if format == Format::Kv && (options.hex || !options.key.is_empty()) {
            return Err(Failure::usage("--key and --hex are for csv, tsv and json"));
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
            made: Vec::new(),
            is_first: true,
        })
    }

    /// The columns of a tree without rows, as far as they are known.
    fn header_alone(&mut self, text: &mut Vec<u8>) {
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
    fn put(&mut self, scan: &Scan, text: &mut Vec<u8>) -> Outcome<()> {
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
                return Err("the value has line ends or space around it: export it without --key"
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
            format!("its value is no JSON object ({error}): export it without --key")
        })?;
        self.made.clear();
        if let Some(fields) = &mut self.key {
            fields.key_of(&members, &mut self.made)?;
        }
        if self.made != key {
            return Err(format!(
                "the fields that --key names make {}, so the key would be lost",
                escaped(&self.made)
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
                "it is not UTF-8, and other programs expect text of such files; use --hex, or \
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
                "its value has the field `{}`, which no column is for: name all with --columns",
                name.0
            ));
        }
        let mut fields = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            let field = members.member(name)?;
            let field = field.ok_or_else(|| {
                format!(
                    "its value has no field `{name}`, and an empty column would say something else"
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
                "it begins with a byte order mark, which at the start of a file is none of \
                        its text; use --format json"
                    .to_owned(),
            );
        }
        let delimiter = char::from(self.delimiter);
        let mut writer = csv::WriterBuilder::new();
        writer.delimiter(self.delimiter).flexible(true);
        if self.format == Format::Tsv {
            if fields.iter().any(|field| field.contains([delimiter, '\r', '\n'])) {
                return Err("a tab or a line end is in it, which tsv cannot have in a field; use \
                            --format csv"
                    .to_owned());
            }
            if matches!(fields, [""]) {
                return Err("the line would be empty; use --format csv".to_owned());
            }
            writer.quote_style(csv::QuoteStyle::Never);
        }
        let mut writer = writer.from_writer(&mut *text);
        writer.write_record(fields).and_then(|()| Ok(writer.flush()?)).map_err(|e| e.to_string())
    }
}

/// The file that is written, or the standard output.
struct Target {
    out: Packed,
    /// Of a file: its name and the one it has until it is complete.
    file: Option<(File, PathBuf, PathBuf)>,
}

type Out = BufWriter<Box<dyn Write>>;

enum Packed {
    Plain(Out),
    Gzip(flate2::write::GzEncoder<Out>),
    Zstd(zstd::stream::write::Encoder<'static, Out>),
}

impl Target {
    fn create(options: &ExportOptions) -> Outcome<Target> {
        let path = &options.file;
        if path == Path::new("-") {
            let out: Box<dyn Write> = Box::new(io::stdout().lock());
            return Ok(Target { out: Packed::Plain(BufWriter::new(out)), file: None });
        }
        if path.exists() && !options.force {
            return Err(Failure::usage(format!(
                "{} exists; name another file, or write over it with --force",
                path.display()
            )));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let wrong = |error: io::Error| Failure::file("create", &partial, &error);
        let file = File::create(&partial).map_err(wrong)?;
        let same = file.try_clone().map_err(wrong)?;
        let out: Box<dyn Write> = Box::new(file);
        let out = BufWriter::with_capacity(256 << 10, out);
        let extension = path.extension().and_then(|extension| extension.to_str());
        let out = match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("gz") => {
                Packed::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::default()))
            }
            Some("zst") => {
                let mut encoder = zstd::stream::write::Encoder::new(out, 3).map_err(wrong)?;
                encoder.include_checksum(true).map_err(wrong)?;
                Packed::Zstd(encoder)
            }
            _ => Packed::Plain(out),
        };
        Ok(Target { out, file: Some((same, path.clone(), partial)) })
    }

    fn write(&mut self, text: &[u8]) -> Outcome<()> {
        let written = match &mut self.out {
            Packed::Plain(out) => out.write_all(text),
            Packed::Gzip(out) => out.write_all(text),
            Packed::Zstd(out) => out.write_all(text),
        };
        written.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        match &self.file {
            None => io::Error::new(error.kind(), error.to_string()).into(),
            Some((_, _, partial)) if error.kind() == io::ErrorKind::StorageFull => {
                let text = format!("there is no space left for {}", partial.display());
                Failure::new(Exit::DiskFull, text)
            }
            Some((_, _, partial)) => Failure::file("write", partial, error),
        }
    }

    /// Ends the file and gives it its name.
    fn finish(mut self) -> Outcome<()> {
        let ended = match &mut self.out {
            Packed::Plain(out) => out.flush(),
            Packed::Gzip(out) => out.try_finish().and_then(|()| out.get_mut().flush()),
            Packed::Zstd(out) => out.do_finish().and_then(|()| out.get_mut().flush()),
        };
        let ended = ended.and_then(|()| match &self.file {
            Some((file, path, partial)) => {
                file.sync_all()?;
                std::fs::rename(partial, path)
            }
            None => Ok(()),
        });
        ended.map_err(|error| self.failed(&error))?;
        self.file = None;
        Ok(())
    }
}

impl Drop for Target {
    /// An export that failed leaves nothing that could be taken for one that did not.
    fn drop(&mut self) {
        if let Some((_, _, partial)) = &self.file {
            let _ = std::fs::remove_file(partial);
        }
    }
}
