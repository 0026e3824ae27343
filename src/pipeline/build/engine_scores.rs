//! Scoring the samples of a build with an engine or a network, and dropping samples by these scores.
#![allow(unsafe_code, reason = "maps the samples into memory")]

use memmap2::Mmap;

use super::drop_reason::{BuildCounts, DropReason};
use super::filter::SampleFilter;
use super::options::BuildOptions;
use super::sampler::survives_result_draw;
use super::temp_samples::TempSamples;
use super::{BuildError, BuildPhase, LabelJob};
use crate::data::formats::{UnitConversion, convert_score};
use crate::data::{DataError, Record, ScoreUnit};
use crate::pipeline::journal::journal_path;
use crate::pipeline::label::{EngineLabels, LabelProgress, LabelScorer, label, label_by_network};
use crate::pipeline::stats::{ResultsByScore, clamped_centipawns};

/// Has the engine or the network score every sample, whose present score is in `unit`. Drops the samples that could not be
/// scored and those that the filters by score reject.
pub fn score(
    mut samples: TempSamples,
    unit: ScoreUnit,
    job: &LabelJob,
    options: &BuildOptions,
    counts: &mut BuildCounts,
    progress: &mut dyn FnMut(BuildPhase),
) -> Result<(TempSamples, EngineLabels), BuildError> {
    let journal = journal_path(samples.output());
    let mut labels = {
        // SAFETY: the file has no name, so no other process changes it, and `samples` does not while it is borrowed.
        let map = unsafe { Mmap::map(samples.file()) }.map_err(DataError::read(samples.output()))?;
        let bytes = &map[..samples.count() as usize * Record::BYTES];
        let fingerprint = blake3::Hasher::new().update_rayon(bytes).finalize().to_hex();
        let mut report = |done: LabelProgress| {
            progress(BuildPhase::Labelling { done: done.done, total: done.total, failed: done.failed });
        };
        let records: &[Record] = bytemuck::cast_slice(bytes);
        match &job.scorer {
            LabelScorer::Engine { settings, workers } => {
                label(records, settings, workers, &journal, &fingerprint, &mut report)?
            }
            LabelScorer::Network(network) => {
                label_by_network(records, &**network, &journal, &fingerprint, &mut report)?
            }
        }
    };
    let filter = SampleFilter::new(options.clone(), false, ScoreUnit::Centipawns);
    let draws = options.skip_unlikely.then(|| options.seed.draws("unlikely"));
    let to_centipawns = UnitConversion { from: unit, to: ScoreUnit::Centipawns };
    let mut results = ResultsByScore::default();
    let mut scored = |number: u64, record: &mut Record| {
        let mut label = labels.get(number as usize).ok_or(DropReason::NotLabelled)?;
        if job.keep_score > 0.0
            && let Some(earlier) = record.score()
        {
            label = label.mixed(convert_score(earlier, to_centipawns).0, job.keep_score);
        }
        if record.has_move() {
            label.apply_score(record);
        } else {
            label.apply(record);
        }
        filter.check_score(record.score())?;
        if job.fits_results
            && let Some(result) = record.result()
            && let Some(score) = clamped_centipawns(label.score, ScoreUnit::Centipawns)
        {
            results.add(score, result);
        }
        if draws.is_some_and(|draws| !survives_result_draw(record, record.game(), ScoreUnit::Centipawns, draws)) {
            return Err(DropReason::Unlikely);
        }
        Ok(())
    };
    samples.edit_blocks(|first, records| {
        let mut numbers = first..;
        records.retain_mut(|record| {
            let number = numbers.next().unwrap_or_default();
            scored(number, record).map_err(|reason| counts.drop(reason, 1)).is_ok()
        });
    })?;
    labels.labelling.keep_score = job.keep_score;
    labels.labelling.wdl = job.fits_results.then(|| results.fit()).flatten();
    Ok((samples, labels))
}
