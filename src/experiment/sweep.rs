//! `[sweep]`: settings with several values each. Every combination of their values is a grid point, at which every row
//! is trained.

use serde_json::{Map, Value};

use crate::data::Method;
use crate::settings::SettingError;

/// Largest number of trainings that an experiment may plan; more are taken for a mistake.
pub(super) const MOST_RUNS: usize = 10_000;

/// The swept settings with their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sweep(Vec<SweepAxis>);

/// A setting and the values that it takes.
#[derive(Clone, Debug, PartialEq)]
struct SweepAxis {
    /// The setting's key in `[train]`, with the names of the tables around it: `["recipe", "warm_up"]`.
    path: Vec<String>,
    values: Vec<Value>,
}

/// One value of every swept setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SweepPoint(Vec<(Vec<String>, Value)>);

/// A swept key that is not a training setting.
const METHOD: &str = "method";

impl Sweep {
    /// Reads the table of an experiment file: arrays of values, in subtables for settings that are in subtables.
    pub(super) fn read(table: Option<&Map<String, Value>>) -> Result<Sweep, SettingError> {
        let mut sweep = Sweep::default();
        if let Some(table) = table {
            sweep.add_table(&mut Vec::new(), table)?;
        }
        Ok(sweep)
    }

    fn add_table(&mut self, path: &mut Vec<String>, table: &Map<String, Value>) -> Result<(), SettingError> {
        for (key, value) in table {
            path.push(key.clone());
            let name = path.join(".");
            match value {
                Value::Object(inner) => self.add_table(path, inner)?,
                Value::Array(values) if !values.is_empty() => {
                    if let Some(twice) = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
                        let message = format!("{name} has the value {} twice", twice.1);
                        return Err(SettingError::new(name, message));
                    }
                    self.0.push(SweepAxis { path: path.clone(), values: values.clone() });
                }
                _ => {
                    let example = if name == "hidden" { "[[16], [32]]" } else { "[128, 256]" };
                    let message = format!("{name} must list its values, as in {name} = {example}");
                    return Err(SettingError::new(name, message));
                }
            }
            path.pop();
        }
        Ok(())
    }

    /// Whether the method is swept.
    pub(super) fn has_method(&self) -> bool {
        self.0.iter().any(|axis| axis.path[..] == [METHOD])
    }

    /// How many grid points there are; `None` = more than a number can hold.
    pub(super) fn size(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |size, axis| size.checked_mul(axis.values.len()))
    }

    /// All grid points; the last setting varies fastest.
    pub(super) fn points(&self) -> Vec<SweepPoint> {
        let mut points = vec![SweepPoint::default()];
        for axis in &self.0 {
            let with = |point: &SweepPoint, value: &Value| {
                let mut settings = point.0.clone();
                settings.push((axis.path.clone(), value.clone()));
                SweepPoint(settings)
            };
            points = points.iter().flat_map(|point| axis.values.iter().map(|value| with(point, value))).collect();
        }
        points
    }
}

impl SweepPoint {
    /// The training settings of the point, without the method.
    fn settings(&self) -> impl Iterator<Item = &(Vec<String>, Value)> {
        self.0.iter().filter(|(path, _)| path[..] != [METHOD])
    }

    /// The method, if the sweep varies it.
    pub(super) fn method(&self) -> Result<Option<Method>, String> {
        let Some((_, value)) = self.0.iter().find(|(path, _)| path[..] == [METHOD]) else { return Ok(None) };
        match value.as_str() {
            Some("eval") => Ok(Some(Method::Eval)),
            Some("pqr") => Ok(Some(Method::Pqr)),
            _ => Err(format!("method {value} must be \"eval\" or \"pqr\"")),
        }
    }

