//! The tables of a comparison.

use crate::step::Step;
use serde_json::{Value, json};
use shaledb_lab::measure::LatencySummary;
use shaledb_lab::report::plain_table;
use shaledb_lab::run::row::Row;
use shaledb_lab::units::{bytes, count, micros, three_digits};

/// One measure: its name, how to take it from a row, how to print it.
struct Measure {
    name: &'static str,
    of: fn(&Row) -> Option<f64>,
    print: fn(f64) -> String,
}

fn is_wait(row: &Row) -> bool {
    row.unit == "wait_idle"
}

fn unless_wait(row: &Row, value: f64) -> Option<f64> {
    (!is_wait(row)).then_some(value)
}

/// Response times; a step of the db_bench pattern has one kind of operation.
fn latency(row: &Row) -> LatencySummary {
    row.latency_us.values().next().copied().unwrap_or_default().us
}

const MEASURES: [Measure; 9] = [
    Measure { name: "rate", of: |row| unless_wait(row, row.rate), print: count },
    Measure {
        name: "CPU us/op",
        of: |row| Some(if is_wait(row) { row.cpu.seconds } else { row.cpu.us_per_op }),
        print: three_digits,
    },
    Measure {
        name: "KB written/op",
        of: |row| {
            let opened = row.open.as_ref().map_or(0, |open| open.written_bytes);
            Some(match is_wait(row) {
                true => (row.io.written_bytes + opened) as f64 / 1e3,
                false => row.io.written_kb_per_op,
            })
        },
        print: three_digits,
    },
    Measure { name: "w-amp", of: |row| row.counted.write_amp, print: three_digits },
    Measure { name: "size", of: |row| Some(row.size_bytes as f64), print: |v| bytes(v as u64) },
    Measure { name: "p99", of: |row| unless_wait(row, latency(row).p99), print: micros },
    Measure { name: "p99.9", of: |row| unless_wait(row, latency(row).p999), print: micros },
    Measure { name: "max", of: |row| unless_wait(row, latency(row).max), print: micros },
    Measure {
        name: "peak rss",
        of: |row| Some(row.rss_peak_bytes as f64),
        print: |v| bytes(v as u64),
    },
];

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Below this, two figures are noise and their ratio says nothing.
const NOISE: f64 = 0.002;

fn ratios(step: &Step, measure: &Measure) -> Vec<f64> {
    let ratio = |(shale, rocksdb): &(Row, Row)| {
        let (shale, rocksdb) = ((measure.of)(shale)?, (measure.of)(rocksdb)?);
        (rocksdb > NOISE).then(|| shale / rocksdb)
    };
    step.pairs.iter().filter_map(ratio).collect()
}

fn value(step: &Step, measure: &Measure, shale: bool) -> Option<f64> {
    let rows = step.pairs.iter().map(|pair| if shale { &pair.0 } else { &pair.1 });
    median(rows.filter_map(measure.of).collect())
}

fn ratio_text(step: &Step, measure: &Measure) -> String {
    let all = ratios(step, measure);
    let spread = match (all.iter().copied().reduce(f64::min), all.iter().copied().reduce(f64::max))
    {
        (Some(low), Some(high)) if all.len() > 1 => format!(" ({low:.2}-{high:.2})"),
        _ => String::new(),
    };
    median(all).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x{spread}"))
}

/// What flushes and compactions wrote in a step, if the engine counts it, and in the opening before
/// it: some engines flush then what the step before left.
fn table_bytes(row: &Row) -> Option<u64> {
    let opened = row.open.and_then(|open| open.table_bytes).unwrap_or(0);
    Some(row.counted.flush_bytes? + row.counted.compaction_bytes? + opened)
}

/// (flush + compaction) / user bytes of Shale and of RocksDB, over the steps of a setting from the
/// last fill on: what a single step leaves to the next is in it. A step in which one of them does
/// not count what it writes is left out for both.
fn whole_amps(steps: &[&Step]) -> Option<(f64, f64)> {
    let start = steps.iter().rposition(|step| step.name.starts_with("fill")).unwrap_or(0);
    let (mut tables, mut user) = ([0, 0], [0, 0]);
    for (shale, rocksdb) in steps[start..].iter().filter_map(|step| step.pairs.first()) {
        let Some(written) = table_bytes(shale).zip(table_bytes(rocksdb)) else { continue };
        tables = [tables[0] + written.0, tables[1] + written.1];
        user = [user[0] + shale.counted.user_bytes, user[1] + rocksdb.counted.user_bytes];
    }
    let amp = |at: usize| (user[at] > 0).then(|| tables[at] as f64 / user[at] as f64);
    amp(0).zip(amp(1))
}

