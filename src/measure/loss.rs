//! The loss of existing networks on samples: over all samples, by class of sample, and between networks.

use std::path::Path;

use super::MeasureError;
use super::tally::{LossTally, Mean};
use crate::chess::{Color, Perspective, PieceBoard};
use crate::cpu::map_tasks;
use crate::data::formats::{Format, SampleReader, SkippedSamples, UnitConversion, convert_score};
use crate::data::{EvalOptions, GameResult, Record, SampleContext, ScoreUnit};
use crate::engine::{BackEnd, LineEvaluator, Model, PositionList};
use crate::features::{FeatureSet, RowList};
use crate::net::{BucketChooser, FloatNet, NetFile, Origin, Scheme, forward};
use crate::record::{Arithmetic, Cluster, LossData, LossPair, LossRecord, NetworkLoss};
use crate::train::EvalLoss;

/// A network to measure.
pub enum MeasuredNetwork {
    Integer(NetFile),
    /// A checkpoint, evaluated as in training: with dense weights rounded to the scheme's grid.
    Float {
        net: FloatNet,
        origin: Origin,
        scheme: Scheme,
    },
}

impl MeasuredNetwork {
    const fn origin(&self) -> &Origin {
        match self {
            MeasuredNetwork::Integer(file) => &file.origin,
            MeasuredNetwork::Float { origin, .. } => origin,
        }
    }
}

/// Options of [`loss`].
#[derive(Clone, Debug, Default)]
pub struct LossOptions {
    pub loss: EvalLoss,
    /// The format of the data; `None` detects it by content and name.
    pub format: Option<Format>,
    /// The unit of the scores, if the file does not tell.
    pub unit: Option<ScoreUnit>,
    /// How scores in PGN comments are read.
    pub evals: EvalOptions,
    /// The number of samples to read; `None` reads all.
    pub limit: Option<u64>,
}

/// The progress of [`loss`].
#[derive(Copy, Clone, Debug)]
pub struct LossProgress {
    /// Samples read so far.
    pub samples: u64,
    /// Bytes read so far.
    pub bytes: u64,
    /// Bytes of the file.
    pub length: Option<u64>,
}

/// Samples per parallel task.
const CHUNK: usize = 2048;

/// Measures the mean loss of each network, given with its name, over the samples that have a target.
///
/// A network's output is its integer score in centipawns (for a float network, the unrounded output), from the side to
/// move's view. The target is made from the sample's score and result, as in training ([`EvalLoss`]). Intervals take
/// games as independent, or samples if the format has no games. The number of threads does not change the result.
///
/// # Errors
/// When the data cannot be read, contain a damaged sample or no sample with a target, or a feature set cannot be
/// rebuilt.
pub fn loss(
    networks: &[(String, MeasuredNetwork)],
    data: &Path,
    options: &LossOptions,
    progress: &mut dyn FnMut(LossProgress),
) -> Result<(LossRecord, SkippedSamples), MeasureError> {
    let sets: Vec<FeatureSet> = networks.iter().map(|(_, net)| net.origin().feature_set()).collect::<Result<_, _>>()?;
    let prepared: Vec<PreparedNetwork<'_>> =
        networks.iter().map(|(_, network)| PreparedNetwork::new(network)).collect();
    let scorers =
        prepared.iter().zip(&sets).map(|(network, set)| network.scorer(set)).collect::<Result<Vec<_>, _>>()?;

    let mut reader = SampleReader::open_with(data, options.format, options.unit, options.evals)?;
    let format = reader.format();
    let score_unit = reader.score_unit();
    let sample_losses = LossMeter {
        path: data,
        units: UnitConversion { from: score_unit, to: ScoreUnit::Centipawns },
        loss: options.loss,
        has_games: format.has_ply(),
    };
    let mut tally = LossTally::new(networks.len());
    let mut read = 0;
    let mut measured = 0;
    let mut without_target = 0;
    let mut games = NumberSet::default();
    while let Some(mut block) = reader.next_block()? {
        block.truncate(usize::try_from(options.limit.unwrap_or(u64::MAX) - read).unwrap_or(usize::MAX));
        let chunks: Vec<&[Record]> = block.chunks(CHUNK).collect();
        let first = |chunk: usize| read + (chunk * CHUNK) as u64;
        let compute = |chunk: usize| sample_losses.compute(&scorers, first(chunk), chunks[chunk]);
        // Sums are added in file order, so that they do not depend on the number of threads.
        for chunk in map_tasks(chunks.len(), &compute) {
            for sample in chunk? {
                let Some(SampleLoss { cluster, classes, losses }) = sample else {
                    without_target += 1;
                    continue;
                };
                classes.into_iter().for_each(|class| tally.add(cluster, class, &losses));
                games.insert(cluster);
                measured += 1;
            }
        }
        read += block.len() as u64;
        progress(LossProgress { samples: read, bytes: reader.bytes_read(), length: reader.length() });
        if block.is_empty() || Some(read) == options.limit {
            break;
        }
    }
    if measured == 0 {
        return Err(MeasureError::NoTarget { path: data.into(), samples: read, lambda: options.loss.lambda });
    }
    let record = LossRecord {
        data: LossData {
            path: data.display().to_string(),
            format: format.name().into(),
            score_unit,
            samples: measured,
            without_target,
            games: sample_losses.has_games.then(|| games.count()),
        },
        loss: options.loss,
        clusters: if sample_losses.has_games { Cluster::Game } else { Cluster::Sample },
        networks: (0..networks.len()).map(|index| network_loss(&networks[index], index, &tally)).collect(),
        pairs: pairs(networks.len(), &tally),
    };
    Ok((record, reader.skipped()))
}

