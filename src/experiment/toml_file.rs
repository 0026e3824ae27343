//! Reads an experiment file: TOML in, checked settings out, with errors that name file, line and column.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::ExperimentError;
use super::checks::{
    Mistake, check_data, check_dataset, check_games, check_name, check_published, check_seeds, check_sets, labels,
};
use super::equal_speed::{EqualSpeedMeasure, check_equal_speed};
use super::match_settings::{MatchMeasure, check_matches};
use super::scale::apply_scale;
use super::spec::{
    ComparisonRow, Dataset, DatasetKeys, Experiment, Location, Measures, NetMeasure, RowSecond, RowStart, SetMeasure,
    SpeedMeasure,
};
use super::sweep::{MOST_RUNS, Sweep, SweepPoint};
use crate::data::{EvalOptions, EvalUnit, EvalView, Method, ScoreUnit};
use crate::record::{Published, Results};
use crate::settings::{Document, ReadError, SettingError, read};
use crate::train::{TrainError, TrainSettings};
use crate::units::Seed;

/// The keys above all tables
// Tables that consist of several structs are values, which these read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TomlFile {
    /// Letters, digits, - and _: names the results folder
    name: String,
    /// One line for the report
    #[serde(default)]
    about: String,
    /// File of games or samples, relative to the experiment's folder, the current one or $FSBENCH_DATA; several in a
    /// list, each with a weight if it is not 1: ["a.binpack", "b.binpack@0.5"] takes half of b's games; measures read
    /// the first
    // One file stands here as a list of one.
    data: Vec<String>,
    /// Unit of the scores, for data that do not name it: "cp" or "internal:PAWN" [default: "internal:208" for binpacks,
    /// else "cp"]
    #[serde(default)]
    from_unit: Option<String>,
    /// Unit of scores in PGN comments [default: pawns, but centipawns in a file whose scores are all whole numbers]
    #[serde(default)]
    eval_unit: Option<EvalUnit>,
    /// Whose view `[%eval …]` in PGN comments is [default: White's; the mover's where a depth follows after a slash]
    #[serde(default)]
    eval_view: Option<EvalView>,
    /// Which positions of the games become samples, by method
    #[serde(default)]
    dataset: Dataset,
    /// Every row is trained once per seed, as in [1, 2, 3]
    seeds: Vec<Seed>,
    /// Folder of the results, which go to a folder of the experiment's name in it
    #[serde(default = "default_results")]
    results: PathBuf,
    /// The settings of all trainings
    train: TrainSettings,
    /// A table of lists with keys as in [train], or method: every combination of their values is run, as in l1 =
    /// [128, 256]
    #[serde(default)]
    sweep: Option<Map<String, Value>>,
    /// The rows of the comparison
    runs: Vec<RunsTable>,
    /// What to measure
    #[serde(default)]
    measure: MeasureTables,
    /// With it every set is trained once more, at the width at which it is as fast as the reference
    #[serde(default)]
    #[schemars(with = "Option<EqualSpeedMeasure>")]
    equal_speed: Option<Value>,
    /// Without it no games are played
    #[serde(default, rename = "match")]
    #[schemars(with = "Option<MatchMeasure>")]
    matches: Option<Value>,
    /// Results to compare with
    #[serde(default)]
    published: Option<Published>,
    /// Tables [scale.NAME] of keys as in the whole file, which replace the file's own for `--scale NAME`; results go to
    /// the folder of the experiment's name with -NAME
    #[serde(default)]
    #[expect(dead_code, reason = "a scale is applied before the file is read")]
    scale: Option<Map<String, Value>>,
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

fn default_results() -> PathBuf {
    Results::DEFAULT_FOLDER.into()
}

/// Rows of the comparison, sets × seeds by one method; any number of these tables
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsTable {
    /// How the rows' networks learn; left out if the sweep lists methods
    #[serde(default)]
    method: Option<Method>,
    /// Names, paths or expressions; a file beside the experiment's takes precedence
    sets: Vec<String>,
    /// The rows' name in the results; must contain {set} for several sets, as in "{set}, l1 128" [default: the set]
    label: Option<String>,
    /// Network to begin with, on the set or a coarser one: a file or a run's folder [default: random weights]
    start: Option<String>,
    /// An earlier row: each seed's run begins with that row's network; {set} stands for the set's name
    start_row: Option<String>,
    /// Another method, learned in the same steps, with its weight in the loss: { method = "pqr", weight = 0.5 }
    second: Option<RowSecond>,
    /// The keys of [dataset.METHOD] that differ for these rows' samples, as in { min_ply = 30 }
    #[serde(default)]
    dataset: DatasetKeys,
    /// The settings of [train] that differ for these rows, as in { l1 = 128 }
    #[serde(default)]
    train: Option<Map<String, Value>>,
}

