//! Scoring the samples of a build with an engine, and dropping samples by these scores.
#![allow(unsafe_code, reason = "maps the samples into memory")]

use memmap2::Mmap;

use super::drop_reason::{BuildCounts, DropReason};
use super::filter::SampleFilter;
use super::options::BuildOptions;
use super::sampler::survives_result_draw;
use super::temp_samples::TempSamples;
use super::{BuildError, BuildPhase, LabelJob};
use crate::data::{DataError, Record, ScoreUnit};
use crate::pipeline::journal::journal_path;
use crate::pipeline::label::{EngineLabels, LabelProgress, label};

/// Has the engine score every sample. Drops the samples that the engine could not score and those that the filters by
/// score reject.
pub fn score(
    samples: TempSamples,
    job: &LabelJob,
    options: &BuildOptions,
    counts: &mut BuildCounts,
    progress: &mut dyn FnMut(BuildPhase),
) -> Result<(TempSamples, EngineLabels), BuildError> {
    let journal = journal_path(samples.output());
    let labels = {
        // SAFETY: the file has no name, so no other process changes it, and `samples` does not while it is borrowed.
        let map = unsafe { Mmap::map(samples.file()) }.map_err(DataError::read(samples.output()))?;
        let bytes = &map[..samples.count() as usize * Record::BYTES];
        let fingerprint = blake3::hash(bytes).to_hex();
        let mut report = |done: LabelProgress| {
            progress(BuildPhase::Labelling { done: done.done, total: done.total, failed: done.failed });
        };
        let records: &[Record] = bytemuck::cast_slice(bytes);
        label(records, &job.settings, &job.workers, &journal, &fingerprint, &mut report)?
    };
    let filter = SampleFilter::new(options.clone(), false, ScoreUnit::Centipawns);
    let draws = options.skip_unlikely.then(|| options.seed.draws("unlikely"));
    let scored = |number: u64, record: Record| {
        let label = labels.get(number as usize).ok_or(DropReason::NotLabelled)?;
        let record = if record.has_move() { label.apply_score(record) } else { label.apply(record) };
        filter.check_score(record.score())?;
        match draws {
            Some(draws) if !survives_result_draw(&record, record.game(), ScoreUnit::Centipawns, draws) => {
                Err(DropReason::Unlikely)
            }
            _ => Ok(record),
        }
    };
    let kept =
        samples.filter_map(|number, record| scored(number, record).map_err(|reason| counts.drop(reason, 1)).ok())?;
    Ok((kept, labels))
}
