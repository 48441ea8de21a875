//! What the user may say.

use crate::bench::BenchKind;
use crate::exit::{CODES, Failure, Outcome};
use crate::row_flags::parse_delimiter;
pub(crate) use crate::row_flags::{Format, RowFlags};
use crate::simulate::SimulateOptions;
use clap::{Args, Parser, Subcommand, ValueHint};
use shaledb_cli::text::Form;
use shaledb_lab::options::CodecNames;
use shaledb_lab::units::{parse_block_bytes, parse_bytes, parse_count};
use std::path::PathBuf;

/// Store, read, check and measure ordered key-value data
///
/// Shale is an embedded storage engine: a log-structured merge tree. A database is a folder; it
/// holds named trees, ordered maps from byte keys to byte values. Begin with `shale demo`, which
/// loads real data of this machine and shows what each codec makes of it, or with `shale import`.
#[derive(Parser)]
#[command(name = "shale", version, after_long_help = CODES, arg_required_else_help = true)]
pub(crate) struct Shale {
    /// Print results and errors as JSON, one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Log what the engine does
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,

    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Load JSON, CSV, TSV, or lines of a key, a tab and a value
    Import(ImportOptions),
    /// Write a tree as CSV, TSV, JSON lines, or lines of a key, a tab and a value
    Export(ExportOptions),
    /// Print the values of keys
    Get(GetOptions),
    /// Print a range of pairs in order
    Scan(ScanOptions),
    /// Set a key
    Put(PutOptions),
    /// Delete keys, a range or a prefix
    Delete(DeleteOptions),
    /// List the trees, or drop one
    Trees(TreesOptions),
    /// Print sizes, levels and codecs of the trees (a writing program's counters: its `Db::stats`)
    Stats(DbOptions),
    /// Show what is in a file of a database, or in all of them, without opening the database
    Inspect(InspectOptions),
    /// Read and check every byte
    Verify(DbOptions),
    /// Compact trees into the shape that is smallest and fastest to read
    Compact(CompactOptions),
    /// Make an independent copy by hard links of a database that no program has open (one that has
    /// it open makes its own: Db::checkpoint)
    Checkpoint(CheckpointOptions),
    /// Write what can be read of a damaged database to a new one, and report what was lost
    Repair(RepairOptions),
    /// Measure engines side by side
    Bench {
        #[command(subcommand)]
        kind: BenchKind,
    },
    /// Foresee what a database will cost: space, CPU, writes, slow moments, to 100 TB and a year
    Simulate(Box<SimulateOptions>),
    /// Predict from a sample of data what it takes under each codec, block size and dictionary
    Advise(AdviseOptions),
    /// Load real data of this machine and show size, speed and levels with each codec
    Demo(DemoOptions),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// Which database.
#[derive(Args, Clone)]
pub(crate) struct ReadFlags {
    /// The folder of the database
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) db: PathBuf,

    /// The most memory for cache, memtables, indexes, filters and work on them together, such as
    /// 256M [default: a quarter of the memory of the machine or its cgroup, at least 64M]
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,
}

/// Which database, to write to.
#[derive(Args, Clone)]
pub(crate) struct WriteFlags {
    #[command(flatten)]
    pub(crate) open: ReadFlags,

    /// The most that all files of the database may take together while this command has it open,
    /// such as 50G; what has no room is refused [default: no limit]
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) space_limit: Option<u64>,
}

/// Which tree.
#[derive(Args, Clone)]
pub(crate) struct TreeName {
    /// The tree
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub(crate) tree: String,
}

/// Which keys.
#[derive(Args, Clone)]
pub(crate) struct RangeFlags {
    /// The first key
    #[arg(long, value_name = "KEY")]
    pub(crate) from: Option<String>,

    /// The end of the range, which is not in it
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<String>,

    /// Only keys with this prefix
    #[arg(long, value_name = "KEY")]
    pub(crate) prefix: Option<String>,
}

impl RangeFlags {
    /// The options of a scan of these keys, which fills no cache.
    pub(crate) fn bounds(&self, form: Form) -> Outcome<shaledb::ScanOptions<'static>> {
        let bytes = |text: &Option<String>| -> Outcome<Option<Vec<u8>>> {
            text.as_deref().map(|text| form.read(text).map_err(Failure::usage)).transpose()
        };
        Ok(shaledb::ScanOptions {
            lower: bytes(&self.from)?,
            upper: bytes(&self.to)?,
            prefix: bytes(&self.prefix)?,
            fill_cache: false,
            ..shaledb::ScanOptions::default()
        })
    }
}

