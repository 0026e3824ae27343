//! An experiment's validated settings. `toml_file.rs` reads them, `checks.rs` validates them, `plan.rs` expands them
//! into runs.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toml::Spanned;

use super::ExperimentError;
use super::checks::NetworkChoice;
use super::equal_speed::EqualSpeedMeasure;
use super::learning_loop::LearningLoop;
use super::match_settings::MatchMeasure;
use super::own_figures::OwnFeatures;
use super::search::Search;
use super::steps::{PlannedScreens, SelfPlaySteps};
use crate::data::{EvalOptions, Method, Needs, ScoreUnit};
use crate::features::{FeatureError, expression_with_files, is_name};
use crate::json::{ReadError, from_value, to_value};
use crate::measure::SpeedOptions;
use crate::pipeline::BuildOptions;
use crate::pipeline::{WeightedInput, split_weight};
use crate::play::BookPart;
use crate::record::{LoopRecord, OwnFigures, Published, RunKey, Scaling, SearchRecord};
use crate::settings::{Document, SettingError, TableParts, field_names, unknown_field};
use crate::train::{TrainSettings, run_dir};
use crate::units::{Seed, SortedMap};

/// A position in the experiment file; lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

impl Location {
    /// The location of a byte of the file's text.
    pub(super) fn of_byte(file: &Path, text: &str, byte: usize) -> Location {
        let before = &text[..text.floor_char_boundary(byte)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Location {
            file: file.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// An experiment file that has passed all checks which need neither the data nor the feature sets.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub file: PathBuf,
    /// The file's text; a copy goes into the results.
    pub text: String,
    pub name: String,
    pub about: String,
    /// The data files as written, each with a weight after `@` if it has one.
    pub data: Vec<Spanned<String>>,
    /// Unit of the data's scores, for data that do not name it.
    pub from_unit: Option<ScoreUnit>,
    /// How scores in PGN comments are read.
    pub evals: EvalOptions,
    pub dataset: Dataset,
    /// Results of others, to compare with.
    pub published: Option<Published>,
    pub seeds: Vec<Seed>,
    /// The experiment's results go to a folder of its name in this folder, which is relative to the current one.
    pub results: PathBuf,
    pub train: TrainSettings,
    pub rows: Vec<ComparisonRow>,
    pub measure: Measures,
    /// `None`: sets are compared at the widths of their rows only.
    pub equal_speed: Option<EqualSpeedMeasure>,
    /// `None`: rows learn from all training games only.
    pub scaling: Option<Scaling>,
    /// `[match]`; `None` = no games are played.
    pub matches: Option<MatchMeasure>,
    /// The book of `[match]` as written; `None` = the openings that come with fsbench.
    pub openings: Option<Spanned<String>>,
    /// The openings that are played; `None` = all of the book.
    pub book_part: Option<BookPart>,
    /// `[search]`; `None` = the rows are all there is to compare.
    pub search: Option<Search>,
    /// Definitions whose size or cost is asked for.
    pub screens: Option<PlannedScreens>,
    /// What the search has found so far, for the results.
    pub tree: Option<SearchRecord>,
    /// `[loop]`; `None` = the data are given.
    pub learning_loop: Option<LearningLoop>,
    /// The steps that a loop asks for.
    pub self_play: SelfPlaySteps,
    /// What the loop has done so far, for the results.
    pub loop_record: Option<LoopRecord>,
}

/// A row of the comparison: one feature set trained by one method.
#[derive(Clone, Debug)]
pub struct ComparisonRow {
    /// The row's name in the results; without a label, the set as written. Unique among the rows of a method.
    pub label: String,
    /// The label without the swept settings.
    pub name: String,
    /// The swept settings in words, as in `l1 128`; empty without a sweep. Rows of one group are compared.
    pub group: String,
    /// The set as written: a name, a path or an expression.
    pub set: Spanned<String>,
    pub method: Method,
    /// The start of the row's runs; `None` = random weights.
    pub start: Option<RowStart>,
    /// A second method, learned in the same steps.
    pub second: Option<RowSecond>,
    pub settings: TrainSettings,
    /// Which positions the samples of the row's (first) method have, where it differs from the method's others.
    pub dataset: DatasetKeys,
    /// The settings that the row overrides, the swept ones among them.
    pub overrides: Option<Map<String, Value>>,
    /// The user's own figures of its cost.
    pub own: OwnFigures,
    /// Of a row at equal speed, the row that it repeats at another width.
    pub repeats: Option<RepeatedRow>,
    /// Whether it is a result that its network cannot be trained, as of a search's candidates; else that is an error.
    pub may_fail: bool,
}

/// The row that a row at equal speed repeats at another width.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedRow {
    pub label: String,
    /// By the user's figure of a node's cost, the factor of its measured speeds; `None` without such a figure.
    pub scale: Option<f64>,
}

/// The network that a row's runs begin with.
#[derive(Clone, Debug)]
pub enum RowStart {
    /// A file or the folder of a run, as written.
    Network(Spanned<String>),
    /// The network of an earlier row, of the same seed.
    Row { written: Spanned<String>, label: String, method: Method },
}

impl RowStart {
    pub(super) const fn written(&self) -> &Spanned<String> {
        match self {
            RowStart::Network(written) | RowStart::Row { written, .. } => written,
        }
    }
}

/// The second method of a row: each step minimises the loss of the first + weight · the loss of the second
#[derive(Copy, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RowSecond {
    /// Another than the row's
    pub method: Method,
    /// Weight of its loss, above 0
    pub weight: f64,
}

impl ComparisonRow {
    /// The methods of the row's runs.
    fn methods(&self) -> impl Iterator<Item = Method> {
        std::iter::once(self.method).chain(self.second.map(|second| second.method))
    }
}

/// Which positions of the games become samples, by method
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dataset {
    /// For eval
    pub eval: DatasetKeys,
    /// For pqr
    pub pqr: DatasetKeys,
}

/// The keys of `[dataset.eval]` or `[dataset.pqr]`, or of `dataset` in `[[runs]]`: options of a build, of which a
/// missing one has the method's default; in `[[runs]]`, the value of the method's table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DatasetKeys(Map<String, Value>);

/// Options of a build that follow from the rows.
const NOT_KEYS: [&str; 2] = ["method", "needs"];

impl JsonSchema for DatasetKeys {
    fn schema_name() -> Cow<'static, str> {
        "DatasetKeys".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = BuildOptions::json_schema(generator);
        for key in NOT_KEYS {
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                properties.shift_remove(key);
            }
        }
        schema
    }
}

