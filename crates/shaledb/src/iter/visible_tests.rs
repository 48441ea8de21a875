use super::*;
use crate::base::ranges::RangeDelete;
use crate::iter::testing::{Entry, History, Random, VecCursor, read_seq};

type Row = (Vec<u8>, Vec<u8>);

/// Deals the history out to `children` cursors by random pieces of time, so that some of them are
/// old enough to be jumped over.
fn deal(history: &History, random: &mut Random, children: u64) -> Merge<VecCursor> {
    let mut dealt = vec![Vec::new(); children as usize];
    let mut child = 0;
    for entry in &history.entries {
        if random.below(20) == 0 {
            child = random.below(children) as usize;
        }
        dealt[child].push(entry.clone());
    }
    Merge::new(dealt.into_iter().map(VecCursor::new).collect())
}

/// The range deletes of the history in one to three sets.
fn deal_deletes(history: &History, random: &mut Random) -> Vec<Arc<RangeDeletes>> {
    let mut sets = vec![Vec::new(); 1 + random.below(3) as usize];
    for delete in &history.deletes {
        let set = random.below(sets.len() as u64) as usize;
        sets[set].push(delete.clone());
    }
    sets.into_iter().map(|set| Arc::new(RangeDeletes::new(set))).collect()
}

/// A naive cursor over rows.
struct Model {
    rows: Vec<Row>,
    at: Option<usize>,
}

impl Model {
    fn go(&mut self, to: usize) {
        self.at = (to < self.rows.len()).then_some(to);
    }
}

fn check_mix(seed: u64, ops: u64, keys: u64) {
    let mut random = Random::new(seed);
    let history = History::random(&mut random, ops, keys, 0);
    let seq = read_seq(&mut random, ops);
    let mut bound = || (random.below(3) == 0).then(|| random.key(keys));
    let (lower, upper) = (bound().unwrap_or_default(), bound());
    let mut rows = history.visible(seq);
    rows.retain(|(k, _)| *k >= lower && upper.as_ref().is_none_or(|upper| k < upper));
    let children = 1 + random.below(6);
    let merge = deal(&history, &mut random, children);
    let deletes = deal_deletes(&history, &mut random);
    let shown = Visible::new(merge, seq, deletes, lower, upper);
    walk(shown, rows, &mut random, keys, seed);
}

/// Moves about and compares with the rows that should be seen.
fn walk(mut rows: Visible<VecCursor>, model: Vec<Row>, random: &mut Random, keys: u64, seed: u64) {
    let mut model = Model { rows: model, at: None };
    assert!(!rows.valid());
    for step in 0..150 {
        let key = random.key(keys + 4);
        match random.below(14) {
            0 => (rows.seek_first().unwrap(), model.go(0)),
            1 => (rows.seek_last().unwrap(), model.go(model.rows.len().wrapping_sub(1))),
            2 => (rows.seek(&key).unwrap(), model.go(model.rows.partition_point(|r| r.0 < key))),
            3 => {
                let after = model.rows.partition_point(|r| r.0 <= key);
                (rows.seek_back(&key).unwrap(), model.go(after.wrapping_sub(1)))
            }
            4..=8 => (rows.next().unwrap(), model.at.map_or((), |at| model.go(at + 1))),
            _ => (rows.prev().unwrap(), model.at.map_or((), |at| model.go(at.wrapping_sub(1)))),
        };
        let expected = model.at.map(|at| model.rows[at].clone());
        let found = rows.valid().then(|| (rows.key().to_vec(), rows.value().to_vec()));
        assert_eq!(found, expected, "seed {seed} step {step}");
        assert!(!rows.valid() || rows.kind() != Kind::Delete);
    }
}

/// A history some of which is newer than the reader, and writes of his own on top, some undone.
fn check_own(seed: u64, ops: u64, own_ops: u64, keys: u64) {
    let mut random = Random::new(seed);
    let history = History::random(&mut random, ops, keys, 1);
    let seq = random.below(ops + 1);
    let own = History::random(&mut random, own_ops, keys, WRITE_SET_FIRST);
    let span = |first: u64, count: u64| (WRITE_SET_FIRST + first, WRITE_SET_FIRST + first + count);
    let mut undone: Vec<(SeqNo, SeqNo)> = (0..random.below(4))
        .map(|_| span(random.below(own_ops), random.below(own_ops / 4 + 1)))
        .collect();
    undone.sort_unstable();
    undone.dedup_by(|later, earlier| later.0 <= earlier.1);
    let last = WRITE_SET_FIRST + random.below(own_ops + own_ops / 4);
    let seen = |seq: SeqNo| seq <= last && !undone.iter().any(|u| (u.0..=u.1).contains(&seq));

    let mut both = History {
        entries: history.entries.iter().filter(|e| e.seq <= seq).cloned().collect(),
        deletes: history.deletes.iter().filter(|d| d.seq <= seq).cloned().collect(),
    };
    both.entries.extend(own.entries.iter().filter(|e| seen(e.seq)).cloned());
    let own_deletes: Vec<RangeDelete> =
        own.deletes.iter().filter(|d| seen(d.seq)).cloned().collect();
    both.deletes.extend(own_deletes.iter().cloned());
    let rows = both.visible(SEQ_MAX);

    let children = 1 + random.below(4);
    let mut all = vec![VecCursor::new(own.entries.clone())];
    let mut dealt = vec![Vec::new(); children as usize];
    for entry in &history.entries {
        dealt[random.below(children) as usize].push(entry.clone());
    }
    all.extend(dealt.into_iter().map(VecCursor::new));
    let deletes = deal_deletes(&history, &mut random);
    let shown = Visible::new(Merge::new(all), seq, deletes, Vec::new(), None);
    let deletes = vec![Arc::new(RangeDeletes::new(own_deletes))];
    let shown = shown.with_write_set(WriteSetView { last, undone: Undone::new(undone), deletes });
    walk(shown, rows, &mut random, keys, seed);
}

