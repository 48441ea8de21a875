use super::*;
use crate::base::config::Codec;
use crate::compaction::policy::auto::Window;
use crate::compaction::policy::sizes::BlockSizes;
use crate::fs::Env;

const ZSTD: Codec = Codec::Zstd(3);

/// Costs with these ratios; a block costs some time by itself.
fn costs(ratios: [f64; 3]) -> SizeCosts {
    let of = |at: usize| Cost {
        ratio: ratios[at],
        compress: 2.2 + 1000.0 / f64::from(SIZES[at]),
        decompress: 0.5 + 500.0 / f64::from(SIZES[at]),
    };
    SizeCosts([0, 1, 2].map(of))
}

fn price(short: Short) -> Price {
    let window = Window { dilation: 1.0, user_read_nanos: 0.3, ..Window::default() };
    Price { short, worth: 0.0, window }
}

/// A last level of 1 GB in blocks of 16 KiB, of which each second so many blocks are read by
/// look-ups, so many bytes by scans, and so many bytes are written.
fn last(ratios: [f64; 3], apart: f64, scanned: f64, written: f64) -> LevelBlocks {
    let load = LevelLoad { written, read: apart * 16e3 + scanned };
    let costs = Some(costs(ratios));
    let level = LevelBlocks { costs, decode_nanos: 0.5, load, apart, ..LevelBlocks::default() };
    of_blocks([0, 0, 1_000_000_000], level)
}

/// The same with so many bytes in blocks of each size.
fn of_blocks(tables: [u64; 3], level: LevelBlocks) -> LevelBlocks {
    let all: u64 = tables.iter().sum();
    let blocks: f64 =
        tables.iter().zip(SIZES).map(|(has, size)| *has as f64 / f64::from(size)).sum();
    let others = tables.map(|has| all - has);
    let block_bytes = all as f64 / blocks * 16e3 / 16_384.0;
    LevelBlocks { tables, others, block_bytes, row_bytes: 270.0, ..level }
}

fn chosen(level: usize, blocks: LevelBlocks, short: Short, before: ChosenSizes) -> ChosenSizes {
    let mut levels = [LevelBlocks::default(); LEVELS];
    levels[level] = blocks;
    choose(&price(short), &levels, &before, &[f64::MAX; 3]).0
}

fn bytes(level: usize, blocks: LevelBlocks, short: Short) -> (u32, BlockWhy) {
    let chosen = chosen(level, blocks, short, ChosenSizes::default());
    BlockSizes { chosen, ..BlockSizes::default() }.of(level)
}

const ALIKE: [f64; 3] = [0.408, 0.404, 0.4];
const UNLIKE: [f64; 3] = [0.5, 0.44, 0.4];

#[test]
fn sizes_by_what_is_done_with_a_level() {
    use Short::{Cpu, CpuForWrites, Nothing};
    let unread = |ratios| last(ratios, 0.0, 0.0, 1e6);
    let cases = [
        // While nobody reads, smaller blocks where they cost no space and nothing is short.
        (LAST, unread(ALIKE), Nothing, 4, BlockWhy::Unread),
        (LAST, unread([0.42, 0.41, 0.4]), Nothing, 8, BlockWhy::Unread),
        (LAST, unread(UNLIKE), Nothing, 16, BlockWhy::Unread),
        (LAST, unread(ALIKE), CpuForWrites, 16, BlockWhy::Unmeasured),
        (LAST - 1, unread(ALIKE), Nothing, 16, BlockWhy::Unmeasured),
        // Look-ups want small ones, scans and merges large ones.
        (LAST, last(ALIKE, 1e4, 0.0, 0.0), Nothing, 4, BlockWhy::LookedUp),
        (LAST, last(ALIKE, 1e4, 0.0, 1e6), Cpu, 4, BlockWhy::LookedUp),
        (LAST - 1, last(UNLIKE, 1e4, 0.0, 1e6), Nothing, 4, BlockWhy::LookedUp),
        (LAST, last(ALIKE, 10.0, 1e8, 0.0), Nothing, 16, BlockWhy::Scanned),
        (LAST, last(ALIKE, 10.0, 0.0, 1e8), CpuForWrites, 16, BlockWhy::Scanned),
        // Not at the price of the last level's size.
        (LAST, last(UNLIKE, 1e4, 0.0, 0.0), Nothing, 16, BlockWhy::Scanned),
        (LAST, last([0.42, 0.41, 0.4], 1e4, 0.0, 0.0), Nothing, 4, BlockWhy::LookedUp),
    ];
    for (at, (level, blocks, short, kib, why)) in cases.into_iter().enumerate() {
        assert_eq!(bytes(level, blocks, short), (kib << 10, why), "case {at}");
    }
}

