//! `[match]`: which networks play which, and under what conditions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checks::{NetworkChoice, labels};
use super::own_figures::FiguresByRow;
use super::spec::ComparisonRow;
use crate::data::Method;
use crate::json::ReadError;
use crate::play::MatchOptions;
use crate::settings::{SettingError, TableParts, check_all};
use crate::units::Seed;

/// Elo of every chosen network against the reference set's network of its method and seed; nodes, equal_cost or both
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct MatchMeasure {
    #[schemars(flatten)]
    pub terms: MatchTerms,
    #[schemars(flatten)]
    pub choice: NetworkChoice,
    #[schemars(flatten)]
    pub options: MatchOptions,
}

/// The keys of `[match]` that a match by `fsbench match` does not have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct MatchTerms {
    /// Name or label of the set that the others play [default: each method's first]
    pub reference: Option<String>,
    /// Method of the reference: networks of all methods play its networks [default: the method of the row that plays]
    pub reference_method: Option<Method>,
    /// Play at equal nodes: so many per move
    pub nodes: Option<u64>,
    /// Play at equal processor time: so many nodes per move of the reference
    pub equal_cost: Option<u64>,
    /// How much cost weighs at equal cost: a set whose nodes cost twice as much gets 0.5^cost_weight of the nodes. Below 1
    /// where twice the nodes are worth less to your engine than in these short searches [default: 1, equal processor
    /// time]
    pub cost_weight: Option<f64>,
    /// A node's cost in your own engine against the first set's, by row or set, as in { "set" = 1.15 }: it replaces all
    /// that equal cost and [equal_speed] measure
    pub cost: FiguresByRow,
    /// Play until half the 95% interval is at most this, in Elo; then `pairs` is 10,000 by default, as far as the
    /// openings go
    pub half_width: Option<f64>,
    /// Play a match in shards of so many pairs, which several processes share (`fsbench work`); the result is the same
    /// [default: the whole match is one step]
    pub shard_pairs: Option<u64>,
}

impl MatchMeasure {
    /// Most pairs per match where `half_width` is given.
    pub const DEFAULT_MOST_PAIRS: u64 = 10_000;

    /// Reads the table.
    pub(super) fn read(table: &Value) -> Result<MatchMeasure, ReadError> {
        let mut parts = TableParts::new(table, "match")?;
        let mut measure = MatchMeasure { terms: parts.part()?, choice: parts.part()?, options: parts.part()? };
        parts.finish()?;
        measure.terms.cost_weight = measure.terms.cost_weight.filter(|weight| *weight != 1.0);
        if measure.terms.half_width.is_some() {
            measure.options.pairs.get_or_insert(MatchMeasure::DEFAULT_MOST_PAIRS);
        }
        Ok(measure)
    }

    /// The row that the networks of `row` play; `None` if they play none.
    pub(super) fn opponent<'a>(&self, row: &ComparisonRow, rows: &'a [ComparisonRow]) -> Option<&'a ComparisonRow> {
        let is_covered = self.choice.covers_method(row.method) && self.choice.covers_set(row);
        let is_other = |other: &ComparisonRow| (&other.label, other.method) != (&row.label, row.method);
        self.reference_row(rows, row).filter(|reference| is_covered && is_other(reference))
    }

    /// The row that `row` plays: of the same method, unless another is given, and, unless the reference is one row's
    /// whole label, of the same group. `None` if no such row is called `reference`.
    fn reference_row<'a>(&self, rows: &'a [ComparisonRow], row: &ComparisonRow) -> Option<&'a ComparisonRow> {
        let method = self.terms.reference_method.unwrap_or(row.method);
        let of_method = rows.iter().filter(move |other| other.method == method);
        let mut of_group = of_method.clone().filter(|other| other.group == row.group);
        match &self.terms.reference {
            None => of_group.next(),
            Some(name) => {
                let labelled = of_method.clone().find(|row| row.label == *name);
                labelled.or_else(|| of_group.find(|row| row.is_called(name)))
            }
        }
    }
}

/// Checks the table's numbers, and that it names only sets, methods and seeds of the experiment. `adds_rows`: the
/// experiment will have further rows.
pub(super) fn check_matches(
    measure: &MatchMeasure,
    rows: &[ComparisonRow],
    all_seeds: &[Seed],
    adds_rows: bool,
) -> Result<(), SettingError> {
    check_terms(&measure.terms)?;
    measure.options.check()?;
    measure.choice.check(rows, all_seeds)?;
    check_reference(measure, rows)?;
    if adds_rows || rows.iter().any(|row| measure.opponent(row, rows).is_some()) {
        return Ok(());
    }
    Err(SettingError::new("", "no set plays: a match needs a set beside the reference"))
}

fn check_terms(terms: &MatchTerms) -> Result<(), SettingError> {
    let MatchTerms { nodes, equal_cost, cost_weight, half_width, shard_pairs, .. } = terms.clone();
    check_all(&[
        (
            "",
            nodes.is_some() || equal_cost.is_some(),
            "give nodes = 5000 (nodes per move, the same for both), equal_cost = 5000 (nodes per move of the \
             reference) or both",
        ),
        ("nodes", nodes != Some(0), "nodes must be at least 1"),
        ("equal_cost", equal_cost != Some(0), "equal_cost must be at least 1"),
        (
            "cost_weight",
            cost_weight.is_none_or(|weight| weight > 0.0 && weight.is_finite()),
            "cost_weight must be above 0",
        ),
        (
            "cost_weight",
            cost_weight.is_none() || equal_cost.is_some(),
            "cost_weight has no effect without equal_cost; give equal_cost = 5000 (nodes per move of the reference)",
        ),
        (
            "half_width",
            half_width.is_none_or(|width| width.is_finite() && width > 0.0),
            "half_width must be above 0, in Elo",
        ),
        ("shard_pairs", shard_pairs != Some(0), "shard_pairs must be at least 1"),
    ])
}

/// Checks that every method that plays has the reference.
fn check_reference(measure: &MatchMeasure, rows: &[ComparisonRow]) -> Result<(), SettingError> {
    let Some(name) = &measure.terms.reference else { return Ok(()) };
    let problem = |message: String| Err(SettingError::new("reference", message));
    if !rows.iter().any(|row| row.is_called(name)) {
        return problem(format!("no run uses the set '{name}'; the experiment has {}", labels(rows)));
    }
    for row in rows {
        if measure.choice.covers_method(row.method) && measure.reference_row(rows, row).is_none() {
            let method = measure.terms.reference_method.unwrap_or(row.method).name();
            return problem(format!(
                "no run by {method} uses the set '{name}': name the methods that play in `methods`"
            ));
        }
    }
    Ok(())
}
