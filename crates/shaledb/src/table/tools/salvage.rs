//! Reads what is left of a damaged table file.
//!
//! With a sound index, each data block is tried by itself, and the separators tell which keys a
//! damaged one held. With the index or the footer damaged, or the end of the file cut off, the
//! frames themselves are found by their checksums: a frame's end is recognized once its start is
//! known, and frames follow each other without gaps; after a damaged one the next is searched for.
//! What that may cost is bounded; see [`super::locate`].

use super::inspect::{or_damage, read_index, read_properties};
use super::locate::{Found, Locator};
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SEQ_MAX, SeqNo, compare};
use crate::base::ranges::RangeDeletes;
use crate::fs::{Env, ReadFile};
use crate::table::format::compress::Dictionary;
use crate::table::format::{Block, Frame, Handle, open_frame, properties};
use crate::table::meta::{FileId, TableMeta};
use crate::table::read::{read_dictionary, read_footer, read_section};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

/// A part of a table file that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostPart {
    /// Its first byte.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// What is wrong with it.
    pub what: String,
    /// If it held entries: no key lost is before this one; `None`: it may be any from the start.
    pub after: Option<Vec<u8>>,
    /// If it held entries: no key lost is after this one; `None`: it may be any up to the end.
    pub through: Option<Vec<u8>>,
    /// How many entries it held: 0 for parts that hold none, `None` if that is not known.
    pub entries: Option<u64>,
}

/// A block that has been found sound.
#[derive(Debug)]
struct SoundBlock {
    handle: Handle,
    last_key: Vec<u8>,
}

/// The dictionary of the table file at `path`, if it has one that is sound.
pub fn dictionary_of(env: &Env, path: &Path) -> Option<Arc<Dictionary>> {
    let file = env.fs.open(path).ok()?;
    let footer = read_footer(&*file, file.len().ok()?).ok()?;
    read_dictionary(&*file, &footer).ok()?
}

/// What could be read of a table file.
pub struct SalvagedTable {
    id: FileId,
    file: Arc<dyn ReadFile>,
    /// The number of the tree that the file names, if its properties can be read.
    pub tree: Option<u32>,
    /// The properties, if they can be read.
    pub meta: Option<TableMeta>,
    /// Its range deletes.
    pub ranges: RangeDeletes,
    /// The parts that are lost.
    pub lost: Vec<LostPart>,
    /// How many entries can be read.
    pub entries: u64,
    dictionary: Option<Arc<Dictionary>>,
    /// Whether its dictionary is damaged.
    pub lacks_dictionary: bool,
    /// Dictionaries of other tables, one of which may be the same.
    others: Arc<[Arc<Dictionary>]>,
    blocks: Vec<SoundBlock>,
    max_seq: SeqNo,
    ingest_seq: SeqNo,
}

