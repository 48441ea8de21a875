//! From what is left of tables and log to the rows of the new database.

use super::catalog::Catalog;
use super::options::{RepairProgress, RepairStep};
use super::report::{LostRange, RepairReport, RepairedTree};
use super::work::Work;
use crate::base::cursor::{Cursor, cursor_by_variant};
use crate::base::error::{Error, Result};
use crate::base::key::{Kind, SEQ_MAX, SeqNo};
use crate::base::sync::Arc;
use crate::db::Tree;
use crate::iter::{Merge, Source, Visible};
use crate::memtable::{MemCursor, Memtable};
use crate::table::blob::{BlobReader, BlobRef};
use crate::table::format::{FileKind, file_name};
use crate::table::inspect::key_text;
use crate::table::meta::{FileId, TableMeta};
use crate::table::salvage::{LostPart, SalvageScan, SalvagedTable};
use crate::version::TreeId;
use crate::wal::inspect::salvage;
use crate::wal::replay::{self, ReplayStart};
use crate::wal::{Op, OpIter, PreparedLog, WalBatch};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// After how many rows progress is told.
const ROWS_PER_LOOK: u64 = 10_000;

/// Where the rows of one tree are.
#[derive(Default)]
pub struct TreeSource {
    id: TreeId,
    tables: Vec<Arc<SalvagedTable>>,
    memtable: Arc<Memtable>,
    log_ops: u64,
    /// Operations up to this number are in tables, says the manifest.
    flushed_seq: SeqNo,
    holes: Vec<Hole>,
}

/// Keys and numbers of entries that damage has taken: the log may still have them.
struct Hole {
    after: Option<Vec<u8>>,
    through: Option<Vec<u8>>,
    seqs: std::ops::RangeInclusive<SeqNo>,
}

impl Hole {
    fn has(&self, key: &[u8], seq: SeqNo) -> bool {
        self.seqs.contains(&seq)
            && self.after.as_deref().is_none_or(|after| after <= key)
            && self.through.as_deref().is_none_or(|through| key <= through)
    }
}

impl TreeSource {
    /// Whether damage may have taken an operation that had been in tables. Or what it hides: with
    /// an operation all later ones on its keys are taken, since a delete that went with its put is
    /// in no table, and its number may be none of the damaged one's. (And rows that a range delete
    /// must not hide may have lost their numbers.) What came by an ingest, as the rows and deletes
    /// of a spilled transaction do, is in no log, and cannot follow.
    fn may_have_lost(&self, op: &Op<'_>) -> bool {
        let (key, seq) = (op.key, op.seq);
        self.holes.iter().any(|hole| hole.has(key, seq))
            || op.kind != Kind::RangeDelete
                && !self.holes.is_empty()
                && (self.memtable.get(key, seq).is_some()
                    || self.memtable.newest_covering(key, seq) > 0)
    }

    /// Deletes those keys of a range delete that were taken. Not all of the range: a row in it that
    /// is newer, but has lost its number, would be hidden. Answers whether there are any.
    fn delete_taken(&self, op: &Op<'_>) -> Result<bool> {
        let (start, end, mut any) = (op.key, op.value, false);
        let mut cursor = self.memtable.cursor();
        cursor.seek(start, SEQ_MAX)?;
        let mut last = None;
        while cursor.valid() && cursor.key() < end {
            if last.as_deref() != Some(cursor.key()) {
                let key = last.insert(cursor.key().to_vec());
                let newest = self.memtable.get(key, op.seq);
                let newest = newest.filter(|newest| newest.kind != Kind::Delete);
                let hidden = self.memtable.newest_covering(key, op.seq);
                if newest.is_some_and(|newest| (hidden..op.seq).contains(&newest.seq)) {
                    // As a range: of a prepared transaction, a put of the key has the same number.
                    let after = [key, &b"\0"[..]].concat();
                    self.memtable.delete_range(key, &after, op.seq, 0);
                    any = true;
                }
            }
            cursor.next()?;
        }
        Ok(any)
    }
}

/// Where the rows of all trees are.
pub struct Sources {
    pub trees: BTreeMap<TreeId, TreeSource>,
    /// Transactions that are prepared and not decided.
    pub prepared: PreparedLog,
}

