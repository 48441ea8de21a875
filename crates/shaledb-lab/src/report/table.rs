//! The tables of all reports for a terminal.

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

/// Names stand at the left, also when they are last.
pub(super) fn right_but_last(table: &mut Table, columns: usize) {
    for (at, column) in table.column_iter_mut().enumerate() {
        let alignment = if at + 1 == columns { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
    }
}
