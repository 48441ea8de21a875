//! The advice as one page of HTML that needs nothing else: no network, no scripts.

use super::engines_table;
use super::recommend::percent;
use super::report::{Report, high};
use crate::exit::Outcome;
use shaledb_lab::units::{bytes, micros, three_digits};
use std::fmt::Write as _;

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.best { font-weight: bold; }
rect.size { fill: #3b78b5; }
rect.best { fill: #2f9e5b; }
line { stroke: currentColor; stroke-width: 1.5; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
";

/// Of the chart, in pixels.
const LEFT: f64 = 130.0;
const BAR_WIDTH: f64 = 480.0;
const BAR_HEIGHT: f64 = 16.0;
const STEP: f64 = 22.0;

/// The page.
pub(super) fn page(report: &Report<'_>) -> Outcome<String> {
    let title = format!("Advice for {}", report.source);
    let words = report.words.iter().chain(&report.check_words).chain(&report.engine_words);
    let words: String = words.map(|word| format!("<p>{}</p>\n", escaped(word))).collect();
    let data = serde_json::to_string(report)?.replace('<', "\\u003c");
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n<h2>Sizes</h2>\n{chart}\n<h2>All figures</h2>\n{table}\n\
         {checked}{engines}<h2>In words</h2>\n{words}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n</body>\n</html>\n",
        title = escaped(&title),
        chart = chart(report),
        table = table(report),
        checked = checked(report),
        engines = report.engines.as_ref().map_or_else(String::new, |engines| {
            engines_table::html(engines, report.predicted.bytes, &escaped)
        }),
    ))
}

/// A bar for each choice, with the bound as a line over its end.
fn chart(report: &Report<'_>) -> String {
    let choices = &report.predicted.choices;
    let most = choices.iter().map(high).fold(1.0, f64::max);
    let mut bars = String::new();
    for (number, choice) in choices.iter().enumerate() {
        let top = number as f64 * STEP;
        let at = |size: f64| LEFT + BAR_WIDTH * size / most;
        let class = if number == report.recommended { "best" } else { "size" };
        let low = choice.size_bytes * (1.0 - choice.size_bound.min(1.0));
        let text = bytes(choice.size_bytes as u64);
        let _ = writeln!(
            bars,
            "<text x=\"0\" y=\"{y:.0}\">{label}</text><rect class=\"{class}\" x=\"{LEFT}\" \
             y=\"{top:.0}\" width=\"{width:.1}\" height=\"{BAR_HEIGHT}\"/><line x1=\"{low:.1}\" \
             x2=\"{high:.1}\" y1=\"{middle:.0}\" y2=\"{middle:.0}\"/><text x=\"{end:.1}\" \
             y=\"{y:.0}\">{text}</text>",
            y = top + 12.0,
            label = escaped(&choice.choice.label()),
            width = at(choice.size_bytes) - LEFT,
            low = at(low),
            high = at(high(choice)),
            middle = top + BAR_HEIGHT / 2.0,
            end = at(high(choice)) + 6.0,
        );
    }
    format!(
        "<svg role=\"img\" aria-label=\"Predicted sizes; the table below has the figures\" \
         viewBox=\"0 0 {:.0} {:.0}\">\n{bars}</svg>",
        LEFT + BAR_WIDTH + 80.0,
        choices.len() as f64 * STEP
    )
}

fn table(report: &Report<'_>) -> String {
    let has_rate = report.predicted.choices.iter().any(|choice| choice.write_amp_at_rate.is_some());
    let mut rows = String::new();
    for (number, choice) in report.predicted.choices.iter().enumerate() {
        let class = if number == report.recommended { " class=\"best\"" } else { "" };
        let mut cells = vec![
            escaped(&choice.choice.label()),
            bytes(choice.size_bytes as u64),
            percent(choice.size_bound),
            percent(choice.size_bytes / report.predicted.bytes.max(1.0)),
            format!("{} s", three_digits(choice.load_cpu_seconds)),
            micros(choice.load_us_per_row),
            micros(choice.get_us),
            micros(choice.cached_get_us),
            choice.write_amp.map_or(String::new(), three_digits),
        ];
        if has_rate {
            cells.push(choice.write_amp_at_rate.map_or(String::new(), three_digits));
        }
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(rows, "<tr{class}>{cells}</tr>");
    }
    let mut names = vec![
        "choice",
        "size",
        "\u{b1}",
        "of raw",
        "load CPU",
        "a row",
        "get",
        "cached get",
        "write amp",
    ];
    if has_rate {
        names.push("at rate");
    }
    let names: String = names.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    format!("<table><thead><tr>{names}</tr></thead>\n<tbody>\n{rows}</tbody></table>")
}

fn checked(report: &Report<'_>) -> String {
    let Some(checked) = &report.checked else { return String::new() };
    let mut rows = String::new();
    for one in checked {
        let figures = [
            ("size in bytes", Some(one.size_bytes)),
            ("CPU to load in seconds", Some(one.load_cpu_seconds)),
            ("CPU of a get in us", Some(one.get_us)),
            ("CPU of a cached get in us", Some(one.cached_get_us)),
            ("write amplification", one.write_amp),
        ];
        for (name, figure) in figures {
            let Some(figure) = figure else { continue };
            let _ = writeln!(
                rows,
                "<tr><td>{}</td><td>{name}</td><td>{}</td><td>{}</td><td>{:+.1} %</td></tr>",
                escaped(&one.choice.label()),
                three_digits(figure.predicted),
                three_digits(figure.measured),
                figure.error * 100.0
            );
        }
    }
    format!(
        "<h2>Predicted and measured</h2>\n<table><thead><tr><th>choice</th><th>measure</th>\
         <th>predicted</th><th>measured</th><th>off</th></tr></thead>\n<tbody>\n{rows}</tbody>\
         </table>\n"
    )
}

/// Text that is safe between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
