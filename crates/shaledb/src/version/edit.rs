//! A change of the database's catalog, and its encoding. The manifest is a log of edits.
//!
//! ```text
//! edit   := version u8 = 1 | field*
//! field  := tag u8 | length varint | content [length]
//! ```
//!
//! The content of a field is a number (varint), bytes, or fields again. A field whose content is
//! 0 or empty is left out. Tags are fixed for ever. A reader that does not know a tag passes over
//! the field if the tag is 128 or more, and refuses the edit if it is less. The tags are the
//! constants of the modules [`tag`]; docs/format.md lists them.

use super::prepared::PreparedTables;
use super::tree_id::TreeId;
use crate::base::coding::{Decoder, put_bytes, put_varint};
use crate::base::config::{Codec, Codecs, LEVELS, TreeConfig};
use crate::base::key::{KEY_BYTES_MAX, SEQ_MAX, SeqNo};
use crate::table::meta::{FileId, TableMeta, Why};
use serde::Serialize;

/// What is wrong with bytes that should be an edit.
pub type Damage = String;

/// The version of the encoding.
const VERSION: u8 = 1;

/// The longest name of a tree, in bytes.
pub const TREE_NAME_BYTES_MAX: usize = 1024;

/// Where the log starts: what is in older WALs is in tables.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.starts_with("MANIFEST")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// # use shaledb::inspect::{Inspection, ManifestLine, open_in};
/// #
/// # let Inspection::Manifest(lines) = open_in(&env, &path)? else { panic!() };
/// # let edits: Vec<_> = lines
/// #     .filter_map(|line| match line {
/// #         Ok(ManifestLine::Edit { edit, .. }) => Some(edit),
/// #         _ => None,
/// #     })
/// #     .collect();
/// let log = edits.iter().rev().find_map(|edit| edit.log).unwrap();
/// println!("recovery starts with {:06}.wal, after {}", log.file, log.seq);
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogStart {
    /// The oldest WAL that is needed; those with smaller numbers are obsolete.
    pub file: FileId,
    /// Every operation up to this number is in tables; that WAL starts with the next one or before.
    pub seq: SeqNo,
}

/// A change of the catalog: applied as a whole or not at all, in the order of the fields.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.starts_with("MANIFEST")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// use shaledb::inspect::{Inspection, ManifestLine, open_in};
///
/// let Inspection::Manifest(lines) = open_in(&env, &path)? else { panic!() };
/// let edits: Vec<_> = lines
///     .filter_map(|line| match line {
///         Ok(ManifestLine::Edit { edit, .. }) => Some(edit),
///         _ => None,
///     })
///     .collect();
/// let (_, name, config) = edits.iter().flat_map(|edit| &edit.trees_created).next().unwrap();
/// assert_eq!((name.as_str(), config.block_bytes), ("t", 0));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Edit {
    /// Trees that are no more, with all their tables.
    pub trees_dropped: Vec<TreeId>,
    /// New trees.
    pub trees_created: Vec<(TreeId, String, TreeConfig)>,
    /// Changes of trees, at most one for each.
    pub trees: Vec<TreeEdit>,
    /// Every file number from here on is unused.
    pub next_file: Option<FileId>,
    /// Every tree number from here on is unused.
    pub next_tree: Option<TreeId>,
    /// Every operation up to this number is durable, in tables or in the log.
    pub last_seq: Option<SeqNo>,
    /// Where the log starts from now on.
    pub log: Option<LogStart>,
    /// A log file, and its length up to which the log is complete and durable.
    pub log_end: Option<(FileId, u64)>,
    /// Transactions that are prepared no more, by name: decided before the trees change.
    pub decided: Vec<Vec<u8>>,
    /// Transactions that are prepared from now on, with their writes in tables.
    pub prepared: Vec<PreparedTables>,
    /// Trees whose content is being built from now on: the next open drops them.
    pub builds_begun: Vec<TreeId>,
    /// Trees whose content is complete from now on.
    pub builds_ended: Vec<TreeId>,
}

/// A change of one tree.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.starts_with("MANIFEST")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// # use shaledb::inspect::{Inspection, ManifestLine, open_in};
/// #
/// # let Inspection::Manifest(lines) = open_in(&env, &path)? else { panic!() };
/// # let edits: Vec<_> = lines
/// #     .filter_map(|line| match line {
/// #         Ok(ManifestLine::Edit { edit, .. }) => Some(edit),
/// #         _ => None,
/// #     })
/// #     .collect();
/// let flush = edits.iter().flat_map(|edit| &edit.trees).next().unwrap();
/// let (level, table) = &flush.added[0];
/// assert_eq!((*level, table.entries), (0, 1));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TreeEdit {
    /// The tree.
    pub tree: TreeId,
    /// Tables that leave, with the level they leave. Applied before `added`, so that a table can
    /// move from level to level.
    pub removed: Vec<(usize, FileId)>,
    /// Tables that arrive, with their level.
    pub added: Vec<(usize, TableMeta)>,
    /// Every operation of this tree up to this number is in its tables.
    pub flushed_seq: Option<SeqNo>,
}

