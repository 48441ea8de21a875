//! Copies of a tree in another form while writers go on (`Tree::track_changes`), on a crashing and a
//! failing disk: when the last round has ended the copy has what the source says, and of the tree of
//! changes nothing is left.

use crate::Case;
use shaledb::fs::mem::{Call, CrashMode, Fault, MemFs};
use shaledb::{Batch, ChangeTracker, Db, Error, ScanOptions, Snapshot, TransactionOptions, Tree};
use shaledb::{TreeConfig, WriteOptions};
use shaledb_sim::fault::faults_of;
use shaledb_sim::settings::{exhaustive, seeds, small};
use shaledb_sim::world::{PATH, open_db};
use std::collections::BTreeMap;
use std::time::Duration;

const ROWS: u32 = 400;
const CHANGED: &str = "changed";
const COPY: &str = "copy";

/// Changes rows at random, each by one batch or one transaction, and tells which.
struct Writer {
    state: u64,
    db: Db,
    source: Tree,
    changed: Option<Tree>,
}

impl Writer {
    fn random(&mut self, below: u32) -> u32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.state >> 33) as u32 % below
    }

    fn write(&mut self) -> shaledb::Result<()> {
        let key = self.random(ROWS).to_be_bytes();
        let (kind, sync) = (self.random(8), self.random(10) == 0);
        let value = vec![b'a' + self.random(20) as u8; 20 + self.random(200) as usize];
        if kind % 2 == 0 {
            let mut txn = self.db.begin(Default::default())?;
            match kind {
                0 => txn.delete(&self.source, &key)?,
                _ => txn.put(&self.source, &key, &value)?,
            }
            if let Some(changed) = &self.changed {
                txn.put_unlocked(changed, &key, b"")?;
            }
            if kind == 4 {
                txn.rollback();
                return Ok(());
            }
            return txn.commit(WriteOptions { sync });
        }
        let mut batch = Batch::new();
        match kind {
            1 => batch.delete(&self.source, &key),
            _ => batch.put(&self.source, &key, &value),
        };
        if let Some(changed) = &self.changed {
            batch.put(changed, &key, b"");
        }
        self.db.write(&batch, WriteOptions { sync })
    }

    fn writes(&mut self, count: u32) -> shaledb::Result<()> {
        (0..count).try_for_each(|_| self.write())
    }
}

fn start(db: &Db, seed: u64) -> shaledb::Result<Writer> {
    let source = db.tree_or_create("source")?;
    let mut writer = Writer { state: seed * 2 + 1, db: db.clone(), source, changed: None };
    writer.writes(600)?;
    db.flush()?;
    writer.writes(100)?;
    db.sync()?;
    Ok(writer)
}

fn begin(writer: &mut Writer) -> shaledb::Result<ChangeTracker> {
    let tracker = writer.source.track_changes(CHANGED, Duration::ZERO)?;
    writer.changed = Some(tracker.tree().clone());
    Ok(tracker)
}

/// The form that rows have in the copy: by another key, so that each change moves an entry.
fn copied_key(key: &[u8], value: &[u8]) -> Vec<u8> {
    [&value[value.len() / 2..], key].concat()
}

fn at(source: &Tree, key: &[u8], at: &Snapshot) -> shaledb::Result<Option<Vec<u8>>> {
    Ok(source.get_at(key, at)?.map(|value| copied_key(key, &value)))
}

/// A round; answers how many keys it had.
fn round(
    writer: &mut Writer,
    tracker: &mut ChangeTracker,
    copy: &Tree,
    last: bool,
) -> shaledb::Result<usize> {
    let round = tracker.begin_round(!last)?;
    let keys: Vec<Vec<u8>> = round.keys().collect::<shaledb::Result<_>>()?;
    assert!(keys.is_sorted_by(|a, b| a < b), "each once, in order");
    // There may be several walks.
    let again: Vec<Vec<u8>> = round.keys().collect::<shaledb::Result<_>>()?;
    assert_eq!(again, keys);
    for (number, key) in keys.iter().enumerate() {
        let (was, is) = (
            at(&writer.source, key, tracker.copied())?,
            at(&writer.source, key, round.snapshot())?,
        );
        if was != is {
            was.iter().try_for_each(|was| copy.delete(was))?;
            is.iter().try_for_each(|is| copy.put(is, key))?;
        }
        if !last && number % 10 == 0 {
            writer.writes(3)?;
        }
    }
    tracker.end_round(round)?;
    Ok(keys.len())
}

