//! The experiment file: TOML in, validated settings out, with errors that name file, line and column.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::ExperimentError;
use crate::data::{Method, Needs, ScoreUnit};
use crate::features::is_name;
use crate::pipeline::BuildOptions;
use crate::pipeline::build::{Filter, PerGame};
use crate::record::Results;
use crate::train::TrainSettings;
use crate::units::Seed;

/// A place in the experiment file; lines and columns from 1.
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

/// An experiment as written, checked for everything that needs neither the data nor the feature sets.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The file it was read from.
    pub file: PathBuf,
    /// The file's text; a copy goes into the results.
    pub text: String,
    pub name: String,
    pub about: String,
    /// As written.
    pub data: Spanned<String>,
    /// Unit of its scores, where it does not say it itself.
    pub from_unit: Option<ScoreUnit>,
    pub dataset: Dataset,
    pub seeds: Vec<Seed>,
    /// The folder that results go to, in one named as the experiment; relative to the current folder.
    pub results: PathBuf,
    pub train: TrainSettings,
    pub rows: Vec<Row>,
    pub measure: Measures,
}

/// One feature set by one method: a row of the comparison.
#[derive(Clone, Debug)]
pub struct Row {
    /// What results call the row: its label, else the set as written. No two rows of a method have the same.
    pub label: String,
    /// As written: a name, a path or an expression.
    pub set: Spanned<String>,
    pub method: Method,
    pub settings: TrainSettings,
    /// What of the shared settings the row replaces, as written.
    pub own: Option<toml::Table>,
}

/// `[dataset]`: which positions of the games become samples, by method.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dataset {
    pub eval: DatasetOptions,
    pub pqr: DatasetOptions,
}

/// What is absent has the method's default.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatasetOptions {
    /// The first ply that is used.
    pub min_ply: Option<u16>,
    /// Fewest legal moves of a position.
    pub min_moves: Option<u16>,
    /// At most so many samples a game, drawn by `seed`; absent = all.
    pub per_game: Option<u32>,
    pub filter: Option<Filter>,
    pub seed: Option<Seed>,
}

impl Dataset {
    /// The method's options with what the experiment replaces.
    #[must_use]
    pub fn options(&self, method: Method) -> BuildOptions {
        let own = match method {
            Method::Eval => self.eval,
            Method::Pqr => self.pqr,
        };
        let default = BuildOptions::new(method);
        BuildOptions {
            method,
            seed: own.seed.unwrap_or(default.seed),
            per_game: own.per_game.map_or(default.per_game, PerGame::AtMost),
            min_ply: own.min_ply.unwrap_or(default.min_ply),
            filter: own.filter.unwrap_or(default.filter),
            min_moves: own.min_moves.unwrap_or(default.min_moves),
            ..default
        }
    }
}

/// `[measure]`: what is measured, of which sets and networks. An absent table measures nothing of its kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    pub updates: Option<SetMeasure>,
    pub activity: Option<NetMeasure>,
    pub error: Option<NetMeasure>,
    pub speed: Option<SpeedMeasure>,
}

/// A measure of feature sets over games.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetMeasure {
    /// Which sets; absent = all.
    pub sets: Option<Vec<String>>,
    /// The first so many games; absent = all.
    pub games: Option<u64>,
}

/// A measure of trained networks over games.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetMeasure {
    /// Which sets' networks; absent = all.
    pub sets: Option<Vec<String>>,
    /// Of which methods; absent = all.
    pub methods: Option<Vec<Method>>,
    /// Of which seeds; absent = all.
    pub seeds: Option<Vec<Seed>>,
    /// The first so many games; absent = all.
    pub games: Option<u64>,
}

/// How fast networks evaluate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpeedMeasure {
    /// Which sets' networks; absent = all.
    pub sets: Option<Vec<String>>,
    /// Of which methods; absent = all.
    pub methods: Option<Vec<Method>>,
    /// Of which seeds; absent = all.
    pub seeds: Option<Vec<Seed>>,
    /// Positions evaluated again and again; what is absent here and below has the measure's default.
    pub positions: Option<u64>,
    pub repetitions: Option<u32>,
    /// A repetition lasts at least so many seconds.
    pub seconds: Option<f64>,
}

