//! One page of HTML that needs nothing else: no network, no other file.
//!
//! The page holds its data as JSON, the plotting library (assets/uplot) and our own scripts and
//! style (assets/charts.js, assets/report.js, assets/report.css). Without scripts it still shows
//! the report as text.

use super::cell_table;
use super::changes::verdict;
use super::compare::Comparison;
use super::explain::explain;
use super::figure::Figure as F;
use super::fold::{Fold, Step, label};
use super::read::Run;
use super::terminal::ratio;
use crate::run::row::{Interval, Latency, Row};
use crate::stores::engine::{Level, Result};
use serde_json::{Value, json};

const UPLOT_SCRIPT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");
const CHARTS: &str = include_str!("../../assets/charts.js");
const SCRIPT: &str = include_str!("../../assets/report.js");
const STYLE: &str = include_str!("../../assets/report.css");

/// The page of one or more runs; `text` is the report as text.
///
/// # Errors
///
/// None but that a row cannot be written as JSON.
pub fn page(
    runs: &[Run],
    steps: &[Vec<Step<'_>>],
    comparisons: &[Comparison],
    base: &str,
    text: &str,
) -> Result<String> {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = format!("Shale lab: {}", names.join(", "));
    let data = json!({
        "base": base,
        "runs": runs.iter().map(|run| json!({
            "name": run.name,
            "plan": run.plan,
            "warnings": run.warnings,
        })).collect::<Vec<Value>>(),
        "rows": runs.iter().zip(steps).enumerate().flat_map(|(at, (_, steps))| {
            steps.iter().flat_map(move |step| {
                step.folds.iter().map(move |fold| {
                    let at_rest = rest_bytes(&runs[at].rows, fold.typical());
                    row(at, fold, step.base(base, fold), at_rest)
                })
            })
        }).collect::<Vec<Value>>(),
        "sentences": steps.iter().zip(&names).flat_map(|(steps, name)| {
            steps.iter().map(move |step| json!({
                "run": name,
                "workload": step.workload,
                "step": step.step,
                "variant": step.variant,
                "texts": explain(step, base),
            }))
        }).collect::<Vec<Value>>(),
        "changes": changes(&names, comparisons)?,
        "matrices": runs.iter().map(|run| json!({
            "run": run.name, "cells": cell_table::value(&run.rows),
        })).collect::<Vec<Value>>(),
    });
    document(&title, text, &data, SCRIPT)
}

/// A page that shows `data` by `script`, which finds it in the element `data` and has what
/// assets/charts.js offers; and `text`, the same as text.
///
/// # Errors
///
/// None but that the data cannot be written as JSON.
pub fn document(title: &str, text: &str, data: &Value, script: &str) -> Result<String> {
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <style>{UPLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the results</a>\n<header><h1>{title}</h1></header>\n\
         <main id=\"main\"></main>\n\
         <details id=\"text\"><summary>The report as text</summary>\n\
         <pre tabindex=\"0\">{text}</pre></details>\n\
         <noscript><p>Charts need scripts; the report as text does not.</p></noscript>\n\
         <footer><p>Charts by uPlot.</p><details><summary>Its licence</summary><pre>{licence}</pre>\
         </details></footer>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>{UPLOT_SCRIPT}</script>\n\
         <script>{CHARTS}</script>\n<script>{script}</script>\n</body>\n</html>\n",
        title = escaped(title),
        text = escaped(text),
        licence = escaped(UPLOT_LICENCE),
        data = in_script(&serde_json::to_string(data)?),
    ))
}

/// Text that is safe between tags and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that cannot end the element that it is in, nor begin a comment there.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace("-->", "--\\u003e")
}

fn changes(names: &[&str], comparisons: &[Comparison]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (at, comparison) in comparisons.iter().enumerate() {
        let mut rows = Vec::new();
        for change in &comparison.changes {
            let mut value = serde_json::to_value(change)?;
            value["verdict"] = verdict(change.verdict).into();
            value["shown"] =
                json!([change.shown(change.before.median), change.shown(change.after.median)]);
            rows.push(value);
        }
        all.push(json!({
            "before": names[0], "after": names[at + 1], "remarks": comparison.remarks, "rows": rows,
        }));
    }
    Ok(all)
}

