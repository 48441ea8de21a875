//! Reads all of a table file and checks every byte of it: checksums, that the sections fill the
//! file, that the entries are in order, where the index says and in the filter, and that the
//! properties (and what the tree knows) are what the entries add up to.

use super::bulk_scan::BulkScan;
use super::reader::{Table, TableIndex};
use super::sections::read_section;
use crate::base::coding::hash;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SeqNo, compare};
use crate::base::ranges::RangeDeletes;
use crate::table::blob::BlobRef;
use crate::table::format::{Block, BlockInfo, filter, properties};
use crate::table::meta::TableMeta;
use std::cmp::Ordering;
use std::sync::Arc;

/// What a check has gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyCounts {
    /// Bytes of files.
    pub bytes: u64,
    /// Data blocks.
    pub blocks: u64,
    /// Entries.
    pub entries: u64,
    /// Fragments of range deletes.
    pub range_deletes: u64,
}

/// What the entries seen so far add up to.
#[derive(Default)]
struct Sums {
    meta: TableMeta,
    last_key: Vec<u8>,
    last_seq: SeqNo,
    last_separator: Vec<u8>,
    key: Vec<u8>,
}

impl Table {
    /// Reads and checks the whole file, past all caches. The first damage found is the error.
    pub fn verify(&self) -> Result<VerifyCounts> {
        let index = Arc::new(self.read_index()?);
        let stated = self.verify_properties(&index)?;
        let mut sums = Sums::default();
        sums.meta.min_seq = SeqNo::MAX;
        let mut scan = BulkScan::over(self.this()?, Arc::clone(&index));
        scan.seek_first()?;
        for at in 0..index.index.blocks() {
            let info = index.index.info(at);
            let wrong = |what| self.corrupt(info.handle.offset, what);
            if !scan.valid() {
                return Err(wrong("a block has no entries"));
            }
            let separator = index.index.separator(at);
            self.verify_block(scan.block(), &info, index.filter(), &mut sums).map_err(wrong)?;
            if sums.last_key > separator || (at > 0 && separator < sums.last_separator) {
                return Err(wrong("a block has keys after its separator"));
            }
            sums.last_separator = separator;
            scan.skip_block()?;
        }
        let ranges = self.read_range_deletes(&index.footer)?;
        sums.complete(&ranges);
        // What entries do not tell.
        (sums.meta.codec, sums.meta.why) = (stated.codec, stated.why);
        if sums.meta != stated {
            let offset = index.footer.properties.offset;
            return Err(self.corrupt(offset, "the entries do not add up to the properties"));
        }
        Ok(VerifyCounts {
            bytes: self.meta.file_bytes,
            blocks: stated.blocks,
            entries: stated.entries,
            range_deletes: stated.range_deletes,
        })
    }

    /// The properties, once they are found to be what the tree knows.
    fn verify_properties(&self, index: &TableIndex) -> Result<TableMeta> {
        let handle = index.footer.properties;
        let bytes = self.with_file(|file| read_section(file, handle))?;
        let (_, stated) = properties::decode(&bytes)
            .ok_or_else(|| self.corrupt(handle.offset, "the properties are malformed"))?;
        let mut known =
            TableMeta { id: 0, file_bytes: 0, ingest_seq: 0, ..TableMeta::clone(&self.meta) };
        if self.meta.ingest_seq != 0 {
            // The sequence number was given after the file was written.
            (known.min_seq, known.max_seq) = (0, 0);
        }
        if known == stated {
            Ok(stated)
        } else {
            Err(self.corrupt(handle.offset, "the properties are not what the manifest says"))
        }
    }

    fn verify_block(
        &self,
        block: &Block,
        info: &BlockInfo,
        filter: &[u8],
        sums: &mut Sums,
    ) -> std::result::Result<(), &'static str> {
        let mut deletes = 0;
        for entry in 0..block.entries() {
            block.key_into(entry, &mut sums.key);
            let (seq, kind) = block.tag(entry);
            if sums.meta.entries == 0 {
                sums.meta.smallest.clone_from(&sums.key);
            } else if compare(&sums.last_key, sums.last_seq, &sums.key, seq) != Ordering::Less {
                return Err("entries are out of order");
            }
            if entry == 0 && sums.meta.entries > 0 && sums.key < sums.last_separator {
                return Err("a block has keys before the separator of the block before it");
            }
            if !filter.is_empty() && !filter::may_contain(filter, hash(&sums.key)) {
                return Err("a key is not in the filter");
            }
            if kind == Kind::Blob {
                let blob = BlobRef::decode(block.value(entry));
                sums.meta.blobs.push(blob.ok_or("a blob reference is malformed")?.file);
            }
            deletes += u64::from(kind == Kind::Delete);
            sums.meta.entries += 1;
            sums.meta.min_seq = sums.meta.min_seq.min(seq);
            sums.meta.max_seq = sums.meta.max_seq.max(seq);
            std::mem::swap(&mut sums.last_key, &mut sums.key);
            sums.last_seq = seq;
        }
        if info.tagged != block.tagged() || info.deletes != (deletes > 0) {
            return Err("the index is wrong about the kinds of entries in a block");
        }
        sums.meta.deletes += deletes;
        sums.meta.blocks += 1;
        sums.meta.key_bytes += block.key_bytes();
        sums.meta.value_bytes += block.value_bytes();
        sums.meta.raw_bytes += block.image().len() as u64;
        sums.meta.data_bytes += u64::from(info.handle.bytes);
        Ok(())
    }
}

impl Sums {
    /// Completes the sums as the writer does.
    fn complete(&mut self, ranges: &RangeDeletes) {
        self.meta.largest = std::mem::take(&mut self.last_key);
        properties::complete(&mut self.meta, ranges);
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
