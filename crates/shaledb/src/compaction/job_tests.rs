use super::*;
use crate::base::coding::hash;
use crate::base::config::{Codec, Codecs};
use crate::base::error::Error;
use crate::base::key::SEQ_MAX;
use crate::base::ranges::RangeDelete;
use crate::base::stats::Recorder;
use crate::compaction::plan::{Action, Reason};
use crate::compaction::policy::LAST;
use crate::compaction::policy::chosen::{Choice, LevelCodecs};
use crate::compaction::range::KeyRange;
use crate::fs::Fs;
use crate::fs::mem::{Call, Fault, MemClock, MemFs};
use crate::table::{BlobRef, TableEnv, Why};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::{Path, PathBuf};

const CODECS: [Codec; 4] = [Codec::None, Codec::Lz4, Codec::Zlib(1), Codec::Zstd(3)];
const KEYS: u32 = 2000;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: Vec<u8>,
    seq: SeqNo,
    kind: Kind,
    value: Vec<u8>,
}

fn key(number: u32) -> Vec<u8> {
    // Two lengths.
    format!("key/{number:06}{}", if number.is_multiple_of(3) { "/x" } else { "" }).into_bytes()
}

fn put(number: u32, seq: SeqNo, value: Vec<u8>) -> Entry {
    Entry { key: key(number), seq, kind: Kind::Put, value }
}

/// A value that every codec makes smaller.
fn text(number: u32) -> Vec<u8> {
    format!("{number:>40}").into_bytes()
}

/// A disk, and how tables are written to it.
struct World {
    fs: MemFs,
    env: Env,
    shared: Arc<TableEnv>,
    next: AtomicU64,
    dictionary: TableDictionary,
    block_bytes: usize,
    filter_bits: u8,
    merge_bytes: u64,
}

impl World {
    fn new() -> World {
        let fs = MemFs::new();
        fs.create_dir_all(Path::new("/t")).unwrap();
        let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
        let shared = TableEnv::new(env.clone(), 8 << 20, Arc::new(Recorder::new()));
        let (dictionary, block_bytes, filter_bits) = (TableDictionary::None, 512, 10);
        let (next, merge_bytes) = (AtomicU64::new(1), 64 << 20);
        World { fs, env, shared, next, dictionary, block_bytes, filter_bits, merge_bytes }
    }

    fn new_file(&self) -> (FileId, PathBuf) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (id, path(id))
    }

    fn write(&self, codec: Codec, entries: &[Entry], deletes: &RangeDeletes) -> TableMeta {
        let World { block_bytes, filter_bits, .. } = *self;
        let dictionary = self.dictionary.clone();
        let (id, path) = self.new_file();
        let why = Why::Set;
        let options = TableOptions { codec, why, dictionary, block_bytes, filter_bits, tree: 1 };
        let mut writer = TableWriter::new(self.fs.create(&path).unwrap(), id, options);
        for entry in entries {
            writer.add(&entry.key, entry.seq, entry.kind, &entry.value).unwrap();
        }
        writer.add_range_deletes(deletes);
        writer.finish().unwrap()
    }

    fn open(&self, meta: TableMeta) -> Arc<Table> {
        let path = path(meta.id);
        Table::new(meta, path, &self.shared)
    }

    fn table(&self, codec: Codec, entries: &[Entry]) -> Arc<Table> {
        self.open(self.write(codec, entries, &RangeDeletes::default()))
    }
}

fn path(id: FileId) -> PathBuf {
    Path::new("/t").join(file_name(FileKind::Table, id))
}

/// A compaction into the last level, with nothing below.
struct Job<'a> {
    world: &'a World,
    plan: Plan,
    codecs: LevelCodecs,
    inputs: Vec<(usize, Vec<Arc<Table>>)>,
    snapshots: Vec<SeqNo>,
}