fn network_loss((name, network): &(String, MeasuredNetwork), index: usize, tally: &LossTally) -> NetworkLoss {
    let Mean { mean, interval, .. } = tally.mean(|losses| losses[index]);
    NetworkLoss {
        network: name.clone(),
        arithmetic: match network {
            MeasuredNetwork::Integer(_) => Arithmetic::Integer,
            MeasuredNetwork::Float { .. } => Arithmetic::Float,
        },
        name: network.origin().name.clone(),
        identity: network.origin().identity.clone(),
        loss: mean,
        interval,
        by: tally.by_class(|losses| losses[index]),
    }
}

fn pairs(networks: usize, tally: &LossTally) -> Vec<LossPair> {
    let each = (0..networks).flat_map(|first| (first + 1..networks).map(move |second| (first, second)));
    let pair = |(first, second): (usize, usize)| {
        let difference = |losses: &[f64]| losses[first] - losses[second];
        let Mean { mean, interval, .. } = tally.mean(difference);
        LossPair { first, second, difference: mean, interval, by: tally.by_class(difference) }
    };
    each.map(pair).collect()
}

/// A set of numbers, as a bit set.
#[derive(Default)]
struct NumberSet(Vec<u64>);

impl NumberSet {
    fn insert(&mut self, number: u64) {
        let word = (number / 64) as usize;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// A sample's cluster, its classes and each network's loss.
struct SampleLoss {
    cluster: u64,
    classes: Vec<usize>,
    losses: Vec<f64>,
}

/// Computes the losses of samples.
struct LossMeter<'a> {
    path: &'a Path,
    units: UnitConversion,
    loss: EvalLoss,
    /// Whether the format has games and plies.
    has_games: bool,
}

impl LossMeter<'_> {
    /// The losses of records, of which the first has number `first`; `None` for records without a target.
    fn compute(
        &self,
        scorers: &[Scorer<'_>],
        first: u64,
        records: &[Record],
    ) -> Result<Vec<Option<SampleLoss>>, MeasureError> {
        let mut targets = Vec::with_capacity(records.len());
        let mut positions = PositionList::default();
        for (number, record) in (first..).zip(records) {
            let score = record.score().map(|score| f32::from(convert_score(score, self.units).0));
            let result = record.result().map(GameResult::points);
            let target = self.loss.target(score, result);
            if target.is_some() {
                record.board().check().map_err(|reason| {
                    let reason = reason.into();
                    MeasureError::Record { path: self.path.into(), number, reason }
                })?;
                positions.push(record.board(), record.turn());
            }
            targets.push((score, target));
        }
        let outputs: Vec<Vec<f64>> = scorers.iter().map(|scorer| scorer.clone().centipawns(&positions)).collect();
        let mut at = 0;
        let mut sample = |number: u64, record: &Record, (score, target): (Option<f32>, Option<f32>)| {
            let target = f64::from(target?);
            let losses = outputs.iter().map(|outputs| self.loss.of(outputs[at], target)).collect();
            let board = &positions.boards()[at];
            at += 1;
            let context =
                SampleContext { board, turn: record.turn(), ply: self.has_games.then(|| record.ply().0), score };
            let cluster = if self.has_games { u64::from(record.game()) } else { number };
            Some(SampleLoss { cluster, classes: LossTally::classes(&context).collect(), losses })
        };
        Ok((first..)
            .zip(records)
            .zip(targets)
            .map(|((number, record), target)| sample(number, record, target))
            .collect())
    }
}

/// A network in the form that a [`Scorer`] borrows.
enum PreparedNetwork<'a> {
    Integer(Box<Model>, &'a Scheme),
    Float(Box<FloatNet>, &'a Scheme),
}

impl PreparedNetwork<'_> {
    fn new(network: &MeasuredNetwork) -> PreparedNetwork<'_> {
        match network {
            MeasuredNetwork::Integer(file) => {
                PreparedNetwork::Integer(Box::new(Model::new(&file.net)), &file.net.scheme)
            }
            MeasuredNetwork::Float { net, scheme, .. } => PreparedNetwork::Float(Box::new(net.on_grid(scheme)), scheme),
        }
    }

