//! What is in a table file, for people: its properties, its sections, and every block with what
//! compression made of it. Damage of a block is part of the answer; without footer and index there
//! is no answer.

use crate::base::error::{Error, Result};
use crate::fs::{Env, ReadFile};
use crate::table::format::compress::Dictionary;
use crate::table::format::index::Index;
use crate::table::format::{self, Block, Footer, Handle, properties};
use crate::table::meta::{FileId, TableMeta};
use crate::table::read::{read_dictionary, read_footer, read_section};
use serde::Serialize;
use std::path::Path;

/// A key as text: bytes that are not printable ASCII are escaped.
///
/// ```
/// assert_eq!(shaledb::inspect::key_text(b"user\x00\xff"), r"user\x00\xff");
/// ```
pub fn key_text(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

/// The name of the codec with this number in a frame.
pub fn codec_name(codec: u8) -> &'static str {
    match codec {
        0 => "none",
        1 => "lz4",
        2 => "zlib",
        3 => "zstd",
        4 => "zstd+dictionary",
        _ => "unknown",
    }
}

/// A table file, described.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// # let found = shaledb::inspect::directory_in(&env, dir)?;
/// # let name = &found.files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = dir.join(name);
/// use shaledb::inspect::{Inspection, open_in};
///
/// let Inspection::Table(table) = open_in(&env, &path)? else { panic!() };
/// assert_eq!((table.meta.entries, table.blocks.len()), (1, 1));
/// assert!(table.damage.is_empty());
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct TableInspection {
    /// The version of its format.
    pub version: u32,
    /// The number of the tree that it was written for; 0: for none.
    pub tree: u32,
    /// What it says of itself. (`ingest_seq` is known to the manifest only.)
    pub meta: TableMeta,
    /// Bytes of the compression dictionary in the file; 0 if there is none.
    pub dictionary_bytes: u64,
    /// Bytes of the filter; 0 if there is none.
    pub filter_bytes: u64,
    /// Filter bits per entry.
    pub filter_bits_per_entry: f64,
    /// Bytes of the index in the file.
    pub index_bytes: u64,
    /// Bytes of the range deletes in the file.
    pub range_delete_bytes: u64,
    /// Bytes of the properties in the file.
    pub properties_bytes: u64,
    /// The range deletes, by key.
    pub range_deletes: Vec<RangeDeleteInspection>,
    /// The data blocks added up by codec, most bytes first.
    pub codecs: Vec<CodecTotal>,
    /// The data blocks, in order.
    pub blocks: Vec<BlockInspection>,
    /// What is wrong with the file; empty if nothing is.
    pub damage: Vec<String>,
}

/// Range deletes that cover the same keys.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # let snapshot = db.snapshot(); // so that the flush keeps both
/// # db.tree("t")?.delete_range(b"a", b"c")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// # let found = shaledb::inspect::directory_in(&env, dir)?;
/// # let name = &found.files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = dir.join(name);
/// use shaledb::inspect::{Inspection, open_in};
///
/// let Inspection::Table(table) = open_in(&env, &path)? else { panic!() };
/// let range = &table.range_deletes[0];
/// assert_eq!((range.start.as_str(), range.end.as_str(), range.seqs.len()), ("a", "c", 1));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct RangeDeleteInspection {
    /// The first key covered, as text.
    pub start: String,
    /// The first key not covered, as text.
    pub end: String,
    /// The sequence numbers, newest first.
    pub seqs: Vec<u64>,
}

/// What one codec made of the blocks that it was used for.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// # let found = shaledb::inspect::directory_in(&env, dir)?;
/// # let name = &found.files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = dir.join(name);
/// use shaledb::inspect::{Inspection, open_in};
///
/// let Inspection::Table(table) = open_in(&env, &path)? else { panic!() };
/// for total in &table.codecs {
///     println!("{}: {} blocks, {:.2} times smaller", total.codec, total.blocks, total.ratio);
/// }
/// assert_eq!(table.codecs[0].codec, "none");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct CodecTotal {
    /// The codec's name.
    pub codec: &'static str,
    /// How many blocks.
    pub blocks: u64,
    /// Their bytes before compression.
    pub raw_bytes: u64,
    /// Their bytes in the file.
    pub bytes: u64,
    /// `raw_bytes` divided by `bytes`.
    pub ratio: f64,
}

