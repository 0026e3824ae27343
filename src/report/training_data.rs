//! How much data a set's trainings had for its parameters, and whether that was enough to judge the set by.

use schemars::JsonSchema;
use serde::Serialize;

use super::numbers;
use crate::record::{PlannedRow, RunRecord, Study};
use crate::text::grouped;

/// The data of a set's trainings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrainingData {
    /// Different training samples of a run, at most; the smallest number of all seeds.
    pub samples: u64,
    /// Samples per trained parameter: rows of features that a sample has, and the dense weights.
    pub samples_per_parameter: f64,
    /// Of every seed, in their order.
    pub best_epochs: Vec<u32>,
    /// Planned epochs.
    pub epochs: u32,
    /// Whether the runs were best in the first half of their epochs, on average, although an epoch has all samples:
    /// training on learnt by heart.
    pub best_early: bool,
    /// Whether there are fewer than 10 samples per parameter.
    pub scarce: bool,
}

impl TrainingData {
    /// Of a row's finished runs; `None` without any.
    pub(super) fn of(study: &Study, planned: &PlannedRow, runs: &[&RunRecord]) -> Option<TrainingData> {
        let part_of_data = setting(study, planned, "epoch_samples").is_some();
        let samples = |run: &&RunRecord| match (part_of_data, run.epochs.last()) {
            (true, Some(last)) => last.samples.min(training_split(study, planned, run)),
            _ => run.training_samples,
        };
        let per_parameter =
            |run: &&RunRecord| samples(run) as f64 / run.trained_parameters.unwrap_or(run.parameters).max(1) as f64;
        let best = |run: &&RunRecord| run.measured_epoch().map_or(0, |epoch| epoch.epoch);
        let best_epochs: Vec<u32> = runs.iter().map(best).collect();
        let epochs = runs.iter().filter_map(|run| run.epochs.last()).map(|last| last.epoch).max()?;
        let samples_per_parameter = runs.iter().map(per_parameter).fold(f64::INFINITY, f64::min);
        Some(TrainingData {
            samples: runs.iter().map(samples).min()?,
            samples_per_parameter,
            best_early: !part_of_data && 2 * best_epochs.iter().sum::<u32>() <= epochs * best_epochs.len() as u32,
            best_epochs,
            epochs,
            scarce: samples_per_parameter < RunRecord::SAMPLES_PER_PARAMETER,
        })
    }

    /// Whether more data may change the verdict on the set.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.best_early || self.scarce
    }

    /// `0.2`, `28`
    #[must_use]
    pub(super) fn samples_per_parameter_text(&self) -> String {
        let decimals = if self.samples_per_parameter < RunRecord::SAMPLES_PER_PARAMETER { 1 } else { 0 };
        numbers::number(self.samples_per_parameter, decimals, false)
    }

    /// `2 of 8`, or `2–4 of 8` if the seeds differ
    #[must_use]
    pub(super) fn best_epoch_text(&self) -> String {
        let first = self.best_epochs.iter().min();
        let last = self.best_epochs.iter().max();
        let first = first.copied().unwrap_or_default();
        let last = last.copied().unwrap_or_default();
        let best = if first == last { first.to_string() } else { format!("{first}–{last}") };
        format!("{best} of {}", self.epochs)
    }

    /// `306,214`
    #[must_use]
    pub(super) fn samples_text(&self) -> String {
        grouped(&self.samples.to_string())
    }
}

/// A training setting of a row: its own, else the experiment's.
pub(super) fn setting<'a>(study: &'a Study, planned: &'a PlannedRow, name: &str) -> Option<&'a serde_json::Value> {
    let own = planned.train.as_ref().and_then(|train| train.get(name));
    own.or_else(|| study.train.get(name)).filter(|value| !value.is_null())
}

/// About as many samples as the training split of a run's data has, by the size of the validation split.
fn training_split(study: &Study, planned: &PlannedRow, run: &RunRecord) -> u64 {
    match setting(study, planned, "validation").and_then(serde_json::Value::as_f64) {
        Some(share) if share > 0.0 && share < 1.0 => (run.validation_samples as f64 * (1.0 - share) / share) as u64,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::test_records;

    /// The data of a run with these settings, best epochs by seed and trained parameters.
    fn data(train: serde_json::Value, best_epochs: &[u32], trained_parameters: u64) -> TrainingData {
        let mut results = test_records::results();
        results.study.train = train;
        let planned = results.study.rows[0].clone();
        results.runs.truncate(best_epochs.len());
        for (run, best) in results.runs.iter_mut().zip(best_epochs) {
            run.best_epoch = *best;
            run.trained_parameters = Some(trained_parameters);
        }
        let runs: Vec<&RunRecord> = results.runs.iter().collect();
        TrainingData::of(&results.study, &planned, &runs).expect("runs")
    }

    #[test]
    fn early_best_epochs_and_few_samples_limit_a_verdict() {
        let all = || serde_json::json!({ "l1": 64, "validation": 0.1 });
        let check = |best: &[u32], parameters: u64, expected: (&str, &str, bool, bool)| {
            let data = data(all(), best, parameters);
            let found = (data.best_epoch_text(), data.samples_per_parameter_text());
            assert_eq!((&found.0[..], &found.1[..], data.best_early, data.scarce), expected);
        };
        // Of 400,000 samples and 6 epochs.
        check(&[6, 6, 6], 20_000, ("6 of 6", "20", false, false));
        check(&[2, 2], 20_000, ("2 of 6", "20", true, false));
        check(&[2, 4], 20_000, ("2–4 of 6", "20", true, false));
        check(&[3, 4], 2_000_000, ("3–4 of 6", "0.2", false, true));
        check(&[6], 40_400, ("6 of 6", "9.9", false, true));
    }

    /// An epoch that is a part of the data has other samples than the epoch before, as long as the data last.
    #[test]
    fn epochs_that_are_parts_of_the_data_add_up() {
        let of = |validation: f64| {
            let train = serde_json::json!({ "epoch_samples": 400_000, "validation": validation });
            data(train, &[1, 1, 1], 1_000)
        };
        assert_eq!((of(0.001).samples, of(0.001).best_early), (2_400_000, false));
        assert_eq!(of(0.05).samples, 380_000, "20,000 samples are 5% of the data");
    }
}
