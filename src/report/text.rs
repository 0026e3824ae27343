//! The report for a terminal.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table as Grid};

use super::numbers;
use super::summary::Summary;
use super::table::{INTERVALS, Part, Table, meanings};

/// All tables with their columns' meanings, as plain text of at most about 110 columns.
#[must_use]
pub fn text(summary: &Summary) -> String {
    let mut out = String::new();
    let study = &summary.study;
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line(format!("{}: {}", study.name, study.about).trim_end_matches([':', ' ']));
    let tables: Vec<_> = summary.methods.iter().map(Table::of).collect();
    for table in &tables {
        line(&format!("\n{}", table.title));
        for part in Part::ALL {
            let Some(grid) = grid(table, part) else { continue };
            line(&format!("\n  {}", part.title()));
            for row in grid.lines() {
                line(&format!("  {}", row.trim_end()));
            }
        }
    }
    line("");
    for (heading, meaning) in meanings(&tables) {
        line(&format!("  {heading}: {meaning}"));
    }
    line(&format!("\n{INTERVALS}"));
    line(&provenance(summary));
    out
}

/// Rules above, below and under the heading; nothing between the rows (comfy-table's order of components).
const RULED: &str = "  ── ──      ──    ";

/// One part of a table; none when it has no columns.
fn grid(table: &Table, part: Part) -> Option<Grid> {
    let columns: Vec<_> = table.part(part).collect();
    if columns.is_empty() {
        return None;
    }
    let mut grid = Grid::new();
    grid.load_preset(RULED).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
    let heads = columns.iter().map(|column| right(column.heading));
    grid.set_header(std::iter::once(Cell::new("set")).chain(heads));
    for (index, set) in table.sets.iter().enumerate() {
        let cells = columns.iter().map(|column| right(&column.cells[index].text));
        grid.add_row(std::iter::once(Cell::new(set)).chain(cells));
    }
    Some(grid)
}

/// Machine, time and data, in one or two sentences.
pub(super) fn provenance(summary: &Summary) -> String {
    let environment = &summary.environment;
    let mut text = format!(
        "Games: {}. Recorded {} with fsbench {} on {} ({} cores, {} training threads), {} in all",
        summary.study.data,
        environment.recorded,
        environment.fsbench,
        environment.cpu,
        environment.cores,
        environment.threads,
        numbers::duration(environment.seconds.total),
    );
    let seconds = environment.seconds;
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        " (data {}, training {}, measures {}).",
        numbers::duration(seconds.data),
        numbers::duration(seconds.training),
        numbers::duration(seconds.measures)
    );
    if summary.is_partial() {
        text.push_str(" Not finished: see the column of seeds.");
    }
    text
}
