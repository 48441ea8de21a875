//! Which deletes go with what they delete: single decisions, and merges.

use super::*;
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::version::Version;
use arc_swap::ArcSwap;

/// A tree with these tables, by level.
fn state(tables: &[(usize, &Arc<Table>)]) -> ArcSwap<TreeState> {
    let mut levels = vec![Vec::new(); LAST + 1];
    tables.iter().for_each(|(level, table)| levels[*level].push(Arc::clone(table)));
    let version = Arc::new(Version::from_levels(levels).unwrap());
    ArcSwap::from_pointee(TreeState { version, ..TreeState::empty() })
}

fn one(number: u32, seq: SeqNo, kind: Kind) -> Entry {
    let value = if kind == Kind::Put { text(number) } else { Vec::new() };
    Entry { key: key(number), seq, kind, value }
}

/// Every 10th key from 0 to 1000 but for 500.
fn tens(world: &World) -> Arc<Table> {
    let of = |number: &u32| *number != 500;
    let entries: Vec<Entry> =
        (0..=1000).step_by(10).filter(of).map(|number| put(number, 1, text(number))).collect();
    world.table(Codec::None, &entries)
}

fn is_loaded(table: &Table) -> bool {
    table.surely_lacks(&key(500), hash(&key(500)), &mut 0)
}

/// How many bytes of the table's file are read to ask its filter.
fn load_bytes(table: &Arc<Table>) -> u64 {
    table.meta.file_bytes - table.meta.data_bytes
}

/// What a flush leaves of these entries of memtables, `number@seq kind`.
fn left(state: &ArcSwap<TreeState>, snapshots: &[SeqNo], entries: &[Entry]) -> String {
    left_by(Older::all(state, 1 << 20, 10), snapshots, entries)
}

fn left_by(older: Older<'_>, snapshots: &[SeqNo], entries: &[Entry]) -> String {
    let memtable = Memtable::new();
    entries.iter().for_each(|e| memtable.insert(&e.key, e.seq, e.kind, &e.value));
    let mut cursor = memtable.cursor();
    let deletes = RangeDeletes::default();
    let mut filter = DropFilter::new(snapshots, Bottom::Unknown, deletes).asking(Some(older));
    cursor.seek_first().unwrap();
    let mut left = Vec::new();
    while cursor.valid() {
        let (key, seq, kind) = (cursor.key().to_vec(), cursor.seq(), cursor.kind());
        let decision = filter.decide(&key, seq, kind);
        cursor.next().unwrap();
        let goes = match decision {
            Decision::Ask => filter.has_met_all(&cursor),
            other => other == Decision::Drop,
        };
        if !goes {
            let key = String::from_utf8_lossy(&key[4..10]).parse::<u32>().unwrap();
            left.push(format!("{key}@{seq} {kind:?}"));
        }
    }
    left.join(", ")
}

#[test]
fn a_delete_goes_that_has_met_all_it_deletes() {
    use Kind::{Blob, Delete, Put};
    let world = World::new();
    let table = tens(&world);
    let (empty, tree) = (state(&[]), state(&[(3, &table)]));
    let pair = |number| [one(number, 9, Delete), one(number, 8, Put)];
    assert_eq!(left(&empty, &[], &pair(20)), "");
    assert_eq!(left(&tree, &[], &pair(20)), "20@9 Delete", "it was put before, too");
    assert_eq!(left(&tree, &[], &pair(500)), "", "the range has it, the filter not");
    assert_eq!(left(&tree, &[], &pair(2000)), "", "out of range");
    // Level 0 is asked as well, whatever its order.
    let newer = world.table(Codec::None, &[put(499, 2, text(1)), put(501, 2, text(1))]);
    let newest = world.table(Codec::None, &[put(500, 3, text(1))]);
    let of_level0 = state(&[(0, &newer), (3, &table)]);
    assert_eq!(left(&of_level0, &[], &pair(500)), "");
    let of_level0 = state(&[(0, &newest), (0, &newer), (3, &table)]);
    assert_eq!(left(&of_level0, &[], &pair(500)), "500@9 Delete");
    // A delete below needs none above, but a filter does not tell it from a put.
    let deleted = world.table(Codec::None, &[one(500, 3, Delete)]);
    assert_eq!(left(&state(&[(0, &deleted)]), &[], &pair(500)), "500@9 Delete");

    let blob = [one(500, 9, Delete), one(500, 8, Blob)];
    assert_eq!(left(&tree, &[], &blob), "");
    assert_eq!(left(&tree, &[], &[one(500, 9, Delete)]), "500@9 Delete", "it met nothing");
    let twice = [one(500, 9, Delete), one(500, 8, Delete), one(500, 7, Put)];
    assert_eq!(left(&tree, &[], &twice), "500@9 Delete", "the one that it met is no put");
    let again = [one(500, 9, Put), one(500, 8, Delete), one(500, 7, Put)];
    assert_eq!(left(&tree, &[], &again), "500@9 Put");
    let more = [one(500, 9, Delete), one(500, 8, Put), one(500, 7, Delete), one(500, 6, Put)];
    assert_eq!(left(&tree, &[], &more), "");
    let others = [one(499, 9, Delete), one(500, 8, Put), one(501, 7, Delete), one(502, 6, Put)];
    assert_eq!(left(&tree, &[], &others), "499@9 Delete, 500@8 Put, 501@7 Delete, 502@6 Put");
}