/// Four digits are more than a chart shows.
fn rounded(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value == 0.0 {
        return json!(0);
    }
    let digits = 4 - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits);
    let short = (value * scale).round() / scale;
    if short.fract() == 0.0 && short.abs() < 1e15 { json!(short as i64) } else { json!(short) }
}

fn series(row: &Row, of: impl Fn(&Interval) -> f64) -> Vec<Value> {
    row.intervals.iter().map(|interval| rounded(of(interval))).collect()
}

/// The repeats of a step on an engine as the page needs them: medians, and the series of the repeat
/// in the middle.
fn row(run: usize, fold: &Fold<'_>, base: Option<&Fold<'_>>, at_rest: Option<f64>) -> Value {
    let row = fold.typical();
    let other = base.filter(|base| base.label() != fold.label());
    let ratio = other.and_then(|base| ratio(fold, base, &F::Rate));
    let figure = |figure: &F| match fold.spread(figure) {
        Some(spread) => json!([rounded(spread.median), rounded(spread.low), rounded(spread.high)]),
        None => Value::Null,
    };
    let identity = json!({
        "run": run,
        "workload": row.workload, "step": row.step, "engine": row.engine, "setting": row.setting,
        "variant": row.variant(),
        "label": label(row), "version": row.version, "clients": row.clients,
        "unit": row.unit, "repeats": fold.rows.len(), "ops": row.ops,
        "seconds": rounded(row.seconds), "userBytes": row.counted.user_bytes,
        "writer": row.writer, "latency": latency(row), "ratio": ratio.map(rounded),
    });
    let figures = json!({
        "rate": figure(&F::Rate), "cpu": figure(&F::Cpu), "written": figure(&F::WrittenKb),
        "read": figure(&F::ReadKb), "size": figure(&F::Size), "peak": figure(&F::Peak),
        "wamp": figure(&F::WriteAmp), "stall": figure(&F::Stall),
    });
    let space = json!({
        "spaceMost": at_rest.map(|at_rest| rounded(row.size_peak_bytes as f64 / at_rest)),
        "spaceEnd": at_rest.map(|at_rest| rounded(row.size_bytes as f64 / at_rest)),
        "sizePeak": figure(&F::SizePeak), "spaceAmp": figure(&F::SpaceAmp),
        "spaceAmpPeak": figure(&F::SpaceAmpPeak),
    });
    let over_time = json!({
        "at": series(row, |i| i.at),
        "series": {
            "rate": series(row, |i| i.rate), "max": series(row, |i| i.max_us / 1e3),
            "writer": match row.writer {
                Some(_) => series(row, |i| i.writer_rate),
                None => Vec::new(),
            },
            "cpu": series(row, |i| i.cpu), "read": per_second(row, |i| i.read_bytes),
            "written": per_second(row, |i| i.written_bytes),
            "rss": series(row, |i| i.rss_bytes as f64 / 1e6),
            "size": series(row, |i| i.size_bytes as f64 / 1e6),
            "space": match at_rest {
                Some(at_rest) => series(row, |i| i.size_bytes as f64 / at_rest),
                None => Vec::new(),
            },
            "stall": series(row, |i| i.stall_seconds),
        },
        "levelsAt": levels_at(row),
    });
    let rest = json!({
        "levels": row.counted.levels, "table": row.counted.table,
        "configuration": row.configuration, "parameters": row.parameters, "extra": row.extra,
        "notes": notes(fold),
    });
    let parts = [identity, figures, space, over_time, rest];
    parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten().collect()
}

/// What the data of a step takes when nothing is left to merge: the size after the next
/// `wait_idle` of the same repeat, if there is one.
fn rest_bytes(rows: &[Row], row: &Row) -> Option<f64> {
    let same = |other: &&Row| {
        (&other.workload, &other.engine, &other.setting, other.repeat)
            == (&row.workload, &row.engine, &row.setting, row.repeat)
    };
    let later = rows.iter().filter(same).skip_while(|other| other.step != row.step);
    let mut at_rest = later.filter(|other| other.unit == "wait_idle" && other.size_bytes > 0);
    at_rest.next().map(|at_rest| at_rest.size_bytes as f64)
}

/// Mean and percentiles in microseconds, by kind of operation.
fn latency(row: &Row) -> Value {
    let one = |(kind, latency): (&String, &Latency)| {
        let us = &latency.us;
        let values = [us.mean, us.p50, us.p95, us.p99, us.p999, us.max].map(rounded);
        (kind.clone(), json!({ "count": latency.count, "us": values }))
    };
    Value::Object(row.latency_us.iter().map(one).collect())
}

