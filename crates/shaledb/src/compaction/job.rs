//! Doing a plan: tables in, tables out.
//!
//! The hottest loop of the engine. Every input is scanned forward in large reads, past the block
//! cache; the merge compares eight-byte heads; rows go from the decoded input block to the output
//! block with one copy and no allocation. A block whose keys no other input has, and of which
//! nothing is dropped or changed, is reused as it lies in its file: it is decompressed for
//! its keys (the filter needs them), but not taken apart and not compressed again.
//! Measured in docs/decisions/0005-moving-blocks.md.
//!
//! A part is merged in steps of some thousand rows, and the caller drives them: between two steps
//! is a yield point, where it may flush a memtable or give the part up.

use super::drop::{Bottom, Decision, DropFilter, surviving_range_deletes};
use super::older::Older;
use super::plan::Plan;
use super::policy;
use super::policy::chosen::LevelCodecs;
use super::split::{OutputCut, Part};
use crate::base::activity::Activity;
use crate::base::cursor::Cursor;
use crate::base::error::Result;
use crate::base::key::{self, Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::cache::Memory;
use crate::fs::Env;
use crate::fs::meter::Meter;
use crate::iter::Merge;
use crate::iter::concat::{Concat, Run, ScanPart};
use crate::state::TreeState;
use crate::table::format::{FileKind, file_name};
use crate::table::meta::{FileId, TableMeta};
use crate::table::{BulkScan, Probe, RawBlock, Table, TableDictionary, TableOptions, TableWriter};
use crate::version::TreeId;
use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;

/// How many rows are merged between two yield points.
const ROWS_PER_STEP: u32 = 4096;
/// As how many rows a reused block counts there.
const ROWS_PER_BLOCK: u32 = 64;
/// The share of a job's memory that its reads have: one in so many. Each run has the same of it,
/// if that is not less than [`READ_BYTES_MIN`], below which reads are too many.
const READS_SHARE: u64 = 2;
const READ_BYTES_MIN: u64 = 64 << 10;
/// A table ends when its writer has so many rows to keep in mind: one for so many bytes of the
/// job's memory. (A row takes eight bytes, for the filter, and a vector that grows has room to
/// spare.) Not in level 0, where a merge is for fewer tables: the picker bounds its rows.
pub const BYTES_PER_ROW: u64 = 32;

/// What a job works on and with.
pub struct Context<'a> {
    /// Where files are created.
    pub env: &'a Env,
    /// What measures compressing.
    pub meter: &'a Arc<Meter>,
    /// Where what the job holds is counted.
    pub memory: &'a Arc<Memory>,
    /// About how much of that it may be.
    pub memory_bytes: u64,
    /// What to do.
    pub plan: &'a Plan,
    /// The tables of the plan's inputs, or those of them that the part meets, by level; level 0
    /// newest first, others sorted.
    pub inputs: &'a [(usize, Vec<Arc<Table>>)],
    /// About how many bytes of them the part has.
    pub part_bytes: u64,
    /// The sequence numbers of open snapshots, ascending.
    pub snapshots: &'a [SeqNo],
    /// What the tree has, as it changes; `None` if it is not to be asked about deletes.
    pub state: Option<&'a ArcSwap<TreeState>>,
    /// The number of the tree, which goes into the outputs.
    pub tree: TreeId,
    /// The codecs of the tree's levels.
    pub codecs: &'a LevelCodecs,
    /// Where blocks of the first output are left before they are compressed, if anyone wants them.
    pub probe: Option<&'a Probe>,
    /// The compression dictionary of outputs.
    pub dictionary: &'a TableDictionary,
    /// The size of output blocks before compression.
    pub block_bytes: usize,
    /// Where table files are made.
    pub dir: &'a Path,
    /// The number of the next new file.
    pub next_file: &'a AtomicU64,
}

/// What a part of a job has made.
#[derive(Debug, Default)]
pub struct Done {
    /// The tables written, in order; durable but for their names.
    pub tables: Vec<TableMeta>,
    /// Rows read.
    pub entries_in: u64,
    /// Rows written.
    pub entries_out: u64,
    /// Blocks reused whole; their rows count as read and written.
    pub blocks_reused: u64,
    /// Bytes of those in the files.
    pub bytes_reused: u64,
}

type RunScan = Concat<BulkScan>;

