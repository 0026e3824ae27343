//! The loss of existing networks on samples: as a whole, by where in a game they stand, and network against network.

mod breakdown;
mod tally;

use std::path::Path;

use rayon::prelude::*;

use self::breakdown::Place;
use self::tally::{Mean, Tally};
use super::MeasureError;
use crate::chess::{Board, Color, Perspective};
use crate::data::formats::{Format, Rescale, SampleReader, SkippedSamples, convert_score};
use crate::data::{GameResult, Record, ScoreUnit};
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::features::FeatureSet;
use crate::net::{FloatNet, NetFile, Origin, Scheme, forward};
use crate::record::{Arithmetic, Cluster, LossData, LossPair, LossRecord, NetworkLoss};
use crate::train::EvalLoss;

/// A network to be judged.
pub enum Network {
    Integer(NetFile),
    /// Evaluated as training does: dense weights rounded to the scheme's grid.
    Float {
        net: FloatNet,
        origin: Origin,
        scheme: Scheme,
    },
}

impl Network {
    const fn origin(&self) -> &Origin {
        match self {
            Network::Integer(file) => &file.origin,
            Network::Float { origin, .. } => origin,
        }
    }
}

/// How losses are computed, and of what.
#[derive(Clone, Debug, Default)]
pub struct LossOptions {
    pub loss: EvalLoss,
    /// The data's format, where it cannot be told from content and name.
    pub format: Option<Format>,
    /// The unit of its scores, where the file does not say.
    pub unit: Option<ScoreUnit>,
    /// Samples read, from the start; none = all.
    pub limit: Option<u64>,
}

/// How far a measure is.
#[derive(Copy, Clone, Debug)]
pub struct LossProgress {
    /// Read so far.
    pub samples: u64,
    /// Of the file, read so far and in all.
    pub bytes: u64,
    pub length: Option<u64>,
}

/// Samples judged by one task.
const CHUNK: usize = 2048;

/// Every network's mean loss over the samples that have a target, side to move's view; each with its name.
///
/// A network's output is its integer score times 100 over its pawn value (of a float network, the unrounded output), in
/// centipawns; the target is the sample's score in centipawns and its result, as in training ([`EvalLoss`]). Intervals
/// take games as independent, or samples where the format has no games. The same for any number of threads.
///
/// # Errors
/// When the data cannot be read, hold no sample with a target or a damaged one, or a feature set cannot be rebuilt.
pub fn loss(
    networks: &[(String, Network)],
    data: &Path,
    options: &LossOptions,
    progress: &mut dyn FnMut(LossProgress),
) -> Result<(LossRecord, SkippedSamples), MeasureError> {
    let sets: Vec<FeatureSet> = networks.iter().map(|(_, net)| net.origin().feature_set()).collect::<Result<_, _>>()?;
    let ready: Vec<Ready<'_>> = networks.iter().map(|(_, network)| Ready::of(network)).collect();
    let judges = ready.iter().zip(&sets).map(|(network, set)| network.judge(set)).collect::<Result<Vec<_>, _>>()?;

    let mut reader = SampleReader::open(data, options.format, options.unit)?;
    let (format, score_unit) = (reader.format(), reader.score_unit());
    let samples = Samples {
        path: data,
        units: Rescale { from: score_unit, to: ScoreUnit::Centipawns },
        loss: options.loss,
        // A board alone: neither games nor plies.
        bare: !format.has_ply(),
    };
    let mut tally = Tally::new(networks.len());
    let (mut read, mut judged, mut without_target) = (0, 0, 0);
    let mut games = Numbers::default();
    while let Some(mut block) = reader.next_block()? {
        block.truncate(usize::try_from(options.limit.unwrap_or(u64::MAX) - read).unwrap_or(usize::MAX));
        let chunks = block.par_chunks(CHUNK).enumerate();
        let first = |chunk: usize| read + (chunk * CHUNK) as u64;
        let judge = |(chunk, records)| samples.judge(&judges, first(chunk), records);
        // In order, so that sums do not depend on the threads.
        for judged_chunk in chunks.map(judge).collect::<Vec<_>>() {
            for sample in judged_chunk? {
                let Some((cluster, parts, losses)) = sample else {
                    without_target += 1;
                    continue;
                };
                parts.into_iter().for_each(|part| tally.add(cluster, part, &losses));
                games.add(cluster);
                judged += 1;
            }
        }
        read += block.len() as u64;
        progress(LossProgress { samples: read, bytes: reader.bytes_read(), length: reader.length() });
        if block.is_empty() || Some(read) == options.limit {
            break;
        }
    }
    if judged == 0 {
        return Err(MeasureError::NoTarget { path: data.into(), samples: read, lambda: options.loss.lambda });
    }
    let record = LossRecord {
        data: LossData {
            path: data.display().to_string(),
            format: format.name().into(),
            score_unit,
            samples: judged,
            without_target,
            games: (!samples.bare).then(|| games.count()),
        },
        loss: options.loss,
        clusters: if samples.bare { Cluster::Sample } else { Cluster::Game },
        networks: (0..networks.len()).map(|index| network_loss(&networks[index], index, &tally)).collect(),
        pairs: pairs(networks.len(), &tally),
    };
    Ok((record, reader.skipped()))
}

