//! The matrix of conditions: in each cell, how the codec that the engine chooses itself does beside
//! fixed ones. Pure: from rows to lines and a verdict. docs/lab.md says how to read it.

use super::cell::Cell;
use super::fold::Spread;
use crate::options::AUTO;
use crate::run::row::Row;
use crate::workloads::kv::Benchmark;

/// The engine that has the choice.
const OWN: &str = "shale";

/// The fixed choice that sizes are set against.
const SMALL: &str = "zstd:3";

/// What the choice of the engine's own must hold: the rate over that of the best fixed choice, and
/// how much more it may write and take.
const LEAST_RATE: f64 = 0.97;
const MOST_WRITE_AMP: f64 = 1.03;
const MOST_SIZE: f64 = 1.05;

/// Fixed choices whose rate is at least this share of the best one's are asked for how little they
/// write.
const NEAR_BEST: f64 = 0.95;

/// One choice in one cell, the medians of its repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The engine.
    pub engine: String,
    /// The codecs.
    pub choice: String,
    /// Operations per second.
    pub rate: f64,
    /// CPU microseconds per operation.
    pub cpu_us: f64,
    /// Bytes written to storage, until no compaction was due, by those that the client wrote.
    pub write_amp: Option<f64>,
    /// The 99th percentile of the response time of a read, in microseconds.
    pub read_p99_us: Option<f64>,
    /// The same of a write.
    pub write_p99_us: Option<f64>,
    /// Bytes on disk when no compaction is due.
    pub size: f64,
}

/// A cell with what was measured in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The cell.
    pub cell: Cell,
    /// Every choice.
    pub all: Vec<Measured>,
}

/// How the engine's own choice does in a cell, by the three criteria; `None` where one was not
/// measured or does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratios {
    /// Its rate over that of the best fixed choice.
    pub rate: Option<f64>,
    /// Its write amplification over the least of the fixed choices that are nearly as fast as the
    /// best.
    pub write_amp: Option<f64>,
    /// Its size over that of zstd:3.
    pub size: Option<f64>,
}

impl Ratios {
    /// Name, ratio and whether it is held, of each criterion that was measured.
    pub fn criteria(&self) -> Vec<(&'static str, f64, bool)> {
        let all = [
            ("rate", self.rate, self.rate.is_some_and(|ratio| ratio >= LEAST_RATE)),
            ("w-amp", self.write_amp, self.write_amp.is_some_and(|ratio| ratio <= MOST_WRITE_AMP)),
            ("size", self.size, self.size.is_some_and(|ratio| ratio <= MOST_SIZE)),
        ];
        all.into_iter().filter_map(|(name, ratio, held)| Some((name, ratio?, held))).collect()
    }

    /// `ok`, or the criteria that are not held.
    pub fn verdict(&self) -> String {
        let criteria = self.criteria();
        let short: Vec<&str> =
            criteria.iter().filter(|(.., held)| !held).map(|(name, ..)| *name).collect();
        match (criteria.len(), short.len()) {
            (0, _) => "-".to_owned(),
            (_, 0) => "ok".to_owned(),
            _ => short.join(", "),
        }
    }
}

impl Line {
    /// The engine's own choice of all codecs.
    pub fn auto(&self) -> Option<&Measured> {
        self.all.iter().find(|one| one.engine == OWN && one.choice == AUTO)
    }

    fn fixed<'a, 'e>(
        &'a self,
        engine: &'e str,
    ) -> impl Iterator<Item = &'a Measured> + use<'a, 'e> {
        let is_fixed = |one: &&Measured| !one.choice.split(',').any(|codec| codec == AUTO);
        self.all.iter().filter(move |one| one.engine == engine).filter(is_fixed)
    }

    /// The fixed choice of an engine with the highest rate.
    pub fn best(&self, engine: &str) -> Option<&Measured> {
        self.fixed(engine).max_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    /// Of the fixed choices that are nearly as fast as the best one, the one that writes least.
    pub fn least_writing(&self, engine: &str) -> Option<&Measured> {
        let best = self.best(engine)?.rate;
        self.fixed(engine)
            .filter(|one| one.write_amp.is_some() && one.rate >= NEAR_BEST * best)
            .min_by(|a, b| a.write_amp.unwrap_or(0.0).total_cmp(&b.write_amp.unwrap_or(0.0)))
    }

    /// How the engine's own choice does.
    pub fn ratios(&self) -> Ratios {
        let Some(auto) = self.auto() else { return Ratios::default() };
        let over = |own: f64, other: f64| (other > 0.0).then(|| own / other);
        let small = self.fixed(OWN).find(|one| one.choice == SMALL);
        Ratios {
            rate: self.best(OWN).and_then(|best| over(auto.rate, best.rate)),
            write_amp: self
                .least_writing(OWN)
                .and_then(|least| over(auto.write_amp?, least.write_amp?)),
            size: small
                .filter(|_| self.cell.size_counts())
                .and_then(|small| over(auto.size, small.size)),
        }
    }

    /// The engines beside Shale.
    pub fn others(&self) -> Vec<&str> {
        let mut others: Vec<&str> = Vec::new();
        for one in &self.all {
            if one.engine != OWN && !others.contains(&one.engine.as_str()) {
                others.push(&one.engine);
            }
        }
        others
    }
}

