use super::*;
use crate::compaction::policy::candidates::USUAL;

fn table(codec: Codec, ratio: f64) -> Seen {
    let raw_bytes = 1 << 20;
    let data_bytes = (raw_bytes as f64 * ratio) as u64;
    Seen { raw_bytes, data_bytes, reused_bytes: 0, codec, dictionary: Some(false) }
}

/// A dictionary of this number, which is no longer in memory.
fn with(id: u32) -> TreeDictionary {
    TreeDictionary::With { id, held: Weak::new() }
}

/// Whether the table is to be studied; it is, with the usual result.
fn studied(learned: &mut Learned, level: usize, table: &Seen) -> bool {
    let wanted = learned.wrote(level, table);
    if wanted {
        learned.studied(level, table, USUAL);
    }
    wanted
}

#[test]
fn data_that_changes_is_studied_anew() {
    let mut learned = Learned::default();
    assert!(studied(&mut learned, 3, &table(Codec::None, 1.0)));
    assert!(!studied(&mut learned, 3, &table(Codec::None, 1.0)));
    assert!(studied(&mut learned, 2, &table(Codec::None, 1.0)));
    let usual = USUAL.0[4].ratio;
    assert!(!studied(&mut learned, 3, &table(Codec::Zstd(3), usual * 1.08)));
    let lz4 = learned.costs()[3].unwrap().0[1].ratio;
    assert!((lz4 / USUAL.0[1].ratio - 1.08).abs() < 0.01, "what others would do changes as much");
    let other = table(Codec::Zstd(3), usual * 2.0);
    assert!(studied(&mut learned, 3, &other));
    assert!(!studied(&mut learned, 3, &other), "it is as the table before");
}

#[test]
fn a_codec_that_is_no_candidate_shows_a_change_too() {
    let mut learned = Learned::default();
    assert!(studied(&mut learned, 6, &table(Codec::Zlib(6), 0.3)));
    assert!(!studied(&mut learned, 6, &table(Codec::Zlib(6), 0.3)));
    assert!(studied(&mut learned, 6, &table(Codec::Zlib(6), 0.5)));
}

#[test]
fn plain_tables_are_studied_more_often() {
    let mut learned = Learned::default();
    let plain = table(Codec::None, 1.0);
    // So that no other level has much less than all that was written.
    let large = Seen { raw_bytes: 1 << 30, data_bytes: 1 << 30, ..plain };
    assert!(studied(&mut learned, 6, &large));
    assert!(studied(&mut learned, 0, &plain));
    for _ in 1..PLAIN_TABLES_PER_PROBE {
        assert!(!studied(&mut learned, 0, &plain));
    }
    assert!(studied(&mut learned, 0, &plain));
}

#[test]
fn much_data_is_studied_again() {
    let mut learned = Learned::default();
    let large = Seen { raw_bytes: BYTES_PER_PROBE / 2, ..table(Codec::Lz4, 0.5) };
    let large = Seen { data_bytes: large.raw_bytes / 2, ..large };
    assert!(studied(&mut learned, 6, &large));
    assert!(!studied(&mut learned, 6, &large));
    assert!(studied(&mut learned, 6, &large));
}

#[test]
fn a_tree_that_grows_is_studied_again() {
    let mut learned = Learned::default();
    let wanted: Vec<bool> =
        (0..20).map(|_| studied(&mut learned, 0, &table(Codec::Lz4, 0.5))).collect();
    let at: Vec<usize> = (0..20).filter(|at| wanted[*at]).collect();
    assert_eq!(at, [0, 3, 15]);
}

#[test]
fn what_reads_lose_adds_up_and_is_never_a_gain() {
    let mut learned = Learned::default();
    assert_eq!(learned.lose([5.0, 0.0, -3.0]), [5.0, 0.0, 0.0]);
    assert_eq!(learned.lose([5.0, 1.0, 2.0]), [10.0, 1.0, 2.0]);
    assert_eq!(learned.lose([-4.0, -2.0, 0.0]), [6.0, 0.0, 2.0], "reads have changed");
    learned.forget_losses();
    assert_eq!(learned.lose([0.0; 3]), [0.0; 3]);
}

#[test]
fn what_a_rewrite_has_left_is_known() {
    let mut learned = Learned::default();
    assert_eq!(learned.rewritten([90, 50, 10], None), [0, 0, 0]);
    assert_eq!(learned.rewritten([20, 50, 70], Some(0)), [20, 0, 0]);
    assert_eq!(learned.rewritten([40, 50, 70], None), [20, 0, 0], "more has come");
    assert_eq!(learned.rewritten([5, 50, 70], None), [5, 0, 0], "it has become less");
}

#[test]
fn load_is_an_average_and_ends() {
    let mut learned = Learned::default();
    let mut read = [LevelReads::default(); LEVELS];
    read[6] = LevelReads { bytes: 1e6, apart: 200.0 };
    for _ in 0..40 {
        // Half of the blocks were reused.
        let table = table(Codec::Lz4, 0.5);
        learned.wrote(1, &Seen { reused_bytes: table.data_bytes / 2, ..table });
        assert!(learned.look(&read, 1.0));
    }
    let load = learned.loads();
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
    assert!(near(load[1].written, f64::from(1 << 19)) && near(load[6].read, 1e6), "{load:?}");
    assert!(near(learned.blocks(6).1, 200.0), "{:?}", learned.blocks(6));
    let mut looks = 0;
    // At the last one it has ended, which the codecs are to be chosen by.
    while learned.look(&[LevelReads::default(); LEVELS], 1.0) {
        looks += 1;
        assert!(looks < 100);
    }
    assert!(looks > 10);
    assert_eq!(learned.loads(), [LevelLoad::default(); LEVELS]);
}

