//! The pace that a merge of level 0 sets: none for bursts and short merges, steady for long ones.

use super::*;

const MIB: u64 = 1 << 20;
const RATE: u64 = 100 * MIB;

fn level0(tables: usize, merge: Option<UnderWay>) -> Level0 {
    let bytes = tables as u64 * 54 * MIB;
    let came = |merge: UnderWay| tables.saturating_sub(merge.tables);
    let merge = merge.map(|merge| UnderWay { came: came(merge), ..merge });
    Level0 { tables, bytes, memtable_bytes: 54 * MIB, share: 1.0, merge }
}

/// Of sixteen tables.
fn merge(mib: u64, seconds: f64, done: f64) -> Option<UnderWay> {
    let nanos = (seconds * 1e9) as u64;
    Some(UnderWay { tables: 16, came: 0, input_bytes: mib * MIB, nanos, done })
}

/// MiB per second that writers are held to.
fn pace(tables: usize, merge: Option<UnderWay>) -> f64 {
    1e9 / level0(tables, merge).nanos_per_byte(RATE) / MIB as f64
}

#[test]
fn a_merge_tells_its_end() {
    let left = |seconds, done| merge(4000, seconds, done).unwrap().nanos_left(RATE) / 1e9;
    assert_eq!(left(0.0, 0.0), 40.0);
    // One that takes longer than those before.
    assert_eq!((left(20.0, 0.25), left(40.0, 0.5), left(80.0, 1.0)), (60.0, 40.0, 0.0));
    // At first, what others took counts as well.
    assert!((40.0..60.0).contains(&left(4.0, 0.05)));
    assert!(merge(0, 0.0, 0.0).unwrap().nanos_left(0).is_finite());
}

#[test]
fn bursts_and_short_merges_slow_nobody() {
    for tables in 0..=PACED_MIN {
        assert_eq!(level0(tables, merge(4000, 0.0, 0.0)).nanos_per_byte(RATE), 0.0, "{tables}");
    }
    // A second's merge lets more in than any writer has.
    assert!(pace(16, merge(100, 0.0, 0.0)) > 800.0);
    for tables in 0..=SOFT {
        assert_eq!(level0(tables, None).nanos_per_byte(RATE), 0.0, "{tables}");
    }
}

/// A writer that could do 200 MiB/s beside merges of level 0 with a last level of 3 GiB: whatever
/// level 0 has when it ends, the next merge takes.
#[test]
fn a_writer_is_even_and_level_0_bounded() {
    let (mut tables, mut most) = (8.0, 0.0f64);
    for cycle in 0..20 {
        let inputs = tables;
        let bytes = 3000.0 + inputs * 54.0;
        let (mut least, mut fastest) = (f64::MAX, 0.0f64);
        let mut seconds = 0.0;
        while seconds * 100.0 < bytes {
            let done = seconds * 100.0 / bytes;
            let under_way = merge(bytes as u64, seconds, done);
            let under_way = under_way.map(|merge| UnderWay { tables: inputs as usize, ..merge });
            let now = level0(tables as usize, under_way);
            let price = now.nanos_per_byte(RATE);
            let rate = (1e9 / MIB as f64 / price.max(1e-9)).min(200.0);
            // At the very end the last table may come at once.
            if done < 0.9 {
                (least, fastest) = (least.min(rate), fastest.max(rate));
            }
            tables += rate * 0.1 / 54.0;
            seconds += 0.1;
        }
        most = most.max(tables);
        tables -= inputs;
        if cycle >= 3 {
            assert!(fastest < 2.0 * least, "{cycle}: {least} to {fastest} MiB/s");
        }
    }
    assert!(most < 2.0 * COME_MAX as f64 + 6.0, "{most}");
}

#[test]
fn more_tables_are_more_wait() {
    for under_way in [None, merge(4000, 0.0, 0.0), merge(4000, 30.0, 0.9)] {
        let mut before = 0.0;
        for tables in 0..60 {
            let now = level0(tables, under_way).nanos_per_byte(RATE);
            assert!(now >= before && now.is_finite(), "{tables}: {before} to {now}");
            before = now;
        }
        assert_eq!(before, 16.0 * 1e9 / RATE as f64);
    }
}

#[test]
fn half_way_is_the_rate_of_the_work() {
    let half = level0(SOFT + HARD_MORE / 2, None).nanos_per_byte(RATE);
    assert!((half - 4e9 / RATE as f64).abs() < 1e-6, "{half}");
}

#[test]
fn a_tree_that_gets_little_slows_the_others_little() {
    let all = level0(16, merge(4000, 0.0, 0.0));
    let part = Level0 { share: 0.02, ..all };
    let (all, part) = (all.nanos_per_byte(RATE), part.nanos_per_byte(RATE));
    assert!((part / all - 0.02).abs() < 1e-9, "{part} of {all}");
}

#[test]
fn a_merge_that_takes_few_lets_as_many_in() {
    let few = UnderWay { tables: 4, came: 0, input_bytes: 400 * MIB, nanos: 0, done: 0.0 };
    let of = |came| {
        let merge = Some(UnderWay { came, ..few });
        Level0 { tables: 14 + came, merge, ..level0(14, None) }.nanos_per_byte(RATE)
    };
    assert!(of(0) > 0.0 && of(0) < of(3) && of(3) < of(6), "{} {} {}", of(0), of(3), of(6));
    // A quarter of a second for each table, of which the first is not waited for at the cap.
    assert!((of(0) * 54.0 * MIB as f64 / 1e9 - 0.25).abs() < 0.01, "{}", of(0));
}

#[test]
fn small_tables_count_as_what_they_are() {
    let small = Level0 { bytes: 16 * MIB, ..level0(16, merge(4000, 0.0, 0.0)) };
    assert!(small.nanos_per_byte(RATE) > level0(16, small.merge).nanos_per_byte(RATE));
}