#[test]
fn own_writes_lie_on_top_of_what_is_committed() {
    for seed in 0..300 {
        check_own(seed, 200, 60, 60);
    }
    for seed in 1000..1200 {
        check_own(seed, 200, 100, 4);
    }
}

#[test]
fn any_mix_of_moves_equals_the_model() {
    for seed in 0..400 {
        check_mix(seed, 200, 60);
    }
}

#[test]
fn any_mix_of_moves_over_many_versions_equals_the_model() {
    for seed in 1000..1100 {
        check_mix(seed, 300, 5);
    }
}

fn entry(key: u32, seq: SeqNo, kind: Kind) -> Entry {
    Entry { key: key.to_be_bytes().to_vec(), seq, kind, value: b"v".to_vec() }
}

fn moves(rows: &Visible<VecCursor>) -> usize {
    rows.merge.children().iter().map(|child| child.moves).sum()
}

#[test]
fn many_versions_of_a_key_are_jumped_over() {
    let mut entries: Vec<Entry> = (0..5000).map(|seq| entry(1, seq, Kind::Put)).collect();
    entries.push(entry(0, 1, Kind::Put));
    entries.push(entry(2, 1, Kind::Put));
    for seq in [10, 2500, 4990, SEQ_MAX] {
        let merge = Merge::new(vec![VecCursor::new(entries.clone())]);
        let mut rows = Visible::new(merge, seq, Vec::new(), Vec::new(), None);
        rows.seek_first().unwrap();
        for key in 0..3u32 {
            assert_eq!(rows.key(), key.to_be_bytes());
            rows.next().unwrap();
        }
        assert!(!rows.valid());
        rows.seek_last().unwrap();
        for key in (0..3u32).rev() {
            assert_eq!(rows.key(), key.to_be_bytes());
            assert!(key != 1 || rows.value() == b"v");
            rows.prev().unwrap();
        }
        assert!(!rows.valid());
        assert!(moves(&rows) < 120, "{} moves at {seq}", moves(&rows));
    }
}

/// How many dead entries are passed by going through all rows.
fn dead_passed(rows: &mut Visible<VecCursor>, backward: bool) -> u64 {
    let (seek, step): (fn(&mut _) -> _, fn(&mut _) -> _) = match backward {
        true => (Visible::seek_last, Visible::prev),
        false => (Visible::seek_first, Visible::next),
    };
    *rows.dead() = 0;
    seek(rows).unwrap();
    while rows.valid() {
        step(rows).unwrap();
    }
    *rows.dead()
}

#[test]
fn dead_entries_are_counted_from_a_number_on() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let History { entries, .. } = History::random(&mut random, 200, 100, 0);
        let (first, last) = (random.below(200), random.below(220));
        let is_dead = |entry: &&Entry| {
            let hides = |newer: &Entry| newer.key == entry.key && newer.seq > entry.seq;
            (first..=last).contains(&entry.seq)
                && entries.iter().any(|newer| hides(newer) && newer.seq <= last)
        };
        let dead = entries.iter().filter(is_dead).count() as u64;
        let history = History { entries: entries.clone(), deletes: Vec::new() };
        let merge = deal(&history, &mut random, 3);
        let rows = Visible::new(merge, last, Vec::new(), Vec::new(), None);
        let mut rows = rows.count_dead(first);
        assert_eq!(dead_passed(&mut rows, false), dead, "seed {seed}");
        assert_eq!(dead_passed(&mut rows, true), dead, "seed {seed}");
    }
}

#[test]
fn what_own_writes_hide_is_not_dead() {
    let both = |seq, kind| (0..100).map(move |key| entry(key, seq, kind));
    for kind in [Kind::Put, Kind::Delete] {
        // Written, and three times by the reader himself.
        let own: Vec<Entry> = (0..3).flat_map(|n| both(WRITE_SET_FIRST + n, kind)).collect();
        let merge = Merge::new([own, both(5, Kind::Put).collect()].map(VecCursor::new).into());
        let rows = Visible::new(merge, 9, Vec::new(), Vec::new(), None).count_dead(1);
        let write_set = WriteSetView { last: SEQ_MAX, ..WriteSetView::default() };
        let mut rows = rows.with_write_set(write_set);
        assert_eq!([false, true].map(|backward| dead_passed(&mut rows, backward)), [0, 0]);
    }
    // Those that are too new for him are not dead either.
    let merge =
        Merge::new([5, 15].map(|seq| VecCursor::new(both(seq, Kind::Put).collect())).into());
    let mut rows = Visible::new(merge, 9, Vec::new(), Vec::new(), None).count_dead(1);
    assert_eq!([false, true].map(|backward| dead_passed(&mut rows, backward)), [0, 0]);
}

