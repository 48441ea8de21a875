//! A load that merges: how it is tried on a sample, so that it has the shape of the whole's.
//!
//! A tree's shape follows from how many memtables its rows fill. So the sample is loaded with
//! memtables and tables as much smaller as it is smaller than the whole. What does not grow with
//! rows (files, decisions) is told from an eighth of the sample in a tree of the same shape. What a
//! full memtable costs more than a small one, for want of the processor's caches, is measured in
//! one of the full size.

use super::build::{Built, Load, Parts, Workshop, feed_of};
use super::choice::{Choice, USUAL_BLOCK_BYTES};
use super::sample::{Row, Sample, Seen};
use crate::exit::Outcome;
use shaledb::db::SettingsInUse;
use shaledb::{Codec, Config, Db, Env, OpenOptions};

/// The engine's bounds.
const MEMTABLE_BYTES_MIN: u64 = 64 << 10;
const MEMTABLE_BYTES_MAX: u64 = 64 << 20;
const TABLE_BYTES_MIN: u64 = 256 << 10;

/// How much the number of memtables may be off.
const ABOUT: f64 = 0.08;

/// Keys and values of this part of a memtable's size do not fill it, whatever links them takes.
const NOT_SEALED: f64 = 0.3;

/// Which part of the sample tells what does not grow with rows.
pub(super) const PART: usize = 8;

/// A cost that grows with rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// Seconds, whatever the rows.
    pub(super) fixed: f64,
    /// Seconds for each row.
    pub(super) of_row: f64,
}

impl Line {
    /// Through the costs of some rows and of more of them.
    pub(super) fn through(few: (f64, u64), many: (f64, u64)) -> Line {
        let ((few_seconds, few_rows), (seconds, rows)) = (few, many);
        let of_row = seconds / rows.max(1) as f64;
        if rows <= few_rows || few_rows == 0 {
            return Line { fixed: 0.0, of_row };
        }
        // A fixed cost is at least none, and not most of what the larger part took.
        let slope = (seconds - few_seconds) / (rows - few_rows) as f64;
        let slope = slope.clamp(of_row / 2.0, of_row);
        Line { fixed: seconds - slope * rows as f64, of_row: slope }
    }

    /// Seconds for so many rows.
    pub(super) fn at(self, rows: f64) -> f64 {
        self.fixed + self.of_row * rows
    }
}

/// The shape of the whole's load.
pub(super) struct LoadModel {
    pub(super) memory_bytes: u64,
    /// Of a memtable of the whole.
    memtable_bytes: u64,
    /// How many memtables the whole fills, and how many the sample is to fill.
    memtables: f64,
    tried: f64,
    /// What the sample's rows take in one memtable.
    of_sample: u64,
    /// Whether memtables can be made as small as the sample asks for.
    pub(super) is_to_scale: bool,
}

/// What a load of one codec takes.
pub(super) struct Loaded {
    pub(super) cpu: Line,
    pub(super) built: Built,
    /// How often each byte that is stored in the end was written.
    pub(super) times: f64,
}

impl LoadModel {
    pub(super) fn new(sample: &Sample, memory: u64, workshop: &Workshop) -> Outcome<LoadModel> {
        let memory_bytes = memory_bytes(memory)?;
        let config = Config { memory_bytes, ..Config::default() };
        let settings = SettingsInUse::resolve(&config, memory_bytes, 1);
        let memtable_bytes = settings.memtable_bytes;
        let parts = Parts { memtable_bytes, ..Parts::default() };
        let load = Load { choice: usual(Codec::None, &[]), parts, direct: false, merged: false };
        let most = memtable_bytes as f64 * NOT_SEALED;
        let built =
            workshop.load(load, &mut copies(sample, sample.total_bytes().min(most)), &[])?;
        let of_byte = built.memtable_bytes as f64 / built.bytes.max(1) as f64;
        let memtables = of_byte * sample.total_bytes() / settings.memtable_full_bytes as f64;
        let of_sample = (of_byte * sample.bytes as f64) as u64;
        // Of more memtables than this an eighth of the sample cannot fill as many.
        let most = (of_sample as f64 / PART as f64 / MEMTABLE_BYTES_MIN as f64).max(1.0);
        let tried = memtables.min(most);
        let is_to_scale = sample.seen == Seen::All || tried >= memtables;
        Ok(LoadModel { memory_bytes, memtable_bytes, memtables, tried, of_sample, is_to_scale })
    }

    /// Whether all fits into one memtable: then no byte is written twice.
    pub(super) fn is_one_flush(&self) -> bool {
        self.memtables <= 1.0
    }

    /// Whether it is not sure whether all fits into one memtable.
    pub(super) fn is_about_one_flush(&self) -> bool {
        (self.memtables - 1.0).abs() < ABOUT
    }

