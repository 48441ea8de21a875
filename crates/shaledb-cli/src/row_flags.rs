//! How the user says that a file of rows is to be read: the same flags for every command.

use crate::exit::{Failure, Outcome};
use clap::{Args, ValueEnum};
use shaledb_cli::rows::{self, Layout};
use shaledb_lab::units::parse_bytes;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line, or (import only) one array of objects
    Json,
    /// Fields with commas between them; the first line names the columns
    Csv,
    /// As csv, with tabs and without quotes: a tab always ends a field
    Tsv,
    /// Lines of a key, a tab and a value
    Kv,
}

impl Format {
    /// The format that a file's name says, whatever it says of compression.
    pub(crate) fn of(path: &Path) -> Format {
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
        let name = name.unwrap_or_default();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        match name.rsplit_once('.') {
            Some((_, "json" | "jsonl" | "ndjson")) => Format::Json,
            Some((_, "csv")) => Format::Csv,
            Some((_, "tsv")) => Format::Tsv,
            _ => Format::Kv,
        }
    }
}

/// What stands between fields: one ASCII character, `tab` or `\t`.
pub(crate) fn parse_delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        (_, &[byte]) if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0) => Ok(byte),
        _ => Err(format!(
            "`{text}` is not a delimiter. Give one ASCII character, such as ; or |, or `tab`"
        )),
    }
}

/// How a file of rows is read.
#[derive(Args)]
pub(crate) struct RowFlags {
    /// The format of the file [default: by its name, without .gz or .zst: .json, .jsonl, .ndjson,
    /// .csv, .tsv, others kv]
    #[arg(long)]
    pub(crate) format: Option<Format>,

    /// The fields or columns that make the key, separated by commas; put a name with a comma in
    /// double quotes
    #[arg(long, value_name = "FIELD,...")]
    pub(crate) key: Vec<String>,

    /// The text between the parts of a key of several fields
    #[arg(long, default_value = "/", value_name = "TEXT")]
    pub(crate) key_separator: String,

    /// The field or column that is the value [default: the whole row]
    #[arg(long, value_name = "FIELD")]
    pub(crate) value: Option<String>,

    /// The delimiter of fields (csv and tsv): an ASCII character, or tab
    #[arg(long, value_parser = parse_delimiter, value_name = "CHARACTER")]
    pub(crate) delimiter: Option<u8>,

    /// The first line is a row; the columns are called 1, 2, 3, ... (csv and tsv)
    #[arg(long)]
    pub(crate) no_header: bool,

    /// Keys and values have escapes (kv only)
    #[arg(long)]
    pub(crate) escaped: bool,

    /// The longest row; it bounds the memory for reading
    #[arg(long, value_parser = parse_bytes, default_value = "256M", value_name = "BYTES")]
    pub(crate) max_row: u64,
}

impl RowFlags {
    /// How the flags say that the file is to be read.
    pub(crate) fn options(&self, file: &Path) -> Outcome<rows::Options> {
        let format = self.format.map_or_else(|| format_of(file), Ok)?;
        let is_columns = matches!(format, Format::Csv | Format::Tsv);
        if self.escaped && format != Format::Kv {
            return Err(Failure::usage("--escaped applies to --format kv only"));
        }
        if !is_columns && (self.delimiter.is_some() || self.no_header) {
            return Err(Failure::usage(
                "--delimiter and --no-header apply to csv and tsv only. Name the format with \
                 --format",
            ));
        }
        if format == Format::Kv && (!self.key.is_empty() || self.value.is_some()) {
            return Err(Failure::usage(
                "--key and --value apply to json, csv and tsv only, because kv lines have no \
                 columns. Name the format with --format",
            ));
        }
        let header = !self.no_header;
        let layout = match format {
            Format::Kv => Layout::Pairs { escaped: self.escaped },
            Format::Json => Layout::Json,
            Format::Csv => {
                Layout::Columns { delimiter: self.delimiter.unwrap_or(b','), quotes: true, header }
            }
            Format::Tsv => Layout::Columns {
                delimiter: self.delimiter.unwrap_or(b'\t'),
                quotes: false,
                header,
            },
        };
        Ok(rows::Options {
            key: self.key.iter().flat_map(|list| rows::names(list)).collect(),
            separator: self.key_separator.clone(),
            value: self.value.clone(),
            row_bytes_max: usize::try_from(self.max_row).unwrap_or(usize::MAX / 4),
            ..rows::Options::new(layout)
        })
    }
}

fn format_of(path: &Path) -> Outcome<Format> {
    if path == Path::new("-") {
        return Err(Failure::usage(
            "the standard input has no name that says its format. Name it with --format",
        ));
    }
    Ok(Format::of(path))
}