/// Copies the source, with writes, flushes and compactions in between. The copy is complete when it
/// is renamed, so to speak: a row in `done` says so.
fn copy(db: &Db, writer: &mut Writer) -> shaledb::Result<()> {
    let mut tracker = begin(writer)?;
    writer.writes(60)?;
    db.flush()?;
    let copy = db.create_tree(COPY, TreeConfig::default())?;
    let of_snapshot = ScanOptions { snapshot: Some(tracker.copied()), ..ScanOptions::default() };
    for (number, row) in writer.source.clone().scan_with(of_snapshot)?.enumerate() {
        let (key, value) = row?;
        copy.put(&copied_key(&key, &value), &key)?;
        if number % 20 == 0 {
            writer.writes(15)?;
        }
        if number == 120 {
            db.flush()?;
            db.wait_idle()?;
        }
    }
    for _ in 0..4 {
        round(writer, &mut tracker, &copy, false)?;
        db.wait_idle()?;
    }
    tracker.wait_for_writers(Duration::ZERO)?;
    round(writer, &mut tracker, &copy, true)?;
    assert!(tracker.begin_round(false)?.keys().next().transpose()?.is_none(), "all is taken");
    db.tree_or_create("done")?.put_with(b"done", b"", WriteOptions { sync: true })?;
    writer.changed = None;
    drop(tracker);
    Ok(())
}

/// Compares a copy that is complete with the source; answers whether it is.
fn check(db: &Db, label: &str) -> bool {
    match db.tree("done") {
        Ok(done) if done.contains(b"done").unwrap() => {}
        Ok(_) | Err(Error::NoSuchTree(_)) => return false,
        Err(error) => panic!("{label}: {error}"),
    }
    let (source, copy) = (db.tree("source").unwrap(), db.tree(COPY).unwrap());
    let rows = |tree: &Tree| -> BTreeMap<Vec<u8>, Vec<u8>> {
        let rows = tree.scan::<&[u8]>(..).unwrap().map(|row| row.unwrap());
        rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    let wanted: BTreeMap<_, _> =
        rows(&source).into_iter().map(|(key, value)| (copied_key(&key, &value), key)).collect();
    assert!(rows(&copy) == wanted, "{label}: the copy has what the source says");
    let damage = db.verify(&mut |_| {}).unwrap().damage;
    assert!(damage.is_empty(), "{label}: {damage:?}");
    true
}

/// Opens what a crash has left: there is no tree of changes.
fn recover(fs: &MemFs, label: &str) -> bool {
    let db = open_db(fs, PATH, &small()).unwrap_or_else(|error| panic!("{label}: {error}"));
    assert!(matches!(db.tree(CHANGED), Err(Error::NoSuchTree(_))), "{label}: it has gone");
    check(&db, label)
}

#[test]
fn a_copy_made_beside_writers_has_what_the_source_says() {
    for seed in seeds(30) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        copy(&db, &mut writer).unwrap();
        assert!(check(&db, "after the copy"), "it is complete");
        drop((db, writer));
        assert!(recover(&fs, "after an open"));
    }
}

/// However many rounds and compactions there are, a round has what was changed since the last and
/// nothing else, and what it has taken takes no space.
#[test]
fn a_round_has_what_was_changed_since_the_last() {
    for seed in seeds(6) {
        let _case = Case::new(format!("SHALE_SEED={seed}"));
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        let mut tracker = begin(&mut writer).unwrap();
        for number in 0..30u32 {
            let mut wanted = std::collections::BTreeSet::new();
            for _ in 0..100 {
                let key = writer.random(ROWS).to_be_bytes();
                let mut batch = Batch::new();
                batch.put(&writer.source, &key, &[b'x'; 100]);
                batch.put(tracker.tree(), &key, b"");
                db.write(&batch, WriteOptions::default()).unwrap();
                wanted.insert(key.to_vec());
            }
            if number % 3 == 0 {
                db.flush().unwrap();
                db.wait_idle().unwrap();
            }
            // One that is given up comes again.
            drop(tracker.begin_round(number % 2 == 0).unwrap());
            let round = tracker.begin_round(number % 4 != 3).unwrap();
            if number == 5 {
                let damage = db.verify(&mut |_| {}).unwrap().damage;
                assert!(damage.is_empty(), "beside a round: {damage:?}");
            }
            let keys: Vec<_> = round.keys().map(|key| key.unwrap()).collect();
            assert!(keys.into_iter().eq(wanted), "round {number}");
            tracker.end_round(round).unwrap();
        }
        tracker.tree().put(b"last", b"").unwrap();
        let round = tracker.begin_round(true).unwrap();
        tracker.end_round(round).unwrap();
        let stats = db.stats();
        let changed = stats.trees.iter().find(|tree| tree.name == CHANGED).unwrap();
        let tables: u64 = changed.levels.iter().map(|level| level.tables).sum();
        assert_eq!(tables, 0, "what was taken has left the tree");
    }
}

#[test]
fn a_crash_leaves_no_tree_of_changes() {
    let (mut crashes, mut there) = (0, 0);
    for seed in seeds(2) {
        let fs = MemFs::new();
        let db = open_db(&fs, PATH, &small()).unwrap();
        let mut writer = start(&db, seed).unwrap();
        fs.keep_images(Some(if exhaustive() { 1 } else { 7 }));
        copy(&db, &mut writer).unwrap();
        for image in fs.take_images() {
            let torn = seed << 20 | image.changes;
            let disks = [
                image.fs.crash_clone(torn, CrashMode::Torn),
                image.fs.crash_clone(0, CrashMode::Lost),
            ];
            for (way, disk) in disks.into_iter().enumerate() {
                let label = format!("SHALE_SEED={seed}, before change {}, {way}", image.changes);
                let _case = Case::new(label.clone());
                disk.free_locks();
                there += u32::from(recover(&disk, &label));
                crashes += 1;
            }
        }
    }
    assert!(there > 0 && crashes > 2 * there, "{crashes} crashes, {there} with the whole copy");
}

