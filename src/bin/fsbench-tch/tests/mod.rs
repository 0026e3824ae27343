//! libtorch's trainer and the library's kernels on the same batches.

mod gradients;
#[path = "../../../train/cpu_trainer/tests/random_samples.rs"]
mod random_samples;
mod same_steps;
mod steps;

use fsbench::data::Method;
use fsbench::features::{Factors, FeatureSet};
use fsbench::net::{FloatNet, Scheme, Shape};
use fsbench::service::Csr;
use fsbench::train::trainer::{
    ActiveFeatures, Batch, Labels, Loss, Trainer, TrainingRules, TrainingState, WeightedBatch, random_network,
};
use fsbench::train::{CpuTrainer, EvalLoss, Optimisation, PqrLoss};
use fsbench::units::Seed;
use rand::RngExt;
use tch::Device;

use crate::trainer::TchTrainer;
use random_samples::{FEATURES, RandomSamples, factors, rules};

/// A random network.
fn network(shape: &Shape) -> FloatNet {
    random_network(shape, Seed(4))
}

/// A network with both clipped and unclipped neurons, so that every branch of an activation's gradient is tested.
fn spread(shape: &Shape) -> FloatNet {
    let mut net = network(shape);
    if *shape != Shape::plain(FEATURES, shape.l1, shape.hidden.clone()) {
        let mut rng = Seed(6).stream("spread", 0);
        net.ft_weights.iter_mut().for_each(|weight| *weight = rng.random_range(-0.3..0.4));
    }
    net
}

/// The kernels' trainer of a network.
fn kernels(net: FloatNet, factors: Option<Factors>, optimisation: Optimisation) -> CpuTrainer {
    let state = TrainingState::new(net, factors, optimisation.optimiser);
    CpuTrainer::new(state, rules(optimisation), 2).expect("threads")
}

/// libtorch's trainer of a network, on the CPU.
fn tensors(net: FloatNet, factors: Option<Factors>, optimisation: Optimisation) -> TchTrainer {
    let state = TrainingState::new(net, factors, optimisation.optimiser);
    TchTrainer::new(state, rules(optimisation), Device::Cpu).expect("tensors")
}

/// √Σ (a − b)²
fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
}

/// √Σ a²
fn length(a: &[f32]) -> f64 {
    a.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>().sqrt()
}