fn settings(steps: &[Step]) -> Vec<(&str, Vec<&Step>)> {
    let mut groups: Vec<(&str, Vec<&Step>)> = Vec::new();
    for step in steps {
        match groups.iter_mut().find(|(name, _)| *name == step.setting) {
            Some((_, group)) => group.push(step),
            None => groups.push((&step.setting, vec![step])),
        }
    }
    groups
}

/// For the terminal: ratios, then the figures of both.
pub(crate) fn terminal(steps: &[Step]) -> String {
    let mut text = String::new();
    for (setting, group) in settings(steps) {
        let mut header = vec!["test"];
        header.extend(MEASURES.iter().map(|measure| measure.name));
        let mut table = plain_table(&header);
        for step in &group {
            let mut cells = vec![step.name.clone()];
            cells.extend(MEASURES.iter().map(|measure| ratio_text(step, measure)));
            table.add_row(cells);
            for shale in [true, false] {
                let mut cells = vec![if shale { "  Shale" } else { "  RocksDB" }.to_owned()];
                cells.extend(MEASURES.iter().map(|measure| {
                    value(step, measure, shale).map_or_else(|| "-".to_owned(), measure.print)
                }));
                table.add_row(cells);
            }
        }
        text.push_str(&format!("Codecs: {setting}\n{}\n", table.trim_fmt()));
        if let Some((shale, rocksdb)) = whole_amps(&group) {
            text.push_str(&format!(
                "w-amp of all writes since the last fill began: Shale {shale:.2}, RocksDB \
                 {rocksdb:.2} ({:.2}x)\n",
                shale / rocksdb
            ));
        }
        text.push('\n');
    }
    text
}

/// For a document: one line per step, each cell `ratio: Shale / RocksDB`.
pub(crate) fn markdown(steps: &[Step]) -> String {
    let mut text = String::from(
        "Each cell: Shale / RocksDB, then the two figures. Above 1 is better for rates, below 1 \
         for the rest; of wait_idle, the CPU is in seconds and what it wrote in KB.\n\n",
    );
    for (setting, group) in settings(steps) {
        text.push_str(&format!("Codecs: {setting}\n\n| test |"));
        for measure in &MEASURES {
            text.push_str(&format!(" {} |", measure.name));
        }
        text.push_str("\n|---|");
        text.push_str(&"---|".repeat(MEASURES.len()));
        text.push('\n');
        for step in &group {
            text.push_str(&format!("| {} |", step.name));
            for measure in &MEASURES {
                match (value(step, measure, true), value(step, measure, false)) {
                    (Some(shale), Some(rocksdb)) => text.push_str(&format!(
                        " **{}** {} / {} |",
                        ratio_text(step, measure),
                        (measure.print)(shale),
                        (measure.print)(rocksdb)
                    )),
                    _ => text.push_str(" - |"),
                }
            }
            text.push('\n');
        }
        if let Some((shale, rocksdb)) = whole_amps(&group) {
            text.push_str(&format!(
                "\nw-amp of all writes since the last fill began: {shale:.2} / {rocksdb:.2} = \
                 {:.2}x\n",
                shale / rocksdb
            ));
        }
        text.push('\n');
    }
    text
}

/// For programs.
pub(crate) fn json(steps: &[Step], heading: &str) -> Value {
    let list: Vec<Value> = steps
        .iter()
        .map(|step| {
            let measures: serde_json::Map<String, Value> = MEASURES
                .iter()
                .map(|measure| {
                    let figures = json!({
                        "ratio": median(ratios(step, measure)),
                        "ratios": ratios(step, measure),
                        "shale": value(step, measure, true),
                        "rocksdb": value(step, measure, false),
                    });
                    (measure.name.to_owned(), figures)
                })
                .collect();
            json!({ "setting": step.setting, "test": step.name, "measures": measures })
        })
        .collect();
    json!({ "schema": 1, "what": heading, "steps": list })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, shale: (u64, Option<u64>), rocksdb: (u64, Option<u64>)) -> Step {
        let row = |(user, flushed)| {
            let mut row = Row::default();
            row.counted.user_bytes = user;
            row.counted.flush_bytes = flushed;
            row.counted.compaction_bytes = flushed;
            row
        };
        let (setting, name) = ("lz4".to_owned(), name.to_owned());
        Step { setting, name, pairs: vec![(row(shale), row(rocksdb))] }
    }

    #[test]
    fn a_step_that_is_not_counted_is_on_neither_side() {
        let steps = [
            step("overwrite", (1, Some(1000)), (1, Some(1000))),
            step("fillrandom", (100, Some(50)), (100, Some(100))),
            step("updaterandom", (70, Some(70)), (100, None)),
            step("deleterandom", (100, Some(150)), (100, Some(200))),
        ];
        let steps: Vec<&Step> = steps.iter().collect();
        assert_eq!(whole_amps(&steps), Some((2.0, 3.0)));
        assert_eq!(whole_amps(&steps[2..3]), None);
    }
}
