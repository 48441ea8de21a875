//! What opening and closing a store took, which is in no figure of the step between them.

use super::fold::{Fold, Step};
use super::table::{plain_table, right_but_last};
use crate::run::row::{Opened, Row};
use crate::units::{bytes, three_digits};

/// From this share of the step's CPU or bytes written on it is shown.
const SHARE: f64 = 0.05;

/// Less is never shown.
const CPU_SECONDS: f64 = 0.1;
const BYTES: f64 = 1e6;

/// A table of both for all engines, if they took more than little on one of them.
pub(super) fn around(step: &Step<'_>) -> Option<String> {
    if !step.folds.iter().any(|fold| is_much(fold.typical())) {
        return None;
    }
    let header = ["open s", "CPU s", "written", "close s", "CPU s", "written", "engine"];
    let mut table = plain_table(&header);
    right_but_last(&mut table, header.len());
    for fold in &step.folds {
        table.add_row(cells(step, fold));
    }
    Some(format!(
        "opening the store before the step and closing it after: in no figure above\n{}",
        table.trim_fmt()
    ))
}

fn cells(step: &Step<'_>, fold: &Fold<'_>) -> Vec<String> {
    let row = fold.typical();
    let of = |took: &Option<Opened>| match took {
        Some(Opened { seconds, cpu_seconds, written_bytes, .. }) => {
            [three_digits(*seconds), three_digits(*cpu_seconds), bytes(*written_bytes)]
        }
        None => ["-"; 3].map(str::to_owned),
    };
    let mut cells: Vec<String> = of(&row.open).into_iter().chain(of(&row.close)).collect();
    cells.push(step.name_of(fold));
    cells
}

fn is_much(row: &Row) -> bool {
    let is = |took: &Opened| {
        took.cpu_seconds >= (SHARE * row.cpu.seconds).max(CPU_SECONDS)
            || took.written_bytes as f64 >= (SHARE * row.io.written_bytes as f64).max(BYTES)
    };
    row.open.iter().chain(&row.close).any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(engine: &str, close: Opened) -> Row {
        let (open, close) = (Some(Opened::default()), Some(close));
        let mut row = Row { engine: engine.to_owned(), open, close, ..Row::default() };
        row.cpu.seconds = 10.0;
        row.io.written_bytes = 100_000_000;
        row
    }

    #[test]
    fn what_is_more_than_little_is_shown_for_all() {
        let little = Opened { seconds: 9.0, cpu_seconds: 0.4, ..Opened::default() };
        let much = Opened { seconds: 1.5, written_bytes: 7_000_000, ..Opened::default() };
        let text = |rows: &[Row]| around(&super::super::fold::fold(rows)[0]);
        assert_eq!(text(&[row("shale", little)]), None);
        let shown = text(&[row("shale", little), row("innodb", much)]).unwrap();
        assert_eq!(shown.lines().count(), 5, "{shown}");
        assert!(shown.contains("7.00 MB") && shown.contains("shale"), "{shown}");
    }
}