impl Dataset {
    pub(super) const fn of(&self, method: Method) -> &DatasetKeys {
        match method {
            Method::Eval => &self.eval,
            Method::Pqr => &self.pqr,
        }
    }
}

impl DatasetKeys {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These keys, and the keys of `base` that these have not.
    pub(super) fn or(&self, base: &DatasetKeys) -> DatasetKeys {
        let mut keys = base.0.clone();
        keys.extend(self.0.clone());
        DatasetKeys(keys)
    }

    /// The method's build options with these; `path` names the table in errors.
    fn build_options(&self, method: Method, path: &str) -> Result<BuildOptions, ReadError> {
        let mut options = to_value(&BuildOptions::new(method)).unwrap_or_default();
        if let Value::Object(options) = &mut options {
            options.extend(self.0.clone());
        }
        from_value(&options, path)
    }

    /// Checks the keys and their values, for a method.
    pub(super) fn check(&self, method: Method) -> Result<(), SettingError> {
        let mut names = field_names::<BuildOptions>().to_vec();
        names.retain(|name| !NOT_KEYS.contains(name));
        for key in self.0.keys() {
            if !names.contains(&key.as_str()) {
                return Err(SettingError::new(key, unknown_field(key, &names)));
            }
        }
        let options = self.build_options(method, "").map_err(|error| SettingError::new(error.path, error.message))?;
        options.check()
    }
}

/// `[measure]`: the measures to take. A missing table takes no measure of its kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    pub updates: Option<SetMeasure>,
    /// By name.
    pub networks: SortedMap<&'static str, NetMeasure>,
    pub speed: Option<SpeedMeasure>,
    /// How much each row of the feature transformer matters, for a search.
    pub rows: bool,
    /// For a search: the label of a row on king squares, and numbers of king buckets into which they are merged.
    pub king_buckets: Option<(String, Vec<usize>)>,
}

