//! Blocks and tables of any bytes, or damaged and sealed again.

use super::{CODECS, Input, assert_corruption};
use crate::base::coding::{checksum, hash};
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{Kind, SEQ_MAX, SeqNo, compare};
use crate::base::ranges::{RangeDelete, RangeDeletes};
use crate::base::stats::Recorder;
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{Env, Fs};
use crate::table::compress::Dictionary;
use crate::table::format::{FOOTER_BYTES, Footer, Handle};
use crate::table::{
    BlobRef, Block, CursorOptions, FileId, Table, TableEnv, TableMeta, TableOptions, TableWriter,
};
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Steps that a walk over damaged data makes at most.
const STEPS_MAX: usize = 5000;
/// Operations that an input makes at most.
const OPS_MAX: usize = 500;

/// Parses the input as a block, and walks and searches it.
pub fn block(data: &[u8]) {
    let Ok(block) = Block::parse(data.to_vec()) else { return };
    let count = block.entries();
    let walk: Vec<usize> = if count <= 2000 {
        (0..count).collect()
    } else {
        (0..500).chain(count - 500..count).collect()
    };
    let mut sorted = count <= 2000;
    let mut last: Option<(Vec<u8>, SeqNo)> = None;
    for &index in &walk {
        let key = block.key(index);
        assert!(block.key_is(index, &key));
        assert_eq!(key, [block.prefix(), block.suffix(index)].concat());
        let (start, end) = block.value_range(index);
        assert_eq!(block.value(index), &block.image()[start..end]);
        let (seq, _) = block.tag(index);
        if let Some((last_key, last_seq)) = &last {
            sorted &= compare(last_key, *last_seq, &key, seq) == Ordering::Less;
        }
        assert!(block.lower_bound(&key, seq) <= count);
        last = Some((key, seq));
    }
    if sorted {
        for &index in &walk {
            assert_eq!(block.lower_bound(&block.key(index), block.seq(index)), index);
        }
    }
    assert!(block.count_deletes() <= count as u64 || count > 2000);
    assert!(block.lower_bound(b"", SEQ_MAX) <= count);
    assert!(block.lower_bound(&[0xff; 40], 0) <= count);
}

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
    fn table_of(&self, content: &[u8]) -> Arc<Table> {
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
        let mut writer = TableWriter::new(file, 1, options);
        if options.dictionary {
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
        dictionary: filter >= 128,
        block_bytes: 64 + 16 * usize::from(block),
        filter_bits: filter % 21,
        tree: 1,
    }
}

/// Reads a table of any bytes, or one that was damaged and sealed again.
///
/// Input: mode u8. Even: the file. Odd: options (3 bytes), number of patches u8, patches (place u16
/// in 65536th parts of the file, xor u8), operations.
pub fn table(data: &[u8]) {
    let world = World::new();
    let mut input = Input(data);
    if input.byte().is_multiple_of(2) {
        return exercise(&world.table_of(input.0), b"k");
    }
    let options = options(&mut input);
    let patches: Vec<(u16, u8)> =
        (0..input.byte()).map(|_| (input.number(), input.byte())).collect();
    let Some(meta) = Content::read(&mut input).write(&world, options) else { return };
    let key = meta.smallest.clone();
    let table = Table::new(meta, World::path(1), &world.shared);
    let mut content = world.fs.content(&World::path(1)).expect("the file was written");
    let frames = frames(&table, &content);
    drop(table);
    for (place, xor) in patches {
        let at = content.len() * usize::from(place) / 65536;
        content[at] ^= xor;
    }
    for frame in frames {
        reseal(&mut content[frame.offset as usize..frame.end() as usize]);
    }
    let footer = content.len() - FOOTER_BYTES;
    reseal(&mut content[footer..footer + FOOTER_BYTES - 8]);
    // A new world: nothing of the sound table is in its cache.
    exercise(&World::new().table_of(&content), &key);
}

/// Makes the last four bytes the checksum of those before them.
fn reseal(bytes: &mut [u8]) {
    if let Some((covered, sum)) = bytes.split_last_chunk_mut::<4>() {
        *sum = checksum(covered).to_le_bytes();
    }
}

/// Where the frames of a sound table are.
fn frames(table: &Arc<Table>, content: &[u8]) -> Vec<Handle> {
    let bytes = &content[content.len() - FOOTER_BYTES..];
    let footer = Footer::decode(bytes, content.len() as u64).expect("the table is sound");
    let mut frames = vec![footer.filter, footer.range_deletes, footer.index, footer.properties];
    if footer.dictionary.bytes > 0 {
        frames.push(footer.dictionary);
    }
    let mut scan = table.scan(None, None);
    scan.seek_first().expect("the table is sound");
    let mut offset = footer.data().start;
    while let Some(raw) = scan.raw_block() {
        let bytes = raw.bytes.len() as u32;
        frames.push(Handle { offset, bytes });
        offset += u64::from(bytes);
        scan.skip_block().expect("the table is sound");
    }
    frames
}

/// Reads a table in every way; any error must be one of damage.
fn exercise(table: &Arc<Table>, key: &[u8]) {
    let check = |result: Result<()>| {
        if let Err(error) = result {
            assert_corruption(&error);
        }
    };
    check(table.range_deletes().map(drop));
    check(table.verify().map(drop));
    for seq in [0, 1, SEQ_MAX] {
        for key in [b"", key, &table.meta.smallest, &table.meta.largest, &[0xff; 9]] {
            check(table.get(key, hash(key), seq).map(drop));
            check(table.bytes_before(key).map(drop));
        }
    }
    check(table.split_points(4).map(drop));
    let options = CursorOptions { fill_cache: false, readahead: 4096 };
    let mut cursor = table.cursor(options);
    check(cursor.seek_first());
    check(walk(&mut cursor, Cursor::next));
    check(cursor.seek_last());
    check(walk(&mut cursor, Cursor::prev));
    check(cursor.seek(key, SEQ_MAX));
    check(walk(&mut cursor, Cursor::prev));
    check(cursor.seek_back(key, SEQ_MAX));
    check(walk(&mut cursor, Cursor::next));
    let mut scan = table.scan(Some(key), None);
    check(scan.seek_first());
    check(walk(&mut scan, Cursor::next));
}

fn walk<C: Cursor>(cursor: &mut C, step: impl Fn(&mut C) -> Result<()>) -> Result<()> {
    let mut bytes = 0;
    for _ in 0..STEPS_MAX {
        if !cursor.valid() {
            break;
        }
        bytes += cursor.key().len() + cursor.value().len();
        assert!(cursor.seq() < 1 << 62);
        std::hint::black_box((bytes, cursor.kind()));
        let stepped = step(cursor);
        assert!(stepped.is_ok() || !cursor.valid(), "valid after an error");
        stepped?;
    }
    Ok(())
}