impl Job<'_> {
    fn new(world: &World, codec: Codec, inputs: Vec<(usize, Vec<Arc<Table>>)>) -> Job<'_> {
        let metas: Vec<Arc<TableMeta>> =
            inputs.iter().flat_map(|(_, tables)| tables).map(|t| t.meta.clone()).collect();
        let plan = Plan {
            reason: Reason::Size,
            action: Action::Merge,
            inputs: Vec::new(),
            output_level: LAST,
            is_last: true,
            range: KeyRange::hull(&metas).unwrap(),
            input_bytes: 0,
            output_level_bytes: 0,
            grandparents: Vec::new(),
            below: Vec::new(),
            choice: Choice { codec, dictionary: true, why: Why::Set },
            block_bytes: None,
            filter_bits: world.filter_bits,
            building: false,
            table_bytes: 1 << 20,
        };
        Job { world, plan, codecs: Codecs::all(codec).into(), inputs, snapshots: Vec::new() }
    }

    fn merge(&self, part: &Part) -> Result<Done> {
        self.merge_counting_yields(part).map(|(done, _)| done)
    }

    fn context(&self) -> Context<'_> {
        Context {
            env: &self.world.env,
            meter: &self.world.shared.meter,
            memory: &self.world.shared.memory,
            memory_bytes: self.world.merge_bytes,
            plan: &self.plan,
            inputs: &self.inputs,
            part_bytes: 1 << 20,
            snapshots: &self.snapshots,
            state: None,
            tree: 1,
            codecs: &self.codecs,
            probe: None,
            dictionary: &self.world.dictionary,
            block_bytes: self.world.block_bytes,
            dir: Path::new("/t"),
            next_file: &self.world.next,
        }
    }

    /// The result, and how many yield points the merge has passed.
    fn merge_counting_yields(&self, part: &Part) -> Result<(Done, u32)> {
        let context = self.context();
        let mut merge = PartMerge::begin(&context, part)?;
        let mut yields = 0;
        while merge.step()? {
            yields += 1;
        }
        Ok((merge.finish()?, yields))
    }

    /// What must come out of a part: every entry of the inputs, decided one by one.
    fn expected(&self, part: &Part) -> Vec<Entry> {
        let mut all: Vec<Entry> =
            self.inputs.iter().flat_map(|(_, tables)| tables).flat_map(content).collect();
        all.sort_by(|a, b| key::compare(&a.key, a.seq, &b.key, b.seq));
        let tables = self.inputs.iter().flat_map(|(_, tables)| tables);
        let deletes: Vec<RangeDeletes> =
            tables.map(|t| t.range_deletes().unwrap().clip(b"", None)).collect();
        let deletes = RangeDeletes::union(&deletes);
        let mut filter = DropFilter::new(&self.snapshots, Bottom::of(&self.plan), deletes);
        let mut kept = Vec::new();
        for mut entry in all {
            if part.start.as_ref().is_some_and(|start| entry.key < *start)
                || part.end.as_ref().is_some_and(|end| entry.key >= *end)
            {
                continue;
            }
            match filter.decide(&entry.key, entry.seq, entry.kind) {
                Decision::Drop => continue,
                Decision::Ask => unreachable!("nobody is to be asked"),
                Decision::Keep => {}
                Decision::KeepAsSeqZero => entry.seq = 0,
            }
            kept.push(entry);
        }
        kept
    }

    /// Runs a part and compares what it made with what must come out.
    fn check(&self, part: &Part) -> Done {
        let done = self.merge(part).unwrap();
        let mut expected = self.expected(part).into_iter().peekable();
        let mut last: Option<Vec<u8>> = None;
        for meta in &done.tables {
            let table = self.world.open(meta.clone());
            table.verify().unwrap();
            let got = content(&table);
            let wanted: Vec<Entry> = expected.by_ref().take(got.len()).collect();
            assert_eq!(got, wanted);
            let ends = got.first().zip(got.last());
            if let Some((first, end)) = ends {
                assert!(last.is_none_or(|last| last < first.key), "no key is cut in two");
                last = Some(end.key.clone());
            }
            self.check_meta(&table, &got);
            for entry in &got {
                let found = table.get(&entry.key, hash(&entry.key), SEQ_MAX).unwrap();
                assert!(found.is_some(), "the filter lets what is there through");
            }
        }
        assert_eq!(expected.next(), None);
        done
    }

    /// The table's description is that of a table to which the entries are added one by one.
    fn check_meta(&self, table: &Arc<Table>, entries: &[Entry]) {
        let deletes = table.range_deletes().unwrap().clip(b"", None);
        let again = self.world.write(self.plan.choice.codec, entries, &deletes);
        let meta = &table.meta;
        let alike = TableMeta {
            id: meta.id,
            file_bytes: meta.file_bytes,
            blocks: meta.blocks,
            raw_bytes: meta.raw_bytes,
            data_bytes: meta.data_bytes,
            ..again
        };
        assert_eq!(**meta, alike);
    }
}

