//! A results folder: small JSON files with everything that a report needs. Checkpoints and data sets are elsewhere.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Environment, EqualSpeedRecord, LoopRecord, MatchResult, Method, NetworkRecords, OwnFigures, RecordFileError,
    RunKey, RunRecord, Scaling, ScreenRecord, ScreenedCosts, SearchRecord, SpeedRecord, UpdatesRecord,
    ValidationRecord, read_json, write_atomically, write_json,
};
use crate::units::{Seed, SortedMap, sort_by};

/// The planned experiment: enough to say which part of it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Study {
    /// The experiment's name.
    pub name: String,
    /// What the experiment says of itself.
    pub about: String,
    /// The data files, as the experiment names them.
    pub data: String,
    /// Rows of the comparison, in the experiment's order.
    pub rows: Vec<PlannedRow>,
    /// The training settings shared by all runs.
    pub train: serde_json::Value,
    /// Published measurements of the same sets, to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// The shares of the training games on which every row was trained, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
}

/// Results that others measured for the same sets; the report compares them with the experiment's
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Who measured, and how
    pub source: String,
    /// Validation loss by set: set = [mean, standard deviation of its runs]
    #[serde(default)]
    pub loss: SortedMap<String, [f64; 2]>,
    /// Elo by set: set = [Elo, half of the 95% interval]
    #[serde(default)]
    pub elo: SortedMap<String, [f64; 2]>,
}

/// A row of the comparison: one feature set trained by one method, once per seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedRow {
    /// The row's label; without a label, the set as written.
    pub set: String,
    pub method: Method,
    /// Seeds of its trainings.
    pub seeds: Vec<Seed>,
    /// The set as written, if the label differs from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The facts of the set's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The swept settings of the row, as in `l1 128`, which end its label; absent without a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The training settings that the row overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<serde_json::Value>,
    /// The user's own figures of its cost.
    #[serde(default, skip_serializing_if = "OwnFigures::is_empty")]
    pub own: OwnFigures,
    /// The label without the swept settings, or the settings of equal speed, if it differs from `set`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `None` but for a row at equal speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_speed: Option<RowAtEqualSpeed>,
}

/// What a row at equal speed repeats, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RowAtEqualSpeed {
    /// The label of the row at its own width.
    pub repeats: String,
    /// The width of equal speed.
    pub l1: usize,
}

impl PlannedRow {
    /// The key in `train` of samples that differ from the method's others.
    pub const DATASET: &str = "dataset";

    /// Whether two rows of a method have the same loss: of the same samples, by the same function.
    #[must_use]
    pub fn has_loss_of(&self, other: &PlannedRow) -> bool {
        let own = |row: &PlannedRow, key: &str| row.train.as_ref().and_then(|train| train.get(key)).cloned();
        [Self::DATASET, "eval_loss", "pqr_loss"].iter().all(|key| own(self, key) == own(other, key))
    }

    /// The label without the swept settings.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.set)
    }
}

/// A measure of a feature set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetResult<T> {
    /// The label of the set's row.
    pub set: String,
    pub record: T,
}

/// A measure of a trained network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetResult<T> {
    #[serde(flatten)]
    pub key: RunKey,
    pub record: T,
}

/// All records of an experiment, which may be incomplete.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    pub study: Study,
    pub environment: Environment,
    pub runs: Vec<RunRecord>,
    pub updates: Vec<SetResult<UpdatesRecord>>,
    /// Each with its losses by game, in a file of its own.
    pub validation: Vec<NetResult<ValidationRecord>>,
    /// Other measures of networks.
    pub networks: NetworkRecords,
    pub speed: Vec<NetResult<SpeedRecord>>,
    /// Of the first seed's networks: widths of equal speed, and the speeds of the networks trained at them.
    pub equal_speed: Vec<NetResult<EqualSpeedRecord>>,
    pub matches: Vec<MatchResult>,
    /// Sizes and costs of sets that a search considers; they are kept in `search` alone.
    pub screens: Vec<SetResult<ScreenRecord>>,
    pub screened_costs: Vec<SetResult<ScreenedCosts>>,
    /// A number for every feature of a network's set, which a search selects by; they are not kept.
    pub row_importance: Vec<NetResult<Vec<f64>>>,
    /// Layouts into which a network's king squares are merged, for a search: a number for every square; they are not
    /// kept.
    pub king_buckets: Vec<NetResult<Vec<Vec<i32>>>>,
    /// `None` but for a search.
    pub search: Option<SearchRecord>,
    /// `None` but for a learning loop.
    pub learning_loop: Option<LoopRecord>,
}

