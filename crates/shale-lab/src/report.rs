//! Rows of results as a table for people.

use crate::row::Row;
use crate::units::{bytes, count, micros, three_digits};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// An empty table with one line under its header and no other lines; columns after the first are
/// set to the right.
pub fn plain_table(header: &[&str]) -> Table {
    let style =
        TableStyle::new().header_separator(LineStyle::none().fill('\u{2500}').junction('\u{2500}'));
    let mut table = Table::new();
    table.load_style(style);
    table.set_header(header.iter().copied());
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// All rows as one table.
pub fn table(rows: &[Row]) -> String {
    let mut table = plain_table(&[
        "step", "engine", "repeat", "ops/s", "worst", "p50 us", "p99 us", "p99.9", "max", "CPU us",
        "client", "wKB/op", "rKB/op", "w-amp", "stall%", "size", "rss", "peak",
    ]);
    for row in rows {
        let once = row.ops <= 1;
        let unless = |hidden: bool, text: String| if hidden { "-".to_owned() } else { text };
        let us = row.latency_us.values().next().copied().unwrap_or_default().us;
        table.add_row([
            row.step.clone(),
            format!("{} {}", row.engine, row.setting).trim_end().to_owned(),
            (row.repeat + 1).to_string(),
            unless(once, count(row.rate)),
            unless(row.rates.intervals == 0, count(row.rates.worst)),
            unless(once, three_digits(us.p50)),
            unless(once, three_digits(us.p99)),
            unless(once, three_digits(us.p999)),
            micros(us.max),
            if once {
                format!("{} s", three_digits(row.cpu.seconds))
            } else {
                three_digits(row.cpu.us_per_op)
            },
            unless(once, three_digits(row.cpu.client_us_per_op)),
            if once { bytes(row.io.written_bytes) } else { three_digits(row.io.written_kb_per_op) },
            unless(once, three_digits(row.io.read_kb_per_op)),
            row.counted.write_amp.map_or_else(|| "-".to_owned(), three_digits),
            three_digits(row.counted.stall_percent),
            bytes(row.size_bytes),
            bytes(row.rss_bytes),
            bytes(row.rss_peak_bytes),
        ]);
    }
    table.trim_fmt()
}
