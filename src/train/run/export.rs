//! The end of a run: its networks, quantised, and its outcome.

use std::path::PathBuf;

use super::Session;
use crate::net::{self, NetFile};
use crate::train::run_dir::{BEST, CHECKPOINT, LAST, NETWORK, OUTCOME};
use crate::train::{TrainError, TrainOutcome};

impl Session<'_> {
    /// Quantises the networks of the best epoch and of the last, and writes the outcome.
    pub(super) fn export(mut self) -> Result<TrainOutcome, TrainError> {
        let path = self.run_dir.path(BEST);
        let (best, stored) = net::load_float(&path)?;
        let epoch = stored.training["epochs"].as_u64();
        let best_epoch = self.metrics.iter().find(|metrics| Some(u64::from(metrics.epoch)) == epoch);
        let (Some(best_epoch), Some(validation)) = (best_epoch, self.progress.validation) else {
            let why = "it belongs to no epoch of this run".into();
            return Err(TrainError::Damaged { path, why });
        };
        let number = best_epoch.epoch;
        let averaged = self.progress.averaged;
        let kept_average = averaged.filter(|averaged| averaged.kept);
        let validation_loss = kept_average.map_or(best_epoch.validation_loss, |averaged| averaged.validation_loss);
        let state = self.trainer.state()?;
        let last = &state.net;
        let trained_parameters = state.trained_parameters();
        let parameters = last.parameters();
        // In this order: if the last epoch's file exists, the network is the best epoch's.
        for (net, name) in [(&best, NETWORK), (last, LAST)] {
            let net = net::quantise(net, &self.scheme)?;
            NetFile { origin: self.origin.clone(), net }.save(&self.run_dir.path(name))?;
        }
        let training_samples = self.progress.samples_per_epoch;
        let available = self.objectives.first().map(|first| first.training.description().samples);
        let distinct_samples = available.map(|available| available.min(self.progress.samples));
        let outcome = TrainOutcome {
            config: self.config.clone(),
            name: self.set.name().into(),
            identity: self.set.identity().clone(),
            gpu: self.trainer.gpu().map(str::to_owned),
            num_features: self.set.num_features(),
            parameters,
            trained_parameters,
            training_samples,
            distinct_samples: distinct_samples.filter(|distinct| *distinct != training_samples),
            validation_samples: validation.samples,
            best_epoch: number,
            validation_loss,
            averaged,
            baseline_loss: validation.baseline,
            seconds: self.metrics.iter().map(|epoch| epoch.seconds).sum(),
            epochs: self.metrics,
            network: PathBuf::from(NETWORK),
            weights: PathBuf::from(BEST),
            last: PathBuf::from(LAST),
            checkpoint: PathBuf::from(CHECKPOINT),
        };
        self.run_dir.write_json(OUTCOME, &outcome)?;
        Ok(outcome)
    }
}
