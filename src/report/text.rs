//! The report as plain text, for the terminal and `report.txt`.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use super::learning_loop;
use super::numbers;
use super::plain_table::PlainTable;
use super::search;
use super::summary::Summary;
use super::tables::{Column, ComparisonTable, INTERVALS, Section, meanings};
use crate::text::wrapped;

/// The width of `report.txt`, in characters.
pub const WIDTH: usize = 110;

/// All tables and the meaning of their columns, at most `width` characters wide. Columns that do not fit continue in a
/// further table below; each table has at least one column, even if that is wider.
#[must_use]
pub fn text(summary: &Summary, width: usize) -> String {
    let mut out = String::new();
    let study = &summary.study;
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    wrapped(format!("{}: {}", study.name, study.about).trim_end_matches([':', ' ']), 0, 0, width)
        .iter()
        .for_each(|l| line(l));
    let tables: Vec<_> = summary.methods.iter().map(ComparisonTable::of).collect();
    for (method, table) in summary.methods.iter().zip(&tables) {
        line(&format!("\n{}", table.title));
        for sentence in &method.verdict {
            wrapped(&format!("- {sentence}"), INDENT, 2 * INDENT, width).iter().for_each(|text| line(text));
        }
        for section in Section::ALL {
            let tables = fitting_tables(table, section, width.saturating_sub(INDENT));
            if !tables.is_empty() {
                line(&format!("\n  {}", section.title()));
            }
            for row in tables.iter().flat_map(Table::lines) {
                line(&format!("  {}", row.trim_end()));
            }
        }
        for table in PlainTable::of(method) {
            plain_lines(&table, width).iter().for_each(|row| line(row));
        }
        for note in method.notes() {
            wrapped(&note, INDENT, INDENT, width).iter().for_each(|text| line(text));
        }
    }
    if let Some(found) = &summary.search {
        line("\nSearch");
        for sentence in search::sentences(found) {
            wrapped(&sentence, INDENT, INDENT, width).iter().for_each(|text| line(text));
        }
        for table in search::tables(found, LONGEST_CHANGE) {
            plain_lines(&table, width).iter().for_each(|row| line(row));
        }
    }
    if let Some(found) = &summary.learning_loop {
        line("\nLoop");
        for sentence in learning_loop::sentences(found) {
            wrapped(&sentence, INDENT, INDENT, width).iter().for_each(|text| line(text));
        }
        plain_lines(&learning_loop::table(found), width).iter().for_each(|row| line(row));
    }
    line("");
    if !tables.is_empty() {
        for (heading, meaning) in meanings(&tables) {
            wrapped(&format!("{heading}: {meaning}"), INDENT, 2 * INDENT, width).iter().for_each(|text| line(text));
        }
        line("");
        wrapped(INTERVALS, 0, 0, width).iter().for_each(|text| line(text));
    }
    summary.without_pairs().iter().flat_map(|why| wrapped(why, 0, 0, width)).for_each(|text| line(&text));
    if let Some(conditions) = &summary.match_conditions {
        wrapped(conditions, 0, 0, width).iter().for_each(|text| line(text));
    }
    wrapped(&provenance(summary), 0, 0, width).iter().for_each(|text| line(text));
    out
}

/// A table below its title.
fn plain_lines(table: &PlainTable, width: usize) -> Vec<String> {
    let mut lines = vec![format!("\n  {}", table.title)];
    for row in table.fitting(RULED, width.saturating_sub(INDENT)).iter().flat_map(Table::lines) {
        lines.push(format!("  {}", row.trim_end()));
    }
    lines
}

/// Longest name of a search's change in a table.
const LONGEST_CHANGE: usize = 40;

/// Spaces before a table.
const INDENT: usize = 2;

/// Rules above and below the table and under its heading, no lines between rows (a preset of comfy-table).
const RULED: &str = "  ── ──      ──    ";

/// One section as one or more tables of at most `width` characters.
fn fitting_tables(comparison: &ComparisonTable, section: Section, width: usize) -> Vec<Table> {
    let mut tables: Vec<(Vec<&Column>, Table)> = Vec::new();
    for column in comparison.section(section) {
        if let Some((columns, last)) = tables.last_mut() {
            columns.push(column);
            let wider = terminal_table(comparison, columns);
            if width_of(&wider) <= width {
                *last = wider;
                continue;
            }
            columns.pop();
        }
        tables.push((vec![column], terminal_table(comparison, &[column])));
    }
    tables.into_iter().map(|(_, table)| table).collect()
}

pub(super) fn width_of(table: &Table) -> usize {
    table.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or_default()
}

fn terminal_table(comparison: &ComparisonTable, columns: &[&Column]) -> Table {
    let mut table = Table::new();
    table.load_preset(RULED).set_content_arrangement(ContentArrangement::Disabled);
    let aligned = |column: &Column, text: &str| {
        let alignment = if column.is_prose { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(text).set_alignment(alignment)
    };
    let headings = columns.iter().map(|column| aligned(column, column.heading));
    table.set_header(std::iter::once(Cell::new("set")).chain(headings));
    for (index, set) in comparison.sets.iter().enumerate() {
        let cells = columns.iter().map(|column| aligned(column, &column.cells[index].text));
        table.add_row(std::iter::once(Cell::new(set)).chain(cells));
    }
    table
}

/// `text` after `prefix`; empty if `text` is.
fn prefixed(prefix: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{prefix}{text}") }
}

/// Data, versions, machine and time of the experiment, in a few sentences.
pub(super) fn provenance(summary: &Summary) -> String {
    let environment = &summary.environment;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut text = format!(
        "Data: {}. Recorded {} with fsbench {}{} on {} ({} core{}{}, {} training thread{}). {} {}",
        summary.study.data,
        environment.recorded,
        environment.fsbench,
        prefixed(", commit ", &environment.commit),
        environment.cpu,
        environment.cores,
        plural(environment.cores),
        prefixed(", ", &environment.back_end),
        environment.threads,
        plural(environment.threads),
        // A search counts all its steps itself.
        if summary.search.is_some() { "Time of the steps shown:" } else { "Total time" },
        numbers::duration(environment.seconds.total),
    );
    let seconds = environment.seconds;
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        " (data {}, training {}, measurements {}",
        numbers::duration(seconds.data),
        numbers::duration(seconds.training),
        numbers::duration(seconds.measures)
    );
    if seconds.matches > 0.0 {
        let _ = write!(text, ", matches {}", numbers::duration(seconds.matches));
    }
    text.push_str(").");
    if let Some(machine) = &environment.timed_on {
        let _ = write!(text, " Times were measured on {machine}.");
    }
    if summary.is_partial() && summary.learning_loop.is_none() {
        text.push_str(" The experiment is not finished: see the column `seeds`.");
    }
    text
}