impl Sources {
    /// Reads all tables and the log.
    pub fn read(
        work: &mut Work<'_>,
        catalog: &mut Catalog,
        report: &mut RepairReport,
        progress: &mut dyn FnMut(RepairProgress),
    ) -> Result<Sources> {
        let mut sources = Sources { trees: BTreeMap::new(), prepared: PreparedLog::default() };
        let named: Vec<(TreeId, TableMeta)> = catalog
            .trees
            .iter()
            .flat_map(|(id, tree)| tree.tables.values().map(|meta| (*id, meta.clone())))
            .collect();
        let prepared = catalog.prepared.values().flatten().flat_map(|(_, tables)| tables);
        let mut seen: BTreeSet<FileId> = prepared.map(|meta| meta.id).collect();
        for (tree, meta) in named {
            seen.insert(meta.id);
            let name = catalog.trees.get(&tree).map(|tree| tree.name.clone());
            let name = name.filter(|name| !name.is_empty());
            if !work.files.contains_key(&(FileKind::Table, meta.id)) {
                sources.note_missing(catalog, report, tree, name.as_deref(), &meta);
                continue;
            }
            let table = read_table(work, (FileKind::Table, meta.id), meta.ingest_seq, progress)?;
            note_table(report, name.as_deref(), &table, Some(&meta));
            sources.add(tree, table, Some(&meta));
        }
        if !catalog.complete {
            sources.read_unnamed(work, catalog, &seen, report, progress)?;
        }
        for (id, known) in &catalog.trees {
            let source = sources.trees.entry(*id).or_default();
            source.id = *id;
            source.flushed_seq = known.flushed_seq;
            if !catalog.complete {
                let newest = source.tables.iter().filter_map(|table| table.meta.as_ref());
                let newest = newest.map(|meta| meta.max_seq).max().unwrap_or(0);
                source.flushed_seq = source.flushed_seq.max(newest);
            }
        }
        sources.read_log(work, catalog, report, progress)?;
        let undecided = sources.prepared.undecided.values();
        let prepared = undecided.flat_map(|one| OpIter::new(&one.ops, 1).map(|op| op.tree));
        for id in prepared.collect::<BTreeSet<TreeId>>() {
            // A tree may have nothing else.
            if catalog.claim(id).is_some() {
                sources.tree(id);
            }
        }
        catalog.name_all();
        assert!(sources.trees.iter().all(|(id, source)| source.id == *id));
        Ok(sources)
    }

    fn tree(&mut self, id: TreeId) -> &mut TreeSource {
        let source = self.trees.entry(id).or_default();
        source.id = id;
        source
    }

    /// Takes in the tables that no edit names.
    fn read_unnamed(
        &mut self,
        work: &mut Work<'_>,
        catalog: &mut Catalog,
        seen: &BTreeSet<FileId>,
        report: &mut RepairReport,
        progress: &mut dyn FnMut(RepairProgress),
    ) -> Result<()> {
        let tables = work.files.keys().filter(|(kind, _)| *kind == FileKind::Table);
        let unnamed: Vec<FileId> = tables
            .map(|(_, id)| *id)
            .filter(|id| !seen.contains(id) && !catalog.removed.contains(id))
            .collect();
        for id in unnamed {
            let table = read_table(work, (FileKind::Table, id), 0, progress)?;
            let tree = match table.tree.filter(|tree| *tree != 0) {
                Some(tree) if catalog.claim(tree).is_none() => continue,
                Some(tree) => tree,
                None if table.is_lost() => {
                    note_table(report, None, &table, None);
                    continue;
                }
                None => catalog.claim_for_file(id),
            };
            let name = catalog.trees.get(&tree).map(|tree| tree.name.clone());
            let name = name.filter(|name| !name.is_empty());
            note_table(report, name.as_deref(), &table, None);
            self.add(tree, table, None);
        }
        Ok(())
    }

    fn add(&mut self, tree: TreeId, table: SalvagedTable, known: Option<&TableMeta>) {
        let source = self.tree(tree);
        if let Some(meta) = known.or(table.meta.as_ref()) {
            let lost = table.lost.iter().filter(|part| part.entries != Some(0));
            source.holes.extend(lost.map(|part| Hole {
                after: part.after.clone(),
                through: part.through.clone(),
                seqs: meta.min_seq..=meta.max_seq,
            }));
        }
        source.tables.push(Arc::new(table));
    }

