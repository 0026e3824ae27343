//! The device that a model is trained on: the CPU with our own kernels, or a GPU with libtorch's.

mod cuda;
mod model;

use std::path::PathBuf;

use tch::{Cuda, Device};

use super::activity::Activity;
use super::batch::Batch;
use super::model::{Model, SampleLosses, Sums, WeightedBatch};
use super::{DeviceChoice, TrainError, threads};
use model::DeviceModel;

/// Environment variable with the folder of `libtorch_cuda.so`, if the loader does not find it.
const CUDA_FOLDER: &str = "FSBENCH_LIBTORCH_CUDA";

/// The device for a choice.
///
/// # Errors
/// If a GPU was asked for and there is none, or its libraries cannot be loaded.
pub fn choose(choice: DeviceChoice) -> Result<Device, TrainError> {
    if choice == DeviceChoice::Cpu {
        return Ok(Device::Cpu);
    }
    let folder = std::env::var_os(CUDA_FOLDER).map(PathBuf::from);
    threads::use_one_thread();
    let loaded = cuda::load(folder.as_deref());
    match (choice, loaded) {
        (_, Ok(())) if Cuda::is_available() => Ok(Device::Cuda(0)),
        (DeviceChoice::Cuda, loaded) => {
            let reason = loaded.err().unwrap_or_else(|| "libtorch sees no CUDA device".into());
            Err(TrainError::Config(format!(
                "no GPU to train on: {reason}. Set {CUDA_FOLDER} to the folder of a libtorch 2.11 with CUDA (its \
                 libtorch_cuda.so), or ask for --device cpu"
            )))
        }
        _ => Ok(Device::Cpu),
    }
}

/// A model on its device.
pub enum Learner {
    Cpu(Box<Model>),
    Device(Box<DeviceModel>),
}

impl Learner {
    /// # Errors
    /// When libtorch fails.
    pub fn new(model: Model, device: Device) -> Result<Learner, TrainError> {
        Ok(match device {
            Device::Cpu => Learner::Cpu(Box::new(model)),
            device => Learner::Device(Box::new(DeviceModel::new(model, device)?)),
        })
    }

    /// See [`Model::train`].
    ///
    /// # Errors
    /// See [`Model`].
    pub fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        match self {
            Learner::Cpu(model) => model.train(batches, learning_rate),
            Learner::Device(model) => model.train(batches, learning_rate),
        }
    }

    /// See [`Model::evaluate`].
    ///
    /// # Errors
    /// See [`Model`].
    pub fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<(Sums, SampleLosses), TrainError> {
        match self {
            Learner::Cpu(model) => Ok(model.evaluate(batch, activity)),
            Learner::Device(model) => model.evaluate(batch, activity),
        }
    }

    /// Steps taken.
    #[must_use]
    pub fn step(&self) -> u64 {
        match self {
            Learner::Cpu(model) => model.step,
            Learner::Device(model) => model.step(),
        }
    }

    /// The model with its state, copied to the CPU if it was elsewhere.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn model(&mut self) -> Result<&Model, TrainError> {
        match self {
            Learner::Cpu(model) => Ok(model),
            Learner::Device(model) => model.download(),
        }
    }
}