/// The file's literal form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    data: Spanned<String>,
    #[serde(default)]
    from_unit: Option<Spanned<String>>,
    #[serde(default = "no_dataset")]
    dataset: Spanned<Dataset>,
    seeds: Spanned<Vec<Seed>>,
    #[serde(default = "root")]
    results: PathBuf,
    train: Spanned<TrainSettings>,
    runs: Spanned<Vec<FileRuns>>,
    #[serde(default)]
    measure: FileMeasures,
}

/// [`Measures`] and where each stands.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FileMeasures {
    updates: Option<Spanned<SetMeasure>>,
    activity: Option<Spanned<NetMeasure>>,
    error: Option<Spanned<NetMeasure>>,
    speed: Option<Spanned<SpeedMeasure>>,
}

fn root() -> PathBuf {
    Results::DEFAULT_FOLDER.into()
}

/// One `[[runs]]` table: sets × seeds by one method.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRuns {
    method: Method,
    sets: Vec<Spanned<String>>,
    /// What results call the row; of several sets with `{set}` in it.
    label: Option<Spanned<String>>,
    #[serde(default)]
    train: Option<Spanned<toml::Table>>,
}

impl Experiment {
    /// # Errors
    /// When the file cannot be read or is no experiment.
    pub fn read(path: &Path) -> Result<Experiment, ExperimentError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ExperimentError::Read { path: path.to_path_buf(), source })?;
        Experiment::parse(path, text)
    }

    /// # Errors
    /// When the text is no experiment; the error names the place in `file`.
    pub fn parse(file: &Path, text: String) -> Result<Experiment, ExperimentError> {
        let parsed: File = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let message = error.message().trim().replace('\n', ", ");
            ExperimentError::Spec { at: location(file, &text, start), message }
        })?;
        let reject =
            |start: usize, message: String| ExperimentError::Spec { at: location(file, &text, start), message };
        check_name(&parsed.name).map_err(|message| reject(parsed.name.span().start, message))?;
        check_seeds(parsed.seeds.get_ref()).map_err(|message| reject(parsed.seeds.span().start, message))?;
        let dataset = parsed.dataset.get_ref();
        check_dataset(dataset).map_err(|message| reject(parsed.dataset.span().start, message))?;
        let unit = parsed.from_unit.as_ref().map(|unit| {
            unit.get_ref().parse().map_err(|message| reject(unit.span().start, format!("from_unit: {message}")))
        });
        let from_unit = unit.transpose()?;
        let shared = parsed.train.get_ref();
        let methods: Vec<Method> = parsed.runs.get_ref().iter().map(|runs| runs.method).collect();
        let checked = shared.validate(&methods, |_| true);
        checked.map_err(|error| reject(parsed.train.span().start, error.to_string()))?;
        let mut rows: Vec<Row> = Vec::new();
        for runs in parsed.runs.get_ref() {
            let settings = match &runs.train {
                None => shared.clone(),
                Some(own) => overridden(shared, own.get_ref(), runs.method)
                    .map_err(|message| reject(own.span().start, message))?,
            };
            for set in &runs.sets {
                let label = runs.label(set).map_err(|(at, message)| reject(at, message))?;
                runs.check_label(&label, set, &rows).map_err(|(at, message)| reject(at, message))?;
                let own = runs.train.as_ref().map(|own| own.get_ref().clone());
                rows.push(Row { label, set: set.clone(), method: runs.method, settings: settings.clone(), own });
            }
        }
        if rows.is_empty() {
            let message = "no runs; write [[runs]] with method = \"eval\" and sets = [\"piece\"]".into();
            return Err(reject(parsed.runs.span().start, message));
        }
        let seeds = parsed.seeds.get_ref();
        let measure = parsed.measure.checked(&rows, seeds).map_err(|(at, message)| reject(at, message))?;
        Ok(Experiment {
            file: file.to_path_buf(),
            name: parsed.name.into_inner(),
            about: parsed.about,
            data: parsed.data,
            from_unit,
            dataset: parsed.dataset.into_inner(),
            seeds: parsed.seeds.into_inner(),
            results: parsed.results,
            train: parsed.train.into_inner(),
            rows,
            measure,
            text,
        })
    }

    /// Where a value stands in the file.
    #[must_use]
    pub fn location_of<T>(&self, value: &Spanned<T>) -> Location {
        location(&self.file, &self.text, value.span().start)
    }

    /// The data set's options for a method: what the rows' λ need, and what the experiment says.
    #[must_use]
    pub fn dataset_options(&self, method: Method) -> BuildOptions {
        let mut needs = self.rows.iter().filter(|row| row.method == method).map(|row| row.settings.eval_loss.needs());
        let first = needs.next().unwrap_or_default();
        let all = if needs.all(|other| other == first) { first } else { Needs::Any };
        let needs = if method == Method::Eval { all } else { Needs::default() };
        BuildOptions { needs, ..self.dataset.options(method) }
    }

    /// The data file: relative to the experiment's folder, else to the current one.
    ///
    /// # Errors
    /// When neither exists.
    pub fn data_path(&self) -> Result<PathBuf, ExperimentError> {
        let written = Path::new(self.data.get_ref());
        self.beside(written)
            .or_else(|| written.is_file().then(|| written.to_path_buf()))
            .ok_or_else(|| ExperimentError::NoData { at: self.location_of(&self.data), path: written.to_path_buf() })
    }

    /// A set as the command line takes it: a file beside the experiment, by path or bare name, goes before any other.
    #[must_use]
    pub fn set_request(&self, written: &str) -> String {
        let file = match written.ends_with(".toml") {
            true => Some(PathBuf::from(written)),
            false => is_name(written).then(|| PathBuf::from(format!("{written}.toml"))),
        };
        let found = file.and_then(|file| self.beside(&file));
        found.map_or_else(|| written.to_owned(), |path| path.display().to_string())
    }

    fn beside(&self, written: &Path) -> Option<PathBuf> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        Some(folder.join(written)).filter(|path| path.is_file())
    }
}

