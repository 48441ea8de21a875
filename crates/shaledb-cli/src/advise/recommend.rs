//! Which choice is the one to take, and why, in words.

use super::choice::{Choice, USUAL_BLOCK_BYTES};
use super::layers::Layers;
use super::predict::{Predicted, Prediction, STRETCHES_OF_DENSITY};
use super::sample::{Order, Sample, Seen};
use shaledb::Codec;
use shaledb_lab::units::{bytes, count, three_digits};

/// The last level may be as much larger than zstd:3 makes it, for less CPU; the engine's own choice
/// is held to the same (docs/decisions/0017-auto.md).
const SIZE_OF_YARDSTICK: f64 = 1.03;
/// A codec that leaves more than this of what there is without is not worth its CPU.
const WORTH: f64 = 0.95;

/// Three of the choices, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picked {
    pub(super) recommended: usize,
    pub(super) smallest: usize,
    pub(super) cheapest: usize,
    /// Whether zstd:3 in blocks of the usual size is among them; else the smallest stands for it.
    pub(super) has_yardstick: bool,
}

/// CPU to write a row once and to read it once.
fn cost(prediction: &Prediction) -> f64 {
    prediction.load_us_per_row + prediction.get_us
}

fn least(
    choices: &[Prediction],
    of: impl Fn(&Prediction) -> f64,
    fits: impl Fn(&Prediction) -> bool,
) -> Option<usize> {
    let fitting = choices.iter().enumerate().filter(|(_, choice)| fits(choice));
    fitting.min_by(|(_, one), (_, other)| of(one).total_cmp(&of(other))).map(|(at, _)| at)
}

/// Picks.
pub(super) fn pick(choices: &[Prediction]) -> Picked {
    let size = |prediction: &Prediction| prediction.size_bytes;
    let smallest = least(choices, size, |_| true).unwrap_or(0);
    let cheapest = least(choices, cost, |_| true).unwrap_or(0);
    let is_yardstick =
        |choice: &Choice| choice.codec == Codec::Zstd(3) && choice.block_bytes == USUAL_BLOCK_BYTES;
    let yardstick = least(choices, size, |other| is_yardstick(&other.choice));
    let aim = choices[yardstick.unwrap_or(smallest)].size_bytes * SIZE_OF_YARDSTICK;
    let none = least(choices, size, |other| other.choice.codec == Codec::None);
    let recommended = match none {
        Some(none) if size(&choices[smallest]) > WORTH * size(&choices[none]) => {
            least(choices, cost, |other| other.choice.codec == Codec::None).unwrap_or(none)
        }
        _ => least(choices, cost, |other| size(other) <= aim).unwrap_or(smallest),
    };
    Picked { recommended, smallest, cheapest, has_yardstick: yardstick.is_some() }
}

/// Why, and what was seen.
pub(super) fn words(sample: &Sample, predicted: &Predicted, picked: Picked) -> Vec<String> {
    let choices = &predicted.choices;
    let best = &choices[picked.recommended];
    let mut words = vec![format!(
        "Recommended: {}. It takes {} \u{b1} {}, {} of keys and values; flags of `shale import`: \
         {}.",
        best.choice.words(),
        bytes(best.size_bytes as u64),
        percent(best.size_bound),
        percent(best.size_bytes / predicted.bytes.max(1.0)),
        best.choice.flags()
    )];
    words.extend(other("Smallest", best, &choices[picked.smallest]));
    words.extend(other("Least CPU", best, &choices[picked.cheapest]));
    let tried_others = choices.iter().any(|other| other.choice.codec != Codec::None);
    if best.choice.codec == Codec::None && !tried_others {
        words.push("No codec but none was tried.".to_owned());
    } else if best.choice.codec == Codec::None {
        words.push("No codec saves a twentieth, so none is worth its CPU.".to_owned());
    } else {
        words.push(
            "With codec auto, the default, the engine holds the last level to 1.03 of what zstd:3 \
             takes, and chooses lighter codecs for smaller levels while writes come fast."
                .to_owned(),
        );
    }
    if !picked.has_yardstick && tried_others && best.choice.codec != Codec::None {
        words.push(format!(
            "zstd:3 in blocks of 16 KiB, whose size is the measure, is not among the choices: the \
             recommended one is within 1.03 of the smallest, {}.",
            choices[picked.smallest].choice.words()
        ));
    }
    words.push(seen(sample));
    words.push(order(sample, predicted));
    if predicted.is_about_one_flush {
        words.push(
            "The rows fill about one memtable. If they need a second one, all is written twice: \
             write amplification and the CPU to load are up to twice what is shown, or half."
                .to_owned(),
        );
    }
    if choices.iter().all(|choice| choice.write_amp.is_none()) {
        words.push(
            "The sample is too small a part for a tree of the same shape, so write amplification \
             is left out, and the CPU to load lacks merges between levels."
                .to_owned(),
        );
    }
    if predicted.rows > predicted.distinct_rows * 1.01 {
        words.push(format!(
            "Keys come again: of {} rows about {} are of different keys, and only these are \
             stored.",
            count(predicted.rows),
            count(predicted.distinct_rows)
        ));
    }
    words.extend(sample.layers.as_ref().map(layers));
    if let Some((first, second)) = predicted.halves {
        words.push(format!(
            "The halves differ: in the first one a byte becomes {}, in the second one {}. The \
             bounds are wider for it; a larger --sample narrows them.",
            three_digits(first),
            three_digits(second)
        ));
    }
    words.extend(sample.notes.iter().cloned());
    words.push(
        "CPU is of this machine as it is now, of all threads; if others use it, a run is off by \
         30 % and more either way."
            .to_owned(),
    );
    words
}