impl std::fmt::Debug for SalvagedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SalvagedTable").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SalvagedTable {
    /// Reads and checks all of the table file at `path`. Damage is noted and passed over;
    /// `ingest_seq` is what the manifest says, or 0.
    pub fn open(env: &Env, path: &Path, id: FileId, ingest_seq: SeqNo) -> Result<SalvagedTable> {
        SalvagedTable::open_with(env, path, (id, ingest_seq), &Arc::default())
    }

    /// As [`SalvagedTable::open`]; for the table's own dictionary, if it is damaged, others may do:
    /// all tables of a tree mostly have the same.
    pub fn open_with(
        env: &Env,
        path: &Path,
        (id, ingest_seq): (FileId, SeqNo),
        others: &Arc<[Arc<Dictionary>]>,
    ) -> Result<SalvagedTable> {
        let file = env.fs.open(path)?;
        let mut table = SalvagedTable {
            id,
            file: Arc::clone(&file),
            tree: None,
            meta: None,
            ranges: RangeDeletes::default(),
            lost: Vec::new(),
            entries: 0,
            dictionary: None,
            lacks_dictionary: false,
            others: Arc::clone(others),
            blocks: Vec::new(),
            max_seq: ingest_seq,
            ingest_seq,
        };
        let file_bytes = file.len()?;
        match or_damage(table.open_by_footer(file_bytes))? {
            Ok(()) => {}
            Err(what) => {
                let locator = or_damage(Locator::new(&*file))?;
                let found = locator.map(Locator::locate).unwrap_or_default();
                table.take_located(found, file_bytes, what)?;
            }
        }
        Ok(table)
    }

    /// Reads by way of footer and index. An error leaves the table as it was.
    fn open_by_footer(&mut self, file_bytes: u64) -> Result<()> {
        let file = Arc::clone(&self.file);
        let footer = read_footer(&*file, file_bytes)?;
        let index = read_index(&*file, &footer)?;
        match or_damage(read_properties(&*file, &footer))? {
            Ok(found) => self.take_properties(found, file_bytes),
            Err(what) => self.lose_section(footer.properties, "properties", &what),
        }
        match or_damage(read_dictionary(&*file, &footer))? {
            Ok(dictionary) => self.dictionary = dictionary,
            Err(what) => self.lose_dictionary(footer.dictionary, &what),
        }
        if let Err(what) = or_damage(read_section(&*file, footer.filter))? {
            self.lose_section(footer.filter, "filter", &what);
        }
        match or_damage(read_section(&*file, footer.range_deletes))? {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => match properties::decode_ranges(&bytes) {
                Some(ranges) => self.take_ranges(ranges),
                None => self.lose_section(footer.range_deletes, "range deletes", "malformed"),
            },
            Err(what) => self.lose_section(footer.range_deletes, "range deletes", &what),
        }
        let mut previous = None;
        for at in 0..index.blocks() {
            let info = index.info(at);
            let separator = index.separator(at);
            if let Err(what) = self.take_block(info.handle)? {
                self.lost.push(LostPart {
                    offset: info.handle.offset,
                    bytes: info.handle.bytes.into(),
                    what,
                    after: previous,
                    through: Some(separator.clone()),
                    entries: Some(info.entries.into()),
                });
            }
            previous = Some(separator);
        }
        Ok(())
    }

    /// Takes what a search for frames has found; `what` is why there had to be one.
    fn take_located(&mut self, found: Found, file_bytes: u64, what: String) -> Result<()> {
        if let Some(found) = found.properties {
            self.take_properties(found, file_bytes);
        }
        if let Some(ranges) = found.ranges {
            self.take_ranges(ranges);
        }
        let mut end = 0;
        match found.dictionary {
            Some((handle, Ok(dictionary))) => {
                self.dictionary = Some(Arc::new(dictionary));
                end = handle.end();
            }
            Some((handle, Err(what))) => {
                self.lose_dictionary(handle, what);
                end = handle.end();
            }
            None => {}
        }
        let mut gaps = Vec::new();
        for handle in found.blocks {
            let after = self.blocks.last().map(|block| block.last_key.clone());
            let wrong = self.take_block(handle)?;
            if handle.offset > end || wrong.is_err() {
                let first = self.blocks.last().map(|block| block.handle);
                let through = match (&wrong, first) {
                    (Ok(()), Some(handle)) => Some(self.read_block(handle)?.key(0)),
                    _ => None,
                };
                let (offset, until) =
                    (end, if wrong.is_ok() { handle.offset } else { handle.end() });
                let what = wrong.err().unwrap_or_else(|| "no sound block is there".to_owned());
                let bytes = until - offset;
                gaps.push(LostPart { offset, bytes, what, after, through, entries: None });
            }
            end = handle.end();
        }
        if found.data_end > end {
            gaps.push(LostPart {
                offset: end,
                bytes: found.data_end - end,
                what: "no sound block is there".to_owned(),
                after: self.blocks.last().map(|block| block.last_key.clone()),
                through: self.meta.as_ref().map(|meta| meta.largest.clone()),
                entries: None,
            });
        }
        self.lost.extend(gaps);
        // Whether more data followed what was found can be told only by the properties.
        let stated = self.meta.as_ref().map(|meta| meta.entries);
        let missing = stated.map(|stated| stated.saturating_sub(self.entries));
        let has_gap = self.lost.iter().any(|lost| lost.entries.is_none());
        let at_end = missing.is_none_or(|count| count > 0) && !has_gap;
        self.lost.push(LostPart {
            offset: found.data_end,
            bytes: file_bytes.saturating_sub(found.data_end),
            what,
            after: self.blocks.last().filter(|_| at_end).map(|block| block.last_key.clone()),
            through: None,
            entries: if at_end { missing } else { Some(0) },
        });
        Ok(())
    }

    fn take_properties(&mut self, (tree, meta): (u32, TableMeta), file_bytes: u64) {
        self.tree = Some(tree);
        self.meta = Some(TableMeta { id: self.id, file_bytes, ..meta });
    }

    fn take_ranges(&mut self, ranges: RangeDeletes) {
        let ranges = match self.ingest_seq {
            0 => ranges,
            seq => ranges.numbered(seq),
        };
        let newest = ranges.fragments().iter().filter_map(|fragment| fragment.seqs.first()).max();
        self.max_seq = self.max_seq.max(newest.copied().unwrap_or(0));
        self.ranges = ranges;
    }

    fn lose_dictionary(&mut self, handle: Handle, what: &str) {
        self.lacks_dictionary = true;
        self.lose_section(handle, "dictionary", what);
    }

    /// The dictionary that a frame needs, as far as it is known.
    fn dictionary_for(&self, frame: &Frame<'_>) -> Option<&Dictionary> {
        let by_id = || {
            let id = frame.dictionary_id()?;
            self.others.iter().find(|other| other.id() == id)
        };
        self.dictionary.as_ref().or_else(by_id).map(|found| &**found)
    }

    fn lose_section(&mut self, handle: Handle, name: &str, what: &str) {
        self.lost.push(LostPart {
            offset: handle.offset,
            bytes: handle.bytes.into(),
            what: format!("the {name}: {what}"),
            entries: Some(0),
            ..LostPart::default()
        });
    }

    fn read_block(&self, handle: Handle) -> Result<Block> {
        let mut frame = vec![0; handle.bytes as usize];
        self.file.read_at(handle.offset, &mut frame)?;
        let mut image = Vec::new();
        open_frame(&frame)
            .and_then(|frame| frame.unpack(self.dictionary_for(&frame), &mut image))
            .and_then(|()| Block::parse(image))
            .map_err(|what| Error::corruption(self.file.path(), handle.offset, what))
    }

    /// Takes a data block if it is sound and comes after those before it.
    fn take_block(&mut self, handle: Handle) -> Result<std::result::Result<(), String>> {
        let block = match or_damage(self.read_block(handle))? {
            Ok(block) => block,
            Err(what) => return Ok(Err(what)),
        };
        let mut last: Option<(Vec<u8>, SeqNo)> = None;
        let mut max_seq = self.max_seq;
        for entry in 0..block.entries() {
            let (key, seq) = (block.key(entry), block.seq(entry));
            let ordered = match &last {
                Some((last, last_seq)) => compare(last, *last_seq, &key, seq) == Ordering::Less,
                None => self.blocks.last().is_none_or(|before| before.last_key <= key),
            };
            if !ordered {
                return Ok(Err("its entries are out of order".to_owned()));
            }
            max_seq = max_seq.max(seq);
            last = Some((key, seq));
        }
        if let Some((last_key, _)) = last {
            self.max_seq = max_seq;
            self.entries += block.entries() as u64;
            self.blocks.push(SoundBlock { handle, last_key });
        }
        Ok(Ok(()))
    }

    /// Whether nothing at all can be read.
    pub fn is_lost(&self) -> bool {
        self.blocks.is_empty() && self.ranges.is_empty()
    }

    /// The file's number.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The newest sequence number in what can be read.
    pub fn max_seq(&self) -> SeqNo {
        self.max_seq
    }

    /// A cursor over the entries that can be read. It goes forward only.
    pub fn scan(self: &Arc<Self>) -> SalvageScan {
        SalvageScan {
            table: Arc::clone(self),
            at: 0,
            block: Block::default(),
            entry: 0,
            key: Vec::new(),
        }
    }
}

