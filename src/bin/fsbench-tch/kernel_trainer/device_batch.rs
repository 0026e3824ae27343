//! A batch in the device's memory.
#![allow(unsafe_code, reason = "tensors that borrow the memory of slices while it is copied")]

use fsbench::train::trainer::{Batch, Labels};
use tch::kind::Element;
use tch::{Device, TchError, Tensor};

use super::arguments::Lists;

/// A batch on a device. On the CPU, in tests, it borrows the memory of the batch that was uploaded.
pub struct DeviceBatch<'a> {
    pub batch: &'a Batch<'a>,
    /// Of the side to move, then of the other.
    indices: [Tensor; 2],
    offsets: [Tensor; 2],
    pub pieces: Tensor,
    /// `None` for pqr.
    pub targets: Option<Tensor>,
    /// Active features of both sides.
    pub active: usize,
}

impl<'a> DeviceBatch<'a> {
    /// # Errors
    /// When libtorch fails.
    pub fn upload(batch: &'a Batch<'a>, device: Device) -> Result<DeviceBatch<'a>, TchError> {
        let [stm, nstm] = &batch.active;
        let targets = match batch.labels {
            Labels::Eval(targets) => Some(uploaded(targets, device)?),
            Labels::Pqr => None,
        };
        Ok(DeviceBatch {
            batch,
            indices: [uploaded(stm.indices(), device)?, uploaded(nstm.indices(), device)?],
            offsets: [uploaded(stm.offsets(), device)?, uploaded(nstm.offsets(), device)?],
            pieces: uploaded(batch.piece_counts, device)?,
            targets,
            active: stm.indices().len() + nstm.indices().len(),
        })
    }

    pub fn lists(&self) -> Lists {
        let pointers = |tensors: &[Tensor; 2]| tensors.each_ref().map(Tensor::data_ptr);
        Lists { indices: pointers(&self.indices), offsets: pointers(&self.offsets) }
    }
}

/// A copy of values on the device; on the CPU, the values themselves.
fn uploaded<T: Element>(values: &[T], device: Device) -> Result<Tensor, TchError> {
    if values.is_empty() {
        return Tensor::f_zeros([1], (T::KIND, device));
    }
    // SAFETY: the tensor shows `values`, which outlive it: on a device it is copied at once, and on the CPU
    // `DeviceBatch` borrows what it was made from. Nothing writes to it.
    let here =
        unsafe { Tensor::f_from_blob(values.as_ptr().cast(), &[values.len() as i64], &[1], T::KIND, Device::Cpu)? };
    here.f_to_device(device)
}
