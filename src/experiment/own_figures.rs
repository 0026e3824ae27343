//! Figures of the user's own engine in an experiment file: `own_features_ns` of `[measure.speed]` and `cost` of
//! `[match]`. Their keys are labels of rows or sets; a row's label counts before its set.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::labels;
use super::match_settings::MatchMeasure;
use super::spec::{ComparisonRow, RepeatedRow, SpeedMeasure};
use crate::measure::OwnSpeeds;
use crate::record::OwnFigures;
use crate::settings::SettingError;

/// Figures by row or set.
pub type FiguresByRow = BTreeMap<String, f64>;

/// The keys of `[measure.speed]` that are not of the timing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct OwnFeatures {
    /// Nanoseconds a move in which your own engine finds the features of both perspectives, by row or set, as in {
    /// "piece" = 30 }: they replace fsbench's own in speeds, equal cost and [equal_speed]
    pub own_features_ns: FiguresByRow,
}

/// A table of the file, and a mistake in it.
pub(super) type WrongTable = (&'static str, SettingError);

const SPEED: &str = "measure.speed";
const MATCH: &str = "match";
const FEATURES_KEY: &str = "own_features_ns";
const COST_KEY: &str = "cost";

/// Gives every row its figures.
pub(super) fn add_own_figures(
    rows: &mut [ComparisonRow],
    speed: Option<&SpeedMeasure>,
    matches: Option<&MatchMeasure>,
    equal_speed_reference: Option<Option<&str>>,
) -> Result<(), WrongTable> {
    let none = FiguresByRow::new();
    let features = speed.map_or(&none, |measure| &measure.own.own_features_ns);
    let costs = matches.map_or(&none, |measure| &measure.terms.cost);
    let in_speed = |error| (SPEED, error);
    let in_match = |error| (MATCH, error);
    check_figures(FEATURES_KEY, features, rows, |ns| ns >= 0.0, "nanoseconds, at least 0").map_err(in_speed)?;
    check_figures(COST_KEY, costs, rows, |cost| cost > 0.0, "a cost above 0, as in 1.15").map_err(in_match)?;
    for row in rows.iter_mut() {
        row.own = OwnFigures { features_ns: figure(features, row), node_cost: figure(costs, row) };
    }
    match matches {
        Some(matches) if !costs.is_empty() => {
            check_costs(rows, matches, equal_speed_reference.is_some()).map_err(in_match)?;
            check_reference_of_widths(rows, equal_speed_reference).map_err(in_match)
        }
        _ => Ok(()),
    }
}

/// The figure of a row: by its label, by its label without the swept settings, or by its set.
fn figure(figures: &FiguresByRow, row: &ComparisonRow) -> Option<f64> {
    let names = [&row.label, &row.name, row.set.get_ref()];
    names.into_iter().find_map(|name| figures.get(name)).copied()
}

/// Checks that every figure belongs to a row and has a possible value.
fn check_figures(
    key: &str,
    figures: &FiguresByRow,
    rows: &[ComparisonRow],
    is_possible: impl Fn(f64) -> bool,
    wanted: &str,
) -> Result<(), SettingError> {
    for (name, value) in figures {
        let problem = |message: String| Err(SettingError::new(format!("{key}.{name}"), message));
        if !rows.iter().any(|row| row.is_called(name)) {
            return problem(format!(
                "{key}: no run is called '{name}' or uses a set of that name; the experiment has {}",
                labels(rows)
            ));
        }
        if !(value.is_finite() && is_possible(*value)) {
            return problem(format!("{key}: '{name}' needs {wanted}, not {value}"));
        }
    }
    Ok(())
}

/// Whether a row is the first of its comparison, whose node costs 1.
fn is_first(row: &ComparisonRow, rows: &[ComparisonRow]) -> bool {
    let first = rows.iter().find(|other| (other.method, &other.group) == (row.method, &row.group));
    first.is_some_and(|first| first.label == row.label)
}

/// Checks that every cost has an effect, and that no row has two figures.
fn check_costs(rows: &[ComparisonRow], matches: &MatchMeasure, has_equal_speed: bool) -> Result<(), SettingError> {
    if matches.terms.equal_cost.is_none() && !has_equal_speed {
        let message = "cost has no effect without equal_cost or [equal_speed]; give equal_cost = 5000 (nodes per move \
                       of the reference)";
        return Err(SettingError::new(COST_KEY, message));
    }
    for row in rows {
        let Some(cost) = row.own.node_cost else { continue };
        let problem = |message: String| Err(SettingError::new(COST_KEY, message));
        let label = &row.label;
        if is_first(row, rows) {
            if cost != 1.0 {
                return problem(format!(
                    "cost: '{label}' is the first set, against whose node the others' cost is given: it costs 1, not \
                     {cost}"
                ));
            }
            continue;
        }
        if row.own.features_ns.is_some() {
            return problem(format!(
                "'{label}' has a figure in cost and one in own_features_ns of [measure.speed]: the cost of a node \
                 replaces all, also the time of finding features; give one of them"
            ));
        }
        if let Some(opponent) = matches.opponent(row, rows)
            && node_cost(opponent, rows).is_none()
        {
            return problem(format!(
                "cost: '{label}' plays '{}', which is not the first set and has no cost: give its cost, too",
                opponent.label
            ));
        }
    }
    Ok(())
}

/// Costs are given against the first set, so widths of equal speed are those at which sets cost as much as that set.
fn check_reference_of_widths(rows: &[ComparisonRow], reference: Option<Option<&str>>) -> Result<(), SettingError> {
    let Some(Some(reference)) = reference else { return Ok(()) };
    let named = rows.iter().filter(|row| row.is_called(reference));
    for row in named {
        if !is_first(row, rows) {
            let message = format!(
                "cost gives a node's cost against the first set's, but the reference of [equal_speed] is \
                 '{reference}': leave it out, or give own_features_ns in [measure.speed]"
            );
            return Err(SettingError::new(COST_KEY, message));
        }
    }
    Ok(())
}

/// The cost of a row's node by the user's figures; `None` if it must be measured.
fn node_cost(row: &ComparisonRow, rows: &[ComparisonRow]) -> Option<f64> {
    let of_first = is_first(row, rows).then_some(1.0);
    row.own.node_cost.or(of_first)
}

/// The figures that a comparison of two rows goes by: both costs of a node or neither, and the times of finding
/// features where these count.
pub(super) fn figures_of_pair(pair: [&ComparisonRow; 2], rows: &[ComparisonRow]) -> [OwnFigures; 2] {
    let has_cost = pair.iter().any(|row| row.own.node_cost.is_some() && !is_first(row, rows));
    if has_cost && let [Some(first), Some(second)] = pair.map(|row| node_cost(row, rows)) {
        return [first, second].map(|cost| OwnFigures { features_ns: None, node_cost: Some(cost) });
    }
    pair.map(|row| OwnFigures { features_ns: row.own.features_ns, node_cost: None })
}

/// The figures that the speed of a row beside its reference goes by.
pub(super) fn own_speeds(row: &ComparisonRow, reference: &ComparisonRow, rows: &[ComparisonRow]) -> OwnSpeeds {
    // At another width, a cost of the row's own width has become a factor of speeds.
    if let Some(RepeatedRow { scale: Some(scale), .. }) = row.repeats {
        return OwnSpeeds { scale: Some(scale), ..OwnSpeeds::default() };
    }
    let pair = figures_of_pair([row, reference], rows);
    match pair.map(|own| own.node_cost) {
        [Some(own), Some(of_reference)] => OwnSpeeds { node_cost: Some(own / of_reference), ..OwnSpeeds::default() },
        _ => OwnSpeeds { features_ns: pair.map(|own| own.features_ns), ..OwnSpeeds::default() },
    }
}
