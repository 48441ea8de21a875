//! Where the outputs of a merge end.

use super::*;

/// Rows by themselves, and blocks that could be taken as they are: a table that reaches a few rows
/// over the end of one below would be merged with the next one below, too.
#[test]
fn outputs_end_where_tables_below_do_to_the_key() {
    for reuses in [false, true] {
        let mut world = World::new();
        world.block_bytes = 4096;
        let parts: [Vec<Entry>; 2] = if reuses {
            [(0..40, 9), (0..6000, 0)].map(|(all, seq)| all.map(|n| put(n, seq, text(n))).collect())
        } else {
            let of = |rest| (0..6000).filter(move |n| n % 2 == rest);
            [
                of(0).map(|n| put(n, 9, text(n))).collect(),
                of(1).map(|n| put(n, 1, text(n))).collect(),
            ]
        };
        let [above, below] = parts.map(|entries| vec![world.table(Codec::Lz4, &entries)]);
        let mut job = Job::new(&world, Codec::Lz4, vec![(1, above), (2, below)]);
        (job.plan.output_level, job.plan.is_last, job.plan.table_bytes) = (2, false, 16 << 10);
        let firsts = (0..6000).step_by(37);
        let below = |n| {
            world.write(
                Codec::None,
                &[put(n, 1, text(n)), put(n + 36, 1, text(n))],
                &RangeDeletes::default(),
            )
        };
        job.plan.grandparents = firsts.map(|n| Arc::new(below(n))).collect();
        let done = job.check(&Part::default());
        assert_eq!(done.blocks_reused > 0, reuses);
        assert!(done.tables.len() > 4, "{}", done.tables.len());
        for two in done.tables.windows(2) {
            let at =
                job.plan.grandparents.iter().position(|below| !below.is_before(&two[0].largest));
            let below = &job.plan.grandparents[at.unwrap()];
            assert_eq!(two[0].largest, below.largest, "it ends with one below");
            assert!(below.is_before(&two[1].smallest));
        }
    }
}
