//! The trainer of GPUs: steps by our own kernels ([`crate::kernels`]), with libtorch's memory and products of matrices.

mod arguments;
mod device_batch;
mod loss_ring;
mod parameters;
mod pass;
mod step_times;

use std::cell::RefCell;
use std::rc::Rc;

use fsbench::train::TrainError;
use fsbench::train::trainer::{
    Activity, Adam, Batch, Labels, SYNC_PERIOD, SampleLosses, StepLosses, Sums, Trainer, TrainingRules, TrainingState,
    WeightedBatch, explain_losses, saturation,
};
use tch::{Device, Kind, Tensor};

use crate::kernels::streams::Streams;
use crate::kernels::{KernelLayout, Kernels};
use crate::tensor_values::with_values;
use crate::torch_error;
use arguments::{Memory, Step};
use device_batch::BatchMemories;
use loss_ring::{LeftState, LossRing, RingError};
use parameters::Network;
pub use parameters::active_columns;
use pass::{Pass, STATE_LEN};
use step_times::{Part, STEP_TIMES, StepTimes};

/// A network in training on a device.
pub struct KernelTrainer {
    /// As of the last download.
    state: TrainingState,
    rules: TrainingRules,
    layout: KernelLayout,
    kernels: Box<dyn Kernels>,
    device: Device,
    /// The device's name, for records.
    gpu: String,
    network: Network,
    batches: RefCell<BatchMemories>,
    ring: LossRing,
    times: Option<StepTimes>,
    /// What an evaluation leaves: `State` in kernels.cu.
    evaluated: Tensor,
    step: u64,
}

impl KernelTrainer {
    /// `kernels` are those of the network's shape, on `device`, and `streams` its queues.
    ///
    /// # Errors
    /// When libtorch or the device fails.
    pub fn new(
        state: TrainingState,
        rules: TrainingRules,
        kernels: Box<dyn Kernels>,
        streams: Rc<dyn Streams>,
        device: Device,
    ) -> Result<KernelTrainer, TrainError> {
        let layout = KernelLayout::new(&state.net.shape);
        let network = Network::upload(&state, &rules, &layout, device).map_err(torch_error)?;
        let evaluated = Tensor::f_zeros([STATE_LEN as i64], (Kind::Double, device)).map_err(torch_error)?;
        let batches = RefCell::new(BatchMemories::new(Rc::clone(&streams), device)?);
        let asked = std::env::var_os(STEP_TIMES).is_some_and(|value| value == "1");
        let times = asked.then(|| StepTimes::new(Rc::clone(&streams)));
        let ring = LossRing::new(streams, device)?;
        let step = state.step;
        let gpu = String::new();
        let trainer = KernelTrainer {
            state,
            rules,
            layout,
            kernels,
            device,
            gpu,
            network,
            batches,
            ring,
            times,
            evaluated,
            step,
        };
        trainer.pass(trainer.adam(0.0, 1), trainer.evaluated.data_ptr()).copy_parameters()?;
        Ok(trainer)
    }

    /// The same trainer, with its GPU's name.
    #[must_use]
    pub fn on(mut self, gpu: String) -> KernelTrainer {
        self.gpu = gpu;
        self
    }

    /// The same trainer, which sums the table's gradient by feature however few there are.
    #[cfg(test)]
    #[must_use]
    pub fn by_feature(mut self) -> KernelTrainer {
        self.layout.by_product = false;
        self
    }