fn content(table: &Arc<Table>) -> Vec<Entry> {
    let mut scan = table.scan(None, None);
    scan.seek_first().unwrap();
    let mut entries = Vec::new();
    while scan.valid() {
        let (key, value) = (scan.key().to_vec(), scan.value().to_vec());
        entries.push(Entry { key, seq: scan.seq(), kind: scan.kind(), value });
        scan.next().unwrap();
    }
    entries
}

/// Random entries of a run with sequence numbers from `first` on: few keys here, many there.
fn random_entries(rng: &mut StdRng, first: SeqNo, density: f64) -> Vec<Entry> {
    let mut entries = Vec::new();
    let (deletes, blobs) = ([0.0, 0.02, 0.3], [0.0, 0.02]);
    let deletes = deletes[rng.random_range(0..deletes.len())];
    let blobs = blobs[rng.random_range(0..blobs.len())];
    let versions = [1, 1, 3][rng.random_range(0..3)];
    let zero = first == 1 && rng.random_bool(0.6);
    let mut dense = true;
    for number in 0..KEYS {
        if rng.random_bool(0.01) {
            dense = rng.random_bool(0.5);
        }
        if !rng.random_bool(if dense { density } else { density * 0.01 }) {
            continue;
        }
        let mut seqs: Vec<SeqNo> =
            (0..rng.random_range(1..=versions)).map(|_| first + rng.random_range(0..90)).collect();
        seqs.sort_unstable_by(|a, b| b.cmp(a));
        seqs.dedup();
        for seq in if zero { vec![0] } else { seqs } {
            let kind = match rng.random::<f64>() {
                x if x < deletes => Kind::Delete,
                x if x < deletes + blobs => Kind::Blob,
                _ => Kind::Put,
            };
            let value = match kind {
                Kind::Delete => Vec::new(),
                Kind::Blob => BlobRef { file: 1 + number as u64 % 7, bytes: 9 }.encode(),
                _ if rng.random_bool(0.1) => (0..40).map(|_| rng.random()).collect(),
                _ => text(number),
            };
            entries.push(Entry { key: key(number), seq, kind, value });
        }
    }
    entries
}

/// Tables of a run, cut at random keys; now and then with range deletes or as if ingested.
fn random_run(world: &World, rng: &mut StdRng, first: SeqNo, density: f64) -> Vec<Arc<Table>> {
    let codec = CODECS[rng.random_range(0..CODECS.len())];
    let mut entries = random_entries(rng, first, density);
    let ingested = rng.random_bool(0.2);
    if ingested {
        entries.dedup_by(|a, b| a.key == b.key);
        entries.iter_mut().for_each(|entry| entry.seq = 0);
    }
    let pieces = rng.random_range(1..4);
    let mut tables = Vec::new();
    for piece in 0..pieces {
        let (start, end) = (key(KEYS / pieces * piece), key(KEYS / pieces * (piece + 1)));
        let inside =
            |entry: &&Entry| start <= entry.key && (entry.key < end || piece + 1 == pieces);
        let part: Vec<Entry> = entries.iter().filter(inside).cloned().collect();
        let mut deletes = RangeDeletes::default();
        if !ingested && first > 1 && rng.random_bool(0.2) {
            let from = KEYS / pieces * piece + rng.random_range(0..KEYS / pieces - 30);
            let (start, end) = (key(from), key(from + rng.random_range(1..30)));
            deletes = RangeDeletes::new([RangeDelete { start, end, seq: first + 95 }]);
        }
        if part.is_empty() && deletes.is_empty() {
            continue;
        }
        let mut meta = world.write(codec, &part, &deletes);
        if ingested {
            meta.ingest_seq = first;
            (meta.min_seq, meta.max_seq) = (first, first);
        }
        tables.push(world.open(meta));
    }
    tables
}

