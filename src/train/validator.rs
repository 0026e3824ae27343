//! The validation split, once an epoch: kept in memory after the first time where that is affordable.

use super::TrainError;
use super::batch::{Batch, KeptBatch};
use super::stream::{Stop, Stream};

/// Bytes of batches that are kept. Beyond, every epoch starts a service of its own.
const AFFORDABLE: usize = 512 << 20;

/// What is known of the validation split.
#[derive(Debug, Default)]
pub enum Validator {
    #[default]
    Unseen,
    Kept(Vec<KeptBatch>),
    TooLarge,
}

impl Validator {
    /// Lends every batch to `work`, in order. `open` starts the stream where one is needed.
    ///
    /// # Errors
    /// When the service failed, [`TrainError::Stopped`] where `stop` says so, and whatever `work` gives.
    pub fn each(
        &mut self,
        open: impl FnOnce() -> Result<Stream, TrainError>,
        stop: Stop<'_>,
        work: &mut dyn FnMut(&Batch<'_>) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        if let Validator::Kept(batches) = self {
            return batches
                .iter()
                .try_for_each(|kept| if stop() { Err(TrainError::Stopped) } else { work(&kept.batch()) });
        }
        let mut stream = open()?;
        let (mut kept, mut bytes) = (Vec::new(), 0);
        let mut keeping = matches!(self, Validator::Unseen);
        let keep_and_work = &mut |batch: &Batch<'_>| {
            if keeping {
                let copy = KeptBatch::copy(batch);
                bytes += copy.bytes();
                kept.push(copy);
            }
            if bytes > AFFORDABLE {
                (keeping, bytes) = (false, 0);
                kept = Vec::new();
            }
            work(batch)
        };
        while stream.next(0, stop, &mut *keep_and_work)?.is_some() {
            if stop() {
                return Err(TrainError::Stopped);
            }
        }
        *self = if keeping { Validator::Kept(kept) } else { Validator::TooLarge };
        Ok(())
    }
}
