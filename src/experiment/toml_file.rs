//! Reads an experiment file: TOML in, checked settings out, with errors that name file, line and column.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::ExperimentError;
use super::checks::{
    Problem, check_data, check_dataset, check_dataset_options, check_measures, check_name, check_published, check_seeds,
};
use super::equal_speed::{EqualSpeedMeasure, check_equal_speed};
use super::match_settings::{MatchMeasure, check_matches};
use super::scale::apply_scale;
use super::spec::{
    ComparisonRow, Dataset, DatasetOptions, Experiment, Location, Measures, NetMeasure, RowSecond, RowStart,
    SetMeasure, SpeedMeasure,
};
use super::sweep::{MOST_RUNS, Sweep, SweepPoint};
use crate::data::{EvalOptions, EvalUnit, EvalView, Method, ScoreUnit};
use crate::record::{Published, Results};
use crate::train::TrainSettings;
use crate::units::Seed;

/// The keys of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlFile {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    /// One file stands here as a list of one.
    data: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    from_unit: Option<Spanned<String>>,
    #[serde(default)]
    eval_unit: Option<EvalUnit>,
    #[serde(default)]
    eval_view: Option<EvalView>,
    #[serde(default = "default_dataset")]
    dataset: Spanned<Dataset>,
    seeds: Spanned<Vec<Seed>>,
    #[serde(default = "default_results")]
    results: PathBuf,
    train: Spanned<TrainSettings>,
    #[serde(default)]
    sweep: Option<Spanned<toml::Table>>,
    runs: Spanned<Vec<RunsTable>>,
    #[serde(default)]
    measure: MeasureTables,
    #[serde(default)]
    equal_speed: Option<Spanned<EqualSpeedMeasure>>,
    #[serde(default, rename = "match")]
    matches: Option<Spanned<MatchMeasure>>,
    #[serde(default)]
    published: Option<Spanned<Published>>,
}

/// Makes a single data file a list of one.
fn list_data(root: &mut DeTable<'_>) {
    if let Some(data) = root.get_mut("data").filter(|data| data.get_ref().is_str()) {
        let span = data.span();
        let file = std::mem::replace(data, Spanned::new(span, DeValue::Array(DeArray::new())));
        if let DeValue::Array(files) = data.get_mut() {
            files.push(file);
        }
    }
}

fn default_dataset() -> Spanned<Dataset> {
    Spanned::new(0..0, Dataset::default())
}

fn default_results() -> PathBuf {
    Results::DEFAULT_FOLDER.into()
}

/// One `[[runs]]` table: sets × seeds by one method.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunsTable {
    /// `None`: the sweep has the methods.
    #[serde(default)]
    method: Option<Method>,
    sets: Vec<Spanned<String>>,
    /// The rows' name in the results; contains `{set}` if there are several sets.
    label: Option<Spanned<String>>,
    /// The network that the rows' runs begin with: a file, or the folder of a run.
    start: Option<Spanned<String>>,
    /// The earlier row whose network the rows' runs begin with; `{set}` stands for the set's name.
    start_row: Option<Spanned<String>>,
    /// A second method, learned in the same steps.
    second: Option<Spanned<RowSecond>>,
    /// Which positions the rows' samples have, over the method's table.
    #[serde(default)]
    dataset: Option<Spanned<DatasetOptions>>,
    /// Settings that override the shared ones.
    #[serde(default)]
    train: Option<Spanned<toml::Table>>,
}

/// [`Measures`] with the position of each table.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MeasureTables {
    pub(super) updates: Option<Spanned<SetMeasure>>,
    pub(super) activity: Option<Spanned<NetMeasure>>,
    pub(super) error: Option<Spanned<NetMeasure>>,
    pub(super) speed: Option<Spanned<SpeedMeasure>>,
}

