//! Checks of an experiment file that need neither the data nor the feature sets. The training settings check themselves
//! ([`TrainSettings::validate`](crate::train::TrainSettings::validate)).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::{ComparisonRow, Dataset};
use crate::data::Method;
use crate::record::Published;
use crate::settings::SettingError;
use crate::units::Seed;

/// A mistake in the file, at a byte of its text.
pub(super) struct Mistake {
    pub(super) byte: usize,
    pub(super) message: String,
}

/// Trained networks, by set, method and seed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct NetworkChoice {
    /// Names or labels of sets [default: all]
    pub sets: Option<Vec<String>>,
    /// Only networks of these methods [default: all]
    pub methods: Option<Vec<Method>>,
    /// Only networks of these training seeds [default: all]
    pub seeds: Option<Vec<Seed>>,
}

impl NetworkChoice {
    pub(super) fn covers_set(&self, row: &ComparisonRow) -> bool {
        self.sets.as_ref().is_none_or(|sets| sets.iter().any(|name| row.is_called(name)))
    }

    pub(super) fn covers_method(&self, method: Method) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    pub(super) fn covers_seed(&self, seed: Seed) -> bool {
        self.seeds.as_ref().is_none_or(|seeds| seeds.contains(&seed))
    }

    /// Checks that every set, method and seed belongs to a run.
    pub(super) fn check(&self, rows: &[ComparisonRow], all_seeds: &[Seed]) -> Result<(), SettingError> {
        check_sets(self.sets.as_deref(), rows)?;
        for method in self.methods.iter().flatten() {
            if !rows.iter().any(|row| row.method == *method) {
                return Err(SettingError::new("methods", format!("no run has the method {}", method.name())));
            }
        }
        check_named_seeds(self.seeds.as_deref().unwrap_or_default(), all_seeds)
    }
}

/// Checks that every seed that a table names belongs to a run.
pub(super) fn check_named_seeds(seeds: &[Seed], all_seeds: &[Seed]) -> Result<(), SettingError> {
    match seeds.iter().find(|seed| !all_seeds.contains(seed)) {
        Some(seed) => Err(SettingError::new("seeds", format!("no run has the seed {seed}"))),
        None => Ok(()),
    }
}

/// Checks that every set that a measure names belongs to a run.
pub(super) fn check_sets(sets: Option<&[String]>, rows: &[ComparisonRow]) -> Result<(), SettingError> {
    for set in sets.into_iter().flatten() {
        if !rows.iter().any(|row| row.is_called(set)) {
            let message = format!("no run uses the set '{set}'; the experiment has {}", labels(rows));
            return Err(SettingError::new("sets", message));
        }
    }
    Ok(())
}

/// The labels of all rows, for a message.
pub(super) fn labels(rows: &[ComparisonRow]) -> String {
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    labels.join(", ")
}

/// The name becomes the name of a folder.
pub(super) fn check_name(name: &str) -> Result<(), SettingError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_allowed) {
        let message =
            format!("the name '{name}' must consist of letters, digits, '-' and '_', because it names a folder");
        return Err(SettingError::new("name", message));
    }
    Ok(())
}

pub(super) fn check_data(files: &[String]) -> Result<(), SettingError> {
    match files {
        [] => Err(SettingError::new("data", "data lists no file")),
        _ => Ok(()),
    }
}

pub(super) fn check_seeds(seeds: &[Seed]) -> Result<(), SettingError> {
    if seeds.is_empty() {
        return Err(SettingError::new("seeds", "no seeds; write for example seeds = [1, 2, 3]"));
    }
    for (index, seed) in seeds.iter().enumerate() {
        if seeds[..index].contains(seed) {
            return Err(SettingError::new("seeds", format!("the seed {seed} appears twice")));
        }
    }
    Ok(())
}

pub(super) fn check_dataset(dataset: &Dataset) -> Result<(), SettingError> {
    for (method, keys) in [(Method::Eval, &dataset.eval), (Method::Pqr, &dataset.pqr)] {
        let in_file =
            |SettingError { key, message }| SettingError::new(format!("dataset.{}.{key}", method.name()), message);
        keys.check(method).map_err(in_file)?;
    }
    Ok(())
}

/// Checks that published results are finite and belong to rows.
pub(super) fn check_published(published: &Published, rows: &[ComparisonRow]) -> Result<(), SettingError> {
    for (table, numbers) in [("loss", &published.loss), ("elo", &published.elo)] {
        for (set, [value, uncertainty]) in numbers {
            let problem = |message: String| Err(SettingError::new(format!("{table}.{set}"), message));
            if !rows.iter().any(|row| row.is_called(set)) {
                return problem(format!("[published] has results of '{set}', which is none of the experiment's sets"));
            }
            if !value.is_finite() || !uncertainty.is_finite() || *uncertainty < 0.0 {
                return problem(format!(
                    "[published]: '{set}' needs a number and its uncertainty, as in [0.0031, 0.00001]"
                ));
            }
            if table == "loss" && *value <= 0.0 {
                return problem(format!("[published]: the loss of '{set}' must be above 0"));
            }
        }
    }
    Ok(())
}

pub(super) fn check_games(games: Option<u64>) -> Result<(), SettingError> {
    match games {
        Some(0) => Err(SettingError::new("games", "games must be at least 1 (leave it out for all)")),
        _ => Ok(()),
    }
}
