//! The interface of trainers, which take a run's steps. [`CpuTrainer`](super::CpuTrainer) implements it with this
//! library's own kernels, the program `fsbench-tch` with libtorch.

use serde::{Deserialize, Serialize};

pub use super::accumulators::saturation;
pub use super::activity::Activity;
pub use super::adam::{Adam, BETA1, BETA2, EPSILON};
pub use super::batch::{ActiveFeatures, Batch, Labels};
pub use super::divergence::{broken_target, explain_losses};
pub use super::factor::FactoredRows;
pub use super::init::random_network;
pub use super::lookahead::{ALPHA, Lookahead, SYNC_PERIOD};
pub use super::loss::Loss;
pub use super::row_limits::RowLimits;
use super::{Optimisation, Optimiser, TrainError, TrainSettings};
use crate::features::{Factors, FeatureSet};
use crate::net::{FloatNet, Scheme, Shape};

/// Takes the steps of a run. A device may lag behind the program: then a step's losses become known some steps later.
pub trait Trainer {
    /// One step along the gradient of the batches' weighted losses. Returns the steps whose losses have become known
    /// since the last call, the oldest first: on the CPU this one, on a GPU many now and then.
    ///
    /// # Errors
    /// When a loss or gradient of this step, or of an earlier one that was not returned yet, is not finite: then neither
    /// that step nor any later one is taken. When the device fails.
    fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<StepLosses>, TrainError>;

    /// Waits for the device. Returns the steps that [`Trainer::train`] has not returned, the oldest first.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    fn finish_steps(&mut self) -> Result<Vec<StepLosses>, TrainError> {
        Ok(Vec::new())
    }

    /// The losses of a batch, summed and each, without a step; adds the neurons' activity.
    ///
    /// # Errors
    /// When the device fails.
    fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<(Sums, SampleLosses), TrainError>;

    /// Steps begun since the run began.
    fn step(&self) -> u64;

    /// The name of the GPU that takes the steps; `None`: the CPU does.
    fn gpu(&self) -> Option<&str> {
        None
    }

    /// The network and the optimiser's state after the last step.
    ///
    /// # Errors
    /// When the device fails.
    fn state(&mut self) -> Result<&TrainingState, TrainError>;
}

/// The input that a run hands to its trainer.
pub struct TrainerSetup<'a> {
    /// The state to begin with.
    pub state: TrainingState,
    pub rules: TrainingRules,
    /// The set that is trained.
    pub set: &'a FeatureSet,
    pub threads: usize,
}

/// Makes a run's trainer.
pub type MakeTrainer<'a> = dyn Fn(TrainerSetup<'_>) -> Result<Box<dyn Trainer>, TrainError> + 'a;

/// A network in training with its optimiser's state: the contents of a checkpoint.
pub struct TrainingState {
    /// With factors merged into the feature transformer.
    pub net: FloatNet,
    pub factored: Option<FactoredRows>,
    /// Adam's first and second moments.
    pub first_moments: FloatNet,
    pub second_moments: FloatNet,
    /// Ranger's slow weights.
    pub lookahead: Option<Lookahead>,
    /// Steps taken.
    pub step: u64,
}

impl TrainingState {
    /// The state before the first step.
    #[must_use]
    pub fn new(net: FloatNet, factors: Option<Factors>, optimiser: Optimiser) -> TrainingState {
        let factored = factors.map(|factors| FactoredRows::new(factors, &net.ft_weights, net.shape.row_len()));
        let lookahead = (optimiser == Optimiser::Ranger).then(|| Lookahead::new(&net, factored.as_ref()));
        TrainingState {
            first_moments: FloatNet::zeros(&net.shape),
            second_moments: FloatNet::zeros(&net.shape),
            factored,
            lookahead,
            step: 0,
            net,
        }
    }

    /// Parameters that a training sample has reached: all but the rows of features that were active in no sample.
    /// Adam's second moments of such a row are still zero; the moments of other rows sum squares of gradients.
    #[must_use]
    pub fn trained_parameters(&self) -> u64 {
        let row = self.net.shape.row_len();
        let rows = self.second_moments.ft_weights.chunks_exact(row);
        let untouched = rows.filter(|moments| moments.iter().all(|moment| *moment == 0.0)).count();
        self.net.parameters() - (untouched * row) as u64
    }
}