impl Experiment {
    /// Reads an experiment file, at the size named `scale`, which is one of the file's tables `[scale.NAME]`; `None` is
    /// [`DEFAULT_SCALE`] where the file has scales.
    ///
    /// # Errors
    /// When the file cannot be read, is not an experiment, or has no such scale.
    pub fn read(path: &Path, scale: Option<&str>) -> Result<Experiment, ExperimentError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ExperimentError::Read { path: path.to_path_buf(), source })?;
        Experiment::parse(path, text, scale)
    }

    /// Parses the text of an experiment file; `file` is its path.
    ///
    /// # Errors
    /// When the text is not an experiment or has no such scale; the error names the position.
    pub fn parse(file: &Path, text: String, scale: Option<&str>) -> Result<Experiment, ExperimentError> {
        let error_at =
            |Problem { byte, message }| ExperimentError::Spec { at: Location::of_byte(file, &text, byte), message };
        let toml_error = |error: toml::de::Error| {
            let byte = error.span().map_or(0, |span| span.start);
            error_at(Problem { byte, message: error.message().trim().replace('\n', ", ") })
        };
        let mut root = DeTable::parse(&text).map_err(toml_error)?;
        let scale = apply_scale(root.get_mut(), scale).map_err(error_at)?;
        list_data(root.get_mut());
        let parsed = TomlFile::deserialize(toml::Deserializer::from(root)).map_err(toml_error)?;
        check_name(&parsed.name).map_err(error_at)?;
        check_data(&parsed.data).map_err(error_at)?;
        check_seeds(&parsed.seeds).map_err(error_at)?;
        check_dataset(&parsed.dataset).map_err(error_at)?;
        let unit = parsed.from_unit.as_ref().map(|unit| {
            let parsed = unit.get_ref().parse::<ScoreUnit>();
            parsed.map_err(|message| error_at(Problem::at(unit, format!("from_unit: {message}"))))
        });
        let from_unit = unit.transpose()?;
        let sweep = Sweep::read(parsed.sweep.as_ref()).map_err(error_at)?;
        let trainings = sweep.size().and_then(|size| size.checked_mul(parsed.seeds.get_ref().len()));
        let sets = parsed.runs.get_ref().iter().map(|table| table.sets.len()).sum::<usize>().max(1);
        let trainings = trainings.and_then(|size| size.checked_mul(sets));
        if trainings.is_none_or(|trainings| trainings > MOST_RUNS) {
            return Err(error_at(too_many_runs(&parsed, trainings)));
        }
        let rows = expand_rows(&parsed.runs, &parsed.train, &sweep, parsed.sweep.as_ref()).map_err(error_at)?;
        check_measures(&parsed.measure, &rows, parsed.seeds.get_ref()).map_err(error_at)?;
        if let Some(matches) = &parsed.matches {
            check_matches(matches, &rows, parsed.seeds.get_ref()).map_err(error_at)?;
        }
        if let Some(equal_speed) = &parsed.equal_speed {
            check_equal_speed(equal_speed, &rows, parsed.sweep.is_some()).map_err(error_at)?;
        }
        if let Some(published) = &parsed.published {
            check_published(published, &rows).map_err(error_at)?;
        }
        let MeasureTables { updates, activity, error, speed } = parsed.measure;
        Ok(Experiment {
            file: file.to_path_buf(),
            name: match scale {
                None => parsed.name.into_inner(),
                Some(scale) => format!("{}-{scale}", parsed.name.get_ref()),
            },
            about: parsed.about,
            data: parsed.data.into_inner(),
            from_unit,
            evals: EvalOptions { eval_unit: parsed.eval_unit, eval_view: parsed.eval_view },
            dataset: parsed.dataset.into_inner(),
            published: parsed.published.map(Spanned::into_inner),
            seeds: parsed.seeds.into_inner(),
            results: parsed.results,
            train: parsed.train.into_inner(),
            rows,
            measure: Measures {
                updates: updates.map(Spanned::into_inner),
                activity: activity.map(Spanned::into_inner),
                error: error.map(Spanned::into_inner),
                speed: speed.map(Spanned::into_inner),
            },
            equal_speed: parsed.equal_speed.map(Spanned::into_inner),
            matches: parsed.matches.map(Spanned::into_inner),
            text,
        })
    }
}

fn too_many_runs(file: &TomlFile, trainings: Option<usize>) -> Problem {
    let count = trainings.map_or("more trainings than can be counted".to_owned(), |count| format!("{count} trainings"));
    let message = format!("{count}; the limit is {MOST_RUNS}: sweep fewer values, or make several experiments");
    match &file.sweep {
        Some(sweep) => Problem::at(sweep, message),
        None => Problem::at(&file.runs, message),
    }
}

