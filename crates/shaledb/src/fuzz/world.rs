//! A disk with room for tables, and tables of the operations in an input.

use super::input::{CODECS, Input, assert_corruption};
use crate::base::key::{Kind, SeqNo};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::base::stats::Recorder;
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{Env, Fs};
use crate::table::compress::Dictionary;
use crate::table::{BlobRef, FileId, Table, TableDictionary, TableEnv};
use crate::table::{TableMeta, TableOptions, TableWriter, Why};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Operations that an input makes at most.
const OPS_MAX: usize = 500;

/// A disk with room for tables.
pub(super) struct World {
    pub fs: MemFs,
    pub shared: Arc<TableEnv>,
}

impl World {
    pub fn new() -> World {
        let fs = MemFs::new();
        fs.create_dir_all(Path::new("/t")).expect("the disk has no faults");
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        World { fs, shared: TableEnv::new(env, 1 << 24, Arc::new(Recorder::new())) }
    }

    /// Where table `id` is.
    pub fn path(id: FileId) -> PathBuf {
        PathBuf::from(format!("/t/{id:06}.table"))
    }

    /// Puts `content` where the table is, and makes a table of it. What the manifest would say is
    /// what the file says, or else what fits any file.
    pub fn table_of(&self, content: &[u8]) -> Arc<Table> {
        let mut file = self.fs.create(&World::path(1)).expect("the disk has no faults");
        file.append(content).expect("the disk has no faults");
        drop(file);
        let read = Table::read_meta(&self.shared.env, &World::path(1), 1);
        let meta = read.map(|(_, meta)| meta).unwrap_or_else(|error| {
            assert_corruption(&error);
            let largest = vec![0xff; 8];
            let file_bytes = content.len() as u64;
            TableMeta { id: 1, file_bytes, largest, range_deletes: 1, ..TableMeta::default() }
        });
        Table::new(meta, World::path(1), &self.shared)
    }
}

/// What an entry says.
pub(super) type Said = (Kind, Vec<u8>);

/// What goes into a table.
#[derive(Default)]
pub(super) struct Content {
    pub entries: BTreeMap<(Vec<u8>, Reverse<SeqNo>), Said>,
    pub ranges: Vec<RangeDelete>,
}

impl Content {
    /// Reads at most `OPS_MAX` operations.
    ///
    /// Operation: flags u8 (kind, length of the part of the last key that is kept), key part
    /// length u8 and bytes, sequence number u16, value length u8 (of a repeated byte) u8.
    pub fn read(input: &mut Input<'_>) -> Content {
        let mut content = Content::default();
        let mut key: Vec<u8> = Vec::new();
        let mut count = input.number() as usize % OPS_MAX;
        while count > 0 && !input.is_empty() {
            count -= 1;
            let flags = input.byte();
            key.truncate(usize::from(flags >> 3));
            let length = usize::from(input.byte() % 32);
            key.extend_from_slice(input.take(length));
            let seq = SeqNo::from(input.number());
            let value = vec![input.byte(); usize::from(input.byte())];
            let (kind, value) = match flags & 7 {
                0 => (Kind::Delete, Vec::new()),
                1 => {
                    let (start, end) = (key.clone(), [&key[..], &value].concat());
                    content.ranges.push(RangeDelete { start, end, seq });
                    continue;
                }
                2 => (Kind::Blob, BlobRef { file: seq, bytes: value.len() as u64 }.encode()),
                3 => (Kind::Put, value.repeat(20)),
                _ => (Kind::Put, value),
            };
            content.entries.insert((key.clone(), Reverse(seq)), (kind, value));
        }
        content
    }

    /// Writes the table; `None` if there is nothing to write.
    pub fn write(&self, world: &World, options: TableOptions) -> Option<TableMeta> {
        let file = world.fs.create(&World::path(1)).expect("the disk has no faults");
        let waits = matches!(options.dictionary, TableDictionary::OfTable);
        let mut writer = TableWriter::new(file, 1, options);
        if waits {
            // So little data would get none.
            writer.decide(Some(dictionary())).expect("the disk has no faults");
        }
        writer.add_range_deletes(&RangeDeletes::new(self.ranges.iter().cloned()));
        for ((key, seq), (kind, value)) in &self.entries {
            writer.add(key, seq.0, *kind, value).expect("the entries ascend");
        }
        if writer.is_empty() {
            return None;
        }
        Some(writer.finish().expect("the disk has no faults"))
    }
}

/// A dictionary of nothing in particular, always the same.
pub(super) fn dictionary() -> Arc<Dictionary> {
    let samples: Vec<Vec<u8>> = (0..40u32)
        .map(|number| (0..60u32).flat_map(|at| (at * number % 97).to_be_bytes()).collect())
        .collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    Arc::new(Dictionary::make(&samples.concat()[..2000], &samples, 3).expect("samples enough"))
}

pub(super) fn options(input: &mut Input<'_>) -> TableOptions {
    let [codec, block, filter] = [input.byte(), input.byte(), input.byte()];
    TableOptions {
        codec: CODECS[usize::from(codec) % CODECS.len()],
        why: Why::Set,
        dictionary: match filter >= 128 {
            true => TableDictionary::OfTable,
            false => TableDictionary::None,
        },
        block_bytes: 64 + 16 * usize::from(block),
        filter_bits: filter % 21,
        tree: 1,
    }
}