/// How the steps of a run are taken; the learning rate comes with each step.
#[derive(Clone, Debug)]
pub struct TrainingRules {
    pub optimisation: Optimisation,
    pub loss: Loss,
    pub scheme: Scheme,
}

impl TrainingRules {
    /// The rules of a run with these settings.
    #[must_use]
    pub fn of(settings: &TrainSettings, scheme: Scheme) -> TrainingRules {
        let TrainSettings { optimisation, eval_loss: eval, pqr_loss: pqr, .. } = *settings;
        TrainingRules { optimisation, loss: Loss { eval, pqr }, scheme }
    }

    /// The constants of a step. `length` computes the gradient's length and is called only if long gradients are scaled
    /// down.
    pub fn adam(&self, learning_rate: f64, step: u64, length: impl FnOnce() -> f64) -> Adam {
        let Optimisation { optimiser, weight_decay, gradient_clip, .. } = self.optimisation;
        let scale = gradient_clip.map_or(1.0, |longest| (longest / length()).min(1.0));
        Adam::new(optimiser, weight_decay, learning_rate, step).scaled(scale as f32)
    }

    /// The rule of every array of a network, in the order of [`Shape::tensors`]: weights and biases in turn.
    #[must_use]
    pub fn updates(&self, shape: &Shape) -> Vec<UpdateRule> {
        let scheme = &self.scheme;
        let limits = scheme.limits();
        let weights = |limit, scale| UpdateRule { limit, decays: true, grid: Some(scale), rows: None };
        let biases = |limit| UpdateRule { limit, decays: false, grid: None, rows: None };
        let rows = Some(RowLimits::new(shape, scheme));
        let mut rules = vec![
            UpdateRule { limit: limits.feature_transformer, decays: true, grid: None, rows },
            biases(limits.feature_transformer),
        ];
        for _ in 0..shape.buckets.count {
            for (index, limit) in limits.hidden.iter().take(shape.hidden.len()).enumerate() {
                rules.extend([weights(*limit, scheme.hidden_weight_scale(index)), biases(f64::INFINITY)]);
            }
            rules.extend([weights(limits.output, scheme.output_weight_scale()), biases(f64::INFINITY)]);
        }
        rules
    }
}

/// How an array of the network is updated.
#[derive(Copy, Clone, Debug)]
pub struct UpdateRule {
    /// Values are clamped to ± this.
    pub limit: f64,
    /// Whether weight decay applies.
    pub decays: bool,
    /// Rows may have narrower limits.
    pub rows: Option<RowLimits>,
    /// Forward, values are rounded to multiples of 1 / this; `None`: they are not rounded.
    pub grid: Option<f64>,
}

/// A batch and the weight of its mean loss in the loss that is minimised.
#[derive(Copy, Clone, Debug)]
pub struct WeightedBatch<'a> {
    pub batch: Batch<'a>,
    pub weight: f64,
}

/// A step's losses.
#[derive(Clone, Debug, PartialEq)]
pub struct StepLosses {
    /// The step's number, from 1.
    pub step: u64,
    /// Of each of its batches, before the step.
    pub batches: Vec<Sums>,
}

/// Sums over samples.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    pub samples: u64,
    pub loss: f64,
    /// pqr: samples with r > q.
    pub preferred: u64,
}

impl Sums {
    pub fn add(&mut self, other: Sums) {
        self.samples += other.samples;
        self.loss += other.loss;
        self.preferred += other.preferred;
    }

    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.samples.max(1) as f64
    }
}

/// The losses of single samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleLosses {
    pub losses: Vec<f32>,
    /// pqr: whether r > q; else empty.
    pub preferred: Vec<bool>,
}

impl SampleLosses {
    pub fn append(&mut self, mut other: SampleLosses) {
        self.losses.append(&mut other.losses);
        self.preferred.append(&mut other.preferred);
    }
}