#[test]
fn outputs_are_those_of_a_merge_row_by_row() {
    let mut reused = 0;
    let mut reused_with = [0u64; 5];
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut world = World::new();
        world.block_bytes = [256, 512, 2048][rng.random_range(0..3)];
        world.filter_bits = [0, 10][rng.random_range(0..2)];
        world.merge_bytes = [100 * BYTES_PER_ROW, 64 << 20][rng.random_range(0..2)];
        // The oldest run last; of them, those of level 0 are tables of their own.
        let runs = rng.random_range(1..4u64);
        let level0 = rng.random_bool(0.3);
        let mut inputs = Vec::new();
        for run in (0..runs).rev() {
            let density = if run == 0 { 0.9 } else { 0.2 };
            let tables = random_run(&world, &mut rng, 1 + 100 * run, density);
            match (level0 && run > 0, inputs.last_mut()) {
                (true, Some((0, list))) => {
                    let list: &mut Vec<Arc<Table>> = list;
                    list.extend(tables);
                }
                (true, _) => inputs.push((0, tables)),
                (false, _) => inputs.push((LAST - run as usize, tables)),
            }
        }
        inputs.retain(|(_, tables)| !tables.is_empty());
        let codec = CODECS[rng.random_range(0..CODECS.len())];
        let mut job = Job::new(&world, codec, inputs);
        job.plan.table_bytes = [4 << 10, 1 << 20][rng.random_range(0..2)];
        let middle = rng.random_bool(0.4);
        if middle {
            // Some of the keys lie below the output, too.
            job.plan.output_level = LAST - 1;
            let cuts = [key(KEYS / 5), key(KEYS / 2)];
            let below = TableMeta {
                smallest: cuts[0].clone(),
                largest: cuts[1].clone(),
                ..TableMeta::default()
            };
            job.plan.below = vec![vec![Arc::new(below)]];
        }
        job.snapshots = [vec![], vec![50], vec![50, 150]][rng.random_range(0..3)].clone();
        let cut = key(rng.random_range(0..KEYS));
        let parts =
            [Part { start: None, end: Some(cut.clone()) }, Part { start: Some(cut), end: None }];
        let parts = if rng.random_bool(0.5) { &parts[..] } else { &[Part::default()] };
        for part in parts {
            let done = job.check(part);
            reused += done.blocks_reused;
            for (count, is_so) in reused_with.iter_mut().zip([
                middle,
                !job.snapshots.is_empty(),
                job.inputs.iter().flat_map(|(_, t)| t).any(|table| table.meta.ingest_seq > 0),
                done.tables.iter().any(|meta| meta.deletes > 0),
                done.tables.iter().any(|meta| !meta.blobs.is_empty()),
            ]) {
                *count += u64::from(is_so) * done.blocks_reused;
            }
        }
    }
    println!("{reused} blocks reused; {reused_with:?}");
    assert!(reused > 1000 && reused_with.iter().all(|&count| count > 100), "{reused_with:?}");
}

/// All rows of the last level, and a few from above.
fn one_update(world: &World, codec: Codec) -> Job<'_> {
    let base: Vec<Entry> = (0..KEYS).map(|number| put(number, 0, text(number))).collect();
    let above = [put(700, 9, text(1)), put(701, 10, text(2))];
    let (above, base) = (world.table(codec, &above), world.table(codec, &base));
    Job::new(world, codec, vec![(LAST - 1, vec![above]), (LAST, vec![base])])
}

#[test]
fn all_but_the_blocks_that_change_are_reused() {
    for codec in CODECS {
        let world = World::new();
        let job = one_update(&world, codec);
        let done = job.check(&Part::default());
        let blocks = job.inputs[1].1[0].meta.blocks;
        // The first block of a table is always written anew.
        assert!((blocks - 4..blocks).contains(&done.blocks_reused), "{codec}: {done:?}");
        assert_eq!((done.entries_in, done.entries_out), (u64::from(KEYS) + 2, u64::from(KEYS)));
        let data = done.tables[0].data_bytes;
        assert!(done.bytes_reused < data && done.bytes_reused > data - 2000, "{codec}: {done:?}");
    }
}

#[test]
fn a_block_of_another_codec_is_not_reused() {
    for from in CODECS {
        for to in CODECS {
            let world = World::new();
            let mut job = one_update(&world, from);
            job.plan.choice.codec = to;
            let done = job.check(&Part::default());
            assert_eq!(done.blocks_reused > 0, from == to, "{from} to {to}");
        }
    }
}

