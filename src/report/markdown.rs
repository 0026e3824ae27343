//! The report as Markdown, with links to the plots beside it.

use std::fmt::Write;

use super::comparison_table::{INTERVALS, Part, Table, meanings};
use super::figures;
use super::summary::Summary;
use super::text::provenance;

/// One table a method, its columns explained, and the plots by their file names.
#[must_use]
pub fn markdown(summary: &Summary) -> String {
    let mut out = format!("# {}\n\n", escape(&summary.study.name));
    if !summary.study.about.is_empty() {
        out.push_str(&format!("{}\n\n", escape(&summary.study.about)));
    }
    let tables: Vec<_> = summary.methods.iter().map(Table::of).collect();
    for (method, table) in summary.methods.iter().zip(&tables) {
        out.push_str(&format!("## {}\n\n", table.title));
        for part in Part::ALL {
            out.push_str(&grid(table, part));
        }
        for figure in figures::of(summary).iter().filter(|figure| figure.method == Some(method.method)) {
            let _ = writeln!(out, "![{}](plots/{}.svg)\n", figure.title, figure.name);
        }
    }
    for figure in figures::of(summary).iter().filter(|figure| figure.method.is_none()) {
        let _ = writeln!(out, "![{}](plots/{}.svg)\n", figure.title, figure.name);
    }
    out.push_str("## Columns\n\n");
    for (heading, meaning) in meanings(&tables) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "- **{heading}**: {}", escape(meaning));
    }
    let _ = writeln!(out, "\n{INTERVALS}\n\n{}", escape(&provenance(summary)));
    out
}

/// One part of a table with its title; empty when it has no columns.
fn grid(table: &Table, part: Part) -> String {
    let columns = table.part(part).count();
    if columns == 0 {
        return String::new();
    }
    let mut out = format!("### {}\n\n| set |", part.title());
    for column in table.part(part) {
        let _ = write!(out, " {} |", column.heading);
    }
    out.push_str("\n|---|");
    out.push_str(&"---:|".repeat(columns));
    out.push('\n');
    for (index, set) in table.sets.iter().enumerate() {
        let _ = write!(out, "| {} |", escape(set));
        for column in table.part(part) {
            let _ = write!(out, " {} |", column.cells[index].text);
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

/// Keeps a text from being read as markup.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' => out.push(' '),
            '|' | '*' | '_' | '<' | '>' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}
