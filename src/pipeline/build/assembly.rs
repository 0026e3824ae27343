//! The second half of a build, once all games are read: the passes over all samples, scores by an engine, and writing.

use std::path::Path;

use super::drop_reason::{BuildCounts, DropReason};
use super::sampler::{SampleSink, Sampler};
use super::temp_samples::{TempSamples, TempSamplesWriter};
use super::{BuildError, BuildOptions, BuildPhase, BuildProgress, LabelJob};
use super::{balance, dedup, engine_scores, quantile, shuffle, total_bytes};
use crate::data::{DataError, FsdWriter, Provenance, Record, ScoreUnit};
use crate::pipeline::label::EngineLabels;
use crate::pipeline::manifest::{Manifest, SourceFile};

/// The arrangement of the samples of all inputs.
#[derive(Copy, Clone)]
pub struct Assembly<'a> {
    pub output: &'a Path,
    pub options: &'a BuildOptions,
    pub labels: Option<&'a LabelJob>,
    pub command: &'a [String],
}

impl Assembly<'_> {
    /// Receives the filtered samples of all inputs.
    pub fn sampler(&self) -> Result<Sampler, DataError> {
        let sink = if self.options.needs_all_samples() || self.labels.is_some() {
            SampleSink::TempFile(TempSamplesWriter::create(self.output)?)
        } else {
            SampleSink::File(Box::new(FsdWriter::create(self.output)?))
        };
        Ok(Sampler::new(self.options, self.labels.is_some(), sink))
    }

    /// Arranges and writes the samples that the sampler received from `sources`, with scores in `score_unit`.
    pub fn complete(
        self,
        sampler: Sampler,
        sources: Vec<SourceFile>,
        mut score_unit: ScoreUnit,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<Manifest, BuildError> {
        let Assembly { output, options, labels: label_job, .. } = self;
        let inputs_unit = score_unit;
        if label_job.is_some() {
            score_unit = ScoreUnit::Centipawns;
        }
        let Sampler { mut counts, samples: kept, sink, .. } = sampler;
        let bytes = total_bytes(&sources);
        let mut state = BuildProgress { phase: BuildPhase::Arranging, bytes, games: counts.games, samples: kept };
        progress(state);
        let (writer, labels) = match sink {
            SampleSink::File(writer) => (*writer, None),
            SampleSink::TempFile(writer) => {
                let mut samples = drop_before_scoring(writer.finish()?, options, &mut counts)?;
                let mut labels = None;
                if let Some(label_job) = label_job {
                    // Searches take long: none for a sample that would be thinned out anyway.
                    if !options.drops_by_score() {
                        samples = thin(samples, options, &mut counts)?;
                    }
                    let mut report = |phase| progress(BuildProgress { phase, ..state });
                    let (scored, found) =
                        engine_scores::score(samples, inputs_unit, label_job, options, &mut counts, &mut report)?;
                    samples = scored;
                    labels = Some(found);
                }
                state.samples = samples.count();
                progress(state);
                (write_samples(samples, options, &mut counts, FsdWriter::create(output)?)?, labels)
            }
        };
        let manifest = self.finish(writer, sources, score_unit, labels.as_ref(), &counts)?;
        // The journal is removed last, so that a failure on the way loses no scores.
        if let Some(labels) = labels {
            labels.remove_journal();
        }
        Ok(manifest)
    }

    fn finish(
        &self,
        writer: FsdWriter,
        sources: Vec<SourceFile>,
        score_unit: ScoreUnit,
        labels: Option<&EngineLabels>,
        counts: &BuildCounts,
    ) -> Result<Manifest, DataError> {
        let Assembly { output, options, .. } = *self;
        let names = || sources.iter().map(|source| source.path.as_str()).collect::<Vec<_>>().join(", ").into();
        if counts.games == 0 {
            return Err(DataError::NoGames { path: names(), skipped: describe_skipped(&sources) });
        }
        if writer.samples() == 0 {
            return Err(DataError::NoSamples {
                path: names(),
                method: options.method,
                dropped: describe_dropped(counts),
            });
        }
        let mut hasher = blake3::Hasher::new();
        for source in &sources {
            let hash = blake3::Hash::from_hex(&source.blake3).map_err(|error| DataError::Manifest {
                path: output.into(),
                reason: format!("the hash of {}: {error}", source.path),
            })?;
            hasher.update(hash.as_bytes());
        }
        let manifest = Manifest {
            fsbench: env!("CARGO_PKG_VERSION").into(),
            command: self.command.to_vec(),
            method: options.method.into(),
            score_unit,
            options: Some(options.clone()),
            conversion: None,
            labelling: labels.map(|labels| labels.labelling.clone()),
            generated: None,
            sources,
            games: counts.games,
            positions: counts.positions,
            repeated: counts.repeated,
            kept: writer.samples(),
            dropped: counts.dropped(),
            spoiled_games: Default::default(),
            dropped_games: counts.dropped_games(),
            samples_hash: blake3::Hash::from_bytes(writer.hash()).to_hex().to_string(),
        };
        let data = writer.seal(Provenance {
            purpose: options.method.into(),
            score_unit,
            seed: options.seed,
            games: counts.games.min(u64::from(u32::MAX)) as u32,
            sources: *hasher.finalize().as_bytes(),
        })?;
        // The manifest comes first, so that no data file exists without one.
        manifest.seal(output)?.persist()?;
        data.persist()?;
        Ok(manifest)
    }
}

