//! The device that a run trains on.

use std::path::PathBuf;

use fsbench::train::{DeviceChoice, TrainError};
use tch::Cuda;

use crate::cuda;
use crate::kernels::card::check_libraries;
use crate::kernels::cuda::Libraries;

/// Environment variable with the folder of `libtorch_cuda.so`, if the loader does not find it.
pub const CUDA_FOLDER: &str = "FSBENCH_LIBTORCH_CUDA";
/// Environment variable that makes a run on a GPU one on the emulated device, which checks the order of its work.
pub const EMULATED: &str = "FSBENCH_EMULATED_GPU";

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TrainingDevice {
    Cpu,
    /// By its number among those that the process sees.
    Gpu(usize),
    /// The GPU's kernels compiled for the CPU, far slower than both others: to try everything but a GPU's speed.
    EmulatedGpu,
}

/// The device for a choice.
///
/// # Errors
/// If a GPU was asked for and there is none, or its libraries cannot be loaded.
pub fn choose(choice: DeviceChoice) -> Result<TrainingDevice, TrainError> {
    if choice == DeviceChoice::Cpu {
        return Ok(TrainingDevice::Cpu);
    }
    if std::env::var_os(EMULATED).is_some_and(|value| value == "1") {
        return Ok(TrainingDevice::EmulatedGpu);
    }
    let folder = std::env::var_os(CUDA_FOLDER).map(PathBuf::from);
    let loaded = cuda::load(folder.as_deref());
    match (choice, loaded) {
        (_, Ok(())) if Cuda::is_available() => Ok(TrainingDevice::Gpu(0)),
        (DeviceChoice::Cuda, loaded) => Err(TrainError::NoGpu(no_gpu(loaded))),
        _ => Ok(TrainingDevice::Cpu),
    }
}

/// Why there is no GPU. `loaded`: whether libtorch's CUDA half was.
fn no_gpu(loaded: Result<(), String>) -> String {
    match (check_libraries(&Libraries::load()), loaded) {
        (_, Err(why)) => format!(
            "no GPU to train on: {why}. Set {CUDA_FOLDER} to the folder of a libtorch 2.11 with CUDA (its \
             libtorch_cuda.so), or ask for --device cpu"
        ),
        (Err(why), Ok(())) => format!("no GPU to train on: {why}. Or ask for --device cpu"),
        (Ok(()), Ok(())) => {
            "no GPU to train on: libtorch sees no CUDA device; CUDA_VISIBLE_DEVICES may hide it. Or ask \
                             for --device cpu"
                .into()
        }
    }
}