#[test]
fn a_failing_call_gives_an_error_and_no_wrong_copy() {
    let mut failed = 0;
    for seed in seeds(1) {
        let start_fs = MemFs::new();
        let db = open_db(&start_fs, PATH, &small()).unwrap();
        drop(start(&db, seed).unwrap());
        drop(db);
        for call in Call::ALL {
            let mut nth = 1;
            loop {
                let faults: &[Fault] = faults_of(call);
                let strikes = |fault: &&Fault| one_fault(&start_fs, seed, call, nth, **fault);
                let count = faults.iter().filter(strikes).count();
                failed += count;
                if count == 0 {
                    break;
                }
                nth += if exhaustive() { 1 } else { 1 + nth / 3 };
            }
        }
    }
    assert!(failed > 30, "{failed} faults");
}

/// Whether the fault has struck.
fn one_fault(start: &MemFs, seed: u64, call: Call, nth: u64, fault: Fault) -> bool {
    let label = format!("SHALE_SEED={seed}, {call:?} {nth} {fault:?}");
    let _case = Case::new(label.clone());
    let fs = start.crash_clone(0, CrashMode::Kept);
    let db = open_db(&fs, PATH, &small()).unwrap();
    let source = db.tree("source").unwrap();
    let mut writer = Writer { state: seed, db: db.clone(), source, changed: None };
    fs.fail(call, nth, fault, nth.is_multiple_of(2));
    let result = copy(&db, &mut writer);
    let struck = fs.faults_struck() > 0;
    fs.clear_faults();
    assert!(result.is_ok() || struck, "{label}: {result:?}");
    if let Err(error) = result {
        assert!(!error.is_corruption(), "{label}: {error}");
    }
    drop((db, writer));
    recover(&fs.crash_clone(seed, CrashMode::Torn), &label);
    recover(&fs, &label);
    struck
}

/// A prepared transaction is waited for, at the begin and at the end; after a crash it is committed
/// without the tree of changes. One that only holds others off is not waited for.
#[test]
fn prepared_transactions_are_waited_for_and_outlive_the_tree() {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = start(&db, 9).unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&writer.source, b"early", b"row").unwrap();
    let refused = writer.source.track_changes(CHANGED, Duration::from_millis(5));
    assert!(matches!(refused, Err(Error::LockTimeout { .. })), "{refused:?}");
    assert!(db.tree(CHANGED).is_err(), "nothing is left");
    txn.commit(WriteOptions::default()).unwrap();
    let mut reader = db.begin(TransactionOptions::default()).unwrap();
    reader.get_for_update(&writer.source, b"early").unwrap();

    let tracker = begin(&mut writer).unwrap();
    let mut txn = db.begin(TransactionOptions::default()).unwrap();
    txn.put(&writer.source, b"late", b"row").unwrap();
    txn.put_unlocked(tracker.tree(), b"late", b"").unwrap();
    let prepared = txn.prepare(b"late").unwrap();
    let waited = tracker.wait_for_writers(Duration::from_millis(5));
    assert!(matches!(waited, Err(Error::LockTimeout { .. })), "{waited:?}");
    let disk = fs.crash_clone(3, CrashMode::Kept);
    drop(reader);

    // Decided before the end, it is in the last round.
    prepared.commit(WriteOptions::default()).unwrap();
    tracker.wait_for_writers(Duration::ZERO).unwrap();
    let last = tracker.begin_round(false).unwrap();
    assert!(last.keys().any(|key| key.unwrap() == b"late"));
    drop((last, tracker, db, writer));

    disk.free_locks();
    let db = open_db(&disk, PATH, &small()).unwrap();
    assert!(db.tree(CHANGED).is_err());
    let prepared = db.prepared().unwrap().pop().unwrap();
    prepared.commit(WriteOptions::default()).unwrap();
    assert_eq!(db.tree("source").unwrap().get(b"late").unwrap().unwrap(), b"row");
    assert!(db.tree(CHANGED).is_err());
}

#[test]
fn a_tree_of_changes_has_no_range_deletes() {
    let fs = MemFs::new();
    let db = open_db(&fs, PATH, &small()).unwrap();
    let mut writer = start(&db, 3).unwrap();
    let tracker = begin(&mut writer).unwrap();
    tracker.tree().delete_range(b"a", b"b").unwrap();
    let refused = tracker.begin_round(true).unwrap_err();
    assert!(
        matches!(&refused, Error::InvalidArgument(what) if what.contains("range")),
        "{refused}"
    );
}