/// The passes over all samples that do not need their scores.
fn drop_before_scoring(
    mut samples: TempSamples,
    options: &BuildOptions,
    counts: &mut BuildCounts,
) -> Result<TempSamples, DataError> {
    if let Some(quantile) = options.min_moves_quantile {
        samples = quantile::drop_below_quantile(samples, quantile, counts)?;
    }
    if let Some(dedup) = options.dedup {
        samples = dedup::dedup(samples, dedup, counts)?;
    }
    Ok(samples)
}

/// Thins the samples as the options say. Thinning again keeps all, unless some were dropped in between.
fn thin(samples: TempSamples, options: &BuildOptions, counts: &mut BuildCounts) -> Result<TempSamples, DataError> {
    if options.thins() {
        balance::thin(samples, options.balance.as_ref(), options.samples, options.seed, counts)
    } else {
        Ok(samples)
    }
}

/// Thins the samples, puts them in their final order and writes them.
fn write_samples(
    samples: TempSamples,
    options: &BuildOptions,
    counts: &mut BuildCounts,
    mut writer: FsdWriter,
) -> Result<FsdWriter, DataError> {
    let mut samples = thin(samples, options, counts)?;
    let mut write = |records: &[Record]| writer.push_all(records);
    if options.shuffle {
        shuffle::shuffled(samples, options.seed, write)?;
    } else {
        samples.for_each_block(|_, records| write(records))?;
    }
    Ok(writer)
}

fn describe_skipped(sources: &[SourceFile]) -> String {
    let total: u64 = sources.iter().map(|source| source.skipped.total()).sum();
    if let Some(first) = sources.iter().find_map(|source| source.skipped.examples.first()) {
        return format!(" ({total} broken games; the first: {first})");
    }
    let samples = sources.iter().find(|source| source.skipped_samples.total() > 0);
    samples.map(|source| source.skipped_samples.describe()).unwrap_or_default()
}

fn describe_dropped(counts: &BuildCounts) -> String {
    let positions = counts.dropped().into_iter().map(|(reason, count)| format!("{count} {}", reason.name()));
    let games = counts.dropped_games().into_iter().map(|(reason, count)| format!("{count} games: {}", reason.name()));
    let reasons: Vec<String> = positions.chain(games).collect();
    if reasons.is_empty() {
        return String::new();
    }
    let hint = if lacks_scores(counts) {
        "; to learn from results alone, train with λ = 0; `dataset build` then takes --needs result"
    } else {
        ""
    };
    format!(" (dropped: {}){hint}", reasons.join(", "))
}

/// Whether most positions that were dropped for their score, or for what is looked at after it, have no score.
fn lacks_scores(counts: &BuildCounts) -> bool {
    const BEFORE: [DropReason; 4] = [DropReason::Early, DropReason::Late, DropReason::NoMove, DropReason::GameLeftOut];
    let dropped = counts.dropped();
    let checked: u64 = dropped.iter().filter(|(why, _)| !BEFORE.contains(why)).map(|(_, count)| *count).sum();
    2 * dropped.get(&DropReason::NoScore).copied().unwrap_or(0) > checked
}