/// How another choice compares, if it is another one.
fn other(name: &str, best: &Prediction, other: &Prediction) -> Option<String> {
    if best.choice == other.choice {
        return None;
    }
    Some(format!(
        "{name}: {}. It takes {} of the recommended one's bytes, {} of its CPU to load, {} of its \
         CPU for a read that is not cached.",
        other.choice.words(),
        percent(other.size_bytes / best.size_bytes.max(1.0)),
        percent(other.load_cpu_seconds / best.load_cpu_seconds.max(1e-9)),
        percent(other.get_us / best.get_us.max(1e-9)),
    ))
}

fn seen(sample: &Sample) -> String {
    let (rows, read) = (count(sample.rows as f64), bytes(sample.bytes));
    match sample.seen {
        Seen::All => format!("All was read: {rows} rows, {read} of keys and values."),
        Seen::Spread => format!(
            "Read: {} stretches from all over the source, {} of it: {rows} rows, {read} of keys \
             and values.",
            sample.stretches.len(),
            percent(sample.share())
        ),
        Seen::Head => format!("Read: the beginning, {rows} rows, {read} of keys and values."),
    }
}

fn layers(layers: &Layers) -> String {
    let runs = three_digits(layers.depth);
    match layers.shared {
        Some(shared) => format!(
            "The source has about {runs} sorted runs over the same range of keys. Where two of \
             them were read, {} of the keys of one are in the other.",
            percent(shared)
        ),
        None => format!(
            "The source has about {runs} sorted runs over the same range of keys, such as dumps \
             behind each other. Whether they have the same keys the sample does not tell, so {} to \
             all of the rows are stored, and the bounds have that. A larger --sample may tell.",
            percent(1.0 / layers.depth)
        ),
    }
}

fn order(sample: &Sample, predicted: &Predicted) -> String {
    let what = match predicted.order {
        Order::Ascending => {
            "Keys ascend in what was read, so the load is one with --sorted: each byte is written \
             once."
        }
        Order::Clustered => {
            "Keys do not ascend, but each stretch has a range of its own: neighbours in the source \
             are neighbours in the tree. The load goes through log, memtables and merges."
        }
        Order::Mixed if sample.seen == Seen::All => {
            "Keys do not ascend. The load goes through log, memtables and merges."
        }
        Order::Mixed if predicted.is_density_measured => {
            "Keys of all stretches lie between each other, so sizes were carried on from parts of \
             the sample to the density of the whole. The load goes through log, memtables and \
             merges."
        }
        Order::Mixed => {
            return format!(
                "Keys do not ascend, and there are fewer than {STRETCHES_OF_DENSITY} stretches: \
                 how sizes fall with the density of the whole was not measured, so the bounds are \
                 wider. The load goes through log, memtables and merges."
            );
        }
    };
    what.to_owned()
}

/// `3.2 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{} %", three_digits(part * 100.0))
}
