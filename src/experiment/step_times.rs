//! How long the steps done so far took, and how long the others will take.

use std::time::Duration;

use super::plan::PlanStep;
use super::runner_options::Stage;
use crate::units::SortedMap;

/// Number and total time of the steps done so far: trainings, matches and measures.
#[derive(Default)]
pub(super) struct StepTimes(SortedMap<Stage, (u32, Duration)>);

impl StepTimes {
    pub(super) fn add(&mut self, step: PlanStep, time: Duration) {
        let (steps, total) = self.0.get_or_default(Stage::of(step));
        *steps += 1;
        *total += time;
    }

    /// Time that `steps` will take; `None` if no step of one of their kinds is done yet.
    pub(super) fn estimate(&self, steps: &[PlanStep]) -> Option<Duration> {
        let mean = |step: &PlanStep| {
            let (done, total) = *self.0.get(&Stage::of(*step))?;
            Some(total / done)
        };
        steps.iter().map(mean).sum()
    }
}
