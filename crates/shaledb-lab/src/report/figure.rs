//! The figures of a row that tables show and comparisons test.

use crate::measure::RateSummary;
use crate::run::row::Row;
use crate::units::{bytes, count, three_digits};
use serde::Serialize;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More of it.
    Higher,
    /// Less of it.
    Lower,
}

/// One figure of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Operations per second.
    Rate,
    /// The rate that so many percent of the intervals reached.
    RateReached(u8),
    /// Writes per second of the writer, which has a fixed rate.
    WriterRate,
    /// The rate that so many percent of the intervals reached, as of [`Figure::RateReached`].
    WriterRateReached(u8),
    /// The rate that it was set to.
    WriterWanted,
    /// Reads of the device per operation.
    Reads,
    /// Data blocks read from files per operation, as the engine counts.
    BlockReads,
    /// KB read from storage per operation.
    ReadKb,
    /// KB written to storage per operation.
    WrittenKb,
    /// Reads of the device per operation of the writer.
    WriterReads,
    /// KB written to storage per operation of the writer.
    WriterWrittenKb,
    /// CPU microseconds of the engine per operation.
    Cpu,
    /// CPU seconds of the engine per second: with all that it did in the step.
    CpuPerSecond,
    /// CPU microseconds of the client per operation.
    Client,
    /// CPU seconds in all.
    CpuSeconds,
    /// Bytes on disk.
    Size,
    /// Resident memory at the end.
    Rss,
    /// Resident memory at its peak.
    Peak,
    /// A percentile of the response times of a kind of operation, milliseconds.
    Percentile(Percentile, String),
    /// Bytes of tables written / bytes the client wrote.
    WriteAmp,
    /// Size / size of the live data before compression.
    SpaceAmp,
    /// The same of the most at any moment.
    SpaceAmpPeak,
    /// The most bytes on disk at any moment.
    SizePeak,
    /// Percent of the time in which a writer was stalled.
    Stall,
    /// Bytes the client wrote.
    Ingest,
    /// Bytes that flushes wrote.
    Flush,
    /// Bytes that compactions wrote.
    Compaction,
    /// Wall seconds of compactions.
    CompactionWall,
    /// CPU seconds of compactions.
    CompactionCpu,
    /// CPU microseconds of compactions per operation.
    CompactionCpuPerOp,
    /// Bytes written to storage.
    Written,
    /// How long the step took.
    Seconds,
    /// A figure of the workload alone.
    Extra(&'static str),
}

/// Which of the response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percentile {
    /// Half are at most this.
    P50,
    /// 95 of 100.
    P95,
    /// 99 of 100.
    P99,
    /// 999 of 1000.
    P999,
    /// All.
    Max,
}

impl Percentile {
    /// All, from the lowest.
    pub const ALL: [Percentile; 5] =
        [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::P999, Percentile::Max];

    /// As a table names it.
    pub fn name(self) -> &'static str {
        match self {
            Percentile::P50 => "p50",
            Percentile::P95 => "p95",
            Percentile::P99 => "p99",
            Percentile::P999 => "p99.9",
            Percentile::Max => "max",
        }
    }
}

impl Figure {
    /// Its value in a row; `None` if it was not measured there.
    pub fn of(&self, row: &Row) -> Option<f64> {
        let writer = row.writer.as_ref();
        let counted = &row.counted;
        // Rows of earlier versions have zeros of what an engine does not count.
        let tables = counted.flush_bytes.into_iter().chain(counted.compaction_bytes);
        let counts = counted.wal_bytes + tables.sum::<u64>() > 0;
        let written = |bytes: Option<u64>| bytes.filter(|_| counts).map(|bytes| bytes as f64);
        let per_op = |amount: f64| amount / row.ops.max(1) as f64;
        match self {
            Figure::Rate => Some(row.rate),
            Figure::RateReached(percent) => rate_reached(&row.rates, *percent),
            Figure::WriterRateReached(percent) => rate_reached(&writer?.rates, *percent),
            Figure::WriterRate => writer.map(|writer| writer.rate),
            Figure::WriterWanted => writer.map(|writer| writer.wanted),
            Figure::Reads => row.io.device.as_ref().map(|device| per_op(device.reads as f64)),
            Figure::BlockReads => counted.block_reads.map(|reads| per_op(reads as f64)),
            Figure::ReadKb => Some(row.io.read_kb_per_op),
            Figure::WrittenKb => Some(row.io.written_kb_per_op),
            Figure::WriterReads => {
                let device = row.io.device.as_ref()?;
                Some(
                    device.reads as f64
                        / writer.map(|writer| writer.ops).filter(|&n| n > 0)? as f64,
                )
            }
            Figure::WriterWrittenKb => {
                let ops = writer.map(|writer| writer.ops).filter(|&ops| ops > 0)?;
                Some(row.io.written_bytes as f64 / 1e3 / ops as f64)
            }
            Figure::Cpu => Some(row.cpu.us_per_op),
            Figure::CpuPerSecond => {
                (row.seconds > 0.0).then(|| row.cpu.us_per_op * row.ops as f64 / 1e6 / row.seconds)
            }
            Figure::Client => Some(row.cpu.client_us_per_op),
            Figure::CpuSeconds => Some(row.cpu.seconds),
            Figure::Size => Some(row.size_bytes as f64).filter(|&size| size > 0.0),
            Figure::Rss => Some(row.rss_bytes as f64),
            Figure::Peak => Some(row.rss_peak_bytes as f64),
            Figure::Percentile(percentile, kind) => {
                let us = row.latency_us.get(kind)?.us;
                Some(1e-3 * percentile.of(&us))
            }
            Figure::WriteAmp => counted.write_amp,
            Figure::SpaceAmp => counted.space_amp,
            Figure::SpaceAmpPeak => counted.space_amp_peak,
            Figure::SizePeak => Some(row.size_peak_bytes as f64).filter(|&size| size > 0.0),
            Figure::Stall => counts.then_some(counted.stall_percent),
            Figure::Ingest => Some(counted.user_bytes as f64),
            Figure::Flush => written(counted.flush_bytes),
            Figure::Compaction => written(counted.compaction_bytes),
            Figure::CompactionWall => counted.compaction_seconds,
            Figure::CompactionCpu => counted.compaction_cpu_seconds,
            Figure::CompactionCpuPerOp => {
                counted.compaction_cpu_seconds.map(|seconds| per_op(seconds * 1e6))
            }
            Figure::Written => Some(row.io.written_bytes as f64),
            Figure::Seconds => Some(row.seconds),
            Figure::Extra(name) => row.extra.get(*name).copied(),
        }
    }