/// What to measure
// The tables of `Measures`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct MeasureTables {
    /// Rows updated per move, by feature set
    #[schemars(with = "Option<SetMeasure>")]
    updates: Option<Value>,
    /// Share of active neurons, by network
    #[schemars(with = "Option<NetMeasure>")]
    activity: Option<Value>,
    /// Quantisation error, by network
    #[schemars(with = "Option<NetMeasure>")]
    error: Option<Value>,
    /// Evaluations per second, by network
    #[schemars(with = "Option<SpeedMeasure>")]
    speed: Option<Value>,
}

/// The file's text, and where its keys stand in it.
struct FileText<'a> {
    file: &'a Path,
    text: &'a str,
}

impl FileText<'_> {
    fn error(&self, Mistake { byte, message }: Mistake) -> ExperimentError {
        ExperimentError::Spec { at: Location::of_byte(self.file, self.text, byte), message }
    }

    fn toml_error(&self, error: &toml::de::Error) -> ExperimentError {
        let byte = error.span().map_or(0, |span| span.start);
        self.error(Mistake { byte, message: error.message().trim().replace('\n', ", ") })
    }
}

/// A setting that is wrong, in the table that stands at `path`.
fn wrong(document: &Document, path: &str, error: SettingError) -> Mistake {
    let key = match (path, error.key.as_str()) {
        (path, "") => path.to_owned(),
        ("", key) => key.to_owned(),
        (path, key) => format!("{path}.{key}"),
    };
    let byte = if error.key.is_empty() { document.byte_of_value(&key) } else { document.byte_of_key(&key) };
    Mistake { byte, message: error.message }
}

fn unreadable(document: &Document, error: ReadError) -> Mistake {
    let byte = if error.is_key { document.byte_of_key(&error.path) } else { document.byte_of_value(&error.path) };
    Mistake { byte, message: error.message }
}

/// A value with its place in the file.
fn spanned<T>(document: &Document, path: &str, value: T) -> Spanned<T> {
    let byte = document.byte_of_value(path);
    Spanned::new(byte..byte, value)
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
        let source = FileText { file, text: &text };
        let mut root = DeTable::parse(&text).map_err(|error| source.toml_error(&error))?;
        let scale = apply_scale(root.get_mut(), scale).map_err(|problem| source.error(problem))?;
        list_data(root.get_mut());
        let document = Document::new(root).map_err(|error| source.toml_error(&error))?;
        let experiment = checked(&document).map_err(|problem| source.error(problem))?;
        let name = match scale {
            None => experiment.name,
            Some(scale) => format!("{}-{scale}", experiment.name),
        };
        Ok(Experiment { file: file.to_path_buf(), name, text, ..experiment })
    }
}