#[test]
fn a_dictionary_lets_blocks_be_small() {
    let unread = |costs| {
        let blocks = LevelBlocks { costs: Some(costs), ..last(UNLIKE, 0.0, 0.0, 1e6) };
        chosen(LAST, blocks, Short::Nothing, ChosenSizes::default())
    };
    let without = costs(UNLIKE);
    // What it leaves of blocks of each size; what is chosen, and whether it is wanted for that.
    for (leaves, at, wanted) in [
        ([0.8, 0.9, 0.96], 0, true),
        ([0.83, 0.93, 0.96], 1, true),
        // Large blocks have it for 6 %, and are the measure then.
        ([0.83, 0.93, 0.94], 2, true),
        ([0.9, 0.92, 0.96], 1, true),
        ([0.9, 0.96, 1.0], 2, false),
        ([0.9, 0.98, 0.96], 2, false),
        ([0.9, 0.96, 0.9], 2, true),
        ([1.0, 1.0, 1.0], 2, false),
    ] {
        let with = costs([0, 1, 2].map(|at| leaves[at] * UNLIKE[at]));
        let sizes = unread(without.or(&with, [false; 3]));
        assert_eq!(sizes.levels[LAST].map(|choice| choice.at), Some(at), "{leaves:?}");
        assert_eq!(without.saves(&with, &sizes).is_some(), wanted, "{leaves:?}");
    }
    assert!(without.saves(&costs(ALIKE), &ChosenSizes::default()).is_none(), "none is chosen");
}

#[test]
fn while_nobody_reads_the_codec_decides() {
    let decompress = |nanos: f64| {
        let blocks = LevelBlocks { decode_nanos: nanos, ..last(ALIKE, 0.0, 0.0, 1e6) };
        bytes(LAST, blocks, Short::Nothing).0 >> 10
    };
    let codecs = [Codec::None, Codec::Lz4, Codec::Zstd(1), Codec::Zstd(12), Codec::Zlib(6)];
    let sizes = codecs.map(|codec| decompress(USUAL.decompress_nanos(codec)));
    assert_eq!(sizes, [16, 16, 4, 4, 4]);
}

#[test]
fn what_is_set_is_not_chosen_and_nothing_is_chosen_unmeasured() {
    let sizes = BlockSizes { set: 2048, ..BlockSizes::default() };
    assert_eq!(sizes.of(LAST), (2048, BlockWhy::Set));
    let unknown = LevelBlocks { costs: None, ..last(ALIKE, 1e4, 0.0, 0.0) };
    assert_eq!(bytes(LAST, unknown, Short::Nothing).1, BlockWhy::Unmeasured);
}

#[test]
fn a_choice_stays_until_another_is_clearly_better() {
    let small = chosen(LAST, last(ALIKE, 1e4, 0.0, 0.0), Short::Nothing, ChosenSizes::default());
    let after = |blocks, short| chosen(LAST, blocks, short, small).levels[LAST];
    // Nobody reads any more, and CPU is short.
    assert_eq!(after(last(ALIKE, 0.0, 0.0, 1e9), Short::CpuForWrites), small.levels[LAST]);
    let even = after(last(ALIKE, 2500.0, 1e7, 0.0), Short::Nothing);
    assert_eq!(even, small.levels[LAST]);
    let scanned = after(last(ALIKE, 10.0, 1e9, 0.0), Short::Nothing);
    assert_eq!(scanned.map(|choice| SIZES[choice.at]), Some(16 << 10));
}

#[test]
fn what_nobody_has_asked_for_gives_way_to_writes() {
    let unread = last(ALIKE, 0.0, 0.0, 1e8);
    let small = chosen(LAST, unread, Short::Nothing, ChosenSizes::default());
    assert_eq!(small.levels[LAST].map(|choice| choice.why), Some(BlockWhy::Unread));
    assert_eq!(chosen(LAST, unread, Short::CpuForWrites, small).levels[LAST], None);
    assert_eq!(chosen(LAST, unread, Short::Storage, small).levels[LAST], small.levels[LAST]);
}

