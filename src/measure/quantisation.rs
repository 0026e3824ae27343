//! Quantisation error: the difference between the float and the integer network's expected result, per position.

use std::path::Path;

use super::MeasureError;
use super::lines::{Line, ReadSummary, advance, fold_lines};
use crate::engine::{BackEnd, Differences, Evaluator, Model, NetworkPair, Strategy};
use crate::net::{Checkpoint, FloatNet, NetFile};
use crate::record::ErrorRecord;
use crate::train::EvalLoss;

/// Options of [`quantisation`].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct QuantisationOptions {
    /// Centipawns at which the expected result is σ(1).
    pub scale: f32,
    /// The largest difference in expected result that is within tolerance.
    pub tolerance: f64,
    /// The number of games to read; `None` reads all.
    pub limit: Option<u64>,
}

impl Default for QuantisationOptions {
    fn default() -> Self {
        let scale = EvalLoss::default().output_scale as f32;
        QuantisationOptions { scale, tolerance: ErrorRecord::TOLERANCE, limit: None }
    }
}

/// Measures |WDL(float) − WDL(integer)| over the positions of the data, from the side to move's view. The dense weights
/// of the float network are rounded to the scheme's grid, as in training.
///
/// # Errors
/// When network and checkpoint have different feature sets or shapes, or the data cannot be read.
pub fn quantisation(
    file: &NetFile,
    float: &FloatNet,
    checkpoint: &Checkpoint,
    data: &Path,
    options: QuantisationOptions,
) -> Result<(ErrorRecord, ReadSummary), MeasureError> {
    check_compatible(file, float, checkpoint)?;
    let set = file.origin.feature_set()?;
    let model = Model::new(&file.net);
    let evaluator = Evaluator::new(&set, &model, Strategy::EagerCached, BackEnd::best())?;
    let pair = NetworkPair::new(&set, float, &file.net, options.scale);
    let empty = || Differences::new(options.tolerance);
    let add = |differences: &mut Differences, line: &Line| {
        let mut evaluator = evaluator.clone();
        line.for_each_position(|board, turn, played| {
            advance(&mut evaluator, board, played);
            pair.compare(&mut evaluator, board, turn, differences);
        });
    };
    let (differences, summary) = fold_lines(data, options.limit, empty, add, Differences::plus)?;
    let record = ErrorRecord {
        name: file.origin.name.clone(),
        identity: file.origin.identity.clone(),
        positions: differences.positions(),
        mean: differences.mean(),
        p99: f64::from(differences.p99()),
        max: f64::from(differences.max()),
        within_tolerance: differences.within_tolerance(),
        tolerance: options.tolerance,
        accumulator_overflows: differences.accumulator_overflows(),
    };
    Ok((record, summary))
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
    if file.net.shape == float.shape {
        Ok(())
    } else {
        Err(MeasureError::Shapes { net: file.net.shape.to_string(), checkpoint: float.shape.to_string() })
    }
}