/// Rows updated per move, by feature set
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SetMeasure {
    /// Names or labels of the sets to measure [default: all]
    pub sets: Option<Vec<String>>,
    /// Largest number of games to use [default: all]
    pub games: Option<u64>,
}

/// A measure of trained networks over games
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct NetMeasure {
    #[schemars(flatten)]
    pub choice: NetworkChoice,
    #[schemars(flatten)]
    pub limit: GameLimit,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct GameLimit {
    /// Largest number of games to use [default: all]
    pub games: Option<u64>,
}

/// Evaluations per second, by network, by turns with the first row's network of the same seed, which is timed whatever
/// sets are chosen
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct SpeedMeasure {
    #[schemars(flatten)]
    pub choice: NetworkChoice,
    #[schemars(flatten)]
    pub options: SpeedOptions,
    #[schemars(flatten)]
    pub own: OwnFeatures,
}

impl NetMeasure {
    /// Reads the table, which is called `path` in errors.
    pub(super) fn read(table: &Value, path: &str) -> Result<NetMeasure, ReadError> {
        let mut parts = TableParts::new(table, path)?;
        let measure = NetMeasure { choice: parts.part()?, limit: parts.part()? };
        parts.finish().map(|()| measure)
    }
}

impl SpeedMeasure {
    /// Reads the table, which is called `path` in errors.
    pub(super) fn read(table: &Value, path: &str) -> Result<SpeedMeasure, ReadError> {
        let mut parts = TableParts::new(table, path)?;
        let measure = SpeedMeasure { choice: parts.part()?, options: parts.part()?, own: parts.part()? };
        parts.finish().map(|()| measure)
    }
}

impl Experiment {
    /// Removes the row of this label.
    ///
    /// # Errors
    /// If there is none, or another row begins with its network.
    pub fn leave_out(&mut self, label: &str) -> Result<(), ExperimentError> {
        for row in &self.rows {
            if let Some(RowStart::Row { written, label: start, .. }) = &row.start
                && start == label
            {
                let message = format!("the row {} begins with the network of {label}, which is left out", row.label);
                return Err(ExperimentError::Spec { at: self.location_of(written), message });
            }
        }
        let Some(index) = self.rows.iter().position(|row| row.label == label) else {
            let labels: Vec<&str> = self.rows.iter().map(|row| row.label.as_str()).collect();
            return Err(ExperimentError::NoSuchSet { set: label.into(), known: labels.join(", ") });
        };
        self.rows.remove(index);
        Ok(())
    }

    /// Where a value is written in the file.
    #[must_use]
    pub fn location_of<T>(&self, value: &Spanned<T>) -> Location {
        Location::of_byte(&self.file, &self.text, value.span().start)
    }

    /// Where a key's value is written, or the nearest table above it that is.
    #[must_use]
    pub(super) fn location_of_key(&self, path: &str) -> Location {
        let byte = Document::parse(&self.text).map_or(0, |document| document.byte_of_value(path));
        Location::of_byte(&self.file, &self.text, byte)
    }

    /// The build options of a row's samples for one of its methods: the method's options, the row's, and the scores or
    /// results that λ needs in all rows of the same samples.
    #[must_use]
    pub fn dataset_options(&self, row: &ComparisonRow, method: Method) -> BuildOptions {
        let of = |row: &ComparisonRow| {
            let own = self.dataset.of(method);
            if row.method == method { row.dataset.or(own) } else { own.clone() }
        };
        let own = of(row);
        let same = self.rows.iter().filter(|other| other.methods().any(|other| other == method) && of(other) == own);
        let mut needs = same.map(|row| row.settings.eval_loss.needs());
        let first = needs.next().unwrap_or_default();
        let common = if needs.all(|other| other == first) { first } else { Needs::Any };
        let needs = if method == Method::Eval { common } else { Needs::default() };
        let options = own.build_options(method, "dataset").expect("checked when the file was read");
        BuildOptions { needs, ..options }
    }

    /// The data files, each relative to the experiment's folder, the current folder or `$FSBENCH_DATA`, the first
    /// where it exists; with their weights and, where they do not record it, the unit of their scores.
    ///
    /// # Errors
    /// When a file exists in none of these folders or a weight is out of range.
    pub fn inputs(&self) -> Result<Vec<WeightedInput>, ExperimentError> {
        let input = |written: &Spanned<String>| {
            let (path, weight) = match self.existing(written) {
                Ok(path) => (path, 1.0),
                // A name that is no file's may end in a weight.
                Err(_) => {
                    let at = self.location_of(written);
                    let split = split_weight(written.get_ref());
                    let (name, weight) =
                        split.map_err(|error| ExperimentError::Spec { at, message: error.to_string() })?;
                    (self.existing(&Spanned::new(written.span(), name.to_owned()))?, weight)
                }
            };
            Ok(WeightedInput { weight, unit: self.from_unit, evals: self.evals, ..WeightedInput::file(&path) })
        };
        self.data.iter().map(input).collect()
    }

    pub(super) fn existing(&self, file: &Spanned<String>) -> Result<PathBuf, ExperimentError> {
        let written = Path::new(file.get_ref());
        let in_data = || std::env::var_os("FSBENCH_DATA").map(|folder| Path::new(&folder).join(written));
        self.beside(written)
            .or_else(|| written.is_file().then(|| written.to_path_buf()))
            .or_else(|| in_data().filter(|path| path.is_file()))
            .ok_or_else(|| ExperimentError::NoFile { at: self.location_of(file), path: written.to_path_buf() })
    }

    /// The path of a network to begin with, found as the files of [`Experiment::inputs`]; of a run's folder, its best
    /// network.
    ///
    /// # Errors
    /// When there is no such network in either folder.
    pub fn start_path(&self, written: &Spanned<String>) -> Result<PathBuf, ExperimentError> {
        let path = Path::new(written.get_ref());
        let beside = self.folder().join(path);
        match [beside.as_path(), path].into_iter().find(|path| path.is_dir()) {
            None => self.existing(written),
            Some(folder) => {
                let missing = |_| ExperimentError::NoFile { at: self.location_of(written), path: folder.to_path_buf() };
                run_dir::weights(folder, false).map_err(missing)
            }
        }
    }

    /// The path of the book of `[match]`, found as the files of [`Experiment::inputs`]; `None` for the openings that
    /// come with fsbench.
    ///
    /// # Errors
    /// When the book exists in neither folder.
    pub fn openings_path(&self) -> Result<Option<PathBuf>, ExperimentError> {
        let Some(written) = &self.openings else { return Ok(None) };
        self.existing(written).map(Some)
    }

    /// A set as the command line takes it. A file beside the experiment, named by path or without `.toml`, takes
    /// precedence over any other set. An expression that names such files becomes a definition that contains theirs.
    ///
    /// # Errors
    /// When an expression names a file beside the experiment and has a mistake.
    pub fn set_request(&self, written: &str) -> Result<String, FeatureError> {
        let file = if written.ends_with(".toml") {
            Some(PathBuf::from(written))
        } else {
            is_name(written).then(|| PathBuf::from(format!("{written}.toml")))
        };
        let Some(file) = file else {
            return Ok(expression_with_files(written, self.folder())?.unwrap_or_else(|| written.to_owned()));
        };
        Ok(self.beside(&file).map_or_else(|| written.to_owned(), |path| path.display().to_string()))
    }

    /// The experiment without the rows of these runs.
    pub(super) fn without(&self, runs: &[(RunKey, String)]) -> Experiment {
        let mut experiment = self.clone();
        experiment.rows.retain(|row| runs.iter().all(|(run, _)| run.set != row.label));
        experiment
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// The path of a file in the experiment's folder, if it exists.
    fn beside(&self, written: &Path) -> Option<PathBuf> {
        Some(self.folder().join(written)).filter(|path| path.is_file())
    }
}

impl ComparisonRow {
    /// Whether a measure that names `name` covers the row. The name may be the row's label, the label of the row that
    /// it repeats at another width, or the set as written.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let repeats = self.repeats.as_ref().is_some_and(|repeated| repeated.label == name);
        self.label == name || self.name == name || self.set.get_ref() == name || repeats
    }
}
