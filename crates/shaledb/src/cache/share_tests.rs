use super::*;

/// Tallies of 100,000 uses: by share, so many reads and decompressed blocks.
fn tallies(counts: [(u32, u32); SHARES]) -> [Tally; SHARES] {
    counts.map(|(read, unpacked)| Tally {
        found: f64::from(100_000 - read - unpacked),
        unpacked: unpacked.into(),
        read: read.into(),
    })
}

fn at(step: usize, why: Why) -> Choice {
    Choice { step, why }
}

const SLOW: Costs = Costs { read_nanos: 100_000.0, unpack_nanos: 20_000.0 };
const PAGE_CACHE: Costs = Costs { read_nanos: 2_000.0, unpack_nanos: 20_000.0 };

/// Fewer reads and more decompressed blocks with each step.
const SAVES: [(u32, u32); SHARES] = [
    (40_000, 0),
    (38_000, 4_000),
    (35_000, 9_000),
    (32_000, 14_000),
    (29_000, 19_000),
    (26_000, 24_000),
    (23_000, 30_000),
    (19_000, 37_000),
];
/// A hill in between, and all that is used fits compressed at the end.
const HILL: [(u32, u32); SHARES] = [
    (20_000, 0),
    (20_100, 200),
    (20_200, 400),
    (20_100, 600),
    (16_000, 5_000),
    (9_000, 15_000),
    (5_000, 20_000),
    (2_500, 25_000),
];
const SAVES_NOTHING: [(u32, u32); SHARES] = [
    (30_000, 0),
    (30_000, 2_000),
    (30_100, 4_000),
    (30_200, 6_000),
    (30_300, 8_000),
    (30_400, 10_000),
    (30_500, 12_000),
    (30_600, 14_000),
];

#[test]
fn decisions() {
    let fits = SAVES.map(|_| (100, 0));
    let cases = [
        // Storage is slow: step by step to the most compressed.
        (at(0, Why::Unmeasured), SAVES, SLOW, at(1, Why::OnTheWay)),
        (at(6, Why::SavesReads), SAVES, SLOW, at(7, Why::SavesReads)),
        (at(7, Why::SavesReads), SAVES, SLOW, at(7, Why::SavesReads)),
        // The page cache is faster than decompressing.
        (at(0, Why::Unmeasured), SAVES, PAGE_CACHE, at(0, Why::ReadsAreCheap)),
        (at(3, Why::SavesReads), SAVES, PAGE_CACHE, at(2, Why::OnTheWay)),
        (at(1, Why::SavesReads), SAVES, PAGE_CACHE, at(0, Why::ReadsAreCheap)),
        // It goes over the hill, whose top takes more time.
        (at(0, Why::Unmeasured), HILL, SLOW, at(1, Why::OnTheWay)),
        (at(2, Why::OnTheWay), HILL, SLOW, at(3, Why::OnTheWay)),
        (at(4, Why::SavesReads), HILL, SLOW, at(5, Why::OnTheWay)),
        // Random data that codecs do not help with.
        (at(0, Why::Unmeasured), SAVES_NOTHING, SLOW, at(0, Why::SavesNothing)),
        (at(5, Why::SavesReads), SAVES_NOTHING, SLOW, at(4, Why::OnTheWay)),
        // All of it fits: back to none, whatever reads cost.
        (at(0, Why::Unmeasured), fits, SLOW, at(0, Why::Fits)),
        (at(3, Why::SavesReads), fits, SLOW, at(2, Why::Fits)),
        (at(0, Why::Fits), fits, Costs::default(), at(0, Why::Fits)),
        // Nothing is known of what reads cost.
        (at(2, Why::SavesReads), SAVES, Costs::default(), at(2, Why::SavesReads)),
    ];
    for (number, (now, counts, costs, expected)) in cases.into_iter().enumerate() {
        assert_eq!(choose(now, &tallies(counts), costs), expected, "case {number}");
    }
}

#[test]
fn it_stays_where_it_is_good_enough() {
    // Another share is better by a fiftieth.
    let mut counts = [(10_000, 0); SHARES];
    counts[1] = (9_800, 0);
    for now in [0, 2, 7] {
        assert_eq!(choose(at(now, Why::SavesReads), &tallies(counts), SLOW).step, now);
    }
    counts[1] = (9_600, 0);
    assert_eq!(choose(at(2, Why::SavesReads), &tallies(counts), SLOW).step, 1);
}

#[test]
fn too_few_reads_decide_nothing() {
    let few = SAVES.map(|(read, unpacked)| (read / 1000, unpacked / 1000));
    let few = few.map(|(read, unpacked)| Tally {
        found: 10.0,
        unpacked: unpacked.into(),
        read: read.into(),
    });
    let now = at(2, Why::SavesReads);
    assert_eq!(choose(now, &few, SLOW), now);
}

#[test]
fn from_anywhere_it_comes_to_the_same() {
    for (counts, costs, best) in [(SAVES, SLOW, 7), (SAVES, PAGE_CACHE, 0), (HILL, SLOW, 7)] {
        for step in 0..SHARES {
            let mut choice = at(step, Why::SavesReads);
            for _ in 0..SHARES {
                choice = choose(choice, &tallies(counts), costs);
            }
            assert_eq!(choice.step, best, "from {step}");
        }
    }
}
