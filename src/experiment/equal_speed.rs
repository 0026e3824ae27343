//! `[equal_speed]`: every set at the width at which it is as fast as a reference, beside the widths of the rows.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::checks::{Problem, check_timing};
use super::spec::{ComparisonRow, Experiment, Measures};
use crate::data::Method;
use crate::measure::{EqualSpeedOptions, corrected_width};
use crate::record::{EQUAL_SPEED, EqualSpeedRecord, NetResult};

/// The keys of `[equal_speed]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct EqualSpeedMeasure {
    /// The row whose speed the others are to have; `None` = the first of each method.
    #[serde(skip_serializing)]
    pub reference: Option<Spanned<String>>,
    /// How far from 1 the ratio of speeds may be, as a share.
    pub tolerance: Option<f64>,
    /// Rounds in which both networks take turns.
    pub repetitions: Option<u32>,
    /// Processor time of a turn.
    pub seconds: Option<f64>,
    pub positions: Option<u64>,
}

impl EqualSpeedMeasure {
    #[must_use]
    pub fn options(&self) -> EqualSpeedOptions {
        let default = EqualSpeedOptions::default();
        EqualSpeedOptions {
            rounds: self.repetitions.unwrap_or(default.rounds),
            duration: self.seconds.map_or(default.duration, Duration::from_secs_f64),
            positions: self.positions.unwrap_or(default.positions),
            tolerance: self.tolerance.unwrap_or(default.tolerance),
        }
    }

    /// The row whose speed `row` is to have: the reference of its method.
    pub(super) fn reference_row<'a>(
        &self,
        rows: &'a [ComparisonRow],
        row: &ComparisonRow,
    ) -> Option<&'a ComparisonRow> {
        let mut candidates = rows.iter().filter(|other| (other.method, &other.group) == (row.method, &row.group));
        match &self.reference {
            None => candidates.next(),
            Some(name) => candidates.find(|candidate| is_reference(candidate, name.get_ref())),
        }
    }

    /// Whether a row's width is to be found: it is neither the reference nor at equal speed already.
    pub(super) fn covers(&self, rows: &[ComparisonRow], row: &ComparisonRow) -> bool {
        row.group.is_empty() && self.reference_row(rows, row).is_some_and(|reference| reference.label != row.label)
    }
}

/// Whether a row is called `name`; rows at equal speed have the name of their set with the width.
fn is_reference(row: &ComparisonRow, name: &str) -> bool {
    row.is_called(name) || row.name == named(name, row.settings.l1)
}

fn named(name: &str, l1: usize) -> String {
    format!("{name}, l1 {l1}")
}

/// The label of a row at equal speed.
fn label(name: &str) -> String {
    format!("{name}, {EQUAL_SPEED}")
}

/// Checks the table's numbers, that every method with several rows has the reference, and that no row's width is fixed.
pub(super) fn check_equal_speed(
    table: &Spanned<EqualSpeedMeasure>,
    rows: &[ComparisonRow],
    has_sweep: bool,
) -> Result<(), Problem> {
    let measure = table.get_ref();
    let problem = |message: String| Err(Problem::at(table, message));
    if has_sweep {
        return problem(
            "[equal_speed] and [sweep] cannot stand together: one or the other decides on the settings".into(),
        );
    }
    if let Some(start) = rows.iter().find_map(|row| Some(row.start.as_ref()?.written())) {
        let message = "[equal_speed] and start cannot stand together: a network's neurons have one width".to_owned();
        return Err(Problem::at(start, message));
    }
    if !measure.tolerance.is_none_or(|tolerance| tolerance > 0.0 && tolerance <= 0.5) {
        return problem("tolerance must lie between 0 and 0.5, as in 0.03".into());
    }
    check_timing(measure.positions, measure.repetitions, measure.seconds).or_else(problem)?;
    let without = rows.iter().find(|row| measure.reference_row(rows, row).is_none());
    if let (Some(name), Some(row)) = (&measure.reference, without) {
        let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        let (name, method) = (name.get_ref(), row.method.name());
        return problem(format!("no run by {method} uses the set '{name}'; the experiment has {}", labels.join(", ")));
    }
    match rows.iter().any(|row| measure.covers(rows, row)) {
        true => Ok(()),
        false => problem("no set beside the reference whose width could be found".into()),
    }
}

impl Experiment {
    /// The experiment with further rows: each method's reference, and its other rows at the widths that were found;
    /// where `trained` has the speed of a network trained at that width, at the width that is best by it. `None` if there
    /// are no rows to add, or a width is not found yet.
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
        let width = |row: &ComparisonRow| {
            if !measure.covers(&self.rows, row) {
                return Some(row.settings.l1);
            }
            let found = record(found, &row.label, row.method)?;
            let trained = record(trained, &label(&named(&row.name, found.l1)), row.method);
            Some(trained.map_or(found.l1, |trained| corrected_width(found, trained.speed.ratio)))
        };
        let at = |row: &ComparisonRow| {
            let l1 = width(row)?;
            let name = named(&row.name, l1);
            let mut overrides = row.overrides.clone().unwrap_or_default();
            overrides.insert("l1".into(), toml::Value::Integer(l1 as i64));
            let mut settings = row.settings.clone();
            settings.l1 = l1;
            Some(ComparisonRow {
                label: label(&name),
                name,
                group: EQUAL_SPEED.into(),
                overrides: Some(overrides),
                settings,
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
        Experiment { seeds, measure: Measures::default(), matches: None, ..self.clone() }
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
    pub options: EqualSpeedOptions,
}