/// The rows of a compaction, and the blocks in which they lie.
trait Rows: Cursor {
    /// The scan whose row is the current one.
    fn scan(&self) -> &BulkScan;
    /// The first key that another run has from here on.
    fn rival_key(&self) -> Option<&[u8]>;
    /// Goes on behind the block of the current row.
    fn skip_block(&mut self) -> Result<()>;
}

impl Rows for RunScan {
    #[inline]
    fn scan(&self) -> &BulkScan {
        self.current()
    }

    fn rival_key(&self) -> Option<&[u8]> {
        None
    }

    fn skip_block(&mut self) -> Result<()> {
        self.advance_current(BulkScan::skip_block)
    }
}

impl Rows for Merge<RunScan> {
    #[inline]
    fn scan(&self) -> &BulkScan {
        self.current().current()
    }

    fn rival_key(&self) -> Option<&[u8]> {
        self.rival().map(Cursor::key)
    }

    fn skip_block(&mut self) -> Result<()> {
        self.advance_current(RunScan::skip_block)
    }
}

/// The merge of one part of a plan into new tables, under way. Begin it, step until the rows are
/// merged, then finish it. If a step or the end fails, or it is given up, the caller removes
/// [`PartMerge::into_files`].
pub struct PartMerge<'a> {
    input: Input,
    filter: DropFilter<'a>,
    outputs: Outputs<'a>,
    /// The first key of the next part.
    end: Option<Vec<u8>>,
}

/// The rows of a part.
#[expect(clippy::large_enum_variant, reason = "one for each part, and each row goes through it")]
enum Input {
    /// Of a lone run: the usual case of a rewrite, which needs no merge.
    Run(RunScan),
    Runs(Merge<RunScan>),
}

impl<'a> PartMerge<'a> {
    /// Opens the inputs of a part and goes to the first row. No file is made yet.
    pub fn begin(context: &'a Context<'a>, part: &Part) -> Result<PartMerge<'a>> {
        for (level, tables) in context.inputs {
            let in_order = tables.is_sorted_by(|a, b| a.meta.is_before(&b.meta.smallest));
            assert!(*level == 0 || in_order, "inputs of a level below 0 are in order");
        }
        let deletes = input_range_deletes(context, part)?;
        let bottom = Bottom::of(context.plan);
        let outputs = Outputs {
            context,
            files: Vec::new(),
            cut: OutputCut::new(context.plan, part.start.as_deref()),
            entries_max: match context.plan.output_level {
                0 => u64::MAX,
                _ => context.memory_bytes / BYTES_PER_ROW,
            },
            surviving: surviving_range_deletes(&deletes, context.snapshots, &bottom),
            writer: None,
            start: part.start.clone(),
            reuses_blocks: reuses_blocks(context),
            done: Done::default(),
        };
        let bytes = context.part_bytes;
        let older = context.state.and_then(|state| Older::below(context.plan, state, bytes));
        let filter = DropFilter::new(context.snapshots, bottom, deletes).asking(older);
        let mut input = input(context, part);
        match &mut input {
            Input::Run(rows) => rows.seek_first()?,
            Input::Runs(rows) => rows.seek_first()?,
        }
        Ok(PartMerge { input, filter, outputs, end: part.end.clone() })
    }

    /// Merges up to the next yield point; false once all rows are merged.
    pub fn step(&mut self) -> Result<bool> {
        match &mut self.input {
            Input::Run(rows) => copy(rows, &mut self.filter, &mut self.outputs),
            Input::Runs(rows) => copy(rows, &mut self.filter, &mut self.outputs),
        }
    }

    /// How many rows have been merged.
    pub fn entries_in(&self) -> u64 {
        self.outputs.done.entries_in
    }

    /// Finishes the last table.
    pub fn finish(&mut self) -> Result<Done> {
        self.outputs.end(self.end.as_deref())?;
        let done = std::mem::take(&mut self.outputs.done);
        assert!(done.entries_out <= done.entries_in, "a merge makes no entries");
        assert_eq!(done.tables.len(), self.outputs.files.len(), "each file is an output");
        let written: u64 = done.tables.iter().map(|meta| meta.entries).sum();
        assert_eq!(written, done.entries_out, "what was written is in the outputs");
        Ok(done)
    }

    /// The numbers of all files made, for whoever removes them. No writer is left.
    pub fn into_files(self) -> Vec<FileId> {
        self.outputs.files
    }
}