/// Checks the shared settings and expands the `[[runs]]` tables into rows: at each point of the sweep, all tables in
/// order.
fn expand_rows(
    tables: &Spanned<Vec<RunsTable>>,
    shared: &Spanned<TrainSettings>,
    sweep: &Sweep,
    written: Option<&Spanned<toml::Table>>,
) -> Result<Vec<ComparisonRow>, Problem> {
    let byte = written.map_or(tables.span(), Spanned::span).start;
    let mut rows: Vec<ComparisonRow> = Vec::new();
    let points = sweep.points();
    let mut methods = Vec::new();
    for (point, table) in points.iter().flat_map(|point| tables.get_ref().iter().map(move |table| (point, table))) {
        methods.push(table.method_at(point).map_err(|message| Problem { byte, message })?);
        methods.extend(table.second.as_ref().map(|second| second.get_ref().method));
    }
    let checked = shared.get_ref().validate(&methods, |_| true);
    checked.map_err(|error| Problem::at(shared, error.to_string()))?;
    for point in &points {
        for table in tables.get_ref() {
            table.add_rows(point, shared.get_ref(), byte, &mut rows)?;
        }
    }
    compare_lone_rows(&mut rows);
    if rows.is_empty() {
        let message = "no runs; write [[runs]] with method = \"eval\" and sets = [\"piece\"]";
        return Err(Problem::at(tables, message.into()));
    }
    Ok(rows)
}

/// Where every group of a sweep has one row, there is nothing to compare in a group: the swept settings themselves are
/// compared.
fn compare_lone_rows(rows: &mut [ComparisonRow]) {
    let has_others = |row: &ComparisonRow| {
        rows.iter().filter(|other| (other.method, &other.group) == (row.method, &row.group)).count() > 1
    };
    if rows.iter().any(has_others) {
        return;
    }
    for row in rows {
        row.name.clone_from(&row.label);
        row.group.clear();
    }
}

/// In the label of several sets, stands for the set's name.
const SET_PLACEHOLDER: &str = "{set}";

impl RunsTable {
    /// The method of the rows at a point of the sweep.
    fn method_at(&self, point: &SweepPoint) -> Result<Method, String> {
        match (self.method, point.method()?) {
            (Some(_), Some(_)) => Err("a sweep over method needs [[runs]] without method".into()),
            (Some(method), None) | (None, Some(method)) => Ok(method),
            (None, None) => Err("[[runs]] needs method = \"eval\" or \"pqr\"".into()),
        }
    }

    /// Adds the table's rows at a point of the sweep, which is written at `byte`.
    fn add_rows(
        &self,
        point: &SweepPoint,
        shared: &TrainSettings,
        byte: usize,
        rows: &mut Vec<ComparisonRow>,
    ) -> Result<(), Problem> {
        let byte = self.train.as_ref().map_or(byte, |train| train.span().start);
        let problem = |message| Problem { byte, message };
        let method = self.method_at(point).map_err(problem)?;
        let overrides = point.overrides(self.train.as_ref().map(Spanned::get_ref)).map_err(problem)?;
        let second = self.checked_second(method)?;
        let dataset = match &self.dataset {
            None => DatasetOptions::default(),
            Some(written) => {
                check_dataset_options(written.get_ref()).map_err(|message| Problem::at(written, message))?;
                *written.get_ref()
            }
        };
        let methods: Vec<Method> = std::iter::once(method).chain(second.map(|second| second.method)).collect();
        let settings = match &overrides {
            None => shared.clone(),
            Some(overrides) => with_overrides(shared, overrides, &methods).map_err(problem)?,
        };
        let group = point.describe();
        for set in &self.sets {
            let name = self.label(set)?;
            let label = if group.is_empty() { name.clone() } else { format!("{name}, {group}") };
            self.check_label(&label, set, method, rows)?;
            let start = self.start(set, &group, rows)?;
            let (set, settings, overrides, group) = (set.clone(), settings.clone(), overrides.clone(), group.clone());
            rows.push(ComparisonRow { label, name, group, set, method, start, second, settings, dataset, overrides });
        }
        Ok(())
    }