#[test]
fn levels_of_one_codec_are_told_apart() {
    let world = World::new();
    let mut job = one_update(&world, Codec::Zstd(3));
    job.codecs = Codecs { middle: Codec::Zstd(1), ..Codecs::all(Codec::Zstd(3)) }.into();
    // In the last level only its own blocks need no new sequence number.
    assert!(job.check(&Part::default()).blocks_reused > 0);
    job.plan.output_level = LAST - 1;
    assert_eq!(job.check(&Part::default()).blocks_reused, 0);
    job.codecs = Codecs { upper: Codec::None, ..Codecs::all(Codec::Zstd(3)) }.into();
    assert!(job.check(&Part::default()).blocks_reused > 0);
}

#[test]
fn plain_blocks_are_reused_where_compressing_does_not_help() {
    let world = World::new();
    let mut rng = StdRng::seed_from_u64(1);
    let mut noise = |number| put(number, 0, (0..40).map(|_| rng.random()).collect());
    let base: Vec<Entry> = (0..KEYS).map(&mut noise).collect();
    let job = Job::new(&world, Codec::Lz4, vec![(LAST, vec![world.table(Codec::Lz4, &base)])]);
    let done = job.check(&Part::default());
    let blocks = job.inputs[0].1[0].meta.blocks;
    assert!(done.blocks_reused > blocks * 3 / 4 && done.blocks_reused < blocks, "{done:?}");
    // Of a table written without a codec, what shrinks is compressed, whatever comes before it.
    let mixed: Vec<Entry> = (0..KEYS)
        .map(|number| if number < 500 { noise(number) } else { put(number, 0, text(number)) })
        .collect();
    let job = Job::new(&world, Codec::Lz4, vec![(LAST, vec![world.table(Codec::None, &mixed)])]);
    let done = job.check(&Part::default());
    assert!(done.blocks_reused > 20, "{done:?}");
    let direct = world.write(Codec::Lz4, &mixed, &RangeDeletes::default());
    let limit = direct.data_bytes + direct.data_bytes / 20;
    assert!(done.tables[0].data_bytes < limit, "{done:?} {direct:?}");
}

#[test]
fn blocks_stay_half_full_however_often_they_are_merged() {
    let world = World::new();
    let base: Vec<Entry> = (0..KEYS).map(|number| put(10 * number, 0, text(number))).collect();
    let mut tables = vec![world.table(Codec::Lz4, &base)];
    let mut reused = 0;
    for round in 1..9 {
        // New rows in every other block, so that those overflow.
        let above: Vec<Entry> =
            (0..KEYS / 20).map(|at| put(200 * at + round, 9, text(at))).collect();
        let above = world.table(Codec::Lz4, &above);
        let job = Job::new(&world, Codec::Lz4, vec![(LAST - 1, vec![above]), (LAST, tables)]);
        let done = job.check(&Part::default());
        reused += done.blocks_reused;
        for meta in &done.tables {
            assert!(2 * meta.raw_bytes >= (meta.blocks - 1) * world.block_bytes as u64, "{meta:?}");
        }
        tables = done.tables.into_iter().map(|meta| world.open(meta)).collect();
    }
    assert!(reused > 500, "{reused}");
}

#[test]
fn blocks_with_a_dictionary_are_reused() {
    let with = World { dictionary: TableDictionary::OfTable, ..World::new() };
    let (fs, env, shared) = (with.fs.clone(), with.env.clone(), Arc::clone(&with.shared));
    let without = World { fs, env, shared, next: AtomicU64::new(100), ..World::new() };
    let row = |number: u32| {
        let value = format!("{{\"number\":{number},\"status\":\"active\",\"currency\":\"EUR\"}}");
        put(number, 0, value.into_bytes())
    };
    let base: Vec<Entry> = (0..KEYS).map(row).collect();
    let base = with.table(Codec::Zstd(3), &base);
    let blocks = base.meta.blocks;
    let above = with.table(Codec::Zstd(3), &[put(KEYS / 2, 9, b"changed".to_vec())]);
    let inputs = vec![(LAST - 1, vec![above]), (LAST, vec![base])];
    let mut job = Job::new(&with, Codec::Zstd(3), inputs);
    let done = job.check(&Part::default());
    assert!(done.blocks_reused > blocks * 3 / 4, "{done:?} of {blocks}");
    // Into tables that are to have none, none is reused.
    job.world = &without;
    assert_eq!(job.check(&Part::default()).blocks_reused, 0);
}

