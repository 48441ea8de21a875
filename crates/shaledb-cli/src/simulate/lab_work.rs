//! What work cost in a run, by the CPU that its row has for each activity.

use super::lab_row::Chosen;
use shaledb::Codec;
use shaledb::compaction::policy::candidates::Costs;
use shaledb::compaction::policy::chosen::Choice;
use shaledb::table::meta::Why;
use shaledb_forecast::tree::cost_of;
use shaledb_lab::run::row::Row;

/// With less CPU than this, in seconds, nothing is told of what it was spent on.
const LEAST: f64 = 0.05;
/// Activities of the users' reads, of which none is a part of another.
const READS: [&str; 5] = ["get", "multi_get", "seek", "scan_open", "scan_step"];

/// Nanoseconds of CPU, as of [`shaledb_forecast::Work`]; `None` where the row does not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// A write by a user.
    pub(super) put: Option<f64>,
    /// A row that is flushed, without codecs.
    pub(super) flush_row: Option<f64>,
    /// A row that a merge reads, without codecs.
    pub(super) merge_row: Option<f64>,
    /// A read of a row in memory.
    pub(super) get: Option<f64>,
}

/// How many times the usual CPU codecs took; `None` where the row does not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodecCpu {
    /// To compress.
    pub(super) compress: Option<f64>,
    /// To decompress.
    pub(super) decompress: Option<f64>,
}

/// A level's codec as a row names it: `zstd:3 + dictionary`.
pub(super) fn codec(name: &str) -> Option<(Codec, bool)> {
    let (codec, dictionary) = match name.split_once(" + ") {
        Some((codec, _)) => (codec, true),
        None => (name, false),
    };
    codec.parse().ok().map(|codec| (codec, dictionary))
}

/// What a level's codec does; of a level that never had a table, what none does.
fn choice(name: &str) -> Choice {
    let (codec, dictionary) = codec(name).unwrap_or((Codec::None, false));
    Choice { codec, dictionary, why: Why::default() }
}

/// What merges did with a level.
struct Flow {
    choice: Choice,
    /// Bytes that flushes and merges wrote to it, before compression, without the blocks that are
    /// copied as they are.
    written: f64,
    /// Bytes of its tables that merges read, before compression; `None` if it is not known what the
    /// level held before. Blocks that are copied are decompressed, too.
    read: Option<f64>,
    /// Of these what was not copied.
    merged: Option<f64>,
}

/// The levels' flows: what went out of a level was read by merges into the next that has tables.
fn flows(chosen: &Chosen, costs: &Costs) -> Vec<Flow> {
    let levels = &chosen.row.counted.levels;
    let mut from_above = 0.0;
    let mut flows: Vec<Flow> = Vec::with_capacity(levels.len());
    for level in levels {
        let choice = choice(&level.codec);
        let ratio = cost_of(costs, choice).ratio;
        let before = chosen.before.as_ref().map(|before| {
            before.iter().find(|old| old.level == level.level).map_or(0.0, |old| old.bytes as f64)
        });
        let own = (level.read_bytes as f64 - from_above).max(0.0);
        let gone = before.map(|before| {
            (before + level.written_bytes as f64 - level.bytes as f64 - own).max(0.0)
        });
        if level.read_bytes > 0 || level.written_bytes > 0 {
            from_above = gone.unwrap_or(0.0);
        }
        let reused = level.reused_bytes as f64;
        flows.push(Flow {
            choice,
            written: (level.written_bytes as f64 - reused).max(0.0) / ratio,
            read: gone.map(|gone| (own + gone) / ratio),
            merged: gone.map(|gone| ((own - reused).max(0.0) + gone) / ratio),
        });
    }
    flows
}

fn spent(row: &Row, activities: &[&str]) -> Option<f64> {
    let told = &row.cpu.engine_seconds;
    (!told.is_empty()).then(|| activities.iter().filter_map(|name| told.get(*name)).sum())
}

/// One through the other, if both are enough to tell.
fn over(seconds: Option<f64>, what: f64) -> Option<f64> {
    seconds.filter(|seconds| *seconds >= LEAST && what > 0.0).map(|seconds| seconds / what)
}

/// Whether levels had the codecs of the end for all of the step.
fn is_steady(row: &Row) -> bool {
    let levels = row.intervals.iter().flat_map(|interval| &interval.levels);
    levels.filter(|level| level.files > 0).all(|level| {
        let end = row.counted.levels.iter().find(|end| end.level == level.level);
        end.is_some_and(|end| codec(&end.codec) == codec(&level.codec))
    })
}

/// How much CPU codecs took, of what they would by these costs. Where codecs changed in the step it
/// is not known what was compressed with which.
pub(super) fn codec_cpu(chosen: &Chosen, costs: &Costs) -> CodecCpu {
    let row = &chosen.row;
    if !is_steady(row) {
        return CodecCpu::default();
    }
    let flows = flows(chosen, costs);
    let usual = |of: &dyn Fn(&Flow) -> f64| flows.iter().map(of).sum::<f64>() / 1e9;
    let compress = usual(&|flow| flow.written * cost_of(costs, flow.choice).compress);
    let decompress =
        usual(&|flow| flow.read.unwrap_or(f64::NAN) * cost_of(costs, flow.choice).decompress);
    let told = spent(row, &["flush_compress", "compaction_compress"]);
    CodecCpu {
        compress: over(told, compress).filter(|_| compress >= LEAST),
        decompress: over(spent(row, &["compaction_decompress"]), decompress)
            .filter(|_| decompress >= LEAST),
    }
}

/// What work cost on rows of this size.
pub(super) fn known(chosen: &Chosen, costs: &Costs, row_bytes: f64) -> Known {
    let row = &chosen.row;
    let count = |kind: &str| row.latency_us.get(kind).map_or(0, |told| told.count) as f64;
    let nanos = |each: Option<f64>| each.map(|seconds| seconds * 1e9);
    let deletes = count("delete");
    let writes = if deletes > 0.0 { deletes } else { row.counted.user_bytes as f64 / row_bytes };
    let client = row.cpu.client_us_per_op * row.ops as f64 / 1e6;
    let users = spent(row, &READS).zip(row.cpu.background_seconds).map(|(reads, background)| {
        // The threads that keep the log ready work for the writers.
        row.cpu.seconds - client - background - reads
    });
    let less = |all: &str, parts: &[&str]| {
        spent(row, &[all]).zip(spent(row, parts)).map(|(all, parts)| all - parts)
    };
    let flows = flows(chosen, costs);
    let flushed = flows.first().map_or(1.0, |flow| cost_of(costs, flow.choice).ratio);
    let flushed = row.counted.flush_bytes.unwrap_or(0) as f64 / flushed / row_bytes;
    let merged =
        flows.iter().map(|flow| flow.merged).sum::<Option<f64>>().unwrap_or(0.0) / row_bytes;
    Known {
        put: nanos(over(users, writes)),
        flush_row: nanos(over(less("flush", &["flush_compress"]), flushed)),
        merge_row: nanos(over(
            less("compaction", &["compaction_compress", "compaction_decompress"]),
            merged,
        )),
        get: nanos(over(less("get", &["read_decompress"]), count("get"))),
    }
}