/// The checked settings, without the file's path and text.
fn checked(document: &Document) -> Result<Experiment, Mistake> {
    let parsed: TomlFile = read(document.root(), "").map_err(|error| unreadable(document, error))?;
    let in_file = |error| wrong(document, "", error);
    let from_unit = match &parsed.from_unit {
        None => None,
        Some(unit) => Some(unit.parse::<ScoreUnit>().map_err(|message| {
            let byte = document.byte_of_value("from_unit");
            Mistake { byte, message: format!("from_unit: {message}") }
        })?),
    };
    check_name(&parsed.name).map_err(in_file)?;
    check_data(&parsed.data).map_err(in_file)?;
    check_seeds(&parsed.seeds).map_err(in_file)?;
    check_dataset(&parsed.dataset).map_err(in_file)?;
    let sweep = Sweep::read(parsed.sweep.as_ref()).map_err(|error| wrong(document, "sweep", error))?;
    check_size(document, &parsed, &sweep)?;
    let rows = expand_rows(document, &parsed, &sweep)?;
    let measure = read_measures(document, &parsed.measure, &rows, &parsed.seeds)?;
    let mut matches = None;
    if let Some(table) = &parsed.matches {
        let read = MatchMeasure::read(table).map_err(|error| unreadable(document, error))?;
        check_matches(&read, &rows, &parsed.seeds).map_err(|error| wrong(document, "match", error))?;
        matches = Some(read);
    }
    let mut equal_speed = None;
    if let Some(table) = &parsed.equal_speed {
        let read = EqualSpeedMeasure::read(table).map_err(|error| unreadable(document, error))?;
        if let Some(start) = rows.iter().find_map(|row| Some(row.start.as_ref()?.written())) {
            let message = "[equal_speed] and start cannot stand together: a network's neurons have one width";
            return Err(Mistake { byte: start.span().start, message: message.into() });
        }
        check_equal_speed(&read, &rows, parsed.sweep.is_some())
            .map_err(|error| wrong(document, "equal_speed", error))?;
        equal_speed = Some(read);
    }
    if let Some(published) = &parsed.published {
        check_published(published, &rows).map_err(|error| wrong(document, "published", error))?;
    }
    let book = matches.as_ref().and_then(|measure: &MatchMeasure| measure.options.openings.as_ref());
    let openings = book.map(|book| spanned(document, "match.openings", book.display().to_string()));
    let mut data = Vec::new();
    for (index, file) in parsed.data.into_iter().enumerate() {
        data.push(spanned(document, &format!("data.{index}"), file));
    }
    Ok(Experiment {
        file: PathBuf::new(),
        name: parsed.name,
        about: parsed.about,
        data,
        from_unit,
        evals: EvalOptions { eval_unit: parsed.eval_unit, eval_view: parsed.eval_view },
        dataset: parsed.dataset,
        published: parsed.published,
        seeds: parsed.seeds,
        results: parsed.results,
        train: parsed.train,
        rows,
        measure,
        equal_speed,
        matches,
        openings,
        text: String::new(),
    })
}

fn read_measures(
    document: &Document,
    tables: &MeasureTables,
    rows: &[ComparisonRow],
    seeds: &[Seed],
) -> Result<Measures, Mistake> {
    let mut measures = Measures::default();
    if let Some(table) = &tables.updates {
        let path = "measure.updates";
        let measure: SetMeasure = read(table, path).map_err(|error| unreadable(document, error))?;
        check_games(measure.games)
            .and_then(|()| check_sets(measure.sets.as_deref(), rows))
            .map_err(|error| wrong(document, path, error))?;
        measures.updates = Some(measure);
    }
    let of_networks = [
        ("measure.activity", &tables.activity, &mut measures.activity),
        ("measure.error", &tables.error, &mut measures.error),
    ];
    for (path, table, into) in of_networks {
        let Some(table) = table else { continue };
        let measure = NetMeasure::read(table, path).map_err(|error| unreadable(document, error))?;
        check_games(measure.limit.games)
            .and_then(|()| measure.choice.check(rows, seeds))
            .map_err(|error| wrong(document, path, error))?;
        *into = Some(measure);
    }
    if let Some(table) = &tables.speed {
        let path = "measure.speed";
        let measure = SpeedMeasure::read(table, path).map_err(|error| unreadable(document, error))?;
        let checked = measure.options.check().and_then(|()| measure.choice.check(rows, seeds));
        checked.map_err(|error| wrong(document, path, error))?;
        measures.speed = Some(measure);
    }
    Ok(measures)
}

/// Refuses more trainings than anyone means.
fn check_size(document: &Document, file: &TomlFile, sweep: &Sweep) -> Result<(), Mistake> {
    let mut trainings = sweep.size();
    let sets: usize = file.runs.iter().map(|table| table.sets.len()).sum();
    for factor in [file.seeds.len(), sets.max(1)] {
        trainings = trainings.and_then(|trainings| trainings.checked_mul(factor));
    }
    let count = match trainings {
        Some(trainings) if trainings <= MOST_RUNS => return Ok(()),
        Some(trainings) => format!("{trainings} trainings"),
        None => "more trainings than can be counted".to_owned(),
    };
    let message = format!("{count}; the limit is {MOST_RUNS}: sweep fewer values, or make several experiments");
    let key = if file.sweep.is_some() { "sweep" } else { "runs" };
    Err(wrong(document, key, SettingError::new("", message)))
}

