//! What the last steps left on the device: their losses and whether they diverged. The host reads them half a ring at a
//! time, copied while later steps run, so that no step waits.
#![allow(unsafe_code, reason = "copies from the device take pointers")]

use std::collections::VecDeque;
use std::rc::Rc;

use fsbench::train::TrainError;
use fsbench::train::trainer::{StepLosses, Sums};
use tch::{Device, Kind, Tensor};

use super::arguments::Memory;
use super::pass::{MOST_BATCHES, STATE_LEN};
use crate::kernels::streams::{Event, HostMemory, Queue, Streams};
use crate::torch_error;

/// Steps in half of the ring. A loss is known after this many steps, and at most twice as many.
const HALF: usize = 16;

/// Places for the states of steps, `State` in kernels.cu.
pub struct LossRing {
    streams: Rc<dyn Streams>,
    device: Tensor,
    host: HostMemory,
    /// The copy of either half has arrived.
    copied: [Event; 2],
    /// The half that is on its way.
    coming: Option<usize>,
    /// Steps begun.
    begun: usize,
    /// Steps whose losses were not read, the oldest first.
    unread: VecDeque<UnreadStep>,
}

/// A step whose losses were not read.
struct UnreadStep {
    place: usize,
    number: u64,
    learning_rate: f64,
    batches: usize,
}

/// Why steps end.
pub enum RingError {
    Device(TrainError),
    Diverged(Diverged),
}

/// The first step with a number that is not finite.
pub struct Diverged {
    pub step: u64,
    pub learning_rate: f64,
    /// A target that is not finite, with the number of its sample in the batch.
    pub target: Option<(usize, f32)>,
    /// Mean losses of its batches.
    pub losses: Vec<f64>,
}

impl From<TrainError> for RingError {
    fn from(error: TrainError) -> RingError {
        RingError::Device(error)
    }
}

impl LossRing {
    /// # Errors
    /// When the device fails.
    pub fn new(streams: Rc<dyn Streams>, device: Device) -> Result<LossRing, TrainError> {
        let places = Tensor::f_zeros([2 * HALF as i64, STATE_LEN as i64], (Kind::Double, device));
        let host = HostMemory::new(&streams, 2 * HALF * STATE_LEN * size_of::<f64>())?;
        let copied = [streams.event()?, streams.event()?];
        let device = places.map_err(torch_error)?;
        Ok(LossRing { streams, device, host, copied, coming: None, begun: 0, unread: VecDeque::new() })
    }

    fn memory(&self, place: usize) -> Memory {
        self.device.data_ptr().wrapping_byte_add(place * STATE_LEN * size_of::<f64>())
    }

    /// The place of the step before the next, and the next step's.
    pub fn places(&self) -> (Option<Memory>, Memory) {
        let before = self.begun.checked_sub(1).map(|before| self.memory(before % (2 * HALF)));
        (before, self.memory(self.begun % (2 * HALF)))
    }

    /// To be called when all work of a step was started. Returns the steps whose losses have become known.
    ///
    /// # Errors
    /// When one of them diverged, or the device fails.
    pub fn started(&mut self, number: u64, learning_rate: f64, batches: usize) -> Result<Vec<StepLosses>, RingError> {
        self.unread.push_back(UnreadStep { place: self.begun % (2 * HALF), number, learning_rate, batches });
        self.begun += 1;
        if !self.begun.is_multiple_of(HALF) {
            return Ok(Vec::new());
        }
        let known = self.read_coming()?;
        self.fetch((self.begun / HALF - 1) % 2)?;
        Ok(known)
    }

    /// Waits for all steps. Returns those that [`LossRing::started`] has not.
    ///
    /// # Errors
    /// As [`LossRing::started`].
    pub fn finish(&mut self) -> Result<Vec<StepLosses>, RingError> {
        let mut known = self.read_coming()?;
        if !self.unread.is_empty() {
            self.fetch(self.begun / HALF % 2)?;
            known.extend(self.read_coming()?);
        }
        Ok(known)
    }

    /// Starts the copy of one half.
    fn fetch(&mut self, half: usize) -> Result<(), TrainError> {
        let bytes = HALF * STATE_LEN * size_of::<f64>();
        let from = self.memory(half * HALF);
        let to = self.host.start().wrapping_add(half * bytes);
        // SAFETY: either memory has two such halves and stays as long as `self`; `drop` waits. `read_coming` alone reads
        // the host's, after it has waited.
        unsafe { self.streams.download(to, from, bytes) }?;
        self.streams.record(self.copied[half], Queue::Compute)?;
        self.coming = Some(half);
        Ok(())
    }

    /// Waits for the half that is on its way.
    fn read_coming(&mut self) -> Result<Vec<StepLosses>, RingError> {
        let Some(half) = self.coming.take() else { return Ok(Vec::new()) };
        self.streams.host_waits(self.copied[half])?;
        let mut known = Vec::new();
        while let Some(step) = self.unread.pop_front_if(|step| step.place / HALF == half) {
            known.push(self.read(&step).map_err(RingError::Diverged)?);
        }
        Ok(known)
    }

    fn read(&self, step: &UnreadStep) -> Result<StepLosses, Diverged> {
        let all: &[f64] = bytemuck::cast_slice(self.host.bytes());
        let left = LeftState(&all[step.place * STATE_LEN..][..STATE_LEN]);
        let batches: Vec<Sums> = (0..step.batches).map(|batch| left.sums(batch)).collect();
        if left.is_finite() {
            return Ok(StepLosses { step: step.number, batches });
        }
        let UnreadStep { number, learning_rate, .. } = *step;
        let losses = batches.iter().map(Sums::mean_loss).collect();
        Err(Diverged { step: number, learning_rate, target: left.target(), losses })
    }
}

impl Drop for LossRing {
    fn drop(&mut self) {
        if let Some(half) = self.coming {
            // Fails only if the device is lost, and then it copies no more.
            let _ = self.streams.host_waits(self.copied[half]);
        }
    }
}

/// A step's state: `State` in kernels.cu.
pub struct LeftState<'a>(pub &'a [f64]);

impl LeftState<'_> {
    /// The sums of one of the step's batches.
    pub fn sums(&self, batch: usize) -> Sums {
        let numbers = &self.0[3 * batch..3 * batch + 3];
        Sums { loss: numbers[0], samples: numbers[1] as u64, preferred: numbers[2] as u64 }
    }

    /// Whether neither this step nor one before it diverged.
    fn is_finite(&self) -> bool {
        self.0[3 * MOST_BATCHES + 1].to_bits() as u32 == 0
    }

    fn target(&self) -> Option<(usize, f32)> {
        let bits = self.0[3 * MOST_BATCHES + 2].to_bits();
        let sample = ((bits >> 32) as usize).checked_sub(1)?;
        Some((sample, f32::from_bits(bits as u32)))
    }
}
