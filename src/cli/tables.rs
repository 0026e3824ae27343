//! Tables and numbers for people.

use comfy_table::{CellAlignment, Table, TableComponent, presets};

/// A table with a header, numbers to the right.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header.iter().copied());
    table.remove_style(TableComponent::HorizontalLines).remove_style(TableComponent::MiddleIntersections);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt()
}

/// A share as percent.
pub fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}