    /// `left`: where the pass leaves its state.
    fn pass(&self, step: Step, left: Memory) -> Pass<'_> {
        let KernelTrainer { rules, layout, kernels, device, network, .. } = self;
        Pass { rules, layout, kernels: &**kernels, device: *device, network, left, step }
    }

    /// The constants of a step. Long gradients are scaled down on the device.
    fn adam(&self, learning_rate: f64, step: u64) -> Step {
        let optimisation = &self.rules.optimisation;
        let adam = Adam::new(optimisation.optimiser, optimisation.weight_decay, learning_rate, step);
        Step::new(step, adam, optimisation.gradient_clip, step.is_multiple_of(SYNC_PERIOD))
    }

    /// Starts a step on the device, which is not taken if a number is not finite.
    fn start_step(&self, batches: &[WeightedBatch<'_>], step: Step) -> Result<(), TrainError> {
        let (before, left) = self.ring.places();
        let pass = self.pass(step, left);
        let times = self.times.as_ref();
        let ended = |part: Part| times.map_or(Ok(()), |times| times.ended(part));
        let all: Vec<&Batch<'_>> = batches.iter().map(|weighted| &weighted.batch).collect();
        let mut memories = self.batches.borrow_mut();
        let uploaded = memories.upload(&all, times)?;
        ended(Part::Waiting)?;
        pass.begin(before)?;
        for (number, (batch, WeightedBatch { weight, .. })) in uploaded.each.iter().zip(batches).enumerate() {
            let out = pass.accumulate(batch)?;
            ended(Part::Forward)?;
            let gradients = pass.train_dense(batch, &out, number, *weight)?;
            ended(Part::Dense)?;
            pass.add_table_gradient(batch, &out, &gradients, *weight)?;
            ended(Part::Backward)?;
        }
        pass.update()?;
        ended(Part::Update)?;
        if let Some(times) = times {
            times.step_ended()?;
        }
        memories.used(&uploaded)
    }

    /// Steps whose losses have become known, or why there are no more.
    fn known(&mut self, read: Result<Vec<StepLosses>, RingError>) -> Result<Vec<StepLosses>, TrainError> {
        let diverged = match read {
            Ok(known) => return Ok(known),
            Err(RingError::Device(error)) => return Err(error),
            Err(RingError::Diverged(diverged)) => diverged,
        };
        // Later steps have changed nothing either.
        self.step = diverged.step - 1;
        let cause = explain_losses(&self.state()?.net, diverged.target, &diverged.losses);
        Err(TrainError::NotFinite { step: diverged.step, cause, learning_rate: diverged.learning_rate })
    }
}

impl Trainer for KernelTrainer {
    fn train(&mut self, batches: &[WeightedBatch<'_>], learning_rate: f64) -> Result<Vec<StepLosses>, TrainError> {
        let number = self.step + 1;
        self.start_step(batches, self.adam(learning_rate, number))?;
        self.step = number;
        let read = self.ring.started(number, learning_rate, batches.len());
        self.known(read)
    }

    fn finish_steps(&mut self) -> Result<Vec<StepLosses>, TrainError> {
        let read = self.ring.finish();
        if let Some(times) = &self.times {
            times.report()?;
        }
        self.known(read)
    }

    fn evaluate(&self, batch: &Batch<'_>, activity: &mut Activity) -> Result<(Sums, SampleLosses), TrainError> {
        let pass = self.pass(self.adam(0.0, 1), self.evaluated.data_ptr());
        let mut memories = self.batches.borrow_mut();
        let uploaded = memories.upload(&[batch], None)?;
        pass.begin(None)?;
        let on_device = &uploaded.each[0];
        let out = pass.accumulate(on_device)?;
        let shape = &self.state.net.shape;
        let [positive, saturated] = pass.activity(on_device, &out, saturation(shape.activation, &self.rules.scheme))?;
        let losses = pass.losses(on_device, &out)?;
        memories.used(&uploaded)?;
        let mut read = || {
            let counts = |tensor: &Tensor| Vec::<i32>::try_from(tensor.f_to_device(Device::Cpu)?);
            activity.add_counts(2 * batch.positions() as u64, &counts(&positive)?, &counts(&saturated)?);
            let left = Vec::<f64>::try_from(self.evaluated.f_to_device(Device::Cpu)?)?;
            let preferred = match batch.labels {
                Labels::Eval(_) => Vec::new(),
                Labels::Pqr => {
                    let bytes = Vec::<u8>::try_from(losses.preferred.f_to_device(Device::Cpu)?)?;
                    bytes.into_iter().map(|byte| byte != 0).collect()
                }
            };
            let losses = with_values(&losses.each, <[f32]>::to_vec)?;
            Ok((LeftState(&left).sums(0), SampleLosses { losses, preferred }))
        };
        read().map_err(torch_error)
    }

    fn step(&self) -> u64 {
        self.step
    }

    fn gpu(&self) -> Option<&str> {
        Some(&self.gpu)
    }

    fn state(&mut self) -> Result<&TrainingState, TrainError> {
        self.state.step = self.step;
        self.network.download(&mut self.state, &self.layout).map_err(torch_error)?;
        Ok(&self.state)
    }
}
