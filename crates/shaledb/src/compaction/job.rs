//! Doing a plan: tables in, tables out.
//!
//! The hottest loop of the engine. Every input is scanned forward in large reads, past the block
//! cache; the merge compares eight-byte heads; rows go from the decoded input block to the output
//! block with one copy and no allocation. A block whose keys no other input has, and of which
//! nothing is dropped or changed, is carried over as it lies in its file: it is decompressed for
//! its keys (the filter needs them), but not taken apart and not compressed again.
//! Measured in docs/decisions/0005-moving-blocks.md.

use super::drop::{Bottom, DropRule, Verdict, surviving_range_deletes};
use super::plan::Plan;
use super::policy;
use super::split::{OutputCut, Part};
use crate::base::activity::Activity;
use crate::base::config::Codecs;
use crate::base::cursor::Cursor;
use crate::base::error::{Error, Result};
use crate::base::key::{self, Kind, SeqNo};
use crate::base::ranges::RangeDeletes;
use crate::fs::Env;
use crate::fs::meter::Meter;
use crate::iter::Merge;
use crate::iter::concat::{Concat, Run, ScanPart};
use crate::table::meta::{FileId, TableMeta};
use crate::table::{BulkScan, RawBlock, Table, TableOptions, TableWriter};
use crate::version::TreeId;
use std::path::PathBuf;
use std::sync::Arc;

/// How many rows are merged between two looks at whether the job has been cancelled.
const ROWS_PER_LOOK: u32 = 4096;
/// As how many rows a block that is carried over counts there.
const ROWS_PER_BLOCK: u32 = 64;

/// What a job works on and with.
pub struct Context<'a> {
    /// Where files are created.
    pub env: &'a Env,
    /// What measures compressing.
    pub meter: &'a Arc<Meter>,
    /// What to do.
    pub plan: &'a Plan,
    /// The tables of the plan's inputs, or those of them that the part meets, by level; level 0
    /// newest first, others sorted.
    pub inputs: &'a [(usize, Vec<Arc<Table>>)],
    /// The sequence numbers of open snapshots, ascending.
    pub snapshots: &'a [SeqNo],
    /// The number of the tree, which goes into the outputs.
    pub tree: TreeId,
    /// The codecs of the tree's levels.
    pub codecs: &'a Codecs,
    /// Whether outputs have a compression dictionary where that pays.
    pub dictionary: bool,
    /// The size of output blocks before compression.
    pub block_bytes: usize,
    /// The number and path of a new table file.
    pub new_file: &'a dyn Fn() -> (FileId, PathBuf),
    /// Whether the result is no longer wanted.
    pub cancelled: &'a dyn Fn() -> bool,
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
    /// Blocks carried over whole; their rows count as read and written.
    pub carried_blocks: u64,
    /// Bytes of those in the files.
    pub carried_bytes: u64,
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

/// Merges one part of a plan into new tables. The numbers of all files created are added to
/// `written`, so that the caller can remove them if this fails.
pub fn merge(context: &Context<'_>, part: &Part, written: &mut Vec<FileId>) -> Result<Done> {
    let deletes = input_range_deletes(context, part)?;
    let bottom = Bottom::of(context.plan);
    let surviving = surviving_range_deletes(&deletes, context.snapshots, &bottom);
    let mut rule = DropRule::new(context.snapshots, bottom, &deletes);
    let mut outputs = Outputs {
        context,
        written,
        cut: OutputCut::new(context.plan),
        surviving: &surviving,
        writer: None,
        start: part.start.clone(),
        carries: policy::tells_codec(context.codecs, context.plan),
        done: Done::default(),
    };
    let range = &context.plan.range;
    let shared = key::common_prefix(&range.smallest, &range.largest);
    let mut runs = inputs(context, part);
    // The usual case of a lone run (a rewrite) needs no merge.
    if runs.len() == 1
        && let Some(run) = runs.pop()
    {
        copy(run, &mut rule, &mut outputs)?;
    } else {
        copy(Merge::new(runs).with_prefix(&range.smallest[..shared]), &mut rule, &mut outputs)?;
    }
    outputs.finish(part)
}