/// The tags of fields, by what they are fields of. Part of the persistent format: never renumber.
mod tag {
    pub mod edit {
        pub const TREE_DROPPED: u8 = 1;
        pub const TREE_CREATED: u8 = 2;
        pub const TREE: u8 = 3;
        pub const NEXT_FILE: u8 = 4;
        pub const NEXT_TREE: u8 = 5;
        pub const LAST_SEQ: u8 = 6;
        pub const LOG_FILE: u8 = 7;
        pub const LOG_SEQ: u8 = 8;
        pub const DECIDED: u8 = 9;
        pub const PREPARED: u8 = 10;
        pub const BUILD_BEGUN: u8 = 11;
        pub const BUILD_ENDED: u8 = 12;
        // A check, which a reader can do without.
        pub const LOG_END_FILE: u8 = 128;
        pub const LOG_END_BYTES: u8 = 129;
    }
    pub mod prepared {
        pub const XID: u8 = 1;
        pub const TREE: u8 = 2;
    }
    pub mod created {
        pub const ID: u8 = 1;
        pub const NAME: u8 = 2;
        pub const CONFIG: u8 = 3;
    }
    pub mod config {
        pub const CODEC_UPPER: u8 = 1;
        pub const CODEC_MIDDLE: u8 = 2;
        pub const CODEC_BOTTOMMOST: u8 = 3;
        pub const BLOCK_BYTES: u8 = 4;
        pub const FILTER_BITS: u8 = 5;
        pub const BLOB_BYTES: u8 = 6;
        pub const DICTIONARY: u8 = 7;
    }
    pub mod tree {
        pub const ID: u8 = 1;
        pub const REMOVED: u8 = 2;
        pub const ADDED: u8 = 3;
        pub const FLUSHED_SEQ: u8 = 4;
    }
    pub mod table {
        pub const LEVEL: u8 = 1;
        pub const ID: u8 = 2;
        pub const FILE_BYTES: u8 = 3;
        pub const SMALLEST: u8 = 4;
        pub const LARGEST: u8 = 5;
        pub const LARGEST_EXCLUSIVE: u8 = 6;
        pub const MIN_SEQ: u8 = 7;
        pub const MAX_SEQ: u8 = 8;
        pub const INGEST_SEQ: u8 = 9;
        pub const BLOB: u8 = 10;
        pub const RANGE_DELETES: u8 = 11;
        /// Range deletes of an ingested table: a reader must know that they count as its entries.
        pub const INGEST_RANGES: u8 = 12;
        // Counts, which a reader can do without.
        pub const ENTRIES: u8 = 128;
        pub const DELETES: u8 = 129;
        pub const KEY_BYTES: u8 = 130;
        pub const VALUE_BYTES: u8 = 131;
        pub const BLOCKS: u8 = 132;
        pub const RAW_BYTES: u8 = 133;
        pub const DATA_BYTES: u8 = 134;
        pub const CODEC: u8 = 135;
        pub const WHY: u8 = 136;
    }
    /// From here on a reader may pass over a field that it does not know.
    pub const OPTIONAL: u8 = 128;
}

