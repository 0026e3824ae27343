//! Runs by a trainer whose losses become known some steps later, as a GPU's do, and by one that is lost.

use std::path::Path;

use fsbench::data::Method;
use fsbench::train::trainer::{
    Activity, Batch, MakeTrainer, SampleLosses, StepLosses, Sums, Trainer, TrainerSetup, TrainingState, WeightedBatch,
};
use fsbench::train::{
    CpuTrainer, RunObserver, Silent, StepMetrics, TrainConfig, TrainError, TrainOutcome, TrainingRun,
};

use super::fixture::{PROGRAM, StopAt, Workspace, same_results};

/// Steps whose losses a trainer keeps to itself, until it has as many.
const LAG: usize = 5;

/// The kernels' trainer, late.
struct Late {
    trainer: Box<dyn Trainer>,
    kept: Vec<StepLosses>,
    /// The step in which the device is lost.
    lost_in: u64,
}

impl Trainer for Late {
    fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<StepLosses>, TrainError> {
        if self.trainer.step() + 1 == self.lost_in {
            return Err(TrainError::Device { library: "CUDA", why: "the GPU has fallen off the bus".into() });
        }
        self.kept.extend(self.trainer.train(batches, learning_rate)?);
        // The newest stays, as if it were still at work.
        let known = if self.kept.len() > LAG { LAG } else { 0 };
        Ok(self.kept.drain(..known).collect())
    }

    fn finish_steps(&mut self) -> Result<Vec<StepLosses>, TrainError> {
        Ok(std::mem::take(&mut self.kept))
    }

    fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<(Sums, SampleLosses), TrainError> {
        assert!(self.kept.is_empty(), "validated before the steps were finished");
        self.trainer.evaluate(batch, activity)
    }

    fn step(&self) -> u64 {
        self.trainer.step()
    }

    fn state(&mut self) -> Result<&TrainingState, TrainError> {
        assert!(self.kept.is_empty(), "saved before the steps were finished");
        self.trainer.state()
    }
}

fn late(lost_in: u64) -> impl Fn(TrainerSetup<'_>) -> Result<Box<dyn Trainer>, TrainError> {
    move |setup| Ok(Box::new(Late { trainer: CpuTrainer::of_run(setup)?, kept: Vec::new(), lost_in }))
}

fn run(
    workspace: &Workspace,
    config: &TrainConfig,
    name: &str,
    resume: bool,
    make_trainer: &MakeTrainer<'_>,
    observer: &mut dyn RunObserver,
) -> Result<TrainOutcome, TrainError> {
    let service = Some(Path::new(PROGRAM));
    let folder = workspace.path(name);
    TrainingRun { resume, service, ..TrainingRun::new(config, &folder) }.train_with(make_trainer, observer)
}

#[derive(Default)]
struct Steps(Vec<StepMetrics>);

impl RunObserver for Steps {
    fn stepped(&mut self, step: &StepMetrics) {
        self.0.push(*step);
    }
}

/// Networks, losses and the steps that are reported are the same, also after the run was stopped.
#[test]
fn late_losses_change_no_run() {
    let workspace = Workspace::new();
    for method in [Method::Eval, Method::Pqr] {
        let config = workspace.config(method);
        let name = |what: &str| format!("{what}-{method:?}");
        let mut expected = Steps::default();
        let prompt = workspace.run(&config, &name("prompt"), false, &mut expected).expect("trained");
        let mut found = Steps::default();
        let outcome = run(&workspace, &config, &name("late"), false, &late(0), &mut found).expect("trained");
        let losses = |outcome: &TrainOutcome| -> Vec<[f64; 2]> {
            outcome.epochs.iter().map(|epoch| [epoch.train_loss, epoch.validation_loss]).collect()
        };
        assert_eq!(losses(&outcome), losses(&prompt));
        let steps = |steps: &Steps| -> Vec<_> {
            let numbers = |step: &StepMetrics| (step.epoch, step.step, step.samples, step.positions, step.loss);
            steps.0.iter().map(numbers).collect()
        };
        assert_eq!(steps(&found), steps(&expected));
        same_results(&workspace, &name("prompt"), &name("late"));
        let cut = name("cut");
        let error = run(&workspace, &config, &cut, false, &late(0), &mut StopAt::new(3)).expect_err("stopped");
        assert!(matches!(error, TrainError::Interrupted { step: 6, .. }), "{error}");
        run(&workspace, &config, &cut, true, &late(0), &mut Silent).expect("trained");
        same_results(&workspace, &name("prompt"), &cut);
    }
}

/// The last checkpoint stands, and the run goes on from it.
#[test]
fn a_lost_device_loses_the_steps_since_the_last_checkpoint() {
    let workspace = Workspace::new();
    let config = workspace.config(Method::Eval);
    workspace.run(&config, "whole", false, &mut Silent).expect("trained");
    let check = |lost_in: u64, resume: bool, expected: &str| {
        let lost = run(&workspace, &config, "lost", resume, &late(lost_in), &mut Silent).expect_err("lost");
        let text = lost.to_string();
        assert!(!lost.is_request() && text.contains("CUDA: the GPU has fallen off the bus"), "{text}");
        assert!(text.contains(expected) && text.contains("`--resume`"), "{text}");
    };
    check(4, false, "No state is saved yet");
    check(16, true, "The state after step 12 is saved");
    check(14, true, "The state after step 12 is saved");
    run(&workspace, &config, "lost", true, &late(0), &mut Silent).expect("trained");
    same_results(&workspace, "whole", "lost");
}
