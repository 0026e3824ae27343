//! The widths at which the sets of an experiment are as fast as the reference.

use schemars::JsonSchema;
use serde::Serialize;

use crate::record::{EQUAL_SPEED, EqualSpeedRecord, PlannedRow, Results, RowAtEqualSpeed, RunKey, SpeedRatio};

/// The rows of a comparison at equal speed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EqualSpeed {
    /// How far from 1 a ratio may be to count as equal, as a share.
    pub tolerance: f64,
    /// The reference's width.
    pub reference_l1: usize,
    /// Whether speeds go by the user's own figures.
    pub is_by_figures: bool,
    /// Without the reference.
    pub rows: Vec<EqualSpeedRow>,
}

/// A set at its width of equal speed. Speeds are relative to the reference's.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EqualSpeedRow {
    /// The set.
    pub set: String,
    /// Its width of equal speed.
    pub l1: usize,
    /// When the width was found, with the neurons of the row's own network; `None` if it was chosen by the speed of the
    /// network trained at another width, and not timed before.
    pub found: Option<SpeedRatio>,
    /// Of the network trained at that width; `None` if it is not timed yet.
    pub trained: Option<SpeedRatio>,
}

impl EqualSpeed {
    /// The widths of a planned row's comparison; `None` if it is not one at equal speed.
    pub(super) fn of(results: &Results, planned: &PlannedRow) -> Option<EqualSpeed> {
        if planned.group.as_deref() != Some(EQUAL_SPEED) {
            return None;
        }
        let of = |row: &PlannedRow, set: &str| {
            let is_own = |key: &RunKey| (key.set.as_str(), key.method) == (set, row.method);
            results.equal_speed.iter().find(|result| is_own(&result.key)).map(|result| &result.record)
        };
        let is_compared = |row: &&PlannedRow| (row.method, &row.group) == (planned.method, &planned.group);
        let mut rows = Vec::new();
        let mut is_by_figures = false;
        let mut first = None;
        for row in results.study.rows.iter().filter(is_compared) {
            let Some(RowAtEqualSpeed { repeats: set, l1 }) = &row.equal_speed else { continue };
            let Some(search) = of(row, set) else { continue };
            let found = search.speed_at(*l1);
            let trained = of(row, &row.set).map(|record| record.speed);
            rows.push(EqualSpeedRow { set: set.clone(), l1: *l1, found, trained });
            is_by_figures |= search.is_by_figures();
            first = first.or(Some(search));
        }
        let EqualSpeedRecord { tolerance, reference_l1, .. } = *first?;
        Some(EqualSpeed { tolerance, reference_l1, is_by_figures, rows })
    }

    /// How the widths were found, and which are not within the tolerance.
    #[must_use]
    pub(super) fn note(&self) -> String {
        let is_far = |row: &&EqualSpeedRow| {
            row.trained.or(row.found).is_some_and(|speed| (speed.ratio - 1.0).abs() > self.tolerance)
        };
        let far: Vec<&str> = self.rows.iter().filter(is_far).map(|row| row.set.as_str()).collect();
        let percent = 100.0 * self.tolerance;
        let exceptions = if far.is_empty() {
            String::new()
        } else {
            format!(" No multiple of 32 was that close for {}: the closest was taken.", far.join(", "))
        };
        let figures = if self.is_by_figures {
            " Speeds are by your figures: measured times with your times of finding features, or scaled so that a \
             node costs what you say at the row's own width."
        } else {
            ""
        };
        format!(
            "Equal speed: of every set the width, a multiple of 32, at which it evaluates as many positions per second \
             as the reference at {}, within {percent}%: one thread, neurons arranged, both networks in turns, medians \
             with 95% intervals. A width is found before it is trained, with the neurons of the row's own network \
             repeated or left out; the last column is the network trained at that width. Where the first network \
             trained at the width found was further from the reference's speed than another width promised, that one \
             was trained.{figures}{exceptions}",
            self.reference_l1
        )
    }
}