/// Merges some thousand rows; answers whether there are more.
fn copy(
    rows: &mut impl Rows,
    filter: &mut DropFilter<'_>,
    outputs: &mut Outputs<'_>,
) -> Result<bool> {
    let mut left = ROWS_PER_STEP;
    while rows.valid() {
        if left == 0 {
            return Ok(true);
        }
        left -= 1;
        if rows.scan().begins_block() && reuse_block(rows, filter, outputs)? {
            left = left.saturating_sub(ROWS_PER_BLOCK);
            continue;
        }
        let key = rows.key();
        outputs.done.entries_in += 1;
        let (seq, kind) = (rows.seq(), rows.kind());
        match filter.decide(key, seq, kind) {
            Decision::Keep => outputs.add(key, seq, kind, rows.value())?,
            Decision::KeepAsSeqZero => outputs.add(key, 0, kind, rows.value())?,
            Decision::Drop => {}
            Decision::Ask => {
                rows.next()?;
                if !filter.has_met_all(rows) {
                    outputs.add(filter.last_key(), seq, kind, b"")?;
                }
                continue;
            }
        }
        rows.next()?;
    }
    Ok(false)
}

/// Reuses the block at whose first row the merge is over, if that is possible.
#[inline(never)]
fn reuse_block(
    rows: &mut impl Rows,
    filter: &mut DropFilter<'_>,
    outputs: &mut Outputs<'_>,
) -> Result<bool> {
    let Some(raw) = rows.scan().raw_block() else { return Ok(false) };
    let is_alone = rows.rival_key().is_none_or(|rival| raw.block.is_before(rival));
    if !is_alone || !outputs.takes(&raw) || !filter.keeps_block(&raw) {
        return Ok(false);
    }
    filter.kept_block(&raw);
    outputs.add_block(&raw)?;
    rows.skip_block()?;
    Ok(true)
}

/// The rows of the tables that the part needs: each run as one cursor, newest first.
fn input(context: &Context<'_>, part: &Part) -> Input {
    let runs_of = |(level, tables): &(usize, Vec<_>)| if *level == 0 { tables.len() } else { 1 };
    let runs: usize = context.inputs.iter().map(runs_of).sum();
    let read_bytes = (context.memory_bytes / READS_SHARE / runs.max(1) as u64).max(READ_BYTES_MIN);
    let run = |tables| {
        let scan = ScanPart { start: part.start.clone(), end: part.end.clone(), read_bytes };
        Concat::new(Run::Tables(tables), scan)
    };
    let mut runs = Vec::new();
    for (level, tables) in context.inputs {
        let tables: Vec<Arc<Table>> =
            tables.iter().filter(|table| part.meets(&table.meta)).cloned().collect();
        if *level == 0 {
            runs.extend(tables.into_iter().map(|table| run(vec![table])));
        } else if !tables.is_empty() {
            runs.push(run(tables));
        }
    }
    match <[RunScan; 1]>::try_from(runs) {
        Ok([run]) => Input::Run(run),
        Err(runs) => {
            let range = &context.plan.range;
            let shared = key::common_prefix(&range.smallest, &range.largest);
            Input::Runs(Merge::new(runs).with_prefix(&range.smallest[..shared]))
        }
    }
}

/// Whether blocks may be reused at all.
fn reuses_blocks(context: &Context<'_>) -> bool {
    let (choice, output) = (context.plan.choice, context.plan.output_level);
    let inputs = context
        .inputs
        .iter()
        .flat_map(|(level, tables)| tables.iter().map(|table| (*level, &*table.meta)));
    policy::reuses_blocks(context.codecs, choice, output)
        && !policy::makes_blocks_anew(context.codecs, choice, inputs, output)
}

fn input_range_deletes(context: &Context<'_>, part: &Part) -> Result<RangeDeletes> {
    let mut sets = Vec::new();
    for table in context.inputs.iter().flat_map(|(_, tables)| tables) {
        if table.meta.range_deletes > 0 {
            let start = part.start.as_deref().unwrap_or(b"");
            sets.push(table.range_deletes()?.clip(start, part.end.as_deref()));
        }
    }
    Ok(RangeDeletes::union(&sets))
}

/// How long the table is, for who decides where it ends: as long as can be if it has so many rows.
#[inline]
fn filled(writer: &TableWriter, entries_max: u64) -> u64 {
    if writer.entries() < entries_max { writer.estimated_bytes() } else { u64::MAX }
}