#[test]
fn what_a_range_delete_covers_is_dead() {
    let delete = |seq| {
        let (start, end) = (vec![0], vec![9]);
        vec![Arc::new(RangeDeletes::new([RangeDelete { start, end, seq }]))]
    };
    let merge =
        || Merge::new(vec![VecCursor::new((0..4).map(|key| entry(key, 5, Kind::Put)).collect())]);
    let rows = Visible::new(merge(), 9, delete(7), Vec::new(), None);
    let mut rows = rows.count_dead(1);
    assert_eq!([false, true].map(|backward| dead_passed(&mut rows, backward)), [4, 4]);
    let deletes = delete(WRITE_SET_FIRST);
    let write_set = WriteSetView { last: SEQ_MAX, deletes, ..WriteSetView::default() };
    let rows = Visible::new(merge(), 9, Vec::new(), Vec::new(), None).count_dead(1);
    let mut rows = rows.with_write_set(write_set);
    assert_eq!([false, true].map(|backward| dead_passed(&mut rows, backward)), [0, 0]);
}

#[test]
fn a_run_deleted_by_range_is_jumped_over() {
    let delete = |start: u32, end: u32, seq| RangeDelete {
        start: start.to_be_bytes().to_vec(),
        end: end.to_be_bytes().to_vec(),
        seq,
    };
    let old = VecCursor::new((0..100_000).map(|key| entry(key, 1, Kind::Put)).collect());
    let new = VecCursor::new(vec![entry(50_000, 9, Kind::Put), entry(60_000, 3, Kind::Put)]);
    let deletes = RangeDeletes::new([delete(10, 99_990, 5), delete(10, 50, 7)]);
    let merge = Merge::new(vec![old, new]);
    let mut rows = Visible::new(merge, SEQ_MAX, vec![Arc::new(deletes)], Vec::new(), None);
    let expected: Vec<u32> = (0..10).chain([50_000]).chain(99_990..100_000).collect();
    let number = |rows: &Visible<VecCursor>| u32::from_be_bytes(rows.key().try_into().unwrap());
    rows.seek_first().unwrap();
    for &key in &expected {
        assert_eq!(number(&rows), key);
        rows.next().unwrap();
    }
    assert!(!rows.valid());
    rows.seek_last().unwrap();
    for &key in expected.iter().rev() {
        assert_eq!(number(&rows), key);
        rows.prev().unwrap();
    }
    assert!(!rows.valid());
    assert!(moves(&rows) < 150, "{} moves", moves(&rows));
}

#[test]
fn errors_come_through_and_leave_no_row() {
    let mut child = VecCursor::new((0..10).map(|key| entry(key, 1, Kind::Put)).collect());
    child.fails_at = Some(5);
    let mut rows = Visible::new(Merge::new(vec![child]), SEQ_MAX, Vec::new(), Vec::new(), None);
    rows.seek_first().unwrap();
    for _ in 0..4 {
        rows.next().unwrap();
    }
    assert!(rows.next().is_err());
    assert!(!rows.valid());
    rows.next().unwrap();
    rows.prev().unwrap();
    assert!(!rows.valid());
    rows.seek(&6u32.to_be_bytes()).unwrap();
    assert!(rows.valid());
    assert!(rows.prev().is_err());
    assert!(!rows.valid());
}

#[test]
fn spans_are_undone_in_place() {
    let mut undone = Undone::default();
    let mut moved = 0;
    let mut at = undone.spans().as_ptr();
    for number in 0..10_000 {
        undone.undo(10 * number, 10 * number + 3);
        moved += u32::from(std::mem::replace(&mut at, undone.spans().as_ptr()) != at);
    }
    assert_eq!(undone.spans().len(), 10_000);
    assert!(moved < 40, "the list was copied {moved} times");
    let scan = undone.clone();
    // Back to a mark between two, in one, and at the end of one.
    undone.undo(9_995 * 10 + 5, 100_010);
    assert_eq!(undone.spans().last(), Some(&(99_955, 100_010)));
    assert_eq!(undone.spans().len(), 9_997);
    undone.undo(9_990 * 10 + 2, 100_020);
    assert_eq!(undone.spans().last(), Some(&(99_900, 100_020)));
    undone.undo(9_980 * 10 + 4, 100_030);
    assert_eq!(undone.spans().last(), Some(&(99_800, 100_030)));
    assert_eq!(undone.spans().len(), 9_981);
    assert_eq!(scan.spans().len(), 10_000, "a scan goes on with what it has");
    assert!(scan.has(99_993) && !scan.has(99_994) && undone.has(99_994));
}