    /// As a table shows a value.
    pub fn show(&self, value: f64) -> String {
        match self {
            Figure::Rate
            | Figure::RateReached(_)
            | Figure::WriterRate
            | Figure::WriterRateReached(_)
            | Figure::WriterWanted => count(value.round()),
            Figure::Size
            | Figure::SizePeak
            | Figure::Rss
            | Figure::Peak
            | Figure::Ingest
            | Figure::Flush
            | Figure::Compaction
            | Figure::Written => bytes(value as u64),
            Figure::Extra("level0_files_before" | "retries") => format!("{value:.0}"),
            Figure::Extra("new_orders_per_minute") => count(value),
            _ => short(value),
        }
    }

    /// Which way is better; `None` if that cannot be said.
    pub fn better(&self) -> Option<Better> {
        match self {
            Figure::Rate
            | Figure::RateReached(_)
            | Figure::WriterRate
            | Figure::WriterRateReached(_) => Some(Better::Higher),
            Figure::WriterWanted | Figure::Ingest | Figure::Extra(_) => None,
            _ => Some(Better::Lower),
        }
    }

    /// Its name in comparisons.
    pub fn name(&self) -> String {
        match self {
            Figure::Rate => "rate".to_owned(),
            Figure::RateReached(percent) => format!("rate.{percent}"),
            Figure::WriterRate => "writer.rate".to_owned(),
            Figure::WriterRateReached(percent) => format!("writer.rate.{percent}"),
            Figure::WriterWanted => "writer.wanted".to_owned(),
            Figure::WriterReads => "r/write".to_owned(),
            Figure::WriterWrittenKb => "wKB/write".to_owned(),
            Figure::Reads => "r/op".to_owned(),
            Figure::BlockReads => "blocks/op".to_owned(),
            Figure::ReadKb => "rKB/op".to_owned(),
            Figure::WrittenKb => "wKB/op".to_owned(),
            Figure::Cpu => "Mcpu/op".to_owned(),
            Figure::CpuPerSecond => "cpu/sec".to_owned(),
            Figure::Client => "client/op".to_owned(),
            Figure::CpuSeconds => "cpu.secs".to_owned(),
            Figure::Size => "size".to_owned(),
            Figure::Rss => "rss".to_owned(),
            Figure::Peak => "peak rss".to_owned(),
            Figure::Percentile(percentile, kind) => format!("{} {kind}", percentile.name()),
            Figure::WriteAmp => "w-amp".to_owned(),
            Figure::SpaceAmp => "space-amp".to_owned(),
            Figure::SpaceAmpPeak => "space-amp peak".to_owned(),
            Figure::SizePeak => "size peak".to_owned(),
            Figure::Stall => "stall%".to_owned(),
            Figure::Ingest => "ingest".to_owned(),
            Figure::Flush => "flush".to_owned(),
            Figure::Compaction => "compact".to_owned(),
            Figure::CompactionWall => "c.wsecs".to_owned(),
            Figure::CompactionCpu => "c.csecs".to_owned(),
            Figure::CompactionCpuPerOp => "cpu/w".to_owned(),
            Figure::Written => "written".to_owned(),
            Figure::Seconds => "secs".to_owned(),
            Figure::Extra(name) => (*name).to_owned(),
        }
    }
}

impl Percentile {
    /// Its value, in the unit of the summary.
    pub fn of(self, us: &crate::measure::LatencySummary) -> f64 {
        match self {
            Percentile::P50 => us.p50,
            Percentile::P95 => us.p95,
            Percentile::P99 => us.p99,
            Percentile::P999 => us.p999,
            Percentile::Max => us.max,
        }
    }
}

/// The rate that so many of 100 intervals reached; `None` if there were no intervals.
fn rate_reached(rates: &RateSummary, percent: u8) -> Option<f64> {
    let rate = match percent {
        50 => rates.p50,
        75 => rates.p75,
        95 => rates.p95,
        _ => rates.p99,
    };
    (rates.intervals > 0).then_some(rate)
}

/// Three digits; large numbers with their thousands told apart; small ones end where noise begins.
pub fn short(value: f64) -> String {
    if value.abs() >= 999.5 {
        crate::units::grouped(value.round() as u64)
    } else if value != 0.0 && value.abs() < 0.001 {
        "<.001".to_owned()
    } else {
        three_digits(value)
    }
}