    fn note_missing(
        &mut self,
        catalog: &Catalog,
        report: &mut RepairReport,
        id: TreeId,
        tree: Option<&str>,
        meta: &TableMeta,
    ) {
        let part = LostPart {
            offset: 0,
            bytes: meta.file_bytes,
            what: "all of it".to_owned(),
            after: Some(meta.smallest.clone()),
            through: Some(meta.largest.clone()),
            entries: Some(meta.entries),
        };
        let what = if catalog.complete {
            "it is missing"
        } else {
            "it is missing; the lost part of the manifest may have taken it out of the tree"
        };
        let lost = vec![LostRange::from(&part)];
        report.note_lost(&file_name(FileKind::Table, meta.id), tree, what, lost);
        self.tree(id).holes.push(Hole {
            after: part.after,
            through: part.through,
            seqs: meta.min_seq..=meta.max_seq,
        });
    }

    /// Reads the log: as an open would or, if it is damaged, every sound record.
    fn read_log(
        &mut self,
        work: &mut Work<'_>,
        catalog: &mut Catalog,
        report: &mut RepairReport,
        progress: &mut dyn FnMut(RepairProgress),
    ) -> Result<()> {
        let fs = &*work.env.fs;
        let first = if catalog.complete { catalog.log.file } else { 0 };
        let wals: Vec<(FileId, PathBuf)> = work
            .files
            .keys()
            .filter(|(kind, id)| *kind == FileKind::Wal && *id >= first)
            .map(|(kind, id)| (*id, work.from.join(file_name(*kind, *id))))
            .collect();
        let first_missing = first != 0 && !work.files.contains_key(&(FileKind::Wal, first));
        if first_missing {
            let what = "the manifest says that the log starts with it, but it is missing";
            report.note(&file_name(FileKind::Wal, first), None, what);
        }
        let is_there = |id| work.files.contains_key(&(FileKind::Wal, id));
        if let Some((id, bytes)) = catalog.log_end.take_if(|(id, _)| !is_there(*id)) {
            let what = format!(
                "it was the end of the log, with {bytes} bytes, when the database was closed; it \
                 is missing"
            );
            report.note(&file_name(FileKind::Wal, id), None, what);
        }
        if catalog.complete && !first_missing && self.replay(work, catalog, &wals, report)? {
            return Ok(());
        }
        // With a sound manifest it is the log for which this is done.
        let mut is_damaged = catalog.complete;
        for (id, path) in wals {
            let name = file_name(FileKind::Wal, id);
            progress(work.progress(RepairStep::Reading, &name));
            let read = salvage(fs, &path, id, &mut |batch| self.read_record(catalog, &batch));
            let found = match read {
                Err(error @ (Error::Io { .. } | Error::Corruption { .. })) => {
                    report.note(&name, None, error.to_string());
                    is_damaged = true;
                    continue;
                }
                other => other?,
            };
            if !found.lost.is_empty() {
                is_damaged = true;
                let lost = found.lost.iter().map(|part| LostRange {
                    offset: part.start,
                    bytes: part.end - part.start,
                    what: "no sound record is there".to_owned(),
                    after: None,
                    through: None,
                    entries: None,
                });
                let what = format!("{} records of it can be read", found.records);
                report.note_lost(&name, None, what, lost.collect());
            }
            work.bytes_done += work.files.get(&(FileKind::Wal, id)).copied().unwrap_or(0);
        }
        self.prepared.forget_decided(catalog.log.seq + 1);
        if is_damaged {
            self.note_undecided(&work.last_log(), report);
        }
        Ok(())
    }

    /// Reports what is prepared by what is left of the log.
    fn note_undecided(&self, log: &str, report: &mut RepairReport) {
        for xid in self.prepared.undecided.keys() {
            let what = format!(
                "no decision on the transaction `{}` can be read, so it is prepared again; what is \
                 lost of the log may have had one: ask its coordinator before you decide it, since \
                 to commit it once more replaces what was committed later",
                xid.escape_ascii()
            );
            report.note(log, None, what);
        }
    }