/// Errors of finding and reading results.
#[derive(Debug, Error)]
pub enum ResultsError {
    #[error("{}: no such folder; `fsbench run EXPERIMENT.toml` creates results", .0.display())]
    NoFolder(PathBuf),
    #[error(
        "{}: no results here (no {STUDY}); create results with `fsbench run EXPERIMENT.toml`, or name their folder",
        .0.display()
    )]
    NoResults(PathBuf),
    #[error(
        "{}: no folder here holds results; create results with `fsbench run EXPERIMENT.toml`, or name their folder",
        .0.display()
    )]
    NoResultsIn(PathBuf),
    #[error(transparent)]
    File(#[from] RecordFileError),
    #[error("cannot list {}: {source}", path.display())]
    List { path: PathBuf, source: std::io::Error },
}

const STUDY: &str = "study.json";
const ENVIRONMENT: &str = "environment.json";
const RUNS: &str = "runs.json";
const UPDATES: &str = "updates.json";
const VALIDATION: &str = "validation.json";
/// The folder of the losses by game.
const LOSSES: &str = "validation";
const SPEED: &str = "speed.json";
const EQUAL_SPEED: &str = "equal_speed.json";
const MATCH: &str = "match.json";
const SEARCH: &str = "search.json";
/// The record of a learning loop in a results folder.
pub const LEARNING_LOOP: &str = "loop.json";
/// The definition of the best set of a search.
const WINNER: &str = "winner.toml";

impl Results {
    /// The default folder of all results.
    pub const DEFAULT_FOLDER: &str = "results";

    /// Results without records.
    #[must_use]
    pub const fn empty(study: Study, environment: Environment) -> Results {
        Results {
            study,
            environment,
            runs: Vec::new(),
            updates: Vec::new(),
            validation: Vec::new(),
            networks: NetworkRecords::new(),
            speed: Vec::new(),
            equal_speed: Vec::new(),
            matches: Vec::new(),
            screens: Vec::new(),
            screened_costs: Vec::new(),
            row_importance: Vec::new(),
            king_buckets: Vec::new(),
            search: None,
            learning_loop: None,
        }
    }

    /// Reads a results folder; a missing record file counts as empty.
    ///
    /// # Errors
    /// When the folder is missing, holds no study, or holds a file that is not the expected record.
    pub fn load(folder: &Path) -> Result<Results, ResultsError> {
        if !folder.is_dir() {
            return Err(ResultsError::NoFolder(folder.to_path_buf()));
        }
        if !folder.join(STUDY).is_file() {
            return Err(ResultsError::NoResults(folder.to_path_buf()));
        }
        Ok(Results {
            study: read_json(&folder.join(STUDY))?,
            environment: read_json(&folder.join(ENVIRONMENT))?,
            runs: read_or_empty(folder, RUNS)?,
            updates: read_or_empty(folder, UPDATES)?,
            validation: load_validation(folder)?,
            networks: NetworkRecords::load(folder)?,
            speed: read_or_empty(folder, SPEED)?,
            equal_speed: read_or_empty(folder, EQUAL_SPEED)?,
            matches: read_or_empty(folder, MATCH)?,
            screens: Vec::new(),
            screened_costs: Vec::new(),
            row_importance: Vec::new(),
            king_buckets: Vec::new(),
            search: read_if_there(folder, SEARCH)?,
            learning_loop: read_if_there(folder, LEARNING_LOOP)?,
        })
    }