/// The tables being written, one after the other.
struct Outputs<'a> {
    context: &'a Context<'a>,
    /// All files made.
    files: Vec<FileId>,
    cut: OutputCut,
    /// How many rows a table has at most, if it can be cut there.
    entries_max: u64,
    surviving: RangeDeletes,
    writer: Option<TableWriter>,
    /// The first key that belongs to the present table (or comes before it and to no other):
    /// range deletes are clipped here.
    start: Option<Vec<u8>>,
    reuses_blocks: bool,
    done: Done,
}

impl Outputs<'_> {
    #[inline]
    fn add(&mut self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) -> Result<()> {
        let writer = match &mut self.writer {
            // Asked once a block is enough but near the end, and a user key is never cut in two.
            Some(writer)
                if !((writer.begins_block(key, value.len()) || self.cut.ends_with_next(key))
                    && writer.last_key() != key
                    && self.cut.before(key, filled(writer, self.entries_max))) =>
            {
                writer
            }
            _ => self.begin(key)?,
        };
        writer.add(key, seq, kind, value)?;
        self.done.entries_out += 1;
        Ok(())
    }

    /// Whether the block is as the present table would write it, which does not end within it.
    fn takes(&mut self, raw: &RawBlock<'_>) -> bool {
        let Some(writer) = self.writer.as_ref().filter(|_| self.reuses_blocks) else {
            return false;
        };
        let bytes = filled(writer, self.entries_max);
        writer.takes_block(raw) && !(self.cut.is_near_end(bytes) && self.is_over_end(raw, bytes))
    }

    /// Whether the end of the next table below is within the block.
    #[cold]
    fn is_over_end(&mut self, raw: &RawBlock<'_>, bytes: u64) -> bool {
        let first = raw.block.key(0);
        if self.cut.ends_with_next(&first) {
            return false;
        }
        self.cut.pass(&first, bytes);
        self.cut.ends_with_next(&raw.block.key(raw.block.entries() - 1))
    }

    /// Adds a block as it is. Its first key is new: [`DropFilter::keeps_block`] has seen to it.
    fn add_block(&mut self, raw: &RawBlock<'_>) -> Result<()> {
        let first = raw.block.key(0);
        let writer = match &mut self.writer {
            Some(writer) if !self.cut.before(&first, filled(writer, self.entries_max)) => writer,
            _ => self.begin(&first)?,
        };
        writer.add_block(raw)?;
        let entries = raw.block.entries() as u64;
        self.done.entries_in += entries;
        self.done.entries_out += entries;
        self.done.blocks_reused += 1;
        self.done.bytes_reused += raw.bytes.len() as u64;
        Ok(())
    }

    /// Ends the present table, if there is one, and begins the next with `key`.
    #[cold]
    fn begin(&mut self, key: &[u8]) -> Result<&mut TableWriter> {
        if self.writer.is_some() {
            assert!(self.start.as_deref().is_none_or(|start| start < key), "tables are in order");
            self.end(Some(key))?;
            self.start = Some(key.to_vec());
        }
        self.create()
    }

    fn create(&mut self) -> Result<&mut TableWriter> {
        assert!(self.writer.is_none(), "one table is written at a time");
        let context = self.context;
        let id = context.next_file.fetch_add(1, Ordering::Relaxed);
        self.files.push(id);
        let file = context.env.fs.create(&context.dir.join(file_name(FileKind::Table, id)))?;
        let options = TableOptions {
            codec: self.context.plan.choice.codec,
            why: self.context.plan.choice.why,
            dictionary: self.context.dictionary.clone(),
            block_bytes: self.context.block_bytes,
            filter_bits: self.context.plan.filter_bits,
            tree: self.context.tree,
        };
        let writer = TableWriter::new(file, id, options).lent_by(context.memory);
        let mut writer = writer.counted_as(Activity::CompactionCompress, context.meter);
        if let Some(probe) = context.probe.filter(|_| self.files.len() == 1) {
            writer = writer.probed_by(probe);
        }
        Ok(self.writer.insert(writer))
    }

    /// Finishes the present table; it ends before `end`.
    fn end(&mut self, end: Option<&[u8]>) -> Result<()> {
        let start = self.start.as_deref().unwrap_or(b"");
        let deletes = self.surviving.clip(start, end);
        if self.writer.is_none() && !deletes.is_empty() {
            self.create()?;
        }
        if let Some(mut writer) = self.writer.take() {
            writer.add_range_deletes(&deletes);
            self.done.tables.push(writer.finish()?);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