#[test]
fn what_nobody_has_asked_for_follows_the_codec() {
    let unread = |decode_nanos| LevelBlocks { decode_nanos, ..last(ALIKE, 0.0, 0.0, 1e6) };
    let (light, middling, strong) = (unread(0.02), unread(0.18), unread(1.0));
    let size = |chosen: ChosenSizes| chosen.levels[LAST].map(|choice| SIZES[choice.at] >> 10);
    let mut now = ChosenSizes::default();
    for (blocks, kib) in [(light, 16), (middling, 16), (strong, 4), (middling, 4), (light, 16)] {
        now = chosen(LAST, blocks, Short::Nothing, now);
        assert_eq!(size(now), Some(kib));
    }
    // What reads have asked for does not, until they ask for something else.
    let read = chosen(LAST, last(ALIKE, 1e4, 0.0, 0.0), Short::Nothing, now);
    assert_eq!(size(read), Some(4));
    assert_eq!(size(chosen(LAST, light, Short::Nothing, read)), Some(4));
}

#[test]
fn what_is_found_stays_until_reads_come() {
    let found = |at| {
        let mut levels = [None; LEVELS];
        levels[LAST] = Some(SizeChoice { at, why: BlockWhy::Found });
        ChosenSizes { levels, rewrites_last: false }
    };
    // As large as what reads may have asked for, under a codec that asks for nothing.
    let unread = LevelBlocks { decode_nanos: 0.0, ..last([0.418, 0.41, 0.4], 0.0, 0.0, 1e6) };
    for at in 0..LARGEST {
        let after = |short| chosen(LAST, unread, short, found(at)).levels[LAST];
        assert_eq!(after(Short::Nothing), found(at).levels[LAST]);
        assert_eq!(after(Short::CpuForWrites), None);
        // What was chosen without reads stays if it has become a little too large.
        let mut before = found(at);
        before.levels[LAST] = Some(SizeChoice { at, why: BlockWhy::Unread });
        let strong = LevelBlocks { decode_nanos: 0.5, ..unread };
        assert_eq!(chosen(LAST, strong, Short::Nothing, before).levels, before.levels);
    }
    // What reads agree with is theirs.
    let agreed = chosen(LAST, last(ALIKE, 1e4, 0.0, 0.0), Short::Nothing, found(0)).levels[LAST];
    assert_eq!(agreed, Some(SizeChoice { at: 0, why: BlockWhy::LookedUp }));
}

#[test]
fn what_costs_too_much_space_does_not_stay() {
    let small = chosen(LAST, last(ALIKE, 1e4, 0.0, 0.0), Short::Nothing, ChosenSizes::default());
    for (short, kib) in [(Short::Nothing, Some(16)), (Short::CpuForWrites, None)] {
        let after = chosen(LAST, last(UNLIKE, 0.0, 0.0, 1e6), short, small).levels[LAST];
        assert_eq!(after.map(|choice| SIZES[choice.at] >> 10), kib, "the data has changed");
    }
}

#[test]
fn a_way_to_the_device_is_as_long_for_small_blocks() {
    // 80 us for 6,400 bytes: what is read of a block hardly counts.
    let window = Window { dilation: 1.0, user_read_nanos: 12_500.0 / 1e3, ..Window::default() };
    let slow = Price { window, ..price(Short::Nothing) };
    let mut levels = [LevelBlocks::default(); LEVELS];
    levels[LAST] = last(ALIKE, 1e4, 0.0, 0.0);
    let (chosen, _) = choose(&slow, &levels, &ChosenSizes::default(), &[f64::MAX; 3]);
    assert_eq!(chosen.levels[LAST].map(|choice| SIZES[choice.at]), Some(16 << 10));
    assert_eq!(chosen.rewrites(), None);
}

