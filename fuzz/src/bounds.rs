//! Bounds on one input: 256 MB beyond its length, and one second of CPU time, all threads together; five for
//! definitions, whose tables an instrumented program builds slowly. Exceeding one is a finding. CPU time rather than
//! the clock, so that a busy machine gives no false findings; a thread that waits without end is found by libFuzzer's
//! own timeout.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cpu_time::ProcessTime;

/// Bytes that an input may take beyond its own length.
const MEMORY: usize = 256 << 20;
/// CPU time of an input.
const TIME: Duration = Duration::from_secs(1);
/// CPU time of a definition.
const DEFINITION_TIME: Duration = Duration::from_secs(5);

/// Runs a target's check under the bounds.
///
/// # Panics
/// When the check takes longer or holds more memory at once.
pub fn bounded(target: &str, input: &[u8], check: impl FnOnce(&[u8])) {
    let time = if target == "definition" { DEFINITION_TIME } else { TIME };
    let limit = LIVE.load(Ordering::Relaxed).saturating_add(MEMORY + input.len());
    LIMIT.store(limit, Ordering::Relaxed);
    let start = ProcessTime::now();
    check(input);
    let elapsed = start.elapsed();
    LIMIT.store(usize::MAX, Ordering::Relaxed);
    assert!(elapsed <= time, "{elapsed:?} of CPU time for an input of {} bytes", input.len());
}

/// Bytes allocated now.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Most bytes that may be allocated.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Metered;

#[global_allocator]
static ALLOCATOR: Metered = Metered;

fn add(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if live > LIMIT.load(Ordering::Relaxed) {
        // The message allocates, too.
        let limit = LIMIT.swap(usize::MAX, Ordering::Relaxed);
        panic!("an allocation of {bytes} bytes makes {live}, more than the {limit} allowed");
    }
}

// SAFETY: every call is passed on to the system's allocator. A panic here does not unwind: libFuzzer's hook aborts.
unsafe impl GlobalAlloc for Metered {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.saturating_sub(layout.size()));
        LIVE.fetch_sub(layout.size().saturating_sub(size), Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller's.
        unsafe { System.dealloc(old, layout) }
    }
}