/// Settings of a tree that this command creates. A tree that exists keeps its settings.
#[derive(Args, Clone, Default)]
pub(crate) struct TreeFlags {
    /// One codec, or three for the upper levels, the middle and the last: auto, none, lz4,
    /// zlib:1 to zlib:9, zstd:-5 to zstd:19 (not 0) [default: auto]
    #[arg(long, help_heading = "Settings of a new tree")]
    pub(crate) codecs: Option<CodecNames>,

    /// No compression dictionaries
    #[arg(long, help_heading = "Settings of a new tree")]
    pub(crate) no_dictionary: bool,

    /// The size of a data block before compression, or `auto`: the engine chooses for each level
    /// [default: auto]
    #[arg(long, value_parser = parse_block_bytes, value_name = "BYTES")]
    #[arg(help_heading = "Settings of a new tree")]
    pub(crate) block_bytes: Option<u64>,

    /// Filter bits per key, 0 to 20 [default: 10]
    #[arg(long, value_name = "BITS", help_heading = "Settings of a new tree")]
    pub(crate) filter_bits: Option<u8>,
}

#[derive(Args)]
#[command(after_help = "\
Formats:
  json  One object a line, or one array of objects. The key is the text of the fields that --key
        names; a.b is field b of the object in field a. The value is the whole object as it stands,
        or the field that --value names: the text of a string, the JSON of anything else. Without
        --key, each object has the fields key and value, or key_hex and value_hex, as
        `shale export` and `shale scan --json` print them.
  csv   The first line names the columns. With --no-header they are called 1, 2, 3, ... The key is
  tsv   the text of the columns that --key names. The value is a JSON object of all columns in
        order, or the text of the column that --value names. Without --key, the columns are key and
        value, or key_hex and value_hex, as `shale export` writes them. Empty lines are skipped.
  kv    The key, a tab, the value, as `shale export` and `shale scan` print them. Both write
        escapes: read them with --escaped.
  A file may be compressed by gzip or zstd; its first bytes say so. Lines end with LF or CR LF, in
  csv and tsv also with CR. A UTF-8 byte order mark is skipped.

A row that cannot be stored without a loss is bad. The import stops there and keeps the rows before
it. These rows are bad:
  - another number of fields than the first line has, or the same field twice in an object;
  - text that is not UTF-8, where JSON is made of it;
  - a key that is longer than 64 KiB, null, an object or, with --key, empty;
  - a part of a key that has the separator in it.
A row replaces an earlier row with the same key. The report counts such rows.

Examples:
  shale import people.db people.csv --key id
  shale import events.db events.jsonl.zst --key user,time --skip-bad
  shale import prices.db prices.txt --format csv --delimiter ';' --no-header --key 1,3
  shale scan old.db | shale import new.db - --format kv --escaped --codecs zstd:19")]
pub(crate) struct ImportOptions {
    #[command(flatten)]
    pub(crate) write: WriteFlags,

    /// The file, - for the standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) name: TreeName,

    #[command(flatten)]
    pub(crate) rows: RowFlags,

    /// Skip and count bad lines, instead of stopping at the first
    #[arg(long)]
    pub(crate) skip_bad: bool,

    /// Skip this many rows, to continue an import that was stopped (k, M: thousands)
    #[arg(long, value_parser = parse_count, default_value = "0", value_name = "ROWS")]
    pub(crate) skip_rows: u64,

    /// The keys are in ascending order: tables are written directly, each byte once
    #[arg(long)]
    pub(crate) sorted: bool,

    #[command(flatten)]
    pub(crate) settings: TreeFlags,
}

