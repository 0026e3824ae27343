//! The memory of tensors as slices; the allocator's settings.
#![allow(unsafe_code, reason = "the memory of tensors, which libtorch shows as pointers; the allocator's settings")]

use tch::{Device, Kind, TchError, Tensor};

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
