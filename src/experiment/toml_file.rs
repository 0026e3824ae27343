//! Reads an experiment file: TOML in, checked settings out, with errors that name file, line and column.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::ExperimentError;
use super::checks::{
    Mistake, check_data, check_dataset, check_games, check_name, check_published, check_seeds, check_sets,
};
use super::equal_speed::{EqualSpeedMeasure, check_equal_speed};
use super::learning_loop::{LearningLoop, LoopTerms, check_loop};
use super::match_settings::{MatchMeasure, check_matches};
use super::own_figures::add_own_figures;
use super::runs_table::{RunsTable, expand_rows};
use super::scale::apply_scale;
use super::scaling::check_scaling;
use super::search::{Search, check_search};
use super::spec::{ComparisonRow, Dataset, Experiment, Location, Measures, NetMeasure, SetMeasure, SpeedMeasure};
use super::steps::{NETWORK_MEASURES, SelfPlaySteps};
use super::sweep::{MOST_RUNS, Sweep};
use crate::data::{EvalOptions, EvalUnit, EvalView, ScoreUnit};
use crate::json::{ReadError, from_value};
use crate::record::{Published, Results, Scaling};
use crate::settings::{Document, SettingError, unknown_field};
use crate::train::TrainSettings;
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
    /// the first; required but for a loop, which makes its own
    // One file stands here as a list of one.
    #[serde(default)]
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
    pub(super) dataset: Dataset,
    /// Every row is trained once per seed, as in [1, 2, 3]
    seeds: Vec<Seed>,
    /// Folder of the results, which go to a folder of the experiment's name in it
    #[serde(default = "default_results")]
    results: PathBuf,
    /// The settings of all trainings
    pub(super) train: TrainSettings,
    /// A table of lists with keys as in [train], or method: every combination of their values is run, as in l1 =
    /// [128, 256]
    #[serde(default)]
    sweep: Option<Map<String, Value>>,
    /// The rows of the comparison
    pub(super) runs: Vec<RunsTable>,
    /// What to measure
    #[serde(default)]
    measure: MeasureTables,
    /// With it every set is trained once more, at the width at which it is as fast as the reference
    #[serde(default)]
    #[schemars(with = "Option<EqualSpeedMeasure>")]
    equal_speed: Option<Value>,
    /// With it every row also learns from shares of its training games, and the report says what more data would change
    #[serde(default)]
    scaling: Option<Scaling>,
    /// Without it no games are played
    #[serde(default, rename = "match")]
    #[schemars(with = "Option<MatchMeasure>")]
    matches: Option<Value>,
    /// With it the experiment searches for a better set: `fsbench search`
    #[serde(default)]
    #[schemars(with = "Option<Search>")]
    pub(super) search: Option<Value>,
    /// With it the experiment makes its own data: `fsbench loop`
    #[serde(default, rename = "loop")]
    learning_loop: Option<LoopTerms>,
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

/// The tables of [`Measures`], by name.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct MeasureTables(Map<String, Value>);

const UPDATES: &str = "updates";
const SPEED: &str = "speed";

