//! Games as samples: every position a move was played from. The one place where games are read for the other formats.

use std::path::Path;
use std::sync::PoisonError;

use super::sink::{BLOCK, Sink};
use crate::data::DataError;
use crate::data::build::everything;
use crate::data::input::Origin;

/// Delivers the samples of a file of games.
pub fn run(path: &Path, sink: &mut Sink) -> Result<(), DataError> {
    let mut block = Vec::with_capacity(BLOCK);
    let found = everything(&Origin::of(path), |records| {
        for record in records {
            block.push(*record);
            if block.len() == BLOCK && !sink.deliver(std::mem::replace(&mut block, Vec::with_capacity(BLOCK)))? {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    sink.deliver(block)?;
    *sink.shared.skipped.lock().unwrap_or_else(PoisonError::into_inner) = (&found.skipped).into();
    *sink.shared.compression.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.compression);
    *sink.shared.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.stored);
    sink.games = found.games;
    Ok(())
}
