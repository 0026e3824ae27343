//! The memory of tensors as slices, so that the feature transformer's kernels and libtorch work on the same values.
#![allow(unsafe_code, reason = "the memory of tensors, which libtorch shows as pointers; the allocator's settings")]

use std::ops::{Deref, DerefMut};

use tch::{Device, Kind, TchError, Tensor};

/// A tensor of floats on the CPU with a single handle, as a mutable slice. libtorch allocates it, because its kernels
/// may sum in an order that depends on the alignment, which would change the last bit.
#[derive(Debug)]
pub struct FloatBuffer(Tensor);

impl FloatBuffer {
    /// # Errors
    /// When libtorch fails.
    pub fn zeros(rows: usize, columns: usize) -> Result<FloatBuffer, TchError> {
        Tensor::f_zeros([rows as i64, columns as i64], (Kind::Float, Device::Cpu)).map(FloatBuffer)
    }

    /// Makes the tensor read-only, so that it may have other handles.
    #[must_use]
    pub fn freeze(self) -> FrozenBuffer {
        FrozenBuffer(self.0)
    }
}

impl Deref for FloatBuffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `zeros` made a contiguous tensor of floats in the CPU's memory, and no handle of it writes now.
        unsafe { values_of(&self.0) }
    }
}

impl DerefMut for FloatBuffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        let count = self.0.numel();
        if count == 0 {
            return &mut [];
        }
        // SAFETY: as above; the tensor is not empty, so the pointer is not null, and there is no other handle of it.
        unsafe { std::slice::from_raw_parts_mut(self.0.data_ptr().cast(), count) }
    }
}

/// A [`FloatBuffer`] that is only read.
#[derive(Debug)]
pub struct FrozenBuffer(Tensor);

impl FrozenBuffer {
    /// The tensor as a leaf of the autograd graph. Operations on it do not write to its memory.
    pub fn tensor(&self, train: bool) -> Tensor {
        self.0.shallow_clone().set_requires_grad(train)
    }
}

impl Deref for FrozenBuffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: as for `FloatBuffer`; all handles of the tensor only read.
        unsafe { values_of(&self.0) }
    }
}

/// Makes the allocator keep freed memory. Every step allocates the same megabytes, and the system would spend a tenth
/// of the step clearing them.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGEST: i32 = 1 << 30;
        // SAFETY: sets two parameters of the C library's allocator; on failure they stay as they were.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGEST);
        }
    }
}

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
