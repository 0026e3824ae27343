//! libtorch's trainer and the library's kernels on the same batches.

mod gradients;
mod late_losses;
#[path = "../../../train/cpu_trainer/tests/random_samples.rs"]
mod random_samples;
mod same_steps;
#[path = "../../../../tests/common/skip.rs"]
pub mod skip;
mod steps;

use std::rc::Rc;

use fsbench::data::Method;
use fsbench::features::{Factors, FeatureSet};
use fsbench::net::{FloatNet, Scheme, Shape};
use fsbench::service::Csr;
use fsbench::train::trainer::{
    ActiveFeatures, Batch, Labels, Loss, Sums, Trainer, TrainingRules, TrainingState, WeightedBatch, random_network,
};
use fsbench::train::{CpuTrainer, DeviceChoice, EvalLoss, Optimisation, PqrLoss, TrainError};
use fsbench::units::Seed;
use rand::RngExt;
use tch::Device;

use crate::device::{self, TrainingDevice};
use crate::kernel_trainer::KernelTrainer;
use crate::kernels::card::CudaLibraries;
use crate::kernels::cuda::{CudaKernels, Libraries};
use crate::kernels::emulated::EmulatedKernels;
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

/// Random samples for a shape. Where an expression chooses the bucket, the inputs are buckets.
fn samples_for(shape: &Shape, method: Method, samples: usize, index: u64) -> RandomSamples {
    let mut samples = RandomSamples::new(method, samples, index);
    if shape.buckets.rule.expression().is_some() {
        samples.bucket_inputs.iter_mut().for_each(|input| *input %= shape.buckets.count as u8);
    }
    samples
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

/// The GPU's trainer of a network, its kernels emulated.
fn emulated(net: FloatNet, factors: Option<Factors>, optimisation: Optimisation) -> KernelTrainer {
    let rules = rules(optimisation);
    let kernels = Box::new(EmulatedKernels::new(&net.shape, &rules.scheme).expect("a C++ compiler"));
    let streams = Rc::new(kernels.streams());
    let state = TrainingState::new(net, factors, optimisation.optimiser);
    KernelTrainer::new(state, rules, kernels, streams, Device::Cpu).expect("tensors")
}

/// The GPU's trainer of a network, if there is a GPU.
fn on_gpu(net: FloatNet, factors: Option<Factors>, optimisation: Optimisation) -> Option<KernelTrainer> {
    let device = device::choose(DeviceChoice::Auto).expect("the CPU at least");
    let TrainingDevice::Gpu(number) = device else { return None };
    let rules = rules(optimisation);
    let card = Libraries::load().card(number).expect("a GPU");
    let kernels = Box::new(CudaKernels::new(&net.shape, &rules.scheme, &card).expect("kernels"));
    let streams = Rc::new(kernels.streams().expect("streams"));
    let state = TrainingState::new(net, factors, optimisation.optimiser);
    Some(KernelTrainer::new(state, rules, kernels, streams, Device::Cuda(number)).expect("memory"))
}

/// All trainers of this program. The GPU's emulated by either way to the table's gradient, and on the GPU if there is
/// one.
fn trainers(net: &FloatNet, factors: Option<&Factors>, optimisation: Optimisation) -> Vec<Box<dyn Trainer>> {
    let mut trainers: Vec<Box<dyn Trainer>> = vec![
        Box::new(tensors(net.clone(), factors.cloned(), optimisation)),
        Box::new(emulated(net.clone(), factors.cloned(), optimisation)),
        Box::new(emulated(net.clone(), factors.cloned(), optimisation).by_feature()),
    ];
    for by_feature in [false, true] {
        if let Some(trainer) = on_gpu(net.clone(), factors.cloned(), optimisation) {
            trainers.push(Box::new(if by_feature { trainer.by_feature() } else { trainer }));
        }
    }
    trainers
}

/// Takes a step and waits for it: each batch's losses.
fn step_losses(trainer: &mut dyn Trainer, batches: &[WeightedBatch<'_>], rate: f64) -> Result<Vec<Sums>, TrainError> {
    let mut known = trainer.train(batches, rate)?;
    known.extend(trainer.finish_steps()?);
    assert_eq!(known.len(), 1, "one step");
    Ok(known.remove(0).batches)
}

/// √Σ (a − b)²
fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
}

/// √Σ a²
fn length(a: &[f32]) -> f64 {
    a.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>().sqrt()
}