#[test]
fn a_small_table_decides_nothing() {
    let mut learned = Learned::default();
    let small = Seen { raw_bytes: 20, data_bytes: 29, ..table(Codec::None, 1.0) };
    assert!(!learned.wrote(0, &small) && learned.costs()[0].is_none());
}

#[test]
fn a_table_that_differs_from_its_own_blocks_is_not_studied_again() {
    let mut learned = Learned::default();
    assert!(studied(&mut learned, 6, &table(Codec::Zstd(3), 0.1)));
    assert!(!studied(&mut learned, 6, &table(Codec::Zstd(3), 0.1)));
}

#[test]
fn another_dictionary_has_all_levels_studied() {
    let mut learned = Learned::default();
    for level in [0, 6] {
        assert!(studied(&mut learned, level, &table(Codec::Lz4, 0.5)));
    }
    assert!(!learned.has_dictionary(TreeDictionary::Without, (1.0, 7)));
    assert!(!studied(&mut learned, 0, &table(Codec::Lz4, 0.5)));
    assert!(learned.has_dictionary(with(1), (9.0, 7)));
    assert_eq!((learned.dictionary_saved(), learned.dictionary_saves().1), ((9.0, 7), 1));
    assert!(studied(&mut learned, 0, &table(Codec::Lz4, 0.5)));
    assert!(studied(&mut learned, 6, &table(Codec::Lz4, 0.5)));
}

#[test]
fn of_dictionaries_that_did_not_pay_the_best_is_remembered_while_tables_are_as_large() {
    let mut learned = Learned::default();
    let mut noted = |saves, bytes| {
        learned.has_dictionary(TreeDictionary::Without, (saves, bytes));
        learned.dictionary_saved()
    };
    assert_eq!(noted(4.0, 100), (4.0, 100));
    assert_eq!(noted(3.0, 400), (4.0, 100));
    assert_eq!(noted(4.5, 400), (4.5, 100));
    assert_eq!(noted(2.0, 401), (2.0, 401));
}

#[test]
fn a_dictionary_that_is_read_again_is_the_same_one() {
    let mut learned = Learned::default();
    learned.found_dictionary(with(1), 100);
    assert_eq!(learned.dictionary_saved(), (0.0, 100), "what it saved is not known");
    assert!(learned.has_dictionary(with(2), (20.0, 500)));
    learned.found_dictionary(with(2), 900);
    assert_eq!(learned.dictionary_saved(), (20.0, 500));
    assert!(!learned.has_dictionary(with(2), (19.0, 900)), "it stays");
    assert_eq!(learned.dictionary_saves(), (Some(19.0), 1));
    // It is in no table yet: of the one before as much is asked.
    learned.found_dictionary(with(1), 900);
    assert_eq!((learned.dictionary().id(), learned.dictionary_saved()), (Some(1), (20.0, 500)));
    learned.found_dictionary(TreeDictionary::Unknown, 0);
    assert_eq!(learned.dictionary_saved(), (0.0, 0));
}

fn dictionary(number: usize) -> Arc<Dictionary> {
    let row = |at: usize| format!("{number} is the number of {at}, of which there are many");
    let rows: Vec<String> = (0..200).map(row).collect();
    let rows: Vec<&[u8]> = rows.iter().map(String::as_bytes).collect();
    Arc::new(Dictionary::make(&rows.concat(), &rows, 3).unwrap())
}

fn trial_of(dictionary: &Arc<Dictionary>) -> Trial {
    let sizes = SizeCosts([USUAL.0[4]; 3]);
    Trial { held: Arc::downgrade(dictionary), without: sizes, with: sizes, costs: None }
}

#[test]
fn what_is_tried_first() {
    let mut learned = Learned::default();
    let (one, other) = (dictionary(1), dictionary(2));
    let to_try = |learned: &Learned| {
        let (own, saves) = learned.to_try();
        (own.map(|own| own.id()), saves)
    };
    assert_eq!(to_try(&learned), (None, (0.0, 0)));
    learned.tried(Some(trial_of(&one)), (6.0, 1 << 20));
    assert_eq!(to_try(&learned), (Some(one.id()), (6.0, 1 << 20)));
    // One that pays in blocks of any size is found meanwhile.
    assert!(learned.has_dictionary(TreeDictionary::with(&other), (5.0, 1 << 20)));
    assert!(learned.trial().is_none(), "it would replace that one");
    learned.tried(Some(trial_of(&one)), (6.0, 1 << 20));
    assert!(learned.trial().is_none(), "nor what was begun before");
    // It does not pay any more, and is remembered.
    assert!(learned.has_dictionary(TreeDictionary::Without, (1.0, 1 << 20)));
    assert_eq!(to_try(&learned), (Some(other.id()), (5.0, 1 << 20)));
    drop(other);
    assert_eq!(to_try(&learned), (None, (0.0, 0)), "it has left memory, and was not in vain");
    learned.tried(None, (2.5, 1 << 20));
    assert_eq!(to_try(&learned), (None, (2.5, 1 << 20)), "that was in vain");
    learned.tried(Some(trial_of(&one)), (6.0, 1 << 20));
    learned.forget_trial();
    assert!(learned.trial().is_none());
    assert_eq!(to_try(&learned), (Some(one.id()), (6.0, 1 << 20)), "set aside only");
    learned.tried(Some(trial_of(&one)), (6.0, 1 << 20));
    learned.adopt_trial(4.0);
    assert_eq!(learned.dictionary().id(), Some(one.id()));
    assert_eq!(learned.dictionary_saved(), (4.0, 1 << 20));
    assert!(learned.trial().is_none());
}
