//! Scales the scores of different networks to one mean size.
//!
//! The search's margins are in centipawns, but the typical size of a network's scores depends on its loss, data and
//! features. Before a network plays, one factor brings the mean |score| to a fixed reference.

use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Position};

use super::score::LARGEST_EVAL;
use crate::engine::{BackEnd, EngineError, Evaluator, Model, Strategy};
use crate::features::FeatureSet;

/// Factor from a network's internal score units to the search's centipawns, stored in 1/65,536.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvalScale(i32);

impl EvalScale {
    const ONE: f64 = 65_536.0;

    /// Mean |score| after scaling, in the search's centipawns, over the positions of [`EvalScale::of`]: the mean of
    /// Stockfish 15.1's network nn-ad9b42354671 in that network's own centipawns (361 internal units make a pawn).
    /// `fsbench bench --net nn-ad9b42354671.nnue --format json` reproduces it: `eval_scale` is 100/361.
    pub const REFERENCE_MEAN: f64 = 342.8;

    /// Leaves internal units as they are.
    pub const UNIT: EvalScale = EvalScale(65_536);

    /// The factor as a number.
    #[must_use]
    pub fn factor(self) -> f64 {
        f64::from(self.0) / Self::ONE
    }

    /// A network's factor, the same on every back end.
    ///
    /// # Errors
    /// When the network was made for another feature set.
    pub fn of_model(set: &FeatureSet, model: &Model) -> Result<EvalScale, EngineError> {
        Ok(EvalScale::of(&mut Evaluator::new(set, model, Strategy::LazyCached, BackEnd::best())?))
    }

    /// Determines a network's factor from its scores of fixed positions: all positions one legal move after a bench
    /// position.
    #[must_use]
    pub fn of(evaluator: &mut Evaluator<'_>) -> EvalScale {
        let (mut sum, mut count) = (0i64, 0i64);
        for fen in super::BENCH_FENS {
            let Some(position) = super::bench::parse_fen(fen) else { continue };
            for mv in position.legal_moves() {
                let mut after: Chess = position.clone();
                after.play_unchecked(mv);
                evaluator.set(after.board());
                sum += i64::from(evaluator.score(after.turn()).abs());
                count += 1;
            }
        }
        let mean = sum as f64 / count.max(1) as f64;
        let factor = if mean > 0.0 { Self::REFERENCE_MEAN / mean } else { 1.0 };
        EvalScale((factor * Self::ONE).round().clamp(1.0, f64::from(i32::MAX)) as i32)
    }

    /// Converts an internal score to the search's centipawns, clamped to the range of evaluations.
    pub(super) fn apply(self, internal: i32) -> i32 {
        let scaled = (i64::from(internal) * i64::from(self.0)) >> 16;
        scaled.clamp(-i64::from(LARGEST_EVAL), i64::from(LARGEST_EVAL)) as i32
    }
}