/// Appends an edit.
pub fn encode(edit: &Edit, out: &mut Vec<u8>) {
    use tag::edit as t;
    out.push(VERSION);
    for &tree in &edit.trees_dropped {
        number(out, t::TREE_DROPPED, tree.into());
    }
    for (id, name, config) in &edit.trees_created {
        nested(out, t::TREE_CREATED, |out| {
            number(out, tag::created::ID, (*id).into());
            bytes(out, tag::created::NAME, name.as_bytes());
            nested(out, tag::created::CONFIG, |out| encode_config(config, out));
        });
    }
    for tree in &edit.trees {
        nested(out, t::TREE, |out| encode_tree(tree, out));
    }
    optional(out, t::NEXT_FILE, edit.next_file);
    optional(out, t::NEXT_TREE, edit.next_tree.map(u64::from));
    optional(out, t::LAST_SEQ, edit.last_seq);
    optional(out, t::LOG_FILE, edit.log.map(|log| log.file));
    optional(out, t::LOG_SEQ, edit.log.map(|log| log.seq));
    optional(out, t::LOG_END_FILE, edit.log_end.map(|(file, _)| file));
    optional(out, t::LOG_END_BYTES, edit.log_end.map(|(_, bytes)| bytes));
    let builds = [(t::BUILD_BEGUN, &edit.builds_begun), (t::BUILD_ENDED, &edit.builds_ended)];
    for (tag, trees) in builds {
        trees.iter().for_each(|&tree| number(out, tag, tree.into()));
    }
    for xid in &edit.decided {
        bytes(out, t::DECIDED, xid);
    }
    for prepared in &edit.prepared {
        nested(out, t::PREPARED, |out| {
            bytes(out, tag::prepared::XID, &prepared.xid);
            for (tree, tables) in &prepared.trees {
                let added = tables.iter().map(|meta| (0, meta.clone())).collect();
                let tree = TreeEdit { tree: *tree, added, ..TreeEdit::default() };
                nested(out, tag::prepared::TREE, |out| encode_tree(&tree, out));
            }
        });
    }
}

fn encode_tree(edit: &TreeEdit, out: &mut Vec<u8>) {
    use tag::tree as t;
    number(out, t::ID, edit.tree.into());
    for &(level, file) in &edit.removed {
        nested(out, t::REMOVED, |out| {
            number(out, tag::table::LEVEL, level as u64);
            number(out, tag::table::ID, file);
        });
    }
    for (level, meta) in &edit.added {
        nested(out, t::ADDED, |out| {
            number(out, tag::table::LEVEL, *level as u64);
            encode_table(meta, out);
        });
    }
    optional(out, t::FLUSHED_SEQ, edit.flushed_seq);
}

fn encode_config(config: &TreeConfig, out: &mut Vec<u8>) {
    use tag::config as t;
    bytes(out, t::CODEC_UPPER, &config.codecs.upper.encode());
    bytes(out, t::CODEC_MIDDLE, &config.codecs.middle.encode());
    bytes(out, t::CODEC_BOTTOMMOST, &config.codecs.bottommost.encode());
    optional(out, t::BLOCK_BYTES, Some(config.block_bytes.into()));
    optional(out, t::FILTER_BITS, Some(config.filter_bits.into()));
    optional(out, t::BLOB_BYTES, Some(config.blob_bytes.into()));
    number(out, t::DICTIONARY, config.dictionary.into());
}

/// Appends the description of a table, as the fields of an edit.
pub fn encode_table(meta: &TableMeta, out: &mut Vec<u8>) {
    use tag::table as t;
    number(out, t::ID, meta.id);
    number(out, t::FILE_BYTES, meta.file_bytes);
    bytes(out, t::SMALLEST, &meta.smallest);
    bytes(out, t::LARGEST, &meta.largest);
    number(out, t::LARGEST_EXCLUSIVE, meta.largest_exclusive.into());
    number(out, t::MIN_SEQ, meta.min_seq);
    number(out, t::MAX_SEQ, meta.max_seq);
    number(out, t::INGEST_SEQ, meta.ingest_seq);
    for &blob in &meta.blobs {
        number(out, t::BLOB, blob);
    }
    number(out, t::ENTRIES, meta.entries);
    number(out, t::DELETES, meta.deletes);
    let ingested = meta.ingest_seq != 0;
    let tag = if ingested { t::INGEST_RANGES } else { t::RANGE_DELETES };
    number(out, tag, meta.range_deletes);
    number(out, t::KEY_BYTES, meta.key_bytes);
    number(out, t::VALUE_BYTES, meta.value_bytes);
    number(out, t::BLOCKS, meta.blocks);
    number(out, t::RAW_BYTES, meta.raw_bytes);
    number(out, t::DATA_BYTES, meta.data_bytes);
    if let Some(codec) = meta.codec {
        bytes(out, t::CODEC, &codec.encode());
    }
    number(out, t::WHY, meta.why.number().into());
}

/// Appends a number that is not 0.
fn number(out: &mut Vec<u8>, tag: u8, value: u64) {
    optional(out, tag, (value != 0).then_some(value));
}

/// Appends a number that is there, even if it is 0.
fn optional(out: &mut Vec<u8>, tag: u8, value: Option<u64>) {
    if let Some(value) = value {
        let start = out.len();
        out.extend_from_slice(&[tag, 0]);
        put_varint(out, value);
        out[start + 1] = (out.len() - start - 2) as u8;
    }
}

/// Appends bytes that are not empty.
fn bytes(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    if !content.is_empty() {
        out.push(tag);
        put_bytes(out, content);
    }
}