/// MB per second in each interval.
fn per_second(row: &Row, of: fn(&Interval) -> u64) -> Vec<Value> {
    let mut last = 0.0;
    row.intervals
        .iter()
        .map(|interval| {
            let length = (interval.at - last).max(1e-9);
            last = interval.at;
            rounded(of(interval) as f64 / 1e6 / length)
        })
        .collect()
}

/// Bytes, written bytes and codec of each level at the intervals that have levels, with the share
/// of the operations that were done by then. Of a codec, the moments at which it became another.
fn levels_at(row: &Row) -> Value {
    let all = row.intervals.iter().flat_map(|interval| &interval.levels);
    let mut numbers: Vec<u32> = all.map(|level| level.level).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let (mut at, mut done, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let (mut last, mut ops) = (0.0, 0.0);
    for interval in &row.intervals {
        ops += interval.rate * (interval.at - last);
        last = interval.at;
        if !interval.levels.is_empty() {
            at.push(rounded(interval.at));
            done.push(rounded(ops / row.ops.max(1) as f64));
            seen.push(&interval.levels);
        }
    }
    let of = |number: u32, figure: fn(&Level) -> u64| -> Vec<Value> {
        let one = |levels: &&Vec<Level>| match levels.iter().find(|l| l.level == number) {
            Some(level) => rounded(figure(level) as f64 / 1e6),
            None => Value::Null,
        };
        seen.iter().map(one).collect()
    };
    let levels: Vec<Value> = numbers
        .iter()
        .map(|&number| {
            json!({
                "level": number,
                "size": of(number, |level| level.bytes),
                "written": of(number, |level| level.written_bytes),
                "codecs": codecs_at(number, &at, &seen),
            })
        })
        .collect();
    json!({ "at": at, "done": done, "levels": levels })
}

/// The codec of a level: since when, in seconds, which, and why, each time it became another.
fn codecs_at(number: u32, at: &[Value], seen: &[&Vec<Level>]) -> Vec<Value> {
    let mut changes = Vec::new();
    let mut before = None;
    for (at, levels) in at.iter().zip(seen) {
        let level = levels.iter().find(|level| level.level == number);
        let Some(level) = level.filter(|level| !level.codec.is_empty()) else { continue };
        let now = (&level.codec, &level.codec_why);
        if before.replace(now) != Some(now) {
            changes.push(json!({ "at": at, "codec": now.0, "why": now.1 }));
        }
    }
    changes
}

fn notes(fold: &Fold<'_>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in fold.rows.iter().flat_map(|row| &row.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_ends_its_element() {
        let run = |name: &str| Run {
            name: name.to_owned(),
            rows: vec![Row {
                engine: "</script><script>alert(1)</script>".to_owned(),
                notes: vec!["<!-- <script> & \"quoted\"".to_owned()],
                ..Row::default()
            }],
            ..Run::default()
        };
        let runs = [run("<img src=x>")];
        let steps: Vec<Vec<Step<'_>>> =
            runs.iter().map(|run| super::super::fold::fold(&run.rows)).collect();
        let html = page(&runs, &steps, &[], "shale", "a < b & c").unwrap();
        assert_eq!(html.matches("<script").count(), 4, "ours and no other");
        assert_eq!(html.matches("</script>").count(), 4);
        assert!(!html.contains("<img") && !html.contains("<!--"));
        assert!(html.contains("a &lt; b &amp; c"));
        let data = html.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["rows"][0]["engine"], runs[0].rows[0].engine);
        assert_eq!(data["rows"][0]["notes"][0], runs[0].rows[0].notes[0]);
    }

    #[test]
    fn nothing_is_fetched() {
        for text in [UPLOT_SCRIPT, SCRIPT, STYLE, UPLOT_STYLE] {
            assert!(!text.contains("</script") && !text.contains("</style"));
            for word in ["@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
                assert!(!text.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        let short = |value: f64| rounded(value).to_string();
        assert_eq!(short(1_234_567.0), "1235000");
        assert_eq!(short(0.001_234_56), "0.001235");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(f64::NAN), "null");
        assert_eq!(short(-12.0), "-12");
    }
}