#[test]
fn snapshots_keep_both_a_delete_and_its_put() {
    use Kind::{Delete, Put};
    let empty = state(&[]);
    let pair = [one(1, 9, Delete), one(1, 8, Put)];
    assert_eq!(left(&empty, &[8], &pair), "1@9 Delete, 1@8 Put");
    assert_eq!(left(&empty, &[7, 12], &pair), "1@9 Delete", "a reader may be at 7");
    assert_eq!(left(&empty, &[9], &pair), "");
    assert_eq!(left(&empty, &[9, 12], &pair), "");
    let again = [one(1, 11, Put), one(1, 9, Delete), one(1, 8, Put)];
    assert_eq!(left(&empty, &[9, 12], &again), "1@11 Put");
    assert_eq!(left(&empty, &[8, 12], &again), "1@11 Put, 1@8 Put");
    let of_two = [one(1, 11, Delete), one(1, 10, Put), one(1, 9, Delete), one(1, 8, Put)];
    assert_eq!(left(&empty, &[9, 12], &of_two), "1@11 Delete");
}

#[test]
fn filters_are_loaded_where_that_is_cheap() {
    let world = World::new();
    let tables: Vec<Arc<Table>> = (0..100)
        .map(|at| {
            world.table(Codec::None, &[put(10 * at, 1, text(1)), put(10 * at + 8, 1, text(1))])
        })
        .collect();
    let of_level: Vec<(usize, &Arc<Table>)> = tables.iter().map(|table| (5, table)).collect();
    let tree = state(&of_level);
    let pairs: Vec<Entry> = (0..100)
        .flat_map(|at| [one(10 * at + 4, 9, Kind::Delete), one(10 * at + 4, 8, Kind::Put)])
        .collect();
    // A job loads an eighth of its own bytes, and none of a tree that should have no filters.
    let bytes = 8 * tables[..64].iter().map(load_bytes).sum::<u64>();
    let kept = |bytes, bits| left_by(Older::all(&tree, bytes, bits), &[], &pairs);
    assert_eq!(kept(bytes, 0).split(", ").count(), 100);
    assert_eq!(kept(bytes, 10).split(", ").count(), 36, "one job loads 64");
    assert_eq!(kept(bytes, 10), "", "the next one the others");
    assert_eq!(kept(0, 0), "", "what is loaded is asked");
    // A file that cannot be read tells nothing, and nobody of that.
    let lost = tens(&world);
    world.fs.remove(lost.path()).unwrap();
    let pair = [one(500, 9, Kind::Delete), one(500, 8, Kind::Put)];
    assert_eq!(left(&state(&[(3, &lost)]), &[], &pair), "500@9 Delete");
    assert!(!is_loaded(&lost) && !is_loaded(&tens(&world)));
    // Nor does a table without a filter, or one whose filter would take the place of others.
    let mut world = World::new();
    world.shared = TableEnv::new(world.env.clone(), 1, Arc::new(Recorder::new()));
    let table = tens(&world);
    assert_eq!(left(&state(&[(3, &table)]), &[], &pair), "500@9 Delete");
    assert!(!is_loaded(&table));
    // Half of what may be taken is for others: here a fifth of all.
    let mut world = World::new();
    let total = 5 * 3 * load_bytes(&table) / 2;
    world.shared = TableEnv::new(world.env.clone(), total, Arc::new(Recorder::new()));
    let [first, second] = [tens(&world), tens(&world)];
    assert_eq!(left(&state(&[(3, &first)]), &[], &pair), "");
    assert_eq!(left(&state(&[(3, &second)]), &[], &pair), "500@9 Delete");
    assert!(is_loaded(&first) && !is_loaded(&second));
    let mut world = World::new();
    world.filter_bits = 0;
    assert_eq!(left(&state(&[(3, &tens(&world))]), &[], &pair), "500@9 Delete");
}

