//! Quantisation error: the difference between the float and the integer network's expected result, per position.

use std::path::Path;

use super::MeasureError;
use super::lines::{Line, ReadSummary, advance, fold_lines};
use crate::chess::Perspective;
use crate::engine::{BackEnd, Evaluator, Model, Strategy};
use crate::features::FeatureSet;
use crate::net::{Checkpoint, FloatNet, NetFile, forward};
use crate::record::ErrorRecord;
use crate::train::EvalLoss;
use crate::units::Wdl;

/// Options of [`error`].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ErrorOptions {
    /// Centipawns at which the expected result is σ(1).
    pub scale: f32,
    /// The largest difference in expected result that is within tolerance.
    pub tolerance: f64,
    /// The number of games to read; `None` reads all.
    pub limit: Option<u64>,
}

impl Default for ErrorOptions {
    fn default() -> Self {
        ErrorOptions { scale: EvalLoss::default().output_scale as f32, tolerance: 0.03, limit: None }
    }
}

/// Measures |WDL(float) − WDL(integer)| over the positions of the data, from the side to move's view. The dense weights
/// of the float network are rounded to the scheme's grid, as in training.
///
/// # Errors
/// When network and checkpoint have different feature sets or shapes, or the data cannot be read.
pub fn error(
    file: &NetFile,
    float: &FloatNet,
    checkpoint: &Checkpoint,
    data: &Path,
    options: ErrorOptions,
) -> Result<(ErrorRecord, ReadSummary), MeasureError> {
    check_compatible(file, float, checkpoint)?;
    let set = file.origin.feature_set()?;
    let model = Model::new(&file.net);
    let evaluator = Evaluator::new(&set, &model, Strategy::EagerCached, BackEnd::best())?;
    let float = float.on_grid(&file.net.scheme);
    let pair = NetworkPair { set: &set, file, float: &float, scale: options.scale };
    let add = |comparison: &mut Comparison, line: &Line| pair.compare(evaluator.clone(), line, comparison);
    let (comparison, summary) = fold_lines(data, options.limit, Comparison::default, add, Comparison::plus)?;
    let Comparison { mut differences, overflows } = comparison;
    differences.sort_unstable_by(f32::total_cmp);
    let count = differences.len();
    let within = differences.partition_point(|difference| f64::from(*difference) <= options.tolerance);
    // The smallest difference that at least 99% of the positions do not exceed.
    let p99 = differences.get((count * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default();
    let record = ErrorRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        positions: count as u64,
        mean: differences.iter().copied().map(f64::from).sum::<f64>() / count.max(1) as f64,
        p99: f64::from(p99),
        max: f64::from(differences.last().copied().unwrap_or_default()),
        within_tolerance: within as f64 / count.max(1) as f64,
        tolerance: options.tolerance,
        accumulator_overflows: overflows,
    };
    Ok((record, summary))
}

/// The differences between two networks, and the positions in which an accumulator overflows.
#[derive(Default)]
struct Comparison {
    differences: Vec<f32>,
    overflows: u64,
}

impl Comparison {
    fn plus(mut self, mut other: Comparison) -> Comparison {
        self.differences.append(&mut other.differences);
        self.overflows += other.overflows;
        self
    }
}

fn check_compatible(file: &NetFile, float: &FloatNet, checkpoint: &Checkpoint) -> Result<(), MeasureError> {
    if file.origin.identity != checkpoint.origin.identity {
        return Err(MeasureError::FeatureSets {
            net: file.origin.name.clone(),
            net_identity: file.origin.identity.clone(),
            checkpoint: checkpoint.origin.name.clone(),
            checkpoint_identity: checkpoint.origin.identity.clone(),
        });
    }
    match file.net.shape == float.shape {
        true => Ok(()),
        false => Err(MeasureError::Shapes { net: file.net.shape.to_string(), checkpoint: float.shape.to_string() }),
    }
}

/// The two networks to compare.
struct NetworkPair<'a> {
    set: &'a FeatureSet,
    file: &'a NetFile,
    float: &'a FloatNet,
    scale: f32,
}

impl NetworkPair<'_> {
    fn compare(&self, mut evaluator: Evaluator<'_>, line: &Line, comparison: &mut Comparison) {
        let scheme = &self.file.net.scheme;
        let centipawns = scheme.nnue2score as f32 * 100.0 / scheme.pawn_value as f32;
        let (mut stm, mut nstm) = (Vec::new(), Vec::new());
        line.for_each_position(|board, turn, played| {
            advance(&mut evaluator, board, played);
            let pov = Perspective::of(turn);
            self.set.encoder().encode(board, pov, &mut stm);
            self.set.encoder().encode(board, pov.other(), &mut nstm);
            let bucket = self.file.net.shape.buckets.of(board.occupied().count());
            let output = forward(self.float, scheme, bucket, &stm, &nstm);
            let float = Wdl::from_score(output * centipawns, self.scale);
            let integer = Wdl::from_score(scheme.centipawns(evaluator.score(turn)) as f32, self.scale);
            comparison.differences.push((float.0 - integer.0).abs());
            let outside = |sum: &i32| i16::try_from(*sum).is_err();
            let overflows = |active: &[u32]| self.file.net.accumulate(active).iter().any(outside);
            comparison.overflows += u64::from(overflows(&stm) || overflows(&nstm));
        });
    }
}
