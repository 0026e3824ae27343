//! The results folder, which is a view of the store: the records of an experiment's finished steps, in its plan's order.

use std::collections::HashMap;

use super::ExperimentError;
use super::runner::Runner;
use super::runner_options::{PassPurpose, stage_seconds};
use crate::record::write_atomically;

impl Runner<'_> {
    /// Writes the results folder, but for trials: the experiment's text, and every record in the plan's order.
    pub(super) fn save(&mut self) -> Result<(), ExperimentError> {
        if self.purpose == PassPurpose::Trial {
            return Ok(());
        }
        let order: HashMap<_, _> =
            self.plan.runs.iter().enumerate().map(|(index, run)| (run.key.clone(), index)).collect();
        let sets: HashMap<_, _> =
            self.plan.sets.iter().enumerate().map(|(index, set)| (set.label.clone(), index)).collect();
        self.results.updates.sort_by_key(|result| sets.get(&result.set).copied());
        self.results.runs.sort_by_key(|run| order.get(&run.key).copied());
        self.results.validation.sort_by_key(|result| order.get(&result.key).copied());
        self.results.networks.sort(&|key| order.get(key).copied());
        self.results.speed.sort_by_key(|result| order.get(&result.key).copied());
        self.results.equal_speed.sort_by_key(|result| order.get(&result.key).copied());
        self.results.matches.sort_by_key(|result| (order.get(&result.key).copied(), result.record.kind));
        let timed_on = self.timed_on_with_cpu();
        let environment = &mut self.results.environment;
        environment.timed_on = timed_on;
        if let Some(newest) = &self.newest {
            environment.recorded = newest.clone();
        }
        let of_loop = self.results.learning_loop.as_ref().map(|found| found.seconds);
        environment.seconds = of_loop.unwrap_or_else(|| stage_seconds(&self.seconds));
        write_atomically(&self.options.out.join("experiment.toml"), self.experiment.text.as_bytes())?;
        self.results.save(&self.options.out)?;
        Ok(())
    }

    /// The named kind of machine that measured times, with the CPU that it had.
    fn timed_on_with_cpu(&self) -> Option<String> {
        let node_type = self.options.timed_on.as_ref()?;
        let of_speed = self.results.speed.iter().filter_map(|result| result.record.machine.as_ref());
        let of_widths = self.results.equal_speed.iter().map(|result| &result.record.machine);
        Some(match of_speed.chain(of_widths).next() {
            Some(machine) => format!("{node_type} ({})", machine.cpu),
            None => node_type.clone(),
        })
    }
}