/// A data block, described.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # let dir = std::path::Path::new("/db");
/// # let found = shaledb::inspect::directory_in(&env, dir)?;
/// # let name = &found.files.iter().find(|file| file.level.is_some()).unwrap().name;
/// # let path = dir.join(name);
/// use shaledb::inspect::{Inspection, open_in};
///
/// let Inspection::Table(table) = open_in(&env, &path)? else { panic!() };
/// let block = &table.blocks[0];
/// assert_eq!((block.offset, block.entries, block.damage.as_deref()), (0, 1, None));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct BlockInspection {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length in the file, in bytes.
    pub bytes: u64,
    /// Its length before compression, in bytes; 0 if it is damaged.
    pub raw_bytes: u64,
    /// The name of its codec.
    pub codec: &'static str,
    /// How many entries it has, by the index.
    pub entries: u64,
    /// How many of them are deletes.
    pub deletes: u64,
    /// Whether its entries have sequence numbers and kinds of their own.
    pub tagged: bool,
    /// Its separator as text: no key in it is greater.
    pub separator: String,
    /// What is wrong with it, if anything.
    pub damage: Option<String>,
}

impl TableInspection {
    /// Reads the table file with the number `id` at `path`; [`open`](crate::inspect::open) takes
    /// the number from the name.
    ///
    /// # Errors
    /// [`Error::Corruption`] if its footer, index or properties cannot be read.
    ///
    /// ```
    /// # let env = shaledb::Env::memory();
    /// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
    /// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
    /// # db.tree_or_create("t")?.put(b"a", b"1")?;
    /// # db.flush()?;
    /// # let dir = std::path::Path::new("/db");
    /// # let found = shaledb::inspect::directory_in(&env, dir)?;
    /// # let name = &found.files.iter().find(|file| file.level.is_some()).unwrap().name;
    /// # let path = dir.join(name);
    /// use shaledb::inspect::TableInspection;
    ///
    /// let id = name.trim_end_matches(".table").parse().unwrap();
    /// assert_eq!(TableInspection::open(&env, &path, id)?.meta.entries, 1);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open(env: &Env, path: &Path, id: FileId) -> Result<TableInspection> {
        let file = &*env.fs.open(path)?;
        let file_bytes = file.len()?;
        let footer = read_footer(file, file_bytes)?;
        let (tree, meta) = read_properties(file, &footer)?;
        let index = read_index(file, &footer)?;
        let filter_bytes = u64::from(footer.filter.bytes);
        let mut found = TableInspection {
            version: footer.version(),
            tree,
            dictionary_bytes: footer.dictionary.bytes.into(),
            filter_bytes,
            filter_bits_per_entry: ratio(8 * filter_bytes, meta.entries),
            meta: TableMeta { id, file_bytes, ..meta },
            index_bytes: footer.index.bytes.into(),
            range_delete_bytes: footer.range_deletes.bytes.into(),
            properties_bytes: footer.properties.bytes.into(),
            range_deletes: Vec::new(),
            codecs: Vec::new(),
            blocks: Vec::with_capacity(index.blocks()),
            damage: Vec::new(),
        };
        found.read_ranges(file, &footer)?;
        if let Err(what) = or_damage(read_section(file, footer.filter))? {
            found.damage.push(format!("the filter: {what}"));
        }
        let dictionary = match or_damage(read_dictionary(file, &footer))? {
            Ok(dictionary) => dictionary,
            Err(what) => {
                found.damage.push(format!("the dictionary: {what}"));
                None
            }
        };
        for at in 0..index.blocks() {
            found.read_block(file, &index, at, dictionary.as_deref())?;
        }
        for total in &mut found.codecs {
            total.ratio = ratio(total.raw_bytes, total.bytes);
        }
        found.codecs.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.codec.cmp(b.codec)));
        Ok(found)
    }

    fn read_ranges(&mut self, file: &dyn ReadFile, footer: &Footer) -> Result<()> {
        if footer.range_deletes.bytes == 0 {
            return Ok(());
        }
        let bytes = match or_damage(read_section(file, footer.range_deletes))? {
            Ok(bytes) => bytes,
            Err(what) => {
                self.damage.push(what);
                return Ok(());
            }
        };
        match properties::decode_ranges(&bytes) {
            None => self.damage.push("the range deletes are malformed".to_owned()),
            Some(ranges) => {
                let shown = ranges.fragments().iter().map(|fragment| RangeDeleteInspection {
                    start: key_text(&fragment.start),
                    end: key_text(&fragment.end),
                    seqs: fragment.seqs.clone(),
                });
                self.range_deletes = shown.collect();
            }
        }
        Ok(())
    }

    fn read_block(
        &mut self,
        file: &dyn ReadFile,
        index: &Index,
        at: usize,
        dictionary: Option<&Dictionary>,
    ) -> Result<()> {
        let info = index.info(at);
        let mut frame = vec![0; info.handle.bytes as usize];
        let read = or_damage(file.read_at(info.handle.offset, &mut frame))?;
        let opened = read.and_then(|()| {
            let frame = format::open_frame(&frame)?;
            let mut image = Vec::new();
            frame.unpack(dictionary, &mut image)?;
            let raw_bytes = image.len() as u64;
            let block = Block::parse(image)?;
            if block.entries() != info.entries as usize {
                return Err("it has not as many entries as the index says".to_owned());
            }
            Ok((codec_name(frame.codec), raw_bytes, block.count_deletes()))
        });
        let (codec, raw_bytes, deletes, damage) = match opened {
            Ok((codec, raw_bytes, deletes)) => (codec, raw_bytes, deletes, None),
            Err(what) => ("unknown", 0, 0, Some(what)),
        };
        let bytes = u64::from(info.handle.bytes);
        if let Some(what) = &damage {
            self.damage.push(format!("the block at {}: {what}", info.handle.offset));
        } else {
            self.add_to_codec(codec, raw_bytes, bytes);
        }
        self.blocks.push(BlockInspection {
            offset: info.handle.offset,
            bytes,
            raw_bytes,
            codec,
            entries: info.entries.into(),
            deletes,
            tagged: info.tagged,
            separator: key_text(&index.separator(at)),
            damage,
        });
        Ok(())
    }

    fn add_to_codec(&mut self, codec: &'static str, raw_bytes: u64, bytes: u64) {
        let at = self.codecs.iter().position(|total| total.codec == codec).unwrap_or_else(|| {
            self.codecs.push(CodecTotal { codec, blocks: 0, raw_bytes: 0, bytes: 0, ratio: 0.0 });
            self.codecs.len() - 1
        });
        let total = &mut self.codecs[at];
        total.blocks += 1;
        total.raw_bytes += raw_bytes;
        total.bytes += bytes;
    }
}

