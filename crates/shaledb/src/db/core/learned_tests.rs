use super::*;
use crate::compaction::policy::candidates::USUAL;

fn table(codec: Codec, ratio: f64) -> TableMeta {
    let raw_bytes = 1 << 20;
    let data_bytes = (raw_bytes as f64 * ratio) as u64;
    TableMeta { raw_bytes, data_bytes, codec: Some(codec), ..TableMeta::default() }
}

#[test]
fn data_that_changes_is_probed_anew() {
    let mut learned = Learned::default();
    assert!(learned.wants_probe(3));
    learned.wrote(3, (&table(Codec::None, 1.0), Codec::None, Some(false)), 0, Some(USUAL));
    assert!(!learned.wants_probe(3) && learned.wants_probe(2));
    learned.wrote(
        3,
        (&table(Codec::Zstd(3), USUAL.0[4].ratio * 1.1), Codec::Zstd(3), Some(false)),
        0,
        None,
    );
    assert!(!learned.wants_probe(3));
    let lz4 = learned.costs()[3].unwrap().0[1].ratio;
    assert!((lz4 / USUAL.0[1].ratio - 1.1).abs() < 0.01, "what others would do changes as much");
    learned.wrote(
        3,
        (&table(Codec::Zstd(3), USUAL.0[4].ratio * 2.0), Codec::Zstd(3), Some(false)),
        0,
        None,
    );
    assert!(learned.wants_probe(3));
}

#[test]
fn plain_tables_are_probed_more_often() {
    let mut learned = Learned::default();
    learned.wrote(0, (&table(Codec::None, 1.0), Codec::None, Some(false)), 0, Some(USUAL));
    for _ in 1..PLAIN_TABLES_PER_PROBE {
        assert!(!learned.wants_probe(0));
        learned.wrote(0, (&table(Codec::None, 1.0), Codec::None, Some(false)), 0, None);
    }
    assert!(learned.wants_probe(0));
}

#[test]
fn load_is_an_average_and_ends() {
    let mut learned = Learned::default();
    let mut read = [0.0; LEVELS];
    read[6] = 1e6;
    let mut load = [LevelLoad::default(); LEVELS];
    for _ in 0..40 {
        // Half of the blocks were reused.
        let meta = table(Codec::Lz4, 0.5);
        learned.wrote(1, (&meta, Codec::Lz4, Some(false)), meta.data_bytes / 2, None);
        load = learned.look(&read, 1.0);
    }
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
    assert!(near(load[1].written, f64::from(1 << 19)) && near(load[6].read, 1e6), "{load:?}");
    for _ in 0..100 {
        load = learned.look(&[0.0; LEVELS], 1.0);
    }
    assert_eq!(load, [LevelLoad::default(); LEVELS]);
}

#[test]
fn a_small_table_decides_nothing() {
    let mut learned = Learned::default();
    let small = TableMeta { raw_bytes: 20, data_bytes: 29, ..table(Codec::None, 1.0) };
    learned.wrote(0, (&small, Codec::None, Some(false)), 0, Some(USUAL));
    assert!(learned.wants_probe(0) && learned.costs()[0].is_none());
}

#[test]
fn a_table_that_differs_from_its_own_probe_is_not_probed_again() {
    let mut learned = Learned::default();
    learned.wrote(6, (&table(Codec::Zstd(3), 0.1), Codec::Zstd(3), Some(false)), 0, Some(USUAL));
    assert!(!learned.wants_probe(6), "a dictionary may make it much smaller than its probe");
    learned.wrote(6, (&table(Codec::Zstd(3), 0.1), Codec::Zstd(3), Some(false)), 0, None);
    assert!(!learned.wants_probe(6));
}