/// Appends a field made of fields.
fn nested(out: &mut Vec<u8>, tag: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    content(&mut inner);
    out.push(tag);
    put_bytes(out, &inner);
}

/// The content of one field.
#[derive(Clone, Copy)]
struct Field<'a> {
    tag: u8,
    content: &'a [u8],
}

impl Field<'_> {
    fn number(self) -> Result<u64, Damage> {
        let mut decoder = Decoder::new(self.content);
        match decoder.varint() {
            Some(value) if decoder.is_empty() => Ok(value),
            _ => Err(format!("field {} is not a number", self.tag)),
        }
    }

    fn tree(self) -> Result<TreeId, Damage> {
        self.number()?.try_into().map_err(|_| "a tree's number is too large".to_owned())
    }

    fn seq(self) -> Result<SeqNo, Damage> {
        let seq = self.number()?;
        if seq > SEQ_MAX {
            return Err(format!("sequence number {seq} is too large"));
        }
        Ok(seq)
    }

    fn codec(&self) -> Result<Codec, Damage> {
        Codec::decode(self.content).ok_or_else(|| format!("{:?} is no codec", self.content))
    }

    fn level(self) -> Result<usize, Damage> {
        let level = self.number()?;
        if level >= LEVELS as u64 {
            return Err(format!("there is no level {level}"));
        }
        Ok(level as usize)
    }

    fn key(self) -> Result<Vec<u8>, Damage> {
        if self.content.len() > KEY_BYTES_MAX {
            return Err(format!("a key of {} bytes is too long", self.content.len()));
        }
        Ok(self.content.to_vec())
    }

    /// What to do with a field of `what` whose tag is not known.
    fn unknown(self, what: &str) -> Result<(), Damage> {
        if self.tag >= tag::OPTIONAL {
            return Ok(());
        }
        Err(format!("field {} of {what} is unknown to this version of the program", self.tag))
    }
}

/// Calls `each` for every field.
fn fields<'a>(
    content: &'a [u8],
    mut each: impl FnMut(Field<'a>) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let mut decoder = Decoder::new(content);
    while !decoder.is_empty() {
        let field = decoder.u8().zip(decoder.bytes());
        let (tag, content) = field.ok_or("the edit ends inside a field")?;
        each(Field { tag, content })?;
    }
    Ok(())
}

/// Decodes an edit.
pub fn decode(content: &[u8]) -> Result<Edit, Damage> {
    use tag::edit as t;
    let (&version, content) = content.split_first().ok_or("the edit is empty")?;
    if version != VERSION {
        return Err(format!(
            "the edit's version is {version}; this program knows version {VERSION}"
        ));
    }
    let mut edit = Edit::default();
    let (mut log_file, mut log_seq, mut end_file, mut end_bytes) = (None, None, None, None);
    fields(content, |field| {
        match field.tag {
            t::TREE_DROPPED => edit.trees_dropped.push(field.tree()?),
            t::TREE_CREATED => edit.trees_created.push(decode_created(field.content)?),
            t::TREE => edit.trees.push(decode_tree(field.content)?),
            t::NEXT_FILE => edit.next_file = Some(field.number()?),
            t::NEXT_TREE => edit.next_tree = Some(field.tree()?),
            t::LAST_SEQ => edit.last_seq = Some(field.seq()?),
            t::LOG_FILE => log_file = Some(field.number()?),
            t::LOG_SEQ => log_seq = Some(field.seq()?),
            t::DECIDED => edit.decided.push(field.content.to_vec()),
            t::PREPARED => edit.prepared.push(decode_prepared(field.content)?),
            t::BUILD_BEGUN => edit.builds_begun.push(field.tree()?),
            t::BUILD_ENDED => edit.builds_ended.push(field.tree()?),
            t::LOG_END_FILE => end_file = Some(field.number()?),
            t::LOG_END_BYTES => end_bytes = Some(field.number()?),
            _ => field.unknown("an edit")?,
        }
        Ok(())
    })?;
    edit.log = match (log_file, log_seq) {
        (Some(file), Some(seq)) => Some(LogStart { file, seq }),
        (None, None) => None,
        _ => return Err("the start of the log is named by half".to_owned()),
    };
    edit.log_end = end_file.zip(end_bytes);
    Ok(edit)
}

