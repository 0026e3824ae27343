//! The settings of the allocator.
#![allow(unsafe_code, reason = "the allocator's settings")]

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
