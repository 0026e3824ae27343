//! The listed keys and defaults are those of the file's reader.

use std::collections::BTreeSet;

use super::super::key_help::{self, KeyHelp, key_tables};
use super::*;
use crate::measure::SpeedOptions;
use crate::pipeline::BuildOptions;
use crate::train::{EvalLoss, PqrLoss};

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
    for table_help in key_tables() {
        let table = table_help.table;
        let error = folder.experiment(&with_line(table, &format!("{UNKNOWN} = 1"))).expect_err(table).to_string();
        let expected = error.split_once("expected").unwrap_or_else(|| panic!("[{table}]: {error}")).1;
        let taken: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
        let listed = table_help.keys.iter().map(|help| help.key.as_str());
        // Scales are taken out before the rest is read.
        let listed: BTreeSet<&str> = listed.filter(|key| *key != "scale").collect();
        assert_eq!(listed, taken, "[{table}]");
    }
}

/// Defaults listed as TOML are the values of missing keys.
#[test]
fn defaults_are_as_listed() {
    let check = |table: &str, actual: toml::Table| {
        let table_help = key_tables().into_iter().find(|table_help| table_help.table == table).expect(table);
        let listed = table_help.keys.iter().filter_map(|KeyHelp { key, default, .. }| {
            let text = default.split(' ').next().unwrap_or_default();
            let value = toml::from_str::<toml::Table>(&format!("v = {text}")).ok()?.remove("v")?;
            Some((key.as_str(), value))
        });
        let listed: Vec<_> = listed.collect();
        assert!(!listed.is_empty(), "[{table}] lists no default");
        for (key, value) in listed {
            let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|number| number as f64));
            let found = actual.get(key).unwrap_or_else(|| panic!("[{table}] {key}"));
            assert!(
                *found == value || number(found) == number(&value),
                "[{table}] {key}: {found} is listed as {value}"
            );
        }
    };
    let table = |value: serde_json::Value| toml::Table::try_from(value).expect("a table");
    let mut design = table(serde_json::json!(ShapeOptions::default()));
    let ShapeOptions { skip_difference, concatenated, narrow, .. } = ShapeOptions::default();
    design.entry("skip_difference").or_insert(skip_difference.into());
    design.entry("concatenated").or_insert(concatenated.into());
    design.entry("narrow").or_insert(i64::from(narrow).into());
    check("train.design", design);
    let mut recipe = table(serde_json::json!(Optimisation::default()));
    recipe.entry("sparsity").or_insert(toml::Value::Float(Optimisation::default().sparsity));
    check("train.recipe", recipe);
    check("train.eval_loss", table(serde_json::json!(EvalLoss::default())));
    check("train.pqr_loss", table(serde_json::json!(PqrLoss::default())));
    let BuildOptions { min_ply, min_moves, filter, seed, .. } = BuildOptions::new(Method::Eval);
    let dataset = serde_json::json!({ "min_ply": min_ply, "min_moves": min_moves, "filter": filter, "seed": seed });
    check("dataset.eval", table(dataset));
    let SpeedOptions { repetitions, duration, positions, .. } = SpeedOptions::default();
    let speed =
        serde_json::json!({ "repetitions": repetitions, "seconds": duration.as_secs_f64(), "positions": positions });
    check("measure.speed", table(speed));
    let MatchMeasure { adjudication, hash, seed, .. } = MatchMeasure::default();
    let pairs = MatchMeasure::default().pairs();
    let matches = serde_json::json!({ "pairs": pairs, "adjudication": adjudication, "hash": hash, "seed": seed });
    check("match", table(matches));
}

#[test]
fn the_text_fits_and_names_no_empty_list_of_values() {
    let text = key_help::text();
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.contains("()"), "{line}");
    }
    assert!(text.contains("\n    l1                Accumulator width per perspective [required"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("(auto, cpu, cuda)"), "{text}");
}