/// The cells of a run, in the order of its rows; none if it has no matrix of conditions.
pub fn lines(rows: &[Row]) -> Vec<Line> {
    let mut found: Vec<(Cell, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.step == Benchmark::Readrandomwriterandom.name()) {
        let Ok(cell) = row.variant().parse::<Cell>() else { continue };
        match found.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, rows)) => rows.push(row),
            None => found.push((cell, vec![row])),
        }
    }
    found.into_iter().map(|(cell, rows)| Line { cell, all: choices(&rows) }).collect()
}

/// The choices of a cell's rows, repeats folded.
fn choices(rows: &[&Row]) -> Vec<Measured> {
    let mut found: Vec<((&str, &str), Vec<&Row>)> = Vec::new();
    for row in rows {
        let key = (row.engine.as_str(), row.choice());
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => found.push((key, vec![row])),
        }
    }
    // Who is first goes round: names bring back an order that is the same in all cells.
    found.sort_by_key(|((engine, choice), _)| (*engine != OWN, *engine, *choice));
    found.into_iter().map(|((engine, choice), rows)| measured(engine, choice, &rows)).collect()
}

fn measured(engine: &str, choice: &str, rows: &[&Row]) -> Measured {
    let median = |figure: &dyn Fn(&Row) -> Option<f64>| {
        let values: Vec<f64> = rows.iter().filter_map(|row| figure(row)).collect();
        Spread::of(&values).map(|spread| spread.median)
    };
    let p99 = |kind: &str| median(&|row| row.latency_us.get(kind).map(|latency| latency.us.p99));
    Measured {
        engine: engine.to_owned(),
        choice: choice.to_owned(),
        rate: median(&|row| Some(row.rate)).unwrap_or(0.0),
        cpu_us: median(&|row| Some(row.cpu.us_per_op)).unwrap_or(0.0),
        write_amp: median(&write_amp),
        read_p99_us: p99("get"),
        write_p99_us: p99("put"),
        size: median(&|row| Some(size(row))).unwrap_or(0.0),
    }
}

/// All that the process wrote in the step and in the wait after it, by what the client wrote.
fn write_amp(row: &Row) -> Option<f64> {
    let after = row.extra.get("idle_written_bytes").copied().unwrap_or(0.0);
    let written = row.io.written_bytes as f64 + after;
    let user = row.counted.user_bytes as f64;
    // Where the system does not tell what was written, there is nothing to compare.
    (user > 0.0 && written > 0.0).then(|| written / user)
}

/// After the wait and the closing, which cuts off what was allotted ahead.
fn size(row: &Row) -> f64 {
    let named = |name| row.extra.get(name).copied().filter(|&size| size > 0.0);
    let idle = named("closed_size_bytes").or_else(|| named("idle_size_bytes"));
    idle.unwrap_or(row.size_bytes as f64)
}

/// In how many cells each criterion is held, as a sentence.
pub fn summary(lines: &[Line]) -> String {
    if lines.iter().all(|line| line.auto().is_none()) {
        return format!("the choice {AUTO} was measured in no cell, so there is no verdict");
    }
    let all: Vec<Ratios> = lines.iter().map(Line::ratios).collect();
    let part = |name: &str| {
        let of = || all.iter().flat_map(Ratios::criteria).filter(|(known, ..)| *known == name);
        format!("{name} in {} of {}", of().filter(|(.., held)| *held).count(), of().count())
    };
    let judged = || all.iter().map(Ratios::verdict).filter(|verdict| verdict != "-");
    format!(
        "auto holds {}, {} and {} cells; all of them in {} of {}",
        part("rate"),
        part("w-amp"),
        part("size"),
        judged().filter(|verdict| verdict == "ok").count(),
        judged().count()
    )
}

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