/// Checks the shared settings and expands the `[[runs]]` tables into rows: at each point of the sweep, all tables in
/// order.
fn expand_rows(document: &Document, file: &TomlFile, sweep: &Sweep) -> Result<Vec<ComparisonRow>, Mistake> {
    let of_method = |message: String| {
        let key = if sweep.has_method() { "sweep.method" } else { "runs" };
        Mistake { byte: document.byte_of_key(key), message }
    };
    let mut rows: Vec<ComparisonRow> = Vec::new();
    let points = sweep.points();
    let mut methods = Vec::new();
    for point in &points {
        for table in &file.runs {
            methods.push(table.method_at(point).map_err(of_method)?);
            methods.extend(table.second.as_ref().map(|second| second.method));
        }
    }
    if let Err(error) = file.train.validate(&methods, &|_| true) {
        return Err(wrong(document, "train", setting_error(error)));
    }
    for point in &points {
        for (index, table) in file.runs.iter().enumerate() {
            let path = format!("runs.{index}");
            let context = RowContext { document, path, shared: &file.train, dataset: &file.dataset };
            let method = table.method_at(point).map_err(of_method)?;
            table.add_rows(point, method, &context, &mut rows)?;
        }
    }
    compare_lone_rows(&mut rows);
    if rows.is_empty() {
        let message = "no runs; write [[runs]] with method = \"eval\" and sets = [\"piece\"]";
        return Err(wrong(document, "runs", SettingError::new("", message)));
    }
    Ok(rows)
}

fn setting_error(error: TrainError) -> SettingError {
    match error {
        TrainError::Setting(error) => error,
        other => SettingError::new("", other.to_string()),
    }
}

/// Where a `[[runs]]` table stands, and the settings and samples of all runs.
struct RowContext<'a> {
    document: &'a Document,
    path: String,
    shared: &'a TrainSettings,
    dataset: &'a Dataset,
}

