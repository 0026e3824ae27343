//! `--device auto` without a named trainer: a GPU, or the kernels on the CPU, by a constant rule on the training's
//! shape. Nothing is measured, so the same machine always chooses the same.

use super::cpu_trainer::CpuTrainer;
use super::tch_program::{self, available_gpus};
use super::{DeviceChoice, RunObserver, TrainConfig, TrainError, TrainOutcome, TrainingRun};
use crate::text::grouped;

/// Positions × neurons per step from which a GPU is faster: 512 positions at 256 neurons.
///
/// Measured with networks of 256 neurons with a hidden layer: a step of an H100 took 0.3 to 0.4 ms and 0.06 to
/// 0.07 µs per position; one of the sixteen cores beside it took 0.7 to 1.0 µs per position (1.44 and 0.96 million
/// positions per second). Both take as long at 0.3 ms / (0.7 µs − 0.07 µs) ≈ 480 and 0.4 ms / (1.0 µs − 0.06 µs) ≈ 430
/// positions. The time per position is taken as proportional to the neurons.
const LEAST_GPU_WORK: usize = 512 * 256;

impl TrainingRun<'_> {
    /// Trains on a GPU where there is one that pays, else by the kernels. If the GPU turns out to be unusable before
    /// the run has begun, the kernels train.
    pub(super) fn train_by_auto(&self, observer: &mut dyn RunObserver) -> Result<TrainOutcome, TrainError> {
        let has_program = tch_program::find(&self.program()?).is_ok();
        let why = match reason_for_gpu(self.config, available_gpus().len(), has_program) {
            Err(why) => why,
            Ok(why) => {
                observer.note(&format!("auto trains on a GPU: {why}"));
                match tch_program::train(self, DeviceChoice::Cuda, observer) {
                    Err(error) if error.is_without_gpu() => format!("the GPU cannot be used: {error}"),
                    trained => return trained,
                }
            }
        };
        observer.note(&format!("auto trains on the CPU: {why}"));
        self.train_with(&CpuTrainer::of_run, observer)
    }
}

/// Why to train on a GPU, or, as an error, why not. `gpus`: how many there are; `has_program`: whether `fsbench-tch`
/// was found.
fn reason_for_gpu(config: &TrainConfig, gpus: usize, has_program: bool) -> Result<String, String> {
    if gpus == 0 {
        return Err("there is no NVIDIA GPU".into());
    }
    let positions = config.settings.batch_size.saturating_mul(config.positions_per_sample());
    let neurons = config.settings.l1;
    let step = format!("a step has {} positions × {neurons} neurons", grouped(&positions.to_string()));
    let least = grouped(&LEAST_GPU_WORK.to_string());
    if positions.saturating_mul(neurons) < LEAST_GPU_WORK {
        return Err(format!("{step}, and a GPU pays from {least} on"));
    }
    if !has_program {
        return Err(format!("{}, which trains on GPUs, is neither beside this program nor on PATH", tch_program::NAME));
    }
    Ok(format!("{step}, and it pays from {least} on"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DataFiles, Method};
    use crate::train::{SecondMethod, TrainSettings};

    fn config(method: Method, batch_size: usize, l1: usize) -> TrainConfig {
        let settings = TrainSettings { batch_size, l1, ..TrainSettings::default() };
        TrainConfig::new("piece", "games.fsd", method, settings)
    }

    #[test]
    fn large_steps_take_a_gpu() {
        let takes = |method, batch_size, l1| reason_for_gpu(&config(method, batch_size, l1), 1, true).is_ok();
        assert!(takes(Method::Eval, 512, 256) && !takes(Method::Eval, 511, 256));
        assert!(takes(Method::Eval, 128, 1024) && !takes(Method::Eval, 127, 1024));
        // A sample of pqr is three positions.
        assert!(takes(Method::Pqr, 171, 256) && !takes(Method::Pqr, 170, 256));
        // The positions of a second method come on top.
        let mut both = config(Method::Eval, 128, 256);
        assert!(reason_for_gpu(&both, 1, true).is_err());
        let second = SecondMethod {
            method: Method::Pqr,
            data: DataFiles::from("games.fsd"),
            reading: both.reading,
            weight: 1.0,
        };
        both.second = Some(second);
        assert!(reason_for_gpu(&both, 1, true).is_ok());
    }

    #[test]
    fn the_reason_is_named() {
        let reason = |batch_size, gpus, has_program| {
            let found = reason_for_gpu(&config(Method::Eval, batch_size, 256), gpus, has_program);
            found.unwrap_or_else(|why| format!("CPU: {why}"))
        };
        assert_eq!(reason(16384, 2, true), "a step has 16,384 positions × 256 neurons, and it pays from 131,072 on");
        assert_eq!(reason(16384, 0, true), "CPU: there is no NVIDIA GPU");
        assert_eq!(reason(64, 1, true), "CPU: a step has 64 positions × 256 neurons, and a GPU pays from 131,072 on");
        assert!(reason(16384, 1, false).starts_with("CPU: fsbench-tch, which trains on GPUs, is neither beside"));
    }
}