impl JsonSchema for MeasureTables {
    fn schema_name() -> Cow<'static, str> {
        "MeasureTables".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut tables = Map::new();
        let mut add = |name: &str, about: &str, table: Schema| {
            tables.insert(name.to_owned(), json!({ "description": about, "anyOf": [table, { "type": "null" }] }));
        };
        add(UPDATES, "Rows updated per move, by feature set", generator.subschema_for::<SetMeasure>());
        for measure in &NETWORK_MEASURES {
            add(measure.name, measure.about, generator.subschema_for::<NetMeasure>());
        }
        add(SPEED, "Evaluations per second, by network", generator.subschema_for::<SpeedMeasure>());
        json_schema!({ "description": "What to measure", "type": "object", "properties": tables })
    }
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
pub(super) fn wrong(document: &Document, path: &str, error: SettingError) -> Mistake {
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
pub(super) fn spanned<T>(document: &Document, path: &str, value: T) -> Spanned<T> {
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
    let mut parsed: TomlFile = from_value(document.root(), "").map_err(|error| unreadable(document, error))?;
    let search = match &parsed.search {
        None => None,
        Some(table) => {
            let place = spanned(document, "search", ());
            Some(Search::read(table, place).map_err(|error| unreadable(document, error))?)
        }
    };
    // No training sees the games that a search keeps.
    let kept = search.as_ref().map_or(0.0, |search| search.terms.kept);
    let validation = parsed.train.validation;
    if (0.0..1.0).contains(&validation) && validation + kept >= 1.0 {
        let message = format!(
            "final = {kept} and [train] validation = {validation} leave no games to learn from: together they must be \
             below 1"
        );
        return Err(wrong(document, "search", SettingError::new("", message)));
    }
    parsed.train.validation += kept;
    let in_file = |error| wrong(document, "", error);
    let from_unit = match &parsed.from_unit {
        None => None,
        Some(unit) => Some(unit.parse::<ScoreUnit>().map_err(|message| {
            let byte = document.byte_of_value("from_unit");
            Mistake { byte, message: format!("from_unit: {message}") }
        })?),
    };
    check_name(&parsed.name).map_err(in_file)?;
    if parsed.learning_loop.is_none() {
        check_data(&parsed.data).map_err(in_file)?;
    }
    check_seeds(&parsed.seeds).map_err(in_file)?;
    check_dataset(&parsed.dataset).map_err(in_file)?;
    let sweep = Sweep::read(parsed.sweep.as_ref()).map_err(|error| wrong(document, "sweep", error))?;
    check_size(document, &parsed, &sweep)?;
    let mut rows = expand_rows(document, &parsed, &sweep)?;
    let measure = read_measures(document, &parsed.measure, &rows, &parsed.seeds)?;
    let mut matches = None;
    if let Some(table) = &parsed.matches {
        let mut read = MatchMeasure::read(table).map_err(|error| unreadable(document, error))?;
        if parsed.learning_loop.is_some() {
            read.options.pairs.get_or_insert(LoopTerms::DEFAULT_PAIRS);
        }
        check_matches(&read, &rows, &parsed.seeds, search.is_some() || parsed.learning_loop.is_some())
            .map_err(|error| wrong(document, "match", error))?;
        matches = Some(read);
    }
    let mut equal_speed = None;
    if let Some(table) = &parsed.equal_speed {
        let read = EqualSpeedMeasure::read(table).map_err(|error| unreadable(document, error))?;
        if let Some(start) = rows.iter().find_map(|row| Some(row.start.as_ref()?.written())) {
            let message = "[equal_speed] and start cannot stand together: a network's neurons have one width";
            return Err(Mistake { byte: start.span().start, message: message.into() });
        }
        check_equal_speed(&read, &rows, parsed.sweep.is_some(), search.is_some())
            .map_err(|error| wrong(document, "equal_speed", error))?;
        equal_speed = Some(read);
    }
    let reference = equal_speed.as_ref().map(|measure: &EqualSpeedMeasure| measure.terms.reference.as_deref());
    if let Some(scaling) = &parsed.scaling {
        check_scaling(scaling, &parsed.seeds).map_err(|error| wrong(document, "scaling", error))?;
    }
    add_own_figures(&mut rows, measure.speed.as_ref(), matches.as_ref(), reference)
        .map_err(|(table, error)| wrong(document, table, error))?;
    if let Some(search) = &search {
        let seed = parsed.seeds.first().copied().unwrap_or_default();
        check_search(search, &parsed.train, &rows, matches.as_ref(), parsed.sweep.is_some(), seed)
            .map_err(|error| wrong(document, "search", error))?;
    }
    let mut learning_loop = None;
    if let Some(terms) = parsed.learning_loop.take() {
        let others = [
            ("data", !parsed.data.is_empty()),
            ("from_unit", parsed.from_unit.is_some()),
            ("[sweep]", parsed.sweep.is_some()),
            ("[measure]", !parsed.measure.0.is_empty()),
            ("[equal_speed]", equal_speed.is_some()),
            ("[scaling]", parsed.scaling.is_some()),
            ("[search]", search.is_some()),
            ("[published]", parsed.published.is_some()),
        ];
        check_loop(&terms, &rows, &parsed.seeds, matches.as_ref(), &others)
            .map_err(|error| wrong(document, "loop", error))?;
        let place = spanned(document, "loop", ());
        let book = terms.openings.as_ref();
        let openings = book.map(|book| spanned(document, "loop.openings", book.display().to_string()));
        learning_loop = Some(LearningLoop::new(terms, place, openings));
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
        scaling: parsed.scaling,
        matches,
        openings,
        book_part: None,
        search,
        screens: None,
        tree: None,
        learning_loop,
        self_play: SelfPlaySteps::default(),
        loop_record: None,
        text: String::new(),
    })
}

fn read_measures(
    document: &Document,
    MeasureTables(tables): &MeasureTables,
    rows: &[ComparisonRow],
    seeds: &[Seed],
) -> Result<Measures, Mistake> {
    let mut measures = Measures::default();
    for (name, table) in tables {
        let path = &format!("measure.{name}");
        let unreadable = |error| unreadable(document, error);
        let wrong = |error| wrong(document, path, error);
        if name == UPDATES {
            let measure: SetMeasure = from_value(table, path).map_err(unreadable)?;
            check_games(measure.games).map_err(wrong)?;
            check_sets(measure.sets.as_deref(), rows).map_err(wrong)?;
            measures.updates = Some(measure);
        } else if name == SPEED {
            let measure = SpeedMeasure::read(table, path).map_err(unreadable)?;
            measure.options.check().map_err(wrong)?;
            measure.choice.check(rows, seeds).map_err(wrong)?;
            measures.speed = Some(measure);
        } else if let Some(known) = NETWORK_MEASURES.iter().find(|known| known.name == name) {
            let measure = NetMeasure::read(table, path).map_err(unreadable)?;
            check_games(measure.limit.games).map_err(wrong)?;
            measure.choice.check(rows, seeds).map_err(wrong)?;
            measures.networks.insert(known.name, measure);
        } else {
            let mut names = vec![UPDATES, SPEED];
            names.extend(NETWORK_MEASURES.iter().map(|known| known.name));
            return Err(unreadable(ReadError::of_key("measure", name, unknown_field(name, &names))));
        }
    }
    Ok(measures)
}

/// Refuses more trainings than anyone means.
fn check_size(document: &Document, file: &TomlFile, sweep: &Sweep) -> Result<(), Mistake> {
    let mut trainings = sweep.size();
    let sets: usize = file.runs.iter().map(|table| table.sets.len()).sum();
    let shares = file.scaling.as_ref().map_or(1, |scaling| scaling.shares.len().max(1));
    for factor in [file.seeds.len(), sets.max(1), shares] {
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