fn decode_prepared(content: &[u8]) -> Result<PreparedTables, Damage> {
    use tag::prepared as t;
    let mut prepared = PreparedTables::default();
    fields(content, |field| {
        match field.tag {
            t::XID => prepared.xid = field.content.to_vec(),
            t::TREE => {
                let tree = decode_tree(field.content)?;
                let tables = tree.added.into_iter().map(|(_, meta)| meta).collect();
                prepared.trees.push((tree.tree, tables));
            }
            _ => field.unknown("a prepared transaction")?,
        }
        Ok(())
    })?;
    Ok(prepared)
}

fn decode_created(content: &[u8]) -> Result<(TreeId, String, TreeConfig), Damage> {
    use tag::created as t;
    let mut id = 0;
    let mut name = String::new();
    let mut config = TreeConfig::default();
    fields(content, |field| {
        match field.tag {
            t::ID => id = field.tree()?,
            t::NAME => {
                name = std::str::from_utf8(field.content)
                    .map_err(|_| "a tree's name is not UTF-8")?
                    .to_owned();
            }
            t::CONFIG => config = decode_config(field.content)?,
            _ => field.unknown("a created tree")?,
        }
        Ok(())
    })?;
    Ok((id, name, config))
}

fn decode_config(content: &[u8]) -> Result<TreeConfig, Damage> {
    use tag::config as t;
    // What is no is left out.
    let none = Codecs::all(Codec::None);
    let mut config = TreeConfig { codecs: none, dictionary: false, ..TreeConfig::default() };
    let narrow = |_| "a setting of a tree is too large".to_owned();
    fields(content, |field| {
        match field.tag {
            t::CODEC_UPPER => config.codecs.upper = field.codec()?,
            t::CODEC_MIDDLE => config.codecs.middle = field.codec()?,
            t::CODEC_BOTTOMMOST => config.codecs.bottommost = field.codec()?,
            t::BLOCK_BYTES => config.block_bytes = field.number()?.try_into().map_err(narrow)?,
            t::FILTER_BITS => config.filter_bits = field.number()?.try_into().map_err(narrow)?,
            t::BLOB_BYTES => config.blob_bytes = field.number()?.try_into().map_err(narrow)?,
            t::DICTIONARY => config.dictionary = field.number()? != 0,
            _ => field.unknown("a tree's settings")?,
        }
        Ok(())
    })?;
    config.validate().map_err(|error| error.to_string())?;
    Ok(config)
}

fn decode_tree(content: &[u8]) -> Result<TreeEdit, Damage> {
    use tag::tree as t;
    let mut edit = TreeEdit::default();
    fields(content, |field| {
        match field.tag {
            t::ID => edit.tree = field.tree()?,
            t::REMOVED => {
                let (level, meta) = decode_table(field.content)?;
                edit.removed.push((level, meta.id));
            }
            t::ADDED => edit.added.push(decode_table(field.content)?),
            t::FLUSHED_SEQ => edit.flushed_seq = Some(field.seq()?),
            _ => field.unknown("a tree's change")?,
        }
        Ok(())
    })?;
    Ok(edit)
}

/// Decodes the description of a table and its level (0 if it names none).
pub fn decode_table(content: &[u8]) -> Result<(usize, TableMeta), Damage> {
    use tag::table as t;
    let mut meta = TableMeta::default();
    let mut level = 0;
    fields(content, |field| {
        match field.tag {
            t::LEVEL => level = field.level()?,
            t::ID => meta.id = field.number()?,
            t::FILE_BYTES => meta.file_bytes = field.number()?,
            t::SMALLEST => meta.smallest = field.key()?,
            t::LARGEST => meta.largest = field.key()?,
            t::LARGEST_EXCLUSIVE => meta.largest_exclusive = field.number()? != 0,
            t::MIN_SEQ => meta.min_seq = field.seq()?,
            t::MAX_SEQ => meta.max_seq = field.seq()?,
            t::INGEST_SEQ => meta.ingest_seq = field.seq()?,
            t::BLOB => meta.blobs.push(field.number()?),
            t::ENTRIES => meta.entries = field.number()?,
            t::DELETES => meta.deletes = field.number()?,
            t::RANGE_DELETES | t::INGEST_RANGES => meta.range_deletes = field.number()?,
            t::KEY_BYTES => meta.key_bytes = field.number()?,
            t::VALUE_BYTES => meta.value_bytes = field.number()?,
            t::BLOCKS => meta.blocks = field.number()?,
            t::RAW_BYTES => meta.raw_bytes = field.number()?,
            t::DATA_BYTES => meta.data_bytes = field.number()?,
            t::CODEC => meta.codec = Some(field.codec()?),
            // A reason that a later release has is none here.
            t::WHY => meta.why = Why::of_number(field.number()?),
            _ => field.unknown("a table")?,
        }
        Ok(())
    })?;
    Ok((level, meta))
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
