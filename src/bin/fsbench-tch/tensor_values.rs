//! The memory of tensors as slices.
#![allow(unsafe_code, reason = "the memory of tensors, which libtorch shows as pointers")]

use tch::{Device, Kind, TchError, Tensor};

/// Calls `read` with a tensor's values.
///
/// # Errors
/// When libtorch fails.
pub fn with_values<T>(tensor: &Tensor, read: impl FnOnce(&[f32]) -> T) -> Result<T, TchError> {
    let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?.f_contiguous()?;
    // SAFETY: a contiguous tensor of floats in the CPU's memory. It lives until `read` returns, and `read` has no
    // handle to write to it.
    Ok(read(unsafe { values_of(&tensor) }))
}

/// A tensor's values. An empty tensor may have no memory.
///
/// # Safety
/// The tensor is contiguous, of floats, in the CPU's memory, and nothing writes to it during the borrow.
unsafe fn values_of(tensor: &Tensor) -> &[f32] {
    match tensor.numel() {
        0 => &[],
        // SAFETY: as promised by the caller.
        count => unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), count) },
    }
}

/// Copies a tensor's values to `out`, which has the same length.
///
/// # Errors
/// When libtorch fails.
pub fn copy_values(tensor: &Tensor, out: &mut [f32]) -> Result<(), TchError> {
    with_values(tensor, |values| out.copy_from_slice(values))
}