    /// Reads the log as an open would; false if it is damaged, and nothing is taken.
    fn replay(
        &mut self,
        work: &Work<'_>,
        catalog: &mut Catalog,
        wals: &[(FileId, PathBuf)],
        report: &mut RepairReport,
    ) -> Result<bool> {
        let start = ReplayStart {
            flushed_to: catalog.log.seq,
            durable: catalog.last_seq,
            end: catalog.log_end,
        };
        let sink = &mut |batch: WalBatch<'_>| self.read_record(catalog, &batch);
        match replay::replay(&*work.env.fs, work.from, wals, start, sink) {
            Ok(end) => {
                self.prepared.forget_decided(end.whole_from);
                return Ok(true);
            }
            Err(Error::Corruption { path, offset, what }) => {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                report.note(&name, None, format!("the log is damaged at byte {offset}: {what}"));
            }
            Err(Error::Io { .. }) => {}
            Err(error) => return Err(error),
        }
        for source in self.trees.values_mut() {
            (source.memtable, source.log_ops) = (Arc::default(), 0);
        }
        self.prepared = PreparedLog::default();
        Ok(false)
    }

    fn read_record(&mut self, catalog: &mut Catalog, batch: &WalBatch<'_>) -> Result<()> {
        let mut prepared = std::mem::take(&mut self.prepared);
        let result = prepared.read(batch, &mut |op, _| self.apply(catalog, op));
        self.prepared = prepared;
        result
    }

    /// Takes an operation that no table holds.
    fn apply(&mut self, catalog: &mut Catalog, op: &Op<'_>) -> Result<()> {
        if catalog.claim(op.tree).is_none() {
            return Ok(());
        }
        let source = self.tree(op.tree);
        if op.seq <= source.flushed_seq && !source.may_have_lost(op) {
            let is_range = op.kind == Kind::RangeDelete;
            source.log_ops += u64::from(is_range && source.delete_taken(op)?);
            return Ok(());
        }
        source.log_ops += 1;
        match op.kind {
            // What is read at the end is the newest.
            Kind::RangeDelete => source.memtable.delete_range(op.key, op.value, op.seq, 0),
            _ => source.memtable.insert(op.key, op.seq, op.kind, op.value),
        }
        Ok(())
    }
}

/// Reports what is lost of a table.
pub fn note_table(
    report: &mut RepairReport,
    tree: Option<&str>,
    table: &SalvagedTable,
    known: Option<&TableMeta>,
) {
    if table.lost.is_empty() {
        return;
    }
    let entries = known.or(table.meta.as_ref()).map(|meta| meta.entries);
    let of = entries.map(|entries| format!(" of {entries}")).unwrap_or_default();
    let what = format!("{}{of} entries of it can be read", table.entries);
    let lost = table.lost.iter().map(LostRange::from).collect();
    report.note_lost(&file_name(FileKind::Table, table.id()), tree, what, lost);
}