fn copy(mut rows: impl Rows, rule: &mut DropRule<'_>, outputs: &mut Outputs<'_>) -> Result<()> {
    rows.seek_first()?;
    let mut look = ROWS_PER_LOOK;
    while rows.valid() {
        look -= 1;
        if look == 0 {
            look = ROWS_PER_LOOK;
            if (outputs.context.cancelled)() {
                return Err(Error::Closed);
            }
        }
        if rows.scan().begins_block() && carry(&mut rows, rule, outputs)? {
            look = look.saturating_sub(ROWS_PER_BLOCK).max(1);
            continue;
        }
        let key = rows.key();
        outputs.done.entries_in += 1;
        let (seq, kind) = (rows.seq(), rows.kind());
        match rule.judge(key, seq, kind) {
            Verdict::Keep => outputs.add(key, seq, kind, rows.value())?,
            Verdict::KeepAsSeqZero => outputs.add(key, 0, kind, rows.value())?,
            Verdict::Drop => {}
        }
        rows.next()?;
    }
    Ok(())
}

/// Carries the block at whose first row the merge is over, if that is possible.
#[inline(never)]
fn carry(rows: &mut impl Rows, rule: &mut DropRule<'_>, outputs: &mut Outputs<'_>) -> Result<bool> {
    let Some(raw) = rows.scan().raw_block() else { return Ok(false) };
    let is_alone = rows.rival_key().is_none_or(|rival| raw.block.is_before(rival));
    if !is_alone || !outputs.takes(&raw) || !rule.keeps_block(&raw) {
        return Ok(false);
    }
    rule.kept_block(&raw);
    outputs.add_block(&raw)?;
    rows.skip_block()?;
    Ok(true)
}

/// The tables that the part needs, each run as one cursor, newest first.
fn inputs(context: &Context<'_>, part: &Part) -> Vec<RunScan> {
    let run = |tables| {
        let scan = ScanPart { start: part.start.clone(), end: part.end.clone() };
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
    runs
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

/// The tables being written, one after the other.
struct Outputs<'a> {
    context: &'a Context<'a>,
    written: &'a mut Vec<FileId>,
    cut: OutputCut,
    surviving: &'a RangeDeletes,
    writer: Option<TableWriter>,
    /// The first key that belongs to the present table (or comes before it and to no other):
    /// range deletes are clipped here.
    start: Option<Vec<u8>>,
    /// Whether blocks may be carried over at all.
    carries: bool,
    done: Done,
}

impl Outputs<'_> {
    #[inline]
    fn add(&mut self, key: &[u8], seq: SeqNo, kind: Kind, value: &[u8]) -> Result<()> {
        let writer = match &mut self.writer {
            // Asked once a block is enough, and a user key is never cut in two.
            Some(writer)
                if !(writer.begins_block(key.len() + value.len())
                    && writer.last_key() != key
                    && self.cut.before(key, writer.estimated_bytes())) =>
            {
                writer
            }
            _ => self.begin(key)?,
        };
        writer.add(key, seq, kind, value)?;
        self.done.entries_out += 1;
        Ok(())
    }

    /// Whether the block is as the present table would write it.
    fn takes(&self, raw: &RawBlock<'_>) -> bool {
        self.carries && self.writer.as_ref().is_some_and(|writer| writer.takes_block(raw))
    }

    /// Adds a block as it is. Its first key is a new one, as [`DropRule::keeps_block`] has seen to.
    fn add_block(&mut self, raw: &RawBlock<'_>) -> Result<()> {
        let first = raw.block.key(0);
        let writer = match &mut self.writer {
            Some(writer) if !self.cut.before(&first, writer.estimated_bytes()) => writer,
            _ => self.begin(&first)?,
        };
        writer.add_block(raw)?;
        let entries = raw.block.entries() as u64;
        self.done.entries_in += entries;
        self.done.entries_out += entries;
        self.done.carried_blocks += 1;
        self.done.carried_bytes += raw.bytes.len() as u64;
        Ok(())
    }

    /// Ends the present table, if there is one, and begins the next with `key`.
    #[cold]
    fn begin(&mut self, key: &[u8]) -> Result<&mut TableWriter> {
        if self.writer.is_some() {
            self.end(Some(key))?;
            self.start = Some(key.to_vec());
        }
        self.create()
    }

    fn create(&mut self) -> Result<&mut TableWriter> {
        let (id, path) = (self.context.new_file)();
        self.written.push(id);
        let file = self.context.env.fs.create(&path)?;
        let options = TableOptions {
            codec: self.context.plan.codec,
            dictionary: self.context.dictionary,
            block_bytes: self.context.block_bytes,
            filter_bits: self.context.plan.filter_bits,
            tree: self.context.tree,
        };
        let writer = TableWriter::new(file, id, options);
        let writer = writer.counted_as(Activity::CompactionCompress, self.context.meter);
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

    fn finish(mut self, part: &Part) -> Result<Done> {
        self.end(part.end.as_deref())?;
        Ok(self.done)
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