#[test]
fn the_last_level_is_rewritten_where_reads_pay_for_it() {
    let rewrites =
        |blocks: LevelBlocks, short| chosen(LAST, blocks, short, ChosenSizes::default()).rewrites();
    let many = last(ALIKE, 1e4, 0.0, 0.0);
    assert_eq!(rewrites(many, Short::Nothing), Some(4 << 10));
    // Also when most of it has been.
    let load = LevelLoad { written: 0.0, read: 1e4 * 4.3e3 };
    let most = of_blocks([900_000_000, 0, 100_000_000], LevelBlocks { load, ..many });
    assert_eq!(rewrites(most, Short::Nothing), Some(4 << 10));
    let load = LevelLoad { written: 0.0, read: 1e4 * 4e3 };
    let done = of_blocks([1_000_000_000, 0, 0], LevelBlocks { load, ..many });
    assert_eq!(rewrites(done, Short::Nothing), None);
    // A row fills a block of any size.
    let costs = Some(SizeCosts([costs(ALIKE).0[0]; 3]));
    let (row_bytes, block_bytes, others) = (20e3, 20e3, [0; 3]);
    let large = LevelBlocks { costs, row_bytes, block_bytes, others, ..many };
    let chosen_for = chosen(LAST, large, Short::Nothing, ChosenSizes::default());
    assert_eq!((chosen_for.rewrites(), large.losses(&price(Short::Nothing))), (None, [0.0; 3]));
    assert_eq!(chosen_for.levels[LAST].map(|choice| SIZES[choice.at]), Some(16 << 10));
    let few = last(ALIKE, 100.0, 0.0, 0.0);
    assert_eq!(rewrites(few, Short::Nothing), None, "they do not pay for a gigabyte");
    assert_eq!(rewrites(many, Short::Cpu), None, "there is no time");
    assert_eq!(rewrites(last(ALIKE, 0.0, 0.0, 0.0), Short::Nothing), None, "nobody reads");
}

#[test]
fn it_is_rewritten_once_reads_have_lost_as_much_as_it_costs() {
    let mut levels = [LevelBlocks::default(); LEVELS];
    levels[LAST] = last(ALIKE, 1e4, 0.0, 0.0);
    let price = price(Short::Nothing);
    let [small, middle, large] = levels[LAST].losses(&price);
    assert!(small > middle && middle > 0.0 && large == 0.0, "{small} {middle} {large}");
    let cost = levels[LAST].rewriting(0, &price);
    let none = ChosenSizes::default();
    let before = choose(&price, &levels, &none, &[0.9 * cost, 0.0, f64::MAX]);
    assert_eq!((before.0.rewrites(), before.1), (None, false));
    let (begun, begins) = choose(&price, &levels, &none, &[1.1 * cost, 0.0, f64::MAX]);
    assert_eq!((begun.rewrites(), begins), (Some(4 << 10), true));
    // It goes on when what was lost has been forgotten, as long as some of it is left.
    levels[LAST].pending = 1;
    let goes_on = choose(&price, &levels, &begun, &[0.0; 3]);
    assert_eq!((goes_on.0.rewrites(), goes_on.1), (Some(4 << 10), false));
    // What has come since has to pay for itself.
    levels[LAST].pending = 0;
    assert_eq!(choose(&price, &levels, &begun, &[0.0; 3]).0.rewrites(), None);
    assert!(choose(&price, &levels, &begun, &[f64::MAX; 3]).1);
}

#[test]
fn measured_on_pieces_cut_to_each_size() {
    let clock = Env::memory().clock;
    let row = |number: u64| {
        let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{{\"number\":{noise},\"name\":\"nothing of note\"}}")
    };
    let text: String = (0..2000).map(row).collect();
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(16_000).collect();
    let of = |pieces: &[&[u8]], key: f64| {
        SizeCosts::measure(pieces, ZSTD, None, (key + 60.0, key), &*clock)
    };
    let SizeCosts([small, middle, large]) = of(&pieces, 16.0).unwrap();
    assert!(small.ratio > middle.ratio && middle.ratio > large.ratio, "{small:?} {large:?}");
    assert!(large.ratio > 0.1 && small.ratio < 0.8, "{small:?} {large:?}");
    let long_keys = of(&pieces, 1000.0).unwrap().0[0];
    assert!(long_keys.ratio > small.ratio + 0.2, "keys are in the index once more");
    assert_eq!(of(&pieces[..1], 16.0), None, "a few bytes tell nothing");
    let blocks: Vec<&[u8]> = text.as_bytes().chunks(4000).collect();
    assert_eq!(of(&blocks, 16.0), None, "small blocks do not tell what large ones would be like");
    let plain = SizeCosts::measure(&pieces, Codec::None, None, (76.0, 16.0), &*clock).unwrap().0;
    assert!((plain[0].ratio - 1.01).abs() < 0.002 && plain[LARGEST].ratio < 1.003, "{plain:?}");
    let long_rows = SizeCosts::measure(&pieces, ZSTD, None, (20e3, 16.0), &*clock).unwrap().0;
    let ratios = long_rows.map(|cost| cost.ratio);
    assert!(ratios[0] == ratios[1] && ratios[1] == ratios[2], "a block has a row: {ratios:?}");
}
