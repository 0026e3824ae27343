//! Where a model is trained: on the CPU by kernels of our own, elsewhere by libtorch's.

mod cuda;
mod tensors;

use std::path::PathBuf;

use tch::{Cuda, Device};

use super::activity::Activity;
use super::batch::Batch;
use super::model::{Model, Part, Sums};
use super::{DeviceChoice, TrainError, threads};
use tensors::Tensors;

/// Folder of libtorch's libraries with `libtorch_cuda.so`, where the loader would not find them.
const FOLDER: &str = "FSBENCH_LIBTORCH_CUDA";

/// The device a choice comes to.
///
/// # Errors
/// When a GPU was asked for and there is none, or its libraries cannot be loaded.
pub fn chosen(choice: DeviceChoice) -> Result<Device, TrainError> {
    if choice == DeviceChoice::Cpu {
        return Ok(Device::Cpu);
    }
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    threads::alone();
    let loaded = cuda::load(folder.as_deref());
    match (choice, loaded) {
        (_, Ok(())) if Cuda::is_available() => Ok(Device::Cuda(0)),
        (DeviceChoice::Cuda, loaded) => {
            let reason = loaded.err().unwrap_or_else(|| "libtorch sees no CUDA device".into());
            Err(TrainError::Config(format!(
                "no GPU to train on: {reason}. Set {FOLDER} to the folder of a libtorch 2.11 with CUDA (its \
                 libtorch_cuda.so), or ask for --device cpu"
            )))
        }
        _ => Ok(Device::Cpu),
    }
}

/// A model on its device.
pub enum Learner {
    Cpu(Box<Model>),
    Device(Box<Tensors>),
}

impl Learner {
    /// # Errors
    /// When libtorch fails.
    pub fn new(model: Model, device: Device) -> Result<Learner, TrainError> {
        Ok(match device {
            Device::Cpu => Learner::Cpu(Box::new(model)),
            device => Learner::Device(Box::new(Tensors::new(model, device)?)),
        })
    }

    /// See [`Model::train`].
    ///
    /// # Errors
    /// As there.
    pub fn train(&mut self, parts: &[Part<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        match self {
            Learner::Cpu(model) => model.train(parts, learning_rate),
            Learner::Device(tensors) => tensors.train(parts, learning_rate),
        }
    }

    /// See [`Model::observe`].
    ///
    /// # Errors
    /// As there.
    pub fn observe(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<Sums, TrainError> {
        match self {
            Learner::Cpu(model) => model.observe(batch, activity),
            Learner::Device(tensors) => tensors.observe(batch, activity),
        }
    }

    /// Steps taken.
    #[must_use]
    pub fn step(&self) -> u64 {
        match self {
            Learner::Cpu(model) => model.step,
            Learner::Device(tensors) => tensors.step(),
        }
    }

    /// The model with its state, brought to the CPU where it was elsewhere.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn model(&mut self) -> Result<&Model, TrainError> {
        match self {
            Learner::Cpu(model) => Ok(model),
            Learner::Device(tensors) => tensors.model(),
        }
    }
}
