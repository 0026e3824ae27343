//! Games as samples: every position a move was played from. The one place where games are read for the other formats.

use std::io;
use std::path::Path;
use std::sync::PoisonError;

use super::sink::{BLOCK, Sink};
use crate::data::build::{Options, Selection};
use crate::data::{DataError, Record};

/// Delivers the samples of a file of games.
pub fn run(path: &Path, sink: &mut Sink) -> Result<(), DataError> {
    let mut selection = Selection::start(path, Options::everything())?;
    let mut block: Vec<Record> = Vec::with_capacity(BLOCK);
    let mut wanted = true;
    let mut keep = |record: &Record| {
        block.push(*record);
        if block.len() == BLOCK {
            wanted = sink.deliver(std::mem::replace(&mut block, Vec::with_capacity(BLOCK)))?;
            if !wanted {
                // Ends the selection; nobody is there to hear it.
                return Err(DataError::Read { path: path.into(), cause: io::ErrorKind::Interrupted.into() });
            }
        }
        Ok(())
    };
    let run = selection.run(&mut keep, &mut |_| {});
    if !wanted {
        return Ok(());
    }
    sink.deliver(block)?;
    *sink.shared.skipped.lock().unwrap_or_else(PoisonError::into_inner) = selection.games.skipped().into();
    *sink.shared.compression.lock().unwrap_or_else(PoisonError::into_inner) = Some(selection.games.compression());
    sink.games = selection.tally.games;
    run
}
