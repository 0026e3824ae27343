//! What a search will take: how much it tries, and about how long.

use schemars::JsonSchema;
use serde::Serialize;

use super::table::Search;
use crate::experiment::ExperimentError;
use crate::experiment::spec::Experiment;
use crate::features::{FeatureError, FeatureSet};

/// The first round of a search.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SearchEstimate {
    /// Changes of the first row that it tries, without those that `select` features by importance.
    pub candidates: usize,
    /// Samples of all short trainings.
    pub samples: u64,
    /// Trainings from scratch.
    pub trainings: usize,
    /// Time of the round on this machine, without matches; `None` where no training was rehearsed.
    pub seconds: Option<f64>,
    /// The search's time.
    pub budget_seconds: f64,
}

/// More samples a second than any machine trains.
const FASTEST: f64 = 1e8;

impl Search {
    /// The first round, with the rate of a training of the first row and the time of its whole training, if they are
    /// known.
    ///
    /// # Errors
    /// When a candidate's definition has a mistake.
    pub(in crate::experiment) fn estimate(
        &self,
        base: &Experiment,
        rehearsed: Option<(f64, f64)>,
    ) -> Result<SearchEstimate, ExperimentError> {
        let row = &base.rows[0];
        let wrong = |error: FeatureError| ExperimentError::Set {
            at: base.location_of(&row.set),
            set: row.set.get_ref().clone(),
            message: error.to_string(),
        };
        let request = base.set_request(row.set.get_ref()).map_err(wrong)?;
        FeatureSet::resolve(&request).map_err(wrong)?;
        let candidates = self.candidates(base, &request, None)?;
        if let Some((change, why)) = candidates.iter().find_map(|one| Some((&one.change, one.refused.as_ref()?))) {
            return Err(self.mistake(base, format!("{change}: {why}")));
        }
        let candidates = candidates.len();
        // The control learns beside them.
        let liftings = self.terms.liftings(candidates);
        let of_liftings: u64 = liftings.iter().map(|(samples, left)| samples.saturating_mul(*left as u64 + 1)).sum();
        let samples = of_liftings.saturating_add(self.merging_samples());
        let trainings = self.terms.finalists.min(candidates) * base.seeds.len();
        let seconds = rehearsed.map(|(rate, training)| samples as f64 / rate + trainings as f64 * training);
        let budget_seconds = 3600.0 * self.terms.hours;
        Ok(SearchEstimate { candidates, samples, trainings, seconds, budget_seconds })
    }

    /// Refuses a search that has nothing to try, a block to add that cannot be encoded, or no time for one round on any
    /// machine.
    pub(super) fn check_budget(&self, base: &Experiment) -> Result<(), ExperimentError> {
        let estimate = self.estimate(base, None)?;
        let problem = |message: String| Err(self.mistake(base, message));
        for written in &self.candidates.blocks {
            let encoded = base.set_request(written).and_then(|request| FeatureSet::resolve(&request));
            if let Err(error) = encoded {
                return problem(format!("the block {written} cannot be added: {error}"));
            }
        }
        if estimate.candidates == 0 && self.candidates.select.is_empty() {
            return problem(format!("nothing to try: every candidate is the same set as {}", base.rows[0].label));
        }
        let least = estimate.samples as f64 / FASTEST;
        if least > estimate.budget_seconds {
            return problem(format!(
                "hours = {} is too small for one round: its short trainings have {} samples; give more hours, fewer \
                 candidates or fewer samples",
                self.terms.hours, estimate.samples
            ));
        }
        Ok(())
    }
}