    fn scorer<'a>(&'a self, set: &'a FeatureSet) -> Result<Scorer<'a>, MeasureError> {
        Ok(match self {
            PreparedNetwork::Integer(model, scheme) => {
                let evaluator = LineEvaluator::new(set, model, BackEnd::best())?;
                Scorer::Integer { evaluator: Box::new(evaluator), scheme }
            }
            PreparedNetwork::Float(net, scheme) => {
                let buckets = BucketChooser::new(&net.shape.buckets, set)?;
                Scorer::Float { net, scheme, set, buckets, active: Default::default() }
            }
        })
    }
}

/// Scores positions with a network.
#[derive(Clone)]
enum Scorer<'a> {
    Integer { evaluator: Box<LineEvaluator<'a>>, scheme: &'a Scheme },
    Float { net: &'a FloatNet, scheme: &'a Scheme, set: &'a FeatureSet, buckets: BucketChooser, active: [RowList; 2] },
}

impl Scorer<'_> {
    /// The scores in centipawns, from the side to move's view.
    fn centipawns(&mut self, positions: &PositionList) -> Vec<f64> {
        match self {
            Scorer::Integer { evaluator, scheme } => {
                let mut scores = Vec::with_capacity(positions.boards().len());
                evaluator.evaluate(positions.line(), |raw| {
                    scores.push(f64::from(scheme.score(raw)) * 100.0 / f64::from(scheme.pawn_value));
                });
                scores
            }
            Scorer::Float { net, scheme, set, buckets, active: [stm, nstm] } => {
                let score = |(board, turn): (&PieceBoard, &Color)| {
                    let pov = Perspective::of(*turn);
                    set.encoder().encode_board(board, pov, stm);
                    set.encoder().encode_board(board, pov.other(), nstm);
                    let bucket = buckets.of_pieces(board, *turn);
                    let output = f64::from(forward(net, scheme, bucket, stm, nstm));
                    output * f64::from(scheme.nnue2score) * 100.0 / f64::from(scheme.pawn_value)
                };
                positions.boards().iter().zip(positions.turns()).map(score).collect()
            }
        }
    }
}
