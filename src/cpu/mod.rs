//! The CPU: its name, its instruction sets, hints to it, and tasks on all its cores.
#![allow(unsafe_code, reason = "prefetching takes a pointer")]

mod back_end;
mod tasks;

#[cfg(target_arch = "x86_64")]
pub use back_end::{Avx2, Avx512};
pub use back_end::{BackEnd, Scalar};
#[cfg(target_arch = "aarch64")]
pub use back_end::{Neon, NeonDot};
pub use tasks::{map_tasks, run_beside};

use crate::system;

/// Bytes that a CPU moves between memory and its cache at once.
pub const CACHE_LINE: usize = 64;

/// The model's name as the system reports it, else the architecture.
#[must_use]
pub fn model_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    parse_model_name(&info)
        .or_else(system::processor)
        .unwrap_or_else(|| format!("unnamed {} processor", std::env::consts::ARCH))
}

/// The first `model name` in the text of `/proc/cpuinfo`.
fn parse_model_name(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() { None } else { Some(name) }
}

/// Prefetches a value of at most two cache lines into the CPU's cache; does nothing on CPUs other than x86-64 and
/// ARM's.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    const { assert!(size_of::<T>() > 0 && size_of::<T>() <= 2 * CACHE_LINE) }
    let start = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: `start` and `start + size_of::<T>() - 1` are the first and last byte of `value`, so the offset stays in
    // its allocation.
    let last = unsafe { start.add(size_of::<T>() - 1) };
    prefetch_line(start);
    if size_of::<T>() > 1 && align_of::<T>() < size_of::<T>() {
        prefetch_line(last);
    }
}

#[inline(always)]
fn prefetch_line(byte: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: x86-64 always has SSE. A prefetch is a hint: it reads no value and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(byte.cast()) }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch is a hint: it reads no value and never faults.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) byte, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = byte;
}

/// Prefetches the cache line of a byte into the CPU's second-level cache, past the first-level cache, whose misses in
/// flight are few; does nothing on CPUs other than x86-64 and ARM's.
#[inline(always)]
pub fn prefetch_far(byte: &u8) {
    let byte = std::ptr::from_ref(byte);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: x86-64 always has SSE. A prefetch is a hint: it reads no value and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(byte.cast()) }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch is a hint: it reads no value and never faults.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{}]", in(reg) byte, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = byte;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named() {
        assert_eq!(
            parse_model_name("processor : 0\nmodel name\t: Some  CPU @ 2.5GHz\n").as_deref(),
            Some("Some CPU @ 2.5GHz")
        );
        assert_eq!(parse_model_name("processor : 0\nBogoMIPS : 50\n"), None);
        assert!(!model_name().is_empty());
    }
}
