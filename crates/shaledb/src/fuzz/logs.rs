//! Log files of any bytes: WALs and manifests.

use super::input::{Input, assert_corruption};
use crate::base::error::Result;
use crate::base::key::Kind;
use crate::base::stats::Recorder;
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{Env, Fs};
use crate::table::format::{FileKind, file_name};
use crate::table::{Table, TableEnv, TableMeta};
use crate::version::edit::{self, Edit};
use crate::version::manifest::{self, CURRENT, MANIFEST, Manifest, ManifestDump};
use crate::version::{ManifestTail, Version};
use crate::wal::inspect::{WalDump, salvage};
use crate::wal::payload::prepared_ops;
use crate::wal::record::{Format, Framer, Seal, WAL, file_header};
use crate::wal::replay::{ReplayEnd, ReplayStart, cut, replay};
use crate::wal::{LogTail, PreparedLog};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "/d";

/// The content of a log file. If the first byte of the input is even, the rest of it; else made
/// of pieces: length u8 (255: followed by u16), then that many bytes, which become a record (with
/// its serial number before them if `serials`), or after a length of 254 bytes as they are.
fn log_content(input: &mut Input<'_>, format: Format, file: u64, serials: bool) -> Vec<u8> {
    if input.byte().is_multiple_of(2) {
        return input.take(usize::MAX).to_vec();
    }
    let seal = Seal::new(format, file);
    let mut content = file_header(format, seal).to_vec();
    let mut number = 0u64;
    while !input.is_empty() {
        let length = match input.byte() {
            254 => {
                let count = usize::from(input.byte());
                content.extend_from_slice(input.take(count));
                continue;
            }
            255 => usize::from(input.number()),
            length => length.into(),
        };
        let bytes = input.take(length);
        let offset = content.len() as u64;
        let mut record = Vec::new();
        Framer::new(seal, offset).frame(&mut record, |out| {
            if serials {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(bytes);
            // A record that is too short is a mistake of the caller, so there is none.
            while out.len() < 8 + 9 {
                out.push(0);
            }
        });
        content.extend_from_slice(&record);
        number += 1;
    }
    content
}

fn put_file(fs: &MemFs, path: &Path, content: &[u8]) {
    let mut file = fs.create(path).expect("the disk has no faults");
    file.append(content).expect("the disk has no faults");
    file.sync().expect("the disk has no faults");
}

fn disk() -> MemFs {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new(DIR)).expect("the disk has no faults");
    fs
}

/// Replays WALs of any bytes.
///
/// Input: covered u8, durable u8, length of the first file u16, its content, the second file's
/// content.
pub fn wal(data: &[u8]) {
    let fs = disk();
    let mut input = Input(data);
    let start = ReplayStart {
        flushed_to: input.byte().into(),
        durable: input.byte().into(),
        ..ReplayStart::default()
    };
    let length = usize::from(input.number());
    let mut wals: Vec<(u64, PathBuf)> = Vec::new();
    for (id, mut part) in [(3, Input(input.take(length))), (5, input)] {
        let path = Path::new(DIR).join(file_name(FileKind::Wal, id));
        put_file(&fs, &path, &log_content(&mut part, WAL, id, false));
        wals.push((id, path));
    }
    for (id, path) in &wals {
        if let Err(error) = salvage(&fs, path, *id, &mut |_| Ok(())) {
            assert_corruption(&error);
        }
        match WalDump::open(&fs, path, *id) {
            Ok(dump) => dump.for_each(drop),
            Err(error) => assert_corruption(&error),
        }
    }
    let dir = Path::new(DIR);
    let first = match replay_all(&fs, &wals, start) {
        Ok(first) => first,
        Err(error) => return assert_corruption(&error),
    };
    let mut tail = LogTail::default();
    match tail.advance(&fs, &wals, start, &mut |_| Ok(true)) {
        Ok(_) => assert!(tail.last_seq() <= first.1.last_seq),
        Err(error) => assert_corruption(&error),
    }
    cut(&fs, dir, &wals, &first.1).expect("the disk has no faults");
    wals.retain(|(_, path)| fs.exists(path).expect("the disk has no faults"));
    let second = replay_all(&fs, &wals, start).expect("a log that was cut is sound");
    assert_eq!(first.0, second.0);
    assert_eq!(first.1.last_seq, second.1.last_seq);
    assert!(second.1.dropped_bytes <= first.1.dropped_bytes);
}

