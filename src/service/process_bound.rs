//! Values that a fork's child must not touch.

use std::mem::ManuallyDrop;

/// A value that only the process that made it can use. After `fork` the child has a copy of its memory, but none of
/// its threads: a lock that one of them held stays locked, and data that one was changing stay half changed. So the
/// child gets `None` and leaks its copy.
pub struct ProcessBound<T> {
    value: ManuallyDrop<T>,
    process: u32,
}

impl<T> ProcessBound<T> {
    pub fn new(value: T) -> ProcessBound<T> {
        ProcessBound { value: ManuallyDrop::new(value), process: std::process::id() }
    }

    /// The value; `None` in a process forked from its own.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.is_own().then_some(&*self.value)
    }

    /// As [`ProcessBound::get`].
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.is_own().then_some(&mut *self.value)
    }

    /// The process that made the value.
    #[must_use]
    pub const fn process(&self) -> u32 {
        self.process
    }

    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl<T> Drop for ProcessBound<T> {
    #[allow(unsafe_code, reason = "drops a ManuallyDrop")]
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: the value is dropped here only, and nothing can use it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}
