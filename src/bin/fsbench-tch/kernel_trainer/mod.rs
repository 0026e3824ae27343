//! The trainer of GPUs: steps by our own kernels ([`crate::kernels`]), with libtorch's memory and products of matrices.

mod arguments;
mod device_batch;
mod parameters;
mod pass;

use fsbench::train::TrainError;
use fsbench::train::trainer::{
    Activity, Adam, Batch, Labels, SYNC_PERIOD, SampleLosses, Sums, Trainer, TrainingRules, TrainingState,
    WeightedBatch, explain_losses, saturation,
};
use tch::{Device, Kind, TchError, Tensor};

use crate::kernels::{KernelLayout, Kernels};
use crate::tensor_values::with_values;
use crate::torch_error;
use arguments::Step;
use device_batch::DeviceBatch;
use parameters::Network;
use pass::{MOST_BATCHES, Pass, STATE_LEN};

/// A network in training on a device.
pub struct KernelTrainer {
    /// As of the last download.
    state: TrainingState,
    rules: TrainingRules,
    layout: KernelLayout,
    kernels: Box<dyn Kernels>,
    device: Device,
    network: Network,
    /// What a step leaves: `State` in kernels.cu.
    left: Tensor,
    step: u64,
}

impl KernelTrainer {
    /// `kernels` are those of the network's shape, on `device`.
    ///
    /// # Errors
    /// When libtorch or the device fails.
    pub fn new(
        state: TrainingState,
        rules: TrainingRules,
        kernels: Box<dyn Kernels>,
        device: Device,
    ) -> Result<KernelTrainer, TrainError> {
        let layout = KernelLayout::new(&state.net.shape);
        let network = Network::upload(&state, &rules, &layout, device).map_err(torch_error)?;
        let left = Tensor::f_zeros([STATE_LEN], (Kind::Double, device)).map_err(torch_error)?;
        let trainer = KernelTrainer { step: state.step, state, rules, layout, kernels, device, network, left };
        trainer.pass(trainer.adam(0.0, 1)).copy_parameters()?;
        Ok(trainer)
    }

    /// The same trainer, which sums the table's gradient by feature however few there are.
    #[cfg(test)]
    #[must_use]
    pub fn by_feature(mut self) -> KernelTrainer {
        self.layout.by_product = false;
        self
    }

    fn pass(&self, step: Step) -> Pass<'_> {
        let KernelTrainer { rules, layout, kernels, device, network, left, .. } = self;
        Pass { rules, layout, kernels: &**kernels, device: *device, network, left, step }
    }

    /// The constants of a step. Long gradients are scaled down on the device.
    fn adam(&self, learning_rate: f64, step: u64) -> Step {
        let optimisation = &self.rules.optimisation;
        let adam = Adam::new(optimisation.optimiser, optimisation.weight_decay, learning_rate, step);
        Step::new(step, adam, optimisation.gradient_clip, step.is_multiple_of(SYNC_PERIOD))
    }

    /// Takes a step on the device, unless a number is not finite.
    fn start_step(&self, batches: &[WeightedBatch<'_>], step: Step) -> Result<(), TrainError> {
        let pass = self.pass(step);
        pass.clear_state()?;
        for (number, WeightedBatch { batch, weight }) in batches.iter().enumerate() {
            let batch = DeviceBatch::upload(batch, self.device).map_err(torch_error)?;
            let out = pass.accumulate(&batch)?;
            let gradients = pass.train_dense(&batch, &out, number, *weight)?;
            pass.add_table_gradient(&batch, &out, &gradients, *weight)?;
        }
        pass.update()
    }

    /// What the last step left: each batch's losses, and whether all numbers were finite.
    fn read(&self, batches: &[WeightedBatch<'_>]) -> Result<(Vec<Sums>, bool), TchError> {
        let left = Vec::<f64>::try_from(self.left.f_to_device(Device::Cpu)?)?;
        let sums = batches.iter().enumerate().map(|(number, _)| sums_of(&left[3 * number..3 * number + 3]));
        // The number of the diverged step, an integer.
        Ok((sums.collect(), left[3 * MOST_BATCHES + 1].to_bits() as u32 == 0))
    }
}

fn sums_of(numbers: &[f64]) -> Sums {
    Sums { loss: numbers[0], samples: numbers[1] as u64, preferred: numbers[2] as u64 }
}

impl Trainer for KernelTrainer {
    fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<Sums>, TrainError> {
        let number = self.step + 1;
        self.start_step(batches, self.adam(learning_rate, number))?;
        let (sums, all_finite) = self.read(batches).map_err(torch_error)?;
        if !all_finite {
            let losses: Vec<f64> = sums.iter().map(Sums::mean_loss).collect();
            let cause = explain_losses(&self.state()?.net, batches, &losses);
            return Err(TrainError::NotFinite { step: number, cause, learning_rate });
        }
        self.step = number;
        Ok(sums)
    }

    fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<(Sums, SampleLosses), TrainError> {
        let pass = self.pass(self.adam(0.0, 1));
        pass.clear_state()?;
        let on_device = DeviceBatch::upload(batch, self.device).map_err(torch_error)?;
        let out = pass.accumulate(&on_device)?;
        let shape = &self.state.net.shape;
        let [positive, saturated] =
            pass.activity(&on_device, &out, saturation(shape.activation, &self.rules.scheme))?;
        let losses = pass.losses(&on_device, &out)?;
        let mut read = || {
            let counts = |tensor: &Tensor| Vec::<i32>::try_from(tensor.f_to_device(Device::Cpu)?);
            activity.add_counts(2 * batch.positions() as u64, &counts(&positive)?, &counts(&saturated)?);
            let (all_sums, _) = self.read(&[WeightedBatch { batch: *batch, weight: 1.0 }])?;
            let preferred = match batch.labels {
                Labels::Eval(_) => Vec::new(),
                Labels::Pqr => {
                    let bytes = Vec::<u8>::try_from(losses.preferred.f_to_device(Device::Cpu)?)?;
                    bytes.into_iter().map(|byte| byte != 0).collect()
                }
            };
            let losses = with_values(&losses.each, <[f32]>::to_vec)?;
            let sums = all_sums.first().copied().unwrap_or_default();
            Ok((sums, SampleLosses { losses, preferred }))
        };
        read().map_err(torch_error)
    }

    fn step(&self) -> u64 {
        self.step
    }

    fn state(&mut self) -> Result<&TrainingState, TrainError> {
        self.state.step = self.step;
        self.network.download(&mut self.state, &self.layout).map_err(torch_error)?;
        Ok(&self.state)
    }
}
