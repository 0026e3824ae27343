//! The report as Markdown, with links to the plots' files.

use std::fmt::Write;

use super::figures::Figure;
use super::learning_loop;
use super::plain_table::PlainTable;
use super::search;
use super::summary::Summary;
use super::tables::{ComparisonTable, INTERVALS, Section, meanings};
use super::text::provenance;

/// Per method the verdict, links to the plots that decide, tables, links to the other plots, and the pairs of sets;
/// then the meaning of the columns and the provenance.
#[must_use]
pub fn markdown(summary: &Summary) -> String {
    let mut out = format!("# {}\n\n", escape(&summary.study.name));
    if !summary.study.about.is_empty() {
        out.push_str(&format!("{}\n\n", escape(&summary.study.about)));
    }
    let figures = Figure::all(summary);
    let tables: Vec<_> = summary.methods.iter().map(ComparisonTable::of).collect();
    for (index, (method, table)) in summary.methods.iter().zip(&tables).enumerate() {
        out.push_str(&format!("## {}\n\n", escape(&table.title)));
        method.verdict.iter().for_each(|sentence| out += &format!("- {}\n", escape(sentence)));
        if !method.verdict.is_empty() {
            out.push('\n');
        }
        let links = |is_wanted: fn(&Figure) -> bool| {
            let own = figures.iter().filter(|figure| figure.comparison == Some(index) && is_wanted(figure));
            own.map(link).collect::<String>()
        };
        out += &links(|figure| figure.is_decisive);
        for section in Section::ALL {
            out.push_str(&section_markdown(table, section));
        }
        out += &links(|figure| !figure.is_decisive);
        PlainTable::of(method).iter().for_each(|table| out += &table.markdown(escape));
        for note in method.notes() {
            out += &format!("{}\n\n", escape(&note));
        }
    }
    if let Some(found) = &summary.search {
        out.push_str("## Search\n\n");
        search::sentences(found).iter().for_each(|sentence| out += &format!("{}\n\n", escape(sentence)));
        search::tables(found, usize::MAX).iter().for_each(|table| out += &table.markdown(escape));
    }
    out += &loop_markdown(summary);
    figures.iter().filter(|figure| figure.comparison.is_none()).for_each(|figure| out += &link(figure));
    if !tables.is_empty() {
        out.push_str("## Columns\n\n");
        for (heading, meaning) in meanings(&tables) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "- **{heading}**: {}", escape(meaning));
        }
        let _ = writeln!(out, "\n{INTERVALS}\n");
    }
    summary.without_pairs().iter().for_each(|why| out += &format!("{}\n\n", escape(why)));
    if let Some(conditions) = &summary.match_conditions {
        let _ = writeln!(out, "{}\n", escape(conditions));
    }
    let _ = writeln!(out, "{}", escape(&provenance(summary)));
    out
}

/// A page of a loop's course alone.
pub(super) fn loop_page(summary: &Summary) -> String {
    let figures = Figure::all(summary);
    let links: String = figures.iter().filter(|figure| figure.is_of_loop()).map(link).collect();
    format!("# {}\n\n{}{links}{}\n", escape(&summary.study.name), loop_markdown(summary), escape(&provenance(summary)))
}

/// The course of a loop; empty for other experiments.
fn loop_markdown(summary: &Summary) -> String {
    let Some(found) = &summary.learning_loop else { return String::new() };
    let sentences: String =
        learning_loop::sentences(found).iter().map(|sentence| format!("{}\n\n", escape(sentence))).collect();
    format!("## Loop\n\n{sentences}{}", learning_loop::table(found).markdown(escape))
}

fn link(figure: &Figure) -> String {
    format!("![{}](plots/{}.svg)\n\n", figure.title, figure.name)
}

/// One section of a table with its title; empty if it has no columns.
fn section_markdown(table: &ComparisonTable, section: Section) -> String {
    if table.section(section).next().is_none() {
        return String::new();
    }
    let mut out = format!("### {}\n\n| set |", section.title());
    for column in table.section(section) {
        let _ = write!(out, " {} |", column.heading);
    }
    out.push_str("\n|---|");
    table.section(section).for_each(|column| out += if column.is_prose { "---|" } else { "---:|" });
    out.push('\n');
    for (index, set) in table.sets.iter().enumerate() {
        let _ = write!(out, "| {} |", escape(set));
        for column in table.section(section) {
            let _ = write!(out, " {} |", escape(&column.cells[index].text));
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

/// Escapes a text so that Markdown shows it as it is.
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
