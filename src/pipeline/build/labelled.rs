//! Samples scored by an engine, and what their scores decide.
#![allow(unsafe_code, reason = "maps the samples into memory")]

use memmap2::Mmap;

use super::flow::is_likely;
use super::options::Options;
use super::sieve::Sieve;
use super::spool::Spooled;
use super::tally::{Dropped, Tally};
use super::{BuildError, LabelJob, Phase};
use crate::data::{DataError, Record, ScoreUnit};
use crate::pipeline::journal::journal_path;
use crate::pipeline::label::{self, Labels, label};

/// Has the engine score every sample; those it could not score are dropped, and those whose score says so.
pub fn score(
    spooled: Spooled,
    by: &LabelJob,
    options: &Options,
    tally: &mut Tally,
    progress: &mut dyn FnMut(Phase),
) -> Result<(Spooled, Labels), BuildError> {
    let journal = journal_path(spooled.output());
    let labels = {
        // SAFETY: the file has no name, so nobody else changes it, and `spooled` does not while it is borrowed.
        let map = unsafe { Mmap::map(spooled.file()) }.map_err(DataError::read(spooled.output()))?;
        let bytes = &map[..spooled.count() as usize * Record::BYTES];
        let fingerprint = blake3::hash(bytes).to_hex();
        let mut told = |done: label::Progress| {
            progress(Phase::Labelling { done: done.done, total: done.total, failed: done.failed });
        };
        let records: &[Record] = bytemuck::cast_slice(bytes);
        label(records, &by.settings, &by.work, &journal, &fingerprint, &mut told)?
    };
    let sieve = Sieve::new(options.clone(), false, ScoreUnit::Centipawns);
    let draws = options.skip_unlikely.then(|| options.seed.draws("unlikely"));
    let look = |number: u64, record: Record| {
        let label = labels.get(number as usize).ok_or(Dropped::NotLabelled)?;
        let record = if record.has_move() { label.apply_score(record) } else { label.apply(record) };
        sieve.look_at_score(record.score())?;
        match draws {
            Some(draws) if !is_likely(&record, record.game(), ScoreUnit::Centipawns, draws) => Err(Dropped::Unlikely),
            _ => Ok(record),
        }
    };
    let kept = spooled.filter_map(|number, record| look(number, record).map_err(|why| tally.drop(why, 1)).ok())?;
    Ok((kept, labels))
}
