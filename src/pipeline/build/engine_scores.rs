//! Samples scored by an engine, and what their scores decide.
#![allow(unsafe_code, reason = "maps the samples into memory")]

use memmap2::Mmap;

use super::drop_reason::{BuildCounts, DropReason};
use super::filter::SampleFilter;
use super::options::BuildOptions;
use super::sampler::is_likely;
use super::temp_samples::TempSamples;
use super::{BuildError, BuildPhase, LabelJob};
use crate::data::{DataError, Record, ScoreUnit};
use crate::pipeline::journal::journal_path;
use crate::pipeline::label::{self, Labels, label};

/// Has the engine score every sample; those it could not score are dropped, and those whose score says so.
pub fn score(
    samples: TempSamples,
    by: &LabelJob,
    options: &BuildOptions,
    tally: &mut BuildCounts,
    progress: &mut dyn FnMut(BuildPhase),
) -> Result<(TempSamples, Labels), BuildError> {
    let journal = journal_path(samples.output());
    let labels = {
        // SAFETY: the file has no name, so nobody else changes it, and `samples` does not while it is borrowed.
        let map = unsafe { Mmap::map(samples.file()) }.map_err(DataError::read(samples.output()))?;
        let bytes = &map[..samples.count() as usize * Record::BYTES];
        let fingerprint = blake3::hash(bytes).to_hex();
        let mut told = |done: label::LabelProgress| {
            progress(BuildPhase::Labelling { done: done.done, total: done.total, failed: done.failed });
        };
        let records: &[Record] = bytemuck::cast_slice(bytes);
        label(records, &by.settings, &by.workers, &journal, &fingerprint, &mut told)?
    };
    let sieve = SampleFilter::new(options.clone(), false, ScoreUnit::Centipawns);
    let draws = options.skip_unlikely.then(|| options.seed.draws("unlikely"));
    let look = |number: u64, record: Record| {
        let label = labels.get(number as usize).ok_or(DropReason::NotLabelled)?;
        let record = if record.has_move() { label.apply_score(record) } else { label.apply(record) };
        sieve.look_at_score(record.score())?;
        match draws {
            Some(draws) if !is_likely(&record, record.game(), ScoreUnit::Centipawns, draws) => {
                Err(DropReason::Unlikely)
            }
            _ => Ok(record),
        }
    };
    let kept = samples.filter_map(|number, record| look(number, record).map_err(|why| tally.drop(why, 1)).ok())?;
    Ok((kept, labels))
}
