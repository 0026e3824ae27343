//! What this machine needs for an experiment's steps, so that none is done in vain: trainers, memory for hash tables.

use super::ExperimentError;
use super::executor::Executor;
use super::runner_options::RunnerOptions;
use super::spec::Experiment;
use crate::alpha_beta::TranspositionTable;

/// Refuses an experiment with a row that cannot be trained here, or with matches for whose hash tables there is no
/// memory.
pub(super) fn check_machine(
    experiment: &Experiment,
    executor: &dyn Executor,
    options: &RunnerOptions,
) -> Result<(), ExperimentError> {
    for row in &experiment.rows {
        let is_requested = options.only.as_ref().is_none_or(|only| row.is_called(only));
        if let (true, Err(source)) = (is_requested, executor.check_trainer(&row.settings)) {
            return Err(ExperimentError::NoTrainer { row: row.label.clone(), source });
        }
    }
    let Some(measure) = &experiment.matches else { return Ok(()) };
    TranspositionTable::check_memory(measure.options.hash as usize).map_err(|error| ExperimentError::Spec {
        at: experiment.location_of_key("match.hash"),
        message: error.to_string(),
    })
}