/// A byte of the file and what is wrong there.
type Complaint = (usize, String);

impl FileRuns {
    /// What results call the row of `set`.
    fn label(&self, set: &Spanned<String>) -> Result<String, Complaint> {
        let Some(label) = &self.label else { return Ok(set.get_ref().clone()) };
        let complain = |message: &str| Err((label.span().start, message.to_owned()));
        let written = label.get_ref().trim();
        if written.is_empty() || written.contains(char::is_control) {
            return complain("a label is a line of text");
        }
        if self.sets.len() > 1 && !written.contains(SET_IN_LABEL) {
            return complain("a label for several sets has {set} in it, for the set's name: no two rows have the same");
        }
        Ok(written.replace(SET_IN_LABEL, set.get_ref()))
    }

    /// Whether a row of that label may stand beside `rows`.
    fn check_label(&self, label: &str, set: &Spanned<String>, rows: &[Row]) -> Result<(), Complaint> {
        let at = self.label.as_ref().map_or(set.span().start, |label| label.span().start);
        for row in rows.iter().filter(|row| row.label == label) {
            if row.method == self.method {
                let message = match self.label {
                    None => format!(
                        "the set '{label}' stands twice for one method; give each row a name of its own, as in \
                         label = \"{label}, l1 128\""
                    ),
                    Some(_) => format!("the label '{label}' stands twice for one method"),
                };
                return Err((at, message));
            }
            if row.set.get_ref() != set.get_ref() {
                let message =
                    format!("the label '{label}' is that of two sets, '{}' and '{}'", row.set.get_ref(), set.get_ref());
                return Err((at, message));
            }
        }
        Ok(())
    }
}

/// Where the set's name goes in the label of several.
const SET_IN_LABEL: &str = "{set}";

impl FileMeasures {
    /// The measures, if every number makes sense and every selection takes in a run.
    fn checked(self, rows: &[Row], seeds: &[Seed]) -> Result<Measures, Complaint> {
        if let Some(updates) = &self.updates {
            let SetMeasure { sets, games } = updates.get_ref();
            check_games(*games).and_then(|()| check_selection(sets, &None, &None, rows, seeds)).map_err(at(updates))?;
        }
        for measure in [&self.activity, &self.error].into_iter().flatten() {
            let NetMeasure { sets, methods, seeds: of, games } = measure.get_ref();
            check_games(*games).and_then(|()| check_selection(sets, methods, of, rows, seeds)).map_err(at(measure))?;
        }
        if let Some(speed) = &self.speed {
            let SpeedMeasure { sets, methods, seeds: of, .. } = speed.get_ref();
            check_timing(speed.get_ref())
                .and_then(|()| check_selection(sets, methods, of, rows, seeds))
                .map_err(at(speed))?;
        }
        Ok(Measures {
            updates: self.updates.map(Spanned::into_inner),
            activity: self.activity.map(Spanned::into_inner),
            error: self.error.map(Spanned::into_inner),
            speed: self.speed.map(Spanned::into_inner),
        })
    }
}