    /// The parts of a tree with one part in so many of the sample.
    fn parts(&self, part: usize) -> Parts {
        let scale = self.of_sample as f64 / part as f64 / self.tried / self.memtable_bytes as f64;
        let scaled = |bytes: u64| (bytes as f64 * scale) as u64;
        let memtable_bytes = match self.is_one_flush() {
            true => MEMTABLE_BYTES_MAX,
            false => scaled(self.memtable_bytes).clamp(MEMTABLE_BYTES_MIN, MEMTABLE_BYTES_MAX),
        };
        let table = Config::default().table_bytes;
        let table_bytes = scaled(table).clamp(TABLE_BYTES_MIN, table);
        Parts { memory_bytes: 0, memtable_bytes, table_bytes }
    }

    /// Loads the sample, and an eighth of it.
    pub(super) fn load(
        &self,
        sample: &Sample,
        choice: Choice,
        workshop: &Workshop,
    ) -> Outcome<Loaded> {
        let rows = in_order(sample);
        let run = |part: usize| {
            let rows: Vec<&Row> = rows[..rows.len() / part].to_vec();
            let load = Load { choice, parts: self.parts(part), direct: false, merged: true };
            workshop.load(load, &mut feed_of(&rows), &[])
        };
        let few = run(PART)?;
        let built = run(1)?;
        let cpu = Line::through((few.cpu_seconds, few.rows), (built.cpu_seconds, built.rows));
        let times = built.write_amp * built.bytes as f64 / built.stored.max(1) as f64;
        Ok(Loaded { cpu, built, times })
    }

    /// CPU seconds that a row takes more in a memtable as full as the whole's than in one as full
    /// as the sample's, to put it there and to flush it.
    pub(super) fn of_full_memtable(
        &self,
        sample: &Sample,
        workshop: &Workshop,
        fixed: f64,
    ) -> Outcome<f64> {
        let of_byte = self.of_sample as f64 / sample.bytes.max(1) as f64;
        let full = self.memtable_bytes as f64 * self.memtables.min(1.0) / of_byte;
        let part = sample.bytes as f64 / self.tried.max(1.0);
        if sample.seen == Seen::All || full < part * 1.2 {
            return Ok(0.0);
        }
        let parts = Parts { memtable_bytes: MEMTABLE_BYTES_MAX, ..Parts::default() };
        let load = Load { choice: usual(Codec::None, &[]), parts, direct: false, merged: false };
        let of_row = |bytes: f64| -> Outcome<f64> {
            let built = workshop.load(load, &mut copies(sample, bytes), &[])?;
            Ok((built.cpu_seconds - fixed).max(0.0) / built.rows.max(1) as f64)
        };
        Ok((of_row(full)? - of_row(part.max(full / 64.0))?).max(0.0))
    }
}

/// The memory that a database would have.
fn memory_bytes(bytes: u64) -> Outcome<u64> {
    let options = OpenOptions { env: Env::memory(), ..OpenOptions::default() };
    let config = Config { memory_bytes: bytes, ..Config::default() };
    let db = Db::open_in("/memory", config, options)?;
    let bytes = db.stats().memory_bytes;
    db.close()?;
    Ok(bytes)
}

/// The choice of a codec that is loaded through memtables; others are told by how much more they
/// take to write than this one.
pub(super) fn usual(codec: Codec, choices: &[Choice]) -> Choice {
    let usual = Choice { codec, block_bytes: USUAL_BLOCK_BYTES, dictionary: false };
    let of_codec = |choice: &&Choice| choice.codec == codec && **choice == choice.plain();
    match choices.contains(&usual) {
        true => usual,
        false => choices.iter().find(of_codec).copied().unwrap_or(usual),
    }
}

/// The rows in the order of the source.
fn in_order(sample: &Sample) -> Vec<&Row> {
    sample.stretches.iter().flat_map(|stretch| &stretch.rows).collect()
}

/// Rows of so many bytes: the sample's, again and again, each time with other keys near the same.
fn copies(sample: &Sample, bytes: f64) -> impl FnMut(&mut Vec<Row>) -> Outcome<bool> {
    let rows = in_order(sample);
    let (mut at, mut given) = (0, 0);
    move |chunk: &mut Vec<Row>| {
        chunk.clear();
        while chunk.len() < 1024 && (given as f64) < bytes {
            let mut row = rows[at % rows.len()].clone();
            if at >= rows.len() && row.0.len() + 4 < shaledb::base::key::KEY_BYTES_MAX {
                row.0.extend(&((at / rows.len()) as u32).to_be_bytes());
            }
            given += row.0.len() + row.1.len();
            chunk.push(row);
            at += 1;
        }
        Ok(!chunk.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_cost_is_told_from_that_of_rows() {
        let line = Line::through((1.5, 100), (5.0, 800));
        assert!((line.fixed - 1.0).abs() < 1e-9 && (line.at(8000.0) - 41.0).abs() < 1e-9);
        // Noise does not make it negative.
        assert_eq!(Line::through((0.1, 100), (5.0, 800)).fixed, 0.0);
    }
}