#[derive(Args)]
#[command(after_help = "\
Formats, each of which `shale import` reads back to the same keys and values:
  json  One object {\"key\": ..., \"value\": ...} a line. Bytes that are not UTF-8 are
        hexadecimal, as key_hex and value_hex.
  csv   Columns key and value. Other programs expect text, so a row that is not UTF-8 stops the
        export. --hex writes columns key_hex and value_hex.
  tsv   As csv, without quotes. A row with a tab or a line end in it stops the export.
  kv    The key, a tab, the value, with escapes. Import it with --escaped.
With --key, the export is what `shale import --key` reads. Each value must be a JSON object that has
the parts of its key, which is checked. json writes the values as they are. csv and tsv write the
columns that --columns names [default: the fields of the first value].

The file is compressed if its name ends in .gz or .zst. It gets its name when it is complete.

Examples:
  shale export people.db people.csv --key id
  shale export events.db events.jsonl.zst
  shale export events.db - --format csv --hex --prefix 2026-")]
pub(crate) struct ExportOptions {
    #[command(flatten)]
    pub(crate) read: ReadFlags,

    /// The file, - for the standard output
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) name: TreeName,

    /// The format of the file [default: by its name, without .gz or .zst: .json, .jsonl, .ndjson,
    /// .csv, .tsv, others kv]
    #[arg(long)]
    pub(crate) format: Option<Format>,

    /// The fields of the values that make the key, as they were named to import
    #[arg(long, value_name = "FIELD,...")]
    pub(crate) key: Vec<String>,

    /// The text between the parts of a key of several fields
    #[arg(long, default_value = "/", value_name = "TEXT")]
    pub(crate) key_separator: String,

    /// The fields of the values that become columns, in this order (csv and tsv, with --key)
    #[arg(long, value_name = "FIELD,...", requires = "key")]
    pub(crate) columns: Vec<String>,

    /// Keys and values in hexadecimal
    #[arg(long, conflicts_with = "key")]
    pub(crate) hex: bool,

    /// The delimiter of fields (csv and tsv): an ASCII character, or tab
    #[arg(long, value_parser = parse_delimiter, value_name = "CHARACTER")]
    pub(crate) delimiter: Option<u8>,

    /// No first line with the names of the columns (csv and tsv)
    #[arg(long)]
    pub(crate) no_header: bool,

    #[command(flatten)]
    pub(crate) range: RangeFlags,

    /// Overwrite a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct GetOptions {
    #[command(flatten)]
    pub(crate) read: ReadFlags,

    /// The keys
    #[arg(required = true)]
    pub(crate) keys: Vec<String>,

    #[command(flatten)]
    pub(crate) name: TreeName,

    #[command(flatten)]
    pub(crate) form: Form,

    /// Write the value of one key, of any size, to this file, which is replaced when all of it is
    /// there (FILE.partial until then); `-` is the standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ScanOptions {
    #[command(flatten)]
    pub(crate) read: ReadFlags,

    #[command(flatten)]
    pub(crate) name: TreeName,

    #[command(flatten)]
    pub(crate) range: RangeFlags,

    /// The most pairs to print (k, M: thousands)
    #[arg(long, value_parser = parse_count)]
    pub(crate) limit: Option<u64>,

    /// From the last key to the first
    #[arg(long)]
    pub(crate) reverse: bool,

    /// Print keys only
    #[arg(long)]
    pub(crate) keys_only: bool,

    /// Print the number of pairs only
    #[arg(long, conflicts_with = "keys_only")]
    pub(crate) count: bool,

    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Args)]
pub(crate) struct PutOptions {
    #[command(flatten)]
    pub(crate) write: WriteFlags,

    /// The key
    pub(crate) key: String,

    /// The value, - for the standard input
    #[arg(required_unless_present = "file")]
    pub(crate) value: Option<String>,

    /// Read the value, of any size, from this file
    #[arg(long, value_name = "FILE", conflicts_with = "value", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) name: TreeName,

    #[command(flatten)]
    pub(crate) form: Form,

    #[command(flatten)]
    pub(crate) settings: TreeFlags,
}

#[derive(Args)]
pub(crate) struct DeleteOptions {
    #[command(flatten)]
    pub(crate) write: WriteFlags,

    /// The keys
    #[arg(required_unless_present_any = ["prefix", "from"])]
    pub(crate) keys: Vec<String>,

    #[command(flatten)]
    pub(crate) name: TreeName,

    /// Delete all keys with this prefix
    #[arg(long, value_name = "KEY", conflicts_with_all = ["keys", "from"])]
    pub(crate) prefix: Option<String>,

    /// Delete all keys from this one on, up to --to
    #[arg(long, value_name = "KEY", conflicts_with = "keys", requires = "to")]
    pub(crate) from: Option<String>,

    /// The end of the range to delete; this key stays
    #[arg(long, value_name = "KEY", requires = "from")]
    pub(crate) to: Option<String>,

    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Args)]
pub(crate) struct TreesOptions {
    #[command(flatten)]
    pub(crate) read: ReadFlags,

    /// Drop this tree with all its keys
    #[arg(long, value_name = "NAME")]
    pub(crate) drop: Option<String>,
}

#[derive(Args)]
pub(crate) struct DbOptions {
    #[command(flatten)]
    pub(crate) read: ReadFlags,
}

#[derive(Args)]
pub(crate) struct CompactOptions {
    #[command(flatten)]
    pub(crate) write: WriteFlags,

    /// Only this tree [default: all trees]
    #[arg(long, value_name = "NAME")]
    pub(crate) tree: Option<String>,
}

#[derive(Args)]
pub(crate) struct CheckpointOptions {
    #[command(flatten)]
    pub(crate) write: WriteFlags,

    /// The folder of the copy, which must not exist, on the same file system
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) to: PathBuf,
}

