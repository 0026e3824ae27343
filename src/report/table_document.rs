//! A report's tables as one document, each column with its meaning. `COLUMNS.md` beside this file says what columns mean.

use polars::prelude::{Column, DataType, PolarsResult};
use schemars::JsonSchema;
use serde::Serialize;

use super::DataFrames;

/// What the columns of all tables mean: the topic `columns` of `fsbench help`.
pub const COLUMNS: &str = include_str!("COLUMNS.md");

/// The tables of a report.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TableDocument {
    tables: Vec<TableColumns>,
}

/// A table, column by column.
#[derive(Debug, Serialize, JsonSchema)]
struct TableColumns {
    /// As in the file `tables/NAME.csv`.
    name: &'static str,
    columns: Vec<ColumnDocument>,
}

/// A column.
#[derive(Debug, Serialize, JsonSchema)]
struct ColumnDocument {
    /// The column's name.
    name: String,
    /// Its meaning.
    about: String,
    values: ColumnValues,
}

/// The values of a column, a row each.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum ColumnValues {
    Text(Vec<String>),
    /// Null where it was not measured.
    Counts(Vec<Option<u64>>),
    /// Null where it was not measured.
    Numbers(Vec<Option<f64>>),
}

impl TableDocument {
    /// # Errors
    /// When polars cannot read a column.
    pub fn of(frames: &DataFrames) -> PolarsResult<TableDocument> {
        let mut tables = Vec::new();
        for (name, frame) in frames.named() {
            let mut columns = Vec::new();
            for column in frame.columns() {
                let about = about(name, column.name()).unwrap_or_default();
                let values = ColumnValues::of(column)?;
                columns.push(ColumnDocument { name: column.name().to_string(), about, values });
            }
            tables.push(TableColumns { name, columns });
        }
        Ok(TableDocument { tables })
    }
}

impl ColumnValues {
    fn of(column: &Column) -> PolarsResult<ColumnValues> {
        Ok(match column.dtype() {
            DataType::UInt64 => ColumnValues::Counts(column.u64()?.iter().collect()),
            DataType::Float64 => ColumnValues::Numbers(column.f64()?.iter().collect()),
            _ => {
                let texts = column.str()?.iter();
                ColumnValues::Text(texts.map(|text| text.unwrap_or_default().to_owned()).collect())
            }
        })
    }
}

/// The page's part on a table.
fn section(table: &str) -> Option<&'static str> {
    COLUMNS.split("\n## ").find_map(|section| section.strip_prefix(table)?.strip_prefix('\n'))
}

/// The meaning of a table's column, by [`COLUMNS`].
fn about(table: &str, column: &str) -> Option<String> {
    let section = section(table)?;
    let meaning_of = |name: &str| {
        let begin = format!("| {name} | ");
        section.lines().find_map(|line| line.strip_prefix(&begin)?.strip_suffix(" |"))
    };
    if let Some(meaning) = meaning_of(column) {
        return Some(meaning.to_owned());
    }
    let beside = [
        ("_interval", "half of the 95% interval of"),
        ("_count", "number of seeds of"),
        ("_low", "lower bound of the 95% interval of"),
        ("_high", "upper bound of the 95% interval of"),
    ];
    beside.into_iter().find_map(|(ending, words)| {
        let name = column.strip_suffix(ending)?;
        Some(format!("{words} {name}: {}", meaning_of(name)?))
    })
}

/// The names that the page describes in a table.
#[cfg(test)]
fn described(table: &str) -> Vec<&'static str> {
    let rows = section(table).expect("a section").lines().filter_map(|line| line.strip_prefix("| "));
    rows.filter_map(|row| Some(row.split_once(" | ")?.0)).filter(|name| *name != "column").collect()
}

/// Every column of these tables has a meaning, and the page names no other but those of the user's own figures.
#[cfg(test)]
pub(super) fn check_meanings(frames: &DataFrames) {
    for (table, frame) in frames.named() {
        let names: Vec<&str> = frame.columns().iter().map(|column| column.name().as_str()).collect();
        for name in &names {
            assert!(about(table, name).is_some_and(|about| !about.is_empty()), "{table} {name}");
        }
        let is_absent = |name: &&str| !names.contains(name) && !name.contains("own_") && !name.contains("by_figures");
        let absent: Vec<&str> = described(table).into_iter().filter(is_absent).collect();
        assert!(absent.is_empty(), "{table} has no {absent:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Summary, test_records};
    use super::*;
    use crate::json;

    #[test]
    fn every_column_has_a_meaning() {
        for results in [test_records::results(), test_records::results_with_matches()] {
            let summary = Summary::of(&results);
            let frames = DataFrames::of(&summary, &results).expect("frames");
            check_meanings(&frames);
            let document = TableDocument::of(&frames).expect("columns");
            for (table, (_, frame)) in document.tables.iter().zip(frames.named()) {
                for column in &table.columns {
                    let count = match &column.values {
                        ColumnValues::Text(values) => values.len(),
                        ColumnValues::Counts(values) => values.len(),
                        ColumnValues::Numbers(values) => values.len(),
                    };
                    assert_eq!(count, frame.height(), "{} {}", table.name, column.name);
                }
            }
            let text = json::to_text(&document).expect("JSON");
            assert!(text.contains(r#"{"name":"seed","about":"the training's seed","values":["#), "{text}");
        }
    }
}
