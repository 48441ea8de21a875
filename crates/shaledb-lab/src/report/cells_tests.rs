use super::super::cell_table;
use super::*;
use crate::measure::LatencySummary;
use crate::run::row::Latency;

const CELL: &str = "json, 10 MB/s, cpu short, 50 % reads";

/// A choice with its rate, write amplification (of a megabyte) and size.
fn row(setting: &str, rate: f64, write_amp: f64, size: f64) -> Row {
    let mut row = Row {
        workload: "kv".to_owned(),
        step: "readrandomwriterandom".to_owned(),
        engine: "shale".to_owned(),
        setting: format!("{setting}; {CELL}"),
        rate,
        ..Row::default()
    };
    row.counted.user_bytes = 1_000_000;
    row.io.written_bytes = 500_000;
    row.extra.insert("idle_written_bytes".to_owned(), (write_amp * 1e6 - 5e5).max(0.0));
    row.extra.insert("closed_size_bytes".to_owned(), size);
    row
}

fn with_cell(row: Row, cell: &str) -> Row {
    Row { setting: format!("{}; {cell}", row.choice()), ..row }
}

fn fixed() -> Vec<Row> {
    vec![
        row("none", 1000.0, 8.0, 400.0),
        row("lz4", 980.0, 5.0, 250.0),
        row("zstd:3", 960.0, 3.0, 100.0),
        // Writes less, but is not as fast.
        row("zstd:9", 900.0, 2.0, 90.0),
    ]
}

#[test]
fn verdicts() {
    let unlimited = "json, unlimited, cpu short, 50 % reads";
    let cases = [
        ("as good as all", CELL, (1000.0, 3.0, 100.0), "ok"),
        ("at the bounds", CELL, (970.0, 3.09, 105.0), "ok"),
        ("too slow", CELL, (969.0, 3.0, 100.0), "rate"),
        ("writes too much", CELL, (1000.0, 3.1, 100.0), "w-amp"),
        ("too large", CELL, (1000.0, 3.0, 106.0), "size"),
        ("all of it", CELL, (900.0, 4.0, 200.0), "rate, w-amp, size"),
        ("large where size does not count", unlimited, (1000.0, 3.0, 400.0), "ok"),
    ];
    for (what, cell, (rate, amp, size), verdict) in cases {
        let mut rows: Vec<Row> = fixed().into_iter().map(|row| with_cell(row, cell)).collect();
        rows.push(with_cell(row("auto", rate, amp, size), cell));
        let lines = lines(&rows);
        assert_eq!(lines.len(), 1, "{what}");
        assert_eq!(lines[0].ratios().verdict(), verdict, "{what}: {:?}", lines[0].ratios());
        assert_eq!(lines[0].best("shale").unwrap().choice, "none", "{what}");
        assert_eq!(lines[0].least_writing("shale").unwrap().choice, "zstd:3", "{what}");
    }
}

#[test]
fn what_is_missing_is_not_judged() {
    let lines_of = |rows: &[Row]| lines(rows).remove(0);
    assert_eq!(lines_of(&fixed()).ratios().verdict(), "-");
    assert!(summary(&lines(&fixed())).contains("measured in no cell"));
    // Without zstd:3 there is no size to compare with, without bytes no amplification.
    let mut rows = vec![row("lz4", 100.0, 5.0, 50.0), row("auto", 100.0, 5.0, 900.0)];
    let criteria = |rows: &[Row]| -> Vec<&str> {
        lines_of(rows).ratios().criteria().iter().map(|(name, ..)| *name).collect()
    };
    assert_eq!(criteria(&rows), ["rate", "w-amp"]);
    for row in &mut rows {
        row.counted.user_bytes = 0;
    }
    assert_eq!(criteria(&rows), ["rate"]);
    // A choice that has auto in one position is neither fixed nor the engine's own.
    rows.push(row("none,lz4,auto", 900.0, 1.0, 1.0));
    assert_eq!(lines_of(&rows).best("shale").unwrap().choice, "lz4");
    assert_eq!(lines_of(&rows).auto().unwrap().choice, "auto");
}

#[test]
fn rows_of_other_runs_are_no_matrix() {
    let mut rows = vec![row("lz4", 1.0, 1.0, 1.0), row("zstd:3", 1.0, 1.0, 1.0)];
    rows[0].setting = "lz4,lz4,lz4; 100-1000 B, 20 % random".to_owned();
    rows[1].step = "filluniquerandom".to_owned();
    assert!(lines(&rows).is_empty() && cell_table::text(&rows).is_none());
    assert!(cell_table::value(&rows).is_null());
}

#[test]
fn repeats_are_folded_and_another_engine_stands_beside() {
    let other = "links, unlimited, storage short, 0 % reads";
    let mut rows = fixed();
    rows.push(row("auto", 900.0, 3.0, 100.0));
    rows.push(row("auto", 1200.0, 3.0, 100.0));
    rows.push(row("auto", 990.0, 3.0, 100.0));
    let us = LatencySummary { p99: 1500.0, ..LatencySummary::default() };
    rows[0].latency_us.insert("get".to_owned(), Latency { count: 9, us });
    rows.push(Row { engine: "rocksdb".to_owned(), ..row("lz4", 700.0, 11.0, 300.0) });
    rows.push(with_cell(row("lz4", 10.0, 5.0, 10.0), other));
    let text = cell_table::text(&rows).unwrap();
    let words = |start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        words("json"),
        format!("{CELL} none 1.00k 990 0.990 zstd:3 3.00 3.00 1.000 1.000 ok lz4 700 11.0")
    );
    assert_eq!(words("links"), format!("{other} lz4 10 - - lz4 5.00 - - - - - - -"));
    let summary = "auto holds rate in 1 of 1, w-amp in 1 of 1 and size in 1 of 1 cells; all of \
                   them in 1 of 1";
    assert!(text.contains(summary), "{text}");
    let value = cell_table::value(&rows);
    assert_eq!(value["bars"][0]["bars"][0]["ratio"], 0.99);
    assert_eq!(value["details"].as_array().unwrap().len(), 7);
    let none = value["details"].as_array().unwrap().iter().find(|row| row[1] == "shale none");
    assert_eq!(none.unwrap()[5], "1.50 ms");
}