/// The entries of a [`SalvagedTable`], in order. As a [`Cursor`] it goes forward only.
pub struct SalvageScan {
    table: Arc<SalvagedTable>,
    at: usize,
    block: Block,
    entry: usize,
    key: Vec<u8>,
}

impl SalvageScan {
    /// Goes to the first entry of block `at` or, without such a block, to the end.
    fn load(&mut self, at: usize) -> Result<()> {
        (self.at, self.entry, self.block) = (at, 0, Block::default());
        if let Some(block) = self.table.blocks.get(at) {
            self.block = self.table.read_block(block.handle)?;
            self.assemble_key();
        }
        Ok(())
    }

    fn assemble_key(&mut self) {
        if self.entry < self.block.entries() {
            self.block.key_into(self.entry, &mut self.key);
        }
    }

    fn backward() -> Error {
        Error::InvalidArgument("a scan of a salvaged table goes forward only".to_owned())
    }
}

impl Cursor for SalvageScan {
    fn valid(&self) -> bool {
        self.entry < self.block.entries()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.load(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        Err(SalvageScan::backward())
    }

    fn seek(&mut self, key: &[u8], seq: SeqNo) -> Result<()> {
        let at = self.table.blocks.partition_point(|block| block.last_key.as_slice() < key);
        self.load(at)?;
        self.entry = self.block.lower_bound(key, SEQ_MAX);
        self.assemble_key();
        while self.valid() && compare(self.key(), self.seq(), key, seq) == Ordering::Less {
            self.next()?;
        }
        Ok(())
    }

    fn seek_back(&mut self, _key: &[u8], _seq: SeqNo) -> Result<()> {
        Err(SalvageScan::backward())
    }

    fn next(&mut self) -> Result<()> {
        self.entry += 1;
        if self.entry < self.block.entries() {
            self.assemble_key();
            return Ok(());
        }
        self.load(self.at + 1)
    }

    fn prev(&mut self) -> Result<()> {
        Err(SalvageScan::backward())
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn seq(&self) -> SeqNo {
        self.block.seq(self.entry).max(self.table.ingest_seq)
    }

    fn kind(&self) -> Kind {
        self.block.tag(self.entry).1
    }

    fn value(&self) -> &[u8] {
        self.block.value(self.entry)
    }
}

#[cfg(test)]
#[path = "salvage_tests.rs"]
mod tests;
