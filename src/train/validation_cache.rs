//! The validation split's batches, which are kept in memory after the first epoch unless they are too large.

use super::TrainError;
use super::batch::{Batch, OwnedBatch};
use super::stream::{BatchStream, StopCheck};

/// Largest size of a split that is kept, in bytes. For larger ones, every epoch starts a service of its own.
const MAX_BYTES: usize = 512 << 20;

/// Receives batches, with the numbers of their samples in the data.
pub type BatchVisitor<'a> = dyn FnMut(&Batch<'_>, &[u32]) -> Result<(), TrainError> + 'a;

/// The state of the cache.
#[derive(Debug, Default)]
pub enum ValidationCache {
    #[default]
    Empty,
    Filled(Vec<OwnedBatch>),
    TooLarge,
}

impl ValidationCache {
    /// Calls `process` with every batch, in order, and the numbers of its samples in the data; they are missing of kept
    /// batches. `open` starts a stream if one is needed.
    ///
    /// # Errors
    /// If the service failed; [`TrainError::Stopped`] if `stop` returns true; errors of `process`.
    pub fn for_each(
        &mut self,
        open: impl FnOnce() -> Result<BatchStream, TrainError>,
        stop: StopCheck<'_>,
        process: &mut BatchVisitor<'_>,
    ) -> Result<(), TrainError> {
        if let ValidationCache::Filled(batches) = self {
            return batches
                .iter()
                .try_for_each(|batch| if stop() { Err(TrainError::Stopped) } else { process(&batch.batch(), &[]) });
        }
        let mut stream = open()?;
        let mut batches = Vec::new();
        let mut bytes = 0;
        let mut keeping = matches!(self, ValidationCache::Empty);
        let copy_and_process = &mut |batch: &Batch<'_>, numbers: &[u32]| {
            if keeping {
                let copy = OwnedBatch::copy(batch);
                bytes += copy.bytes();
                batches.push(copy);
            }
            if bytes > MAX_BYTES {
                keeping = false;
                bytes = 0;
                batches = Vec::new();
            }
            process(batch, numbers)
        };
        while stream.next_numbered(0, stop, &mut *copy_and_process)?.is_some() {
            if stop() {
                return Err(TrainError::Stopped);
            }
        }
        *self = if keeping { ValidationCache::Filled(batches) } else { ValidationCache::TooLarge };
        Ok(())
    }
}