pub fn read_table(
    work: &mut Work<'_>,
    (kind, id): (FileKind, FileId),
    ingest_seq: SeqNo,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<SalvagedTable> {
    let name = file_name(kind, id);
    progress(work.progress(RepairStep::Reading, &name));
    let path = work.from.join(&name);
    let mut table = SalvagedTable::open(work.env, &path, id, ingest_seq)?;
    if table.lacks_dictionary {
        let others = work.dictionaries();
        table = SalvagedTable::open_with(work.env, &path, (id, ingest_seq), &others)?;
    }
    work.bytes_done += work.files.get(&(kind, id)).copied().unwrap_or(0);
    Ok(table)
}

/// One source of a tree's rows.
enum RowSource {
    Log { cursor: MemCursor, max_seq: SeqNo },
    Table { cursor: SalvageScan, max_seq: SeqNo },
}

cursor_by_variant!(
    RowSource,
    cursor in RowSource::Log { cursor, .. },
    RowSource::Table { cursor, .. }
);

impl Source for RowSource {
    fn max_seq(&self) -> SeqNo {
        match self {
            RowSource::Log { max_seq, .. } | RowSource::Table { max_seq, .. } => *max_seq,
        }
    }
}

/// Writes the rows of one tree to `tree`.
pub fn write(
    work: &mut Work<'_>,
    mut source: TreeSource,
    tree: &Tree,
    report: &mut RepairReport,
    progress: &mut dyn FnMut(RepairProgress),
) -> Result<RepairedTree> {
    let mut done = RepairedTree {
        name: tree.name().to_owned(),
        id: source.id,
        tables: source.tables.len() as u64,
        log_ops: source.log_ops,
        ..RepairedTree::default()
    };
    // Of entries with equal numbers the first source's wins: that is the newest file's.
    source.tables.sort_by_key(|table| std::cmp::Reverse(table.id()));
    assert!(source.tables.is_sorted_by(|newer, older| newer.id() > older.id()), "a file once");
    let mut deletes = vec![source.memtable.range_deletes()];
    let (cursor, max_seq) = (source.memtable.cursor(), source.memtable.last_seq());
    let mut children = vec![RowSource::Log { cursor, max_seq }];
    for table in &source.tables {
        deletes.push(Arc::new(table.ranges.clone()));
        children.push(RowSource::Table { cursor: table.scan(), max_seq: table.max_seq() });
    }
    let mut rows = Visible::new(Merge::new(children), SEQ_MAX, deletes, Vec::new(), None);
    let mut ingest = tree.ingest()?;
    progress(work.progress(RepairStep::Writing, tree.name()));
    rows.seek_first()?;
    while rows.valid() {
        let (key, value) = (rows.key(), rows.value());
        let bytes = match rows.kind() {
            Kind::Blob => match open_blob(work, value)? {
                Ok(mut reader) => {
                    done.blobs += 1;
                    ingest.add_reader(key, &mut reader)?
                }
                Err((name, lost)) => {
                    let lost = LostRange {
                        after: Some(key_text(key)),
                        through: Some(key_text(key)),
                        entries: Some(1),
                        ..lost
                    };
                    report.note_lost(&name, Some(tree.name()), "a row is lost", vec![lost]);
                    rows.next()?;
                    continue;
                }
            },
            _ => {
                ingest.add(key, value)?;
                value.len() as u64
            }
        };
        done.bytes += key.len() as u64 + bytes;
        done.rows += 1;
        work.rows += 1;
        if done.rows.is_multiple_of(ROWS_PER_LOOK) {
            progress(work.progress(RepairStep::Writing, tree.name()));
        }
        rows.next()?;
    }
    let written = ingest.finish()?;
    assert_eq!(written, done.rows, "each row that is reported is written");
    assert!(done.blobs <= done.rows, "a blob is the value of a row");
    progress(work.progress(RepairStep::Writing, tree.name()));
    Ok(done)
}

/// The name of a blob file that cannot be read, and what is wrong with it.
pub type BadBlob = (String, LostRange);

/// A reader of a blob all of which has been checked.
pub fn open_blob(
    work: &Work<'_>,
    reference: &[u8],
) -> Result<std::result::Result<BlobReader, BadBlob>> {
    let bad = |name: &str, offset, bytes, what: &str| {
        let what = what.to_owned();
        let (after, through, entries) = (None, None, None);
        Ok(Err((name.to_owned(), LostRange { offset, bytes, what, after, through, entries })))
    };
    let Some(blob) = BlobRef::decode(reference) else {
        return bad("a blob", 0, 0, "the reference to it is malformed");
    };
    let name = file_name(FileKind::Blob, blob.file);
    if !work.files.contains_key(&(FileKind::Blob, blob.file)) {
        return bad(&name, 0, blob.file_bytes(), "it is missing");
    }
    let open = || BlobReader::open(work.env.fs.open(&work.from.join(&name))?, blob);
    match open().and_then(|mut reader| reader.verify()).and_then(|_| open()) {
        Ok(reader) => Ok(Ok(reader)),
        Err(Error::Corruption { offset, what, .. }) => {
            bad(&name, offset, blob.bytes.saturating_sub(offset), &what)
        }
        Err(error @ Error::Io { .. }) => bad(&name, 0, blob.bytes, &error.to_string()),
        Err(error) => Err(error),
    }
}