#[test]
fn a_load_that_deletes_what_is_there_soon_asks_little() {
    let world = World::new();
    let entries: Vec<Entry> = (0..2000).map(|number| put(number, 1, text(number))).collect();
    let table = world.table(Codec::None, &entries);
    let tree = state(&[(6, &table)]);
    let mut older = Older::all(&tree, 1 << 20, 10);
    assert!((0..32).all(|number| !older.surely_lacks(&key(number))));
    // Now even what is not there is not asked for, until its turn comes.
    let lacks: Vec<bool> = (0..1000).map(|at| older.surely_lacks(&key(5000 + at))).collect();
    assert_eq!(lacks.iter().position(|&lacks| lacks), Some(255));
    assert!(lacks[255..].iter().all(|&lacks| lacks), "from then on all are");
    let asked: Vec<bool> = (0..2000).map(|number| older.surely_lacks(&key(number))).collect();
    assert!(asked.iter().all(|&lacks| !lacks));
    // After each rest as many are asked as at first: one that is there does not end it.
    let mut older = Older::all(&tree, 1 << 20, 10);
    assert!((0..32 + 255).all(|number| !older.surely_lacks(&key(number))));
    assert!((0..31).all(|number| !older.surely_lacks(&key(number))));
    assert!(older.surely_lacks(&key(5000)), "the last before the next rest");
}

/// Merges two levels above those of a tree, which is asked or not.
fn merged(
    world: &World,
    tree: &ArcSwap<TreeState>,
    asks: bool,
    inputs: [&[Entry]; 2],
) -> Vec<Entry> {
    let [above, output] = inputs.map(|entries| vec![world.table(Codec::Lz4, entries)]);
    let mut job = Job::new(world, Codec::Lz4, vec![(3, above), (4, output)]);
    (job.plan.output_level, job.plan.is_last) = (4, false);
    let metas = tree.load().version.shape().levels.concat();
    job.plan.below = vec![metas];
    job.snapshots = vec![100];
    let context = Context { state: asks.then_some(tree), ..job.context() };
    let mut merge = PartMerge::begin(&context, &Part::default()).unwrap();
    while merge.step().unwrap() {}
    let done = merge.finish().unwrap();
    done.tables.iter().flat_map(|meta| content(&world.open(meta.clone()))).collect()
}

#[test]
fn a_merge_takes_a_delete_with_its_put_where_levels_below_lack_the_key() {
    let mut world = World::new();
    world.block_bytes = 4096;
    // Below are tens; of the keys that come together, each is deleted above and put in the output.
    let table = tens(&world);
    let tree = state(&[(5, &table)]);
    let mut random = StdRng::seed_from_u64(3);
    for _ in 0..20 {
        let (mut above, mut output) = (Vec::new(), Vec::new());
        let mut expected = Vec::new();
        for number in 0..1000u32 {
            let is_below = number.is_multiple_of(10) && number != 500;
            let (old, new) = (put(number, 20, text(number)), put(number, 30, text(number)));
            let delete = one(number, 40, Kind::Delete);
            match random.random_range(0..6) {
                0 => output.push(old.clone()),
                1 => above.push(new.clone()),
                2 => above.push(delete.clone()),
                3 | 4 => {
                    above.push(delete.clone());
                    output.push(old.clone());
                }
                _ => continue,
            }
            let last = above.last().into_iter().chain(output.last());
            let newest = last.filter(|e| e.key == key(number)).max_by_key(|e| e.seq).unwrap();
            let met = newest.kind == Kind::Delete && output.last().is_some_and(|o| *o == old);
            if !met || is_below {
                expected.push(newest.clone());
            }
        }
        let got = merged(&world, &tree, true, [&above, &output]);
        // A filter may be wrong, which keeps a delete.
        let kept: Vec<&Entry> = got.iter().filter(|entry| !expected.contains(entry)).collect();
        assert!(kept.iter().all(|entry| entry.kind == Kind::Delete));
        assert!(kept.len() < 20, "{kept:?}");
        assert!(expected.iter().all(|entry| got.contains(entry)), "nothing else goes");
        let deletes = |entries: &[Entry]| entries.iter().filter(|e| e.kind == Kind::Delete).count();
        let unasked = merged(&world, &tree, false, [&above, &output]);
        assert_eq!(deletes(&unasked), deletes(&above), "without, all stay");
    }
}

#[test]
fn a_merge_asks_nobody_where_older_rows_may_come_from_elsewhere() {
    let world = World::new();
    let tree = state(&[]);
    let table = world.table(Codec::None, &[put(1, 1, text(1))]);
    let mut plan = Job::new(&world, Codec::None, vec![(3, vec![table])]).plan;
    plan.output_level = 4;
    assert!(Older::below(&plan, &tree, 0).is_some());
    plan.building = true;
    assert!(Older::below(&plan, &tree, 0).is_none(), "the tree is being built");
    (plan.building, plan.output_level) = (false, 0);
    assert!(Older::below(&plan, &tree, 0).is_none(), "beside older tables of level 0");
}