fn ratio(of: u64, to: u64) -> f64 {
    if to == 0 { 0.0 } else { of as f64 / to as f64 }
}

/// Damage, or bytes that the device does not give, as a text to go on with; any other error ends
/// the work.
pub(super) fn or_damage<T>(read: Result<T>) -> Result<std::result::Result<T, String>> {
    match read {
        Ok(found) => Ok(Ok(found)),
        Err(Error::Corruption { what, offset, .. }) => Ok(Err(format!("at byte {offset}: {what}"))),
        Err(error @ Error::Io { .. }) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// The tree's number and the properties of the table in `file`.
pub(super) fn read_properties(file: &dyn ReadFile, footer: &Footer) -> Result<(u32, TableMeta)> {
    let bytes = read_section(file, footer.properties)?;
    properties::decode(&bytes)
        .ok_or_else(|| corrupt(file, footer.properties, "the properties are malformed"))
}

/// The index of the table in `file`.
pub(super) fn read_index(file: &dyn ReadFile, footer: &Footer) -> Result<Index> {
    let image = read_section(file, footer.index)?;
    Index::parse(image, footer.data()).map_err(|what| corrupt(file, footer.index, what))
}

fn corrupt(file: &dyn ReadFile, section: Handle, what: &str) -> Error {
    Error::corruption(file.path(), section.offset, what)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
