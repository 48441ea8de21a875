use super::*;
use crate::iter::testing::{Disk, Entry, History, Random, VecCursor};

fn random_run(random: &mut Random, disk: &mut Disk) -> (Vec<Arc<Table>>, Vec<Entry>) {
    let history = History::random(random, 150, 60, 1);
    let mut cuts: Vec<Vec<u8>> = (0..random.below(8)).map(|_| random.key(60)).collect();
    cuts.sort();
    cuts.dedup();
    (disk.run(&history, &cuts), history.entries)
}

/// Some tables of a level with these.
fn part_of_level(random: &mut Random, tables: Vec<Arc<Table>>, entries: &mut Vec<Entry>) -> Run {
    let count = tables.len() as u64;
    let start = random.below(count + 1);
    let range = start as usize..(start + random.below(count + 1 - start)) as usize;
    let level = Arc::new(Level::new(1, tables).unwrap());
    let run = Run::Level { level, range };
    entries.retain(|entry| run.tables().iter().any(|table| table.meta.covers(&entry.key)));
    run
}

#[test]
fn any_mix_of_moves_equals_a_sorted_vector() {
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let (tables, mut entries) = random_run(&mut random, &mut Disk::new());
        let run = match seed % 2 {
            0 => Run::Tables(tables),
            _ => part_of_level(&mut random, tables, &mut entries),
        };
        let newest = entries.iter().map(|entry| entry.seq).max().unwrap_or(0);
        let mut model = VecCursor::new(entries);
        let mut concat: Concat<TableCursor> = Concat::new(run, CursorOptions::default());
        assert!(concat.max_seq() >= newest, "seed {seed}");
        assert!(!concat.valid());
        for step in 0..200 {
            let (key, seq) = (random.key(64), random.below(160));
            match random.below(12) {
                0 => (concat.seek_first().unwrap(), model.seek_first().unwrap()),
                1 => (concat.seek_last().unwrap(), model.seek_last().unwrap()),
                2 => (concat.seek(&key, seq).unwrap(), model.seek(&key, seq).unwrap()),
                3 => (concat.seek_back(&key, seq).unwrap(), model.seek_back(&key, seq).unwrap()),
                4..=7 if model.valid() => (concat.next().unwrap(), model.next().unwrap()),
                8.. if model.valid() => (concat.prev().unwrap(), model.prev().unwrap()),
                _ => ((), ()),
            };
            assert_eq!(concat.valid(), model.valid(), "seed {seed} step {step}");
            if model.valid() {
                let found = (concat.key(), concat.seq(), concat.kind(), concat.value());
                let expected = (model.key(), model.seq(), model.kind(), model.value());
                assert_eq!(found, expected, "seed {seed} step {step}");
                assert!(concat.table().meta.covers(model.key()));
            }
        }
    }
}

#[test]
fn a_compaction_reads_its_part_of_each_table() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (tables, mut entries) = random_run(&mut random, &mut Disk::new());
        let (start, end) = (random.key(30), random.key(60));
        entries.retain(|e| e.key >= start && e.key < end);
        let mut model = VecCursor::new(entries);
        model.seek_first().unwrap();
        let part = ScanPart { start: Some(start), end: Some(end), read_bytes: 1 << 20 };
        let mut concat: Concat<BulkScan> = Concat::new(Run::Tables(tables), part);
        concat.seek_first().unwrap();
        while model.valid() {
            assert_eq!((concat.key(), concat.seq()), (model.key(), model.seq()), "seed {seed}");
            model.next().unwrap();
            if random.below(2) == 0 {
                concat.next().unwrap();
            } else {
                concat.advance_current(|scan| scan.next()).unwrap();
            }
        }
        assert!(!concat.valid());
    }
}

#[test]
fn skipping_passes_only_tables_that_are_old() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (tables, entries) = random_run(&mut random, &mut Disk::new());
        let mut all = VecCursor::new(entries);
        let mut concat: Concat<TableCursor> =
            Concat::new(Run::Tables(tables), CursorOptions::default());
        for _ in 0..30 {
            let (from, to, below) = (random.key(60), random.key(60), random.below(200));
            let forward = from < to;
            if forward {
                concat.seek(&from, SEQ_MAX).unwrap();
                all.seek(&from, SEQ_MAX).unwrap();
            } else {
                concat.seek_back(&from, SEQ_MAX).unwrap();
                all.seek_back(&from, SEQ_MAX).unwrap();
            }
            if !concat.valid() {
                continue;
            }
            let old_table = concat.table().meta.max_seq < below;
            let moved = match forward {
                true => concat.skip_to(&to, below).unwrap(),
                false => concat.skip_back_to(&to, below).unwrap(),
            };
            assert_eq!(moved, old_table);
            // Everything passed over was older than `below` and before the goal.
            while all.valid() && !(concat.valid() && concat.key() == all.key()) {
                assert!(moved && all.seq() < below, "seed {seed}");
                match forward {
                    true => {
                        assert!(all.key() < to.as_slice(), "seed {seed}");
                        all.next().unwrap();
                    }
                    false => {
                        assert!(all.key() >= to.as_slice(), "seed {seed}");
                        all.prev().unwrap();
                    }
                }
            }
            assert_eq!(concat.valid(), all.valid(), "seed {seed}");
        }
    }
}

#[test]
fn an_error_leaves_no_position() {
    let mut disk = Disk::new();
    let entry = |key: u8| Entry { key: vec![key], seq: 1, kind: Kind::Put, value: vec![key; 10] };
    let tables: Vec<Arc<Table>> =
        (0..3).map(|key| disk.table(vec![entry(key)], &Default::default())).collect();
    assert!(disk.fs.corrupt(tables[1].path(), 3, 1));
    let mut concat: Concat<TableCursor> =
        Concat::new(Run::Tables(tables), CursorOptions::default());
    concat.seek_first().unwrap();
    assert_eq!(concat.key(), [0]);
    assert!(concat.next().unwrap_err().is_corruption());
    assert!(!concat.valid());
    concat.next().unwrap();
    assert!(concat.seek(&[1], SEQ_MAX).unwrap_err().is_corruption());
    assert!(!concat.valid());
    concat.seek(&[2], SEQ_MAX).unwrap();
    assert_eq!(concat.key(), [2]);
}

#[test]
fn a_run_without_tables_has_no_entries() {
    let mut concat: Concat<TableCursor> =
        Concat::new(Run::Tables(Vec::new()), CursorOptions::default());
    concat.seek_first().unwrap();
    concat.seek_last().unwrap();
    concat.seek(b"k", 1).unwrap();
    concat.seek_back(b"k", 1).unwrap();
    assert!(!concat.valid());
    assert!(!concat.skip_to(b"k", 9).unwrap());
}
