//! Numbered tasks of which several workers take one after another. Each is run once.

use std::sync::PoisonError;
use std::time::Duration;

use super::ServiceError;
use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, lock};

pub(super) struct SharedTasks {
    count: usize,
    /// Relaxed: it gives each number to one worker, and nothing else follows from it.
    next: AtomicUsize,
    /// Locked after each task and before its results are used, so that they are seen.
    progress: Mutex<TaskProgress>,
    progressed: Condvar,
}

#[derive(Default)]
struct TaskProgress {
    finished: usize,
    failed: bool,
}

impl TaskProgress {
    const fn is_complete(&self, count: usize) -> bool {
        self.finished == count && !self.failed
    }
}

impl SharedTasks {
    pub(super) fn new(count: usize) -> SharedTasks {
        SharedTasks { count, next: AtomicUsize::new(0), progress: Mutex::default(), progressed: Condvar::new() }
    }

    /// Whether all tasks have succeeded.
    pub(super) fn are_complete(&self) -> bool {
        lock(&self.progress).is_complete(self.count)
    }

    /// Runs tasks until none is left that nobody has begun, or `should_stop` returns true.
    ///
    /// # Errors
    /// When a task that this worker ran has failed.
    pub(super) fn run(
        &self,
        should_stop: &dyn Fn() -> bool,
        task: &mut dyn FnMut(usize) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count || should_stop() {
                return Ok(());
            }
            let result = task(number);
            let mut progress = lock(&self.progress);
            progress.finished += 1;
            progress.failed |= result.is_err();
            drop(progress);
            self.progressed.notify_all();
            result?;
        }
    }

    /// Waits until other workers have finished theirs. False if a task has failed, or `should_stop` returned true
    /// meanwhile.
    pub(super) fn wait(&self, should_stop: &dyn Fn() -> bool) -> bool {
        let mut progress = lock(&self.progress);
        while progress.finished < self.count && !progress.failed && !should_stop() {
            let waited = self.progressed.wait_timeout(progress, Duration::from_millis(100));
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        progress.is_complete(self.count)
    }
}
