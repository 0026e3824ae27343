//! `[equal_speed]`: every set at the width at which it is as fast as a reference, beside the widths of the rows.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checks::labels;
use super::spec::{ComparisonRow, Experiment, Measures, RepeatedRow};
use crate::data::Method;
use crate::json::ReadError;
use crate::measure::{EqualSpeedOptions, OwnSpeeds, corrected_width};
use crate::record::{EQUAL_SPEED, EqualSpeedRecord, NetResult, OwnFigures};
use crate::settings::{SettingError, TableParts};

/// The width, a multiple of 32, at which each set is as fast as the reference; networks of the first seed take turns
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct EqualSpeedMeasure {
    #[schemars(flatten)]
    pub terms: EqualSpeedTerms,
    #[schemars(flatten)]
    pub options: EqualSpeedOptions,
}

/// The keys of `[equal_speed]` that are not of the timing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct EqualSpeedTerms {
    /// Name or label of the set whose speed the others are to have [default: each method's first]
    pub reference: Option<String>,
}

impl EqualSpeedMeasure {
    /// Reads the table.
    pub(super) fn read(table: &Value) -> Result<EqualSpeedMeasure, ReadError> {
        let mut parts = TableParts::new(table, "equal_speed")?;
        let measure = EqualSpeedMeasure { terms: parts.part()?, options: parts.part()? };
        parts.finish().map(|()| measure)
    }

    /// The row whose speed `row` is to have: the reference of its method.
    pub(super) fn reference_row<'a>(
        &self,
        rows: &'a [ComparisonRow],
        row: &ComparisonRow,
    ) -> Option<&'a ComparisonRow> {
        let mut candidates = rows.iter().filter(|other| (other.method, &other.group) == (row.method, &row.group));
        match &self.terms.reference {
            None => candidates.next(),
            Some(name) => candidates.find(|candidate| candidate.is_called(name)),
        }
    }

    /// Whether a row's width is to be found: it is neither the reference nor at equal speed already.
    pub(super) fn covers(&self, rows: &[ComparisonRow], row: &ComparisonRow) -> bool {
        row.group.is_empty() && self.reference_row(rows, row).is_some_and(|reference| reference.label != row.label)
    }
}

fn named(name: &str, l1: usize) -> String {
    format!("{name}, l1 {l1}")
}

/// The label of a row at equal speed.
fn label(name: &str) -> String {
    format!("{name}, {EQUAL_SPEED}")
}

/// Checks the table's numbers, and that every method with several rows has the reference. `adds_rows`: the experiment
/// will have further rows.
pub(super) fn check_equal_speed(
    measure: &EqualSpeedMeasure,
    rows: &[ComparisonRow],
    has_sweep: bool,
    adds_rows: bool,
) -> Result<(), SettingError> {
    let problem = |key: &str, message: String| Err(SettingError::new(key, message));
    if has_sweep {
        let message = "[equal_speed] and [sweep] cannot stand together: one or the other decides on the settings";
        return problem("", message.into());
    }
    measure.options.check()?;
    let without = rows.iter().find(|row| measure.reference_row(rows, row).is_none());
    if let (Some(name), Some(row)) = (&measure.terms.reference, without) {
        let method = row.method.name();
        let message = format!("no run by {method} uses the set '{name}'; the experiment has {}", labels(rows));
        return problem("reference", message);
    }
    if adds_rows || rows.iter().any(|row| measure.covers(rows, row)) {
        return Ok(());
    }
    problem("", "no set beside the reference whose width could be found".into())
}

impl Experiment {
    /// The experiment with further rows: each method's reference, and its other rows at the widths that were found;
    /// where `trained` has the speed of a network trained at that width, at the width that is best by it. `None` if
    /// there are no rows to add, or a width is not found yet.
    pub(super) fn at_equal_speed(
        &self,
        found: &[NetResult<EqualSpeedRecord>],
        trained: &[NetResult<EqualSpeedRecord>],
    ) -> Option<Experiment> {
        fn record<'a>(
            results: &'a [NetResult<EqualSpeedRecord>],
            label: &str,
            method: Method,
        ) -> Option<&'a EqualSpeedRecord> {
            let own = results.iter().find(|result| (result.key.set.as_str(), result.key.method) == (label, method));
            own.map(|own| &own.record)
        }
        let measure = self.equal_speed.as_ref()?;
        let at = |row: &ComparisonRow| {
            let mut l1 = row.settings.l1;
            let mut own = OwnFigures { node_cost: None, ..row.own };
            let mut scale = None;
            if measure.covers(&self.rows, row) {
                let found = record(found, &row.label, row.method)?;
                let trained = record(trained, &label(&named(&row.name, found.l1)), row.method);
                l1 = trained.map_or(found.l1, |trained| corrected_width(found, trained.speed.ratio));
                scale = found.own_scale;
                // The cost at the width, where it follows from the user's cost at the row's own width.
                let speed = trained.filter(|_| l1 == found.l1).map(|trained| trained.speed).or(found.speed_at(l1));
                own.node_cost = scale.and(speed).map(|speed| 1.0 / speed.ratio);
            }
            let name = named(&row.name, l1);
            let mut overrides = row.overrides.clone().unwrap_or_default();
            overrides.insert("l1".into(), l1.into());
            let mut settings = row.settings.clone();
            settings.l1 = l1;
            Some(ComparisonRow {
                label: label(&name),
                name,
                group: EQUAL_SPEED.into(),
                overrides: Some(overrides),
                settings,
                own,
                repeats: Some(RepeatedRow { label: row.label.clone(), scale }),
                ..row.clone()
            })
        };
        let is_compared = |row: &&ComparisonRow| {
            let others = self.rows.iter().filter(|other| other.method == row.method).count();
            others > 1 && row.group.is_empty()
        };
        let rows: Vec<ComparisonRow> = self.rows.iter().filter(is_compared).map(at).collect::<Option<_>>()?;
        (!rows.is_empty()).then(|| Experiment { rows: self.rows.iter().cloned().chain(rows).collect(), ..self.clone() })
    }

    /// The experiment with the trainings of the first seed only, and no measure but the speed at the widths found.
    pub(super) fn equal_speed_trial(&self) -> Experiment {
        let seeds = self.seeds.iter().take(1).copied().collect();
        Experiment { seeds, measure: Measures::default(), matches: None, scaling: None, ..self.clone() }
    }
}

/// What to time: the networks of a row and of its reference.
#[derive(Clone, Debug)]
pub struct EqualSpeedRequest<'a> {
    pub network: &'a Path,
    pub reference: &'a Path,
    /// File of the games.
    pub data: &'a Path,
    /// Whether to search for the width, or to time the network as it is.
    pub is_search: bool,
    /// The user's figures that the speeds go by.
    pub own: OwnSpeeds,
    pub options: EqualSpeedOptions,
}
