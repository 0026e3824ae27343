//! The primitives by which the threads of a stream hand slots and samples to one another. `model` compiles the files
//! that use this module a second time, with the primitives of a model checker in its place.

use std::sync::PoisonError;
pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

/// Locks a mutex whose data stays valid when a thread panics while holding it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a test; under the model checker in all orders.
#[cfg(test)]
pub(super) fn explore(test: impl Fn() + Send + Sync + 'static) {
    test();
}