type Ops = Vec<(u64, u8, u32, Vec<u8>, Vec<u8>)>;

fn replay_all(fs: &MemFs, wals: &[(u64, PathBuf)], start: ReplayStart) -> Result<(Ops, ReplayEnd)> {
    let mut ops: Ops = Vec::new();
    let mut next = None;
    let mut prepared = PreparedLog::default();
    let end = replay(fs, Path::new(DIR), wals, start, &mut |batch| {
        let flushed = batch.first_seq <= start.flushed_to + 1;
        assert!(
            next.is_none_or(|next| batch.first_seq == next || flushed && batch.first_seq > next),
            "a gap in the log that no table covers"
        );
        next = Some(batch.next_seq());
        prepared.read(&batch, &mut |op, from| {
            assert!((batch.first_seq..batch.next_seq()).contains(&op.seq));
            assert!(from.is_none_or(|from| from < op.seq));
            ops.push((op.seq, op.kind as u8, op.tree, op.key.to_vec(), op.value.to_vec()));
            Ok(())
        })
    })?;
    for undecided in prepared.undecided.values() {
        assert!(undecided.seq <= end.last_seq);
        // The memtable takes each (key, number) once.
        let mut keys: Vec<_> = prepared_ops(&undecided.ops, 1)
            .filter(|op| op.kind != Kind::RangeDelete)
            .map(|op| (op.tree, op.key))
            .collect();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
    assert!(end.last_seq >= start.durable.max(start.flushed_to), "durable operations are missing");
    Ok((ops, end))
}

/// Recovers a manifest of any bytes.
///
/// Input: whether `CURRENT` is all of the rest (1) or a good one (else) u8, the manifest's content.
pub fn manifest(data: &[u8]) {
    let fs = Arc::new(disk());
    let shared: Arc<dyn Fs> = Arc::<MemFs>::clone(&fs);
    let dir = Path::new(DIR);
    drop(Manifest::create(&shared, dir, 1, &Edit::default()).expect("the disk has no faults"));
    let mut input = Input(data);
    if input.byte() == 1 {
        put_file(&fs, &dir.join(CURRENT), input.0);
    } else {
        let path = dir.join(file_name(FileKind::Manifest, 1));
        put_file(&fs, &path, &log_content(&mut input, MANIFEST, 1, true));
        match ManifestDump::open(&*fs, &path, 1) {
            Ok(dump) => dump.for_each(drop),
            Err(error) => assert_corruption(&error),
        }
    }
    let recovered = match manifest::recover(&*fs, dir) {
        Ok(recovered) => recovered,
        Err(error) => return assert_corruption(&error),
    };
    let tail = ManifestTail::open(&*fs, dir).expect("what can be recovered can be followed");
    assert_eq!(tail.catalog().snapshot(), recovered.snapshot);
    let mut bytes = Vec::new();
    edit::encode(&recovered.snapshot, &mut bytes);
    assert_eq!(edit::decode(&bytes).as_ref(), Ok(&recovered.snapshot));
    let env = Env { fs: Arc::clone(&shared), clock: Arc::new(MemClock::new()) };
    let tables = TableEnv::new(env, 1 << 20, Arc::new(Recorder::new()));
    for tree in recovered.trees.values() {
        let open = |meta: &TableMeta| {
            let path = dir.join(file_name(FileKind::Table, meta.id));
            Table::new(meta.clone(), path, &tables)
        };
        let levels = tree.levels.iter().map(|metas| metas.iter().map(open).collect()).collect();
        let version = Version::from_levels(levels).expect("the catalog has checked it");
        assert_eq!(version.table_count(), tree.levels.iter().map(Vec::len).sum::<usize>());
    }
    let next = Manifest::create(&shared, dir, recovered.next_file, &recovered.snapshot);
    drop(next.expect("what was recovered is in order"));
    let again = manifest::recover(&*fs, dir).expect("what was written is in order");
    assert_eq!(again.trees, recovered.trees);
    assert_eq!(again.last_seq, recovered.last_seq);
    assert_eq!(again.log, recovered.log);
}