    /// What the runs of `set`'s row in `group` begin with; `rows` are those before it.
    fn start(&self, set: &Spanned<String>, group: &str, rows: &[ComparisonRow]) -> Result<Option<RowStart>, Problem> {
        let Some(written) = &self.start_row else { return Ok(self.start.clone().map(RowStart::Network)) };
        if self.start.is_some() {
            return Err(Problem::at(written, "start and start_row cannot stand together: a run begins once".into()));
        }
        let name = written.get_ref().replace(SET_PLACEHOLDER, set.get_ref());
        let is_called = |row: &&ComparisonRow| row.is_called(&name);
        let found = rows.iter().filter(is_called).find(|row| row.group == group);
        match found.or_else(|| rows.iter().filter(is_called).find(|row| row.group.is_empty())) {
            Some(row) => Ok(Some(RowStart::Row {
                written: Spanned::new(written.span(), name),
                label: row.label.clone(),
                method: row.method,
            })),
            None => {
                let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
                let message = match labels[..] {
                    [] => format!("start_row: no row stands before this one, so none is called '{name}'"),
                    _ => format!("start_row: no earlier row is called '{name}'; there are {}", labels.join(", ")),
                };
                Err(Problem::at(written, message))
            }
        }
    }

    /// The second method, which must be another than the first.
    fn checked_second(&self, method: Method) -> Result<Option<RowSecond>, Problem> {
        let Some(written) = &self.second else { return Ok(None) };
        let second = *written.get_ref();
        let message = match () {
            () if second.method == method => format!("the second method must be another than {}", method.name()),
            () if !(second.weight.is_finite() && second.weight > 0.0) => {
                format!("the weight of the second method must be above 0, not {}", second.weight)
            }
            () => return Ok(Some(second)),
        };
        Err(Problem::at(written, message))
    }

    /// The label of the row of `set`.
    fn label(&self, set: &Spanned<String>) -> Result<String, Problem> {
        let Some(label) = &self.label else { return Ok(set.get_ref().clone()) };
        let written = label.get_ref().trim();
        if written.is_empty() || written.contains(char::is_control) {
            return Err(Problem::at(label, "a label must be one line of text".into()));
        }
        if self.sets.len() > 1 && !written.contains(SET_PLACEHOLDER) {
            let message = "a label for several sets must contain {set}, which stands for the set's name, so that rows \
                           have different labels";
            return Err(Problem::at(label, message.into()));
        }
        Ok(written.replace(SET_PLACEHOLDER, set.get_ref()))
    }

    /// Checks that no row has the label already, except one of the same set by another method.
    fn check_label(
        &self,
        label: &str,
        set: &Spanned<String>,
        method: Method,
        rows: &[ComparisonRow],
    ) -> Result<(), Problem> {
        let problem = |message| Err(Problem::at(self.label.as_ref().unwrap_or(set), message));
        for row in rows.iter().filter(|row| row.label == label) {
            if row.method == method {
                return problem(match self.label {
                    None => format!(
                        "the set '{label}' appears twice for one method; give each row its own label, as in label = \
                         \"{label}, l1 128\""
                    ),
                    Some(_) => format!("the label '{label}' appears twice for one method"),
                });
            }
            if row.set.get_ref() != set.get_ref() {
                let (first, second) = (row.set.get_ref(), set.get_ref());
                return problem(format!("the label '{label}' belongs to two sets, '{first}' and '{second}'"));
            }
        }
        Ok(())
    }
}

/// The shared settings with the overrides of a `[[runs]]` table, checked for its methods.
fn with_overrides(
    shared: &TrainSettings,
    overrides: &toml::Table,
    methods: &[Method],
) -> Result<TrainSettings, String> {
    let mut merged = toml::Table::try_from(shared).map_err(|error| error.to_string())?;
    merge(&mut merged, overrides);
    let settings: TrainSettings = merged.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    // Keys in a configuration have dots, as in `recipe.warm_up`.
    let is_overridden = |key: &str| overrides.contains_key(key.split('.').next().unwrap_or(key));
    settings.validate(methods, is_overridden).map(|()| settings).map_err(|error| error.to_string())
}

/// Merges tables key by key; any other value replaces the old one.
fn merge(table: &mut toml::Table, overrides: &toml::Table) {
    for (key, value) in overrides {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}
