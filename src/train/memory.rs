//! Tensors' memory as slices, so that the feature transformer and libtorch work on the same numbers.
#![allow(unsafe_code, reason = "the memory of tensors, which libtorch shows as pointers; the allocator's settings")]

use std::ops::{Deref, DerefMut};

use tch::{Device, Kind, TchError, Tensor};

/// A tensor of floats on the CPU that nothing else has a handle of, as a slice. Its memory is aligned as libtorch's own:
/// the order in which its kernels sum, and so the last bit, may depend on that.
#[derive(Debug)]
pub struct Floats(Tensor);

impl Floats {
    /// # Errors
    /// When libtorch fails.
    pub fn zeros(rows: usize, columns: usize) -> Result<Floats, TchError> {
        Tensor::f_zeros([rows as i64, columns as i64], (Kind::Float, Device::Cpu)).map(Floats)
    }

    /// The tensor, which from now on may have other handles and is only read.
    #[must_use]
    pub fn freeze(self) -> Frozen {
        Frozen(self.0)
    }
}

impl Deref for Floats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `zeros` made a contiguous tensor of floats in the CPU's memory, and no handle of it writes now.
        unsafe { numbers(&self.0) }
    }
}

impl DerefMut for Floats {
    fn deref_mut(&mut self) -> &mut [f32] {
        let count = self.0.numel();
        if count == 0 {
            return &mut [];
        }
        // SAFETY: as above; not empty, so that the pointer is not null, and there is no other handle of the tensor.
        unsafe { std::slice::from_raw_parts_mut(self.0.data_ptr().cast(), count) }
    }
}

/// [`Floats`] that are written no more.
#[derive(Debug)]
pub struct Frozen(Tensor);

impl Frozen {
    /// A leaf: operations on it leave its memory alone.
    pub fn tensor(&self, train: bool) -> Tensor {
        self.0.shallow_clone().set_requires_grad(train)
    }
}

impl Deref for Frozen {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: as for `Floats`; handles of the tensor only read.
        unsafe { numbers(&self.0) }
    }
}

/// Has the allocator keep what is freed: every step asks for the same megabytes again, and a tenth of its time would go into
/// the system's clearing of them.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGEST: i32 = 1 << 30;
        // SAFETY: sets two numbers of the C library's allocator; a refusal leaves them as they were.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
            libc::mallopt(libc::M_TRIM_THRESHOLD, LARGEST);
        }
    }
}

/// Shows a tensor's numbers to `look`.
///
/// # Errors
/// When libtorch fails.
pub fn with_numbers<T>(tensor: &Tensor, look: impl FnOnce(&[f32]) -> T) -> Result<T, TchError> {
    let tensor = tensor.f_detach()?.f_to_device(Device::Cpu)?.f_to_kind(Kind::Float)?.f_contiguous()?;
    // SAFETY: a contiguous tensor of floats in the CPU's memory, alive until `look` is done, which has no handle to write.
    Ok(look(unsafe { numbers(&tensor) }))
}

/// A tensor's numbers. One without any may have no memory at all.
///
/// # Safety
/// The tensor is contiguous, of floats, in the CPU's memory, and nothing writes to it meanwhile.
unsafe fn numbers(tensor: &Tensor) -> &[f32] {
    match tensor.numel() {
        0 => &[],
        // SAFETY: as promised by the caller.
        count => unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), count) },
    }
}

/// Copies a tensor's numbers to `out`, which has as many.
///
/// # Errors
/// When libtorch fails.
pub fn copy_numbers(tensor: &Tensor, out: &mut [f32]) -> Result<(), TchError> {
    with_numbers(tensor, |numbers| out.copy_from_slice(numbers))
}
