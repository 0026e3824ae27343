//! The device that a run trains on.

use std::path::PathBuf;

use fsbench::train::{DeviceChoice, TrainError};
use tch::{Cuda, Device};

use crate::cuda;

/// Environment variable with the folder of `libtorch_cuda.so`, if the loader does not find it.
pub const CUDA_FOLDER: &str = "FSBENCH_LIBTORCH_CUDA";

/// The device for a choice.
///
/// # Errors
/// If a GPU was asked for and there is none, or its libraries cannot be loaded.
pub fn choose(choice: DeviceChoice) -> Result<Device, TrainError> {
    if choice == DeviceChoice::Cpu {
        return Ok(Device::Cpu);
    }
    let folder = std::env::var_os(CUDA_FOLDER).map(PathBuf::from);
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
