//! The report for a terminal.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table as Grid};

use super::comparison_table::{Column, INTERVALS, Part, Table, meanings};
use super::numbers;
use super::summary::Summary;

/// The width of a report in a file.
pub const WIDTH: usize = 110;

/// All tables with their columns' meanings, as plain text at most `width` characters wide: a table's columns that do not
/// fit stand below the others. (A set's name and one column always stand side by side.)
#[must_use]
pub fn text(summary: &Summary, width: usize) -> String {
    let mut out = String::new();
    let study = &summary.study;
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    wrapped(format!("{}: {}", study.name, study.about).trim_end_matches([':', ' ']), 0, width)
        .iter()
        .for_each(|l| line(l));
    let tables: Vec<_> = summary.methods.iter().map(Table::of).collect();
    for table in &tables {
        line(&format!("\n{}", table.title));
        for part in Part::ALL {
            let grids = grids(table, part, width.saturating_sub(INDENT));
            if !grids.is_empty() {
                line(&format!("\n  {}", part.title()));
            }
            for row in grids.iter().flat_map(Grid::lines) {
                line(&format!("  {}", row.trim_end()));
            }
        }
    }
    line("");
    for (heading, meaning) in meanings(&tables) {
        wrapped(&format!("{heading}: {meaning}"), INDENT, width).iter().for_each(|text| line(text));
    }
    line("");
    wrapped(INTERVALS, 0, width).iter().for_each(|text| line(text));
    wrapped(&provenance(summary), 0, width).iter().for_each(|text| line(text));
    out
}

/// Blanks before a table.
const INDENT: usize = 2;

/// A text in lines of at most `width` characters (longer words stand alone), each after `indent` blanks, the second and
/// later after twice as many.
fn wrapped(text: &str, indent: usize, width: usize) -> Vec<String> {
    let mut lines = vec![" ".repeat(indent)];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let begun = !lines[last].trim_start().is_empty();
        if begun && lines[last].chars().count() + 1 + word.chars().count() > width {
            lines.push(" ".repeat(2 * indent) + word);
            continue;
        }
        if begun {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}

/// Rules above, below and under the heading; nothing between the rows (comfy-table's order of components).
const RULED: &str = "  ── ──      ──    ";

/// One part of a table as grids of at most `width` characters, one below the other.
fn grids(table: &Table, part: Part, width: usize) -> Vec<Grid> {
    let mut grids: Vec<(Vec<&Column>, Grid)> = Vec::new();
    for column in table.part(part) {
        if let Some((columns, last)) = grids.last_mut() {
            columns.push(column);
            let wider = grid(table, columns);
            if width_of(&wider) <= width {
                *last = wider;
                continue;
            }
            columns.pop();
        }
        grids.push((vec![column], grid(table, &[column])));
    }
    grids.into_iter().map(|(_, grid)| grid).collect()
}

fn width_of(grid: &Grid) -> usize {
    grid.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or_default()
}

fn grid(table: &Table, columns: &[&Column]) -> Grid {
    let mut grid = Grid::new();
    grid.load_preset(RULED).set_content_arrangement(ContentArrangement::Disabled);
    let right = |text: &str| Cell::new(text).set_alignment(CellAlignment::Right);
    let heads = columns.iter().map(|column| right(column.heading));
    grid.set_header(std::iter::once(Cell::new("set")).chain(heads));
    for (index, set) in table.sets.iter().enumerate() {
        let cells = columns.iter().map(|column| right(&column.cells[index].text));
        grid.add_row(std::iter::once(Cell::new(set)).chain(cells));
    }
    grid
}

/// What is known, with what stands before it.
fn told(before: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{before}{text}") }
}

/// Machine, time and data, in one or two sentences.
pub(super) fn provenance(summary: &Summary) -> String {
    let environment = &summary.environment;
    let mut text = format!(
        "Games: {}. Recorded {} with fsbench {}{} on {} ({} cores{}, {} training threads), {} in all",
        summary.study.data,
        environment.recorded,
        environment.fsbench,
        told(" of commit ", &environment.commit),
        environment.cpu,
        environment.cores,
        told(", ", &environment.back_end),
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
