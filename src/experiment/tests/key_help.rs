//! The help lists the keys that the file's reader takes.

use std::collections::BTreeSet;

use super::super::key_help::{self, KEY_WIDTH, key_tables};
use super::*;

const UNKNOWN: &str = "no_such_key";

/// The experiment with a line in one of its tables, which is added if it is missing.
fn with_line(table: &str, line: &str) -> String {
    let header = format!("[{table}]\n");
    match table {
        "" => format!("{line}\n{TEXT}"),
        _ if TEXT.contains(&header) => TEXT.replacen(&header, &format!("{header}{line}\n"), 1),
        _ => format!("{TEXT}\n{header}{line}\n"),
    }
}

#[test]
fn every_key_is_listed_and_no_other() {
    let folder = ExperimentFolder::new();
    let mut seen = BTreeSet::new();
    for table_help in key_tables() {
        let listed: BTreeSet<&str> = table_help.keys.iter().map(|help| help.key.as_str()).collect();
        for table in &table_help.tables {
            let error = folder.experiment(&with_line(table, &format!("{UNKNOWN} = 1"))).expect_err(table).to_string();
            let expected = error.split_once("expected").unwrap_or_else(|| panic!("[{table}]: {error}")).1;
            let taken: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
            assert_eq!(listed, taken, "[{table}]");
            seen.insert(table.clone());
        }
    }
    let tables = ["", "train", "train.recipe", "dataset.eval", "dataset.pqr", "[runs]", "match", "measure.speed"];
    assert!(tables.iter().all(|table| seen.contains(*table)), "{seen:?}");
}

#[test]
fn the_text_fits_and_has_defaults_and_values() {
    let text = key_help::text();
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.contains("()"), "{line}");
    }
    for key in key_tables().iter().flat_map(|table| &table.keys) {
        assert!(key.key.len() < KEY_WIDTH, "{}", key.key);
    }
    assert!(text.contains("\n    l1                  Accumulator width per perspective [required]"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "(cpu, cuda, auto)",
        "evaluates them again and again",
        "[20000]",
        "Izmailov et al. 2018",
        "widths of its layers: a table, see [train.design]",
        "[[runs]]: ",
        "[dataset.eval], [dataset.pqr], [runs.dataset]: ",
    ] {
        assert!(words.contains(expected), "{expected}: {text}");
    }
}
