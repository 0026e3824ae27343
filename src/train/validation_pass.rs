//! The validation of a finished run's network, sample by sample.

use super::activity::Activity;
use super::batch::Batch;
use super::cpu_trainer::CpuTrainer;
use super::kept_losses::KeptLosses;
use super::loss::Loss;
use super::run_dir::{BEST, OUTCOME, RunDir};
use super::start::TrainedSet;
use super::stream::{BatchStream, StopCheck};
use super::trainer::{TrainingRules, TrainingState};
use super::{Optimisation, TrainError, TrainOutcome, TrainSettings, TrainingRun, ValidatedSamples, ValidationVisitor};
use crate::net;
use crate::service::ServiceError;

impl TrainingRun<'_> {
    /// The validation of a finished run's network, on the split of the first method: the float network of the best
    /// epoch, dense weights rounded to the scheme's grid, whose mean loss the run's outcome has. `visit` gets the loss
    /// of every sample, in the data's order: as the run kept it ([`LOSSES`](super::run_dir::LOSSES)), else the network
    /// is validated again, on the CPU.
    ///
    /// # Errors
    /// If the folder has no network of this run's feature set, if the service failed, and errors of `visit`;
    /// [`TrainError::Stopped`] if `stop` returns true.
    pub fn validate_each(&self, stop: StopCheck<'_>, visit: &mut ValidationVisitor<'_>) -> Result<(), TrainError> {
        let run_dir = RunDir::open(self.folder)?;
        let outcome = run_dir.read_json::<TrainOutcome>(OUTCOME)?;
        let kept = outcome.and_then(|outcome| KeptLosses::read(&run_dir, outcome.best_epoch));
        match kept {
            Some(kept) => visit(&kept.samples()),
            None => self.validate_again(&run_dir, stop, visit),
        }
    }

    fn validate_again(
        &self,
        run_dir: &RunDir,
        stop: StopCheck<'_>,
        visit: &mut ValidationVisitor<'_>,
    ) -> Result<(), TrainError> {
        let config = &self.config.with_score_units().map_err(ServiceError::from)?;
        let TrainSettings { eval_loss: eval, pqr_loss: pqr, .. } = config.settings;
        let set = TrainedSet::resolve(config)?;
        let (net, checkpoint) = net::load_float(&run_dir.path(BEST))?;
        checkpoint.origin.expect(&set.set)?;
        let rule = &config.settings.shape_options.bucket_rule;
        if rule.expression().is_some() && !rule.is_same_for(&checkpoint.origin.feature_set()?, &set.set) {
            let path = run_dir.path(BEST);
            let message = "was trained with other bucket tables than its output buckets go by in the definition now";
            return Err(TrainError::Config(format!("{} {message}", path.display())));
        }
        // The optimiser takes no step, so the simplest one will do.
        let optimisation = Optimisation::default();
        let rules = TrainingRules { optimisation, loss: Loss { eval, pqr }, scheme: config.scheme()? };
        let state = TrainingState::new(net, None, optimisation.optimiser);
        let trainer = CpuTrainer::new(state, rules, config.settings.threads())?;
        let program = self.program()?;
        for task in config.tasks().into_iter().take(1) {
            let served = set.for_service(config, run_dir)?;
            let mut stream = BatchStream::validation(&program, config, task, &served, stop)?;
            let mut evaluate = |batch: &Batch<'_>, numbers: &[u32]| {
                let (_, each) = trainer.evaluate(batch, &mut Activity::default());
                visit(&ValidatedSamples { numbers, losses: &each.losses, preferred: &each.preferred })
            };
            while stream.next_numbered(0, stop, &mut evaluate)?.is_some() {}
        }
        Ok(())
    }
}