#[derive(Args)]
#[command(after_help = "\
The damaged database is not changed. Check the new one, then replace the old one by it. Where the
newest version of a key is lost, an older one may appear. Where a delete is lost, the deleted row
may appear again. The exit code is 0 if there was no damage, and 4 if the report lists losses.")]
pub(crate) struct RepairOptions {
    #[command(flatten)]
    pub(crate) read: ReadFlags,

    /// The folder of the new database, which must be empty or not exist. Until it is whole it is in
    /// TO.unfinished beside it
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) to: PathBuf,
}

#[derive(Args)]
pub(crate) struct InspectOptions {
    /// The folder of a database, or a file in it: a table, a WAL, a blob, a manifest
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    /// List the blocks of a table
    #[arg(long)]
    pub(crate) blocks: bool,

    /// List the entries of a table: key, kind, sequence number, bytes of the value
    #[arg(long, conflicts_with = "blocks")]
    pub(crate) keys: bool,

    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Args)]
#[command(after_help = "\
A file is read in stretches from all over it; a pipe, a compressed file and a JSON array from the \
beginning. Each choice is tried on the sample by the engine itself, in a folder that is removed at \
the end. docs/advise.md says how figures are scaled and what the bounds mean.

Examples:
  shale advise events.jsonl --key user,time
  shale advise people.csv --key id --html advice.html
  shale advise old.db --tree people --codecs lz4,zstd:3,zstd:19 --block-bytes 8K,16K,32K
  shale advise people.csv --key id --check")]
pub(crate) struct AdviseOptions {
    /// A file of rows, - for the standard input, a folder of files of one kind, a database's, or
    /// RocksDB's (--tree names a column family)
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "mariadb")]
    pub(crate) source: Option<PathBuf>,

    /// Instead of a file: the socket of a MariaDB that runs, whose program `mariadb` is asked
    #[arg(
        long, value_name = "SOCKET", value_hint = ValueHint::FilePath, requires = "table",
        conflicts_with_all = ["source", "format", "key", "value", "delimiter", "check"]
    )]
    pub(crate) mariadb: Option<PathBuf>,

    /// With --mariadb: the table
    #[arg(long, value_name = "DATABASE.TABLE", requires = "mariadb")]
    pub(crate) table: Option<String>,

    /// With --mariadb: who logs in [default: as ~/.my.cnf says, or who you are]
    #[arg(long, value_name = "NAME", requires = "mariadb")]
    pub(crate) user: Option<String>,

    #[command(flatten)]
    pub(crate) name: TreeName,

    #[command(flatten)]
    pub(crate) rows: RowFlags,

    /// How much is read
    #[arg(long, default_value = "16M", value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) sample: u64,

    /// The codecs to try [default: none, lz4, zstd:1, zstd:3, zstd:9]
    #[arg(long, value_delimiter = ',', value_name = "CODEC,...")]
    pub(crate) codecs: Vec<String>,

    /// The block sizes to try [default: 4K, 16K, 64K]
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes, value_name = "BYTES,...")]
    pub(crate) block_bytes: Vec<u64>,

    /// The memory that the database will have; 8G and 8GB are 8 * 1024^3, as of all commands but
    /// simulate [default: a quarter of the machine's memory]
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,

    /// Also foresee the write amplification of so many bytes of updates a second, such as 40MB/s or
    /// 1.5MiB/s; as of simulate, MB are 1000^2
    #[arg(long, value_parser = crate::simulate::units::rate, value_name = "RATE")]
    pub(crate) rate: Option<u64>,

    /// Also load samples into these engines and foresee what each takes: shale, rocksdb, innodb,
    /// wiredtiger and others that `shale bench` knows
    #[arg(long, value_delimiter = ',', value_name = "ENGINE,...")]
    pub(crate) engines: Vec<String>,

    /// With --engines: how much is read for them [default: eight times --sample]
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES", requires = "engines")]
    pub(crate) engine_sample: Option<u64>,

    /// Load everything under three choices, and into each of --engines, and print predicted beside
    /// measured
    #[arg(long)]
    pub(crate) check: bool,

    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Where the databases are tried [default: /var/tmp]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DemoOptions {
    /// A file or folder to load instead of this machine's package and documentation files: each
    /// line of a file, or each file of a folder, is a record
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) source: Option<PathBuf>,

    /// The most bytes to load
    #[arg(long, default_value = "150M", value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) limit: u64,

    /// The folder of the databases [default: a new one under /var/tmp, removed at the end]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,

    /// Keep the database with the default codecs, to read it with the other commands
    #[arg(long)]
    pub(crate) keep: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Shale::command().debug_assert();
    }
}
