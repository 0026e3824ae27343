//! The `[[runs]]` tables of an experiment file, and the rows of the comparison that they become at each point of a
//! sweep.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::checks::{Mistake, labels};
use super::spec::{ComparisonRow, Dataset, DatasetKeys, RowSecond, RowStart};
use super::sweep::{Sweep, SweepPoint};
use super::toml_file::{TomlFile, spanned, wrong};
use crate::data::Method;
use crate::json::{from_value, to_value};
use crate::record::OwnFigures;
use crate::settings::{Document, SettingError};
use crate::train::{TrainError, TrainSettings};

/// Rows of the comparison, sets × seeds by one method; any number of these tables
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsTable {
    /// How the rows' networks learn; left out if the sweep lists methods
    #[serde(default)]
    method: Option<Method>,
    /// Names, paths or expressions; a file beside the experiment's takes precedence
    pub(super) sets: Vec<String>,
    /// The rows' name in the results; must contain {set} for several sets, as in "{set}, l1 128" [default: the set]
    label: Option<String>,
    /// Network to begin with, on the set or one with a block in common: a file or a run's folder [default: random weights]
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

/// Checks the shared settings and expands the `[[runs]]` tables into rows: at each point of the sweep, all tables in
/// order.
pub(super) fn expand_rows(document: &Document, file: &TomlFile, sweep: &Sweep) -> Result<Vec<ComparisonRow>, Mistake> {
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
            rows.push(ComparisonRow {
                label,
                name,
                group,
                set,
                method,
                start,
                second,
                settings,
                dataset,
                overrides,
                own: OwnFigures::default(),
                repeats: None,
                may_fail: false,
            });
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
    let mut merged = to_value(shared).map_err(|error| SettingError::new("", error.to_string()))?;
    if let Value::Object(merged) = &mut merged {
        merge(merged, overrides);
    }
    let settings: TrainSettings =
        from_value(&merged, "").map_err(|error| SettingError::new(error.path, error.message))?;
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