#[test]
fn a_job_that_only_reuses_blocks_yields_and_can_be_given_up() {
    let mut world = World::new();
    world.block_bytes = 64;
    let job = one_update(&world, Codec::None);
    let (_, yields) = job.merge_counting_yields(&Part::default()).unwrap();
    assert!(yields > 1, "{yields}");
    let (before, context) = (world.next.load(Ordering::Relaxed), job.context());
    let mut merge = PartMerge::begin(&context, &Part::default()).unwrap();
    assert!(merge.step().unwrap());
    assert_eq!(merge.into_files(), [before], "what was made is the caller's to remove");
}

/// A frame tells no level of zstd: a table whose level saves less is made anew, block by block.
#[test]
fn a_rewrite_for_another_level_of_zstd_reuses_no_block() {
    let world = World::new();
    let put = |number| Entry { key: key(number), seq: 0, kind: Kind::Put, value: text(number) };
    let entries: Vec<Entry> = (0..KEYS).map(put).collect();
    for (has, wanted, reuses) in [(-3, 3, false), (1, 3, true), (3, -3, true)] {
        let mut meta = TableMeta::clone(&world.table(Codec::Zstd(has), &entries).meta);
        meta.codec = Some(Codec::Zstd(has));
        let inputs = vec![(LAST, vec![world.open(meta)])];
        let mut job = Job::new(&world, Codec::Zstd(wanted), inputs);
        job.plan.choice.why = Why::CpuFree;
        job.plan.choice.dictionary = false;
        let done = job.merge(&Part::default()).unwrap();
        assert_eq!(done.blocks_reused > 0, reuses, "{has} to {wanted}");
    }
}

#[test]
fn failing_calls_and_flipped_bytes_stop_the_job() {
    let world = World::new();
    let job = one_update(&world, Codec::Zstd(3));
    let whole = job.expected(&Part::default());
    job.check(&Part::default());
    for call in [Call::Append, Call::Create, Call::Sync, Call::Read] {
        let before = world.fs.counts().of(call);
        assert!(job.merge(&Part::default()).unwrap().blocks_reused > 0);
        for nth in 1..=world.fs.counts().of(call) - before {
            world.fs.fail(call, nth, Fault::Io, true);
            assert!(job.merge(&Part::default()).is_err(), "{call:?} {nth}");
            world.fs.clear_faults();
        }
    }
    let base = &job.inputs[1].1[0];
    for offset in (0..base.meta.data_bytes).step_by(97) {
        assert!(world.fs.corrupt(&path(base.meta.id), offset, 0x10));
        let error = job.merge(&Part::default()).unwrap_err();
        assert!(matches!(error, Error::Corruption { .. }), "{error}");
        assert!(world.fs.corrupt(&path(base.meta.id), offset, 0x10));
    }
    let done = job.merge(&Part::default()).unwrap();
    let got: Vec<Entry> =
        done.tables.into_iter().flat_map(|meta| content(&world.open(meta))).collect();
    assert_eq!(got, whole);
}

#[test]
fn a_table_ends_where_its_writer_would_hold_too_much() {
    let mut world = World::new();
    let put = |number| Entry { key: key(number), seq: 1, kind: Kind::Put, value: text(number) };
    let entries: Vec<Entry> = (0..KEYS).map(put).collect();
    let rows_max = KEYS as u64 / 3;
    for (merge_bytes, tables) in [(64 << 20, 1), (rows_max * BYTES_PER_ROW, 3)] {
        world.merge_bytes = merge_bytes;
        // Of level 0, so that rows are merged; of one run, so that blocks are reused. What stays in
        // level 0 is one table.
        for (level, output) in [(0, LAST), (LAST - 1, LAST), (0, 0)] {
            let table = world.table(Codec::None, &entries);
            let mut job = Job::new(&world, Codec::None, vec![(level, vec![table])]);
            job.plan.output_level = output;
            let done = job.check(&Part::default());
            if output == 0 {
                assert_eq!(done.tables.len(), 1);
                continue;
            }
            assert_eq!(done.tables.len(), tables, "level {level}");
            let block = world.block_bytes as u64 / 8;
            assert!(
                done.tables.iter().all(|meta| meta.entries <= merge_bytes / BYTES_PER_ROW + block)
            );
        }
    }
    assert_eq!(world.shared.memory.work(), 0);
}

#[path = "job_cuts_tests.rs"]
mod cuts;

#[path = "older_tests.rs"]
mod older_tests;