    /// Adds the point's settings to a row's.
    pub(super) fn overrides(
        &self,
        row: Option<&Map<String, Value>>,
    ) -> Result<Option<Map<String, Value>>, SettingError> {
        let mut overrides = row.cloned().unwrap_or_default();
        for (path, value) in self.settings() {
            let name = path.join(".");
            let Some((key, tables)) = path.split_last() else { continue };
            let mut table = &mut overrides;
            for inner in tables {
                let entry = table.entry(inner.clone()).or_insert_with(|| Map::new().into());
                let Value::Object(inner) = entry else {
                    let message = format!("{name}: `{inner}` is not a table");
                    return Err(SettingError::new(inner.as_str(), message));
                };
                table = inner;
            }
            if table.insert(key.clone(), value.clone()).is_some() {
                let message = format!("{name} is both swept and set in `train` of a row");
                return Err(SettingError::new(name, message));
            }
        }
        Ok((!overrides.is_empty()).then_some(overrides))
    }

    /// The values in words, as in `l1 128, lambda 0.8`; empty without swept settings.
    pub(super) fn describe(&self) -> String {
        let words = |(path, value): &(Vec<String>, Value)| {
            format!("{} {}", path.last().map(String::as_str).unwrap_or_default(), value_text(value))
        };
        self.settings().map(words).collect::<Vec<_>>().join(", ")
    }
}

/// A value as a label shows it: `128`, `screlu`, `32-16` for a list, `none` for an empty one.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".into(),
        Value::Array(values) => values.iter().map(value_text).collect::<Vec<_>>().join("-"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Map<String, Value> {
        toml::from_str(text).expect("TOML")
    }

    fn sweep(text: &str) -> Result<Sweep, String> {
        Sweep::read(Some(&table(text))).map_err(|problem| problem.message)
    }

    #[test]
    fn every_combination_is_a_point() {
        let grid = sweep("hidden = [[16], []]\nl1 = [8, 16, 32]\n[eval_loss]\nlambda = [0.8]").expect("a sweep");
        let points: Vec<String> = grid.points().iter().map(SweepPoint::describe).collect();
        let mut expected = Vec::new();
        for hidden in ["16", "none"] {
            for l1 in [8, 16, 32] {
                // Tables come in the order of their keys.
                expected.push(format!("lambda 0.8, hidden {hidden}, l1 {l1}"));
            }
        }
        assert_eq!((grid.size(), points), (Some(6), expected));
        let row = table("eval_loss = { power = 2.0 }");
        let overrides = grid.points()[0].overrides(Some(&row)).expect("no conflict").expect("settings");
        let expected = table("hidden = [16]\nl1 = 8\n[eval_loss]\npower = 2.0\nlambda = 0.8");
        assert_eq!(overrides, expected);
        assert_eq!(Sweep::default().points(), [SweepPoint::default()]);
    }

    #[test]
    fn a_method_is_no_setting() {
        let grid = sweep("method = [\"eval\", \"pqr\"]").expect("a sweep");
        let methods: Vec<_> = grid.points().iter().map(SweepPoint::method).collect();
        assert_eq!(methods, [Ok(Some(Method::Eval)), Ok(Some(Method::Pqr))]);
        assert!(grid.points().iter().all(|point| point.describe().is_empty() && point.overrides(None) == Ok(None)));
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |text: &str, expected: &str| {
            let message = sweep(text).expect_err(text);
            assert!(message.contains(expected), "{message}");
        };
        refused("l1 = 128", "l1 must list its values");
        refused("l1 = []", "l1 must list its values");
        refused("l1 = [8, 16, 8]", "l1 has the value 8 twice");
        let point = &sweep("l1 = [8]").expect("a sweep").points()[0];
        let row = table("l1 = 16");
        assert!(point.overrides(Some(&row)).expect_err("a conflict").message.contains("l1 is both swept and set"));
        assert!(sweep("method = [\"both\"]").expect("a sweep").points()[0].method().is_err());
        let text: String = (0..64).map(|key| format!("k{key} = [1, 2]\n")).collect();
        assert_eq!(sweep(&text).expect("a sweep").size(), None);
    }
}
