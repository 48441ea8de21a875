//! Engines beside each other, as tables of text and of HTML.

use super::check::Compared;
use super::engines::{Engines, OfEngine};
use super::fit::Fitted;
use shaledb_lab::report::plain_table;
use shaledb_lab::units::{bytes, micros, three_digits};

const HEAD: [&str; 9] =
    ["engine", "size", "\u{b1}", "load CPU", "\u{b1}", "written", "\u{b1}", "of raw", "get"];

fn percent(fitted: Fitted) -> String {
    format!("{} %", three_digits(fitted.bound * 100.0))
}

/// A row; `raw` are the bytes of all keys and values.
fn cells(one: &OfEngine, raw: f64) -> [String; 9] {
    [
        one.engine.clone(),
        bytes(one.size.value as u64),
        percent(one.size),
        format!("{} s", three_digits(one.load_cpu.value)),
        percent(one.load_cpu),
        bytes(one.written.value as u64),
        percent(one.written),
        three_digits(one.written.value / raw.max(1.0)),
        one.get_us.map_or_else(|| "-".to_owned(), micros),
    ]
}

/// What each would take.
pub(super) fn text(engines: &Engines, raw: f64) -> String {
    let mut table = plain_table(&HEAD);
    engines.engines.iter().for_each(|one| {
        table.add_row(cells(one, raw));
    });
    let mut text = table.trim_fmt();
    if let Some(checked) = check_text(engines) {
        text.push_str(&format!(
            "\n\nAll was loaded; predicted, measured, and how far off:\n{checked}"
        ));
    }
    text
}

/// Of one check: the measure, predicted and measured as text, how far off.
fn checked_rows(one: &OfEngine) -> Vec<[String; 5]> {
    let Some(checked) = &one.checked else { return Vec::new() };
    let size = |size: f64| bytes(size as u64);
    let seconds = |seconds: f64| format!("{} s", three_digits(seconds));
    let row = |what: &str, compared: Compared, text: &dyn Fn(f64) -> String| {
        [
            one.engine.clone(),
            what.to_owned(),
            text(compared.predicted),
            text(compared.measured),
            format!("{:+.1} %", compared.error * 100.0),
        ]
    };
    let mut rows = vec![
        row("size", checked.size, &size),
        row("load CPU", checked.load_cpu, &seconds),
        row("written", checked.written, &size),
    ];
    rows.extend(checked.get_us.map(|get| row("get", get, &micros)));
    rows
}

const CHECK_HEAD: [&str; 5] = ["engine", "measure", "predicted", "measured", "off"];

fn check_text(engines: &Engines) -> Option<String> {
    let rows: Vec<[String; 5]> = engines.engines.iter().flat_map(checked_rows).collect();
    if rows.is_empty() {
        return None;
    }
    let mut table = plain_table(&CHECK_HEAD);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    Some(table.trim_fmt())
}

/// The same as HTML; `escaped` makes text safe between tags.
pub(super) fn html(engines: &Engines, raw: f64, escaped: &dyn Fn(&str) -> String) -> String {
    let row = |cells: &[String]| {
        let cells: String =
            cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let table = |head: &[&str], rows: String| {
        let head: String =
            head.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
        format!("<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n")
    };
    let rows = engines.engines.iter().map(|one| row(&cells(one, raw))).collect();
    let mut html = format!("<h2>Engines beside each other</h2>\n{}", table(&HEAD, rows));
    let checked: String =
        engines.engines.iter().flat_map(checked_rows).map(|one| row(&one)).collect();
    if !checked.is_empty() {
        html.push_str(&table(&CHECK_HEAD, checked));
    }
    html
}