fn network_loss((name, network): &(String, Network), index: usize, tally: &Tally) -> NetworkLoss {
    let Mean { mean, interval, .. } = tally.mean(|losses| losses[index]);
    NetworkLoss {
        network: name.clone(),
        arithmetic: match network {
            Network::Integer(_) => Arithmetic::Integer,
            Network::Float { .. } => Arithmetic::Float,
        },
        name: network.origin().name.clone(),
        identity: network.origin().identity.clone(),
        loss: mean,
        interval,
        by: tally.by_place(|losses| losses[index]),
    }
}

fn pairs(networks: usize, tally: &Tally) -> Vec<LossPair> {
    let each = (0..networks).flat_map(|first| (first + 1..networks).map(move |second| (first, second)));
    let pair = |(first, second): (usize, usize)| {
        let difference = |losses: &[f64]| losses[first] - losses[second];
        let Mean { mean, interval, .. } = tally.mean(difference);
        LossPair { first, second, difference: mean, interval, by: tally.by_place(difference) }
    };
    each.map(pair).collect()
}

/// Which numbers were seen: a bit each.
#[derive(Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    fn add(&mut self, number: u64) {
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

/// A sample's cluster, parts and losses; none without a target.
type Judged = Option<(u64, Vec<usize>, Vec<f64>)>;

/// How samples are looked at.
struct Samples<'a> {
    path: &'a Path,
    units: Rescale,
    loss: EvalLoss,
    bare: bool,
}

impl Samples<'_> {
    /// `first`: the number of the first record.
    fn judge(&self, judges: &[Judge<'_>], first: u64, records: &[Record]) -> Result<Vec<Judged>, MeasureError> {
        let mut judges = judges.to_vec();
        let mut judged = Vec::with_capacity(records.len());
        for (number, record) in (first..).zip(records) {
            let score = record.score().map(|score| f32::from(convert_score(score, self.units).0));
            let result = record.result().map(GameResult::points);
            let Some(target) = self.loss.target(score, result) else {
                judged.push(None);
                continue;
            };
            let board = record.board().unpack().map_err(|reason| {
                let reason = reason.into();
                MeasureError::Record { path: self.path.into(), number, reason }
            })?;
            let turn = record.turn();
            let mut loss = |judge: &mut Judge<'_>| self.loss.of(judge.centipawns(&board, turn), f64::from(target));
            let losses = judges.iter_mut().map(&mut loss).collect();
            let place = Place { board: &board, turn, ply: (!self.bare).then(|| record.ply().0) };
            let cluster = if self.bare { number } else { u64::from(record.game()) };
            judged.push(Some((cluster, Tally::parts(&place).collect(), losses)));
        }
        Ok(judged)
    }
}

/// A network as it is evaluated.
enum Ready<'a> {
    Integer(Box<Model>, &'a Scheme),
    Float(Box<FloatNet>, &'a Scheme),
}

impl Ready<'_> {
    fn of(network: &Network) -> Ready<'_> {
        match network {
            Network::Integer(file) => Ready::Integer(Box::new(Model::new(&file.net)), &file.net.scheme),
            Network::Float { net, scheme, .. } => Ready::Float(Box::new(net.on_grid(scheme)), scheme),
        }
    }

    fn judge<'a>(&'a self, set: &'a FeatureSet) -> Result<Judge<'a>, MeasureError> {
        Ok(match self {
            Ready::Integer(model, scheme) => {
                let evaluator = Evaluator::new(set, model, Strategy::EagerCached, BackEnd::best())?;
                Judge::Integer { evaluator: Box::new(evaluator), scheme }
            }
            Ready::Float(net, scheme) => Judge::Float { net, scheme, set, active: Default::default() },
        })
    }
}

/// A network at work.
#[derive(Clone)]
enum Judge<'a> {
    Integer { evaluator: Box<Evaluator<'a>>, scheme: &'a Scheme },
    Float { net: &'a FloatNet, scheme: &'a Scheme, set: &'a FeatureSet, active: [Vec<u32>; 2] },
}

impl Judge<'_> {
    /// Side to move's view.
    fn centipawns(&mut self, board: &Board, turn: Color) -> f64 {
        match self {
            Judge::Integer { evaluator, scheme } => {
                evaluator.set(board);
                f64::from(evaluator.score(turn)) * 100.0 / f64::from(scheme.pawn_value)
            }
            Judge::Float { net, scheme, set, active: [stm, nstm] } => {
                let pov = Perspective::of(turn);
                set.encoder().encode(board, pov, stm);
                set.encoder().encode(board, pov.other(), nstm);
                let bucket = net.shape.buckets.of(board.occupied().count());
                let output = f64::from(forward(net, scheme, bucket, stm, nstm));
                output * f64::from(scheme.nnue2score) * 100.0 / f64::from(scheme.pawn_value)
            }
        }
    }
}