/// Puts a complaint where a value stands.
fn at<T>(value: &Spanned<T>) -> impl Fn(String) -> Complaint {
    let start = value.span().start;
    move |message| (start, message)
}

fn check_games(games: Option<u64>) -> Result<(), String> {
    match games {
        Some(0) => Err("games must be at least 1 (leave it out for all)".into()),
        _ => Ok(()),
    }
}

fn check_timing(measure: &SpeedMeasure) -> Result<(), String> {
    /// A day: no repetition is meant to last that long.
    const LONGEST: f64 = 86_400.0;
    let checks = [
        (measure.positions != Some(0), "positions must be at least 1"),
        (measure.repetitions.is_none_or(|count| count >= 2), "repetitions must be at least 2: one has no interval"),
        (
            measure.seconds.is_none_or(|seconds| (0.0..=LONGEST).contains(&seconds)),
            "seconds must lie between 0 and 86400",
        ),
    ];
    checks.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, message)| Err((*message).to_owned()))
}

/// Every set, method and seed that a measure names is one of a run.
fn check_selection(
    sets: &Option<Vec<String>>,
    methods: &Option<Vec<Method>>,
    of: &Option<Vec<Seed>>,
    rows: &[Row],
    seeds: &[Seed],
) -> Result<(), String> {
    let known = |set: &String| rows.iter().any(|row| row.is_called(set));
    if let Some(set) = sets.iter().flatten().find(|set| !known(set)) {
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        return Err(format!("no run uses the set '{set}'; there are {}", labels.join(", ")));
    }
    if let Some(method) = methods.iter().flatten().find(|method| !rows.iter().any(|row| row.method == **method)) {
        return Err(format!("no run has the method {}", method.name()));
    }
    match of.iter().flatten().find(|seed| !seeds.contains(seed)) {
        Some(seed) => Err(format!("no run has the seed {}", seed.0)),
        None => Ok(()),
    }
}

impl Row {
    /// Whether a selection by this name takes in the row: its label, or the set as written.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.label == name || self.set.get_ref() == name
    }
}

fn no_dataset() -> Spanned<Dataset> {
    Spanned::new(0..0, Dataset::default())
}

fn check_dataset(dataset: &Dataset) -> Result<(), String> {
    match [dataset.eval, dataset.pqr].iter().any(|options| options.per_game == Some(0)) {
        true => Err("per_game must be at least 1 (leave it out for all samples)".into()),
        false => Ok(()),
    }
}

fn location(file: &Path, text: &str, byte: usize) -> Location {
    let before = &text[..text.floor_char_boundary(byte)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Location {
        file: file.to_path_buf(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The shared settings with those replaced that a table of runs gives.
fn overridden(shared: &TrainSettings, own: &toml::Table, method: Method) -> Result<TrainSettings, String> {
    let mut merged = toml::Table::try_from(shared).map_err(|error| error.to_string())?;
    merge(&mut merged, own);
    let settings: TrainSettings = merged.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let checked = settings.validate(&[method], |key| is_given(own, key));
    checked.map(|()| settings).map_err(|error| error.to_string())
}

/// Tables go into tables, anything else in the place of what was there.
fn merge(table: &mut toml::Table, own: &toml::Table) {
    for (key, value) in own {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The name becomes a folder's.
fn check_name(name: &Spanned<String>) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = name.get_ref();
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("the name '{name}' becomes a folder's: use letters, digits, '-' and '_'"));
    }
    Ok(())
}

fn check_seeds(seeds: &[Seed]) -> Result<(), String> {
    if seeds.is_empty() {
        return Err("no seeds; write for example seeds = [1, 2, 3]".into());
    }
    match seeds.iter().enumerate().find(|(index, seed)| seeds[..*index].contains(seed)) {
        Some((_, seed)) => Err(format!("the seed {} stands twice", seed.0)),
        None => Ok(()),
    }
}

/// Whether a table of runs gives a setting, by its key in a configuration (`recipe.warm_up`).
fn is_given(own: &toml::Table, key: &str) -> bool {
    own.contains_key(key.split('.').next().unwrap_or(key))
}