    /// Writes every file atomically, the study last: a folder with a study is complete.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), RecordFileError> {
        write_json(&folder.join(ENVIRONMENT), &self.environment)?;
        write_json(&folder.join(RUNS), &self.runs)?;
        write_json(&folder.join(UPDATES), &self.updates)?;
        self.save_validation(folder)?;
        self.networks.save(folder)?;
        write_json(&folder.join(SPEED), &self.speed)?;
        if !self.equal_speed.is_empty() || folder.join(EQUAL_SPEED).exists() {
            write_json(&folder.join(EQUAL_SPEED), &self.equal_speed)?;
        }
        write_json(&folder.join(MATCH), &self.matches)?;
        if let Some(search) = &self.search {
            write_json(&folder.join(SEARCH), search)?;
            let path = folder.join(WINNER);
            match &search.winner {
                Some(winner) => write_atomically(&path, winner.definition.as_bytes())?,
                // Another search may have left one; if it cannot be removed, nothing can be written here either.
                None => drop(std::fs::remove_file(&path)),
            }
        }
        if let Some(learning_loop) = &self.learning_loop {
            write_json(&folder.join(LEARNING_LOOP), learning_loop)?;
        }
        write_json(&folder.join(STUDY), &self.study)
    }

    /// Writes the losses by game that the folder does not have yet, and their description.
    fn save_validation(&self, folder: &Path) -> Result<(), RecordFileError> {
        let old: Vec<NetResult<ValidationRecord>> = read_or_empty(folder, VALIDATION).unwrap_or_default();
        for NetResult { key, record } in &self.validation {
            let path = losses_file(folder, key);
            let is_same = |old: &NetResult<ValidationRecord>| old.key == *key && old.record.digest == record.digest;
            if !(path.is_file() && old.iter().any(is_same)) {
                record.losses.write(&path)?;
            }
        }
        write_json(&folder.join(VALIDATION), &self.validation)
    }

    /// The newest results at most two levels below `root`; of equally new ones the first by name.
    ///
    /// # Errors
    /// When `root` is not a folder, or holds no results.
    pub fn newest(root: &Path) -> Result<PathBuf, ResultsError> {
        if !root.is_dir() {
            return Err(ResultsError::NoFolder(root.to_path_buf()));
        }
        let mut folders = Vec::new();
        for folder in entries(root)? {
            let inside = if folder.is_dir() && !folder.join(STUDY).is_file() { entries(&folder)? } else { Vec::new() };
            for folder in inside.into_iter().chain([folder]).filter(|folder| folder.join(STUDY).is_file()) {
                let environment: Environment = read_json(&folder.join(ENVIRONMENT))?;
                folders.push((environment.recorded, folder));
            }
        }
        sort_by(&mut folders, &|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        match folders.into_iter().next() {
            Some((_, folder)) => Ok(folder),
            None => Err(ResultsError::NoResultsIn(root.to_path_buf())),
        }
    }
}

fn losses_file(folder: &Path, key: &RunKey) -> PathBuf {
    folder.join(LOSSES).join(format!("{}.parquet", key.file_stem()))
}

/// The validations whose losses by game are in the folder.
fn load_validation(folder: &Path) -> Result<Vec<NetResult<ValidationRecord>>, RecordFileError> {
    let mut results: Vec<NetResult<ValidationRecord>> = read_or_empty(folder, VALIDATION)?;
    results.retain(|result| losses_file(folder, &result.key).is_file());
    let with_losses = |NetResult { key, record }: NetResult<ValidationRecord>| {
        let record = record.with_losses_of(&losses_file(folder, &key))?;
        Ok(NetResult { key, record })
    };
    results.into_iter().map(with_losses).collect()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let listed = |source| ResultsError::List { path: folder.to_path_buf(), source };
    std::fs::read_dir(folder).map_err(listed)?.map(|entry| Ok(entry.map_err(listed)?.path())).collect()
}

fn read_if_there<T: serde::de::DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, RecordFileError> {
    let path = folder.join(name);
    if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
}

pub(super) fn read_or_empty<T: serde::de::DeserializeOwned>(
    folder: &Path,
    name: &str,
) -> Result<Vec<T>, RecordFileError> {
    let path = folder.join(name);
    if path.exists() { read_json(&path) } else { Ok(Vec::new()) }
}