impl RowContext<'_> {
    /// A mistake in a key of the table.
    fn problem(&self, key: &str, message: impl Into<String>) -> Mistake {
        let byte = self.document.byte_of_value(&format!("{}.{key}", self.path));
        Mistake { byte, message: message.into() }
    }

    /// A mistake in a training setting, where it is written: in the row, the sweep or the shared table.
    fn setting_problem(&self, error: SettingError) -> Mistake {
        let tables = [format!("{}.train", self.path), "sweep".to_owned(), "train".to_owned()];
        for table in &tables {
            if self.document.contains(&format!("{table}.{}", error.key)) {
                return wrong(self.document, table, error);
            }
        }
        let table = tables.iter().find(|table| self.document.contains(table)).map_or("train", String::as_str);
        wrong(self.document, table, error)
    }
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

    /// Adds the table's rows at a point of the sweep.
    fn add_rows(
        &self,
        point: &SweepPoint,
        method: Method,
        context: &RowContext<'_>,
        rows: &mut Vec<ComparisonRow>,
    ) -> Result<(), Mistake> {
        let overrides = point.overrides(self.train.as_ref()).map_err(|error| context.setting_problem(error))?;
        let second = self.checked_second(method, context)?;
        let in_dataset = |error| wrong(context.document, &format!("{}.dataset", context.path), error);
        self.dataset.or(context.dataset.of(method)).check(method).map_err(in_dataset)?;
        let mut methods = vec![method];
        methods.extend(second.map(|second| second.method));
        let settings = match &overrides {
            None => context.shared.clone(),
            Some(overrides) => {
                with_overrides(context.shared, overrides, &methods).map_err(|error| context.setting_problem(error))?
            }
        };
        let group = point.describe();
        for (index, set) in self.sets.iter().enumerate() {
            let set = spanned(context.document, &format!("{}.sets.{index}", context.path), set.clone());
            let name = self.label(&set, context)?;
            let label = if group.is_empty() { name.clone() } else { format!("{name}, {group}") };
            self.check_label(&label, &set, method, context, rows)?;
            let start = self.start(&set, &group, context, rows)?;
            let settings = settings.clone();
            let overrides = overrides.clone();
            let group = group.clone();
            let dataset = self.dataset.clone();
            rows.push(ComparisonRow { label, name, group, set, method, start, second, settings, dataset, overrides });
        }
        Ok(())
    }

    /// The start of the runs of `set`'s row in `group`; `rows` are the rows before it.
    fn start(
        &self,
        set: &Spanned<String>,
        group: &str,
        context: &RowContext<'_>,
        rows: &[ComparisonRow],
    ) -> Result<Option<RowStart>, Mistake> {
        let written = |key: &str, text: String| spanned(context.document, &format!("{}.{key}", context.path), text);
        let Some(start_row) = &self.start_row else {
            return Ok(self.start.as_ref().map(|start| RowStart::Network(written("start", start.clone()))));
        };
        let problem = |message: String| Err(context.problem("start_row", message));
        if self.start.is_some() {
            return problem("start and start_row cannot stand together: a run begins once".into());
        }
        let name = start_row.replace(SET_PLACEHOLDER, set.get_ref());
        let is_called = |row: &&ComparisonRow| row.is_called(&name);
        let found = rows.iter().filter(is_called).find(|row| row.group == group);
        match found.or_else(|| rows.iter().filter(is_called).find(|row| row.group.is_empty())) {
            Some(row) => Ok(Some(RowStart::Row {
                label: row.label.clone(),
                method: row.method,
                written: written("start_row", name),
            })),
            None if rows.is_empty() => {
                problem(format!("start_row: no row stands before this one, so none is called '{name}'"))
            }
            None => problem(format!("start_row: no earlier row is called '{name}'; there are {}", labels(rows))),
        }
    }

    /// The second method, which must be another than the first.
    fn checked_second(&self, method: Method, context: &RowContext<'_>) -> Result<Option<RowSecond>, Mistake> {
        let Some(second) = self.second else { return Ok(None) };
        if second.method == method {
            let message = format!("the second method must be another than {}", method.name());
            return Err(context.problem("second", message));
        }
        if !(second.weight.is_finite() && second.weight > 0.0) {
            let message = format!("the weight of the second method must be above 0, not {}", second.weight);
            return Err(context.problem("second", message));
        }
        Ok(Some(second))
    }

    /// The label of the row of `set`.
    fn label(&self, set: &Spanned<String>, context: &RowContext<'_>) -> Result<String, Mistake> {
        let Some(label) = &self.label else { return Ok(set.get_ref().clone()) };
        let written = label.trim();
        if written.is_empty() || written.contains(char::is_control) {
            return Err(context.problem("label", "a label must be one line of text"));
        }
        if self.sets.len() > 1 && !written.contains(SET_PLACEHOLDER) {
            let message = "a label for several sets must contain {set}, which stands for the set's name, so that rows \
                           have different labels";
            return Err(context.problem("label", message));
        }
        Ok(written.replace(SET_PLACEHOLDER, set.get_ref()))
    }

    /// Checks that no row has the label already, except one of the same set by another method.
    fn check_label(
        &self,
        label: &str,
        set: &Spanned<String>,
        method: Method,
        context: &RowContext<'_>,
        rows: &[ComparisonRow],
    ) -> Result<(), Mistake> {
        let problem = |message: String| match self.label {
            Some(_) => Err(context.problem("label", message)),
            None => Err(Mistake { byte: set.span().start, message }),
        };
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
                let first = row.set.get_ref();
                let second = set.get_ref();
                return problem(format!("the label '{label}' belongs to two sets, '{first}' and '{second}'"));
            }
        }
        Ok(())
    }
}

/// The shared settings with the overrides of a `[[runs]]` table, checked for its methods.
fn with_overrides(
    shared: &TrainSettings,
    overrides: &Map<String, Value>,
    methods: &[Method],
) -> Result<TrainSettings, SettingError> {
    let mut merged = serde_json::to_value(shared).map_err(|error| SettingError::new("", error.to_string()))?;
    if let Value::Object(merged) = &mut merged {
        merge(merged, overrides);
    }
    let settings: TrainSettings = read(&merged, "").map_err(|error| SettingError::new(error.path, error.message))?;
    // Keys in a configuration have dots, as in `recipe.warm_up`.
    let is_overridden = |key: &str| overrides.contains_key(key.split('.').next().unwrap_or(key));
    settings.validate(methods, &is_overridden).map(|()| settings).map_err(setting_error)
}

/// Merges tables key by key; any other value replaces the old one.
fn merge(table: &mut Map<String, Value>, overrides: &Map<String, Value>) {
    for (key, value) in overrides {
        match (table.get_mut(key), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => merge(inner, value),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}
